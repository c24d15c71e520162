//! Shapes of tasks: what a client sends and sees (platform-rest.md §5).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{filled, given, unsupported};
use crate::domain::platform::{
    Map,
    refusal::Refusal,
    repository::RemoteRepository,
    session::{PrimarySession, SessionSummary},
    task::{Launch, NewTask, RepositoryDraft, RepositoryRef, Task, TaskPatch, TaskRepository},
    words::{Origin, PlanMode, Priority, ReviewStatus, SessionState, TaskState},
};

/// A repository that a task is to work on: one of the workspace by its id, or one of a provider, which is added to the
/// workspace unless it is there.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryBody {
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    repository_id: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    base_branch: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    checkout_branch: String,
    pr_number: Option<i64>,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    provider: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    provider_host: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    provider_scope: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    provider_owner: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    provider_repo_id: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    provider_name: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    name: String,
    /// https, without user, at the provider's host.
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    remote_url: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    default_branch: String,
    #[schema(ignore)]
    local_path: Option<Value>,
    #[schema(ignore)]
    github_url: Option<Value>,
}

impl RepositoryBody {
    fn draft(self) -> Result<RepositoryDraft, Refusal> {
        unsupported("local_path", self.local_path.as_ref())?;
        unsupported("github_url", self.github_url.as_ref())?;
        let name = if self.provider_name.is_empty() { self.name } else { self.provider_name };
        let remote = (!self.provider.is_empty() || !self.remote_url.is_empty()).then(|| RemoteRepository {
            provider_id: self.provider,
            provider_host: self.provider_host,
            provider_scope: self.provider_scope,
            owner_or_project: self.provider_owner,
            provider_repository_id: self.provider_repo_id,
            name,
            clone_url: self.remote_url,
            default_branch: given(&self.default_branch),
        });
        Ok(RepositoryDraft {
            repository: RepositoryRef::of(&self.repository_id, remote)?,
            base_branch: self.base_branch,
            checkout_branch: self.checkout_branch,
            pull_request_number: self.pr_number,
        })
    }
}

fn drafts(bodies: Vec<RepositoryBody>) -> Result<Vec<RepositoryDraft>, Refusal> {
    bodies.into_iter().map(RepositoryBody::draft).collect()
}

/// A task to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTaskBody {
    /// Left out: the only workspace.
    workspace_id: Option<String>,
    /// Left out: the first that is not hidden.
    workflow_id: Option<String>,
    /// Left out: the start step.
    workflow_step_id: Option<String>,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    #[schema(required, min_length = 1, max_length = 60, pattern = "\\S")]
    title: String,
    #[schema(max_length = 262144)]
    description: Option<String>,
    priority: Option<Priority>,
    state: Option<TaskState>,
    /// Left out for a part of a task: what that works on.
    #[schema(max_items = 100)]
    repositories: Option<Vec<RepositoryBody>>,
    position: Option<i64>,
    /// `source` is the host's own.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    parent_id: Option<String>,
    /// A task of this workspace with the same one is answered instead of made again.
    external_id: Option<String>,
    origin: Option<Origin>,
    is_ephemeral: Option<bool>,
    plan_mode: Option<bool>,
    /// Needs `agent_profile_id`. No agent runtime is connected to this host yet: the task is made and `notice` says so.
    start_agent: Option<bool>,
    agent_profile_id: Option<String>,
    executor_profile_id: Option<String>,
    #[schema(ignore)]
    executor_id: Option<Value>,
    #[schema(ignore)]
    prepare_session: Option<Value>,
    #[schema(ignore)]
    attachments: Option<Value>,
    #[schema(ignore)]
    blocked_by: Option<Value>,
    #[schema(ignore)]
    labels: Option<Value>,
}

