//! Making a diagnostic fit to be stored and shown: one line, without secrets and home folders, bounded.
//!
//! Contract: lifecycle.md §6, with the gaps it lists closed. Order: invalid UTF-8 replaced, white space and control
//! characters collapsed, redacted, cut. Patterns only know what secrets look like; they are a second net, not a licence
//! to log secrets. All of them run in linear time.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::clean::{cut, single_line};

/// Longest diagnostic in bytes, the mark `…` of a cut included.
pub const MAX_DIAGNOSTIC_BYTES: usize = 2048;

/// How much of a raw text is looked at, in bytes; the rest is far beyond what is kept.
const MAX_RAW_BYTES: usize = 16 * 1024;

/// Stands in the place of a secret.
pub(super) const REDACTED: &str = "[REDACTED]";

/// Turns raw text of a plugin or of an error into a diagnostic of at most [`MAX_DIAGNOSTIC_BYTES`].
///
/// `home` is the host's own home folder; empty when unknown.
pub fn diagnostic(raw: impl AsRef<[u8]>, home: &str) -> String {
    let raw = raw.as_ref();
    let text = String::from_utf8_lossy(&raw[..raw.len().min(MAX_RAW_BYTES)]);
    cut(redact(&single_line(&text, MAX_RAW_BYTES), home), MAX_DIAGNOSTIC_BYTES)
}

