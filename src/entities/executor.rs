//! One executor.

use sea_orm::entity::prelude::*;

/// A row of `executor`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "executor")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// See `domain::platform`.
    pub name: String,
    /// See `domain::platform`.
    #[sea_orm(column_name = "type")]
    pub kind: String,
    /// See `domain::platform`.
    pub status: String,
    /// See `domain::platform`.
    pub is_system: bool,
    /// See `domain::platform`.
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
