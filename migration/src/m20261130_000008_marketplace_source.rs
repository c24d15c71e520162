//! Table of the sources of the marketplace.
//!
//! The source that a setting names is a row like the others; the host writes it at each start. An address is there
//! once: the database says which of two that add it was first.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum MarketplaceSource {
    Table,
    Id,
    Name,
    Url,
    Enabled,
    Builtin,
    CreatedAt,
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
                    .table(MarketplaceSource::Table)
                    .col(ColumnDef::new(MarketplaceSource::Id).text().not_null().primary_key())
                    .col(ColumnDef::new(MarketplaceSource::Name).text().not_null())
                    .col(ColumnDef::new(MarketplaceSource::Url).text().not_null())
                    .col(ColumnDef::new(MarketplaceSource::Enabled).boolean().not_null())
                    .col(ColumnDef::new(MarketplaceSource::Builtin).boolean().not_null())
                    .col(ColumnDef::new(MarketplaceSource::CreatedAt).timestamp_with_time_zone().not_null())
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("marketplace_source_url")
                    .table(MarketplaceSource::Table)
                    .col(MarketplaceSource::Url)
                    .unique()
                    .to_owned(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(MarketplaceSource::Table).to_owned()).await
    }
}
