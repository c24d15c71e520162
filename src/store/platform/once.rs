//! Idempotency keys: the same request with the same key is done once and answered the same, as long as the key is
//! known: `timing.idempotency_age`, and as far back as `limits.idempotency_bytes` reach.
//!
//! The answer is written in the transaction of the work, so there is no moment at which the work is done and its key
//! not known.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, Order, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Alias, Expr, ExprTrait as _, Func, OnConflict, Query, WindowStatement},
};
use serde::Serialize;
use time::OffsetDateTime;

use super::{PlatformError, PlatformStore};
use crate::{
    domain::platform::{from_micros, micros, refusal::Refusal},
    entities::idempotency_key as row,
    store::db::DbFault,
};

/// The key that came with a request. All three are compared as exact text, and are bounded by whoever makes this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    /// Whose key it is: the principal's name.
    pub scope: String,
    /// The key.
    pub key: String,
    /// What the request is: its method, path and body, hashed. The same key with another one is refused.
    pub fingerprint: String,
}

/// The answer of the work that was done with this key; claims the key when it is new. A second request at the same time
/// waits here for the first.
pub(super) async fn recall(transaction: &DatabaseTransaction, once: &Once) -> Result<Option<String>, PlatformError> {
    let claim = row::ActiveModel {
        scope: Set(once.scope.clone()),
        key: Set(once.key.clone()),
        fingerprint: Set(once.fingerprint.clone()),
        result: Set(String::new()),
        created_at: Set(micros(OffsetDateTime::now_utc())),
    };
    let untouched = OnConflict::columns([row::Column::Scope, row::Column::Key]).do_nothing().to_owned();
    let claimed = row::Entity::insert(claim).on_conflict(untouched).exec_without_returning(transaction).await?;
    if claimed > 0 {
        return Ok(None);
    }
    let found = row::Entity::find_by_id((once.scope.clone(), once.key.clone())).one(transaction).await?;
    match found {
        Some(found) if found.fingerprint != once.fingerprint => Err(Refusal::KeyReused.into()),
        Some(found) => Ok(Some(found.result)),
        // It expired between the two statements: the next attempt claims it.
        None => Err(DbFault::Lost("an idempotency key has just expired".to_owned()).into()),
    }
}

/// Keeps the answer with the key that [`recall`] has claimed; what the key counts for the bound.
pub(super) async fn remember(
    transaction: &DatabaseTransaction,
    once: &Once,
    answer: &impl Serialize,
) -> Result<u64, PlatformError> {
    let cannot = |error| DbFault::Statement(format!("the answer of an idempotency key cannot be kept: {error}"));
    let result = serde_json::to_string(answer).map_err(cannot)?;
    let bytes = bytes_of(once, &result);
    row::Entity::update_many()
        .col_expr(row::Column::Result, Expr::value(result))
        .filter(row::Column::Scope.eq(&once.scope))
        .filter(row::Column::Key.eq(&once.key))
        .exec(transaction)
        .await?;
    Ok(bytes)
}

/// What a key counts for the bound.
fn bytes_of(once: &Once, result: &str) -> u64 {
    (once.scope.len() + once.key.len() + once.fingerprint.len() + result.len()) as u64
}

impl PlatformStore {
    /// Forgets some `limit` of the keys that were claimed before `before`, the oldest first; how many. Keys of the same
    /// moment go together.
    pub async fn forget_keys(&self, before: OffsetDateTime, limit: u64) -> Result<u64, PlatformError> {
        use row::{Column, Entity};
        let old = Column::CreatedAt.lt(micros(before));
        let last = Entity::find().select_only().column(Column::CreatedAt).filter(old.clone());
        let last = last.order_by_asc(Column::CreatedAt).offset(limit.saturating_sub(1)).limit(1);
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let last: Option<i64> = last.clone().into_tuple().one(&transaction).await?;
            let some = last.map_or(old.clone(), |last| Column::CreatedAt.lte(last));
            let forgotten = Entity::delete_many().filter(some).exec(&transaction).await?;
            transaction.commit().await?;
            Ok::<_, PlatformError>(forgotten.rows_affected)
        };
        self.db.repeat(work).await
    }

    /// The moment before which keys must have been claimed to go, so that what is known of the others has no more than
    /// `bytes`; none when all may stay.
    pub async fn excess_keys(&self, bytes: u64) -> Result<Option<OffsetDateTime>, PlatformError> {
        use row::{Column, Entity};
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let columns = [Column::Result, Column::Scope, Column::Key, Column::Fingerprint];
        // How long a text is both databases know without reading it.
        let length = |column: Column| Expr::from(Func::cust("octet_length").arg(column.into_expr()));
        let size = || columns.into_iter().map(length).fold(Expr::value(0), |sum, length| sum.add(length));
        let number = |expr: Expr| Expr::from(Func::coalesce([expr, Expr::value(0)])).cast_as(Alias::new("BIGINT"));
        let sum = Entity::find().select_only().expr(number(Expr::from(Func::sum(size()))));
        let newest_first = WindowStatement::new().order_by(Column::CreatedAt, Order::Desc).take();
        let walk = Query::select()
            .column(Column::CreatedAt)
            .expr_window_as(Func::sum(size()), newest_first, Alias::new("newer"))
            .from(Entity)
            .take();
        let too_old = Query::select()
            .expr(Expr::col(Column::CreatedAt).max())
            .from_subquery(walk, Alias::new("walk"))
            .and_where(Expr::col(Alias::new("newer")).gt(bytes))
            .take();
        let work = async || {
            let reader = self.db.reader();
            let all: Option<i64> = sum.clone().into_tuple().one(reader).await?;
            if all.unwrap_or(0) <= bytes {
                return Ok::<_, PlatformError>(None);
            }
            let found = reader.query_one(&too_old).await?;
            Ok(found.map(|found| found.try_get_by_index::<Option<i64>>(0)).transpose()?.flatten())
        };
        Ok(self.db.repeat(work).await?.map(|last| from_micros(last.saturating_add(1))))
    }
}
