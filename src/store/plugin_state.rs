//! State of plugins in the database: entries by (plugin, scope, scope id, key), and the quota of each plugin.
//!
//! All four parts are compared as exact text (host-data.md §7). The plugin id is the caller's word: the Host service
//! knows it from the socket, no plugin says who it is. Every call leaves the same rows when it is done twice, so all of
//! them are repeated when their connection is lost (`Db::repeat`).

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, QueryFilter, QuerySelect, Statement,
    sea_query::{Expr, OnConflict},
};
use serde_json::Value;
use time::OffsetDateTime;

use super::db::{Db, DbFault, MayBeFault};
use crate::{
    config::Limits,
    domain::{id::PluginId, tenancy::Tenancy},
    entities::{plugin_state, plugin_state_usage},
};

/// Reads one value. Written out for both databases: building it for each call would be a good part of what the most
/// frequent Host call costs (docs/performance.md).
const GET: &str =
    r#"SELECT "value" FROM "plugin_state" WHERE "plugin_id" = $1 AND "scope" = $2 AND "scope_id" = $3 AND "key" = $4"#;

/// Reads and writes plugin state; clones share the database.
#[derive(Clone, Debug)]
pub struct StateStore {
    db: Db,
    key_bytes: u64,
    value_bytes: u64,
    plugin_bytes: u64,
    list_bytes: u64,
    tenancy: Tenancy,
}

/// A scope: the plugin's own word and an id within it, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Any word; empty is a scope of its own.
    pub name: String,
    /// Empty when the scope has no id.
    pub id: String,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct StateEntry {
    /// Name within the scope.
    pub key: String,
    /// An object, or null for an entry with no value.
    pub value: Value,
    /// Whole seconds, UTC.
    pub updated_at: OffsetDateTime,
}

