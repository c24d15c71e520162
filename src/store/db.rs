//! The database: opening it, bringing its schema up to date, and the two roles of its connections.
//!
//! On SQLite one connection writes and a pool reads, so that writers queue in the host and never meet
//! "database is locked"; on PostgreSQL one pool plays both roles. Everything else is the same code for both.
//! Statements are the stores' part.

use std::{
    fs::OpenOptions, future::Future, io, os::unix::fs::OpenOptionsExt, path::Path, str::FromStr, time::Duration,
};

use migration::{Migrator, MigratorTrait};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbErr, RuntimeErr, SqliteTransactionMode,
    TransactionOptions, TransactionTrait,
    sqlx::{
        self, ConnectOptions, Connection,
        postgres::{PgConnectOptions, PgPoolOptions},
        sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
    },
};
use secrecy::{ExposeSecret, SecretString};

use crate::config::{Limits, Timing};

/// The database of one host; clones share its connections.
#[derive(Clone, Debug)]
pub struct Db {
    writer: DatabaseConnection,
    readers: DatabaseConnection,
    deadline: Duration,
}

/// Why the database could not be used at start. Never holds the address: that may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not one this host understands.
    #[error("the database address is not usable: {0}; write sqlite:///path/to/file.db or postgres://user@host/name")]
    Address(String),
    /// The file or server could not be opened.
    #[error("cannot open the database: {0}; check that its address is right, its server runs and its folder exists")]
    Unreachable(String),
    /// The server or another process did not answer in time.
    #[error("the database did not answer within {} ms; check that its server runs and no other process locks it", .0.as_millis())]
    TimedOut(Duration),
    /// It can be read but not written.
    #[error("the database cannot be written: {0}; give the host's user write permission on the file and its folder")]
    ReadOnly(String),
    /// A newer host has used it.
    #[error("the database was written by a newer kandev-host (unknown schema step {0}); start that version or newer")]
    Newer(String),
    /// A schema step failed; nothing of that step was kept.
    #[error("cannot bring the database schema up to date: {0}")]
    Migration(String),
}

/// Why a statement gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DbFault {
    /// No connection, no space, or no answer within `timing.database_timeout`; a write may still have taken effect.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The statement itself failed.
    #[error("a database statement failed: {0}")]
    Statement(String),
}

impl Db {
    /// Opens the database, making a SQLite file (mode 0600) that is missing, and applies the pending schema steps.
    pub async fn connect(url: &SecretString, timing: &Timing, limits: &Limits) -> Result<Self, ConnectError> {
        let deadline = timing.database_timeout;
        let opening = Self::open(url.expose_secret(), deadline, limits.database_connections);
        let db = tokio::time::timeout(deadline, opening).await.map_err(|_| ConnectError::TimedOut(deadline))??;
        db.migrate().await?;
        Ok(db)
    }

