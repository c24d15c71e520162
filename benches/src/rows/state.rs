//! GetState at eight calls in flight, against a bare handler with the same statement on the same broker socket.

use std::time::Duration;

use kandev_host::{domain::id::PluginId, store::plugin_state::Scope};
use kandev_proto::v1::{self, plugin_client::PluginClient};
use tonic::transport::Channel;

use crate::{
    Options, Outcome,
    bare_state::{BARE_PATH, HOST_PATH},
    report::{Bound, Line, Values},
    rounds::alternate,
    world::World,
};

const CALLS: usize = 4000;
const IN_FLIGHT: usize = 8;
const LEAST: f64 = 0.85;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let id = world.install("bench-state").await?;
    store_value(&world, &id).await?;
    let channel = world.tap.plugin(&id).ok_or("not launched")?.0.channel();
    let bare = || ask(channel.clone(), BARE_PATH);
    let own = || ask(channel.clone(), HOST_PATH);
    let pairs = alternate(options.rounds(), bare, own).await?;
    world.stop().await?;
    Ok(vec![Line {
        row: "get-state",
        what: "GetState, 8 in flight",
        unit: "calls/s",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtLeast(LEAST),
    }])
}

async fn store_value(world: &World, id: &PluginId) -> Outcome<()> {
    let scope = Scope { name: "bench".into(), id: String::new() };
    let value =
        serde_json::json!({"cursor": "0192d7c1-54f6", "seen": 1234, "labels": ["a", "b"], "note": "x".repeat(100)});
    Ok(world.state.set(id, &scope, "entry", &value, time::OffsetDateTime::now_utc()).await?)
}

/// Lets the plugin make its calls and answers how many it made a second.
async fn ask(channel: Channel, path: &str) -> Outcome<f64> {
    let run = serde_json::json!({"path": path, "calls": CALLS, "in_flight": IN_FLIGHT, "key": "entry"});
    let request = v1::WebhookRequest {
        webhook_key: "state".into(),
        body: run.to_string().into_bytes().into(),
        ..v1::WebhookRequest::default()
    };
    let answer = PluginClient::new(channel).handle_webhook(request).await?.into_inner();
    let nanoseconds: u64 = std::str::from_utf8(&answer.body)?.parse()?;
    Ok(CALLS as f64 / Duration::from_nanos(nanoseconds).as_secs_f64())
}
