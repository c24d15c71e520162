//! Refusals of the platform: class to status, kind to code.

use actix_web::http::StatusCode;
use serde_json::json;

use super::{Described, describe_fault, plain};
use crate::{
    domain::platform::refusal::{Class, Kind, Refusal},
    platform::PlatformError,
};

pub(super) fn describe(error: &PlatformError) -> Described {
    match error {
        PlatformError::Refused(refusal) => describe_refusal(refusal),
        PlatformError::Database(fault) => describe_fault(fault),
    }
}

pub(super) fn describe_refusal(refusal: &Refusal) -> Described {
    let status = match refusal.class() {
        Class::Invalid => StatusCode::BAD_REQUEST,
        Class::NotFound => StatusCode::NOT_FOUND,
        Class::Stale => StatusCode::PRECONDITION_FAILED,
        Class::Conflict => StatusCode::CONFLICT,
        Class::Forbidden => StatusCode::FORBIDDEN,
        Class::Gone => StatusCode::GONE,
    };
    let described = plain(status, code(refusal), refusal);
    match refusal {
        Refusal::Stale { expected, found, .. } => described.with_details(json!({"expected": expected, "found": found})),
        Refusal::CursorExpired { oldest } => described.with_details(json!({"oldest": oldest})),
        _ => described,
    }
}

/// What a program can tell apart.
fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NotFound { kind, .. } => not_found(*kind),
        Refusal::BadCursor => "invalid_cursor",
        Refusal::NotConfirmed => "not_confirmed",
        Refusal::NotEmpty { .. } => "not_empty",
        Refusal::BeingDeleted(_) => "workspace_being_deleted",
        Refusal::SessionOver(_) => "session_over",
        Refusal::KeyReused => "idempotency_key_reused",
        Refusal::MixedTree => "mixed_tree",
        Refusal::TooLarge { .. } | Refusal::TooMany { .. } | Refusal::TooManyTasks { .. } | Refusal::TooDeep { .. } => {
            "field_too_large"
        }
        _ => match refusal.class() {
            Class::Stale => "version_mismatch",
            Class::Forbidden => "forbidden",
            Class::Gone => "cursor_expired",
            Class::Conflict => "conflict",
            Class::NotFound => "not_found",
            Class::Invalid => "invalid_field",
        },
    }
}

fn not_found(kind: Kind) -> &'static str {
    match kind {
        Kind::Workspace => "workspace_not_found",
        Kind::Workflow => "workflow_not_found",
        Kind::WorkflowStep => "workflow_step_not_found",
        Kind::WorkflowTemplate => "workflow_template_not_found",
        Kind::Repository => "repository_not_found",
        Kind::Agent => "agent_not_found",
        Kind::AgentProfile => "agent_profile_not_found",
        Kind::Executor => "executor_not_found",
        Kind::ExecutorProfile => "executor_profile_not_found",
        Kind::Task => "task_not_found",
        Kind::Session => "session_not_found",
        Kind::Turn => "turn_not_found",
        Kind::Message => "message_not_found",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::db::DbFault;

    fn shown(error: &PlatformError) -> (u16, &'static str) {
        let described = describe(error);
        (described.status.as_u16(), described.code)
    }

    #[test]
    fn each_class_has_its_status_and_a_code() {
        let stale = Refusal::Stale { kind: Kind::Task, id: "t".to_owned(), expected: 1, found: 2 };
        for (refusal, expected) in [
            (Refusal::not_found(Kind::Task, "t"), (404, "task_not_found")),
            (stale.clone(), (412, "version_mismatch")),
            (Refusal::KeyReused, (409, "idempotency_key_reused")),
            (Refusal::ForeignTree, (403, "forbidden")),
            (Refusal::TitleTooLong, (400, "invalid_field")),
            (Refusal::BadCursor, (400, "invalid_cursor")),
            (Refusal::CursorExpired { oldest: "c".to_owned() }, (410, "cursor_expired")),
        ] {
            assert_eq!(shown(&refusal.into()), expected);
        }
        assert_eq!(describe(&stale.into()).details, json!({"expected": 1, "found": 2}));
        let expired = Refusal::CursorExpired { oldest: "c".to_owned() };
        assert_eq!(describe(&expired.into()).details, json!({"oldest": "c"}));
    }

    #[test]
    fn a_database_that_is_away_is_503_rows_in_the_way_are_409_and_its_own_fault_500() {
        assert_eq!(shown(&DbFault::Lost("x".to_owned()).into()), (503, "database_unavailable"));
        assert_eq!(shown(&DbFault::Conflict("x".to_owned()).into()), (409, "conflict"));
        assert_eq!(shown(&DbFault::Statement("x".to_owned()).into()), (500, "internal"));
    }
}
