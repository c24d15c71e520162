//! What plugins keep for users, in the database: entries by (plugin, user, scope, scope id, key), and the quota of each
//! plugin and user.
//!
//! A write is one statement that holds all of its conditions: that nobody wrote since the version the writer has seen,
//! and that the quota has room. Of two writers who saw the same version the database lets one through, however close
//! they come; nobody meets "database is locked", and nothing is read first that may be old by the time of the write. It
//! is done in the transaction that writes of it into the event log (`platform::event_writer`).
//! Calls are repeated when their connection is lost (`Db::repeat`): a write that took effect before the answer was lost
//! finds its own stamp and counts as done.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, EntityTrait, QueryFilter, Statement,
    Value as SqlValue,
};
use time::OffsetDateTime;

use super::db::{Db, DbFault, MayBeFault};
use crate::{
    config::Limits,
    domain::{
        id::PluginId,
        tenancy::Tenancy,
        user_state::{Place, Scope, Stamp},
    },
    entities::plugin_user_state::{Column, Entity, Model},
};

/// What an entry costs beside its texts, in bytes: so that a quota bounds the number of entries too.
pub const ENTRY_BYTES: usize = 64;

/// Reads one value. Written out for both databases, as every frequent statement is (`plugin_state`).
const GET: &str = r#"SELECT "value", "updated_at" FROM "plugin_user_state" WHERE "plugin_id" = $1 AND "user_id" = $2
    AND "scope" = $3 AND "scope_id" = $4 AND "key" = $5"#;

/// Writes one entry, if nobody wrote after $10 and the user's entries together have at most $9 bytes then; an entry
/// that does not grow always has room. Its stamp grows even when the clock goes back. No row comes back when a
/// condition is not met. Public for the bench, which runs it without the host around it.
pub const PUT: &str = r#"INSERT INTO "plugin_user_state"
    ("plugin_id", "user_id", "scope", "scope_id", "key", "value", "size_bytes", "updated_at")
    SELECT $1, $2, $3, $4, $5, $6, $7, $8 WHERE $7 <= $9 - COALESCE((SELECT SUM("size_bytes") FROM "plugin_user_state"
            WHERE "plugin_id" = $1 AND "user_id" = $2 AND NOT ("scope" = $3 AND "scope_id" = $4 AND "key" = $5)), 0)
        OR $7 <= (SELECT "size_bytes" FROM "plugin_user_state"
            WHERE "plugin_id" = $1 AND "user_id" = $2 AND "scope" = $3 AND "scope_id" = $4 AND "key" = $5)
    ON CONFLICT ("plugin_id", "user_id", "scope", "scope_id", "key") DO UPDATE SET "value" = excluded."value",
        "size_bytes" = excluded."size_bytes", "updated_at" = CASE
            WHEN excluded."updated_at" >= "plugin_user_state"."updated_at" THEN excluded."updated_at"
            ELSE "plugin_user_state"."updated_at" + 1 END
        WHERE $10 IS NULL OR "plugin_user_state"."updated_at" <= $10 OR "plugin_user_state"."updated_at" = $8
    RETURNING "updated_at""#;

/// On PostgreSQL two statements of one user could both find the last free bytes: they go one after the other.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('user-state:' || $1 || ':' || $2, 0))";

/// Reads and writes what plugins keep for users; clones share the database.
#[derive(Clone, Debug)]
pub struct UserStateStore {
    db: Db,
    quota: u64,
    last: Arc<AtomicI64>,
}

/// Whose entries of which plugin.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The plugin.
    pub plugin: &'a PluginId,
    /// The user.
    pub user: &'a str,
}

/// One entry.
#[derive(Debug, Clone, PartialEq)]
pub struct UserEntry {
    /// Name within its scope.
    pub key: String,
    /// Any JSON, as text.
    pub value: String,
    /// When it was written.
    pub updated_at: Stamp,
}

