//! The plugin that is measured with: it answers at once, so that what is measured is the way to it and back.
//!
//! Events are acknowledged, every action and the webhook `echo` answer their body, `count` answers how many bytes it
//! has, the webhooks `state` and `config` make GetState and GetConfig calls to the host and answer how long they took,
//! `set` and `get` write and read one number.

use std::{process::ExitCode, time::Duration};

use goplugin::guest::{Broker, ServeConfig, serve};
use kandev_proto::v1::{
    self, GetConfigRequest, GetStateRequest, GetStateResponse, SetStateRequest,
    host_client::HostClient,
    plugin_server::{Plugin, PluginServer},
};
use serde::Deserialize;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tonic::{
    Request, Response, Status, client::Grpc, codegen::http::uri::PathAndQuery, service::Routes, transport::Channel,
};
use tonic_prost::ProstCodec;

/// The most a manifest can ask for, and some headroom.
const MAX_MESSAGE_BYTES: usize = 17 << 20;

/// Pause between attempts to find the host.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a call waits for the host to be found.
const WAIT: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    let config = ServeConfig {
        cookie: ("KANDEV_PLUGIN".into(), "kandev-plugin-v1".into()),
        protocol_version: 1,
        max_message_bytes: MAX_MESSAGE_BYTES,
    };
    let served = serve(config, |broker| {
        let guest = Guest { host: find_host(broker) };
        Routes::new(PluginServer::new(guest).max_decoding_message_size(MAX_MESSAGE_BYTES))
    });
    match served.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-guest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn find_host(broker: Broker) -> watch::Receiver<Option<Channel>> {
    let (found, host) = watch::channel(None);
    tokio::spawn(async move {
        while !found.is_closed() {
            match broker.dial(1).await {
                Ok(channel) => return drop(found.send(Some(channel))),
                Err(_) => sleep(PAUSE).await,
            }
        }
    });
    host
}

struct Guest {
    host: watch::Receiver<Option<Channel>>,
}

/// Body of the webhook `state`.
#[derive(Deserialize)]
struct StateRun {
    /// Request path of the method that is called.
    path: String,
    /// Calls in all.
    calls: usize,
    /// Calls at once.
    in_flight: usize,
    /// The key that is read.
    key: String,
}

/// Body of the webhook `config`.
#[derive(Deserialize)]
struct ConfigRun {
    /// Calls in all.
    calls: usize,
    /// What each answer must have.
    fields: usize,
}

/// Body of the webhook `get`.
#[derive(Deserialize)]
struct Get {
    /// The key that is read.
    key: String,
}

/// Body of the webhook `set`.
#[derive(Deserialize)]
struct Set {
    /// The key that is written.
    key: String,
    /// What is written.
    value: f64,
}

impl Guest {
    async fn host(&self) -> Result<Channel, Status> {
        let mut host = self.host.clone();
        let found = timeout(WAIT, host.wait_for(Option::is_some)).await.ok().and_then(Result::ok);
        found.and_then(|found| found.clone()).ok_or_else(|| Status::unavailable("no host"))
    }

    /// GetConfig calls, one after the other.
    async fn config_run(&self, ConfigRun { calls, fields }: ConfigRun) -> Result<Duration, Status> {
        let mut client = HostClient::new(self.host().await?);
        let began = Instant::now();
        for _ in 0..calls {
            let config = client.get_config(GetConfigRequest {}).await?.into_inner().config;
            if config.map_or(0, |config| config.fields.len()) != fields {
                return Err(Status::not_found("the config has not all fields"));
            }
        }
        Ok(began.elapsed())
    }

    async fn get(&self, key: String) -> Result<f64, Status> {
        let request = GetStateRequest { scope: "bench".into(), scope_id: String::new(), key };
        let found = HostClient::new(self.host().await?).get_state(request).await?.into_inner().value;
        let value = found.and_then(|value| value.fields.get("n")?.kind.clone());
        match value {
            Some(prost_types::value::Kind::NumberValue(n)) => Ok(n),
            _ => Err(Status::not_found("no number is kept there")),
        }
    }

