//! One workspace.

use sea_orm::entity::prelude::*;

/// A row of `workspace`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "workspace")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for, or what is to be done.
    pub description: Option<String>,
    /// Which owner.
    pub owner_id: String,
    /// Which default executor; NULL for none.
    pub default_executor_id: Option<String>,
    /// Which default environment; NULL for none.
    pub default_environment_id: Option<String>,
    /// Which default agent profile; NULL for none.
    pub default_agent_profile_id: Option<String>,
    /// Which default config agent profile; NULL for none.
    pub default_config_agent_profile_id: Option<String>,
    /// Start of task identifiers; empty for none.
    pub task_prefix: String,
    /// The last number given to a task.
    pub task_sequence: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970.
    pub updated_at: i64,
    /// Goes up by one with every change.
    pub version: i64,
    /// Whether its deletion was begun.
    pub deleting: bool,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
