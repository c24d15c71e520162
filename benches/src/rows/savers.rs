//! Fifty parallel savers of one plugin's settings and fifty callers of SetState, for thirty seconds on SQLite: no
//! answer may be the server's fault, and the last write of each must be kept.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::Barrier,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    Options, Outcome,
    client::{Client, request},
    package::{self, Of},
    report::{Bound, Line, Values},
    rounds::Series,
    served::Served,
    world::TOKEN,
};

const EACH: usize = 50;
const TIME: Duration = Duration::from_secs(30);

/// For the plugin to be up again after the last save.
const SETTLE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(50);

const SCHEMA: &str = "config_schema:\n  type: object\n  properties:\n    by: {type: integer}\n    n: {type: integer}\n";

/// What one of them did.
struct Done {
    /// Of its last acknowledged write.
    last: usize,
    writes: usize,
    /// Answers that were the server's fault.
    faults: usize,
}

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let served = Served::start(&options.program("kandev-host")?).await?;
    let folder = tempfile::tempdir()?;
    for id in ["bench-saved", "bench-set"] {
        let path = folder.path().join(format!("{id}.tar.gz"));
        package::pack(&path, Of { more: SCHEMA, ..Of::id(id) }, &options.program("bench-guest")?, &[], 1)?;
        served.install(&path).await?;
    }
    let begin = Arc::new(Barrier::new(2 * EACH));
    let (mut savers, mut setters) = (JoinSet::new(), JoinSet::new());
    for by in 0..EACH {
        savers.spawn(write(served.address, begin.clone(), by, |by, n| {
            let body = json!({"config": {"by": by, "n": n}}).to_string();
            request("PATCH", "/api/plugins/bench-saved", TOKEN, body.as_bytes())
        }));
        setters.spawn(write(served.address, begin.clone(), by, |by, n| {
            let body = json!({"key": format!("k{by}"), "value": n}).to_string();
            request("POST", "/api/plugins/bench-set/webhooks/set", TOKEN, body.as_bytes())
        }));
    }
    let (saved, set) = (collect(savers).await?, collect(setters).await?);
    check_kept(&served, &saved, &set).await?;
    let writes: usize = saved.iter().chain(&set).map(|(_, done)| done.writes).sum();
    let faults: usize = saved.iter().chain(&set).map(|(_, done)| done.faults).sum();
    eprintln!("bench: savers: {writes} writes were acknowledged");
    Ok(vec![Line {
        row: "savers",
        what: "50 savers of settings and 50 callers of SetState for 30 s: server errors (the last writes were kept)",
        unit: "errors",
        values: Values::Single(Series(vec![faults as f64])),
        bound: Bound::AtMost { median: 0.0, p99: Some(0.0) },
    }])
}

async fn write(
    address: SocketAddr,
    begin: Arc<Barrier>,
    by: usize,
    text: impl Fn(usize, usize) -> Vec<u8> + Send + 'static,
) -> Result<(usize, Done), String> {
    let mut client = Client::connect(address).await.map_err(|error| error.to_string())?;
    begin.wait().await;
    let began = Instant::now();
    let mut done = Done { last: 0, writes: 0, faults: 0 };
    let mut n = 0;
    while began.elapsed() < TIME {
        n += 1;
        let (status, body) = client.send(&text(by, n)).await.map_err(|error| error.to_string())?;
        match status {
            200 => (done.last, done.writes) = (n, done.writes + 1),
            500.. => {
                done.faults += 1;
                eprintln!("bench: savers: {status}: {}", String::from_utf8_lossy(body));
            }
            _ => return Err(format!("status {status}: {}", String::from_utf8_lossy(body))),
        }
    }
    Ok((by, done))
}

async fn collect(mut tasks: JoinSet<Result<(usize, Done), String>>) -> Outcome<Vec<(usize, Done)>> {
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        all.push(done??);
    }
    Ok(all)
}

/// The settings are some saver's last write; every key of the state has its caller's last.
async fn check_kept(served: &Served, saved: &[(usize, Done)], set: &[(usize, Done)]) -> Outcome<()> {
    let mut client = Client::connect(served.address).await?;
    let mut get = async |path: &str| -> Outcome<Value> {
        let (_, body) = client.send(&request("GET", path, TOKEN, b"")).await?;
        Ok(serde_json::from_slice(body)?)
    };
    let began = Instant::now();
    while get("/api/plugins/bench-saved").await?["status"] != "active" {
        if began.elapsed() > SETTLE {
            return Err("the plugin did not come up after the last save".into());
        }
        sleep(PAUSE).await;
    }
    let kept = get("/api/plugins/bench-saved/config").await?["config"].clone();
    if !saved.iter().any(|(by, done)| kept == json!({"by": by, "n": done.last})) {
        return Err(format!("the settings {kept} are nobody's last write").into());
    }
    let mut check = Client::connect(served.address).await?;
    for (by, done) in set {
        let body = json!({"key": format!("k{by}")}).to_string();
        let text = request("POST", "/api/plugins/bench-set/webhooks/get", TOKEN, body.as_bytes());
        let (status, answer) = check.send(&text).await?;
        if (status, answer) != (200, done.last.to_string().as_bytes()) {
            return Err(format!("key k{by} has not {}: {}", done.last, String::from_utf8_lossy(answer)).into());
        }
    }
    Ok(())
}
