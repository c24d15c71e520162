//! The Host service: what a plugin may ask of the host, served to each plugin by an instance made for it.
//!
//! The plugin never says who it is; the instance knows. Handlers parse, ask a store or a handle, and map the reply;
//! what they may do at all was settled by the gate before.

mod config;
mod events;
mod gate;
mod secrets;
mod state;
mod status;
mod table;

use std::sync::Arc;

pub use events::EventSink;
use kandev_proto::v1::{
    DeleteSecretRequest, DeleteSecretResponse, DeleteStateRequest, DeleteStateResponse, EmitEventRequest,
    EmitEventResponse, GetConfigRequest, GetConfigResponse, GetSecretRequest, GetSecretResponse, GetStateRequest,
    GetStateResponse, ListStateRequest, ListStateResponse, RevealSecretRequest, RevealSecretResponse, SetSecretRequest,
    SetSecretResponse, SetStateRequest, SetStateResponse,
    host_server::{Host, HostServer},
};
use tonic::{Request, Response, Status, async_trait, service::Routes};

use self::secrets::Confidant;
use crate::{
    config::{Limits, Timing},
    domain::{capability::CapabilitySet, id::PluginId, tenancy::Tenancy},
    process::HostServiceFactory,
    store::{plugin_config::PluginConfigs, plugin_state::StateStore},
    vault::Vault,
};

/// Makes the Host service of each plugin.
#[derive(Clone)]
pub struct HostServices {
    state: StateStore,
    configs: PluginConfigs,
    vault: Vault,
    events: Arc<dyn EventSink>,
    bounds: gate::Bounds,
}

impl HostServices {
    /// A factory over the host's stores and event bus.
    pub fn new(
        state: StateStore,
        configs: PluginConfigs,
        vault: Vault,
        events: Arc<dyn EventSink>,
        timing: &Timing,
        limits: &Limits,
    ) -> Self {
        let Limits { host_calls: calls, message_bytes, .. } = *limits;
        let bounds = gate::Bounds { calls, timeout: timing.host_call_timeout, message_bytes };
        Self { state, configs, vault, events, bounds }
    }
}

impl HostServiceFactory for HostServices {
    fn routes(&self, id: &PluginId, capabilities: &CapabilitySet, tenancy: &Tenancy) -> Routes {
        let service = HostService {
            plugin: id.clone(),
            state: self.state.under(tenancy),
            configs: self.configs.clone(),
            vault: self.vault.under(tenancy),
            tenancy: tenancy.clone(),
            events: self.events.clone(),
        };
        let bytes = usize::try_from(self.bounds.message_bytes).unwrap_or(usize::MAX);
        let server = HostServer::new(service).max_decoding_message_size(bytes);
        Routes::new(gate::Gate::new(server, id.clone(), *capabilities, self.bounds))
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
        self.events.emit(&self.plugin, &event_name, payload).await.map_err(status::of_publish)?;
        Ok(Response::new(EmitEventResponse {}))
    }

    async fn get_config(&self, _: Request<GetConfigRequest>) -> Reply<GetConfigResponse> {
        config::get(&self.configs, self.secrets()).await.map(Response::new)
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
}

#[cfg(test)]
mod tests;
