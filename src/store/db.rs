//! The database: the two roles of its connections, deadlines, and repeating work that lost its connection.
//!
//! On SQLite one connection writes and a pool reads, so that writers queue in the host and never meet
//! "database is locked"; on PostgreSQL one pool plays both roles. Everything else is the same code for both.
//! Opening is `open`'s part, the schema `schema`'s, telling faults apart `fault`'s; statements are the stores' part.

mod fault;
mod open;
mod schema;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod upgrade_tests;

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait, sqlx::postgres::PgConnectOptions,
};
use secrecy::{ExposeSecret, SecretString};

use crate::config::{Limits, Timing};
pub use fault::DbFault;
pub use open::ConnectError;
pub(super) use open::{server_error, sqlite_error};

/// How often work that met a [`DbFault::Conflict`] is done again, at once. One more look finds what another writer did
/// meanwhile; three writers may be in the way of each other.
const LOOKS: usize = 4;

/// The database of one host; clones share its connections.
#[derive(Clone, Debug)]
pub struct Db {
    writer: DatabaseConnection,
    readers: DatabaseConnection,
    deadline: Duration,
    pause: Duration,
    probe: Duration,
    faults: Arc<Faults>,
}

/// Faults since the start, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Connections lost, and transactions that another one was in the way of; the work was repeated.
    pub lost: u64,
    /// No connection, no space, or no answer in time.
    pub unavailable: u64,
    /// Statements that failed.
    pub statement: u64,
}

#[derive(Debug, Default)]
struct Faults {
    lost: AtomicU64,
    unavailable: AtomicU64,
    statement: AtomicU64,
}

impl Faults {
    fn count(&self, fault: &DbFault) {
        let counter = match fault {
            DbFault::Lost(_) | DbFault::Conflict(_) => &self.lost,
            DbFault::Unavailable(_) => &self.unavailable,
            DbFault::Statement(_) => &self.statement,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A database as it was found: its schema may be an older one.
pub struct Unprepared {
    db: Db,
    server: Option<PgConnectOptions>,
}

impl Unprepared {
    /// For looking before anything is changed: whoever reads here must cope with a schema that is not there yet.
    pub fn as_found(&self) -> &Db {
        &self.db
    }

    /// Applies the pending schema steps.
    pub async fn bring_up_to_date(self) -> Result<Db, ConnectError> {
        schema::bring_up_to_date(&self.db.writer, self.server.as_ref(), self.db.deadline).await?;
        Ok(self.db)
    }
}

impl Db {
    /// Opens the database, making a SQLite file (mode 0600) that is missing, and applies the pending schema steps.
    pub async fn connect(url: &SecretString, timing: &Timing, limits: &Limits) -> Result<Self, ConnectError> {
        Self::open(url, timing, limits).await?.bring_up_to_date().await
    }

    /// As [`Self::connect`], without the schema steps yet.
    pub async fn open(url: &SecretString, timing: &Timing, limits: &Limits) -> Result<Unprepared, ConnectError> {
        let deadline = timing.database_timeout;
        let opening = open::open(url.expose_secret(), timing, limits.database_connections);
        let opened = tokio::time::timeout(deadline, opening).await.map_err(|_| ConnectError::TimedOut(deadline))??;
        let db = Self {
            writer: opened.writer,
            readers: opened.readers,
            deadline,
            pause: timing.database_retry,
            probe: timing.ask_timeout.min(deadline),
            faults: Arc::default(),
        };
        Ok(Unprepared { db, server: opened.server })
    }

    /// Whether both roles answer now. Asks once, for at most `timing.ask_timeout`: who asks wants to know soon.
    pub async fn ready(&self) -> bool {
        let both = async {
            self.readers.execute_unprepared("SELECT 1").await?;
            self.writer.execute_unprepared("SELECT 1").await
        };
        matches!(tokio::time::timeout(self.probe, both).await, Ok(Ok(_)))
    }

    /// What went wrong so far.
    pub fn fault_counts(&self) -> FaultCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Faults { lost, unavailable, statement } = &*self.faults;
        FaultCounts { lost: read(lost), unavailable: read(unavailable), statement: read(statement) }
    }

    /// Waits for statements in flight, then closes every connection. SQLite folds its log into the file.
    pub async fn close(self) -> Result<(), DbFault> {
        let Self { writer, readers, deadline, .. } = self;
        let closing = async {
            readers.close().await?;
            writer.close().await
        };
        match tokio::time::timeout(deadline, closing).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(late(deadline, None)),
        }
    }

    /// The connection for statements that only read.
    pub(crate) fn reader(&self) -> &DatabaseConnection {
        &self.readers
    }

    /// The connection for a single statement that writes and needs no transaction around it.
    pub(crate) fn writer(&self) -> &DatabaseConnection {
        &self.writer
    }

    /// Begins a transaction that holds the write lock from its start (SQLite: `BEGIN IMMEDIATE`). Dropped, it is
    /// rolled back.
    pub(crate) async fn begin_write(&self) -> Result<DatabaseTransaction, DbFault> {
        let options = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..TransactionOptions::default()
        };
        Ok(self.writer.begin_with_options(options).await?)
    }

    /// Runs one piece of database work, the wait for a connection included. Work that lost its connection
    /// ([`DbFault::Lost`]) is done again after `timing.database_retry`, all within `timing.database_timeout`: a restart
    /// of the server is a wait, not an error. Work that met other rows than it needs ([`DbFault::Conflict`]) looks
    /// again at once, a few times; then the fault is told as it is.
    ///
    /// The work must be repeatable: a read, or one transaction that leaves the same rows when it is done twice. A
    /// commit whose answer was lost may have taken effect.
    pub(crate) async fn repeat<T, E, F>(&self, mut work: impl FnMut() -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>>,
        E: From<DbFault> + MayBeFault,
    {
        let mut last = None;
        let attempts = async {
            let mut looks = 0;
            loop {
                let result = work().await;
                let fault = result.as_ref().err().and_then(E::fault);
                fault.inspect(|fault| self.faults.count(fault));
                match fault {
                    Some(DbFault::Lost(cause)) => {
                        tracing::debug!(cause, "a database connection or transaction was lost, the work is repeated");
                        last = Some(cause.clone());
                        tokio::time::sleep(self.pause).await;
                    }
                    Some(DbFault::Conflict(cause)) if looks < LOOKS => {
                        tracing::debug!(cause, "the rows are not as the work needs them, it looks again");
                        looks += 1;
                    }
                    _ => return result,
                }
            }
        };
        match tokio::time::timeout(self.deadline, attempts).await {
            Ok(result) => result,
            Err(_) => {
                let fault = late(self.deadline, last);
                self.faults.count(&fault);
                Err(fault.into())
            }
        }
    }
}

/// An error that may come from the database.
pub(crate) trait MayBeFault {
    /// The database's part in it.
    fn fault(&self) -> Option<&DbFault>;
}

impl MayBeFault for DbFault {
    fn fault(&self) -> Option<&DbFault> {
        Some(self)
    }
}

fn late(deadline: Duration, cause: Option<String>) -> DbFault {
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    DbFault::Unavailable(format!("no answer within {} ms{cause}", deadline.as_millis()))
}
