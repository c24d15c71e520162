//! One executor profile.

use sea_orm::entity::prelude::*;

/// A row of `executor_profile`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "executor_profile")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which executor.
    pub executor_id: String,
    /// Its name.
    pub name: String,
    /// Which MCP servers.
    pub mcp_policy: String,
    /// JSON, an object.
    pub config: String,
    /// Run before work.
    pub prepare_script: String,
    /// Run after work.
    pub cleanup_script: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970.
    pub updated_at: i64,
    /// Goes up by one with every change.
    pub version: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