impl NewTaskBody {
    /// The task to be made.
    pub fn new_task(self) -> Result<NewTask, Refusal> {
        for (field, value) in [
            ("executor_id", &self.executor_id),
            ("prepare_session", &self.prepare_session),
            ("attachments", &self.attachments),
            ("blocked_by", &self.blocked_by),
            ("labels", &self.labels),
        ] {
            unsupported(field, value.as_ref())?;
        }
        let launch = match self.start_agent.unwrap_or_default() {
            false => None,
            true => Some(Launch {
                agent_profile_id: self
                    .agent_profile_id
                    .filter(|id| !id.is_empty())
                    .ok_or(Refusal::Required("agent_profile_id"))?,
                executor_profile_id: self.executor_profile_id.unwrap_or_default(),
                prompt: String::new(),
            }),
        };
        Ok(NewTask {
            workspace_id: self.workspace_id.unwrap_or_default(),
            workflow_id: self.workflow_id.unwrap_or_default(),
            workflow_step_id: self.workflow_step_id.unwrap_or_default(),
            title: self.title,
            description: self.description.unwrap_or_default(),
            state: self.state,
            priority: self.priority,
            origin: self.origin,
            position: self.position.unwrap_or_default(),
            parent_id: self.parent_id.unwrap_or_default(),
            external_id: self.external_id.unwrap_or_default(),
            is_ephemeral: self.is_ephemeral.unwrap_or_default(),
            repositories: drafts(self.repositories.unwrap_or_default())?,
            metadata: self.metadata.unwrap_or_default(),
            plan_mode: self.plan_mode.unwrap_or_default().then_some(PlanMode::On),
            launch,
        })
    }
}

/// What changes of a task; what is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    #[schema(max_length = 60)]
    title: Option<String>,
    #[schema(max_length = 262144)]
    description: Option<String>,
    priority: Option<Priority>,
    state: Option<TaskState>,
    /// Another step of its workflow.
    workflow_step_id: Option<String>,
    /// Replaces all of them.
    #[schema(max_items = 100)]
    repositories: Option<Vec<RepositoryBody>>,
    position: Option<i64>,
    /// Replaces all of it, but for its `source`.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// Empty makes it a task of its own.
    parent_id: Option<String>,
}

impl TaskBody {
    /// The change.
    pub fn patch(self) -> Result<TaskPatch, Refusal> {
        Ok(TaskPatch {
            title: self.title,
            description: self.description,
            state: self.state,
            priority: self.priority,
            workflow_step_id: self.workflow_step_id,
            position: self.position,
            metadata: self.metadata,
            parent_id: self.parent_id,
            repositories: self.repositories.map(drafts).transpose()?,
        })
    }
}

/// A repository that a task works on.
#[derive(Debug, Serialize, ToSchema)]
struct TaskRepositoryView {
    id: String,
    task_id: String,
    repository_id: String,
    base_branch: String,
    checkout_branch: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pr_number: Option<i64>,
    position: i64,
}

impl TaskRepositoryView {
    fn new(task_id: &str, repository: TaskRepository) -> Self {
        Self {
            id: repository.id,
            task_id: task_id.to_owned(),
            repository_id: repository.repository_id,
            base_branch: repository.base_branch,
            checkout_branch: repository.checkout_branch,
            pr_number: repository.pull_request_number,
            position: repository.position,
        }
    }
}

