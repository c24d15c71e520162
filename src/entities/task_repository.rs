//! That a task works on a repository.

use sea_orm::entity::prelude::*;

/// A row of `task_repository`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "task_repository")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which task.
    pub task_id: String,
    /// Which repository.
    pub repository_id: String,
    /// Work begins here; empty for the main one.
    pub base_branch: String,
    /// Work goes on here; empty for a new one.
    pub checkout_branch: String,
    /// The pull request it is about; NULL for none.
    pub pull_request_number: Option<i64>,
    /// Place in its list, the smallest first.
    pub position: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
