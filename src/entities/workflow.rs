//! One workflow.

use sea_orm::entity::prelude::*;

/// A row of `workflow`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "workflow")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which workspace.
    pub workspace_id: String,
    /// See `domain::platform`.
    pub name: String,
    /// See `domain::platform`.
    pub description: Option<String>,
    /// See `domain::platform`.
    pub prompt: String,
    /// Which agent profile; NULL for none.
    pub agent_profile_id: Option<String>,
    /// See `domain::platform`.
    pub sort_order: i64,
    /// See `domain::platform`.
    pub hidden: bool,
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
