//! One token with which git asks for credentials.

use sea_orm::entity::prelude::*;

/// A row of `git_credential_token`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "git_credential_token")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// SHA-256 of the token, in hexadecimal; unique.
    pub token_hash: String,
    /// For which session.
    pub session_id: String,
    /// For which repository.
    pub repository_id: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970.
    pub expires_at: i64,
    /// Microseconds since 1970; NULL when it was never used.
    pub last_used_at: Option<i64>,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
