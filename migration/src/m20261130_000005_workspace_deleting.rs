//! Workspaces that are being deleted: a large one takes more than one transaction, and a host that ends meanwhile goes
//! on with it when it starts again.

use sea_orm_migration::{prelude::*, sea_orm::ConnectionTrait};

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = "ALTER TABLE workspace ADD COLUMN deleting BOOLEAN NOT NULL DEFAULT FALSE";
        manager.get_connection().execute_unprepared(column).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared("ALTER TABLE workspace DROP COLUMN deleting").await.map(drop)
    }
}
