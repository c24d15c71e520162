//! The event log: all events in one order, and between two hosts: what the one committed and did not publish, the next
//! one does.

use std::time::Duration;

use kandev_host::{
    config::{Limits, Timing},
    domain::platform::{task::NewTask, workspace::WorkspaceDraft},
    platform::{By, Platform},
    store::{
        db::Db,
        platform::{Logged, PlatformStore},
    },
};
use serde_json::{Value, json};
use test_postgres::Server;
use tokio::time::Instant;

use crate::{
    on_both, on_databases,
    support::{Guest, Host, Package, Settings, eventually, eventually_some},
};

/// Address of the database of a host that was started with these settings.
fn database(host: &Host, settings: &Settings) -> String {
    let given = settings.env.iter().find(|(name, _)| name == "DATABASE_URL").map(|(_, url)| url.clone());
    given.unwrap_or_else(|| format!("sqlite://{}", host.home().join("kandev.db").display()))
}

/// Works on the host's database beside it.
async fn with_store<T>(url: &str, work: impl AsyncFnOnce(PlatformStore) -> T) -> T {
    let db = Db::connect(&url.into(), &Timing::default(), &Limits::default()).await.expect("the host's database");
    let done = work(PlatformStore::new(db.clone())).await;
    db.close().await.expect("the database is closed");
    done
}

async fn make_workspace(url: &str) {
    let draft = WorkspaceDraft { name: Some("one".to_owned()), ..WorkspaceDraft::default() };
    with_store(url, async |store| Platform::new(&store).workspaces.create(&By::operator(), &draft).await)
        .await
        .expect("a workspace");
}

async fn log(url: &str) -> Vec<Logged> {
    with_store(url, async |store| store.events_after(0, 10_000).await).await.expect("the log").0
}

fn call(rpc: &str, request: Value) -> Value {
    json!({"rpc": rpc, "request": request})
}

fn emit(name: &str, payload: Value) -> Value {
    call("EmitEvent", json!({"event_name": name, "payload": payload}))
}

/// A plugin that gets all kinds of events and may make tasks.
fn listener(guest: Guest, id: &str) -> Package {
    let all = "\"task.*\", \"plugin.worker.*\", \"plugin.lifecycle.*\"";
    let rights = "capabilities:\n  api_write: [tasks]";
    Package::of(guest, id, "1.0.0").manifest(|text| text.replace("\"task.*\"", all).replace("capabilities:", rights))
}

/// Commits a workspace and tasks with these titles as a host does that is killed before it publishes them.
async fn commit_unpublished(host: &Host, titles: &[&str]) {
    let url = format!("sqlite://{}", host.home().join("kandev.db").display());
    let db = Db::connect(&url.into(), &Timing::default(), &Limits::default()).await.expect("the host's database");
    let (platform, by) = (Platform::new(&PlatformStore::new(db.clone())), By::operator());
    let draft = WorkspaceDraft { name: Some("one".to_owned()), ..WorkspaceDraft::default() };
    platform.workspaces.create(&by, &draft).await.expect("a workspace");
    for title in titles {
        let new = NewTask { title: (*title).to_owned(), ..NewTask::default() };
        platform.tasks.create(&by, &new).await.expect("a task");
    }
    db.close().await.expect("the database is closed");
}

on_both!(what_a_host_committed_and_did_not_publish_reaches_the_plugins_of_the_next_one_in_order_and_once, |guest| {
    let mut host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    host.kill();
    let titles = ["a", "b", "c", "d", "e"];
    commit_unpublished(&host, &titles).await;
    host.spawn().await;
    let told = |events: &[Value]| {
        let of = |event: &Value| (event["event_type"].clone(), event["payload"]["title"].clone());
        events.iter().map(of).collect::<Vec<_>>()
    };
    let expected: Vec<_> = titles.iter().map(|title| (json!("task.created"), json!(title))).collect();
    assert_eq!(told(&host.events("demo", titles.len()).await), expected);

    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    host.publish("test.later", json!({})).await;
    let all = host.events("demo", titles.len() + 1).await;
    assert_eq!(told(&all)[titles.len()..], [(json!("test.later"), Value::Null)]);
});

