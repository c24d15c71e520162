//! Putting a copy in the database's place. The present database is kept beside it under another name; at every moment
//! the database's own name is that of the old or the new one, whole.
//!
//! The caller has the home's lock, and sees to the order: [`incoming`], `check`, [`settle`], [`exchange`].

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use sea_orm::sqlx::{self, Connection};
use time::{OffsetDateTime, macros::format_description};

use super::{BackupError, Pending, connect, is_database, pending::folder, sqlite_error};
use crate::{
    failpoint,
    store::fs::{At as _, sync_folder},
};

/// What SQLite puts beside a database. A new one beside an old one's log would be changed by that.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The present database before it makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// There is none.
    Absent,
    /// It is one file with everything in it.
    Whole,
    /// SQLite cannot read it; it is kept as it is.
    Unreadable,
}

/// A copy of `source` beside the database, to be checked before it gets the database's name.
pub fn incoming(source: &Path, database: &Path) -> Result<Pending, BackupError> {
    let same = fs::canonicalize(source).ok().is_some_and(|path| fs::canonicalize(database).is_ok_and(|it| it == path));
    if same {
        return Err(BackupError::Itself(source.to_owned()));
    }
    let log = with(source, "-wal");
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return Err(BackupError::WithLog { path: source.to_owned(), log });
    }
    // Before it is opened: a pipe would wait for its other end.
    if !fs::metadata(source).at("open", source)?.is_file() {
        return Err(BackupError::NotADatabase(source.to_owned()));
    }
    let mut from = File::open(source).at("open", source)?;
    // The home's lock makes the name ours.
    let new = Pending::at(with(database, ".restoring"), database)?;
    let mut to = OpenOptions::new().write(true).open(new.path()).at("open", new.path())?;
    io::copy(&mut from, &mut to).at("write", new.path())?;
    to.sync_all().at("sync", new.path())?;
    failpoint::hit("restore.copied");
    Ok(new)
}

/// Folds the log of the present database into its file. That needs it for itself, so whoever has it open is found.
///
/// # Errors
/// [`BackupError::InUse`]. What SQLite cannot read is no error: that is why one restores.
pub async fn settle(database: &Path, lock_wait: Duration) -> Result<Settled, BackupError> {
    if !database.try_exists().at("look at", database)? {
        return Ok(Settled::Absent);
    }
    // Opened, SQLite would throw away the log of a file that does not begin like a database.
    if !is_database(database, database)? {
        return Ok(Settled::Unreadable);
    }
    let attempt = async {
        let mut connection = connect(database, lock_wait).await?;
        let mode: Result<String, _> =
            sqlx::query_scalar("PRAGMA journal_mode = DELETE").fetch_one(&mut connection).await;
        connection.close().await.map_err(|error| BackupError::Sqlite(sqlite_error(error)))?;
        mode.map_err(|error| match code(&error) {
            // Not a database; damaged.
            Some(11 | 26) => BackupError::NotADatabase(database.to_owned()),
            Some(5 | 6) => BackupError::InUse(database.to_owned()),
            _ => BackupError::Sqlite(sqlite_error(error)),
        })
    };
    match attempt.await {
        Ok(mode) if mode == "delete" => Ok(Settled::Whole),
        Ok(_) => Err(BackupError::InUse(database.to_owned())),
        Err(BackupError::NotADatabase(_)) => Ok(Settled::Unreadable),
        Err(error) => Err(error),
    }
}

/// SQLite's primary result code.
fn code(error: &sqlx::Error) -> Option<i32> {
    let sqlx::Error::Database(error) = error else { return None };
    error.code()?.parse::<i32>().ok().map(|code| code & 0xff)
}

/// Gives the new file the database's name; the present one is kept under the name that is answered. A crash leaves the
/// old or the new one in place, and what is kept.
pub fn exchange(database: &Path, new: Pending, now: OffsetDateTime) -> Result<Option<PathBuf>, BackupError> {
    let stamp = now.format(format_description!("[year][month][day]T[hour][minute][second]Z")).unwrap_or_default();
    let kept = with(database, &format!(".before-restore-{stamp}"));
    let mut keeps = false;
    if database.try_exists().at("look at", database)? {
        // A second name: the first goes to the new file in one step.
        fs::hard_link(database, &kept).at("keep the database as", &kept)?;
        keeps = true;
    }
    for suffix in BESIDE {
        match fs::rename(with(database, suffix), with(&kept, suffix)) {
            Ok(()) => keeps = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => Err(error).at("keep", &with(database, suffix))?,
        }
    }
    sync_folder(folder(database))?;
    failpoint::hit("restore.kept");
    new.place(true)?;
    failpoint::hit("restore.placed");
    Ok(keeps.then_some(kept))
}

fn with(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
