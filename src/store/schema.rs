//! The database's schema as the operator sees it: which steps it has, which it lacks, which this host does not know.
//!
//! Reads only: nothing is created, not even a missing SQLite file. Applying steps is [`super::db::Db::connect`]'s part.

use std::{str::FromStr, time::Duration};

use migration::{Migrator, MigratorTrait};
use sea_orm::{
    DatabaseConnection,
    sqlx::{
        ConnectOptions,
        postgres::{PgConnectOptions, PgPoolOptions},
        sqlite::{SqliteConnectOptions, SqlitePoolOptions},
    },
};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use time::OffsetDateTime;

use super::db::{ConnectError, server_error, sqlite_error};

/// One step of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name, which begins with its date.
    pub name: String,
    /// Whether the database has it.
    pub state: StepState,
    /// Since when, UTC; `null` when it has not.
    #[serde(with = "time::serde::rfc3339::option")]
    pub applied_at: Option<OffsetDateTime>,
}

/// Whether a database has a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    /// It has.
    Applied,
    /// It will have after the next start or `db migrate`.
    Pending,
    /// It has, and this host does not know the step: a newer one made it, and this one refuses to start on it.
    Unknown,
}

/// Every step that this host knows or the database has, by name.
///
/// # Errors
/// [`ConnectError`] when the database cannot be read within `deadline`. A SQLite file that does not exist is none: all
/// its steps are pending.
pub async fn steps(url: &SecretString, deadline: Duration) -> Result<Vec<Step>, ConnectError> {
    let reading = async {
        match open(url.expose_secret()).await? {
            None => Ok(Vec::new()),
            Some(db) => {
                let failed = |error: sea_orm::DbErr| ConnectError::Migration(error.to_string());
                let applied = migration::applied(&db).await.map_err(failed)?;
                db.close().await.map_err(failed)?;
                Ok(applied)
            }
        }
    };
    let applied = tokio::time::timeout(deadline, reading).await.map_err(|_| ConnectError::TimedOut(deadline))??;
    let known = Migrator::migrations();
    Ok(compare(known.iter().map(|step| step.name()), applied))
}

fn compare<'a>(known: impl Iterator<Item = &'a str>, applied: Vec<(String, i64)>) -> Vec<Step> {
    let mut steps: Vec<Step> =
        known.map(|name| Step { name: name.to_owned(), state: StepState::Pending, applied_at: None }).collect();
    for (name, at) in applied {
        let applied_at = OffsetDateTime::from_unix_timestamp(at).ok();
        match steps.iter_mut().find(|step| step.name == name) {
            Some(step) => (step.state, step.applied_at) = (StepState::Applied, applied_at),
            None => steps.push(Step { name, state: StepState::Unknown, applied_at }),
        }
    }
    steps.sort_by(|a, b| a.name.cmp(&b.name));
    steps
}

/// A connection to a database that exists; `None` when the SQLite file does not.
async fn open(url: &str) -> Result<Option<DatabaseConnection>, ConnectError> {
    if !url.starts_with("sqlite:") {
        // The parser's own text may quote the address, and with it a password.
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| ConnectError::Address("it is not a PostgreSQL address".to_owned()))?
            .application_name("kandev-host")
            .disable_statement_logging();
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.map_err(server_error)?;
        return Ok(Some(pool.into()));
    }
    let options = SqliteConnectOptions::from_str(url).map_err(|error| ConnectError::Address(error.to_string()))?;
    let exists = tokio::fs::try_exists(options.get_filename()).await;
    if !exists.map_err(|error| ConnectError::Unreachable(error.to_string()))? {
        return Ok(None);
    }
    let options = options.create_if_missing(false).pragma("query_only", "on").disable_statement_logging();
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.map_err(sqlite_error)?;
    Ok(Some(pool.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_applied_pending_or_unknown_and_sorted() {
        let steps = compare(["m1", "m2"].into_iter(), vec![("m3".to_owned(), 0), ("m1".to_owned(), 60)]);
        let step = |name: &str, state, at: Option<i64>| Step {
            name: name.to_owned(),
            state,
            applied_at: at.map(|at| OffsetDateTime::from_unix_timestamp(at).unwrap()),
        };
        let expected = [
            step("m1", StepState::Applied, Some(60)),
            step("m2", StepState::Pending, None),
            step("m3", StepState::Unknown, Some(0)),
        ];
        assert_eq!(steps, expected);
    }

    #[tokio::test]
    async fn looking_at_a_missing_file_does_not_make_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kandev.db");
        let url = format!("sqlite://{}?mode=rwc", path.display()).into();
        let steps = steps(&url, Duration::from_secs(10)).await.unwrap();
        assert!(!steps.is_empty() && steps.iter().all(|step| step.state == StepState::Pending), "{steps:?}");
        assert!(!path.exists());
    }
}
