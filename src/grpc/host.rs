//! The Host service: what a plugin may ask of the host, served to each plugin by an instance made for it.
//!
//! The plugin never says who it is; the instance knows. Handlers parse, ask a store or a handle, and map the reply;
//! what they may do at all was settled by the gate before.

mod config;
mod data;
mod events;
mod gate;
mod messages;
mod once;
mod profiles;
mod repositories;
mod secrets;
mod sessions;
mod state;
mod status;
mod table;
mod task_trees;
mod task_writes;
mod tasks;
mod wire;
mod workflows;
mod workspaces;

use std::{collections::BTreeSet, sync::Arc};

pub use events::EventSink;
use kandev_proto::v1::{
    self, DeleteSecretRequest, DeleteSecretResponse, DeleteStateRequest, DeleteStateResponse, EmitEventRequest,
    EmitEventResponse, GetConfigRequest, GetConfigResponse, GetSecretRequest, GetSecretResponse, GetStateRequest,
    GetStateResponse, ListStateRequest, ListStateResponse, RevealSecretRequest, RevealSecretResponse, SetSecretRequest,
    SetSecretResponse, SetStateRequest, SetStateResponse,
    host_server::{Host, HostServer},
};
use tonic::{Request, Response, Status, async_trait, service::Routes};

use self::{data::Data, secrets::Confidant};
use crate::{
    config::{Limits, Timing},
    domain::{id::PluginId, tenancy::Tenancy},
    platform::Platform,
    process::{Granted, HostServiceFactory},
    store::{plugin_config::PluginConfigs, plugin_state::StateStore},
    vault::Vault,
};

/// Makes the Host service of each plugin.
#[derive(Clone)]
pub struct HostServices {
    state: StateStore,
    configs: PluginConfigs,
    vault: Vault,
    platform: Platform,
    events: Arc<dyn EventSink>,
    bounds: gate::Bounds,
}

impl HostServices {
    /// A factory over the host's stores, services and the way into the event log.
    pub fn new(
        state: StateStore,
        configs: PluginConfigs,
        vault: Vault,
        platform: Platform,
        events: Arc<dyn EventSink>,
        timing: &Timing,
        limits: &Limits,
    ) -> Self {
        let Limits { host_calls: calls, message_bytes, .. } = *limits;
        let bounds = gate::Bounds { calls, timeout: timing.host_call_timeout, message_bytes };
        Self { state, configs, vault, platform, events, bounds }
    }
}

impl HostServiceFactory for HostServices {
    fn routes(&self, id: &PluginId, granted: &Granted, tenancy: &Tenancy) -> Routes {
        let service = HostService {
            plugin: id.clone(),
            state: self.state.under(tenancy),
            configs: self.configs.clone(),
            vault: self.vault.under(tenancy),
            tenancy: tenancy.clone(),
            secret_fields: granted.secret_fields.clone(),
            data: Data {
                platform: self.platform.clone(),
                plugin: id.clone(),
                providers: granted.providers.clone(),
                answer_bytes: self.bounds.message_bytes,
            },
            events: self.events.clone(),
        };
        let bytes = usize::try_from(self.bounds.message_bytes).unwrap_or(usize::MAX);
        let server = HostServer::new(service).max_decoding_message_size(bytes);
        Routes::new(gate::Gate::new(server, id.clone(), granted.capabilities, self.bounds))
    }
}

/// The service of one plugin.
struct HostService {
    plugin: PluginId,
    state: StateStore,
    configs: PluginConfigs,
    vault: Vault,
    tenancy: Tenancy,
    events: Arc<dyn EventSink>,
    secret_fields: BTreeSet<String>,
    data: Data,
}

impl HostService {
    /// What the plugin and its secrets have to do with each other, for one call.
    fn secrets(&self) -> Confidant<'_> {
        Confidant { vault: &self.vault, plugin: &self.plugin, known: self.tenancy.secrets() }
    }
}

type Reply<T> = Result<Response<T>, Status>;

/// Every method without a handler here is answered by the gate (`table::RULES`).
#[async_trait]
impl Host for HostService {
    async fn get_state(&self, request: Request<GetStateRequest>) -> Reply<GetStateResponse> {
        state::get(&self.state, &self.plugin, request.into_inner()).await.map(Response::new)
    }

    async fn set_state(&self, request: Request<SetStateRequest>) -> Reply<SetStateResponse> {
        state::set(&self.state, &self.plugin, request.into_inner()).await.map(Response::new)
    }

