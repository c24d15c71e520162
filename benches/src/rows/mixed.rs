//! Anonymous memory of the host's own program under a steady mixed load for ten minutes or longer: its last third
//! against its middle one. What grows without end shows here.
//!
//! Four clients do the same work over and over: a task from its making to its end with a session, messages, commits and
//! lists, an event, webhooks that call the host back, settings now and then. Three plugins are told of every task.
//!
//! Before that the log is filled and walked until the page caches of all the database's readers are full: how soon that
//! is depends on what is read, and it ends there.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use crate::{
    Options, Outcome,
    client::{Client, request},
    package::{self, Of},
    report::{Bound, Line, Values},
    rounds::{Pairs, Series},
    served::{Served, anonymous_kb},
    world::TOKEN,
};

const MOST: f64 = 1.05;
const CLIENTS: usize = 4;
/// Every so many tasks of a client the settings of a plugin change, which starts it again.
const SETTINGS: usize = 500;
/// Events of the warm-up: more bytes than a reader's page cache has. Each fits into a page: what does not goes past the
/// cache.
const FILLERS: usize = 5000;
const FILLER_BYTES: usize = 2 << 10;
/// Walks through them, more than there are readers.
const WALKS: usize = 32;
/// Tasks of each client before it counts, so that plugins and pools have what they need.
const SETTLE: Duration = Duration::from_secs(30);

const SAMPLE: Duration = Duration::from_secs(1);
/// The row tells how it goes every so many samples.
const TELL: usize = 60;

const PLUGINS: [&str; 3] = ["bench-one", "bench-two", "bench-three"];
const SCHEMA: &str = "config_schema:\n  type: object\n  properties:\n    n: {type: integer}\n";

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let served = Served::start(&options.program("kandev-host")?).await?;
    let folder = tempfile::tempdir()?;
    for id in PLUGINS {
        let path = folder.path().join(format!("{id}.tar.gz"));
        package::pack(&path, Of { more: SCHEMA, ..Of::id(id) }, &options.program("bench-guest")?, &[], 1)?;
        served.install(&path).await?;
    }
    let workspace =
        Api::connect(served.address).await?.call("POST", "/api/v1/workspaces", json!({"name": "B"})).await?;
    let workspace = text(&workspace, "id")?;
    let after = fill_caches(served.address).await?;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let place = Place { workspace: workspace.clone(), after: after.clone() };
        clients.spawn(work(served.address, place, client, Duration::from_millis(options.pace)));
    }
    sleep(SETTLE).await;
    let time = Duration::from_secs(options.minutes * 60);
    let memory = tokio::select! {
        memory = watch(served.pid(), time) => memory?,
        ended = clients.join_next() => match ended {
            Some(Ok(Err(text))) => return Err(text.into()),
            _ => return Err("a client ended".into()),
        },
    };
    let third = memory.len() / 3;
    let part = |number: usize| Series(memory[third * number..third * (number + 1)].to_vec());
    eprintln!("bench: memory-load: medians of the thirds: {:?} MB", [0, 1, 2].map(|number| part(number).median()));
    Ok(vec![Line {
        row: "memory-load",
        what: "anonymous memory under mixed load, last third against middle third",
        unit: "MB",
        values: Values::Pairs(Pairs { baseline: part(1), product: part(2) }),
        bound: Bound::RatioAtMost(MOST),
    }])
}

/// Where the clients work.
struct Place {
    workspace: String,
    /// Where their events begin.
    after: String,
}

/// Has every reader of the database read more than its cache holds; the cursor after what is there.
async fn fill_caches(address: SocketAddr) -> Outcome<String> {
    let mut api = Api::connect(address).await?;
    let payload = json!({"text": "x".repeat(FILLER_BYTES)});
    for _ in 0..FILLERS {
        api.call("POST", "/api/v1/events", json!({"subject": "bench.filler", "payload": payload})).await?;
    }
    let mut walks = JoinSet::new();
    for _ in 0..WALKS {
        walks.spawn(async move { walk(address).await.map_err(|error| error.to_string()) });
    }
    let mut end = String::new();
    while let Some(walked) = walks.join_next().await {
        end = walked??;
    }
    Ok(end)
}

/// Reads the log to its end; the cursor there.
async fn walk(address: SocketAddr) -> Outcome<String> {
    let mut api = Api::connect(address).await?;
    let mut after = String::new();
    loop {
        let path = format!("/api/v1/events?limit=200{}{after}", if after.is_empty() { "" } else { "&after=" });
        let page = api.call("GET", &path, Value::Null).await?;
        if page["events"].as_array().is_none_or(Vec::is_empty) {
            return Ok(after);
        }
        after = text(&page, "cursor")?;
    }
}

