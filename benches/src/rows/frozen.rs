//! One event to a hundred plugins: how long until ninety-nine of them have answered it, when the hundredth is frozen
//! and when it is not.

use std::{sync::Arc, time::Duration};

use rustix::process::{Signal, kill_process};
use tokio::time::{Instant, timeout};

use super::delivery::payload;
use crate::{
    Options, Outcome,
    report::{Bound, Line, Values},
    rounds::alternate,
    served::process_id,
    tap::Answered,
    world::World,
};

const PLUGINS: usize = 100;
const MOST: f64 = 1.2;
const LIMIT: Duration = Duration::from_secs(30);

/// Events of one round, one after the other; the value is their mean.
const EVENTS: usize = 10;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = Arc::new(World::start(&options.program("bench-guest")?, |_| {}).await?);
    let mut targets = Vec::new();
    for number in 0..PLUGINS {
        let id = world.install(&format!("bench-{number:02}")).await?;
        targets.push(world.tap.plugin(&id).ok_or("not launched")?);
    }
    let Some((frozen, last)) = targets.pop() else { return Err("no plugins".into()) };
    let pid = process_id(frozen.pid())?;
    let others: Arc<Vec<Arc<Answered>>> = Arc::new(targets.into_iter().map(|(_, answered)| answered).collect());
    let round = |frozen: bool| {
        let (world, others, last) = (world.clone(), others.clone(), last.clone());
        async move {
            last.expect(EVENTS);
            if frozen {
                kill_process(pid, Signal::STOP)?;
            }
            let spread = tokio::spawn(async move { spread(&world, &others).await }).await?;
            if frozen {
                kill_process(pid, Signal::CONT)?;
            }
            timeout(LIMIT, last.reached()).await.map_err(|_| "the frozen plugin did not come back")?;
            spread
        }
    };
    let pairs = alternate(options.rounds(), || round(false), || round(true)).await?;
    if let Some(world) = Arc::into_inner(world) {
        world.stop().await?;
    }
    Ok(vec![Line {
        row: "frozen",
        what: "one event to 99 plugins beside a frozen one",
        unit: "ms",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtMost(MOST),
    }])
}

/// Milliseconds from publishing an event to the last of the answers.
async fn spread(world: &World, targets: &[Arc<Answered>]) -> Outcome<f64> {
    let mut sum = 0.0;
    for _ in 0..EVENTS {
        targets.iter().for_each(|answered| answered.expect(1));
        let payload = payload();
        let began = Instant::now();
        world.publish("bench.happened", payload);
        for answered in targets {
            timeout(LIMIT, answered.reached()).await.map_err(|_| "an event was lost")?;
        }
        sum += began.elapsed().as_secs_f64() * 1e3;
    }
    Ok(sum / EVENTS as f64)
}
