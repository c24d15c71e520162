//! What an event's payload says about whose the event is, for one whose envelope is empty (events.md §1).

use serde_json::Value;

use crate::domain::platform::{Map, text::may_be_id};

/// Ids from which an event's workspace follows, the first that leads to one.
///
/// Upstream takes the payload's `workspace_id` alone; the two others are better than that: what belongs to a task or a
/// session belongs to its workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The payload's `workspace_id`.
    pub workspace_id: Option<&'a str>,
    /// Its `task_id`.
    pub task_id: Option<&'a str>,
    /// Its `session_id`.
    pub session_id: Option<&'a str>,
}

/// What the payload says. An id that no row may have is none: it would reach the database as text.
pub fn origin(payload: &Map) -> Origin<'_> {
    let id = |key: &str| payload.get(key).and_then(Value::as_str).filter(|id| may_be_id(id));
    Origin { workspace_id: id("workspace_id"), task_id: id("task_id"), session_id: id("session_id") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_texts_that_a_row_may_have() {
        let payload = json!({"workspace_id": "w", "task_id": "t", "session_id": "s", "id": "x"});
        let all = Origin { workspace_id: Some("w"), task_id: Some("t"), session_id: Some("s") };
        assert_eq!(origin(payload.as_object().unwrap()), all);
        let payload = json!({"workspace_id": "a\u{0}b", "task_id": 7, "session_id": "x".repeat(129)});
        assert_eq!(origin(payload.as_object().unwrap()), Origin::default());
        assert_eq!(origin(json!({"workspace_id": ""}).as_object().unwrap()), Origin::default());
    }
}