/// Why a call failed. The texts are for the caller, but for the last.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserStateError {
    /// Somebody wrote after the version that the writer has seen.
    #[error("conflict: value was modified since ifUnmodifiedSince")]
    Conflict,
    /// The entries of the plugin and user together would be larger than `limits.user_state_bytes`.
    #[error("the plugin's entries of this user would have more than {limit} bytes; delete what is not needed")]
    QuotaExceeded {
        /// The limit in bytes.
        limit: u64,
    },
    /// The plugin was uninstalled meanwhile.
    #[error("the plugin was uninstalled")]
    Uninstalled,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbFault),
}

impl From<DbErr> for UserStateError {
    fn from(error: DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl MayBeFault for UserStateError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Database(fault) => Some(fault),
            Self::Conflict | Self::QuotaExceeded { .. } | Self::Uninstalled => None,
        }
    }
}

/// One write, for a transaction of many.
#[derive(Debug, Clone)]
pub struct EntryWrite {
    values: Vec<SqlValue>,
    size: u64,
    at: Stamp,
}

impl EntryWrite {
    /// The stamp that the entry gets, unless it has a later one already.
    pub fn at(&self) -> Stamp {
        self.at
    }

    /// Bytes of the entry.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Does it; the stamp, or none when a condition is not met.
    pub(super) async fn run(&self, transaction: &DatabaseTransaction) -> Result<Option<Stamp>, DbErr> {
        let backend = transaction.get_database_backend();
        if backend == DbBackend::Postgres {
            let whose: Vec<_> = self.values.iter().take(2).cloned().collect();
            transaction.execute_raw(Statement::from_sql_and_values(backend, LOCK, whose)).await?;
        }
        let put = Statement::from_sql_and_values(backend, PUT, self.values.clone());
        // All rows are asked for, one at most comes: only a statement that is read to its end is over on SQLite.
        let rows = transaction.query_all_raw(put).await?;
        rows.first().map(|row| row.try_get_by_index(0).map(Stamp)).transpose()
    }
}

impl UserStateStore {
    /// A store with the host's limits.
    pub fn new(db: Db, limits: &Limits) -> Self {
        Self { db, quota: limits.user_state_bytes, last: Arc::new(AtomicI64::new(i64::MIN)) }
    }

    /// An entry's value as JSON text and its stamp; `None` when there is none.
    pub async fn get(&self, owner: Owner<'_>, place: &Place) -> Result<Option<(String, Stamp)>, UserStateError> {
        let work = async || {
            let reader = self.db.reader();
            let statement = Statement::from_sql_and_values(reader.get_database_backend(), GET, place_of(owner, place));
            let Some(row) = reader.query_one_raw(statement).await? else { return Ok(None) };
            Ok::<_, UserStateError>(Some((row.try_get_by_index::<String>(0)?, Stamp(row.try_get_by_index(1)?))))
        };
        self.db.repeat(work).await
    }

