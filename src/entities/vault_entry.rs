//! One encrypted entry of the vault.

use sea_orm::entity::prelude::*;

/// A row of `vault_entry`.
#[derive(Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "vault_entry")]
pub struct Model {
    /// Which entry (`domain::secret::VaultId`), or the key check's own name.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// `config`, `own`, `shared`, or `check`.
    pub kind: String,
    /// The plugin it belongs to; empty for none.
    pub owner: String,
    /// The operator's word for a shared secret, else the id.
    pub name: String,
    /// `global` or `workspace`; shared secrets only.
    pub scope: Option<String>,
    /// Of which workspace; shared secrets only.
    pub workspace_id: Option<String>,
    /// The key it is sealed with.
    pub key_id: String,
    /// 96 random bits, new at each write.
    pub nonce: Vec<u8>,
    /// AES-256-GCM, the tag at its end.
    pub ciphertext: Vec<u8>,
    /// Whole seconds, UTC.
    pub created_at: TimeDateTimeWithTimeZone,
    /// Whole seconds, UTC.
    pub updated_at: TimeDateTimeWithTimeZone,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("vault_entry::Model").field("id", &self.id).field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
