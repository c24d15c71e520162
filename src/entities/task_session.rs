//! One session of a task.

use sea_orm::entity::prelude::*;

/// A row of `task_session`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "task_session")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which task.
    pub task_id: String,
    /// Which workspace.
    pub workspace_id: String,
    /// Its name.
    pub name: String,
    /// A word of its vocabulary.
    pub state: String,
    /// Why it failed.
    pub error_message: String,
    /// Which agent profile.
    pub agent_profile_id: String,
    /// JSON, an object.
    pub agent_profile_snapshot: String,
    /// Which executor.
    pub executor_id: String,
    /// Which executor profile.
    pub executor_profile_id: String,
    /// JSON, an object.
    pub executor_snapshot: String,
    /// Which repository.
    pub repository_id: String,
    /// Work begins here; empty for the main one.
    pub base_branch: String,
    /// JSON, an object.
    pub metadata: String,
    /// Whether the task's messages go to it.
    pub is_primary: bool,
    /// A word of `words::ReviewStatus`; NULL for none.
    pub review_status: Option<String>,
    /// Which last read message; NULL for none.
    pub last_read_message_id: Option<String>,
    /// Microseconds since 1970.
    pub started_at: i64,
    /// Microseconds since 1970; NULL while it is not over.
    pub completed_at: Option<i64>,
    /// Microseconds since 1970.
    pub updated_at: i64,
    /// Goes up by one with every change.
    pub version: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
