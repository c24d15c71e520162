//! A unit of work: one transaction with the events of what it changes.
//!
//! Rows and events are committed together or not at all. The events are written last, under a lock that PostgreSQL
//! holds until the commit, so that their numbers are in the order of the commits on both databases.

use std::sync::{
    Arc, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use sea_orm::{
    ActiveModelTrait,
    ActiveValue::{NotSet, Set},
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, EntityTrait, IntoActiveModel, PaginatorTrait,
    QueryFilter, QuerySelect,
};
use serde::{Serialize, de::DeserializeOwned};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{
    PlatformError, PlatformStore, Record,
    once::{self, Once},
    present::Present,
    record, sight,
};
use crate::{
    domain::platform::{
        Scope,
        event::NewEvent,
        micros,
        refusal::{Kind, Refusal},
        whole_micros,
    },
    entities::event_log,
    failpoint,
    store::db::DbFault,
};

/// Key of the advisory lock under which PostgreSQL writes the log; any number that is ours.
const LOG_LOCK: i64 = 0x6b61_6e6c_6f67;

/// Most rows of one statement: both databases bound its parameters.
pub(super) const CHUNK: usize = 1000;

/// One transaction. Clones are the same one; it is committed when the work is done, else rolled back.
#[derive(Clone)]
pub struct Work {
    inner: Arc<Inner>,
}

struct Inner {
    transaction: DatabaseTransaction,
    scope: Scope,
    unit: Uuid,
    now: OnceLock<OffsetDateTime>,
    events: Mutex<Vec<NewEvent>>,
    present: Present,
    takes_workspace: AtomicBool,
}

impl PlatformStore {
    /// Does one unit of work in a scope: `work` reads, changes and tells by the [`Work`] it is given. With a key, it is
    /// done once for that key, and the same answer is given again (`Idempotency-Key`).
    ///
    /// When the connection is lost it is done again (`Db::repeat`). A commit whose answer was lost is noticed by its
    /// events; work that tells nothing must leave the same rows when it is done twice.
    pub async fn write<T, F>(
        &self,
        scope: &Scope,
        once: Option<&Once>,
        work: impl Fn(Work) -> F,
    ) -> Result<T, PlatformError>
    where
        T: Serialize + DeserializeOwned + Clone + Send,
        F: Future<Output = Result<T, PlatformError>>,
    {
        let unit = Uuid::now_v7();
        let kept = Mutex::new(None);
        self.db.repeat(|| self.attempt(unit, scope, once, &work, &kept)).await
    }

    async fn attempt<T, F>(
        &self,
        unit: Uuid,
        scope: &Scope,
        once: Option<&Once>,
        work: &impl Fn(Work) -> F,
        kept: &Mutex<Option<T>>,
    ) -> Result<T, PlatformError>
    where
        T: Serialize + DeserializeOwned + Clone + Send,
        F: Future<Output = Result<T, PlatformError>>,
    {
        // It stays: the look into the log may lose its connection too.
        let earlier = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(earlier) = earlier
            && self.has_logged(unit).await?
        {
            self.told(0);
            return Ok(earlier);
        }
        let open = Work::begin(self, scope, unit).await?;
        if let Some(once) = once
            && let Some(answer) = once::recall(open.transaction(), once).await?
        {
            return Ok(record::parse("the answer of an idempotency key", &answer)?);
        }
        let done = work(open.clone()).await?;
        let mut answered = 0;
        if let Some(once) = once {
            answered = once::remember(open.transaction(), once, &done).await?;
        }
        let told = open.write_events().await?;
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(done.clone());
        open.commit().await?;
        self.answered(answered);
        if let Some(bytes) = told {
            failpoint::hit("platform.committed");
            self.told(bytes);
        }
        Ok(done)
    }

    async fn has_logged(&self, unit: Uuid) -> Result<bool, PlatformError> {
        let query = event_log::Entity::find().filter(event_log::Column::EventId.eq(unit.to_string()));
        Ok(query.count(self.db.reader()).await? > 0)
    }
}

impl Work {
    async fn begin(store: &PlatformStore, scope: &Scope, unit: Uuid) -> Result<Self, PlatformError> {
        let inner = Inner {
            transaction: store.db.begin_write().await?,
            scope: scope.clone(),
            unit,
            now: OnceLock::new(),
            events: Mutex::default(),
            present: store.present.clone(),
            takes_workspace: AtomicBool::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub(super) fn transaction(&self) -> &DatabaseTransaction {
        &self.inner.transaction
    }

    pub(super) fn scope(&self) -> &Scope {
        &self.inner.scope
    }

    /// The one moment of the work, in whole microseconds: when it is first asked for. To be asked for once the rows
    /// that it is written into are locked, so that the moments of what happens to them are in the order in which it
    /// happens.
    pub fn now(&self) -> OffsetDateTime {
        *self.inner.now.get_or_init(|| whole_micros(OffsetDateTime::now_utc()))
    }

    /// The id of the first event that the work tells.
    pub fn first_event(&self) -> Uuid {
        self.inner.unit
    }

    /// Writes an event with the work, after those told before.
    pub fn tell(&self, event: NewEvent) {
        self.inner.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// One thing by its id, locked until the work is done; refused when there is none in the scope.
    pub async fn get<R: Record>(&self, id: &str) -> Result<R, PlatformError> {
        self.find(id).await?.ok_or_else(|| Refusal::not_found(R::KIND, id).into())
    }

    /// One thing of the scope by its id, locked until the work is done.
    pub async fn find<R: Record>(&self, id: &str) -> Result<Option<R>, PlatformError> {
        let Some(query) = record::by_id::<R>(id) else { return Ok(None) };
        self.seen(query.lock_exclusive().one(self.transaction()).await?).await
    }

    /// One thing of the scope by its id, which another one may change meanwhile.
    pub async fn peek<R: Record>(&self, id: &str) -> Result<Option<R>, PlatformError> {
        let Some(query) = record::by_id::<R>(id) else { return Ok(None) };
        self.seen(query.one(self.transaction()).await?).await
    }

    async fn seen<R: Record>(&self, row: Option<R::Row>) -> Result<Option<R>, PlatformError> {
        let Some(record) = row.map(R::of).transpose()? else { return Ok(None) };
        Ok(sight::sees(self.transaction(), self.scope(), &record).await?.then_some(record))
    }

    /// A new row.
    pub async fn insert<R: Record>(&self, record: &R) -> Result<(), PlatformError> {
        R::Entity::insert(record.row().into_active_model()).exec_without_returning(self.transaction()).await?;
        Ok(())
    }

    /// The whole row as it should be. It must have been locked by [`Self::get`].
    pub async fn update<R: Record>(&self, record: &R) -> Result<(), PlatformError> {
        let row = record.row().into_active_model().reset_all();
        R::Entity::update(row).exec_without_returning(self.transaction()).await?;
        Ok(())
    }

    /// The row goes, and what belongs to it.
    pub async fn delete<R: Record>(&self, id: &str) -> Result<(), PlatformError> {
        if R::KIND == Kind::Workspace {
            self.inner.takes_workspace.store(true, Ordering::Relaxed);
        }
        R::Entity::delete_by_id(id.to_owned()).exec(self.transaction()).await?;
        Ok(())
    }

    /// Bytes of what there was to tell.
    async fn write_events(&self) -> Result<Option<u64>, PlatformError> {
        let events = std::mem::take(&mut *self.inner.events.lock().unwrap_or_else(PoisonError::into_inner));
        if events.is_empty() {
            return Ok(None);
        }
        lock_log(self.transaction()).await?;
        let created_at = micros(self.now());
        let (mut bytes, mut id) = (0, self.inner.unit);
        for chunk in events.chunks(CHUNK) {
            let mut rows = Vec::with_capacity(chunk.len());
            for event in chunk {
                rows.push(log_row(id, event, None, created_at));
                id = Uuid::now_v7();
            }
            bytes += rows.iter().map(bytes_of).sum::<u64>();
            event_log::Entity::insert_many(rows).exec_without_returning(self.transaction()).await?;
        }
        Ok(Some(bytes))
    }

    async fn commit(self) -> Result<(), PlatformError> {
        let Some(inner) = Arc::into_inner(self.inner) else {
            return Err(DbFault::Statement("a unit of work outlives its work".to_owned()).into());
        };
        let leaving = inner.takes_workspace.into_inner().then(|| inner.present.leaving());
        inner.transaction.commit().await?;
        if let Some(leaving) = leaving {
            leaving.done();
        }
        Ok(())
    }
}

/// From here to the commit nobody else writes to the log; on SQLite nobody writes at all.
pub(super) async fn lock_log(transaction: &DatabaseTransaction) -> Result<(), DbFault> {
    if transaction.get_database_backend() == DbBackend::Postgres {
        transaction.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({LOG_LOCK})")).await?;
    }
    Ok(())
}

/// The row of an event; `about` is the plugin that does not get it.
pub(super) fn log_row(id: Uuid, event: &NewEvent, about: Option<&str>, created_at: i64) -> event_log::ActiveModel {
    let payload = record::json(&event.payload);
    event_log::ActiveModel {
        seq: NotSet,
        event_id: Set(id.to_string()),
        size_bytes: Set((event.subject.len() + payload.len()) as i64),
        subject: Set(event.subject.clone()),
        workspace_id: Set(event.workspace_id.clone()),
        payload: Set(payload),
        about: Set(about.map(str::to_owned)),
        created_at: Set(created_at),
    }
}

/// What the row counts for the log's bound.
pub(super) fn bytes_of(row: &event_log::ActiveModel) -> u64 {
    u64::try_from(*row.size_bytes.as_ref()).unwrap_or(0)
}
