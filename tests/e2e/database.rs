//! The host on each of its databases, and a PostgreSQL server that is restarted below it (docs/operations.md).
//!
//! What a store promises in detail is tested beside it, on both databases too; here the real binary runs.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use test_postgres::Server;
use tokio::time::Instant;

use crate::{
    on_databases,
    support::{Database, Guest, Host, Package, Settings, callable, eventually, eventually_some},
};

const FAST: &str = r#"
[timing]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
"#;

fn call(rpc: &str, request: Value) -> Value {
    json!({"rpc": rpc, "request": request})
}

fn set(key: &str, n: u64) -> Value {
    call("SetState", json!({"scope": "task", "scope_id": "t1", "key": key, "value": {"n": n}}))
}

fn get(key: &str) -> Value {
    call("GetState", json!({"scope": "task", "scope_id": "t1", "key": key}))
}

/// The answers of calls that must all succeed.
#[track_caller]
fn responses(results: &[Value]) -> Vec<Value> {
    for result in results {
        assert_eq!((&result["ok"], &result["code"]), (&json!(true), &json!("OK")), "{result}");
    }
    results.iter().map(|result| result["response"].clone()).collect()
}

on_databases!(state_of_a_plugin_is_kept_over_a_restart_and_gone_with_its_uninstall, FAST, |settings| {
    let mut host = Host::start_with(settings).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let list = call("ListState", json!({"scope": "task", "scope_id": "t1"}));
    let delete = call("DeleteState", json!({"scope": "task", "scope_id": "t1", "key": "gone"}));
    let calls = json!([set("kept", 1), set("gone", 2), set("kept", 3), delete, get("kept"), get("gone"), list]);
    let answers = responses(&host.host_calls("demo", calls).await);
    assert_eq!(answers[4], json!({"found": true, "value": {"n": 3}}));
    assert_eq!(answers[5], json!({"found": false, "value": null}));
    let entries = answers[6]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((&entries[0]["key"], &entries[0]["value"]), (&json!("kept"), &json!({"n": 3})));

    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    host.status("demo", "active").await;
    let answers = responses(&host.host_calls("demo", json!([get("kept")])).await);
    assert_eq!(answers[0], json!({"found": true, "value": {"n": 3}}));

    host.uninstall("demo").await.expect(200);
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let answers = responses(&host.host_calls("demo", json!([get("kept")])).await);
    assert_eq!(answers[0], json!({"found": false, "value": null}));
});

on_databases!(a_host_that_is_killed_keeps_what_it_had_acknowledged, FAST, |settings| {
    let mut host = Host::start_with(settings).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    responses(&host.host_calls("demo", (0..50).map(|n| set(&format!("k{n}"), n)).collect()).await);
    host.kill();
    host.spawn().await;
    host.status("demo", "active").await;
    let answers = responses(&host.host_calls("demo", (0..50).map(|n| get(&format!("k{n}"))).collect()).await);
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(answer["value"]["n"], json!(n));
    }
});

on_databases!(an_upgrade_keeps_state_and_events_still_arrive, FAST, |settings| {
    let host = Host::start_with(settings).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    responses(&host.host_calls("demo", json!([set("kept", 7)])).await);
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
    host.publish("test.after", json!({})).await;
    host.events("demo", 1).await;
    assert_eq!(responses(&host.host_calls("demo", json!([get("kept")])).await)[0]["value"], json!({"n": 7}));
});

async fn ready(host: &Host) -> u16 {
    host.get("/ready").await.status
}

