//! One event of the log.

use sea_orm::entity::prelude::*;

/// A row of `event_log`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "event_log")]
pub struct Model {
    /// Place in the log, in the order of commits.
    #[sea_orm(primary_key)]
    pub seq: i64,
    /// Which event.
    pub event_id: String,
    /// Concrete subject.
    pub subject: String,
    /// Which workspace.
    pub workspace_id: String,
    /// JSON, an object.
    pub payload: String,
    /// The plugin that does not get it.
    pub about: Option<String>,
    /// Bytes of subject and payload.
    pub size_bytes: i64,
    /// Microseconds since 1970.
    pub created_at: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
