//! The event log: everything that was told, in the order of the commits.
//!
//! A reader keeps the number of the last event it has taken; [`PlatformStore::events_after`] gives what came later. Old
//! events go by age and by size, but never one that the bus has not published. How far they are gone is kept as a
//! cursor of its own ([`GONE`]), so that a reader who was overtaken learns it.
//!
//! There is no index by subject or workspace: every writer would pay for it. A filtered page looks at [`WINDOW`] events
//! and says how far it has looked, so that its reader goes on there and never looks at an event twice.

use std::collections::BTreeSet;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Alias, Expr, ExprTrait as _, Func, OnConflict},
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{PlatformError, PlatformStore, listing::Listing, record, tasks};
use crate::{
    domain::platform::{
        Map, Scope,
        cursor::{self, Key, List},
        micros,
        page::PageRequest,
        refusal::Refusal,
    },
    entities::{event_cursor, event_log},
    store::db::DbFault,
};

/// The cursor before which everything was deleted.
const GONE: &str = "gone";

/// Most numbers that a filtered page looks at.
pub(super) const WINDOW: i64 = 10_000;

/// An event of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    /// Its place: larger for what was committed later.
    pub seq: i64,
    /// The same in every delivery.
    pub id: Uuid,
    /// Concrete subject.
    pub subject: String,
    /// Whose; empty when nobody's.
    pub workspace_id: String,
    /// The event's data.
    pub payload: Map,
    /// The plugin that does not get it.
    pub about: Option<String>,
    /// When its work began, UTC.
    pub created_at: OffsetDateTime,
}

/// Which events a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// With one of these subjects.
    pub subjects: Vec<String>,
    /// Of one of these workspaces.
    pub workspace_ids: Vec<String>,
}

impl EventFilter {
    fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.workspace_ids.is_empty()
    }
}

/// A part of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// Its events, in order.
    pub items: Vec<Logged>,
    /// Where to go on, whether there was anything or not; `None` before the first event of an empty log.
    pub cursor: Option<String>,
    /// Whether there may be more now.
    pub has_more: bool,
}

/// What is kept of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Events from before this moment go.
    pub before: OffsetDateTime,
    /// Bytes of subjects and payloads of what stays; the oldest goes.
    pub bytes: u64,
    /// Most events that one statement looks at.
    pub limit: u64,
}

fn logged(row: event_log::Model) -> Result<Logged, DbFault> {
    Ok(Logged {
        id: Uuid::parse_str(&row.event_id)
            .map_err(|_| DbFault::Statement(format!("event {} of the log has no id", row.seq)))?,
        payload: record::parse("the payload of an event", &row.payload)?,
        seq: row.seq,
        subject: row.subject,
        workspace_id: row.workspace_id,
        about: row.about,
        created_at: record::at(row.created_at),
    })
}

/// The log from its oldest event on.
pub(super) fn listing(scope: &Scope, filter: &EventFilter) -> Listing<event_log::Entity> {
    use event_log::{Column, Entity};
    let mut select = Entity::find();
    if let Some(subjects) = texts(&filter.subjects) {
        select = select.filter(Column::Subject.is_in(subjects));
    }
    if let Some(workspaces) = tasks::within(scope, texts(&filter.workspace_ids)) {
        select = select.filter(Column::WorkspaceId.is_in(workspaces));
    }
    Listing {
        list: List::Events,
        select,
        order: vec![(Column::Seq, Order::Asc)],
        leading: None,
        long: vec![Column::Payload],
    }
}

/// Values of a field that are no ids and may be longer, each once; `None` when there is no restriction.
fn texts(values: &[String]) -> Option<Vec<String>> {
    if values.is_empty() {
        return None;
    }
    let kept: BTreeSet<_> = values.iter().filter(|value| !value.contains('\0')).cloned().collect();
    Some(kept.into_iter().collect())
}

/// The cursor after the event with this number.
fn cursor_after(seq: i64) -> String {
    cursor::encode(List::Events, &[Key::Int(seq)])
}

