//! From the spawn to `active`, against goplugin alone: spawn, handshake, first ping.

use std::{path::PathBuf, sync::Arc};

use goplugin::host::{LaunchSpec, StopLadder, Timing, launch};
use kandev_host::domain::{id::PluginId, tenancy::Tenancy};
use tokio::time::Instant;

use crate::{
    Options, Outcome, package,
    report::{Bound, Line, Values},
    rounds::alternate,
    world::World,
};

const MOST: f64 = 1.1;

/// Starts of one round; the value is their mean.
const STARTS: usize = 5;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = Arc::new(World::start(&options.program("bench-guest")?, |_| {}).await?);
    let id = world.install("bench-spawn").await?;
    world.registry.disable("bench-spawn").await?;
    let bare = || {
        let (world, id) = (world.clone(), id.clone());
        async move { tokio::spawn(async move { bare_starts(&world, &id).await }).await? }
    };
    let own = || {
        let world = world.clone();
        async move { tokio::spawn(async move { own_starts(&world).await }).await? }
    };
    let pairs = alternate(options.rounds(), bare, own).await?;
    if let Some(world) = Arc::into_inner(world) {
        world.stop().await?;
    }
    Ok(vec![Line {
        row: "spawn",
        what: "spawn until `active`",
        unit: "ms",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtMost(MOST),
    }])
}

async fn own_starts(world: &World) -> Outcome<f64> {
    let mut sum = 0.0;
    for _ in 0..STARTS {
        let began = Instant::now();
        world.registry.enable("bench-spawn").await?;
        sum += began.elapsed().as_secs_f64() * 1e3;
        world.registry.disable("bench-spawn").await?;
    }
    Ok(sum / STARTS as f64)
}

async fn bare_starts(world: &World, id: &PluginId) -> Outcome<f64> {
    let record = world.registry.get("bench-spawn").await?.record;
    let working_dir = PathBuf::from(&record.state.install_path);
    let timing = &world.config.timing;
    let ladder = StopLadder { stop_grace: timing.stop_grace, term_grace: timing.term_grace };
    let waits = Timing {
        start_timeout: timing.start_timeout,
        dial_timeout: timing.dial_timeout,
        ping_timeout: timing.ping_timeout,
        accept_timeout: timing.accept_timeout,
        pipe_grace: timing.pipe_grace,
    };
    let mut sum = 0.0;
    for _ in 0..STARTS {
        let began = Instant::now();
        let spec = LaunchSpec {
            executable: working_dir.join(package::executable_path()),
            working_dir: working_dir.clone(),
            program: None,
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
            cookie: ("KANDEV_PLUGIN".into(), "kandev-plugin-v1".into()),
            protocol_version: 1,
            socket_root: world.sockets.clone(),
            max_message_bytes: usize::try_from(world.config.limits.message_bytes)?,
        };
        let routes = world.host_services.routes(id, &record.manifest.capabilities.granted(), &Tenancy::default());
        let plugin = launch(&world.forker, spec, waits, routes, Arc::new(|_| {})).await?;
        sum += began.elapsed().as_secs_f64() * 1e3;
        plugin.stop(ladder).await;
    }
    Ok(sum / STARTS as f64)
}