on_databases!(an_event_is_not_lost_when_the_host_is_killed_between_its_commit_and_its_publishing, "", |settings| {
    let mut host = Host::start_with(settings).await;
    host.install(&listener(Guest::Rust, "demo")).await;
    host.install(&Package::of(Guest::Rust, "worker", "1.0.0")).await;
    let of_worker = |host: &Host, kind: &str| {
        let events = host.recorded("demo", "events.jsonl");
        let found: Vec<_> = events.into_iter().filter(|event| event["event_type"] == kind).collect();
        let ids: std::collections::BTreeSet<_> = found.iter().map(|event| event["event_id"].to_string()).collect();
        (ids.len(), found.last().map(|event| event["payload"].clone()))
    };
    // The news of the starts must be written: the next event that is committed is the one of the test.
    let started = async |host: &Host| {
        let log = host.get("/api/v1/events?subject=plugin.lifecycle.active").await.expect(200);
        log["events"].as_array().map_or(0, Vec::len)
    };
    eventually("both starts are told", || async { started(&host).await == 2 }).await;

    host.arm("events.appended");
    let cut_off = host.post("/api/v1/events", json!({"subject": "test.one", "payload": {"n": 1}})).await;
    assert_eq!(cut_off.status, 0, "killed before the answer: {cut_off:?}");
    assert_eq!(of_worker(&host, "test.one").0, 0);
    host.kill();
    host.disarm();
    host.spawn().await;
    eventually("the operator's event", || async { of_worker(&host, "test.one") == (1, Some(json!({"n": 1}))) }).await;

    for id in ["demo", "worker"] {
        host.status(id, "active").await;
    }
    eventually("both next starts are told", || async { started(&host).await == 4 }).await;
    host.arm("events.appended");
    let path = "/api/plugins/worker/webhooks/host";
    let cut_off = host.post(path, json!({"calls": [emit("done", json!({"n": 2}))]})).await;
    assert_eq!(cut_off.status, 0, "{cut_off:?}");
    host.kill();
    host.disarm();
    host.spawn().await;
    eventually("the plugin's event", || async { of_worker(&host, "plugin.worker.done") == (1, Some(json!({"n": 2}))) })
        .await;
    assert_eq!(of_worker(&host, "test.one").0, 1, "one event, however often it came");
});

const FAST: &str = r#"
[timing]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
"#;

on_databases!(events_of_all_kinds_reach_every_plugin_in_the_order_of_the_log, FAST, |settings| {
    let url_settings = settings.clone();
    let mut host = Host::start_with(settings).await;
    let url = database(&host, &url_settings);
    make_workspace(&url).await;
    for id in ["first", "second"] {
        host.install(&listener(Guest::Rust, id)).await;
    }
    host.install(&listener(Guest::Rust, "worker")).await;
    let lane = async |n: usize| {
        for round in 0..10 {
            let title = format!("{n}-{round}");
            let calls = json!([call("CreateTask", json!({"title": title})), emit("done", json!({"title": title}))]);
            let results = host.host_calls("worker", calls).await;
            assert!(results.iter().all(|result| result["ok"] == true), "{results:?}");
            host.publish("test.published", json!({"title": title})).await;
        }
    };
    let switch = async {
        for _ in 0..3 {
            host.command("third", "disable").await.expect(200);
            host.command("third", "enable").await.expect(200);
        }
    };
    host.install(&Package::of(Guest::Rust, "third", "1.0.0")).await;
    tokio::join!(lane(0), lane(1), lane(2), switch);

    let ids = |host: &Host, id: &str| {
        let of = |event: Value| (event["event_id"].as_str().unwrap().to_owned(), event["event_type"].clone());
        host.recorded(id, "events.jsonl").into_iter().map(of).collect::<Vec<_>>()
    };
    let all = async |id: &str| {
        let published = |events: &[(String, Value)]| events.iter().filter(|(_, kind)| kind == "test.published").count();
        eventually_some("all events of the operator", || async {
            let events = ids(&host, id);
            (published(&events) == 30).then_some(events)
        })
        .await
    };
    all("first").await;
    all("second").await;
    assert_eq!(host.stop().await, Some(0));
    let log = log(&url).await;
    for (id, later) in [("first", "second"), ("second", "first")] {
        let seen = ids(&host, id);
        let place =
            |seen: &(String, Value)| log.iter().position(|event| event.id.to_string() == seen.0).expect("in the log");
        let places: Vec<_> = seen.iter().map(place).collect();
        assert!(places.is_sorted(), "{id}: {places:?}");
        // Since it is there, it has got everything that it subscribes to and that is not about itself.
        let expected = log[places[0]..=*places.last().unwrap()].iter().filter(|event| {
            let kinds = ["test.", "task.", "plugin.worker.", "plugin.lifecycle."];
            event.about.as_deref() != Some(id) && kinds.iter().any(|kind| event.subject.starts_with(kind))
        });
        assert_eq!(seen.len(), expected.count(), "{id} beside {later}");
    }
    for (kind, count) in [("task.created", 30), ("plugin.worker.done", 30), ("test.published", 30)] {
        assert_eq!(log.iter().filter(|event| event.subject == kind).count(), count, "{kind}");
    }
    let about_third = log.iter().filter(|event| event.about.as_deref() == Some("third")).count();
    assert!(about_third >= 7, "registered or active, and three times off and on: {about_third}");
});

