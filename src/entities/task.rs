//! One task.

use sea_orm::entity::prelude::*;

/// A row of `task`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "task")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which workspace.
    pub workspace_id: String,
    /// Which workflow.
    pub workflow_id: String,
    /// Which workflow step; NULL for none.
    pub workflow_step_id: Option<String>,
    /// At most 60 characters.
    pub title: String,
    /// What it is for, or what is to be done.
    pub description: String,
    /// A word of its vocabulary.
    pub state: String,
    /// A word of `words::Priority`.
    pub priority: String,
    /// A word of `words::Origin`.
    pub origin: String,
    /// Place in its list, the smallest first.
    pub position: i64,
    /// `KAN-7`, or empty.
    pub identifier: String,
    /// Which external; NULL for none.
    pub external_id: Option<String>,
    /// Which parent; NULL for none.
    pub parent_id: Option<String>,
    /// A quick chat.
    pub is_ephemeral: bool,
    /// Sets the platform up, or is a run of an automation.
    pub is_internal: bool,
    /// `plugin:<id>`, or empty.
    pub source: String,
    /// Microseconds since 1970; NULL while it is not put away.
    pub archived_at: Option<i64>,
    /// Microseconds since 1970.
    pub started_at: Option<i64>,
    /// Microseconds since 1970; NULL while it is not over.
    pub completed_at: Option<i64>,
    /// JSON, an object.
    pub metadata: String,
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
