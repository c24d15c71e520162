//! The schema as steps, oldest first; applied when the host starts (`kandev_host::store::db`).
//!
//! A step names its own tables and columns and never imports entities: they follow the newest schema, a step stays
//! as it was. Every step runs in one transaction on both databases, so that a crash leaves it done or not begun.

use sea_orm_migration::{MigrationTrait, async_trait};

pub use sea_orm_migration::MigratorTrait;

mod m20261129_000001_plugin_state;

/// All steps of this version of the host.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![Box::new(m20261129_000001_plugin_state::Migration)]
    }
}