/// Why a state call failed. The texts are for the plugin, but for the last.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Key, scope or scope id that cannot be stored.
    #[error("{what} {problem}")]
    Invalid {
        /// `key`, `scope` or `scope_id`.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The value is larger than `limits.state_value_bytes`.
    #[error("value has {size} bytes as JSON, at most {limit} are allowed; split it over several keys")]
    ValueTooLarge {
        /// Bytes of the value as JSON.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// All state of the plugin would be larger than `limits.state_plugin_bytes`.
    #[error("the plugin's state would have {size} bytes, at most {limit} are allowed; delete what is not needed")]
    QuotaExceeded {
        /// Bytes the plugin would use.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A scope with more than one message may carry (`limits.message_bytes`).
    #[error("the scope has {size} bytes, one answer may carry {limit}; read its keys one by one")]
    ListTooLarge {
        /// Bytes of the scope's entries.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A call that was under way when its plugin was uninstalled.
    #[error("the plugin was uninstalled")]
    Uninstalled,
    /// The database failed, or holds a value that is not JSON.
    #[error(transparent)]
    Database(#[from] DbFault),
}

impl From<sea_orm::DbErr> for StateError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl MayBeFault for StateError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Database(fault) => Some(fault),
            Self::Invalid { .. }
            | Self::ValueTooLarge { .. }
            | Self::QuotaExceeded { .. }
            | Self::ListTooLarge { .. }
            | Self::Uninstalled => None,
        }
    }
}

impl StateStore {
    /// A store with the host's limits.
    pub fn new(db: Db, limits: &Limits) -> Self {
        Self {
            db,
            key_bytes: limits.state_key_bytes,
            value_bytes: limits.state_value_bytes,
            plugin_bytes: limits.state_plugin_bytes,
            list_bytes: limits.message_bytes,
            tenancy: Tenancy::default(),
        }
    }

    /// The same store for one install of a plugin: it writes nothing any more once that is over.
    pub fn under(&self, tenancy: &Tenancy) -> Self {
        Self { tenancy: tenancy.clone(), ..self.clone() }
    }

    /// The value, `Some(Null)` for an entry that was set without one, `None` when there is no entry.
    pub async fn get(&self, plugin: &PluginId, scope: &Scope, key: &str) -> Result<Option<Value>, StateError> {
        self.check(scope, Some(key))?;
        let row = self.db.repeat(|| self.value(plugin, scope, key)).await?;
        row.map(|text| parse(&text)).transpose()
    }

    async fn value(&self, plugin: &PluginId, scope: &Scope, key: &str) -> Result<Option<String>, StateError> {
        let reader = self.db.reader();
        let key = [plugin.as_str(), &scope.name, &scope.id, key].map(sea_orm::Value::from);
        let statement = Statement::from_sql_and_values(reader.get_database_backend(), GET, key);
        let row = reader.query_one_raw(statement).await?;
        Ok(row.map(|row| row.try_get_by_index(0)).transpose()?)
    }

    /// Sets the value, replacing an earlier one; the last write to commit stays. `now` becomes the entry's
    /// `updated_at`, cut to whole seconds.
    pub async fn set(
        &self,
        plugin: &PluginId,
        scope: &Scope,
        key: &str,
        value: &Value,
        now: OffsetDateTime,
    ) -> Result<(), StateError> {
        self.check(scope, Some(key))?;
        let value = value.to_string();
        let value_size = value.len() as u64;
        if value_size > self.value_bytes {
            return Err(StateError::ValueTooLarge { size: value_size, limit: self.value_bytes });
        }
        let size = (scope.name.len() + scope.id.len() + key.len() + value.len()) as i64;
        let row = plugin_state::ActiveModel {
            plugin_id: Set(plugin.to_string()),
            scope: Set(scope.name.clone()),
            scope_id: Set(scope.id.clone()),
            key: Set(key.to_owned()),
            value: Set(value),
            size_bytes: Set(size),
            updated_at: Set(now.replace_nanosecond(0).unwrap_or(now)),
        };
        let key = row_key(plugin, scope, key);
        self.db.repeat(|| self.replace(plugin, key.clone(), row.clone(), size)).await
    }

    async fn replace(
        &self,
        plugin: &PluginId,
        key: RowKey,
        row: plugin_state::ActiveModel,
        size: i64,
    ) -> Result<(), StateError> {
        let (transaction, used) = self.begin(plugin).await?;
        let total = used - stored_size(&transaction, key).await?.unwrap_or(0) + size;
        if total as u64 > self.plugin_bytes && total > used {
            return Err(StateError::QuotaExceeded { size: total as u64, limit: self.plugin_bytes });
        }
        plugin_state::Entity::insert(row).on_conflict(overwrite()).exec_without_returning(&transaction).await?;
        if total != used {
            write_usage(&transaction, plugin, total).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Removes the entry; one that is not there is removed already.
    pub async fn delete(&self, plugin: &PluginId, scope: &Scope, key: &str) -> Result<(), StateError> {
        self.check(scope, Some(key))?;
        let key = row_key(plugin, scope, key);
        let work = async || {
            let (transaction, used) = self.begin(plugin).await?;
            if let Some(size) = stored_size(&transaction, key.clone()).await? {
                plugin_state::Entity::delete_by_id(key.clone()).exec(&transaction).await?;
                write_usage(&transaction, plugin, used - size).await?;
            }
            Ok(transaction.commit().await?)
        };
        self.db.repeat(work).await
    }

    /// All entries of one scope, ordered by the bytes of their key.
    pub async fn list(&self, plugin: &PluginId, scope: &Scope) -> Result<Vec<StateEntry>, StateError> {
        self.check(scope, None)?;
        let rows = self.db.repeat(|| self.rows(plugin, scope)).await?;
        let mut entries = Vec::with_capacity(rows.len());
        for row in rows {
            entries.push(StateEntry { value: parse(&row.value)?, key: row.key, updated_at: row.updated_at });
        }
        // Here and not in SQL: PostgreSQL would order by its locale.
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    async fn rows(&self, plugin: &PluginId, scope: &Scope) -> Result<Vec<plugin_state::Model>, StateError> {
        let of_scope = plugin_state::Entity::find()
            .filter(plugin_state::Column::PluginId.eq(plugin.to_string()))
            .filter(plugin_state::Column::Scope.eq(&scope.name))
            .filter(plugin_state::Column::ScopeId.eq(&scope.id));
        let sizes: Vec<i64> = of_scope
            .clone()
            .select_only()
            .column(plugin_state::Column::SizeBytes)
            .into_tuple()
            .all(self.db.reader())
            .await?;
        let size = sizes.iter().sum::<i64>() as u64;
        if size > self.list_bytes {
            return Err(StateError::ListTooLarge { size, limit: self.list_bytes });
        }
        Ok(of_scope.all(self.db.reader()).await?)
    }

    /// A transaction that holds the plugin's usage row, and the bytes in use. An uninstall takes the same row before it
    /// deletes: either it waits for this transaction and deletes what it wrote, or this one finds the tenancy over.
    async fn begin(&self, plugin: &PluginId) -> Result<(DatabaseTransaction, i64), StateError> {
        let transaction = self.db.begin_write().await?;
        let used = lock_usage(&transaction, plugin).await?;
        if self.tenancy.is_over() {
            return Err(StateError::Uninstalled);
        }
        Ok((transaction, used))
    }

    fn check(&self, scope: &Scope, key: Option<&str>) -> Result<(), StateError> {
        if key == Some("") {
            return Err(StateError::Invalid { what: "key", problem: "is empty".to_owned() });
        }
        let parts = [("scope", scope.name.as_str()), ("scope_id", scope.id.as_str()), ("key", key.unwrap_or_default())];
        for (what, text) in parts {
            if text.len() as u64 > self.key_bytes {
                let problem = format!("has {} bytes, at most {} are allowed", text.len(), self.key_bytes);
                return Err(StateError::Invalid { what, problem });
            }
            // PostgreSQL cannot store it.
            if text.contains('\0') {
                return Err(StateError::Invalid { what, problem: "contains a zero byte".to_owned() });
            }
        }
        Ok(())
    }
}

/// Removes everything of a plugin within an uninstall's transaction ([`crate::vault::Vault::delete_plugin`]).
pub(crate) async fn delete_all(transaction: &DatabaseTransaction, plugin: &PluginId) -> Result<(), DbErr> {
    lock_usage(transaction, plugin).await?;
    let all = plugin_state::Entity::delete_many().filter(plugin_state::Column::PluginId.eq(plugin.to_string()));
    all.exec(transaction).await?;
    plugin_state_usage::Entity::delete_by_id(plugin.to_string()).exec(transaction).await.map(drop)
}

type RowKey = (String, String, String, String);

fn row_key(plugin: &PluginId, scope: &Scope, key: &str) -> RowKey {
    (plugin.to_string(), scope.name.clone(), scope.id.clone(), key.to_owned())
}

fn parse(value: &str) -> Result<Value, StateError> {
    serde_json::from_str(value)
        .map_err(|error| DbFault::Statement(format!("a stored value is not JSON: {error}")).into())
}

fn overwrite() -> OnConflict {
    use plugin_state::Column;
    OnConflict::columns([Column::PluginId, Column::Scope, Column::ScopeId, Column::Key])
        .update_columns([Column::Value, Column::SizeBytes, Column::UpdatedAt])
        .to_owned()
}

/// Bytes in use; holds the plugin's usage row until the transaction ends, so that two writers of one plugin cannot
/// both fit into the last free bytes (PostgreSQL; on SQLite there is one writer anyway).
async fn lock_usage(transaction: &DatabaseTransaction, plugin: &PluginId) -> Result<i64, DbErr> {
    let query = || plugin_state_usage::Entity::find_by_id(plugin.to_string()).lock_exclusive();
    if let Some(row) = query().one(transaction).await? {
        return Ok(row.size_bytes);
    }
    let empty = plugin_state_usage::ActiveModel { plugin_id: Set(plugin.to_string()), size_bytes: Set(0) };
    let untouched = OnConflict::column(plugin_state_usage::Column::PluginId).do_nothing().to_owned();
    plugin_state_usage::Entity::insert(empty).on_conflict(untouched).exec_without_returning(transaction).await?;
    Ok(query().one(transaction).await?.map_or(0, |row| row.size_bytes))
}

async fn stored_size(transaction: &DatabaseTransaction, key: RowKey) -> Result<Option<i64>, StateError> {
    let query = plugin_state::Entity::find_by_id(key).select_only().column(plugin_state::Column::SizeBytes);
    Ok(query.into_tuple().one(transaction).await?)
}

async fn write_usage(transaction: &DatabaseTransaction, plugin: &PluginId, bytes: i64) -> Result<(), StateError> {
    plugin_state_usage::Entity::update_many()
        .col_expr(plugin_state_usage::Column::SizeBytes, Expr::value(bytes))
        .filter(plugin_state_usage::Column::PluginId.eq(plugin.to_string()))
        .exec(transaction)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