/// The number in a page's cursor.
fn begun_at(page: &PageRequest) -> Result<Option<i64>, Refusal> {
    match page.after(List::Events)?.as_deref() {
        None => Ok(None),
        Some([Key::Int(seq)]) => Ok(Some(*seq)),
        Some(_) => Err(Refusal::BadCursor),
    }
}

/// Events that can be read; one that cannot is told and left out: it must not hold the others up.
fn readable(rows: Vec<event_log::Model>) -> Vec<Logged> {
    let event = |row| logged(row).inspect_err(|error| tracing::error!(%error, "an event of the log is left out")).ok();
    rows.into_iter().filter_map(event).collect()
}

impl PlatformStore {
    /// A part of the log, the oldest event first. With a filter it looks at `WINDOW` events at most: there may be more
    /// when it has found nothing.
    ///
    /// # Errors
    /// [`Refusal::CursorExpired`] when events after the page's cursor were deleted: what was in them nobody knows.
    pub async fn events(
        &self,
        scope: &Scope,
        filter: &EventFilter,
        page: &PageRequest,
    ) -> Result<EventPage, PlatformError> {
        let after = begun_at(page)?;
        let found = self.db.repeat(async || self.some_events(scope, filter, page, after).await).await?;
        if let Some(after) = after {
            // After the read: what is kept now was there then.
            let gone = self.event_cursor(GONE).await?;
            if after < gone {
                return Err(Refusal::CursorExpired { oldest: cursor_after(gone) }.into());
            }
        }
        Ok(found)
    }

    async fn some_events(
        &self,
        scope: &Scope,
        filter: &EventFilter,
        page: &PageRequest,
        after: Option<i64>,
    ) -> Result<EventPage, PlatformError> {
        use event_log::Column;
        let reader = self.db.reader();
        let mut listing = listing(scope, filter);
        let mut window = None;
        if !filter.is_empty() || *scope != Scope::All {
            let Some((next, last)) = ends(reader, after.unwrap_or(0)).await? else {
                return Ok(EventPage { items: Vec::new(), cursor: after.map(cursor_after), has_more: false });
            };
            let until = std::cmp::min(last, next.saturating_add(WINDOW - 1));
            listing.select = listing.select.filter(Column::Seq.lte(until));
            window = Some((until, until < last));
        }
        let (rows, next_cursor) = listing.page(reader, page).await?;
        let (cursor, has_more) = match (next_cursor, window) {
            (Some(cursor), _) => (Some(cursor), true),
            (None, Some((until, has_more))) => (Some(cursor_after(until)), has_more),
            (None, None) => (rows.last().map(|row| row.seq).or(after).map(cursor_after), false),
        };
        Ok(EventPage { items: readable(rows), cursor, has_more })
    }

    /// At most `limit` events after the one with this number, in order, and the number of the last, which may be one
    /// that cannot be read.
    pub async fn events_after(&self, seq: i64, limit: u64) -> Result<(Vec<Logged>, Option<i64>), PlatformError> {
        use event_log::{Column, Entity};
        let query = Entity::find().filter(Column::Seq.gt(seq)).order_by_asc(Column::Seq).limit(limit);
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        let last = rows.last().map(|row| row.seq);
        Ok((readable(rows), last))
    }

