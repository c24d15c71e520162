//! GetConfig with ten secret fields, each of them decrypted, against GetConfig of ten plain fields.

use std::time::Duration;

use kandev_host::domain::id::PluginId;
use kandev_proto::v1::{self, plugin_client::PluginClient};
use tonic::transport::Channel;

use crate::{
    Options, Outcome,
    client::{Client, request},
    package::Of,
    report::{Bound, Line, Values},
    rounds::alternate,
    world::{TOKEN, World},
};

const FIELDS: usize = 10;
const CALLS: usize = 1000;
const MOST: f64 = 2.0;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let plain = configured(&world, "bench-plain", "").await?;
    let secret = configured(&world, "bench-secret", ", secret: true").await?;
    let channel = |id: &PluginId| world.tap.plugin(id).map(|(plugin, _)| plugin.channel()).ok_or("not launched");
    let (plain, secret) = (channel(&plain)?, channel(&secret)?);
    let pairs = alternate(options.rounds(), || ask(plain.clone()), || ask(secret.clone())).await?;
    world.stop().await?;
    Ok(vec![Line {
        row: "get-config",
        what: "GetConfig with ten secret fields, against ten plain ones",
        unit: "µs",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtMost(MOST),
    }])
}

/// A running plugin with a saved value for each of its fields.
async fn configured(world: &World, id: &str, secret: &str) -> Outcome<PluginId> {
    let fields: String = (0..FIELDS).map(|n| format!("    field{n}: {{type: string{secret}}}\n")).collect();
    let more = format!("config_schema:\n  type: object\n  properties:\n{fields}");
    let installed = world.install_of(Of { more: &more, ..Of::id(id) }).await?;
    let values: serde_json::Map<_, _> =
        (0..FIELDS).map(|n| (format!("field{n}"), format!("value-{n}-0123456789abcdef").into())).collect();
    let body = serde_json::json!({ "config": values }).to_string();
    let mut client = Client::connect(world.address).await?;
    let (status, answer) =
        client.send(&request("PATCH", &format!("/api/plugins/{id}"), TOKEN, body.as_bytes())).await?;
    match status {
        200 => Ok(installed),
        _ => Err(format!("the save answered {status}: {}", String::from_utf8_lossy(answer)).into()),
    }
}

/// Lets the plugin make its calls and answers how many microseconds one took.
async fn ask(channel: Channel) -> Outcome<f64> {
    let run = serde_json::json!({"calls": CALLS, "fields": FIELDS});
    let request = v1::WebhookRequest {
        webhook_key: "config".into(),
        body: run.to_string().into_bytes().into(),
        ..v1::WebhookRequest::default()
    };
    let answer = PluginClient::new(channel).handle_webhook(request).await?.into_inner();
    let nanoseconds: u64 = std::str::from_utf8(&answer.body)?.parse()?;
    Ok(Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6 / CALLS as f64)
}
