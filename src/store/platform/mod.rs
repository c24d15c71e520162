//! The platform in the database: its rows, the lists over them, and the unit of work in which services change them.
//!
//! What is lawful is `domain::platform`'s decision, what follows from what the services' (`crate::platform`). Here are
//! statements only: by key, by page, by one IN query for the relations of a page; never one a row.

mod append;
mod board;
mod board_rows;
mod bulk;
mod clearing;
mod code_stats;
mod error;
mod event_log;
mod git_tokens;
mod listing;
mod messages;
mod once;
mod placing;
mod present;
mod record;
mod search;
mod sessions;
mod sight;
mod tasks;
mod work;
mod work_rows;

#[cfg(test)]
mod plan_tests;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use sea_orm::EntityTrait;
use tokio::sync::Notify;

use self::present::Present;
use super::db::Db;
use crate::domain::platform::{Scope, refusal::Refusal};

pub use append::{Entry, Whose};
pub use bulk::Bulk;
pub use clearing::{Cleared, Holder, Unfinished};
pub use error::PlatformError;
pub use event_log::{EventFilter, EventPage, Logged, Retention};
pub use once::Once;
pub use record::Record;
pub use sight::Owner;
pub use tasks::TaskQuery;
pub use work::Work;

/// Reads the platform and opens units of work; clones share the database.
#[derive(Clone, Debug)]
pub struct PlatformStore {
    db: Db,
    committed: Arc<Notify>,
    written: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
    closing: Arc<AtomicBool>,
    present: Present,
}

impl PlatformStore {
    /// Over this database.
    pub fn new(db: Db) -> Self {
        Self {
            db,
            committed: Arc::default(),
            written: Arc::default(),
            answered: Arc::default(),
            closing: Arc::default(),
            present: Present::default(),
        }
    }

    /// From now on work of many transactions ends between two of them.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    /// Whether the host stops.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Told after each unit of work of this host that wrote an event.
    pub fn committed(&self) -> Arc<Notify> {
        Arc::clone(&self.committed)
    }

    /// Bytes of the events that this host has written since its start, as the log's bound counts them.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Bytes of the idempotency keys and answers that this host has written since its start, as their bound counts
    /// them.
    pub fn answered_bytes(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// A key and an answer of so many bytes were committed.
    fn answered(&self, bytes: u64) {
        self.answered.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Events of so many bytes were committed.
    fn told(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        self.committed.notify_one();
    }

    /// One thing by its id, without what other tables say of it; not found when the scope does not see it.
    pub async fn find<R: Record>(&self, scope: &Scope, id: &str) -> Result<R, PlatformError>
    where
        R::Entity: EntityTrait<Model = R::Row>,
    {
        let not_found = || Refusal::not_found(R::KIND, id);
        let query = record::by_id::<R>(id).ok_or_else(not_found)?;
        let work = async || {
            let Some(row) = query.clone().one(self.db.reader()).await? else { return Ok(None) };
            let record = R::of(row)?;
            Ok::<_, PlatformError>(sight::sees(self.db.reader(), scope, &record).await?.then_some(record))
        };
        Ok(self.db.repeat(work).await?.ok_or_else(not_found)?)
    }
}
