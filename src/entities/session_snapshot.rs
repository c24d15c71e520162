//! One snapshot of what a session has not committed.

use sea_orm::entity::prelude::*;

/// A row of `session_snapshot`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_snapshot")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which session.
    pub session_id: String,
    /// On which branch.
    pub branch: String,
    /// On top of this commit.
    pub head_commit: String,
    /// JSON, an object.
    pub files: String,
    /// Lines added.
    pub additions: i64,
    /// Lines deleted.
    pub deletions: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
