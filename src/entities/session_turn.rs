//! One turn of a session.

use sea_orm::entity::prelude::*;

/// A row of `session_turn`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_turn")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which session.
    pub session_id: String,
    /// Which task.
    pub task_id: String,
    /// JSON, an object.
    pub metadata: String,
    /// Microseconds since 1970.
    pub started_at: i64,
    /// Microseconds since 1970; NULL while it is not over.
    pub completed_at: Option<i64>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970.
    pub updated_at: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
