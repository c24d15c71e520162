//! Bytes of state one plugin uses; also the row that its writers lock.

use sea_orm::entity::prelude::*;

/// A row of `plugin_state_usage`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "plugin_state_usage")]
pub struct Model {
    /// Whose usage it is.
    #[sea_orm(primary_key, auto_increment = false)]
    pub plugin_id: String,
    /// Sum of `plugin_state.size_bytes` of this plugin.
    pub size_bytes: i64,
}

/// No relation to another table.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