/// Replaces home folders and everything that looks like a secret in a single line.
pub fn redact(line: &str, home: &str) -> String {
    let mut text = replace_home(line, home);
    for rule in RULES.iter() {
        let replaced = rule.pattern.replace_all(&text, |found: &Captures<'_>| (rule.replacement)(found));
        text = replaced.into_owned();
    }
    text
}

/// Replaces the host's own home where a separator or the end follows.
fn replace_home(line: &str, home: &str) -> String {
    let home = home.trim_end_matches('/');
    if home.is_empty() {
        return line.to_owned();
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(home) {
        text.push_str(before);
        let whole = after.is_empty() || after.starts_with(['/', '\\']);
        text.push_str(if whole { "~" } else { home });
        rest = after;
    }
    text.push_str(rest);
    text
}

struct Rule {
    pattern: Regex,
    replacement: fn(&Captures<'_>) -> String,
}

/// A word that names a secret, with whatever stands before it in the same word.
const LABEL: &str = r"[\w.\-]*?(?:password|passwd|passphrase|pwd|secret|token|credentials?|api[ _\-]?(?:key|token|secret)|(?:access|private|secret|signing|encryption|account|master|auth)[ _\-]?key|(?:\b|[_\-.])pat|cookie)";

/// The value after a label: quoted (perhaps cut off), or up to white space or a closing sign.
const VALUE: &str = r#"(?:"(?:[^"\\]|\\.)*(?:"|$)|'(?:[^'\\]|\\.)*(?:'|$)|[^\s,;}]+)"#;

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let mut rules = Vec::new();
    let mut add = |pattern: &str, replacement: fn(&Captures<'_>) -> String| {
        // A constant pattern: the tests of this file run every one of them.
        #[expect(clippy::expect_used, reason = "constant patterns, compiled by every test of this file")]
        rules.push(Rule { pattern: Regex::new(pattern).expect("a constant pattern"), replacement });
    };
    // Key material in PEM, also when its end was cut off.
    add(r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|$)", |_| REDACTED.to_owned());
    // Homes of other users.
    // At the beginning of a path alone: `/srv/home/plugins` is nobody's home.
    add(r"(^|[^\w.\-])(?:/Users/|/home/)[^/\\\s]+([/\\]|$)", |found| format!("{}~{}", &found[1], &found[2]));
    add(r"(^|[^\w.\-])/root([/\\]|$)", |found| format!("{}~{}", &found[1], &found[2]));
    add(r"(?i)\b[a-z]:[\\/]+users[\\/]+[^\\/\s]+([\\/]|$)", |found| format!("~{}", &found[1]));
    // Credentials in addresses of any scheme, user alone included. A password may hold any sign, so with a colon
    // everything up to the last @ of the word goes.
    add(r#"(?i)\b([a-z][a-z0-9+.\-]*://)(?:[^\s/?#"'<>]*:[^\s"'<>]*@|[^\s/?#"'<>]*@)"#, |found| {
        format!("{}{REDACTED}@", &found[1])
    });
    // Authorization: a scheme and a token, or a bare token.
    add(
        r#"(?i)\b((?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?)((?:bearer|basic|digest|token|negotiate|apikey)\s+)?[^\s,;"'}]+"#,
        |found| format!("{}{}{REDACTED}", &found[1], found.get(2).map_or("", |scheme| scheme.as_str())),
    );
    add(r#"(?i)\bbearer\s+[^\s,;"'}]+"#, |_| format!("Bearer {REDACTED}"));
    add(r"(?i)\bbasic\s+([a-z0-9+/_\-]{8,}={0,2})", basic);
    // Labelled secrets: `label: value`, `label=value`, JSON, and command-line flags.
    add(&format!(r#"(?i)({LABEL}(?:\\*["'])?\s*(?:[:=]+>?)\s*){VALUE}"#), |found| format!("{}{REDACTED}", &found[1]));
    add(&format!(r"(?i)(--?{LABEL}\s+){VALUE}"), |found| format!("{}{REDACTED}", &found[1]));
    add(KNOWN_TOKENS, |_| REDACTED.to_owned());
    rules
});

/// Tokens that are recognised by their own form: GitHub, GitLab, kandev, Slack, AWS, Google, npm, payment and model
/// providers, and JSON Web Tokens.
const KNOWN_TOKENS: &str = concat!(
    r"github_pat_\w+|gh[pousr]_\w+|glpat-[\w\-.]+|kandev_pat_\w+",
    r"|xox[a-z](?:\.[a-z]+)?-[\w\-]+|xapp-[\w\-]+|hooks\.slack\.com/services/[\w/]+",
    r"|\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|\bAIza[\w\-]{30,}|\bnpm_[A-Za-z0-9]{20,}",
    r"|\b[sr]k-[\w\-]{16,}|\b[sr]k_(?:live|test)_\w+",
    r"|\beyJ[\w\-]{5,}\.[\w\-]{5,}(?:\.[\w\-]*)*"
);

/// `Basic` is also an ordinary word: only what cannot be prose is taken for credentials.
fn basic(found: &Captures<'_>) -> String {
    let token = &found[1];
    let sign = token.contains(|c: char| !c.is_ascii_alphabetic() && c != '-');
    let mixed =
        token.chars().skip(1).any(|c| c.is_ascii_uppercase()) && token.contains(|c: char| c.is_ascii_lowercase());
    if sign || mixed { format!("Basic {REDACTED}") } else { found[0].to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_contract_hold() {
        for (raw, shown) in [
            ("open /srv/kd/plugins/x", "open ~/plugins/x"),
            ("/srv/kd", "~"),
            ("/srv/kdx/y", "/srv/kdx/y"),
            ("open /home/mira/a.sock", "open ~/a.sock"),
            ("/home/mira: denied", "/home/mira: denied"),
            ("/root/x and /Users/ann", "~/x and ~"),
            ("\"/tmp/a/home/plugins/x\" file:///home/mira/x", "\"/tmp/a/home/plugins/x\" file://~/x"),
            (r"D:\Users\mira\k", r"~\k"),
            ("https://bot:p4ss@git.test/r", "https://[REDACTED]@git.test/r"),
            ("bearer abc.def", "Bearer [REDACTED]"),
            (r#"db_password = "q1""#, "db_password = [REDACTED]"),
            ("API-KEY:zz9", "API-KEY:[REDACTED]"),
            ("got glpat-9xYz", "got [REDACTED]"),
            ("token=Bearer abc", "token=[REDACTED] [REDACTED]"),
            ("x_api_key: v, next", "x_api_key: [REDACTED], next"),
            ("api key: v", "api key: [REDACTED]"),
            ("pat=abc; compat: yes", "pat=[REDACTED]; compat: yes"),
        ] {
            assert_eq!(diagnostic(raw, "/srv/kd/"), shown);
        }
    }

    #[test]
    fn the_gaps_of_the_contract_are_closed() {
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA PRIVATE KEY----- end";
        for (raw, shown) in [
            ("dbPassword=q1", "dbPassword=[REDACTED]"),
            (r#"{"token":"v 1","n":2}"#, r#"{"token":[REDACTED],"n":2}"#),
            (r#"{\"apiKey\":\"v1\"}"#, r#"{\"apiKey\":[REDACTED]}"#),
            ("https://bot@git.test/r", "https://[REDACTED]@git.test/r"),
            ("ws://u:p@h/", "ws://[REDACTED]@h/"),
            ("postgres://u:p/w@db:5432/x", "postgres://[REDACTED]@db:5432/x"),
            ("https://a@b:pw@h/x", "https://[REDACTED]@h/x"),
            ("https://h.test/@scope/pkg", "https://h.test/@scope/pkg"),
            ("key AKIAIOSFODNN7EXAMPLE here", "key [REDACTED] here"),
            ("aws_secret_access_key=wJalr/K7", "aws_secret_access_key=[REDACTED]"),
            ("xoxb-12-ab", "[REDACTED]"),
            (pem, "[REDACTED] end"),
            ("-----BEGIN PRIVATE KEY----- MIIEcut", "[REDACTED]"),
            ("jwt eyJhbGciOi.eyJzdWIi.sig-x", "jwt [REDACTED]"),
            ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [REDACTED]"),
            ("basic dXNlcjpwYXNzd29yZA==", "Basic [REDACTED]"),
            ("basic authentication failed", "basic authentication failed"),
            ("run --api-key abc --verbose", "run --api-key [REDACTED] --verbose"),
            ("max_tokens: 4096", "max_tokens: 4096"),
            ("unexpected token at line 3", "unexpected token at line 3"),
        ] {
            assert_eq!(diagnostic(raw, ""), shown);
        }
    }

    #[test]
    fn the_result_is_one_valid_bounded_line() {
        assert_eq!(diagnostic(b"  a\r\n\tb\xff\x1b[0m ", ""), "a b\u{fffd} [0m");
        let long = diagnostic("é".repeat(3000), "");
        assert_eq!(long.len(), 2047);
        assert!(long.ends_with('…'));
        assert_eq!(diagnostic("x".repeat(2048), "").len(), 2048);
        assert_eq!(diagnostic(vec![b'x'; 10_000_000], "").len(), MAX_DIAGNOSTIC_BYTES);
    }

    #[test]
    fn hostile_input_is_handled_in_linear_time() {
        for unit in ["password", "a://", "-----BEGIN A-----", "token=\"\\", "basic aaaaaaaa ", "/home/", "eyJaaaaa."] {
            diagnostic(unit.repeat(MAX_RAW_BYTES / unit.len()), "/home");
        }
    }

    /// Texts around a secret, each recognised by one of the rules.
    const SHAPES: [(&str, &str); 28] = [
        ("password=", ""),
        ("dbPassword: ", ""),
        ("{\"client_secret\":\"", "\"}"),
        ("{'refresh-token': '", "'}"),
        ("Authorization: Bearer ", ""),
        ("authorization=token ", ""),
        ("https://user:", "@host/x"),
        ("redis://", "@host"),
        ("ghp_", ""),
        ("github_pat_", ""),
        ("glpat-", ""),
        ("xoxp-", ""),
        ("--token ", ""),
        ("-----BEGIN EC PRIVATE KEY----- ", " -----END EC PRIVATE KEY-----"),
        ("PRIVATE_KEY=", ""),
        ("kandev_pat_", ""),
        ("apiKey = \"", "\""),
        ("{\\\"accessToken\\\": \\\"", "\\\"}"),
        ("X-Api-Key: ", ""),
        ("ws://user:", "@host/socket"),
        ("postgres://user:", "@db:5432/x"),
        ("https://", "@host/x"),
        ("amqps://user:p@ss/", "@host"),
        ("AWS_SECRET_ACCESS_KEY=", ""),
        ("xoxb-1-", ""),
        ("eyJhbGciOiJIUzI1NiJ9.", ".c2ln"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.", ""),
        ("Authorization: Basic ", "=="),
    ];

    /// Words of ordinary diagnostics; none of them says or looks like a secret.
    const ORDINARY: [&str; 30] = [
        "cannot",
        "open",
        "the",
        "socket",
        "plugin",
        "exited",
        "with",
        "code",
        "3",
        "(signal",
        "9)",
        "after",
        "120",
        "ms:",
        "connection",
        "refused",
        "at",
        "127.0.0.1:4318",
        "https://host.test/a/b?x=1",
        "postgres://db:5432/x",
        "retry=5",
        "version:",
        "1.2.3-rc.1",
        "main.go:17",
        "basic",
        "token",
        "expected",
        "\"}\"",
        "user@host.test",
        "tokens:",
    ];

    proptest! {
        #[test]
        fn no_known_secret_survives(
            before in "[a-z /:.]{0,30}", after in "[a-z /:.]{0,30}", secret in "[A-Z][A-Za-z0-9]{11,39}", shape in 0..SHAPES.len()
        ) {
            let (open, close) = SHAPES[shape];
            let shown = diagnostic(format!("{before} {open}{secret}{close} {after}"), "/srv/kd");
            prop_assert!(!shown.contains(&secret), "{}", shown);
        }

        #[test]
        fn an_aws_key_id_never_survives(before in "[a-z ]{0,20}", kind in "(AKIA|ASIA)", key in "[A-Z0-9]{16}") {
            let shown = diagnostic(format!("{before} {kind}{key}"), "");
            prop_assert!(!shown.contains(&key), "{}", shown);
        }

        #[test]
        fn ordinary_text_is_unchanged(words in proptest::collection::vec(0..ORDINARY.len(), 0..30)) {
            // `tokens:` and a word after it is a labelled value, as far as a pattern can tell.
            let words: Vec<_> = words.into_iter().map(|n| ORDINARY[n]).collect();
            let text = words.join(" ");
            prop_assert_eq!(diagnostic(&text, "/srv/kd"), text);
        }

        #[test]
        fn any_bytes_give_one_bounded_line(bytes in proptest::collection::vec(any::<u8>(), 0..3000), home in "/?[a-z/]{0,5}") {
            let shown = diagnostic(&bytes, &home);
            prop_assert!(shown.len() <= MAX_DIAGNOSTIC_BYTES);
            prop_assert!(!shown.chars().any(char::is_control));
        }

        #[test]
        fn redacting_twice_changes_nothing(text in "[a-zA-Z=:\"' /@.-]{0,60}") {
            let once = redact(&text, "");
            prop_assert_eq!(redact(&once, ""), once);
        }
    }
}
