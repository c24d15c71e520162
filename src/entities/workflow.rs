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
    /// Its name.
    pub name: String,
    /// What it is for, or what is to be done.
    pub description: Option<String>,
    /// For agents.
    pub prompt: String,
    /// Which agent profile; NULL for none.
    pub agent_profile_id: Option<String>,
    /// Place in its workspace, the smallest first.
    pub sort_order: i64,
    /// Left out of lists.
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
