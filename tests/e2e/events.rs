//! Delivery of events: order, retries, the ring buffer, bounds, isolation of slow and dead plugins
//! (contract/lifecycle.md §7; field cases 72–76).

use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Guest, Host, Package, Settings, eventually, eventually_some},
};

const FAST: &str = r#"
[timing]
ping_interval = "1h"
restart_delays = ["100ms", "200ms", "300ms", "400ms", "500ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
delivery_retries = ["50ms", "100ms", "150ms"]
delivery_timeout = "30s"
"#;

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["event_type"].as_str().unwrap()).collect()
}

on_both!(an_event_arrives_whole, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let id = host.publish("test.one", json!({"workspace_id": "w1", "n": 3, "list": [1, "x", null]})).await;
    let events = host.events("demo", 1).await;
    let event = &events[0];
    assert_eq!(event["event_id"], id);
    assert_eq!(event["event_type"], "test.one");
    assert_eq!(event["workspace_id"], "w1");
    assert_eq!(event["payload"], json!({"workspace_id": "w1", "n": 3, "list": [1, "x", null]}));
    let at = event["occurred_at"].as_str().unwrap();
    assert_eq!((at.len(), &at[19..]), (20, "Z"), "UTC, whole seconds: {at}");
});

on_both!(patterns_match_by_segments_and_a_trailing_wildcard_one_or_more, |guest| {
    let host = Host::start().await;
    // The fixture's manifest subscribes to test.*, task.* and shell.>.
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    for subject in ["test.a.b", "other.x", "shell", "shell.output.s1", "shell.exit", "task.created", "test.a"] {
        host.publish(subject, json!({})).await;
    }
    let events = host.events("demo", 4).await;
    assert_eq!(types(&events), ["shell.output.s1", "shell.exit", "task.created", "test.a"]);
});

on_both!(a_failing_event_is_retried_in_place_with_the_same_id_and_delays_nobody_else, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(guest, "flaky", "1.0.0").switches(&json!({"fail_event": {"test.1": 2}}));
    host.install(&package).await;
    host.install(&Package::of(guest, "other", "1.0.0")).await;
    for n in 1..=5 {
        host.publish(&format!("test.{n}"), json!({"n": n})).await;
    }
    let events = host.events("flaky", 7).await;
    assert_eq!(types(&events), ["test.1", "test.1", "test.1", "test.2", "test.3", "test.4", "test.5"]);
    assert_eq!(events[0]["event_id"], events[1]["event_id"]);
    assert_eq!(events[0]["event_id"], events[2]["event_id"]);
    let other = host.events("other", 5).await;
    assert_eq!(types(&other), ["test.1", "test.2", "test.3", "test.4", "test.5"]);
    assert_eq!(other[0]["event_id"], events[0]["event_id"], "one id for all who get it");
});

on_both!(an_event_that_always_fails_is_dropped_after_four_attempts_and_the_next_arrives, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"fail_event": {"test.bad": 99}}));
    host.install(&package).await;
    host.publish("test.bad", json!({})).await;
    host.publish("test.good", json!({})).await;
    let events = host.events("demo", 5).await;
    assert_eq!(types(&events), ["test.bad", "test.bad", "test.bad", "test.bad", "test.good"]);
    assert!(events[..4].iter().all(|event| event["event_id"] == events[0]["event_id"]), "field case 76: {events:?}");
    let lines = host.get("/api/plugins/demo/logs").await.expect(200);
    assert!(lines.to_string().contains("(test.bad) failed and was dropped"), "{lines}");
});

on_both!(a_poison_event_that_crashes_the_plugin_every_time_ends_as_failed_and_those_behind_it_arrive, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"crash_on_event": "test.poison"}));
    host.install(&package).await;
    host.publish("test.poison", json!({})).await;
    host.publish("test.after-1", json!({})).await;
    host.publish("test.after-2", json!({})).await;
    let events = host.events("demo", 6).await;
    assert_eq!(
        types(&events),
        ["test.poison", "test.poison", "test.poison", "test.poison", "test.after-1", "test.after-2"]
    );
    let poison: Vec<_> = events[..4].iter().map(|event| &event["event_id"]).collect();
    assert!(poison.iter().all(|id| *id == poison[0]));
    let record = host.status("demo", "active").await;
    assert_eq!(record["restart_count"], 4);
});

on_both!(events_of_a_plugin_in_error_wait_in_the_ring_buffer_and_come_first_in_order, |guest| {
    let host = Host::start_with(Settings::toml(&format!("{FAST}\n[limits]\nbuffer_events = 5\n"))).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"crash_before_handshake": 3}));
    host.upload(package.archive().await).await.expect(201);
    host.status("demo", "error").await;
    for n in 1..=8 {
        host.publish(&format!("test.{n}"), json!({})).await;
    }
    eventually("all eight came to the buffer", || async {
        let process = host.plugin("demo").await["process"].clone();
        process["buffer_depth"] == 5 && process["dropped"] == 3
    })
    .await;
    host.set_switches("demo", &json!({"crash_before_handshake": null}));
    host.command("demo", "enable").await.expect(200);
    host.publish("test.live", json!({})).await;
    let events = host.events("demo", 6).await;
    assert_eq!(types(&events), ["test.4", "test.5", "test.6", "test.7", "test.8", "test.live"]);
    let lines = host.get("/api/plugins/demo/logs").await.expect(200).to_string();
    assert!(lines.contains("events dropped, oldest first"), "{lines}");
});

