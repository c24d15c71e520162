//! Opening either database at the start of the host, and the errors that an operator meets there.
//!
//! Each text names the cause and the next step, and never holds the address: that may hold a password.

use std::{
    fs::OpenOptions, future::Future, io, os::unix::fs::OpenOptionsExt, path::Path, str::FromStr, time::Duration,
};

use sea_orm::{
    DatabaseConnection,
    sqlx::{
        self, ConnectOptions, Connection,
        postgres::{PgConnectOptions, PgConnection, PgPoolOptions},
        sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
    },
};

use super::fault::Kind;
use crate::config::Timing;

/// Why the database could not be used at start.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not one this host understands.
    #[error("the database address is not usable: {0}; write sqlite:///path/to/file.db or postgres://user@host/name")]
    Address(String),
    /// The file or server could not be opened.
    #[error("cannot open the database: {0}; check that its address is right, its server runs and its folder exists")]
    Unreachable(String),
    /// The server knows no such user, password or database.
    #[error(
        "the database server turned the host away: {0}; check user, password and name of the database in its address"
    )]
    Refused(String),
    /// The server or another process did not answer in time.
    #[error("the database did not answer within {} ms; check that its server runs and no other process locks it", .0.as_millis())]
    TimedOut(Duration),
    /// Another process holds a lock.
    #[error("the database is locked: {0}; end what holds it, a backup or another kandev-host, and start again")]
    Locked(String),
    /// The SQLite file can be read but not written.
    #[error("the database cannot be written: {0}; give the host's user write permission on the file and its folder")]
    ReadOnlyFile(String),
    /// The PostgreSQL server answers reads only, or the user may not write.
    #[error(
        "the database cannot be written: {0}; connect to the primary server as a user who may make tables in the database"
    )]
    ReadOnlyServer(String),
    /// A newer host has used it.
    #[error("the database was written by a newer kandev-host (unknown schema step {0}); start that version or newer")]
    Newer(String),
    /// A schema step failed; nothing of that step was kept.
    #[error("cannot bring the database schema up to date: {0}")]
    Migration(String),
}

/// Page cache of each reading connection, in KiB (SQLite counts KiB as a negative number). What a page of code
/// statistics looks at does not fit into the 2 MB that SQLite takes by itself: every page was read from the file again.
const READER_CACHE: &str = "-8000";

/// The connections of an open database, its schema not looked at yet.
pub(super) struct Opened {
    pub writer: DatabaseConnection,
    pub readers: DatabaseConnection,
    /// How to reach a PostgreSQL server; none for SQLite.
    pub server: Option<PgConnectOptions>,
}

pub(super) async fn open(url: &str, timing: &Timing, connections: u32) -> Result<Opened, ConnectError> {
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("sqlite") => open_sqlite(url, timing.database_timeout, connections).await,
        Some("postgres" | "postgresql") => open_postgres(url, timing, connections).await,
        _ => Err(ConnectError::Address("its scheme is neither sqlite nor postgres".to_owned())),
    }
}

/// How long a statement waits for another process's lock: less than its deadline, so that the lock is what the error
/// names.
pub(super) fn lock_wait(deadline: Duration) -> Duration {
    deadline - deadline / 10
}

async fn open_sqlite(url: &str, deadline: Duration, connections: u32) -> Result<Opened, ConnectError> {
    let options = SqliteConnectOptions::from_str(url).map_err(|error| ConnectError::Address(error.to_string()))?;
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(ConnectError::Address("a database in memory is lost at every stop".to_owned()));
    }
    create_private(options.get_filename()).map_err(|error| ConnectError::Unreachable(error.to_string()))?;
    let options = options
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        .busy_timeout(lock_wait(deadline))
        .disable_statement_logging();
    // A connection to a file does not age. The pool tests each when it is given back, so one whose worker gave up does
    // not stay; a second test before use would find nothing, and cost as much as a small statement.
    let pool = || {
        SqlitePoolOptions::new()
            .acquire_timeout(deadline)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
    };
    let writer = pool().max_connections(1).connect_with(options.clone()).await.map_err(sqlite_error)?;
    check_writable(&writer).await?;
    let readers = pool()
        .max_connections(connections)
        .connect_with(options.pragma("query_only", "on").pragma("cache_size", READER_CACHE))
        .await
        .map_err(sqlite_error)?;
    Ok(Opened { writer: writer.into(), readers: readers.into(), server: None })
}

