//! One repository of a workspace.

use sea_orm::entity::prelude::*;

/// A row of `repository`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "repository")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which workspace.
    pub workspace_id: String,
    /// Its name.
    pub name: String,
    /// How it was added.
    pub source_type: String,
    /// Folder here; empty for none.
    pub local_path: String,
    /// Which provider hosts it; empty for none.
    pub provider: String,
    /// Which provider repo.
    pub provider_repo_id: String,
    /// The provider's host name.
    pub provider_host: String,
    /// The provider's own division.
    pub provider_scope: String,
    /// Owner or project there.
    pub provider_owner: String,
    /// Name there.
    pub provider_name: String,
    /// Without user and password.
    pub remote_url: String,
    /// Its main branch.
    pub default_branch: String,
    /// Start of the branches of tasks.
    pub worktree_branch_prefix: String,
    /// Whether it is brought up to date first.
    pub pull_before_worktree: bool,
    /// Run before work.
    pub setup_script: String,
    /// Run after work.
    pub cleanup_script: String,
    /// Runs the program.
    pub dev_script: String,
    /// Files that each worktree gets.
    pub copy_files: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970.
    pub updated_at: i64,
    /// Goes up by one with every change.
    pub version: i64,
    /// Microseconds since 1970; NULL while it is there.
    pub deleted_at: Option<i64>,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
