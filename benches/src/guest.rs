//! The plugin that is measured with: it answers at once, so that what is measured is the way to it and back.
//!
//! Events are acknowledged, the webhook `echo` answers its body, and the webhook `state` makes GetState calls to the
//! host and answers how long they took.

use std::{process::ExitCode, time::Duration};

use goplugin::guest::{Broker, ServeConfig, serve};
use kandev_proto::v1::{
    self, GetStateRequest, GetStateResponse,
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

impl Guest {
    async fn state_run(&self, run: StateRun) -> Result<Duration, Status> {
        let mut host = self.host.clone();
        let found = timeout(WAIT, host.wait_for(Option::is_some)).await.ok().and_then(Result::ok);
        let channel = found.and_then(|found| found.clone()).ok_or_else(|| Status::unavailable("no host"))?;
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
            "state" => {
                let run = serde_json::from_slice(&body).map_err(|error| Status::invalid_argument(error.to_string()))?;
                self.state_run(run).await?.as_nanos().to_string().into()
            }
            _ => body,
        };
        Ok(Response::new(v1::WebhookResponse { status: 200, headers, body }))
    }

    async fn handle_action(
        &self,
        _: Request<v1::PluginActionRequest>,
    ) -> Result<Response<v1::PluginActionResponse>, Status> {
        unsupported()
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
