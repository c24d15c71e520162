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
    /// See `domain::platform`.
    pub name: String,
    /// See `domain::platform`.
    pub source_type: String,
    /// See `domain::platform`.
    pub local_path: String,
    /// See `domain::platform`.
    pub provider: String,
    /// Which provider repo.
    pub provider_repo_id: String,
    /// See `domain::platform`.
    pub provider_host: String,
    /// See `domain::platform`.
    pub provider_scope: String,
    /// See `domain::platform`.
    pub provider_owner: String,
    /// See `domain::platform`.
    pub provider_name: String,
    /// See `domain::platform`.
    pub remote_url: String,
    /// See `domain::platform`.
    pub default_branch: String,
    /// See `domain::platform`.
    pub worktree_branch_prefix: String,
    /// See `domain::platform`.
    pub pull_before_worktree: bool,
    /// See `domain::platform`.
    pub setup_script: String,
    /// See `domain::platform`.
    pub cleanup_script: String,
    /// See `domain::platform`.
    pub dev_script: String,
    /// See `domain::platform`.
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