    async fn delete_state(&self, request: Request<DeleteStateRequest>) -> Reply<DeleteStateResponse> {
        state::delete(&self.state, &self.plugin, request.into_inner()).await.map(Response::new)
    }

    async fn list_state(&self, request: Request<ListStateRequest>) -> Reply<ListStateResponse> {
        state::list(&self.state, &self.plugin, request.into_inner()).await.map(Response::new)
    }

    async fn emit_event(&self, request: Request<EmitEventRequest>) -> Reply<EmitEventResponse> {
        let EmitEventRequest { event_name, payload } = request.into_inner();
        self.events.emit(&self.plugin, &event_name, payload).await.map_err(status::of_event)?;
        Ok(Response::new(EmitEventResponse {}))
    }

    async fn get_config(&self, _: Request<GetConfigRequest>) -> Reply<GetConfigResponse> {
        config::get(&self.configs, &self.secret_fields, self.secrets()).await.map(Response::new)
    }

    async fn get_secret(&self, request: Request<GetSecretRequest>) -> Reply<GetSecretResponse> {
        secrets::get(self.secrets(), request.into_inner()).await.map(Response::new)
    }

    async fn set_secret(&self, request: Request<SetSecretRequest>) -> Reply<SetSecretResponse> {
        secrets::set(self.secrets(), request.into_inner()).await.map(Response::new)
    }

    async fn delete_secret(&self, request: Request<DeleteSecretRequest>) -> Reply<DeleteSecretResponse> {
        secrets::delete(self.secrets(), request.into_inner()).await.map(Response::new)
    }

    async fn reveal_secret(&self, request: Request<RevealSecretRequest>) -> Reply<RevealSecretResponse> {
        secrets::reveal(self.secrets(), request.into_inner()).await.map(Response::new)
    }

    async fn list_tasks(&self, request: Request<v1::ListTasksRequest>) -> Reply<v1::ListTasksResponse> {
        tasks::list(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn get_task(&self, request: Request<v1::GetTaskRequest>) -> Reply<v1::GetTaskResponse> {
        tasks::get(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_workspaces(&self, request: Request<v1::ListWorkspacesRequest>) -> Reply<v1::ListWorkspacesResponse> {
        workspaces::list(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_workflows(&self, request: Request<v1::ListWorkflowsRequest>) -> Reply<v1::ListWorkflowsResponse> {
        workflows::list(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_workflow_steps(
        &self,
        request: Request<v1::ListWorkflowStepsRequest>,
    ) -> Reply<v1::ListWorkflowStepsResponse> {
        workflows::steps(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_agent_profiles(
        &self,
        request: Request<v1::ListAgentProfilesRequest>,
    ) -> Reply<v1::ListAgentProfilesResponse> {
        profiles::of_agents(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_executor_profiles(
        &self,
        request: Request<v1::ListExecutorProfilesRequest>,
    ) -> Reply<v1::ListExecutorProfilesResponse> {
        profiles::of_executors(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_repositories(
        &self,
        request: Request<v1::ListRepositoriesRequest>,
    ) -> Reply<v1::ListRepositoriesResponse> {
        repositories::list(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_sessions(&self, request: Request<v1::ListSessionsRequest>) -> Reply<v1::ListSessionsResponse> {
        sessions::list(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_session_code_stats(
        &self,
        request: Request<v1::ListSessionCodeStatsRequest>,
    ) -> Reply<v1::ListSessionCodeStatsResponse> {
        sessions::code_stats(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn list_messages(&self, request: Request<v1::ListMessagesRequest>) -> Reply<v1::ListMessagesResponse> {
        messages::list(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn create_task(&self, request: Request<v1::CreateTaskRequest>) -> Reply<v1::CreateTaskResponse> {
        task_writes::create(&self.data, request).await
    }

    async fn update_task(&self, request: Request<v1::UpdateTaskRequest>) -> Reply<v1::UpdateTaskResponse> {
        task_writes::update(&self.data, request).await.map(Response::new)
    }

    async fn preview_plugin_owned_task_tree(
        &self,
        request: Request<v1::PreviewPluginOwnedTaskTreeRequest>,
    ) -> Reply<v1::PreviewPluginOwnedTaskTreeResponse> {
        task_trees::preview(&self.data, request.into_inner()).await.map(Response::new)
    }

    async fn delete_plugin_owned_task_tree(
        &self,
        request: Request<v1::DeletePluginOwnedTaskTreeRequest>,
    ) -> Reply<v1::DeletePluginOwnedTaskTreeResponse> {
        task_trees::delete(&self.data, request.into_inner()).await.map(Response::new)
    }
}

#[cfg(test)]
mod tests;
