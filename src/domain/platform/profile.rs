//! Agents and executors with their profiles: who works on a task, and where.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    Map,
    refusal::Refusal,
    text::{check_name, check_object, check_required, check_text},
    words::ExecutorType,
};

/// A kind of agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its word.
    pub id: String,
    /// How it is shown.
    pub name: String,
    /// Place in lists, the smallest first.
    pub position: i64,
    /// Whether it speaks MCP.
    pub supports_mcp: bool,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

/// What a writer may say of an agent profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProfileFields {
    /// Its name.
    pub name: String,
    /// Which model.
    pub model: String,
    /// In which mode; empty for the agent's own.
    pub mode: String,
    /// A profile of one workspace (office) is left out of the instance's list.
    pub workspace_id: Option<String>,
    /// Whether it may be chosen.
    pub enabled: bool,
    /// Everything else, as the agent's adapter wants it (`cli_flags`, `auto_approve`, …).
    pub settings: Map,
}

/// An agent profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProfile {
    /// A UUID of version 7.
    pub id: String,
    /// Of which agent.
    pub agent_id: String,
    /// The agent's name when the profile was saved.
    pub agent_display_name: String,
    /// The agent's place in lists.
    pub agent_position: i64,
    /// What a writer may say of it.
    #[serde(flatten)]
    pub fields: AgentProfileFields,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

impl AgentProfileFields {
    /// Checks the texts.
    pub fn checked(self) -> Result<Self, Refusal> {
        check_required("name", &self.name)?;
        check_name("model", &self.model)?;
        check_name("mode", &self.mode)?;
        check_object("settings", &self.settings)?;
        Ok(self)
    }
}

impl AgentProfile {
    /// What a session remembers of its profile, whatever becomes of that.
    pub fn snapshot(&self) -> Map {
        let mut snapshot = Map::new();
        for (key, value) in [
            ("id", &self.id),
            ("name", &self.fields.name),
            ("agent_id", &self.agent_id),
            ("agent_display_name", &self.agent_display_name),
            ("model", &self.fields.model),
            ("mode", &self.fields.mode),
        ] {
            snapshot.insert(key.to_owned(), value.as_str().into());
        }
        snapshot
    }
}

/// What a writer may say of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorFields {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub executor_type: ExecutorType,
    /// `active` or another word.
    pub status: String,
    /// Whether it came with the host.
    pub is_system: bool,
    /// Whether sessions survive in it.
    pub resumable: bool,
    /// Its own settings.
    pub config: Map,
}

/// An executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executor {
    /// A UUID of version 7.
    pub id: String,
    /// What a writer may say of it.
    #[serde(flatten)]
    pub fields: ExecutorFields,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

impl ExecutorFields {
    /// Checks the texts.
    pub fn checked(self) -> Result<Self, Refusal> {
        check_required("name", &self.name)?;
        check_name("status", &self.status)?;
        check_object("config", &self.config)?;
        Ok(self)
    }
}

/// What a writer may say of an executor profile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorProfileFields {
    /// Its name.
    pub name: String,
    /// Which MCP servers.
    pub mcp_policy: String,
    /// Its own settings.
    pub config: Map,
    /// Run before work.
    pub prepare_script: String,
    /// Run after work.
    pub cleanup_script: String,
}

/// An executor profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorProfile {
    /// A UUID of version 7.
    pub id: String,
    /// Of which executor; it may be gone.
    pub executor_id: String,
    /// The executor's type; none when that is gone.
    pub executor_type: Option<ExecutorType>,
    /// What a writer may say of it.
    #[serde(flatten)]
    pub fields: ExecutorProfileFields,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

impl ExecutorProfileFields {
    /// Checks the texts.
    pub fn checked(self) -> Result<Self, Refusal> {
        check_required("name", &self.name)?;
        check_name("mcp_policy", &self.mcp_policy)?;
        check_object("config", &self.config)?;
        check_text("prepare_script", &self.prepare_script)?;
        check_text("cleanup_script", &self.cleanup_script)?;
        Ok(self)
    }
}