    async fn open(url: &str, deadline: Duration, connections: u32) -> Result<Self, ConnectError> {
        match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("sqlite") => Self::open_sqlite(url, deadline, connections).await,
            Some("postgres" | "postgresql") => Self::open_postgres(url, deadline, connections).await,
            _ => Err(ConnectError::Address("its scheme is neither sqlite nor postgres".to_owned())),
        }
    }

    async fn open_sqlite(url: &str, deadline: Duration, connections: u32) -> Result<Self, ConnectError> {
        let options = SqliteConnectOptions::from_str(url).map_err(|error| ConnectError::Address(error.to_string()))?;
        if url.contains(":memory:") || url.contains("mode=memory") {
            return Err(ConnectError::Address("a database in memory is lost at every stop".to_owned()));
        }
        create_private(options.get_filename()).map_err(|error| ConnectError::Unreachable(error.to_string()))?;
        let options = options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            .busy_timeout(deadline)
            .disable_statement_logging();
        // A connection to a file does not age, but each is tested before use: one whose worker gave up must not stay.
        let pool = || SqlitePoolOptions::new().acquire_timeout(deadline).idle_timeout(None).max_lifetime(None);
        let writer = pool().max_connections(1).connect_with(options.clone()).await.map_err(open_error)?;
        check_writable(&writer).await?;
        let readers = pool()
            .max_connections(connections)
            .connect_with(options.pragma("query_only", "on"))
            .await
            .map_err(open_error)?;
        Ok(Self { writer: writer.into(), readers: readers.into(), deadline })
    }

    async fn open_postgres(url: &str, deadline: Duration, connections: u32) -> Result<Self, ConnectError> {
        // The parser's own text may quote the address, and with it a password.
        let options = PgConnectOptions::from_str(url)
            .map_err(|_| ConnectError::Address("it is not a PostgreSQL address".to_owned()))?
            .application_name("kandev-host")
            .disable_statement_logging();
        // The pool would try again until its deadline and then have forgotten the cause.
        options.connect().await.map_err(open_error)?.close().await.map_err(open_error)?;
        let pool = PgPoolOptions::new()
            .acquire_timeout(deadline)
            .max_connections(connections)
            .connect_with(options)
            .await
            .map_err(open_error)?;
        let both = DatabaseConnection::from(pool);
        Ok(Self { writer: both.clone(), readers: both, deadline })
    }

    /// Steps of any length are lawful here: only the start of the host waits for them.
    async fn migrate(&self) -> Result<(), ConnectError> {
        let failed = |error: DbErr| ConnectError::Migration(error.to_string());
        Migrator::install(&self.writer).await.map_err(failed)?;
        let applied = Migrator::get_migration_models(&self.writer).await.map_err(failed)?;
        let known = Migrator::migrations();
        let unknown = applied.into_iter().find(|row| !known.iter().any(|step| step.name() == row.version));
        if let Some(row) = unknown {
            return Err(ConnectError::Newer(row.version));
        }
        Migrator::up(&self.writer, None).await.map_err(failed)
    }

    /// Whether both roles answer now.
    pub async fn ready(&self) -> bool {
        let both = async {
            self.readers.execute_unprepared("SELECT 1").await?;
            self.writer.execute_unprepared("SELECT 1").await?;
            Ok::<_, DbFault>(())
        };
        self.bounded(both).await.is_ok()
    }

    /// Waits for statements in flight, then closes every connection. SQLite folds its log into the file.
    pub async fn close(self) -> Result<(), DbFault> {
        let Self { writer, readers, deadline } = self;
        let closing = async {
            readers.close().await?;
            writer.close().await
        };
        match tokio::time::timeout(deadline, closing).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(late(deadline)),
        }
    }

    /// The connection for statements that only read.
    pub(super) fn reader(&self) -> &DatabaseConnection {
        &self.readers
    }

    /// Begins a transaction that holds the write lock from its start (SQLite: `BEGIN IMMEDIATE`). Dropped, it is
    /// rolled back.
    pub(super) async fn begin_write(&self) -> Result<DatabaseTransaction, DbFault> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        Ok(self.writer.begin_with_options(options).await?)
    }

    /// Runs one piece of database work under `timing.database_timeout`, the wait for a connection included.
    pub(super) async fn bounded<T, E: From<DbFault>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        match tokio::time::timeout(self.deadline, work).await {
            Ok(result) => result,
            Err(_) => Err(late(self.deadline).into()),
        }
    }
}

fn late(deadline: Duration) -> DbFault {
    DbFault::Unavailable(format!("no answer within {} ms", deadline.as_millis()))
}

/// SQLite would make the file readable for everybody the umask allows; its log files take this file's mode.
fn create_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Only a write tells: SQLite opens a file it cannot write as a read-only database.
async fn check_writable(pool: &sqlx::SqlitePool) -> Result<(), ConnectError> {
    let attempt = async {
        let mut transaction = pool.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query("CREATE TABLE kandev_write_check (x INTEGER)").execute(&mut *transaction).await?;
        transaction.rollback().await
    };
    attempt.await.map_err(open_error)
}

/// SQLite's primary result codes: 5 busy, 8 read-only, 13 full, 14 cannot open.
fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let sqlx::Error::Database(database) = error else { return None };
    let sqlite = database.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    use sqlx::error::DatabaseError;
    Some(sqlite.code()?.parse::<i32>().ok()? & 0xff)
}

pub(super) fn open_error(error: sqlx::Error) -> ConnectError {
    match sqlite_code(&error) {
        Some(8) => ConnectError::ReadOnly(error.to_string()),
        _ => ConnectError::Unreachable(error.to_string()),
    }
}

