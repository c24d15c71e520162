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
    /// See `domain::platform`.
    pub base_branch: String,
    /// See `domain::platform`.
    pub checkout_branch: String,
    /// See `domain::platform`.
    pub pull_request_number: Option<i64>,
    /// See `domain::platform`.
    pub position: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
