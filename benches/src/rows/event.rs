//! From the commit of a change to the plugin that is told of it: a task is made on an idle host, against a bare call
//! with the same event on the same channel. Both sides count until the answer of the plugin's handler.

use std::time::Duration;

use kandev_host::{
    domain::platform::{task::NewTask, workspace::WorkspaceDraft},
    platform::By,
};
use kandev_proto::v1;
use tokio::time::{Instant, sleep, timeout};

use super::delivery::payload;
use crate::{
    Options, Outcome,
    report::{Bound, Line, Values},
    rounds::{Series, alternate},
    world::World,
};

/// Events of one round; its value is their median.
const EVENTS: usize = 100;
/// Between two of them everything falls asleep.
const PAUSE: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(10);
const MOST: f64 = 2.0;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let world = World::start(&options.program("bench-guest")?, |_| {}).await?;
    let id = world.install("bench-event").await?;
    let (plugin, answered) = world.tap.plugin(&id).ok_or("not launched")?;
    let by = By::operator();
    let draft = WorkspaceDraft { name: Some("Bench".to_owned()), ..WorkspaceDraft::default() };
    world.platform.workspaces.create(&by, &draft).await?;
    let new = NewTask { title: "Tidy the shed".to_owned(), ..NewTask::default() };
    let bare = async || {
        let mut client = v1::plugin_client::PluginClient::new(plugin.channel());
        let mut times = Series::default();
        for _ in 0..EVENTS {
            sleep(PAUSE).await;
            let event = v1::Event {
                event_id: "0192d7c1-54f6-7bb2-a0f4-0c8b2f6f5d11".to_owned(),
                event_type: "task.created".to_owned(),
                occurred_at: "2026-01-01T00:00:00Z".to_owned(),
                workspace_id: "0192d7c1-54f6-7bb2-a0f4-0c8b2f6f5d12".to_owned(),
                payload: Some(payload()),
            };
            let began = Instant::now();
            client.deliver_event(event).await?;
            times.0.push(began.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times.median())
    };
    let own = async || {
        let mut times = Series::default();
        for _ in 0..EVENTS {
            sleep(PAUSE).await;
            answered.expect(1);
            world.platform.tasks.create(&by, &new).await?;
            // It answers when the commit is done.
            let began = Instant::now();
            timeout(LIMIT, answered.reached()).await.map_err(|_| "an event was lost")?;
            times.0.push(began.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times.median())
    };
    let pairs = alternate(options.rounds(), bare, own).await?;
    world.stop().await?;
    Ok(vec![Line {
        row: "event",
        what: "from the commit to the plugin's answer, idle host",
        unit: "µs",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtMost(MOST),
    }])
}
