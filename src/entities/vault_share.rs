//! That a plugin may reveal a shared secret.

use sea_orm::entity::prelude::*;

/// A row of `vault_share`; goes with its secret.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "vault_share")]
pub struct Model {
    /// Who may.
    #[sea_orm(primary_key, auto_increment = false)]
    pub plugin_id: String,
    /// Which secret, `vault_entry.id`.
    #[sea_orm(primary_key, auto_increment = false)]
    pub secret_id: String,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
