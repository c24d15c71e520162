//! The operator's inbox: one item for each incident, whatever happens to plugin, host and database
//! (contract/lifecycle.md §8; field case 83).

use serde_json::{Value, json};
use test_postgres::Server;

use crate::{
    on_databases,
    support::{Guest, Host, Package, Settings, Signal, eventually, eventually_some, kill},
};

const FAST: &str = r#"
[timing]
ping_interval = "1h"
restart_delays = ["50ms", "50ms", "50ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
inbox_retry = "100ms"
"#;

async fn inbox(host: &Host, query: &str) -> Value {
    host.get(&format!("/api/v1/inbox{query}")).await.expect(200)
}

/// Waits until the newest item about the plugin has this status; returns all items.
async fn items(host: &Host, id: &str, status: &str) -> Vec<Value> {
    eventually_some(&format!("the newest item about {id} is {status}"), || async {
        let items = inbox(host, "?status=all").await["items"].as_array().unwrap().clone();
        let newest = items.iter().find(|item| item["entity_id"] == id)?;
        (newest["status"] == status).then_some(items)
    })
    .await
}

on_databases!(a_crash_is_one_item_and_recovery_resolves_it, FAST, |settings| {
    let host = Host::start_with(settings).await;
    let empty = json!({"items": [], "total_count": 0, "next_cursor": null});
    assert_eq!(inbox(&host, "").await, empty);
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    assert_eq!(inbox(&host, "").await, empty, "a good start is no incident");
    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    let items = items(&host, "demo", "resolved").await;
    let [item] = &items[..] else { panic!("{items:?}") };
    assert_eq!(item["title"], "Plugin demo is unreachable");
    assert_eq!((&item["type"], &item["entity_type"]), (&json!("plugin_unreachable"), &json!("plugin")));
    assert!(item["description"].as_str().unwrap().contains("signal 9"), "{item}");
    assert_eq!(item["payload"]["resolution"], "recovered");
    assert!(item["resolved_at"].is_string() && item["created_at"].is_string() && item["read"] == false, "{item}");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_of_restarts_is_one_item_that_ends_when_the_plugin_is_disabled_or_removed() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"crash_before_handshake": 3}));
    let body = host.upload(package.archive().await).await.expect(201);
    assert_eq!(body["plugin"]["status"], "error");
    let first = items(&host, "demo", "open").await;
    assert_eq!(first.len(), 1);
    host.set_switches("demo", &json!({"crash_before_handshake": null, "exit_after_handshake_ms": 1000}));
    // Active again for a moment: that incident is over, the crashes after it are one other.
    host.command("demo", "enable").await.expect(200);
    eventually("the row is used up", || async {
        let items = inbox(&host, "?status=open").await["items"].clone();
        items[0]["description"].as_str().unwrap_or_default().contains("gave up after")
    })
    .await;
    let open = inbox(&host, "?status=open").await;
    assert_eq!((&open["total_count"], &open["items"][0]["payload"]["restarting"]), (&json!(1), &json!(false)));

    let id = open["items"][0]["id"].as_str().unwrap();
    let read = host.post(&format!("/api/v1/inbox/{id}/read"), json!(null)).await.expect(200);
    assert_eq!((&read["read"], &read["status"]), (&json!(true), &json!("open")));
    host.command("demo", "disable").await.expect(200);
    let disabled = items(&host, "demo", "resolved").await;
    assert_eq!((&disabled[0]["id"], &disabled[0]["payload"]["resolution"]), (&json!(id), &json!("disabled")));
    let dismissed = host.post(&format!("/api/v1/inbox/{id}/dismiss"), json!(null)).await.expect(200);
    assert_eq!(dismissed["status"], "dismissed");
    let shown = inbox(&host, "").await;
    assert!(!shown["items"].to_string().contains(id), "{shown}");
    assert_eq!(inbox(&host, "?status=dismissed").await["total_count"], 1);

    host.set_switches("demo", &json!({"crash_before_handshake": 3}));
    host.command("demo", "enable").await.expect(500);
    items(&host, "demo", "open").await;
    host.uninstall("demo").await.expect(200);
    let removed = items(&host, "demo", "resolved").await;
    assert_eq!(removed[0]["payload"]["resolution"], "uninstalled");

    let page = inbox(&host, "?status=all&limit=1").await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = inbox(&host, &format!("?status=all&limit=1&cursor={cursor}")).await;
    assert_eq!((&next["items"][0]["id"], &next["total_count"]), (&removed[1]["id"], &page["total_count"]));
    let unknown = host.post("/api/v1/inbox/nonsense/read", json!(null)).await;
    assert_eq!((unknown.status, &unknown.body["code"]), (404, &json!("inbox_item_not_found")));
    assert_eq!(host.get("/api/v1/inbox?limit=0").await.expect(400)["code"], "invalid_query");
}

/// Waits so long for a restart that the host is killed before.
const PATIENT: &str = "[timing]\nrestart_delays = [\"1h\"]\n";