impl From<DbErr> for DbFault {
    fn from(error: DbErr) -> Self {
        let unavailable = match &error {
            DbErr::ConnectionAcquire(_) | DbErr::Conn(_) => true,
            DbErr::Exec(RuntimeErr::SqlxError(cause)) | DbErr::Query(RuntimeErr::SqlxError(cause)) => {
                matches!(
                    **cause,
                    sqlx::Error::Io(_)
                        | sqlx::Error::PoolTimedOut
                        | sqlx::Error::PoolClosed
                        | sqlx::Error::WorkerCrashed
                ) || matches!(sqlite_code(cause), Some(5 | 13 | 14))
            }
            _ => false,
        };
        match unavailable {
            true => Self::Unavailable(error.to_string()),
            false => Self::Statement(error.to_string()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tempfile::TempDir;
    use tokio::time::Instant;

    use super::*;

    /// A new SQLite database in a folder of its own.
    pub async fn sqlite() -> (TempDir, Db) {
        let folder = tempfile::tempdir().unwrap();
        let db = connect(&address(&folder)).await.unwrap();
        (folder, db)
    }

    /// A new database on the server at `KANDEV_TEST_POSTGRES` (an address without a database name, of a user who may
    /// make databases). Without one: none.
    pub async fn postgres() -> Option<Db> {
        let Ok(server) = std::env::var("KANDEV_TEST_POSTGRES") else {
            println!("skipped: needs KANDEV_TEST_POSTGRES");
            return None;
        };
        let name = format!("kandev_test_{}", uuid::Uuid::new_v4().simple());
        let admin = sea_orm::Database::connect(format!("{server}/postgres")).await.unwrap();
        admin.execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
        Some(connect(&format!("{server}/{name}")).await.unwrap())
    }

    fn address(folder: &TempDir) -> String {
        format!("sqlite://{}", folder.path().join("kandev.db").display())
    }

    async fn connect(url: &str) -> Result<Db, ConnectError> {
        connect_within(url, Duration::from_secs(30)).await
    }

    async fn connect_within(url: &str, database_timeout: Duration) -> Result<Db, ConnectError> {
        let timing = Timing { database_timeout, ..Timing::default() };
        Db::connect(&url.to_owned().into(), &timing, &Limits::default()).await
    }

    async fn error(url: &str) -> String {
        connect(url).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_new_file_is_private_and_ready_and_opens_again() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, db) = sqlite().await;
        assert!(db.ready().await);
        let mode = std::fs::metadata(folder.path().join("kandev.db")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        db.close().await.unwrap();
        assert!(connect(&address(&folder)).await.unwrap().ready().await);
    }

    /// A foreign tool, a backup say, may hold the file's lock.
    #[tokio::test]
    async fn a_lock_of_another_process_fails_one_write_in_time_and_the_next_works() {
        let (folder, db) = sqlite().await;
        db.close().await.unwrap();
        let deadline = Duration::from_millis(300);
        let db = connect_within(&address(&folder), deadline).await.unwrap();
        let mut other = SqliteConnectOptions::from_str(&address(&folder)).unwrap().connect().await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
        let begun = Instant::now();
        let refused = db.bounded(db.begin_write()).await.unwrap_err();
        assert!(matches!(refused, DbFault::Unavailable(_)), "{refused}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert!(db.ready().await, "reading goes on");
        sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
        db.bounded(db.begin_write()).await.unwrap().rollback().await.unwrap();
    }

    #[tokio::test]
    async fn a_reader_cannot_write() {
        let (_folder, db) = sqlite().await;
        let error = db.reader().execute_unprepared("DELETE FROM plugin_state").await.unwrap_err();
        assert!(error.to_string().contains("readonly"), "{error}");
    }

    #[tokio::test]
    async fn a_read_only_database_names_cause_and_next_step() {
        let (folder, db) = sqlite().await;
        db.close().await.unwrap();
        let text = error(&format!("{}?mode=ro", address(&folder))).await;
        assert!(text.starts_with("the database cannot be written: "), "{text}");
        assert!(text.ends_with("give the host's user write permission on the file and its folder"), "{text}");
    }

    #[tokio::test]
    async fn a_newer_database_is_refused_by_the_name_of_its_unknown_step() {
        let (folder, db) = sqlite().await;
        let insert = "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m20990101_000001_future', 0)";
        db.writer.execute_unprepared(insert).await.unwrap();
        db.close().await.unwrap();
        assert_eq!(
            error(&address(&folder)).await,
            "the database was written by a newer kandev-host (unknown schema step m20990101_000001_future); \
             start that version or newer"
        );
    }

    #[tokio::test]
    async fn a_missing_folder_and_a_dead_server_are_unreachable() {
        for url in ["sqlite:///does/not/exist/kandev.db", "postgres://user:hunter2@127.0.0.1:1/kandev"] {
            let text = error(url).await;
            assert!(text.starts_with("cannot open the database: "), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_file_that_is_no_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kandev.db"), vec![b'x'; 8192]).unwrap();
        let text = error(&address(&folder)).await;
        assert!(text.contains("file is not a database"), "{text}");
    }

    #[tokio::test]
    async fn an_address_that_is_not_understood_is_never_repeated() {
        for url in
            ["mysql://user:hunter2@host/db", "postgres://user:hunter2@host:port/db", "hunter2", "sqlite::memory:"]
        {
            let text = error(url).await;
            assert!(text.starts_with("the database address is not usable: "), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
