//! A UI bundle of 200 kB, which the host has in memory, against nginx that serves the same file with as many workers.
//! Both are programs of their own, and both write a line for each request.

use std::{fs, net::SocketAddr, slice};

use kandev_host::config::Limits;

use crate::{
    Options, Outcome,
    client::{Client, request},
    load::Load,
    nginx::{self, Nginx},
    package::{self, Of},
    report::{Bound, Line, Values},
    rounds::{Pairs, alternate},
    served::Served,
    world::TOKEN,
};

const BYTES: usize = 200_000;
/// The bundle is this again and again: fifty bytes.
const TEXT: &str = "export const shed = 'tidy, oiled, and locked'; //\n";
const CONNECTIONS: usize = 32;
const REQUESTS: usize = 200;
const NAME: &str = "bundle.js";
const UI: &str = "ui:\n  bundle: /lib/bundle.js\n";
/// As the page asks: with the version.
const PATH: &str = "/api/plugins/bench-ui/bundle?v=1.0.0";
const LEAST: f64 = 0.5;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let Some(nginx) = nginx::find() else {
        eprintln!(
            "bench: bundle: MISSING: nginx; without it the row fails. Install it (Debian: nginx; as root \
             scripts/ensure-nginx.sh does it), or name the program in KANDEV_NGINX"
        );
        return Ok(vec![line("bundle of 200 kB (not measured: nginx is missing)", Pairs::default())]);
    };
    let content = TEXT.repeat(BYTES / TEXT.len());
    let content = content.as_bytes();
    let folder = tempfile::tempdir()?;
    let (file, archive) = (folder.path().join(NAME), folder.path().join("p.tar.gz"));
    fs::write(&file, content)?;
    let of = Of { more: UI, ..Of::id("bench-ui") };
    package::pack(&archive, of, &options.program("bench-guest")?, slice::from_ref(&file), 1)?;
    let served = Served::start(&options.program("kandev-host")?).await?;
    served.install(&archive).await?;
    let nginx = Nginx::serve(&nginx, NAME, content, Limits::default().http_workers).await?;
    let bare = load(nginx.address, &format!("/{NAME}"));
    let own = load(served.address, PATH);
    for load in [&bare, &own] {
        check(load.address, &load.path, content).await?;
    }
    let pairs = alternate(options.rounds(), || bare.elsewhere(), || own.elsewhere()).await?;
    Ok(vec![line("bundle of 200 kB, 32 connections, against nginx", pairs)])
}

fn load(address: SocketAddr, path: &str) -> Load {
    Load {
        address,
        method: "GET".to_owned(),
        path: path.to_owned(),
        connections: CONNECTIONS,
        requests: REQUESTS,
        answer: Some(BYTES),
        body: String::new(),
    }
}

/// The load looks at the length alone.
async fn check(address: SocketAddr, path: &str, content: &[u8]) -> Outcome<()> {
    let mut client = Client::connect(address).await?;
    match client.send(&request("GET", path, TOKEN, b"")).await? {
        (200, body) if body == content => Ok(()),
        (status, body) => Err(format!("{path} answers {status} and {} bytes, not the file", body.len()).into()),
    }
}

fn line(what: &'static str, pairs: Pairs) -> Line {
    Line { row: "bundle", what, unit: "GET/s", values: Values::Pairs(pairs), bound: Bound::RatioAtLeast(LEAST) }
}
