//! The schema as steps, oldest first; applied when the host starts (`kandev_host::store::db`).
//!
//! A step names its own tables and columns and never imports entities: they follow the newest schema, a step stays
//! as it was. Every step runs in one transaction on both databases, so that a crash leaves it done or not begun.

use sea_orm_migration::{
    MigrationTrait, SchemaManager, async_trait,
    sea_orm::{DatabaseConnection, DbErr, EntityTrait, QueryOrder},
    seaql_migrations,
};

pub use sea_orm_migration::MigratorTrait;

mod m20261129_000001_plugin_state;
mod m20261129_000002_vault;
mod m20261129_000003_inbox;
mod m20261129_000004_platform;
mod m20261130_000005_workspace_deleting;
mod m20261130_000006_plugin_user_state;
mod m20261130_000007_git_credential_token;
mod m20261130_000008_marketplace_source;

/// All steps of this version of the host.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m20261129_000001_plugin_state::Migration),
            Box::new(m20261129_000002_vault::Migration),
            Box::new(m20261129_000003_inbox::Migration),
            Box::new(m20261129_000004_platform::Migration),
            Box::new(m20261130_000005_workspace_deleting::Migration),
            Box::new(m20261130_000006_plugin_user_state::Migration),
            Box::new(m20261130_000007_git_credential_token::Migration),
            Box::new(m20261130_000008_marketplace_source::Migration),
        ]
    }
}

/// Name and Unix time of the steps that a database has, by name. Reads only: a database that was never used has none.
pub async fn applied(db: &DatabaseConnection) -> Result<Vec<(String, i64)>, DbErr> {
    if !SchemaManager::new(db).has_table("seaql_migrations").await? {
        return Ok(Vec::new());
    }
    let rows = seaql_migrations::Entity::find().order_by_asc(seaql_migrations::Column::Version).all(db).await?;
    Ok(rows.into_iter().map(|row| (row.version, row.applied_at)).collect())
}
