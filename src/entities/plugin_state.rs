//! One state entry of a plugin.

use sea_orm::entity::prelude::*;

/// A row of `plugin_state`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "plugin_state")]
pub struct Model {
    /// Whose entry it is.
    #[sea_orm(primary_key, auto_increment = false)]
    pub plugin_id: String,
    /// The plugin's own word; empty is a scope of its own (host-data.md §7).
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope: String,
    /// Empty text when the scope has no id; never NULL.
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope_id: String,
    /// Name within the scope.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// JSON: an object, or `null` for an entry with no value.
    pub value: String,
    /// Bytes of scope, scope id, key and value together.
    pub size_bytes: i64,
    /// Whole seconds, UTC.
    pub updated_at: TimeDateTimeWithTimeZone,
}

/// No relation to another table.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
