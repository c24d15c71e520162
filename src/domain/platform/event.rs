//! What is told when something of the platform changes: subjects and payloads of events.md.
//!
//! The envelope's workspace is always the thing's own, also where the payload has no `workspace_id` (better than
//! upstream, which fills it from the payload alone). Text of messages is sanitised and `raw_content` left out: whoever
//! subscribes is a plugin (host-data.md §11 row 9).

mod board;
mod whose;
mod work;

use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

pub use board::{agent_profile, executor, executor_profile, repository, step, workflow, workspace};
pub use whose::{Origin, origin};
pub use work::{
    commit, message, session_changed, session_created, snapshot, task, task_deleted, task_moved, task_state_changed,
    task_updated, turn_completed, turn_started,
};

use super::Map;

/// An event that waits to be written to the log.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Concrete subject.
    pub subject: String,
    /// Whose; empty when it is nobody's.
    pub workspace_id: String,
    /// The event's data.
    pub payload: Map,
}

/// What happened to a thing that is made, changed and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It is new.
    Created,
    /// It has changed.
    Updated,
    /// It is gone.
    Deleted,
}

impl Happened {
    /// Last segment of the subject.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }
}

fn event(subject: impl Into<String>, workspace_id: &str, payload: Value) -> NewEvent {
    let payload = match payload {
        Value::Object(payload) => payload,
        other => [("value".to_owned(), other)].into_iter().collect(),
    };
    NewEvent { subject: subject.into(), workspace_id: workspace_id.to_owned(), payload }
}

/// RFC 3339 with fractions, UTC.
fn time(at: OffsetDateTime) -> Value {
    at.format(&Rfc3339).map_or(Value::Null, Value::String)
}

fn maybe_time(at: Option<OffsetDateTime>) -> Value {
    at.map_or(Value::Null, time)
}

#[cfg(test)]
mod tests;
