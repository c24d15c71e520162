//! Tables of plugin state: the entries, and one row a plugin with the bytes they use together.
//!
//! The value is JSON kept as text, not as the database's own JSON type: PostgreSQL's refuses the lawful `\u0000`, and
//! nothing ever looks inside. The primary key is also the index for listing one scope.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum PluginState {
    Table,
    PluginId,
    Scope,
    ScopeId,
    Key,
    Value,
    SizeBytes,
    UpdatedAt,
}

#[derive(DeriveIden)]
enum PluginStateUsage {
    Table,
    PluginId,
    SizeBytes,
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
                    .table(PluginState::Table)
                    .col(ColumnDef::new(PluginState::PluginId).text().not_null())
                    .col(ColumnDef::new(PluginState::Scope).text().not_null())
                    .col(ColumnDef::new(PluginState::ScopeId).text().not_null().default(""))
                    .col(ColumnDef::new(PluginState::Key).text().not_null())
                    .col(ColumnDef::new(PluginState::Value).text().not_null())
                    .col(ColumnDef::new(PluginState::SizeBytes).big_integer().not_null())
                    .col(ColumnDef::new(PluginState::UpdatedAt).timestamp_with_time_zone().not_null())
                    .primary_key(
                        Index::create()
                            .col(PluginState::PluginId)
                            .col(PluginState::Scope)
                            .col(PluginState::ScopeId)
                            .col(PluginState::Key),
                    )
                    .to_owned(),
            )
            .await?;
        manager
            .create_table(
                Table::create()
                    .table(PluginStateUsage::Table)
                    .col(ColumnDef::new(PluginStateUsage::PluginId).text().not_null().primary_key())
                    .col(ColumnDef::new(PluginStateUsage::SizeBytes).big_integer().not_null())
                    .to_owned(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(PluginStateUsage::Table).to_owned()).await?;
        manager.drop_table(Table::drop().table(PluginState::Table).to_owned()).await
    }
}