async fn open_postgres(url: &str, timing: &Timing, connections: u32) -> Result<Opened, ConnectError> {
    let deadline = timing.database_timeout;
    // The parser's own text may quote the address, and with it a password.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| ConnectError::Address("it is not a PostgreSQL address".to_owned()))?
        .application_name("kandev-host")
        .disable_statement_logging();
    // The pool would try again until its deadline and then have forgotten the cause.
    let mut first = connect_started(&options, timing.database_retry).await?;
    check_primary(&mut first).await?;
    first.close().await.map_err(server_error)?;
    let pool = PgPoolOptions::new()
        .acquire_timeout(deadline)
        .max_connections(connections)
        .after_connect(move |connection, _| Box::pin(bound_statements(connection, deadline)))
        .after_release(move |connection, _| Box::pin(answers(connection, deadline)))
        .connect_with(options.clone())
        .await
        .map_err(server_error)?;
    let both = DatabaseConnection::from(pool);
    Ok(Opened { writer: both.clone(), readers: both, server: Some(options) })
}

/// Connects, and waits for a server that is still starting; the caller has the deadline.
async fn connect_started(options: &PgConnectOptions, pause: Duration) -> Result<PgConnection, ConnectError> {
    loop {
        match options.connect().await {
            Ok(connection) => return Ok(connection),
            // PostgreSQL's "cannot connect now".
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("57P03") => {
                tracing::debug!(%error, "the database server is not ready yet");
                tokio::time::sleep(pause).await;
            }
            Err(error) => return Err(server_error(error)),
        }
    }
}

/// A standby, or a database set to read-only, lets a host connect and fails its first write.
async fn check_primary(connection: &mut PgConnection) -> Result<(), ConnectError> {
    let read_only: String =
        sqlx::query_scalar("SHOW transaction_read_only").fetch_one(connection).await.map_err(server_error)?;
    match read_only.as_str() {
        "on" => Err(ConnectError::ReadOnlyServer("the server answers reads only".to_owned())),
        _ => Ok(()),
    }
}

/// What the host no longer waits for, the server must not go on with: it would hold locks and the connection.
fn bound_statements(
    connection: &mut PgConnection,
    deadline: Duration,
) -> impl Future<Output = Result<(), sqlx::Error>> + use<'_> {
    let (all, locks) = (deadline.as_millis().max(1), lock_wait(deadline).as_millis().max(1));
    let settings = format!("SET statement_timeout = {all}; SET lock_timeout = {locks}");
    async move { sqlx::raw_sql(sqlx::AssertSqlSafe(settings)).execute(connection).await.map(|_| ()) }
}

/// Whether a connection that was given back still answers. A peer that vanished without a word would otherwise keep it
/// from being replaced until the kernel gives up, a quarter of an hour later.
async fn answers(connection: &mut PgConnection, deadline: Duration) -> Result<bool, sqlx::Error> {
    tokio::time::timeout(deadline, connection.ping()).await.map_err(|_| sqlx::Error::PoolTimedOut)?.map(|()| true)
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
    attempt.await.map_err(sqlite_error)
}

pub(in crate::store) fn sqlite_error(error: sqlx::Error) -> ConnectError {
    match Kind::of(&error) {
        Kind::Locked => ConnectError::Locked(error.to_string()),
        Kind::ReadOnly => ConnectError::ReadOnlyFile(error.to_string()),
        _ => ConnectError::Unreachable(error.to_string()),
    }
}

pub(in crate::store) fn server_error(error: sqlx::Error) -> ConnectError {
    match Kind::of(&error) {
        Kind::Locked => ConnectError::Locked(error.to_string()),
        Kind::ReadOnly => ConnectError::ReadOnlyServer(error.to_string()),
        Kind::Refused => ConnectError::Refused(error.to_string()),
        _ => ConnectError::Unreachable(error.to_string()),
    }
}
