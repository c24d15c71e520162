//! Copies of a SQLite database: making one while a host writes, checking one, and (`restore`) putting one in the
//! database's place. PostgreSQL has tools of its own; [`BackupError::Server`] names their commands.
//!
//! A copy is made by `VACUUM INTO`: it reads one state of the database and blocks nobody. SQLite's backup interface in
//! steps begins again with every change by another process, and under a host that writes it never ends.

mod pending;
mod restore;

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use migration::{Migrator, MigratorTrait};
use sea_orm::{
    DatabaseConnection,
    sqlx::{
        self, ConnectOptions, Connection, SqlitePool,
        sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePoolOptions},
    },
};
use secrecy::{ExposeSecret, SecretString};

use super::{
    db::{ConnectError, sqlite_error},
    fs::{At as _, FileError},
};
use crate::failpoint;

pub use pending::Pending;
pub use restore::{Settled, exchange, incoming, settle};

/// How every SQLite database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Why a copy was not made, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The database is a server's.
    #[error("the database is PostgreSQL, which has its own tools: {0}")]
    Server(String),
    /// The address.
    #[error(transparent)]
    Address(ConnectError),
    /// Nothing to copy.
    #[error("there is no database at {}; `--home` or DATABASE_URL says where it is", .0.display())]
    Missing(PathBuf),
    /// The copy's name is taken.
    #[error("{} is there already; name another file, or replace it with --overwrite", .0.display())]
    Exists(PathBuf),
    /// What has the copy's name is a device, a folder or a link.
    #[error("{} is no regular file; name another one", .0.display())]
    NotAFile(PathBuf),
    /// The copy would be written over the database, or is it.
    #[error("{} is the database itself; name another file", .0.display())]
    Itself(PathBuf),
    /// Another kind of file.
    #[error("{} is not a SQLite database; name a file that `kandev-host db backup` made", .0.display())]
    NotADatabase(PathBuf),
    /// Another program's.
    #[error("{} is a database of another program; name a file that `kandev-host db backup` made", .0.display())]
    Foreign(PathBuf),
    /// Its content.
    #[error("{path} is damaged: {cause}; use another backup", path = .path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What SQLite says.
        cause: String,
    },
    /// A newer host's.
    #[error("{path} was written by a newer kandev-host (unknown schema step {step}); restore it with that version or newer", path = .path.display())]
    Newer {
        /// Which.
        path: PathBuf,
        /// The step this host does not know.
        step: String,
    },
    /// A bare copy of a database in use.
    #[error("{path} has changes beside it in {log}, which are not in it; make the copy with `kandev-host db backup`", path = .path.display(), log = .log.display())]
    WithLog {
        /// Which.
        path: PathBuf,
        /// Where the rest is.
        log: PathBuf,
    },
    /// Somebody has it open.
    #[error("another program has the database {} open; end it and try again, `fuser` on the file names it", .0.display())]
    InUse(PathBuf),
    /// Reading or writing it.
    #[error("the database could not be read or written: {0}")]
    Sqlite(ConnectError),
    /// A file.
    #[error(transparent)]
    File(#[from] FileError),
}

/// What a sound copy holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Copied {
    /// Bytes of the file.
    pub bytes: u64,
    /// The newest schema step it has.
    pub schema: String,
    /// Entries of the vault, which are of no use without its key.
    pub vault_entries: i64,
}

/// The file of a SQLite database.
///
/// # Errors
/// [`BackupError::Server`] with `command`, what to do instead, for PostgreSQL.
pub fn file_of(url: &SecretString, command: impl FnOnce() -> String) -> Result<PathBuf, BackupError> {
    let url = url.expose_secret();
    if !url.starts_with("sqlite:") {
        return Err(BackupError::Server(command()));
    }
    let address = |error: sqlx::Error| BackupError::Address(ConnectError::Address(error.to_string()));
    Ok(SqliteConnectOptions::from_str(url).map_err(address)?.get_filename().to_owned())
}

