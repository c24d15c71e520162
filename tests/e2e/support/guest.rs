//! The two fixture plugins, one behaviour (tests/fixtures/README.md), and the macro that runs a case on both.

use std::{path::PathBuf, process::Command, sync::OnceLock};

/// Which fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guest {
    /// On the real hashicorp/go-plugin library.
    Go,
    /// On our own guest half.
    Rust,
}

impl Guest {
    /// The fixture's executable, built on first use. `None` when Go cannot be had here: the case prints
    /// `skipped: needs go`, and with `CI=true` it fails instead.
    pub fn executable(self) -> Option<PathBuf> {
        match self {
            Self::Go => build().0.clone(),
            Self::Rust => Some(build().1.clone()),
        }
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Builds both fixtures, once in a test process.
fn build() -> &'static (Option<PathBuf>, PathBuf) {
    static BUILT: OnceLock<(Option<PathBuf>, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let output = Command::new("sh")
            .arg(root().join("scripts/build-fixtures.sh"))
            .output()
            .expect("sh runs scripts/build-fixtures.sh");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "scripts/build-fixtures.sh failed:\n{text}");
        let go = if text.contains("skipped: needs go") {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must not leave out the Go fixture:\n{text}");
            println!("skipped: needs go");
            None
        } else {
            Some(root().join("target/fixtures/go-fixture"))
        };
        (go, root().join("target/fixtures/rust-fixture"))
    })
}

/// Runs one async case with each guest: `on_both!(name, |guest| async move { … })` makes the tests `name::go` and
/// `name::rust`.
#[macro_export]
macro_rules! on_both {
    ($(#[$meta:meta])* $name:ident, |$guest:ident| $case:block) => {
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports, reason = "a case uses what it needs")]
            use super::*;

            async fn case($guest: $crate::support::Guest) $case

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn go() {
                if $crate::support::Guest::Go.executable().is_some() {
                    case($crate::support::Guest::Go).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn rust() {
                case($crate::support::Guest::Rust).await;
            }
        }
    };
}