/// Memory in MB, once a second.
async fn watch(pid: u32, time: Duration) -> Outcome<Vec<f64>> {
    let mut ticks = interval(SAMPLE);
    let mut memory = Vec::new();
    let began = Instant::now();
    while began.elapsed() < time {
        ticks.tick().await;
        memory.push(anonymous_kb(pid)? / 1000.0);
        if memory.len().is_multiple_of(TELL) {
            let minute = Series(memory[memory.len() - TELL..].to_vec()).median();
            eprintln!("bench: memory-load: {} min: {minute:.2} MB", memory.len() / TELL);
        }
    }
    Ok(memory)
}

/// Works until it is aborted; ends with the first answer that is not good.
async fn work(address: SocketAddr, place: Place, client: usize, pace: Duration) -> Result<(), String> {
    let mut ticks = interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0;
    let mut api = Api::connect(address).await.map_err(|error| error.to_string())?;
    loop {
        ticks.tick().await;
        number += 1;
        one(&mut api, &place, client, number).await.map_err(|error| error.to_string())?;
    }
}

/// A task from its making to its end: seventeen requests.
async fn one(api: &mut Api, Place { workspace, after }: &Place, client: usize, number: usize) -> Outcome<()> {
    let title = format!("Task {number} of {client}");
    let task = api.call("POST", "/api/v1/tasks", json!({"title": title, "description": "x".repeat(500)})).await?;
    let task = format!("/api/v1/tasks/{}", text(&task, "id")?);
    api.call("PATCH", &task, json!({"state": "IN_PROGRESS", "metadata": {"n": number}})).await?;
    let session = api.call("POST", &format!("{task}/sessions/ensure"), json!({})).await?;
    let session = format!("/api/v1/task-sessions/{}", text(&session, "session_id")?);
    for author in ["user", "agent"] {
        let message = json!({"content": "What was said. ".repeat(40), "author_type": author});
        api.call("POST", &format!("{session}/messages"), message).await?;
    }
    api.call("GET", &format!("{session}/messages"), Value::Null).await?;
    let commit = json!({"commit_sha": format!("{client}-{number}"), "insertions": 20, "deletions": 3});
    api.call("POST", &format!("{session}/commits"), commit).await?;
    api.call("POST", &format!("{session}/turns/complete"), json!({})).await?;
    api.call("PATCH", &session, json!({"state": "COMPLETED"})).await?;
    api.call("GET", &format!("/api/v1/workspaces/{workspace}/tasks?page_size=50"), Value::Null).await?;
    api.call("GET", &format!("/api/v1/events?limit=50&after={after}"), Value::Null).await?;
    let plugin = format!("/api/plugins/{}", PLUGINS[client % PLUGINS.len()]);
    let key = format!("k{client}");
    api.relay(&format!("{plugin}/webhooks/set"), json!({"key": key, "value": number})).await?;
    api.relay(&format!("{plugin}/webhooks/get"), json!({"key": key})).await?;
    api.relay(&format!("{plugin}/webhooks/echo"), json!({"text": "x".repeat(1000)})).await?;
    api.call("POST", "/api/v1/events", json!({"subject": "bench.mixed", "payload": {"n": number}})).await?;
    if number.is_multiple_of(SETTINGS) && client == 0 {
        api.call("PATCH", &plugin, json!({"config": {"n": number}})).await?;
    }
    api.call("DELETE", &task, Value::Null).await?;
    Ok(())
}

/// The API on one connection.
struct Api {
    client: Client,
}

impl Api {
    async fn connect(address: SocketAddr) -> Outcome<Self> {
        Ok(Self { client: Client::connect(address).await? })
    }

    /// The answer, which must be good.
    async fn call(&mut self, method: &str, path: &str, body: Value) -> Outcome<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.client.send(&request(method, path, TOKEN, body.as_bytes())).await?;
        match status {
            200..300 => Ok(serde_json::from_slice(answer)?),
            _ => Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(answer)).into()),
        }
    }

    /// A webhook; while its plugin starts again there is none to answer.
    async fn relay(&mut self, path: &str, body: Value) -> Outcome<()> {
        let (status, answer) = self.client.send(&request("POST", path, TOKEN, body.to_string().as_bytes())).await?;
        match status {
            200 | 502..=504 => Ok(()),
            _ => Err(format!("POST {path}: {status}: {}", String::from_utf8_lossy(answer)).into()),
        }
    }
}

fn text(answer: &Value, key: &str) -> Outcome<String> {
    Ok(answer[key].as_str().ok_or_else(|| format!("no {key} in {answer}"))?.to_owned())
}
