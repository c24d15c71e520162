//! Webhook relay, against an actix handler that makes the same gRPC call on the same channel: 1 kB at 32 connections,
//! and 4 MiB, the most that a webhook takes whose manifest says nothing, at eight.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, error, web};
use kandev_proto::v1::{self, plugin_client::PluginClient};
use tonic::transport::Channel;

use crate::{
    Options, Outcome, bare,
    load::Load,
    report::{Bound, Line, Values},
    rounds::alternate,
    world::World,
};

const LEAST: f64 = 0.8;

/// A load of webhooks.
struct Case {
    row: &'static str,
    what: &'static str,
    /// The webhook that is called.
    key: &'static str,
    connections: usize,
    requests: usize,
    body: usize,
    answer: usize,
}

const SMALL: Case = Case {
    row: "webhook",
    what: "webhook relay of 1 kB, 32 connections",
    key: "echo",
    connections: 32,
    requests: 500,
    body: 1000,
    answer: 1000,
};

/// Its answer is the number of bytes, which has seven digits.
const LARGE: Case = Case {
    row: "webhook-4m",
    what: "webhook relay of 4 MiB, 8 connections",
    key: "count",
    connections: 8,
    requests: 30,
    body: 4 << 20,
    answer: 7,
};

pub async fn small(options: Options) -> Outcome<Vec<Line>> {
    measure(options, SMALL).await
}

pub async fn large(options: Options) -> Outcome<Vec<Line>> {
    measure(options, LARGE).await
}

/// What the bare handler calls.
struct Bare {
    client: PluginClient<Channel>,
    key: &'static str,
    deadline: Duration,
}

async fn measure(options: Options, case: Case) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let id = world.install("bench-webhook").await?;
    let channel = world.tap.plugin(&id).ok_or("not launched")?.0.channel();
    let bare = web::Data::new(Bare {
        client: PluginClient::new(channel),
        key: case.key,
        deadline: world.config.timing.webhook_timeout,
    });
    let most = web::PayloadConfig::new(case.body);
    let (bare_address, server) = bare::serve(world.config.limits.http_workers, move |routes| {
        routes.app_data(bare.clone()).app_data(most.clone()).route("/bare", web::post().to(relay));
    })?;
    let load = |address, path: String| Load {
        address,
        method: "POST".to_owned(),
        path,
        connections: case.connections,
        requests: case.requests,
        answer: Some(case.answer),
        body: "x".repeat(case.body),
    };
    let bare = load(bare_address, "/bare".to_owned());
    let own = load(world.address, format!("/api/plugins/bench-webhook/webhooks/{}", case.key));
    let pairs = alternate(options.rounds(), || bare.elsewhere(), || own.elsewhere()).await?;
    server.stop(true).await;
    world.stop().await?;
    Ok(vec![Line {
        row: case.row,
        what: case.what,
        unit: "requests/s",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtLeast(LEAST),
    }])
}

/// Everything a relay cannot do without: body, headers, call with its deadline, answer.
async fn relay(bare: web::Data<Bare>, request: HttpRequest, body: web::Bytes) -> actix_web::Result<HttpResponse> {
    let headers = request
        .headers()
        .iter()
        .filter_map(|(name, value)| value.to_str().ok().map(|value| (name.as_str().to_owned(), value.to_owned())));
    let call = v1::WebhookRequest {
        webhook_key: bare.key.into(),
        method: request.method().to_string(),
        path: String::new(),
        query: request.query_string().to_owned(),
        headers: headers.collect(),
        body,
    };
    let mut client = bare.client.clone();
    let call = bare::within(bare.deadline, call);
    let answer = client.handle_webhook(call).await.map_err(error::ErrorBadGateway)?.into_inner();
    bare::answer(answer.status, answer.headers, answer.body)
}