on_both!(events_that_waited_too_long_expire, |guest| {
    let host = Host::start_with(Settings::toml(&FAST.replace("[timing]", "[timing]\nbuffer_ttl = \"300ms\""))).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"crash_before_handshake": 3}));
    host.upload(package.archive().await).await.expect(201);
    host.publish("test.old", json!({})).await;
    let published = tokio::time::Instant::now();
    eventually("the event is too old", || async { published.elapsed().as_millis() > 1500 }).await;
    host.set_switches("demo", &json!({"crash_before_handshake": null}));
    host.command("demo", "enable").await.expect(200);
    host.publish("test.new", json!({})).await;
    assert_eq!(types(&host.events("demo", 1).await), ["test.new"]);
});

on_both!(a_healthy_but_slow_plugin_loses_the_oldest_waiting_events_at_its_bound, |guest| {
    let host = Host::start_with(Settings::toml(&format!("{FAST}\n[limits]\nqueue_events = 5\n"))).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"slow_event_ms": 5000}));
    host.install(&package).await;
    host.publish("test.1", json!({})).await;
    host.events("demo", 1).await;
    for n in 2..=10 {
        host.publish(&format!("test.{n}"), json!({})).await;
    }
    eventually("what was too much is dropped", || async { host.plugin("demo").await["process"]["dropped"] == 5 }).await;
    host.set_switches("demo", &json!({"slow_event_ms": 0}));
    let events = host.events("demo", 5).await;
    assert_eq!(types(&events), ["test.1", "test.7", "test.8", "test.9", "test.10"]);
});

/// A frozen plugin holds up nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_plugin_delays_no_other() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let frozen = Package::of(Guest::Rust, "frozen", "1.0.0").switches(&json!({"hang_on_event": true}));
    host.install(&frozen).await;
    host.install(&Package::of(Guest::Rust, "well", "1.0.0")).await;
    for n in 0..50 {
        host.publish(&format!("test.{n}"), json!({})).await;
    }
    let events = host.events("well", 50).await;
    assert_eq!(types(&events), (0..50).map(|n| format!("test.{n}")).collect::<Vec<_>>());
}

on_both!(events_published_during_an_upgrade_reach_the_new_version, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let slow = Package::of(guest, "demo", "1.1.0").switches(&json!({"slow_start_ms": 1000}));
    let archive = slow.archive().await;
    let (upload, ()) = tokio::join!(host.upload(archive), async {
        eventually("the upgrade is under way", || async { host.plugin("demo").await["status"] == "registered" }).await;
        host.publish("test.between", json!({})).await;
    });
    upload.expect(201);
    assert_eq!(types(&host.events("demo", 1).await), ["test.between"]);
});

on_both!(an_emitted_event_is_published_under_the_plugins_own_name_only, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "a", "1.0.0")).await;
    let listener = Package::of(guest, "a.b", "1.0.0").manifest(|text| text.replace("\"task.*\"", "\"plugin.a.*\""));
    host.install(&listener).await;
    let results = host
        .host_calls(
            "a",
            json!([
                {"rpc": "EmitEvent", "request": {"event_name": "done", "payload": {"workspace_id": "w", "ok": true}}},
                {"rpc": "EmitEvent", "request": {"event_name": "b.done"}},
                {"rpc": "EmitEvent", "request": {"event_name": ".bad"}},
            ]),
        )
        .await;
    let codes: Vec<_> = results.iter().map(|result| (result["ok"].clone(), result["code"].clone())).collect();
    assert_eq!(codes[0].0, true, "{results:?}");
    assert_eq!(codes[1].0, false, "under the prefix of plugin a.b: {results:?}");
    assert_eq!((&codes[2].0, &codes[2].1), (&json!(false), &json!("InvalidArgument")), "{results:?}");
    let events = eventually_some("the event at the listener", || async {
        let events = host.recorded("a.b", "events.jsonl");
        (!events.is_empty()).then_some(events)
    })
    .await;
    assert_eq!(types(&events), ["plugin.a.done"]);
    assert_eq!(events[0]["workspace_id"], "w");
});

on_both!(an_operator_cannot_publish_for_a_plugin_or_without_a_lawful_subject, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    for subject in ["plugin.demo.x", "", "a..b", "a.*", "a.>", "a b"] {
        let answer = host.post("/api/v1/events", json!({"subject": subject, "payload": {}})).await;
        assert_eq!(answer.status, 400, "{subject}: {}", answer.body);
        assert!(answer.body["error"].is_string() && answer.body["code"].is_string());
    }
    let answer = host.post("/api/v1/events", json!({"subject": "test.x", "payload": [1]})).await;
    assert_eq!(answer.status, 400);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_nested_deeper_than_plugins_can_read_is_refused_and_the_deepest_lawful_one_arrives() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"d": inner}));
    let answer = host.post("/api/v1/events", json!({"subject": "test.deep", "payload": nested(33)})).await;
    assert_eq!((answer.status, &answer.body["code"]), (400, &json!("event_too_deep")), "{}", answer.body);
    host.publish("test.deep", nested(32)).await;
    assert_eq!(host.events("demo", 1).await[0]["payload"], nested(32));
}
