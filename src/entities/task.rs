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
    /// See `domain::platform`.
    pub title: String,
    /// See `domain::platform`.
    pub description: String,
    /// See `domain::platform`.
    pub state: String,
    /// See `domain::platform`.
    pub priority: String,
    /// See `domain::platform`.
    pub origin: String,
    /// See `domain::platform`.
    pub position: i64,
    /// See `domain::platform`.
    pub identifier: String,
    /// Which external; NULL for none.
    pub external_id: Option<String>,
    /// Which parent; NULL for none.
    pub parent_id: Option<String>,
    /// See `domain::platform`.
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
