//! Idempotency keys: the same request with the same key is done once and answered the same (for 24 hours).
//!
//! The answer is written in the transaction of the work, so there is no moment at which the work is done and its key
//! not known.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, DatabaseTransaction, EntityTrait, QueryFilter, QuerySelect,
    sea_query::{Expr, OnConflict},
};
use serde::Serialize;
use time::OffsetDateTime;

use super::{PlatformError, PlatformStore};
use crate::{
    domain::platform::{micros, refusal::Refusal},
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

/// Keeps the answer for the next request with this key.
pub(super) async fn remember(
    transaction: &DatabaseTransaction,
    once: &Once,
    answer: &impl Serialize,
) -> Result<(), PlatformError> {
    let cannot = |error| DbFault::Statement(format!("the answer of an idempotency key cannot be kept: {error}"));
    let result = serde_json::to_string(answer).map_err(cannot)?;
    row::Entity::update_many()
        .col_expr(row::Column::Result, Expr::value(result))
        .filter(row::Column::Scope.eq(&once.scope))
        .filter(row::Column::Key.eq(&once.key))
        .exec(transaction)
        .await?;
    Ok(())
}

impl PlatformStore {
    /// Forgets at most `limit` of the keys that were claimed before `before`; how many.
    pub async fn forget_keys(&self, before: OffsetDateTime, limit: u64) -> Result<u64, PlatformError> {
        let old = row::Entity::find().filter(row::Column::CreatedAt.lt(micros(before))).limit(limit);
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let rows = old.clone().all(&transaction).await?;
            for key in &rows {
                row::Entity::delete_by_id((key.scope.clone(), key.key.clone())).exec(&transaction).await?;
            }
            transaction.commit().await?;
            Ok::<_, PlatformError>(rows.len() as u64)
        };
        self.db.repeat(work).await
    }
}