on_databases!(what_an_event_says_of_a_task_or_session_names_its_workspace, FAST, |settings| {
    let host_settings = settings.clone();
    let host = Host::start_with(settings).await;
    let url = database(&host, &host_settings);
    make_workspace(&url).await;
    host.install(&listener(Guest::Rust, "worker")).await;
    let made = host.host_calls("worker", json!([call("CreateTask", json!({"title": "x"}))])).await;
    let task = made[0]["response"]["task"]["id"].as_str().expect("a task").to_owned();
    host.publish("test.of_task", json!({"task_id": task})).await;
    host.publish("test.of_nobody", json!({"task_id": "gone"})).await;
    let results = host.host_calls("worker", json!([emit("done", json!({"task_id": task}))])).await;
    assert_eq!(results[0]["ok"], true, "{results:?}");
    let of = |events: &[Value], kind: &str| {
        events.iter().find(|event| event["event_type"] == kind).map(|event| event["workspace_id"].clone())
    };
    let events = eventually_some("the last event", || async {
        let events = host.recorded("worker", "events.jsonl");
        of(&events, "plugin.worker.done").is_some().then_some(events)
    })
    .await;
    let own = of(&events, "task.created").expect("the task's own event");
    assert!(own.as_str().is_some_and(|id| !id.is_empty()), "{own}");
    let found = ["test.of_task", "test.of_nobody", "plugin.worker.done"].map(|kind| of(&events, kind).unwrap());
    assert_eq!(found, [own.clone(), json!(""), own]);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_last_before_a_stop_reaches_the_plugins_of_the_next_host() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&listener(Guest::Rust, "demo")).await;
    host.install(&Package::of(Guest::Rust, "gone", "1.0.0")).await;
    host.uninstall("gone").await.expect(200);
    assert_eq!(host.stop().await, Some(0));
    let log = log(&database(&host, &Settings::default())).await;
    let last = log.last().expect("events");
    assert_eq!((last.subject.as_str(), last.about.as_deref()), ("plugin.lifecycle.uninstalled", Some("gone")));
    host.spawn().await;
    eventually("the uninstall is told", || async {
        host.event_types("demo").iter().any(|kind| kind == "plugin.lifecycle.uninstalled")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_down_events_are_refused_in_time_and_lifecycle_events_and_the_inbox_wait() {
    let Some(server) = Server::own() else { return };
    let settings = Settings::toml(&format!("{FAST}\ndatabase_timeout = \"1s\"\nping_interval = \"1h\"\n"));
    let host = Host::start_with(settings.env("DATABASE_URL", &server.database().await)).await;
    host.install(&listener(Guest::Rust, "demo")).await;
    host.install(&Package::of(Guest::Rust, "worker", "1.0.0")).await;

    tokio::task::block_in_place(|| server.stop());
    let begun = Instant::now();
    let results = host.host_calls("worker", json!([emit("done", json!({}))])).await;
    assert_eq!(
        (&results[0]["ok"], &results[0]["code"], &results[0]["message"]),
        (&json!(false), &json!("Unavailable"), &json!("the host's database is not available, try again"))
    );
    let refused = host.post("/api/v1/events", json!({"subject": "test.down", "payload": {}})).await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("database_unavailable")), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    for id in ["demo", "worker"] {
        assert_eq!(host.plugin(id).await["status"], "active");
    }
    // It crashes and comes back while nothing can be written.
    crate::support::kill(host.plugin_pid("worker").unwrap(), crate::support::Signal::KILL);
    eventually("it is restarted", || async { host.plugin("worker").await["restart_count"] == 1 }).await;

    tokio::task::block_in_place(|| server.start());
    eventually("ready again", || async { host.get("/ready").await.status == 200 }).await;
    let lifecycle =
        || host.event_types("demo").into_iter().filter(|kind| kind.starts_with("plugin.lifecycle.")).collect();
    let told = eventually_some("the crash and the restart are told", || async {
        let told: Vec<String> = lifecycle();
        (told.iter().filter(|kind| *kind == "plugin.lifecycle.active").count() == 2).then_some(told)
    })
    .await;
    let end = &told[told.len() - 2..];
    assert_eq!(end, ["plugin.lifecycle.error", "plugin.lifecycle.active"]);
    eventually("the inbox has the incident", || async {
        let items = host.get("/api/v1/inbox?status=all").await.expect(200);
        items["items"][0]["entity_id"] == "worker" && items["items"][0]["status"] == "resolved"
    })
    .await;
    host.publish("test.back", json!({})).await;
    let events = host.event_types("demo");
    assert!(!events.iter().any(|kind| kind == "test.down"), "{events:?}");
}
