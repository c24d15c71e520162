//! Webhook relay of 1 kB at 32 connections, against an actix handler that makes the same gRPC call on the same channel.

use std::net::SocketAddr;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, error, web};
use kandev_proto::v1::{self, plugin_client::PluginClient};
use tonic::transport::Channel;

use crate::{
    Options, Outcome,
    load::Load,
    report::{Bound, Line, Values},
    rounds::alternate,
    world::World,
};

const CONNECTIONS: usize = 32;
const REQUESTS: usize = 500;
const BODY_BYTES: usize = 1000;
const LEAST: f64 = 0.8;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let id = world.install("bench-webhook").await?;
    let channel = world.tap.plugin(&id).ok_or("not launched")?.0.channel();
    let (bare_address, server) = serve_bare(channel, world.config.limits.http_workers)?;
    let load = |address, path: &str| Load {
        address,
        path: path.to_owned(),
        connections: CONNECTIONS,
        requests: REQUESTS,
        body: "x".repeat(BODY_BYTES),
        echo: true,
    };
    let bare = load(bare_address, "/bare");
    let own = load(world.address, "/api/plugins/bench-webhook/webhooks/echo");
    let pairs = alternate(options.rounds(), || bare.elsewhere(), || own.elsewhere()).await?;
    server.stop(true).await;
    world.stop().await?;
    Ok(vec![Line {
        row: "webhook",
        what: "webhook relay of 1 kB, 32 connections",
        unit: "requests/s",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtLeast(LEAST),
    }])
}

fn serve_bare(channel: Channel, workers: usize) -> Outcome<(SocketAddr, actix_web::dev::ServerHandle)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let client = web::Data::new(PluginClient::new(channel));
    let server = HttpServer::new(move || App::new().app_data(client.clone()).route("/bare", web::post().to(relay)))
        .workers(workers)
        .disable_signals()
        .listen(listener)?
        .run();
    let handle = server.handle();
    tokio::spawn(server);
    Ok((address, handle))
}

/// Everything a relay cannot do without: body, headers, call, answer.
async fn relay(
    client: web::Data<PluginClient<Channel>>,
    request: HttpRequest,
    body: web::Bytes,
) -> actix_web::Result<HttpResponse> {
    let headers = request
        .headers()
        .iter()
        .filter_map(|(name, value)| value.to_str().ok().map(|value| (name.as_str().to_owned(), value.to_owned())));
    let call = v1::WebhookRequest {
        webhook_key: "echo".into(),
        method: request.method().to_string(),
        path: String::new(),
        query: request.query_string().to_owned(),
        headers: headers.collect(),
        body,
    };
    let mut client = PluginClient::clone(&client);
    let answer = client.handle_webhook(call).await.map_err(error::ErrorBadGateway)?.into_inner();
    let status = u16::try_from(answer.status).map_err(error::ErrorBadGateway)?;
    let status = actix_web::http::StatusCode::from_u16(status).map_err(error::ErrorBadGateway)?;
    let mut response = HttpResponse::build(status);
    for (name, value) in answer.headers {
        response.append_header((name, value));
    }
    Ok(response.body(answer.body))
}