    /// All entries of one scope, ordered by the bytes of their key. The quota bounds the answer.
    pub async fn list(&self, owner: Owner<'_>, scope: &Scope) -> Result<Vec<UserEntry>, UserStateError> {
        let of_scope = Entity::find()
            .filter(Column::PluginId.eq(owner.plugin.as_str()))
            .filter(Column::UserId.eq(owner.user))
            .filter(Column::Scope.eq(scope.kind.as_str()))
            .filter(Column::ScopeId.eq(&scope.id));
        let work = async || Ok::<_, UserStateError>(of_scope.clone().all(self.db.reader()).await?);
        let rows = self.db.repeat(work).await?;
        let entry = |Model { key, value, updated_at, .. }| UserEntry { key, value, updated_at: Stamp(updated_at) };
        let mut entries: Vec<_> = rows.into_iter().map(entry).collect();
        // Here and not in SQL: PostgreSQL would order by its locale.
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    /// A write of an entry's value, JSON text, with `since` only if nobody wrote it after that: for the transaction in
    /// which it is told of too.
    pub fn prepare(&self, owner: Owner<'_>, place: &Place, value: &str, since: Option<Stamp>) -> EntryWrite {
        let size = place.size() + owner.user.len() + value.len() + ENTRY_BYTES;
        let quota = i64::try_from(self.quota).unwrap_or(i64::MAX);
        let at = self.now();
        let mut values = place_of(owner, place).to_vec();
        values.extend([value.into(), (size as i64).into(), at.0.into(), quota.into(), since.map(|at| at.0).into()]);
        EntryWrite { values, size: size as u64, at }
    }

    /// What became of a write that was done: its stamp, or why it did not pass.
    ///
    /// # Errors
    /// [`UserStateError`]; nothing is written then.
    pub async fn outcome(
        &self,
        owner: Owner<'_>,
        place: &Place,
        since: Option<Stamp>,
        written: Option<Stamp>,
        tenancy: &Tenancy,
    ) -> Result<Stamp, UserStateError> {
        let Some(stamp) = written else { return Err(self.reason(owner, place, since).await?) };
        self.unless_over(owner, place, stamp, tenancy).await?;
        Ok(stamp)
    }

    /// Removes an entry; one that is not there is removed already. The moment of it.
    pub async fn delete(&self, owner: Owner<'_>, place: &Place) -> Result<Stamp, UserStateError> {
        let at = self.now();
        let work = async || {
            let delete = Entity::delete_by_id(key_of(owner, place));
            delete.exec(self.db.writer()).await?;
            Ok::<_, UserStateError>(())
        };
        self.db.repeat(work).await?;
        Ok(at)
    }

    /// Why a write did not pass.
    async fn reason(
        &self,
        owner: Owner<'_>,
        place: &Place,
        since: Option<Stamp>,
    ) -> Result<UserStateError, UserStateError> {
        let present = self.get(owner, place).await?;
        let later = since.zip(present).is_some_and(|(since, (_, written))| written > since);
        Ok(if later { UserStateError::Conflict } else { UserStateError::QuotaExceeded { limit: self.quota } })
    }

    /// Takes a write back that came when the plugin was being uninstalled: the uninstall may have looked before it. One
    /// that came earlier it removes itself.
    async fn unless_over(
        &self,
        owner: Owner<'_>,
        place: &Place,
        stamp: Stamp,
        tenancy: &Tenancy,
    ) -> Result<(), UserStateError> {
        if !tenancy.is_over() {
            return Ok(());
        }
        let work = async || {
            let own = Entity::delete_by_id(key_of(owner, place)).filter(Column::UpdatedAt.eq(stamp.0));
            own.exec(self.db.writer()).await?;
            Ok::<_, UserStateError>(())
        };
        self.db.repeat(work).await?;
        Err(UserStateError::Uninstalled)
    }

    /// The present moment, later than every one it gave before.
    fn now(&self) -> Stamp {
        let now = Stamp::of(OffsetDateTime::now_utc()).0;
        let next = |last: i64| Some(now.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).unwrap_or_else(|last| last);
        Stamp(now.max(last.saturating_add(1)))
    }
}

/// Removes everything that a plugin keeps for users within an uninstall's transaction
/// ([`crate::vault::Vault::delete_plugin`]).
pub(crate) async fn delete_all(transaction: &DatabaseTransaction, plugin: &PluginId) -> Result<(), DbErr> {
    Entity::delete_many().filter(Column::PluginId.eq(plugin.as_str())).exec(transaction).await.map(drop)
}

fn place_of(owner: Owner<'_>, place: &Place) -> [SqlValue; 5] {
    let scope = &place.scope;
    [owner.plugin.as_str(), owner.user, scope.kind.as_str(), &scope.id, &place.key].map(SqlValue::from)
}

fn key_of(owner: Owner<'_>, place: &Place) -> (String, String, String, String, String) {
    let Place { scope, key } = place;
    let (plugin, user) = (owner.plugin.to_string(), owner.user.to_owned());
    (plugin, user, scope.kind.as_str().to_owned(), scope.id.clone(), key.clone())
}

#[cfg(test)]
mod tests;
