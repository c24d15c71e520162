//! One entry that a plugin keeps for a user.

use sea_orm::entity::prelude::*;

/// A row of `plugin_user_state`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "plugin_user_state")]
pub struct Model {
    /// Which plugin's.
    #[sea_orm(primary_key, auto_increment = false)]
    pub plugin_id: String,
    /// Whose.
    #[sea_orm(primary_key, auto_increment = false)]
    pub user_id: String,
    /// A word of `domain::user_state::ScopeKind`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope: String,
    /// Which one.
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope_id: String,
    /// Name within the scope.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// Bytes that the entry counts for the quota.
    pub size_bytes: i64,
    /// Nanoseconds since 1970 UTC; grows with every write of the entry.
    pub updated_at: i64,
    /// Any JSON.
    pub value: String,
}

/// No relation to another table.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
