//! A host in memory: state and secrets are kept, lists have two pages of one item, every request is remembered.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use kandev_proto::v1::{self, host_server};
use prost_types::Struct;
use tonic::{Request, Response, Status};

type Answer<T> = Result<Response<T>, Status>;
type StateKey = (String, String, String);

#[derive(Clone, Default)]
pub struct MemoryHost {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    state: BTreeMap<StateKey, Option<Struct>>,
    secrets: BTreeMap<String, String>,
    requests: Vec<String>,
}

impl MemoryHost {
    fn with<T>(&self, request: &impl Debug, work: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.requests.push(format!("{request:?}"));
        work(&mut inner)
    }

    /// Whether this very request came.
    pub fn saw(&self, request: &impl Debug) -> bool {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.requests.contains(&format!("{request:?}"))
    }

    /// The keys of a state scope.
    pub fn keys(&self, scope: &str) -> Vec<String> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.state.keys().filter(|(found, ..)| found == scope).map(|(_, _, key)| key.clone()).collect()
    }
}

fn answer<T>(message: T) -> Answer<T> {
    Ok(Response::new(message))
}

/// A task that says what it is by its id.
pub fn task(id: &str) -> v1::Task {
    v1::Task { id: id.into(), title: format!("Task {id}"), ..Default::default() }
}

/// The page's one item, and what comes after: the cursor is the number of the item.
fn page<T>(page: Option<v1::Page>, item: impl FnOnce(&str) -> T) -> (Vec<T>, Option<v1::PageInfo>) {
    let page = page.expect("a list asks for a page");
    assert_eq!(page.limit, 200);
    let last = page.cursor == "2";
    let next_cursor = if last { String::new() } else { "2".to_owned() };
    (vec![item(if last { "2" } else { "1" })], Some(v1::PageInfo { next_cursor, has_more: !last }))
}

#[tonic::async_trait]
impl host_server::Host for MemoryHost {
    async fn get_state(&self, request: Request<v1::GetStateRequest>) -> Answer<v1::GetStateResponse> {
        let request = request.into_inner();
        let key = (request.scope.clone(), request.scope_id.clone(), request.key.clone());
        let found = self.with(&request, |inner| inner.state.get(&key).cloned());
        answer(v1::GetStateResponse { found: found.is_some(), value: found.flatten() })
    }

    async fn set_state(&self, request: Request<v1::SetStateRequest>) -> Answer<v1::SetStateResponse> {
        let request = request.into_inner();
        let key = (request.scope.clone(), request.scope_id.clone(), request.key.clone());
        self.with(&request, |inner| inner.state.insert(key, request.value.clone()));
        answer(v1::SetStateResponse {})
    }

    async fn delete_state(&self, request: Request<v1::DeleteStateRequest>) -> Answer<v1::DeleteStateResponse> {
        let request = request.into_inner();
        let key = (request.scope.clone(), request.scope_id.clone(), request.key.clone());
        self.with(&request, |inner| inner.state.remove(&key));
        answer(v1::DeleteStateResponse {})
    }

    async fn list_state(&self, request: Request<v1::ListStateRequest>) -> Answer<v1::ListStateResponse> {
        let request = request.into_inner();
        let entries = self.with(&request, |inner| {
            let of_scope = |key: &&StateKey| (&key.0, &key.1) == (&request.scope, &request.scope_id);
            let entry = |key: &StateKey| v1::StateEntry {
                key: key.2.clone(),
                value: inner.state[key].clone(),
                updated_at: "2026-01-01T00:00:00Z".into(),
            };
            inner.state.keys().filter(of_scope).map(entry).collect()
        });
        answer(v1::ListStateResponse { entries })
    }

    async fn get_secret(&self, request: Request<v1::GetSecretRequest>) -> Answer<v1::GetSecretResponse> {
        let request = request.into_inner();
        let found = self.with(&request, |inner| inner.secrets.get(&request.key).cloned());
        answer(v1::GetSecretResponse { found: found.is_some(), value: found.unwrap_or_default() })
    }

    async fn set_secret(&self, request: Request<v1::SetSecretRequest>) -> Answer<v1::SetSecretResponse> {
        let request = request.into_inner();
        self.with(&request, |inner| inner.secrets.insert(request.key.clone(), request.value.clone()));
        answer(v1::SetSecretResponse {})
    }

    async fn delete_secret(&self, request: Request<v1::DeleteSecretRequest>) -> Answer<v1::DeleteSecretResponse> {
        let request = request.into_inner();
        self.with(&request, |inner| inner.secrets.remove(&request.key));
        answer(v1::DeleteSecretResponse {})
    }

    async fn reveal_secret(&self, request: Request<v1::RevealSecretRequest>) -> Answer<v1::RevealSecretResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        answer(v1::RevealSecretResponse { value: format!("revealed {}", request.r#ref) })
    }

    async fn emit_event(&self, request: Request<v1::EmitEventRequest>) -> Answer<v1::EmitEventResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        answer(v1::EmitEventResponse {})
    }

    async fn get_config(&self, request: Request<v1::GetConfigRequest>) -> Answer<v1::GetConfigResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let config = serde_json::Map::from_iter([("interval_s".to_owned(), 60.into())]);
        answer(v1::GetConfigResponse { config: Some(kandev_proto::struct_from_json(config)) })
    }

