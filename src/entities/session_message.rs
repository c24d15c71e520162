//! One message of a session.

use sea_orm::entity::prelude::*;

/// A row of `session_message`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "session_message")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which session.
    pub session_id: String,
    /// Which task.
    pub task_id: String,
    /// Which turn.
    pub turn_id: String,
    /// A word of `words::AuthorType`.
    pub author_type: String,
    /// Which author.
    pub author_id: String,
    /// A word of its vocabulary.
    #[sea_orm(column_name = "type")]
    pub kind: String,
    /// The whole text; what plugins see is sanitised.
    pub raw_content: String,
    /// Whether it waits for a person.
    pub requests_input: bool,
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
