//! The two databases a host can run on, and the macro that runs a case on both.

use test_postgres::Server;

use super::Settings;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// The file below the host's home.
    Sqlite,
    /// An own database on the tests' server.
    Postgres,
}

impl Database {
    /// Settings of a host with this `host.toml` on a new database. `None` when there is no PostgreSQL to be had here:
    /// the case prints `skipped: needs postgresql`, and with `CI=true` it fails instead.
    pub async fn settings(self, toml: &str) -> Option<Settings> {
        let settings = Settings::toml(toml);
        match self {
            Self::Sqlite => Some(settings),
            Self::Postgres => Some(settings.env("DATABASE_URL", &Server::shared()?.database().await)),
        }
    }
}

/// Runs one async case on each database: `on_databases!(name, TOML, |settings| { … })` makes the tests `name::sqlite`
/// and `name::postgres`. `settings` start a host on a database of its own.
#[macro_export]
macro_rules! on_databases {
    ($(#[$meta:meta])* $name:ident, $toml:expr, |$settings:ident| $case:block) => {
        $(#[$meta])*
        mod $name {
            use super::*;

            async fn case(database: $crate::support::Database) {
                if let Some($settings) = database.settings($toml).await $case
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                case($crate::support::Database::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                case($crate::support::Database::Postgres).await;
            }
        }
    };
}
