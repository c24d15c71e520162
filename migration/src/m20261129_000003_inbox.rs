//! Table of the operator's inbox.
//!
//! `lasting` names the incident an item is about while it lasts, and is NULL afterwards: its unique index is why an
//! incident has one item however often it is told. The payload is JSON kept as text, as plugin state is.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[derive(DeriveIden)]
enum InboxItem {
    Table,
    Id,
    Kind,
    Title,
    Description,
    Status,
    Read,
    EntityId,
    EntityType,
    Payload,
    Lasting,
    CreatedAt,
    UpdatedAt,
    ResolvedAt,
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
                    .table(InboxItem::Table)
                    .col(ColumnDef::new(InboxItem::Id).text().not_null().primary_key())
                    .col(ColumnDef::new(InboxItem::Kind).text().not_null())
                    .col(ColumnDef::new(InboxItem::Title).text().not_null())
                    .col(ColumnDef::new(InboxItem::Description).text())
                    .col(ColumnDef::new(InboxItem::Status).text().not_null())
                    .col(ColumnDef::new(InboxItem::Read).boolean().not_null())
                    .col(ColumnDef::new(InboxItem::EntityId).text().not_null())
                    .col(ColumnDef::new(InboxItem::EntityType).text().not_null())
                    .col(ColumnDef::new(InboxItem::Payload).text().not_null())
                    .col(ColumnDef::new(InboxItem::Lasting).text())
                    .col(ColumnDef::new(InboxItem::CreatedAt).timestamp_with_time_zone().not_null())
                    .col(ColumnDef::new(InboxItem::UpdatedAt).timestamp_with_time_zone().not_null())
                    .col(ColumnDef::new(InboxItem::ResolvedAt).timestamp_with_time_zone())
                    .to_owned(),
            )
            .await?;
        manager
            .create_index(
                Index::create()
                    .name("inbox_item_lasting")
                    .table(InboxItem::Table)
                    .col(InboxItem::Lasting)
                    .unique()
                    .to_owned(),
            )
            .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.drop_table(Table::drop().table(InboxItem::Table).to_owned()).await
    }
}
