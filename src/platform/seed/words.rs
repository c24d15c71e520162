//! The texts of the data: three teams, what they work on, and how agents talk about it.

/// A team with its workspace.
pub struct Team {
    /// The workspace.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Start of its tasks' identifiers; empty for none.
    pub prefix: &'static str,
    /// Its repositories.
    pub repositories: &'static [&'static str],
    /// What its tasks are about, each with a file of it.
    pub things: &'static [(&'static str, &'static str)],
}

/// All teams.
pub const TEAMS: &[Team] = &[
    Team {
        name: "Storefront",
        about: "Everything that customers see and pay with",
        prefix: "SHOP",
        repositories: &["storefront", "checkout-service", "catalogue"],
        things: &[
            ("the discount total of the cart", "src/cart/discount.ts"),
            ("checkout without an account", "src/checkout/guest.ts"),
            ("the search of orders", "src/orders/search.ts"),
            ("stock levels after a return", "src/stock/returns.ts"),
            ("invoices as PDF", "src/invoice/pdf.ts"),
            ("shipping rates for islands", "src/shipping/rates.ts"),
            ("the product gallery", "src/product/gallery.tsx"),
            ("gift cards", "src/payment/gift-card.ts"),
            ("VAT of digital goods", "src/tax/digital.ts"),
            ("payment retries", "src/payment/retry.ts"),
        ],
    },
    Team {
        name: "Mobile app",
        about: "The app for phones and tablets",
        prefix: "APP",
        repositories: &["mobile", "design-tokens"],
        things: &[
            ("offline sync", "lib/sync/queue.dart"),
            ("the login by fingerprint", "lib/auth/biometric.dart"),
            ("push notifications", "lib/push/handler.dart"),
            ("the photo upload", "lib/media/upload.dart"),
            ("dark mode", "lib/theme/dark.dart"),
            ("the settings screen", "lib/settings/screen.dart"),
            ("deep links", "lib/routing/links.dart"),
            ("the list of chats", "lib/chat/list.dart"),
            ("crash reports", "lib/diagnostics/crash.dart"),
            ("the tablet layout", "lib/layout/tablet.dart"),
        ],
    },
    Team {
        name: "Infrastructure",
        about: "What keeps the rest running at night",
        prefix: "",
        repositories: &["deploy", "runbooks", "observability"],
        things: &[
            ("the nightly backup", "jobs/backup.sh"),
            ("log rotation", "roles/logging/rotate.yml"),
            ("the deploy pipeline", "pipeline/deploy.yml"),
            ("rate limits of the gateway", "gateway/limits.lua"),
            ("the dashboard of the queues", "dashboards/queues.json"),
            ("certificates that expire", "jobs/renew.sh"),
            ("the health checks", "gateway/health.lua"),
            ("the audit trail", "audit/trail.go"),
            ("secrets of the build", "pipeline/secrets.yml"),
            ("the staging cluster", "clusters/staging.tf"),
        ],
    },
];

/// What is done with a thing.
pub const VERBS: &[&str] = &["Fix", "Rework", "Speed up", "Test", "Document", "Simplify", "Harden", "Measure"];

/// Under which circumstances; most have none.
pub const WHERE: &[&str] =
    &["", "", "", "", " on slow networks", " under load", " for large accounts", " after an upgrade"];

/// Why it is done.
pub const REASONS: &[&str] = &[
    "Two customers reported it this week.",
    "It came up in the review of the last release.",
    "The on-call team was woken by it twice.",
    "It blocks the next milestone.",
    "Support has a workaround, but it takes ten minutes each time.",
    "We promised it for this quarter.",
];

/// When it is done.
pub const GOALS: &[&str] = &[
    "Done when a test shows it and the changelog says so.",
    "Done when the error rate is below one in a thousand for a day.",
    "Keep the interface as it is; other teams call it.",
    "Write down what you find even when nothing changes.",
    "A small change is better than a complete one.",
];

/// Names of labels.
pub const LABELS: &[&str] = &["bug", "ux", "performance", "docs", "debt", "customer", "security"];

/// First lines of quick chats.
pub const QUESTIONS: &[&str] = &[
    "Where is the retry limit set?",
    "What changed since the last tag?",
    "Which tests are slow?",
    "Who calls this function?",
    "Is this index used at all?",
];

/// What people say later in a session.
pub const REPLIES: &[&str] = &[
    "Looks good, please add a test for the empty case.",
    "Can you explain why the old path was slower?",
    "Go on.",
    "Keep the old name, it is in our public documentation.",
    "Please rebase first.",
];

/// What agents think.
pub const THOUGHTS: &[&str] = &[
    "The failing case has no items, so the sum starts from nothing.",
    "There are two callers; only one of them passes the time zone.",
    "The lock is held over the call, which explains the latency.",
    "This looks like the cache, but the numbers do not fit. I will measure first.",
    "The test passes for the wrong reason: it never reaches the branch.",
];

/// What agents say at the end of a turn.
pub const ANSWERS: &[&str] = &[
    "I changed the order of the checks and added a test for the empty case. All tests pass.",
    "The cause was a missing index; the query went from 840 ms to 6 ms.",
    "Done. The old function stays as a thin wrapper, so that nobody has to change at once.",
    "I could not reproduce it with the data of staging. I left a log line that shows the input.",
    "Two files changed, 34 lines added. The documentation has an example now.",
];

/// Why sessions fail.
pub const FAILURES: &[&str] =
    &["the agent ended with exit code 1", "no space left in the worktree", "the model was not reached within 120 s"];