on_databases!(incidents_that_begin_and_end_while_the_host_is_down_are_found, PATIENT, |settings| {
    let mut host = Host::start_with(settings).await;
    for id in ["bad", "begins"] {
        host.install(&Package::of(Guest::Rust, id, "1.0.0")).await;
    }
    host.set_switches("bad", &json!({"crash_before_handshake": 3}));
    kill(host.plugin_pid("bad").unwrap(), Signal::KILL);
    let before = items(&host, "bad", "open").await;
    host.kill();
    // One plugin is repaired, the folder of the other goes away.
    host.set_switches("bad", &json!({}));
    std::fs::remove_dir_all(host.plugins().join("begins/1.0.0")).unwrap();
    host.spawn().await;
    let begun = items(&host, "begins", "open").await;
    let item = begun.iter().find(|item| item["entity_id"] == "begins").unwrap();
    assert!(item["description"].as_str().unwrap().contains("is missing"), "{item}");
    let after = items(&host, "bad", "resolved").await;
    let ended: Vec<_> = after.iter().filter(|item| item["entity_id"] == "bad").collect();
    assert_eq!((ended.len(), &ended[0]["id"]), (1, &before[0]["id"]), "the same item: {after:?}");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_down_delays_an_item_and_loses_none() {
    let Some(server) = Server::own() else { return };
    let toml = FAST.to_owned() + "database_timeout = \"3s\"\n";
    let host = Host::start_with(Settings::toml(&toml).env("DATABASE_URL", &server.database().await)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    tokio::task::block_in_place(|| server.stop());
    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    eventually("it is up again", || async { host.plugin("demo").await["restart_count"] == 1 }).await;
    let refused = host.get("/api/v1/inbox").await;
    assert_eq!((refused.status, &refused.body["code"]), (503, &json!("database_unavailable")));
    tokio::task::block_in_place(|| server.start());
    eventually("the database is back", || async { host.get("/api/v1/inbox").await.status == 200 }).await;
    let items = items(&host, "demo", "resolved").await;
    assert_eq!(items.len(), 1, "an incident that began and ended meanwhile: {items:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_is_an_incident_until_it_is_repaired_installed_again_or_removed() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    let packages = ["mended", "replaced", "removed"].map(|id| Package::of(Guest::Rust, id, "1.0.0"));
    for package in &packages {
        host.install(package).await;
    }
    let dies = host.upload(
        Package::of(Guest::Rust, "failed", "1.0.0").switches(&json!({"crash_before_handshake": 3})).archive().await,
    );
    dies.await.expect(201);
    let before = items(&host, "failed", "open").await[0].clone();
    assert_eq!(host.stop().await, Some(0));
    let plugins_folder = host.plugins();
    let file = |id: &str| plugins_folder.join(format!("{id}.yml"));
    let kept = std::fs::read(file("mended")).unwrap();
    for id in ["failed", "mended", "removed", "replaced"] {
        std::fs::write(file(id), "status: [").unwrap();
    }
    host.spawn().await;

    let plugins = host.get("/api/plugins").await.expect(200)["plugins"].as_array().unwrap().clone();
    let ids: Vec<_> = plugins.iter().map(|plugin| plugin["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["failed", "mended", "removed", "replaced"]);
    for plugin in &plugins {
        let (id, text) = (plugin["id"].as_str().unwrap(), plugin["last_error"].as_str().unwrap());
        assert_eq!((&plugin["status"], &plugin["version"]), (&json!("error"), &json!("unknown")), "{plugin}");
        assert!(text.contains(&format!("/plugins/{id}.yml cannot be read: ")), "{text}");
        assert!(
            text.ends_with(
                "; repair the file and restart the host, install the package again, or uninstall the plugin"
            ),
            "{text}"
        );
        let open = items(&host, id, "open").await.into_iter().find(|item| item["entity_id"] == id).unwrap();
        assert_eq!(open["description"], text);
        assert!(id != "failed" || open["id"] == before["id"], "the incident goes on: {open}");
        for command in ["enable", "disable", "rollback"] {
            assert_eq!(host.command(id, command).await.expect(503)["code"], "record_unreadable");
        }
        assert_eq!(host.get(&format!("/api/plugins/{id}/config")).await.expect(503)["code"], "record_unreadable");
        assert_eq!(std::fs::read(file(id)).unwrap(), b"status: [", "the file is left alone");
    }
    let metrics = host.get("/metrics").await.expect(200);
    let line = "kandev_plugin_status{plugin=\"mended\",status=\"error\"} 1";
    assert!(metrics.as_str().unwrap().contains(line), "{metrics}");

    host.upload(packages[1].archive().await).await.expect(201);
    assert_eq!(host.plugin("replaced").await["status"], "active");
    assert_eq!(ended(&host, "replaced").await, "recovered");
    host.uninstall("removed").await.expect(200);
    host.get("/api/plugins/removed").await.expect(404);
    assert_eq!(ended(&host, "removed").await, "uninstalled");
    assert!(!file("removed").exists() && !host.plugins().join("removed").exists());
    assert_eq!(host.stop().await, Some(0));
    std::fs::write(file("mended"), kept).unwrap();
    host.spawn().await;
    host.status("mended", "active").await;
    assert_eq!(ended(&host, "mended").await, "recovered");
    assert_eq!(items(&host, "failed", "open").await.iter().filter(|item| item["entity_id"] == "failed").count(), 1);
    host.status("replaced", "active").await;
}

/// How the newest incident of the plugin ended.
async fn ended(host: &Host, id: &str) -> Value {
    let items = items(host, id, "resolved").await;
    items.iter().find(|item| item["entity_id"] == id).expect("an item")["payload"]["resolution"].clone()
}
