//! Table of what plugins keep in the browser for each user.
//!
//! The value is JSON kept as text, as plugin state is. A moment is nanoseconds since 1970: whole numbers compare on
//! both databases as moments do. The size stands before the value, so that summing sizes does not read large values.
//! The primary key is also the index for listing one scope and for summing up a user.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum PluginUserState {
    Table,
    PluginId,
    UserId,
    Scope,
    ScopeId,
    Key,
    SizeBytes,
    UpdatedAt,
    Value,
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
                    .table(PluginUserState::Table)
                    .col(ColumnDef::new(PluginUserState::PluginId).text().not_null())
                    .col(ColumnDef::new(PluginUserState::UserId).text().not_null())
                    .col(ColumnDef::new(PluginUserState::Scope).text().not_null())
                    .col(ColumnDef::new(PluginUserState::ScopeId).text().not_null())
                    .col(ColumnDef::new(PluginUserState::Key).text().not_null())
                    .col(ColumnDef::new(PluginUserState::SizeBytes).big_integer().not_null())
                    .col(ColumnDef::new(PluginUserState::UpdatedAt).big_integer().not_null())
                    .col(ColumnDef::new(PluginUserState::Value).text().not_null())
                    .primary_key(
                        Index::create()
                            .col(PluginUserState::PluginId)
                            .col(PluginUserState::UserId)
                            .col(PluginUserState::Scope)
                            .col(PluginUserState::ScopeId)
                            .col(PluginUserState::Key),
                    )
                    .to_owned(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(PluginUserState::Table).to_owned()).await
    }
}
