//! One agent profile.

use sea_orm::entity::prelude::*;

/// A row of `agent_profile`.
#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "agent_profile")]
pub struct Model {
    /// A UUID of version 7 as text.
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    /// Which agent.
    pub agent_id: String,
    /// The agent's name.
    pub agent_display_name: String,
    /// The agent's place in lists.
    pub agent_position: i64,
    /// Its name.
    pub name: String,
    /// Which model.
    pub model: String,
    /// Which mode; empty for the default.
    pub mode: String,
    /// Which workspace; NULL for none.
    pub workspace_id: Option<String>,
    /// Whether it may be chosen.
    pub enabled: bool,
    /// JSON, an object.
    pub settings: String,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970.
    pub updated_at: i64,
    /// Goes up by one with every change.
    pub version: i64,
}

/// Relations are followed by hand.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
