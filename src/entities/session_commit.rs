//! One commit of a session.

use sea_orm::entity::prelude::*;

/// A row of `session_commit`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_commit")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which session.
    pub session_id: String,
    /// Its hash.
    pub commit_sha: String,
    /// Hash of its parent; empty when unknown.
    pub parent_sha: String,
    /// What it says.
    pub commit_message: String,
    /// Who made it.
    pub author_name: String,
    /// At which address.
    pub author_email: String,
    /// Files it touches.
    pub files_changed: i64,
    /// Lines added.
    pub insertions: i64,
    /// Lines deleted.
    pub deletions: i64,
    /// Microseconds since 1970.
    pub committed_at: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
