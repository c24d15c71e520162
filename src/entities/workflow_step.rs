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
    /// Its name.
    pub name: String,
    /// Place in its list, the smallest first.
    pub position: i64,
    /// A word of `words::StageType`.
    pub stage_type: String,
    /// How it is shown.
    pub color: String,
    /// For agents.
    pub prompt: String,
    /// JSON, an object.
    pub events: String,
    /// Whether people may move tasks here.
    pub allow_manual_move: bool,
    /// Whether new tasks begin here.
    pub is_start_step: bool,
    /// Whether it is offered as a command.
    pub show_in_command_panel: bool,
    /// In hours; 0 for never.
    pub auto_archive_after_hours: i64,
    /// Most tasks at once; 0 for no bound.
    pub wip_limit: i64,
    /// Which pull from step; NULL for none.
    pub pull_from_step_id: Option<String>,
    /// Which agent profile; NULL for none.
    pub agent_profile_id: Option<String>,
    /// Whether leaving needs a signal.
    pub auto_advance_requires_signal: bool,
    /// Whether a cancelled turn counts as complete.
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
