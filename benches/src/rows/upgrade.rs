//! An upgrade of a running plugin: how long its webhooks answer 503, against a start of the same plugin.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::Method;
use tokio::time::Instant;

use crate::{
    Options, Outcome,
    client::{Client, request},
    package::{self, Of},
    report::{Bound, Line, Values},
    rounds::alternate,
    served::Served,
};

const ID: &str = "bench-upgrade";
const MOST: f64 = 1.5;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let served = Served::start(&options.program("kandev-host")?).await?;
    let folder = tempfile::tempdir()?;
    let guest = options.program("bench-guest")?;
    let pack = |number: usize| -> Outcome<PathBuf> {
        let path = folder.path().join(format!("{number}.tar.gz"));
        package::pack(&path, Of { version: &format!("1.{number}.0"), ..Of::id(ID) }, &guest, &[], 1)?;
        Ok(path)
    };
    served.install(&pack(0)?).await?;
    let mut number = 0;
    let start = async || {
        served.command(Method::POST, &format!("/api/plugins/{ID}/disable")).await?;
        let began = Instant::now();
        served.command(Method::POST, &format!("/api/plugins/{ID}/enable")).await?;
        Ok(began.elapsed().as_secs_f64() * 1e3)
    };
    let upgrade = async || {
        number += 1;
        Ok(gap(&served, &pack(number)?).await?.as_secs_f64() * 1e3)
    };
    let pairs = alternate(options.rounds(), start, upgrade).await?;
    Ok(vec![Line {
        row: "upgrade",
        what: "upgrade of a running plugin: time of 503, against its own start",
        unit: "ms",
        values: Values::Pairs(pairs),
        bound: Bound::RatioAtMost(MOST),
    }])
}

/// From the last good answer before the upgrade to the first good one of the new version.
async fn gap(served: &Served, package: &Path) -> Outcome<Duration> {
    let over = Arc::new(AtomicBool::new(false));
    let (mut client, ended) = (Client::connect(served.address).await?, over.clone());
    let watch = tokio::spawn(async move {
        let text = request("POST", &format!("/api/plugins/{ID}/webhooks/echo"), "", b"x");
        let (mut good, mut longest) = (Instant::now(), Duration::ZERO);
        while !ended.load(Ordering::Relaxed) {
            let status = client.send(&text).await.map_err(|error| error.to_string())?.0;
            match status {
                200 => {
                    longest = longest.max(good.elapsed());
                    good = Instant::now();
                }
                503 => {}
                _ => return Err(format!("a webhook answered {status}")),
            }
        }
        Ok(longest)
    });
    let installed = served.install(package).await;
    over.store(true, Ordering::Relaxed);
    installed?;
    Ok(watch.await??)
}
