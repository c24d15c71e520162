//! Sequential deliveries: published on the bus, queued, sent and answered one after the other, against a loop of calls
//! on the same channel.
//!
//! A batch fits into a plugin's queue, so nothing is dropped. Both sides encode the event anew for each call.

use std::{sync::Arc, time::Duration};

use futures_util::future::try_join_all;
use kandev_proto::{struct_from_json, v1};
use prost_types::Struct;
use tokio::time::{Instant, timeout};

use crate::{
    Options, Outcome,
    report::{Bound, Line, Values},
    rounds::alternate,
    tap::Answered,
    world::World,
};

/// Events of one batch; `limits.queue_events` is 1000.
const BATCH: usize = 900;

/// A batch that takes longer has lost events.
const LIMIT: Duration = Duration::from_secs(60);

const LEAST: f64 = 0.85;

pub async fn one(options: Options) -> Outcome<Vec<Line>> {
    let what = "sequential deliveries, one plugin";
    Ok(vec![measure(options, 1, "delivery", what).await?])
}

pub async fn eight(options: Options) -> Outcome<Vec<Line>> {
    let what = "sequential deliveries, eight plugins at once";
    Ok(vec![measure(options, 8, "delivery-8", what).await?])
}

/// What a task event looks like.
pub fn payload() -> Struct {
    let payload = serde_json::json!({
        "task_id": "0192d7c1-54f6-7bb2-a0f4-0c8b2f6f5d11", "workspace_id": "ws-1", "title": "Tidy the shed",
        "state": "in_progress", "position": 3, "labels": ["home", "autumn"],
    });
    let serde_json::Value::Object(object) = payload else { unreachable!("an object was written") };
    struct_from_json(object)
}

async fn measure(options: Options, plugins: usize, row: &'static str, what: &'static str) -> Outcome<Line> {
    let world = Arc::new(World::start(&options.program("bench-guest")?, |_| {}).await?);
    let mut targets = Vec::new();
    for number in 0..plugins {
        let id = world.install(&format!("bench-{number}")).await?;
        targets.push(world.tap.plugin(&id).ok_or("not launched")?);
    }
    let targets = Arc::new(targets);
    let bare = || {
        let targets = targets.clone();
        let calls =
            targets.iter().map(|(plugin, _)| tokio::spawn(call_in_a_loop(plugin.channel()))).collect::<Vec<_>>();
        async move {
            let began = Instant::now();
            for result in try_join_all(calls).await? {
                result?;
            }
            Ok((plugins * BATCH) as f64 / began.elapsed().as_secs_f64())
        }
    };
    let own = || {
        let (world, targets) = (world.clone(), targets.clone());
        async move { tokio::spawn(async move { publish(&world, &targets).await }).await? }
    };
    let pairs = alternate(options.rounds(), bare, own).await?;
    if let Some(world) = Arc::into_inner(world) {
        world.stop().await?;
    }
    Ok(Line { row, what, unit: "deliveries/s", values: Values::Pairs(pairs), bound: Bound::RatioAtLeast(LEAST) })
}

async fn call_in_a_loop(channel: tonic::transport::Channel) -> Outcome<()> {
    let mut client = v1::plugin_client::PluginClient::new(channel);
    let payload = payload();
    for _ in 0..BATCH {
        let event = v1::Event {
            event_id: "0192d7c1-54f6-7bb2-a0f4-0c8b2f6f5d11".to_owned(),
            event_type: "bench.happened".to_owned(),
            occurred_at: "2026-01-01T00:00:00Z".to_owned(),
            workspace_id: "ws-1".to_owned(),
            payload: Some(payload.clone()),
        };
        client.deliver_event(event).await?;
    }
    Ok(())
}

async fn publish(world: &World, targets: &[(goplugin::host::Plugin, Arc<Answered>)]) -> Outcome<f64> {
    let payload = payload();
    targets.iter().for_each(|(_, answered)| answered.expect(BATCH));
    let began = Instant::now();
    for _ in 0..BATCH {
        world.publish("bench.happened", payload.clone());
    }
    for (_, answered) in targets {
        timeout(LIMIT, answered.reached()).await.map_err(|_| "events were lost")?;
    }
    Ok((targets.len() * BATCH) as f64 / began.elapsed().as_secs_f64())
}