    async fn invoke_utility_agent(
        &self,
        request: Request<v1::InvokeUtilityAgentRequest>,
    ) -> Answer<v1::InvokeUtilityAgentResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        answer(v1::InvokeUtilityAgentResponse { text: format!("answer to {}", request.prompt) })
    }

    async fn list_tasks(&self, request: Request<v1::ListTasksRequest>) -> Answer<v1::ListTasksResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (tasks, page_info) = page(request.page, task);
        answer(v1::ListTasksResponse { tasks, page_info })
    }

    async fn list_workspaces(&self, request: Request<v1::ListWorkspacesRequest>) -> Answer<v1::ListWorkspacesResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (workspaces, page_info) = page(request.page, |n| v1::Workspace { id: n.into(), ..Default::default() });
        answer(v1::ListWorkspacesResponse { workspaces, page_info })
    }

    async fn list_workflows(&self, request: Request<v1::ListWorkflowsRequest>) -> Answer<v1::ListWorkflowsResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (workflows, page_info) = page(request.page, |n| v1::Workflow {
            id: n.into(),
            workspace_id: request.workspace_id,
            ..Default::default()
        });
        answer(v1::ListWorkflowsResponse { workflows, page_info })
    }

    async fn list_agent_profiles(
        &self,
        request: Request<v1::ListAgentProfilesRequest>,
    ) -> Answer<v1::ListAgentProfilesResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (profiles, page_info) = page(request.page, |n| v1::AgentProfile { id: n.into(), ..Default::default() });
        answer(v1::ListAgentProfilesResponse { profiles, page_info })
    }

    async fn list_executor_profiles(
        &self,
        request: Request<v1::ListExecutorProfilesRequest>,
    ) -> Answer<v1::ListExecutorProfilesResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (profiles, page_info) = page(request.page, |n| v1::ExecutorProfile { id: n.into(), ..Default::default() });
        answer(v1::ListExecutorProfilesResponse { profiles, page_info })
    }

    async fn list_repositories(
        &self,
        request: Request<v1::ListRepositoriesRequest>,
    ) -> Answer<v1::ListRepositoriesResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (repositories, page_info) = page(request.page, |n| v1::Repository {
            id: n.into(),
            workspace_id: request.workspace_id,
            ..Default::default()
        });
        answer(v1::ListRepositoriesResponse { repositories, page_info })
    }

    async fn list_sessions(&self, request: Request<v1::ListSessionsRequest>) -> Answer<v1::ListSessionsResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (sessions, page_info) =
            page(request.page, |n| v1::Session { id: n.into(), ended_at: Some("then".into()), ..Default::default() });
        answer(v1::ListSessionsResponse { sessions, page_info })
    }

    async fn list_session_code_stats(
        &self,
        request: Request<v1::ListSessionCodeStatsRequest>,
    ) -> Answer<v1::ListSessionCodeStatsResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (stats, page_info) = page(request.page, |n| v1::SessionCodeStats {
            session_id: n.into(),
            lines_added_committed: 1 << 40,
            ..Default::default()
        });
        answer(v1::ListSessionCodeStatsResponse { stats, page_info })
    }

    async fn list_messages(&self, request: Request<v1::ListMessagesRequest>) -> Answer<v1::ListMessagesResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let (messages, page_info) =
            page(request.page, |n| v1::Message { id: n.into(), r#type: "message".into(), ..Default::default() });
        answer(v1::ListMessagesResponse { messages, page_info })
    }

    async fn list_workflow_steps(
        &self,
        request: Request<v1::ListWorkflowStepsRequest>,
    ) -> Answer<v1::ListWorkflowStepsResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let step = v1::WorkflowStep { id: "1".into(), workflow_id: request.workflow_id, ..Default::default() };
        answer(v1::ListWorkflowStepsResponse { steps: vec![step] })
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Answer<v1::GetTaskResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        if request.id == "none" {
            return Err(Status::not_found("task \"none\" not found"));
        }
        answer(v1::GetTaskResponse { task: Some(task(&request.id)) })
    }

    async fn create_task(&self, request: Request<v1::CreateTaskRequest>) -> Answer<v1::CreateTaskResponse> {
        let key =
            request.metadata().get("kandev-idempotency-key").map(|key| key.to_str().unwrap_or_default().to_owned());
        self.with(&key, |_| ());
        let request = request.into_inner();
        self.with(&request, |_| ());
        let made = v1::Task { parent_id: request.parent_id, metadata: request.metadata, ..task("t10") };
        answer(v1::CreateTaskResponse { task: Some(made) })
    }

    async fn update_task(&self, request: Request<v1::UpdateTaskRequest>) -> Answer<v1::UpdateTaskResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        let state = request.state.unwrap_or_default();
        answer(v1::UpdateTaskResponse { task: Some(v1::Task { state, ..task(&request.id) }) })
    }

    async fn send_message(&self, request: Request<v1::SendMessageRequest>) -> Answer<v1::SendMessageResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        answer(v1::SendMessageResponse { session_id: "s1".into(), status: "queued".into() })
    }

    async fn preview_plugin_owned_task_tree(
        &self,
        request: Request<v1::PreviewPluginOwnedTaskTreeRequest>,
    ) -> Answer<v1::PreviewPluginOwnedTaskTreeResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        answer(v1::PreviewPluginOwnedTaskTreeResponse { tasks: vec![task(&request.root_task_id)] })
    }

    async fn delete_plugin_owned_task_tree(
        &self,
        request: Request<v1::DeletePluginOwnedTaskTreeRequest>,
    ) -> Answer<v1::DeletePluginOwnedTaskTreeResponse> {
        let request = request.into_inner();
        self.with(&request, |_| ());
        answer(v1::DeletePluginOwnedTaskTreeResponse { deleted_task_ids: vec![request.root_task_id] })
    }
}