/// Four callers that set and read a key each, one after the other, until told to stop. Gives the number of rounds of
/// each, and every call's time.
async fn load(host: &Host, stop: &AtomicBool) -> Vec<(u64, Duration)> {
    let callers = (0..4).map(|caller| async move {
        let (key, mut rounds, mut slowest) = (format!("load-{caller}"), 0, Duration::ZERO);
        while !stop.load(Ordering::Relaxed) {
            rounds += 1;
            let begun = Instant::now();
            let answers = responses(&host.host_calls("demo", json!([set(&key, rounds), get(&key)])).await);
            slowest = slowest.max(begun.elapsed());
            assert_eq!(answers[1], json!({"found": true, "value": {"n": rounds}}), "its own last write");
        }
        (rounds, slowest)
    });
    futures_util::future::join_all(callers).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_postgresql_under_load_loses_no_call_and_shows_as_not_ready() {
    let Some(server) = Server::own() else { return };
    let settings = Settings::toml("[timing]\ndatabase_timeout = \"30s\"\n");
    let host = Host::start_with(settings.env("DATABASE_URL", &server.database().await)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;

    let stop = AtomicBool::new(false);
    let restarts = async {
        for _ in 0..3 {
            tokio::task::block_in_place(|| server.stop());
            eventually("not ready", || async { ready(&host).await == 503 }).await;
            let body = host.get("/ready").await.body;
            assert_eq!(body["code"], "not_ready", "{body}");
            assert_eq!(host.get("/health").await.status, 200, "the host itself is alive");
            tokio::task::block_in_place(|| server.start());
            eventually("ready again", || async { ready(&host).await == 200 }).await;
        }
        stop.store(true, Ordering::Relaxed);
    };
    let (callers, ()) = tokio::join!(load(&host, &stop), restarts);
    for (caller, (rounds, slowest)) in callers.into_iter().enumerate() {
        assert!(slowest < Duration::from_secs(60), "two calls of 30 s each at most: {slowest:?}");
        let last = responses(&host.host_calls("demo", json!([get(&format!("load-{caller}"))])).await);
        assert_eq!(last[0]["value"], json!({"n": rounds}), "the last acknowledged write stays");
    }
    assert_eq!(host.plugin("demo").await["restart_count"], 0, "the plugin did not notice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgresql_is_down_calls_fail_at_their_deadline_and_then_work_again() {
    let Some(server) = Server::own() else { return };
    let settings = Settings::toml("[timing]\ndatabase_timeout = \"1s\"\n");
    let host = Host::start_with(settings.env("DATABASE_URL", &server.database().await)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.install(&callable(Guest::Rust, "called", "1.0.0")).await;
    responses(&host.host_calls("demo", json!([set("k", 1)])).await);

    tokio::task::block_in_place(|| server.stop());
    let begun = Instant::now();
    let results = host.host_calls("demo", json!([set("k", 2), get("k")])).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    for result in &results {
        assert_eq!(
            (&result["ok"], &result["code"], &result["message"]),
            (&json!(false), &json!("Unavailable"), &json!("the host's database is not available, try again"))
        );
    }
    let body = json!({"workspaceId": "w"});
    let refused = host.post("/api/plugins/called/actions/echo", body).await.expect(503);
    let text = "plugin action authorization unavailable";
    assert_eq!(refused, json!({"error": text, "code": "database_unavailable"}));
    assert_eq!(host.calls("called"), [Value::Null; 0]);
    let refused = host.uninstall("demo").await;
    assert!([500, 503].contains(&refused.status), "{refused:?}");
    assert_eq!(host.plugin("demo").await["status"], "error", "nothing of it was removed");

    tokio::task::block_in_place(|| server.start());
    eventually("ready again", || async { ready(&host).await == 200 }).await;
    host.command("demo", "enable").await.expect(200);
    let answers = responses(&host.host_calls("demo", json!([get("k")])).await);
    assert_eq!(answers[0]["value"], json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_database_is_out_of_reach_ends_with_the_reason_and_without_the_password() {
    let home = tempfile::tempdir().unwrap();
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_kandev-host"))
        .args(["serve", "--listen", "127.0.0.1:0", "--home"])
        .arg(home.path())
        .env("DATABASE_URL", "postgres://kandev:hunter2@127.0.0.1:1/kandev")
        .env("KANDEV_LOG", "trace")
        .output()
        .await
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("cannot open the database: "), "{text}");
    assert!(text.contains("check that its address is right, its server runs and its folder exists"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_health_command_tells_a_ready_host_from_one_that_is_not() {
    let Some(server) = Server::own() else { return };
    let settings = Settings::toml("[timing]\ndatabase_timeout = \"1s\"\n");
    let mut host = Host::start_with(settings.env("DATABASE_URL", &server.database().await)).await;
    let home = host.home().to_owned();
    let health = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_kandev-host"));
        let output = command.arg("health").args(arguments).arg("--home").arg(&home).output().await.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    assert_eq!(health(&[]).await, (Some(0), String::new()));
    for flag in ["--host", "--url"] {
        assert_eq!(health(&[flag, host.url()]).await, (Some(0), String::new()), "{flag}");
    }
    tokio::task::block_in_place(|| server.stop());
    let (code, text) = eventually_some("not ready", || async {
        let answer = health(&[]).await;
        (answer.0 != Some(0)).then_some(answer)
    })
    .await;
    assert_eq!(code, Some(1));
    assert!(text.ends_with("/ready answered 503: see the host's log"), "{text}");
    assert_eq!(host.stop().await, Some(0));
    let (code, text) = health(&[]).await;
    assert_eq!(code, Some(1));
    assert!(text.contains("host.json"), "{text}");
}

/// The place in the log cannot be saved: the stop must not wait for it until there is no time left for the plugins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugins_are_stopped_in_order_while_the_database_hangs() {
    let Some(settings) = Database::Postgres.settings("[timing]\nshutdown_timeout = \"12s\"\n").await else { return };
    let (_, url) = settings.env.iter().find(|(name, _)| name == "DATABASE_URL").expect("its address").clone();
    let mut host = Host::start_with(settings).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let hang = "CREATE FUNCTION hang() RETURNS trigger AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END' LANGUAGE plpgsql; \
                CREATE TRIGGER hang BEFORE INSERT OR UPDATE ON event_cursor FOR EACH ROW EXECUTE FUNCTION hang()";
    test_postgres::execute(&url, hang).await;
    host.publish("test.last", json!({})).await;
    host.events("demo", 1).await;
    assert_eq!(host.stop().await, Some(0));
    let log = host.log();
    assert!(log.contains("the place in the event log was not saved in time"), "{log}");
    assert!(log.contains("all plugins have stopped"), "{log}");
}
