//! Events about tasks, sessions, turns, messages and code (events.md §2–§4, §6).

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{
    super::{
        Map,
        message::Message,
        session::{Session, SessionSummary, Turn},
        stats::{Commit, Snapshot},
        task::Task,
        words::{SessionState, TaskState},
    },
    Happened, NewEvent, event, maybe_time, time,
};

/// The common payload of events about a task.
fn task_payload(task: &Task, sessions: &SessionSummary) -> Map {
    let repositories: Vec<_> = task
        .repositories
        .iter()
        .map(|repository| {
            json!({
                "id": repository.id,
                "task_id": task.id,
                "repository_id": repository.repository_id,
                "base_branch": repository.base_branch,
                "checkout_branch": repository.checkout_branch,
                "position": repository.position,
            })
        })
        .collect();
    let primary = sessions.primary.as_ref();
    let payload = json!({
        "task_id": task.id,
        "workspace_id": task.workspace_id,
        "workflow_id": task.workflow_id,
        "workflow_step_id": task.workflow_step_id.as_deref().unwrap_or_default(),
        "title": task.title,
        "description": task.description,
        "state": task.state,
        "priority": task.priority,
        "position": task.position,
        "wip_admitted": true,
        "created_at": time(task.created_at),
        "updated_at": time(task.updated_at),
        "is_ephemeral": task.is_ephemeral,
        "autopilot": false,
        "origin": task.origin,
        "auto_start_failed": false,
        "queued_for_step_id": "",
        "queued_at": null,
        "foreground_activity": null,
        "active_subagent_count": 0,
        "task_pending_action": null,
        "primary_session_id": primary.map(|primary| &primary.id),
        "primary_session_state": primary.map(|primary| primary.state),
        "primary_session_pending_action": null,
        "archived_at": maybe_time(task.archived_at),
        "repositories": repositories,
        "session_count": sessions.count,
    });
    let Value::Object(mut payload) = payload else { return Map::new() };
    let executor = primary.map(|primary| &primary.executor_id).filter(|id| !id.is_empty());
    let first = task.repositories.first().map(|repository| &repository.repository_id);
    for (key, value) in [
        ("parent_id", task.parent_id.as_deref().map(Value::from)),
        ("external_id", task.external_id.as_deref().map(Value::from)),
        ("repository_id", first.map(|id| id.as_str().into())),
        ("review_status", primary.and_then(|primary| primary.review_status).map(|status| status.as_str().into())),
        ("primary_executor_id", executor.map(|id| id.as_str().into())),
        ("identifier", (!task.identifier.is_empty()).then(|| task.identifier.as_str().into())),
        ("metadata", (!task.metadata.is_empty()).then(|| task.metadata.clone().into())),
    ] {
        if let Some(value) = value {
            payload.insert(key.to_owned(), value);
        }
    }
    payload
}

fn about_task(subject: &str, task: &Task, sessions: &SessionSummary, more: &[(&str, Value)]) -> NewEvent {
    let mut payload = task_payload(task, sessions);
    payload.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    NewEvent { subject: subject.to_owned(), workspace_id: task.workspace_id.clone(), payload }
}

/// `task.created`.
pub fn task(task: &Task) -> NewEvent {
    about_task("task.created", task, &SessionSummary::default(), &[])
}

/// `task.updated`; `old_workflow_id` when it changed board.
pub fn task_updated(task: &Task, sessions: &SessionSummary, old_workflow: Option<&str>) -> NewEvent {
    let old = old_workflow.map(|id| ("old_workflow_id", id.into()));
    about_task("task.updated", task, sessions, old.as_slice())
}

/// `task.state_changed`.
pub fn task_state_changed(task: &Task, sessions: &SessionSummary, old: TaskState) -> NewEvent {
    let states = [("old_state", old.as_str().into()), ("new_state", task.state.as_str().into())];
    about_task("task.state_changed", task, sessions, &states)
}

/// `task.deleted`.
pub fn task_deleted(task: &Task, sessions: &SessionSummary, reason: Option<&str>) -> NewEvent {
    let reason = reason.map(|reason| ("reason", reason.into()));
    about_task("task.deleted", task, sessions, reason.as_slice())
}

/// `task.moved`: from where to where it is now.
pub fn task_moved(task: &Task, sessions: &SessionSummary, from_workflow: &str, from_step: Option<&str>) -> NewEvent {
    let payload = json!({
        "task_id": task.id,
        "session_id": sessions.primary.as_ref().map_or("", |primary| &primary.id),
        "workflow_id": task.workflow_id,
        "from_workflow_id": from_workflow,
        "to_workflow_id": task.workflow_id,
        "from_step_id": from_step.unwrap_or_default(),
        "to_step_id": task.workflow_step_id.as_deref().unwrap_or_default(),
        "task_description": task.description,
        "parent_id": task.parent_id.as_deref().unwrap_or_default(),
        "assignee_agent_profile_id": "",
        "wip_admitted": true,
        "queued_for_step_id": "",
        "queue_promotion": false,
        "queued_at": null,
    });
    event("task.moved", &task.workspace_id, payload)
}

