//! One executor.

use sea_orm::entity::prelude::*;

/// A row of `executor`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "executor")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Its name.
    pub name: String,
    /// A word of its vocabulary.
    #[sea_orm(column_name = "type")]
    pub kind: String,
    /// `active` or another word.
    pub status: String,
    /// Whether it came with the host.
    pub is_system: bool,
    /// Whether sessions survive in it.
    pub resumable: bool,
    /// JSON, an object.
    pub config: String,
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
