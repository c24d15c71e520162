//! An event of the host's bus, as it is delivered to the plugin.

use kandev_proto::v1;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Result, json};

/// One event. An event that was not acknowledged comes again with the same id, before any later one.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Event {
    /// The same at each repetition.
    pub id: String,
    /// The whole subject: `task.created`, `shell.output.<session id>`.
    pub kind: String,
    /// RFC 3339, UTC, whole seconds: when the host published it.
    pub occurred_at: String,
    /// The workspace it belongs to; empty when it names none.
    pub workspace_id: String,
    /// A JSON object, or null when the event carries nothing. Whole numbers beyond 2^53 have lost precision.
    pub payload: Value,
}

impl Event {
    /// The payload as a type of yours; [`Code::InvalidArgument`](crate::Code::InvalidArgument) when it does not fit.
    ///
    /// ```
    /// # use kandev_plugin_sdk::Event;
    /// # #[derive(serde::Deserialize)]
    /// struct Created { title: String }
    ///
    /// let mut event = Event::default();
    /// event.payload = serde_json::json!({"title": "Fix the door", "state": "TODO"});
    /// assert_eq!(event.parse::<Created>()?.title, "Fix the door");
    /// # Ok::<(), kandev_plugin_sdk::Error>(())
    /// ```
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        json::parse("the event's payload", self.payload.clone())
    }
}

impl From<v1::Event> for Event {
    fn from(wire: v1::Event) -> Self {
        Self {
            id: wire.event_id,
            kind: wire.event_type,
            occurred_at: wire.occurred_at,
            workspace_id: wire.workspace_id,
            payload: json::to_value(wire.payload),
        }
    }
}