fn about_session(session: &Session, old: Option<SessionState>) -> NewEvent {
    let payload = json!({
        "task_id": session.task_id,
        "session_id": session.id,
        "new_state": session.state,
        "error_message": session.error_message,
        "agent_profile_id": session.agent_profile_id,
        "agent_profile_snapshot": session.agent_profile_snapshot,
        "execution_profile_id": "",
        "downstream_acp_session_id": session.acp_session_id(),
        "is_passthrough": false,
        "is_primary": session.is_primary,
        "foreground_activity": null,
        "active_subagent_count": 0,
        "supports_steering": false,
        "name": session.name,
        "updated_at": time(session.updated_at),
        "session_metadata": session.metadata,
    });
    let mut event = event("task_session.state_changed", &session.workspace_id, payload);
    if let Some(old) = old {
        event.payload.insert("old_state".to_owned(), old.as_str().into());
    }
    if let Some(status) = session.review_status {
        event.payload.insert("review_status".to_owned(), status.as_str().into());
    }
    event
}

/// `task_session.state_changed` of a new session: without `old_state`, with the task's step.
pub fn session_created(session: &Session, step: Option<&str>) -> NewEvent {
    let mut event = about_session(session, None);
    if let Some(step) = step {
        event.payload.insert("workflow_step_id".to_owned(), step.into());
    }
    event
}

/// `task_session.state_changed`: of its state, of being primary, of its review.
pub fn session_changed(session: &Session, old: SessionState) -> NewEvent {
    about_session(session, Some(old))
}

fn about_turn(subject: &str, workspace_id: &str, turn: &Turn) -> NewEvent {
    let payload = json!({
        "id": turn.id,
        "session_id": turn.session_id,
        "task_id": turn.task_id,
        "execution_profile_id": "",
        "route_generation": 0,
        "started_at": time(turn.started_at),
        "completed_at": maybe_time(turn.completed_at),
        "metadata": turn.metadata,
        "created_at": time(turn.created_at),
        "updated_at": time(turn.updated_at),
    });
    event(subject, workspace_id, payload)
}

/// `turn.started`.
pub fn turn_started(workspace_id: &str, turn: &Turn) -> NewEvent {
    about_turn("turn.started", workspace_id, turn)
}

/// `turn.completed`.
pub fn turn_completed(workspace_id: &str, turn: &Turn) -> NewEvent {
    about_turn("turn.completed", workspace_id, turn)
}

/// `message.added`, `message.updated`, `message.deleted`: the text sanitised, never as it was written.
pub fn message(happened: Happened, workspace_id: &str, message: &Message) -> NewEvent {
    let subject = match happened {
        Happened::Created => "message.added",
        Happened::Updated => "message.updated",
        Happened::Deleted => "message.deleted",
    };
    let mut metadata = message.metadata.clone();
    if message.hides_something() {
        metadata.insert("has_hidden_prompts".to_owned(), true.into());
    }
    let payload = json!({
        "message_id": message.id,
        "session_id": message.session_id,
        "task_id": message.task_id,
        "turn_id": message.turn_id,
        "author_type": message.author_type,
        "author_id": message.author_id,
        "content": message.content(),
        "type": message.message_type,
        "requests_input": message.requests_input,
        "created_at": time(message.created_at),
        "updated_at": time(message.updated_at),
        "metadata": metadata,
    });
    event(subject, workspace_id, payload)
}

fn about_git(session: &Session, kind: &str, key: &str, value: Value, at: OffsetDateTime) -> NewEvent {
    let payload = json!({
        "type": kind,
        "task_id": session.task_id,
        "session_id": session.id,
        "agent_id": "",
        "timestamp": time(at),
        key: value,
    });
    event(format!("git.event.{}", session.id), &session.workspace_id, payload)
}

/// `git.event.<session>` of a recorded commit.
pub fn commit(session: &Session, commit: &Commit) -> NewEvent {
    let fields = &commit.fields;
    let value = json!({
        "id": commit.id,
        "commit_sha": fields.commit_sha,
        "parent_sha": fields.parent_sha,
        "commit_message": fields.commit_message,
        "author_name": fields.author_name,
        "author_email": fields.author_email,
        "files_changed": fields.files_changed,
        "insertions": fields.insertions,
        "deletions": fields.deletions,
        "committed_at": time(commit.committed_at),
        "created_at": time(commit.created_at),
    });
    about_git(session, "commit_created", "commit", value, commit.created_at)
}

/// `git.event.<session>` of a recorded snapshot; the single files are left out.
pub fn snapshot(session: &Session, snapshot: &Snapshot) -> NewEvent {
    let value = json!({
        "id": snapshot.id,
        "branch": snapshot.fields.branch,
        "head_commit": snapshot.fields.head_commit,
        "file_count": snapshot.fields.files.len(),
        "additions": snapshot.additions,
        "deletions": snapshot.deletions,
        "created_at": time(snapshot.created_at),
    });
    about_git(session, "snapshot_created", "snapshot", value, snapshot.created_at)
}
