//! Payloads against the keys of events.md.

use std::collections::BTreeSet;

use time::macros::datetime;

use super::*;
use crate::domain::platform::{
    message::Message,
    session::{PrimarySession, SessionSummary},
    task::{Task, TaskRepository},
    words::{AuthorType, MessageType, Origin, Priority, SessionState, TaskState},
};

const AT: OffsetDateTime = datetime!(2026-11-29 12:00:00.25 UTC);

fn keys(event: &NewEvent) -> BTreeSet<&str> {
    event.payload.keys().map(String::as_str).collect()
}

fn a_task() -> Task {
    Task {
        id: "t".to_owned(),
        workspace_id: "w".to_owned(),
        workflow_id: "f".to_owned(),
        workflow_step_id: Some("b".to_owned()),
        title: "x".to_owned(),
        description: "d".to_owned(),
        state: TaskState::Review,
        priority: Priority::Medium,
        origin: Origin::Manual,
        position: 3,
        identifier: String::new(),
        external_id: None,
        parent_id: None,
        is_ephemeral: false,
        archived_at: None,
        started_at: None,
        completed_at: None,
        metadata: Map::new(),
        repositories: Vec::new(),
        created_at: AT,
        updated_at: AT,
        version: 1,
    }
}

const TASK_KEYS: &str = "task_id workspace_id workflow_id workflow_step_id title description state priority position \
    wip_admitted created_at updated_at is_ephemeral autopilot origin auto_start_failed queued_for_step_id queued_at \
    foreground_activity active_subagent_count task_pending_action primary_session_id primary_session_state \
    primary_session_pending_action archived_at repositories session_count";

#[test]
fn an_event_about_a_task_has_the_contracts_keys() {
    let created = task(&a_task());
    assert_eq!((created.subject.as_str(), created.workspace_id.as_str()), ("task.created", "w"));
    assert_eq!(keys(&created), TASK_KEYS.split_whitespace().collect());
    assert_eq!(created.payload["created_at"], "2026-11-29T12:00:00.25Z");
    let repository = TaskRepository {
        id: "tr".to_owned(),
        repository_id: "r".to_owned(),
        base_branch: "main".to_owned(),
        checkout_branch: String::new(),
        pull_request_number: None,
        position: 0,
    };
    let whole = Task {
        repositories: vec![repository],
        parent_id: Some("p".to_owned()),
        external_id: Some("e".to_owned()),
        metadata: [("a".to_owned(), 1.into())].into_iter().collect(),
        ..a_task()
    };
    let primary = PrimarySession {
        id: "s".to_owned(),
        state: SessionState::Running,
        review_status: None,
        executor_id: String::new(),
    };
    let changed = task_state_changed(&whole, &SessionSummary { count: 2, primary: Some(primary) }, TaskState::Todo);
    let more = " parent_id external_id repository_id metadata old_state new_state";
    assert_eq!(keys(&changed), format!("{TASK_KEYS}{more}").split_whitespace().collect());
    let states =
        [&changed.payload["old_state"], &changed.payload["new_state"], &changed.payload["primary_session_state"]];
    assert_eq!(states, ["TODO", "REVIEW", "RUNNING"]);
}

#[test]
fn a_move_tells_from_where_to_where_and_its_envelope_the_workspace() {
    let moved = task_moved(&a_task(), &SessionSummary::default(), "g", None);
    let expected = "task_id session_id workflow_id from_workflow_id to_workflow_id from_step_id to_step_id \
        task_description parent_id assignee_agent_profile_id wip_admitted queued_for_step_id queue_promotion queued_at";
    assert_eq!(keys(&moved), expected.split_whitespace().collect());
    assert_eq!((moved.workspace_id.as_str(), &moved.payload["from_workflow_id"]), ("w", &"g".into()));
}

#[test]
fn a_message_never_tells_what_is_for_agents_only() {
    let mut hidden = Message {
        id: "m".to_owned(),
        session_id: "s".to_owned(),
        task_id: "t".to_owned(),
        turn_id: "u".to_owned(),
        author_type: AuthorType::User,
        author_id: String::new(),
        message_type: MessageType::Message,
        raw_content: "<kandev-system>secret</kandev-system> hello".to_owned(),
        requests_input: false,
        metadata: Map::new(),
        created_at: AT,
        updated_at: AT,
        version: 1,
    };
    for (happened, subject) in [
        (Happened::Created, "message.added"),
        (Happened::Updated, "message.updated"),
        (Happened::Deleted, "message.deleted"),
    ] {
        let event = message(happened, "w", &hidden);
        assert_eq!((event.subject.as_str(), event.workspace_id.as_str()), (subject, "w"));
        assert_eq!(
            (&event.payload["content"], &event.payload["metadata"]["has_hidden_prompts"]),
            (&"hello".into(), &true.into())
        );
        assert!(!Value::from(event.payload).to_string().contains("secret"));
    }
    hidden.raw_content = "plain".to_owned();
    assert_eq!(message(Happened::Created, "w", &hidden).payload["metadata"], serde_json::json!({}));
}
