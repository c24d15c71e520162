//! One fact about this database.

use sea_orm::entity::prelude::*;

/// A row of `instance_setting`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "instance_setting")]
pub struct Model {
    /// The key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// The fact.
    pub value: String,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