/// Copies a database as it is at one moment into a new file, while others write.
pub async fn copy(database: &Path, new: &Pending, lock_wait: Duration) -> Result<(), BackupError> {
    let mut connection = connect(database, lock_wait).await?;
    failpoint::hit("backup.begun");
    let copied = sqlx::query("VACUUM INTO ?").bind(text(new.path())?).execute(&mut connection).await;
    copied.map_err(|error| BackupError::Sqlite(sqlite_error(error)))?;
    failpoint::hit("backup.written");
    connection.close().await.map_err(|error| BackupError::Sqlite(sqlite_error(error)))
}

async fn connect(database: &Path, lock_wait: Duration) -> Result<SqliteConnection, BackupError> {
    if !database.try_exists().at("look at", database)? {
        return Err(BackupError::Missing(database.to_owned()));
    }
    let options = SqliteConnectOptions::new()
        .filename(database)
        .create_if_missing(false)
        .busy_timeout(lock_wait)
        .disable_statement_logging();
    options.connect().await.map_err(|error| BackupError::Sqlite(sqlite_error(error)))
}

/// SQLite takes names of files as text.
fn text(path: &Path) -> Result<&str, BackupError> {
    let unusual = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "its name is not UTF-8");
    Ok(path.to_str().ok_or_else(unusual).at("write", path)?)
}

/// Whether a file is a whole database of this host or an older one, by `name` in errors. Reads every page; writes
/// nothing, not even beside it.
pub async fn check(file: &Path, name: &Path) -> Result<Copied, BackupError> {
    let bytes = fs::metadata(file).at("read", name)?.len();
    if !is_database(file, name)? {
        return Err(BackupError::NotADatabase(name.to_owned()));
    }
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(false)
        .read_only(true)
        .immutable(true)
        .disable_statement_logging();
    let damaged = |error: sqlx::Error| BackupError::Damaged { path: name.to_owned(), cause: error.to_string() };
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await.map_err(damaged)?;
    let checked = look(&pool, name).await;
    pool.close().await;
    let (schema, vault_entries) = checked?;
    Ok(Copied { bytes, schema, vault_entries })
}

/// Whether it begins as SQLite databases do; `name` is the file's in errors.
fn is_database(file: &Path, name: &Path) -> Result<bool, FileError> {
    let mut begin = Vec::new();
    File::open(file).at("open", name)?.take(MAGIC.len() as u64).read_to_end(&mut begin).at("read", name)?;
    Ok(begin == MAGIC)
}

async fn look(pool: &SqlitePool, name: &Path) -> Result<(String, i64), BackupError> {
    let damaged = |cause: String| BackupError::Damaged { path: name.to_owned(), cause };
    let failed = |error: sqlx::Error| damaged(error.to_string());
    let verdict: String = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(pool).await.map_err(failed)?;
    if verdict != "ok" {
        return Err(damaged(verdict));
    }
    let connection = DatabaseConnection::from(pool.clone());
    let steps = migration::applied(&connection).await.map_err(|error| damaged(error.to_string()))?;
    let known = Migrator::migrations();
    // Nobody else's database begins with our first step.
    if !known.first().is_some_and(|first| steps.iter().any(|(step, _)| step == first.name())) {
        return Err(BackupError::Foreign(name.to_owned()));
    }
    if let Some((step, _)) = steps.iter().find(|(step, _)| known.iter().all(|known| known.name() != step)) {
        return Err(BackupError::Newer { path: name.to_owned(), step: step.clone() });
    }
    let vault = "SELECT count(*) FROM sqlite_schema WHERE name = 'vault_entry'";
    let has_vault: i64 = sqlx::query_scalar(vault).fetch_one(pool).await.map_err(failed)?;
    let vault_entries = match has_vault {
        0 => 0,
        _ => sqlx::query_scalar("SELECT count(*) FROM vault_entry").fetch_one(pool).await.map_err(failed)?,
    };
    Ok((steps.last().map(|(step, _)| step.clone()).unwrap_or_default(), vault_entries))
}
