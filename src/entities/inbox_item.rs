//! One item of the operator's inbox.

use sea_orm::entity::prelude::*;

/// A row of `inbox_item`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "inbox_item")]
pub struct Model {
    /// A UUID of version 7 as text: in the order of making.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// What kind of item.
    pub kind: String,
    /// One line.
    pub title: String,
    /// The diagnostic.
    pub description: Option<String>,
    /// `open`, `resolved` or `dismissed`.
    pub status: String,
    /// Whether it was read.
    pub read: bool,
    /// What it is about.
    pub entity_id: String,
    /// What kind of thing that is.
    pub entity_type: String,
    /// JSON, an object.
    pub payload: String,
    /// The incident while it lasts; unique, NULL afterwards.
    pub lasting: Option<String>,
    /// UTC.
    pub created_at: TimeDateTimeWithTimeZone,
    /// UTC.
    pub updated_at: TimeDateTimeWithTimeZone,
    /// UTC; NULL while the incident lasts.
    pub resolved_at: Option<TimeDateTimeWithTimeZone>,
}

/// No relation to another table.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