    /// How far the reader `name` has come.
    pub async fn event_cursor(&self, name: &str) -> Result<i64, PlatformError> {
        let query = event_cursor::Entity::find_by_id(name.to_owned());
        let row = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().one(self.db.reader()).await?)).await?;
        Ok(row.map_or(0, |row| row.seq))
    }

    /// The reader `name` has come so far.
    pub async fn move_event_cursor(&self, name: &str, seq: i64) -> Result<(), PlatformError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            write_cursor(&transaction, name, seq).await?;
            Ok::<_, PlatformError>(transaction.commit().await?)
        };
        self.db.repeat(work).await
    }

    /// Number of the newest event; 0 for none.
    pub async fn last_event(&self) -> Result<i64, PlatformError> {
        use event_log::{Column, Entity};
        let query = Entity::find().select_only().column(Column::Seq).order_by_desc(Column::Seq).limit(1);
        let work = async || Ok::<_, PlatformError>(query.clone().into_tuple::<i64>().one(self.db.reader()).await?);
        Ok(self.db.repeat(work).await?.unwrap_or(0))
    }

    /// Number of the last of the oldest events that are too old or too much.
    pub async fn prunable_until(&self, keep: Retention) -> Result<Option<i64>, PlatformError> {
        use event_log::{Column, Entity};
        let sum = Func::coalesce([Column::SizeBytes.into_expr().sum(), Expr::value(0i64)]);
        let size = Entity::find().select_only().expr(Expr::from(sum).cast_as(Alias::new("BIGINT")));
        let work = async || Ok::<_, PlatformError>(size.clone().into_tuple::<i64>().one(self.db.reader()).await?);
        let mut size = self.db.repeat(work).await?.unwrap_or(0);
        let (bytes, before) = (i64::try_from(keep.bytes).unwrap_or(i64::MAX), micros(keep.before));
        let mut until = None;
        loop {
            let oldest = Entity::find()
                .select_only()
                .columns([Column::Seq, Column::SizeBytes, Column::CreatedAt])
                .filter(Column::Seq.gt(until.unwrap_or(0)))
                .order_by_asc(Column::Seq)
                .limit(keep.limit);
            let work = async || {
                let rows = oldest.clone().into_tuple::<(i64, i64, i64)>().all(self.db.reader()).await?;
                Ok::<_, PlatformError>(rows)
            };
            let oldest = self.db.repeat(work).await?;
            for (seq, bytes_of, created_at) in &oldest {
                if size <= bytes && *created_at >= before {
                    return Ok(until);
                }
                size -= bytes_of;
                until = Some(*seq);
            }
            if (oldest.len() as u64) < keep.limit {
                return Ok(until);
            }
        }
    }

    /// Deletes at most `limit` of the oldest events, none after the one with this number; how many.
    pub async fn delete_events(&self, until: i64, limit: u64) -> Result<u64, PlatformError> {
        use event_log::{Column, Entity};
        let oldest = Entity::find()
            .select_only()
            .column(Column::Seq)
            .filter(Column::Seq.lte(until))
            .order_by_asc(Column::Seq)
            .limit(limit);
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let chunk: Vec<i64> = oldest.clone().into_tuple().all(&transaction).await?;
            if let Some(last) = chunk.last() {
                Entity::delete_many().filter(Column::Seq.lte(*last)).exec(&transaction).await?;
                write_cursor(&transaction, GONE, *last).await?;
            }
            transaction.commit().await?;
            Ok::<_, PlatformError>(chunk.len() as u64)
        };
        self.db.repeat(work).await
    }
}

async fn write_cursor(connection: &impl ConnectionTrait, name: &str, seq: i64) -> Result<(), PlatformError> {
    use event_cursor::{ActiveModel, Column, Entity};
    let row = ActiveModel { name: Set(name.to_owned()), seq: Set(seq) };
    let overwrite = OnConflict::column(Column::Name).update_column(Column::Seq).to_owned();
    Entity::insert(row).on_conflict(overwrite).exec_without_returning(connection).await?;
    Ok(())
}

/// The first number after this one, and the last; none when there is no event after it.
async fn ends(connection: &impl ConnectionTrait, after: i64) -> Result<Option<(i64, i64)>, PlatformError> {
    use event_log::{Column, Entity};
    let numbers = || Entity::find().select_only().column(Column::Seq).filter(Column::Seq.gt(after)).limit(1);
    let next: Option<i64> = numbers().order_by_asc(Column::Seq).into_tuple().one(connection).await?;
    let Some(next) = next else { return Ok(None) };
    let last: Option<i64> = numbers().order_by_desc(Column::Seq).into_tuple().one(connection).await?;
    Ok(Some((next, last.unwrap_or(next))))
}
