//! Action round trip of 1 kB at 32 connections, against an actix handler that makes the same gRPC call on the same
//! channel.
//!
//! The handler is sent the body alone and knows the context; the host is sent the envelope, and verifies the workspace.

use std::time::Duration;

use actix_web::{HttpResponse, error, web};
use kandev_host::{
    domain::{platform::workspace::WorkspaceDraft, principal::OPERATOR_USER},
    platform::By,
};
use kandev_proto::v1::{self, plugin_client::PluginClient};
use tonic::transport::Channel;

use crate::{
    Options, Outcome, bare,
    load::Load,
    package::Of,
    report::{Bound, Line, Values},
    rounds::alternate,
    world::World,
};

const CONNECTIONS: usize = 32;
const REQUESTS: usize = 500;
const TEXT_BYTES: usize = 1000;
const ACTIONS: &str = "actions:\n  - {key: echo, scope: workspace, max_body_bytes: 4096}\n";
const LEAST: f64 = 0.8;

/// What the bare handler calls, and where the action is done.
struct Bare {
    client: PluginClient<Channel>,
    workspace: String,
    deadline: Duration,
}

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let draft = WorkspaceDraft { name: Some("Bench".to_owned()), ..WorkspaceDraft::default() };
    let workspace = world.platform.workspaces.create(&By::operator(), &draft).await?.id;
    let id = world.install_of(Of { more: ACTIONS, ..Of::id("bench-action") }).await?;
    let client = PluginClient::new(world.tap.plugin(&id).ok_or("not launched")?.0.channel());
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(TEXT_BYTES));
    let envelope = format!(r#"{{"workspaceId":"{workspace}","body":{body}}}"#);
    let bare = web::Data::new(Bare { client, workspace, deadline: world.config.timing.action_timeout });
    let (bare_address, server) = bare::serve(world.config.limits.http_workers, move |routes| {
        routes.app_data(bare.clone()).route("/bare", web::post().to(act));
    })?;
    let answer = Some(body.len());
    let load = |address, path: &str, body: String| Load {
        address,
        method: "POST".to_owned(),
        path: path.to_owned(),
        connections: CONNECTIONS,
        requests: REQUESTS,
        answer,
        body,
    };
    let bare = load(bare_address, "/bare", body);
    let own = load(world.address, "/api/plugins/bench-action/actions/echo", envelope);
    let pairs = alternate(options.rounds(), || bare.elsewhere(), || own.elsewhere()).await?;
    server.stop(true).await;
    world.stop().await?;
    Ok(vec![Line {
        row: "action",
        what: "action round trip of 1 kB, 32 connections",
        unit: "requests/s",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtLeast(LEAST),
    }])
}

/// Everything an action cannot do without: body, context, call with its deadline, answer.
async fn act(bare: web::Data<Bare>, body: web::Bytes) -> actix_web::Result<HttpResponse> {
    let context = v1::VerifiedActionContext {
        actor_id: OPERATOR_USER.to_owned(),
        workspace_id: bare.workspace.clone(),
        ..v1::VerifiedActionContext::default()
    };
    let call = v1::PluginActionRequest { action_key: "echo".to_owned(), context: Some(context), body };
    let call = bare::within(bare.deadline, call);
    let mut client = bare.client.clone();
    let answer = client.handle_action(call).await.map_err(error::ErrorBadGateway)?.into_inner();
    bare::answer(answer.status, answer.headers, answer.body)
}
