//! The answer that goes with an idempotency key.

use sea_orm::entity::prelude::*;

/// A row of `idempotency_key`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "idempotency_key")]
pub struct Model {
    /// Whose key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub scope: String,
    /// The key.
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: String,
    /// Of the request that the key came with.
    pub fingerprint: String,
    /// JSON; empty while the work goes on.
    pub result: String,
    /// Microseconds since 1970.
    pub created_at: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