    async fn set(&self, Set { key, value }: Set) -> Result<(), Status> {
        let value = prost_types::Value { kind: Some(prost_types::value::Kind::NumberValue(value)) };
        let value = Some(prost_types::Struct { fields: [("n".to_owned(), value)].into() });
        let request = SetStateRequest { scope: "bench".into(), scope_id: String::new(), key, value };
        HostClient::new(self.host().await?).set_state(request).await.map(drop)
    }

    async fn state_run(&self, run: StateRun) -> Result<Duration, Status> {
        let channel = self.host().await?;
        let path: PathAndQuery = run.path.parse().map_err(|_| Status::invalid_argument("path"))?;
        let began = Instant::now();
        let callers: Vec<_> = (0..run.in_flight)
            .map(|_| {
                let calls = run.calls / run.in_flight;
                tokio::spawn(get_state(channel.clone(), path.clone(), run.key.clone(), calls))
            })
            .collect();
        for caller in callers {
            caller.await.map_err(|error| Status::internal(error.to_string()))??;
        }
        Ok(began.elapsed())
    }
}

/// As the generated client does it, with a path of our choice.
async fn get_state(channel: Channel, path: PathAndQuery, key: String, calls: usize) -> Result<(), Status> {
    let mut grpc = Grpc::new(channel);
    for _ in 0..calls {
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let request = GetStateRequest { scope: "bench".into(), scope_id: String::new(), key: key.clone() };
        let codec = ProstCodec::<GetStateRequest, GetStateResponse>::default();
        let answer = grpc.unary(Request::new(request), path.clone(), codec).await?.into_inner();
        if answer.value.is_none() {
            return Err(Status::not_found("the host has no such entry"));
        }
    }
    Ok(())
}

fn asked<T: for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Status> {
    serde_json::from_slice(body).map_err(|error| Status::invalid_argument(error.to_string()))
}

fn unsupported<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("the bench plugin does not serve it"))
}

#[tonic::async_trait]
impl Plugin for Guest {
    async fn deliver_event(&self, _: Request<v1::Event>) -> Result<Response<v1::EventAck>, Status> {
        Ok(Response::new(v1::EventAck {}))
    }

    async fn handle_webhook(
        &self,
        request: Request<v1::WebhookRequest>,
    ) -> Result<Response<v1::WebhookResponse>, Status> {
        let v1::WebhookRequest { webhook_key, body, .. } = request.into_inner();
        let headers = [("content-type".to_owned(), "application/octet-stream".to_owned())].into();
        let body = match webhook_key.as_str() {
            "count" => body.len().to_string().into(),
            "state" => self.state_run(asked(&body)?).await?.as_nanos().to_string().into(),
            "config" => self.config_run(asked(&body)?).await?.as_nanos().to_string().into(),
            "get" => self.get(asked::<Get>(&body)?.key).await?.to_string().into(),
            "set" => self.set(asked(&body)?).await.map(|()| body)?,
            _ => body,
        };
        Ok(Response::new(v1::WebhookResponse { status: 200, headers, body }))
    }

    async fn handle_action(
        &self,
        request: Request<v1::PluginActionRequest>,
    ) -> Result<Response<v1::PluginActionResponse>, Status> {
        let body = request.into_inner().body;
        let headers = [("content-type".to_owned(), "application/json".to_owned())].into();
        Ok(Response::new(v1::PluginActionResponse { status: 200, headers, body }))
    }

    async fn search_entity_references(
        &self,
        _: Request<v1::SearchEntityReferencesRequest>,
    ) -> Result<Response<v1::SearchEntityReferencesResponse>, Status> {
        unsupported()
    }

    async fn authorize_entity_reference(
        &self,
        _: Request<v1::AuthorizeEntityReferenceRequest>,
    ) -> Result<Response<v1::AuthorizeEntityReferenceResponse>, Status> {
        unsupported()
    }

    async fn resolve_git_credential(
        &self,
        _: Request<v1::ResolveGitCredentialRequest>,
    ) -> Result<Response<v1::ResolveGitCredentialResponse>, Status> {
        unsupported()
    }

    async fn get_git_credential_binding(
        &self,
        _: Request<v1::GitCredentialBindingRequest>,
    ) -> Result<Response<v1::GitCredentialBindingResponse>, Status> {
        unsupported()
    }

    async fn invoke_agent_tool(
        &self,
        _: Request<v1::AgentToolRequest>,
    ) -> Result<Response<v1::AgentToolResponse>, Status> {
        unsupported()
    }
}
