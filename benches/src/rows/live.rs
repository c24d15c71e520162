//! A thousand live connections (`/ws`), each told of ten events a second for half a minute: what each of them takes of
//! the host's anonymous memory, and the frames that were lost.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::time::{Instant, interval, sleep};

use crate::{
    Options, Outcome,
    client::{Client, request},
    report::{Bound, Line, Values},
    rounds::Series,
    served::{Served, anonymous_kb},
    sockets::{Elsewhere, SESSION, SUBJECT},
    world::TOKEN,
};

const CONNECTIONS: usize = 1000;
const MOST_KB: f64 = 50.0;
/// More than half a minute of them.
const EVENTS: u64 = 310;
const PACE: Duration = Duration::from_millis(100);
/// Memory is looked at once in so many events.
const SAMPLE: u64 = 10;
const TEXT_BYTES: usize = 200;

/// The warm-up: everything that is done is done once, by few.
const FEW: usize = 10;
const WARM_EVENTS: u64 = 200;
const WARM_PACE: Duration = Duration::from_millis(10);
/// For what the warm-up left to go.
const SETTLE: Duration = Duration::from_secs(2);

/// How much longer it may take than its pace says.
const LATE: Duration = Duration::from_secs(2);

/// Of the host and of its clients each, above the 1024 that many systems give.
const OPEN_FILES: u64 = 4096;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    allow_open_files()?;
    let served = Served::start(&options.program("kandev-host")?).await?;
    let (_, lost) = tell(&served, FEW, WARM_EVENTS, WARM_PACE).await?;
    if lost > 0 {
        return Err(format!("{lost} frames were lost in the warm-up").into());
    }
    sleep(SETTLE).await;
    let before = anonymous_kb(served.pid())?;
    let (memory, lost) = tell(&served, CONNECTIONS, EVENTS, PACE).await?;
    let each = memory.into_iter().map(|kb| (kb - before) / CONNECTIONS as f64).collect();
    Ok(vec![
        Line {
            row: "ws-1000",
            what: "anonymous memory of each of 1000 connections of /ws, 10 events/s to each for 30 s",
            unit: "kB",
            values: Values::Single(Series(each)),
            bound: Bound::AtMost { median: MOST_KB, p99: Some(MOST_KB) },
        },
        Line {
            row: "ws-1000-lost",
            what: "frames that they lost",
            unit: "frames",
            values: Values::Single(Series(vec![lost as f64])),
            bound: Bound::AtMost { median: 0.0, p99: Some(0.0) },
        },
    ])
}

/// Publishes events to so many connections: the memory meanwhile, in kB, and the frames that were lost.
async fn tell(served: &Served, connections: usize, events: u64, pace: Duration) -> Outcome<(Vec<f64>, u64)> {
    let clients = Elsewhere::start(served.address, connections, events).await?;
    let mut api = Client::connect(served.address).await?;
    let mut ticks = interval(pace);
    let mut memory = Vec::new();
    let began = Instant::now();
    for n in 0..events {
        ticks.tick().await;
        let payload = json!({"session_id": SESSION, "n": n, "author_type": "agent", "content": "x".repeat(TEXT_BYTES)});
        let body = json!({"subject": SUBJECT, "payload": payload}).to_string();
        let (status, answer) = api.send(&request("POST", "/api/v1/events", TOKEN, body.as_bytes())).await?;
        if status != 202 {
            return Err(format!("publishing answers {status}: {}", String::from_utf8_lossy(answer)).into());
        }
        if n % SAMPLE == SAMPLE - 1 {
            memory.push(anonymous_kb(served.pid())?);
        }
    }
    if began.elapsed() > pace * u32::try_from(events)? + LATE {
        return Err(format!("the events took {:?} to be published, which is not their pace", began.elapsed()).into());
    }
    Ok((memory, clients.lost().await?))
}

/// Lets this process, and the host and the clients that it starts, have as many sockets as they need.
fn allow_open_files() -> Outcome<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < OPEN_FILES) {
        let wanted = Rlimit { current: Some(OPEN_FILES), maximum };
        setrlimit(Resource::Nofile, wanted)
            .map_err(|error| format!("this row needs {OPEN_FILES} open files in a process (ulimit -n): {error}"))?;
    }
    Ok(())
}
