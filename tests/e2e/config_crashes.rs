//! The host is killed at every named moment of a config save, and at drawn ones: its successor must find the old config
//! or the new one, file and secrets of the same save, and start the plugin with it (docs/runtime-semantics.md).

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    config::package,
    support::{Guest, Host, Settings, Signal, eventually, eventually_some, kill},
};

const FAST: &str = "[timing]\ndrain_grace = \"300ms\"\nstop_grace = \"500ms\"\nterm_grace = \"300ms\"\n";

const ID: &str = "demo";

/// With a changed secret, what is left after the kill: the old config or the new one.
const WITH_SECRET: [(&str, &str); 9] = [
    ("config.writing", "old"),
    ("file.replacing", "old"),
    ("config.staged", "old"),
    ("config.secrets_saved", "new"),
    ("config.saved", "new"),
    ("record.writing", "new"),
    ("start.launching", "new"),
    ("start.launched", "new"),
    ("start.settled", "new"),
];

/// With the secret kept, so that only the file changes.
const WITHOUT_SECRET: [(&str, &str); 4] =
    [("config.writing", "old"), ("file.replacing", "old"), ("config.saved", "new"), ("start.launching", "new")];

fn config(name: &str, secret: &str) -> Value {
    json!({"config": {"url": "http://a", "zeta": name, "token": secret}})
}

async fn patch(host: &Host, body: Value) -> u16 {
    host.request(Method::PATCH, &format!("/api/plugins/{ID}"), Some(body)).await.status
}

async fn seen(host: &Host) -> Value {
    let result = eventually_some("the plugin has found its host", || async {
        let result = host.host_calls(ID, json!([{"rpc": "GetConfig", "request": {}}])).await.remove(0);
        (result["code"] != "Unavailable").then_some(result)
    })
    .await;
    assert_eq!(result["ok"], true, "{result}");
    result["response"]["config"].clone()
}

/// Starts the host again and looks at what it found: the names of the file and of the secret agree.
async fn restarted(host: &mut Host, with_secret: bool) -> String {
    host.kill();
    eventually("no plugin process is left", || async { host.plugin_processes().is_empty() }).await;
    host.disarm();
    host.spawn().await;
    host.status(ID, "active").await;
    let config = seen(host).await;
    let name = config["zeta"].as_str().expect("a text").to_owned();
    let secret = if with_secret { name.as_str() } else { "old" };
    assert_eq!(config, json!({"url": "http://a", "zeta": name, "token": secret}));
    let names = std::fs::read_dir(host.plugins()).unwrap().flatten().map(|e| e.file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with(".staged-")).count(), 0, "nothing unfinished is left");
    name
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_killed_in_a_save_leaves_the_old_config_or_the_new_one() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&package(Guest::Rust, "1.0.0")).await;
    let with = WITH_SECRET.iter().map(|moment| (moment, "new"));
    for ((moment, left), secret) in with.chain(WITHOUT_SECRET.iter().map(|moment| (moment, "********"))) {
        println!("{moment} with the secret {secret}, must leave {left}");
        assert_eq!(patch(&host, config("old", "old")).await, 200);
        host.arm(moment);
        assert_eq!(patch(&host, config("new", secret)).await, 0, "{moment} was not reached");
        assert_eq!(restarted(&mut host, secret == "new").await, *left, "{moment}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_killed_at_drawn_moments_of_saves_leaves_a_config_that_was_saved() {
    let seed = std::env::var("KANDEV_TEST_SEED").ok().map_or(0x5eed, |text| text.parse().expect("a number as seed"));
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&package(Guest::Rust, "1.0.0")).await;
    for round in 0..8u64 {
        assert_eq!(patch(&host, config("old", "old")).await, 200);
        let delay = Duration::from_micros((seed + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) / 80;
        println!("seed {seed}, round {round}, kill after {delay:?}");
        let killing = async {
            tokio::time::sleep(delay).await;
            kill(i32::try_from(host.pid()).expect("a pid"), Signal::KILL);
        };
        let (status, ()) = tokio::join!(patch(&host, config("new", "new")), killing);
        let name = restarted(&mut host, true).await;
        assert!(name == "new" || (name == "old" && status == 0), "{name} after {status}");
    }
}
