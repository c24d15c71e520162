//! The part of the map that is about calls of users and agents into plugins: actions and tools.

use actix_web::http::StatusCode;

use super::{Described, plain, plugins, trouble};
use crate::{
    actors::ToolError,
    domain::{
        calls::{answer::AnswerFault, envelope::EnvelopeError, place::Misplaced, tool::ResultFault},
        config_schema::Violation,
        redaction,
    },
    grpc::client::CallError,
    http::actions::ActionError,
    platform::context::PlaceError,
    store::db::DbFault,
};

pub(super) fn action(error: &ActionError) -> Described {
    match error {
        ActionError::NotActive => plain(StatusCode::SERVICE_UNAVAILABLE, "plugin_not_running", "plugin is not active"),
        ActionError::Unknown => plain(StatusCode::NOT_FOUND, "action_not_found", "plugin action not found"),
        ActionError::TooLarge => {
            let text = "plugin action request exceeds maximum size";
            plain(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
        }
        ActionError::Envelope(error @ EnvelopeError::Malformed) => {
            plain(StatusCode::BAD_REQUEST, "invalid_payload", error)
        }
        ActionError::Envelope(error @ EnvelopeError::BodyTooLarge) => {
            plain(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", error)
        }
        ActionError::Place(error) => place("action", error),
        ActionError::Call(id, error) => {
            let described = match error {
                CallError::TimedOut(_) => {
                    plain(StatusCode::GATEWAY_TIMEOUT, "action_timeout", "plugin action timed out")
                }
                CallError::Disconnected | CallError::Refused { .. } => {
                    plain(StatusCode::SERVICE_UNAVAILABLE, "action_failed", "plugin action unavailable")
                }
                CallError::TooLarge(_) => {
                    plain(StatusCode::BAD_GATEWAY, "invalid_action_answer", AnswerFault::TooLarge)
                }
            };
            described.with_note(noted(id, error))
        }
        ActionError::Answer(id, fault) => {
            plain(StatusCode::BAD_GATEWAY, "invalid_action_answer", fault).with_note(format!("from plugin \"{id}\""))
        }
    }
}

/// The plugin's text may hold what it should not tell (field case 57).
pub(super) fn noted(id: &impl std::fmt::Display, error: &CallError) -> String {
    redaction::diagnostic(format!("plugin \"{id}\": {error}"), "")
}

/// `call` is what was to be made there.
pub(super) fn place(call: &str, error: &PlaceError) -> Described {
    match error {
        PlaceError::Misplaced(misplaced) => {
            let (status, code) = match misplaced {
                Misplaced::OnlyWorkspace
                | Misplaced::TaskMissing
                | Misplaced::OtherWorkspace
                | Misplaced::OnlyRepository => (StatusCode::BAD_REQUEST, "invalid_action_context"),
                Misplaced::NoWorkspace => (StatusCode::NOT_FOUND, "workspace_not_found"),
                Misplaced::NoTask => (StatusCode::NOT_FOUND, "task_not_found"),
                Misplaced::NoRepository => (StatusCode::NOT_FOUND, "repository_not_found"),
                Misplaced::NoSession => (StatusCode::NOT_FOUND, "session_not_found"),
                Misplaced::NoCheckout => (StatusCode::NOT_FOUND, "checkout_not_found"),
            };
            plain(status, code, misplaced)
        }
        PlaceError::Database(fault @ (DbFault::Statement(_) | DbFault::Conflict(_))) => trouble(fault),
        PlaceError::Database(fault @ (DbFault::Lost(_) | DbFault::Unavailable(_))) => {
            let text = format!("plugin {call} authorization unavailable");
            plain(StatusCode::SERVICE_UNAVAILABLE, "database_unavailable", text).with_note(fault.to_string())
        }
    }
}

pub(super) fn tool(error: &ToolError) -> Described {
    match error {
        ToolError::Registry(error) => plugins::registry(error),
        ToolError::NoTool { .. } => plain(StatusCode::NOT_FOUND, "tool_not_found", error),
        ToolError::NotOffered { .. } => plain(StatusCode::BAD_REQUEST, "tool_not_offered", error),
        ToolError::Arguments { .. } => plain(StatusCode::BAD_REQUEST, "invalid_arguments", error),
        ToolError::Unusable { .. } => plain(StatusCode::BAD_GATEWAY, "tool_unusable", error),
        ToolError::Refused(id, refused) => plugins::refusal(id, refused),
        ToolError::Call(id, call) => {
            let described = match call {
                CallError::TimedOut(_) => {
                    let text = format!("plugin \"{id}\" did not answer the tool call in time");
                    plain(StatusCode::GATEWAY_TIMEOUT, "tool_timeout", text)
                }
                CallError::Disconnected | CallError::Refused { .. } => {
                    let text = format!("plugin \"{id}\" failed to call the tool");
                    plain(StatusCode::SERVICE_UNAVAILABLE, "tool_failed", text)
                }
                CallError::TooLarge(_) => {
                    let text = format!("plugin \"{id}\": the tool {}", ResultFault::TooLarge);
                    plain(StatusCode::BAD_GATEWAY, "invalid_tool_result", text)
                }
            };
            described.with_note(noted(id, call))
        }
        ToolError::Result { .. } => plain(StatusCode::BAD_GATEWAY, "invalid_tool_result", error),
        ToolError::Lost(error) => trouble(error),
    }
}

/// What is wrong, place by place: with the caller's arguments, or with the plugin's result.
pub(super) fn violations(error: &ToolError) -> &[Violation] {
    match error {
        ToolError::Arguments { violations, .. } => violations,
        ToolError::Result { fault: ResultFault::Schema(violations), .. } => violations,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::PluginId;

    #[test]
    fn an_answer_that_was_too_large_to_read_is_told_as_one_that_was_read() {
        let acme = || PluginId::new("acme").unwrap();
        let shown = |described: Described| (described.status.as_u16(), described.code, described.text);
        let unread = shown(action(&ActionError::Call(acme(), CallError::TooLarge(17 << 20))));
        assert_eq!(unread, shown(action(&ActionError::Answer(acme(), AnswerFault::TooLarge))));
        let text = "plugin action response exceeds maximum size".to_owned();
        assert_eq!(unread, (502, "invalid_action_answer", text));
        let text = "plugin \"acme\": the tool returned more than 1048576 bytes".to_owned();
        let unread = shown(tool(&ToolError::Call(acme(), CallError::TooLarge(17 << 20))));
        assert_eq!(unread, (502, "invalid_tool_result", text));
    }
}
