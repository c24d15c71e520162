//! From the end of a plugin's process to the answer of REST that says `error`. Each kill is a round of its own.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::{
    Options, Outcome,
    client::{Client, request},
    report::{Bound, Line, Values},
    rounds::Series,
    served::process_id,
    world::{TOKEN, World},
};

/// Kills for each round of the options: a 99th percentile wants more than fifteen values.
const KILLS: usize = 10;

/// Longer than any status stays unseen, shorter than the bench's patience.
const RESTART: Duration = Duration::from_millis(50);

const LIMIT: Duration = Duration::from_secs(10);

const MEDIAN_MS: f64 = 10.0;
const P99_MS: f64 = 50.0;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |config| {
        config.timing.restart_delays = vec![RESTART];
        config.timing.restart_stability = Duration::from_millis(1);
    })
    .await?;
    let id = world.install("bench-exit").await?;
    let mut client = Client::connect(world.address).await?;
    let mut values = Series::default();
    for round in 0..options.warm_up + options.rounds * KILLS {
        wait_for(&mut client, "active").await?;
        // The row of restarts is over only when the plugin was stable.
        sleep(RESTART).await;
        let (plugin, _) = world.tap.plugin(&id).ok_or("not launched")?;
        let began = Instant::now();
        kill_process(process_id(plugin.pid())?, Signal::KILL)?;
        wait_for(&mut client, "error").await?;
        if round >= options.warm_up {
            values.0.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    world.stop().await?;
    Ok(vec![Line {
        row: "exit",
        what: "exit of the process until REST shows `error`",
        unit: "ms",
        values: Values::Single(values),
        bound: Bound::AtMost { median: MEDIAN_MS, p99: Some(P99_MS) },
    }])
}

async fn wait_for(client: &mut Client, status: &str) -> Outcome<()> {
    let text = request("GET", "/api/plugins/bench-exit", TOKEN, b"");
    let began = Instant::now();
    loop {
        let (code, body) = client.send(&text).await?;
        let view: serde_json::Value = serde_json::from_slice(body)?;
        if view["status"] == status {
            return Ok(());
        }
        if code != 200 || began.elapsed() > LIMIT {
            return Err(format!("status {code}, no {status}: {view}").into());
        }
    }
}
