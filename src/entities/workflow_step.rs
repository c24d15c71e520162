//! One step of a workflow.

use sea_orm::entity::prelude::*;

/// A row of `workflow_step`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "workflow_step")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which workflow.
    pub workflow_id: String,
    /// See `domain::platform`.
    pub name: String,
    /// See `domain::platform`.
    pub position: i64,
    /// See `domain::platform`.
    pub stage_type: String,
    /// See `domain::platform`.
    pub color: String,
    /// See `domain::platform`.
    pub prompt: String,
    /// JSON, an object.
    pub events: String,
    /// See `domain::platform`.
    pub allow_manual_move: bool,
    /// See `domain::platform`.
    pub is_start_step: bool,
    /// See `domain::platform`.
    pub show_in_command_panel: bool,
    /// See `domain::platform`.
    pub auto_archive_after_hours: i64,
    /// See `domain::platform`.
    pub wip_limit: i64,
    /// Which pull from step; NULL for none.
    pub pull_from_step_id: Option<String>,
    /// Which agent profile; NULL for none.
    pub agent_profile_id: Option<String>,
    /// See `domain::platform`.
    pub auto_advance_requires_signal: bool,
    /// See `domain::platform`.
    pub cancel_triggers_turn_complete: bool,
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
