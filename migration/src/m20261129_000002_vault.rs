//! Tables of the vault: the encrypted entries, and which plugins may reveal the shared ones.
//!
//! `owner` is the plugin of an entry, empty for the others: an uninstall deletes by it, without looking into ids.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum VaultEntry {
    Table,
    Id,
    Kind,
    Owner,
    Name,
    Scope,
    WorkspaceId,
    KeyId,
    Nonce,
    Ciphertext,
    CreatedAt,
    UpdatedAt,
}

#[derive(DeriveIden)]
enum VaultShare {
    Table,
    SecretId,
    PluginId,
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(
                Table::create()
                    .table(VaultEntry::Table)
                    .col(ColumnDef::new(VaultEntry::Id).text().not_null().primary_key())
                    .col(ColumnDef::new(VaultEntry::Kind).text().not_null())
                    .col(ColumnDef::new(VaultEntry::Owner).text().not_null())
                    .col(ColumnDef::new(VaultEntry::Name).text().not_null())
                    .col(ColumnDef::new(VaultEntry::Scope).text().null())
                    .col(ColumnDef::new(VaultEntry::WorkspaceId).text().null())
                    .col(ColumnDef::new(VaultEntry::KeyId).text().not_null())
                    .col(ColumnDef::new(VaultEntry::Nonce).blob().not_null())
                    .col(ColumnDef::new(VaultEntry::Ciphertext).blob().not_null())
                    .col(ColumnDef::new(VaultEntry::CreatedAt).timestamp_with_time_zone().not_null())
                    .col(ColumnDef::new(VaultEntry::UpdatedAt).timestamp_with_time_zone().not_null())
                    .to_owned(),
            )
            .await?;
        let by_owner = Index::create()
            .name("vault_entry_owner_kind")
            .table(VaultEntry::Table)
            .col(VaultEntry::Owner)
            .col(VaultEntry::Kind)
            .to_owned();
        manager.create_index(by_owner).await?;
        let of_entry = ForeignKey::create()
            .name("vault_share_secret")
            .from(VaultShare::Table, VaultShare::SecretId)
            .to(VaultEntry::Table, VaultEntry::Id)
            .on_delete(ForeignKeyAction::Cascade)
            .to_owned();
        manager
            .create_table(
                Table::create()
                    .table(VaultShare::Table)
                    .col(ColumnDef::new(VaultShare::SecretId).text().not_null())
                    .col(ColumnDef::new(VaultShare::PluginId).text().not_null())
                    .primary_key(Index::create().col(VaultShare::PluginId).col(VaultShare::SecretId))
                    .foreign_key(&mut of_entry.clone())
                    .to_owned(),
            )
            .await?;
        let by_secret =
            Index::create().name("vault_share_secret_id").table(VaultShare::Table).col(VaultShare::SecretId).to_owned();
        manager.create_index(by_secret).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(VaultShare::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(VaultEntry::Table).to_owned()).await
    }
}
