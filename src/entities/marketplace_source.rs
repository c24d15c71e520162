//! One source of the marketplace.

use sea_orm::entity::prelude::*;

/// A row of `marketplace_source`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "marketplace_source")]
pub struct Model {
    /// A UUID as text, or `builtin`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// For people.
    pub name: String,
    /// Where its index is; unique.
    pub url: String,
    /// Whether it is asked.
    pub enabled: bool,
    /// Whether a setting names it.
    pub builtin: bool,
    /// UTC.
    pub created_at: TimeDateTimeWithTimeZone,
}

/// No relation to another table.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
