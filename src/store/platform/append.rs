//! Writing events to the log that belong to no change of rows: what plugins emit, what the operator publishes, how
//! plugins fare.
//!
//! Which of them go together is the writer's decision (`platform::event_writer`). Here a group is one transaction,
//! under the same lock as the events of changes, so that all have one order.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
};

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    PlatformStore,
    work::{bytes_of, lock_log, log_row},
};
use crate::{
    domain::{
        platform::{event::NewEvent, micros},
        user_state::{STAMP, Stamp},
    },
    entities::{event_log, task, task_session},
    failpoint,
    store::{db::DbFault, user_state::EntryWrite},
};

/// An event for the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The same in every delivery.
    pub id: Uuid,
    /// What happened.
    pub event: NewEvent,
    /// The plugin that does not get it.
    pub about: Option<String>,
    /// When it happened, UTC.
    pub at: OffsetDateTime,
}

/// Workspaces by the ids of what belongs to them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Of tasks.
    pub tasks: HashMap<String, String>,
    /// Of sessions.
    pub sessions: HashMap<String, String>,
}

impl PlatformStore {
    /// Writes events in this order; all or none. `again` when some of them may be in the log already: those are left
    /// out. A commit whose answer was lost is noticed by itself.
    ///
    /// # Errors
    /// The database's. After [`DbFault::Unavailable`] the events may be in the log nevertheless.
    pub async fn append(&self, entries: &[Entry], again: bool) -> Result<(), DbFault> {
        self.append_with(entries, &[], again).await.map(drop)
    }

    /// As [`Self::append`], and before them the writes of which some of them tell, each at the place of its event. An
    /// event whose write does not pass is not written. The stamps of the writes that passed, at the same places; there
    /// may be fewer of both than events.
    pub async fn append_with(
        &self,
        entries: &[Entry],
        writes: &[Option<EntryWrite>],
        again: bool,
    ) -> Result<Vec<Option<Stamp>>, DbFault> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let again = AtomicBool::new(again);
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let mut stamps = Vec::with_capacity(writes.len());
            for write in writes {
                stamps.push(match write {
                    Some(write) => write.run(&transaction).await?,
                    None => None,
                });
            }
            lock_log(&transaction).await?;
            let mut rows = rows_of(entries, writes, &stamps);
            let bytes: u64 = rows.iter().map(bytes_of).sum();
            if again.swap(true, Ordering::Relaxed) {
                let ids = entries.iter().map(|entry| entry.id.to_string());
                let query = event_log::Entity::find().select_only().column(event_log::Column::EventId);
                let query = query.filter(event_log::Column::EventId.is_in(ids));
                let known: Vec<String> = query.into_tuple().all(&transaction).await?;
                rows.retain(|row| !known.contains(row.event_id.as_ref()));
            }
            if !rows.is_empty() {
                event_log::Entity::insert_many(rows).exec_without_returning(&transaction).await?;
            }
            transaction.commit().await?;
            Ok::<_, DbFault>((stamps, bytes))
        };
        let (stamps, bytes) = self.db.repeat(work).await?;
        failpoint::hit("events.appended");
        self.told(bytes);
        Ok(stamps)
    }

    /// The workspaces of these tasks and of these sessions, as far as there are such: one statement for each kind that
    /// is asked for.
    pub async fn workspaces_of(&self, tasks: &[String], sessions: &[String]) -> Result<Whose, DbFault> {
        let work = async || {
            let mut found = Whose::default();
            if !tasks.is_empty() {
                use task::{Column, Entity};
                let query = Entity::find().select_only().columns([Column::Id, Column::WorkspaceId]);
                let query = query.filter(Column::Id.is_in(tasks));
                found.tasks = query.into_tuple::<(String, String)>().all(self.db.reader()).await?.into_iter().collect();
            }
            if !sessions.is_empty() {
                use task_session::{Column, Entity};
                let query = Entity::find().select_only().columns([Column::Id, Column::WorkspaceId]);
                let rows = query.filter(Column::Id.is_in(sessions)).into_tuple::<(String, String)>();
                found.sessions = rows.all(self.db.reader()).await?.into_iter().collect();
            }
            Ok::<_, DbFault>(found)
        };
        self.db.repeat(work).await
    }
}

/// The rows of the events, without those whose write did not pass.
fn rows_of(entries: &[Entry], writes: &[Option<EntryWrite>], stamps: &[Option<Stamp>]) -> Vec<event_log::ActiveModel> {
    let row = |(at, entry): (usize, &Entry)| {
        let about = entry.about.as_deref();
        let row = |event: &NewEvent| log_row(entry.id, event, about, micros(entry.at));
        let Some(write) = writes.get(at).and_then(Option::as_ref) else { return Some(row(&entry.event)) };
        match (*stamps.get(at)?)? {
            stamp if stamp == write.at() => Some(row(&entry.event)),
            // The clock went back.
            later => {
                let mut event = entry.event.clone();
                event.payload.insert(STAMP.to_owned(), later.text().into());
                Some(row(&event))
            }
        }
    };
    entries.iter().enumerate().filter_map(row).collect()
}
