//! Tools for agents (`agent_tools` of the manifest).

use kandev_proto::v1;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Result,
    json::{self, Object},
};

/// An agent's call of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The call's id.
    pub invocation_id: String,
    /// The tool's name in the manifest.
    pub name: String,
    /// The arguments, by the tool's input schema.
    pub arguments: Object,
    /// Where the agent works.
    pub context: ToolContext,
}

/// Where the agent works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolContext {
    /// Its task.
    pub task_id: String,
    /// Its session.
    pub session_id: String,
    /// Its workspace.
    pub workspace_id: String,
    /// `kanban-task` or `office-task`.
    pub surface: String,
}

impl ToolRequest {
    /// The arguments as a type of yours.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        json::parse("the tool's arguments", Value::Object(self.arguments.clone()))
    }
}

impl From<v1::AgentToolRequest> for ToolRequest {
    fn from(wire: v1::AgentToolRequest) -> Self {
        let context = wire.context.unwrap_or_default();
        let context = ToolContext {
            task_id: context.task_id,
            session_id: context.session_id,
            workspace_id: context.workspace_id,
            surface: context.surface,
        };
        Self { invocation_id: wire.invocation_id, name: wire.name, arguments: json::to_object(wire.arguments), context }
    }
}

/// A tool's answer: text and perhaps an object, 1 MiB together at most, within 30 s.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResponse {
    wire: v1::AgentToolResponse,
}

impl ToolResponse {
    /// Text for the agent; a blank one is an error to the host.
    ///
    /// ```
    /// # use kandev_plugin_sdk::ToolResponse;
    /// let answer = ToolResponse::text("12 degrees").with_structured(&serde_json::json!({"celsius": 12}))?;
    /// # Ok::<(), kandev_plugin_sdk::Error>(())
    /// ```
    pub fn text(text: impl Into<String>) -> Self {
        Self { wire: v1::AgentToolResponse { text: text.into(), structured_content: None, is_error: false } }
    }

    /// The tool failed, and the agent should read why.
    pub fn error(text: impl Into<String>) -> Self {
        Self { wire: v1::AgentToolResponse { text: text.into(), structured_content: None, is_error: true } }
    }

    /// The same with an object, which the host checks against the tool's output schema.
    pub fn with_structured(mut self, value: &impl Serialize) -> Result<Self> {
        self.wire.structured_content = json::to_struct("the tool's structured content", value)?;
        Ok(self)
    }
}

impl From<ToolResponse> for v1::AgentToolResponse {
    fn from(own: ToolResponse) -> Self {
        own.wire
    }
}