/// A task.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskView {
    id: String,
    workspace_id: String,
    workflow_id: String,
    /// Empty on a board without steps.
    workflow_step_id: String,
    title: String,
    description: String,
    state: TaskState,
    priority: Priority,
    position: i64,
    /// Always true: this host bounds no step.
    wip_admitted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repositories: Vec<TaskRepositoryView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_session_state: Option<SessionState>,
    primary_session_pending_action: Option<String>,
    task_pending_action: Option<String>,
    session_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_status: Option<ReviewStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_executor_id: Option<String>,
    active_subagent_count: i64,
    autopilot: bool,
    is_ephemeral: bool,
    origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identifier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    archived_at: Option<OffsetDateTime>,
    /// First in progress.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    started_at: Option<OffsetDateTime>,
    /// In its final state since.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    completed_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl TaskView {
    /// A task with what it shows of its sessions.
    pub fn new(task: Task, sessions: SessionSummary) -> Self {
        let SessionSummary { count, primary } = sessions;
        let (session_id, session_state, review_status, executor_id) = match primary {
            Some(PrimarySession { id, state, review_status, executor_id }) => {
                (Some(id), Some(state), review_status, given(&executor_id))
            }
            None => (None, None, None, None),
        };
        let repositories = task.repositories.into_iter().map(|each| TaskRepositoryView::new(&task.id, each)).collect();
        Self {
            repositories,
            metadata: filled(&task.metadata),
            identifier: given(&task.identifier),
            id: task.id,
            workspace_id: task.workspace_id,
            workflow_id: task.workflow_id,
            workflow_step_id: task.workflow_step_id.unwrap_or_default(),
            title: task.title,
            description: task.description,
            state: task.state,
            priority: task.priority,
            position: task.position,
            wip_admitted: true,
            primary_session_id: session_id,
            primary_session_state: session_state,
            primary_session_pending_action: None,
            task_pending_action: None,
            session_count: count,
            review_status,
            primary_executor_id: executor_id,
            active_subagent_count: 0,
            autopilot: false,
            is_ephemeral: task.is_ephemeral,
            origin: task.origin,
            parent_id: task.parent_id,
            external_id: task.external_id,
            archived_at: task.archived_at,
            started_at: task.started_at,
            completed_at: task.completed_at,
            created_at: task.created_at,
            updated_at: task.updated_at,
            version: task.version,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn new_task(body: Value) -> Result<NewTask, String> {
        let body: NewTaskBody = serde_json::from_value(body).map_err(|error| error.to_string())?;
        body.new_task().map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn every_field_of_a_new_task_is_taken() {
        let new = new_task(json!({
            "workspace_id": "w", "workflow_id": "f", "workflow_step_id": "s", "title": "t", "description": "d",
            "priority": "high", "state": "TODO", "position": 3, "metadata": {"a": 1}, "parent_id": "p",
            "external_id": "e", "origin": "routine", "is_ephemeral": true, "plan_mode": true, "start_agent": true,
            "agent_profile_id": "a", "executor_profile_id": "x",
            "repositories": [{"repository_id": "r", "base_branch": "main", "checkout_branch": "c", "pr_number": 7}],
        }))
        .unwrap();
        let expected = NewTask {
            workspace_id: "w".to_owned(),
            workflow_id: "f".to_owned(),
            workflow_step_id: "s".to_owned(),
            title: "t".to_owned(),
            description: "d".to_owned(),
            state: Some(TaskState::Todo),
            priority: Some(Priority::High),
            origin: Some(Origin::Routine),
            position: 3,
            parent_id: "p".to_owned(),
            external_id: "e".to_owned(),
            is_ephemeral: true,
            repositories: vec![RepositoryDraft {
                repository: RepositoryRef::Known("r".to_owned()),
                base_branch: "main".to_owned(),
                checkout_branch: "c".to_owned(),
                pull_request_number: Some(7),
            }],
            metadata: json!({"a": 1}).as_object().cloned().unwrap(),
            plan_mode: Some(PlanMode::On),
            launch: Some(Launch {
                agent_profile_id: "a".to_owned(),
                executor_profile_id: "x".to_owned(),
                prompt: String::new(),
            }),
        };
        assert_eq!(new, expected);
    }

    #[test]
    fn an_agent_needs_its_profile() {
        for body in [
            json!({"title": "t", "start_agent": true}),
            json!({"title": "t", "start_agent": true, "agent_profile_id": ""}),
        ] {
            assert_eq!(new_task(body).unwrap_err(), "agent_profile_id is required");
        }
    }

    #[test]
    fn what_is_not_kept_is_refused_unless_it_says_nothing() {
        for (field, value) in [
            ("labels", json!(["a"])),
            ("blocked_by", json!(["t"])),
            ("attachments", json!([{}])),
            ("executor_id", json!("x")),
        ] {
            let error = new_task(json!({"title": "t", field: value})).unwrap_err();
            assert_eq!(error, format!("{field} is not kept by this host; leave it out or empty"));
        }
        let empty =
            json!({"title": "t", "labels": [], "blocked_by": null, "executor_id": "", "prepare_session": false});
        assert!(new_task(empty).is_ok());
        assert!(new_task(json!({"title": "t", "titel": "t"})).unwrap_err().contains("unknown field `titel`"));
    }

    #[test]
    fn a_remote_repository_is_described_by_its_provider() {
        let remote = json!({"provider": "forge", "provider_host": "forge.test", "provider_owner": "o", "name": "app",
            "provider_repo_id": "1", "remote_url": "https://forge.test/o/app.git"});
        let new = new_task(json!({"title": "t", "repositories": [remote]})).unwrap();
        let RepositoryRef::Remote(found) = &new.repositories[0].repository else { panic!("not remote") };
        assert_eq!((found.name.as_str(), found.owner_or_project.as_str()), ("app", "o"));
        let error = new_task(json!({"title": "t", "repositories": [{}]})).unwrap_err();
        assert_eq!(error, "repository_id or remote descriptor is required");
    }
}
