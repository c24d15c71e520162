//! The event log: everything that was told, in the order of the commits.
//!
//! A reader keeps the number of the last event it has taken; [`PlatformStore::events_after`] gives what came later. Old
//! events go by age and by size, but never one that the bus has not published.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Alias, Expr, ExprTrait as _, Func, OnConflict},
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{PlatformError, PlatformStore, listing::Listing, record, tasks};
use crate::{
    domain::platform::{
        Map, Scope,
        cursor::List,
        micros,
        page::{self, Page, PageRequest},
    },
    entities::{event_cursor, event_log},
    store::db::DbFault,
};

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
    if let Some(subjects) = page::ids(&filter.subjects) {
        select = select.filter(Column::Subject.is_in(subjects));
    }
    if let Some(workspaces) = tasks::within(scope, page::ids(&filter.workspace_ids)) {
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

impl PlatformStore {
    /// A page of the log, the oldest event first.
    pub async fn events(
        &self,
        scope: &Scope,
        filter: &EventFilter,
        page: &PageRequest,
    ) -> Result<Page<Logged>, PlatformError> {
        let listing = listing(scope, filter);
        let (rows, next_cursor) = self.db.repeat(async || listing.page(self.db.reader(), page).await).await?;
        Ok(Page { items: rows.into_iter().map(logged).collect::<Result<_, _>>()?, next_cursor })
    }

    /// At most `limit` events after the one with this number, in order, and the number of the last. One that cannot be
    /// read is told and left out: it must not hold the others up.
    pub async fn events_after(&self, seq: i64, limit: u64) -> Result<(Vec<Logged>, Option<i64>), PlatformError> {
        use event_log::{Column, Entity};
        let query = Entity::find().filter(Column::Seq.gt(seq)).order_by_asc(Column::Seq).limit(limit);
        let rows = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().all(self.db.reader()).await?)).await?;
        let last = rows.last().map(|row| row.seq);
        let readable = |row: event_log::Model| match logged(row) {
            Ok(event) => Some(event),
            Err(error) => {
                tracing::error!(%error, "an event of the log is left out");
                None
            }
        };
        Ok((rows.into_iter().filter_map(readable).collect(), last))
    }

    /// How far the reader `name` has come.
    pub async fn event_cursor(&self, name: &str) -> Result<i64, PlatformError> {
        let query = event_cursor::Entity::find_by_id(name.to_owned());
        let row = self.db.repeat(async || Ok::<_, PlatformError>(query.clone().one(self.db.reader()).await?)).await?;
        Ok(row.map_or(0, |row| row.seq))
    }

    /// The reader `name` has come so far.
    pub async fn move_event_cursor(&self, name: &str, seq: i64) -> Result<(), PlatformError> {
        use event_cursor::{ActiveModel, Column, Entity};
        let row = ActiveModel { name: Set(name.to_owned()), seq: Set(seq) };
        let overwrite = OnConflict::column(Column::Name).update_column(Column::Seq).to_owned();
        let work = async || {
            let transaction = self.db.begin_write().await?;
            Entity::insert(row.clone()).on_conflict(overwrite.clone()).exec_without_returning(&transaction).await?;
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
            }
            transaction.commit().await?;
            Ok::<_, PlatformError>(chunk.len() as u64)
        };
        self.db.repeat(work).await
    }
}
