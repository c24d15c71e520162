//! The host's own stop (docs/runtime-semantics.md "Stop"): whoever waits for something is told, and is not cut off.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    on_both,
    support::{
        Board, Guest, Host, Package, Settings,
        board::workspace,
        callable, eventually,
        host::TOKEN,
        provider,
        raw::{Raw, request},
    },
};

/// Nothing but the grace ends a call.
const QUICK: &str = r#"
[timing]
drain_grace = "300ms"
stop_grace = "500ms"
webhook_timeout = "90s"
action_timeout = "90s"
tool_timeout = "90s"
reference_search_timeout = "90s"
"#;

/// A request that is under way when this returns.
async fn sent(host: &Host, plugin: &str, method: &str, target: &str, body: &Value) -> Raw {
    let login = format!("Authorization: Bearer {TOKEN}");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let before = under_way(host, plugin).await;
    let mut raw = Raw::connect(host).await;
    let headers = [login.as_str(), "Content-Type: application/json"];
    raw.send(request(method, target, &headers, body.as_bytes())).await;
    eventually("the call is under way", || async { under_way(host, plugin).await > before }).await;
    raw
}

async fn under_way(host: &Host, plugin: &str) -> u64 {
    host.plugin(plugin).await["process"]["calls_in_flight"].as_u64().expect("a number of calls")
}

/// The host's own answer, and the end of the connection.
async fn told_that_the_host_stops(mut raw: Raw, what: &str) {
    let answer = raw.answer().await;
    assert_eq!(answer.expect_error(503, "stopping"), "the host is stopping", "{what}");
    assert_eq!((answer.values("retry-after"), answer.values("connection")), (vec!["1"], vec!["close"]), "{what}");
    assert_eq!(raw.rest().await, b"", "{what}");
}

on_both!(a_call_that_outlives_the_grace_is_answered_by_the_host_and_not_cut_off, |guest| {
    let mut host = Host::start_with(Settings::toml(QUICK)).await;
    host.install(&callable(guest, "demo", "1.0.0")).await;
    host.install(&provider(guest, "forge", "1.0.0")).await;
    host.set_switches("forge", &json!({"references": {"search_ms": 60_000}}));
    let board = Board::make(&host).await;
    let workspace = workspace(&host, "searched").await;
    let action = json!({"workspaceId": board.workspace, "body": {"ms": 60_000}});
    let tool = json!({"arguments": {"ms": 60_000}});
    let search = json!({"workspace_id": workspace, "source": "issues", "query": "fix"});
    let mut open = Vec::new();
    for (plugin, method, target, body) in [
        ("demo", "GET", "/api/plugins/demo/webhooks/sleep?ms=60000", Value::Null),
        ("demo", "POST", "/api/plugins/demo/actions/sleep", action),
        ("demo", "POST", "/api/v1/tools/demo/sleep", tool),
        ("forge", "POST", "/api/v1/references/search", search),
    ] {
        open.push((target, sent(&host, plugin, method, target, &body).await));
    }
    let begin = Instant::now();
    let told = async {
        for (target, raw) in open {
            told_that_the_host_stops(raw, target).await;
        }
    };
    let (stopped, ()) = tokio::join!(host.stop(), told);
    assert_eq!(stopped, Some(0));
    assert!(begin.elapsed().as_secs() < 8, "{:?}", begin.elapsed());
});

on_both!(a_call_that_ends_within_the_grace_is_not_cut_off, |guest| {
    let mut host = Host::start_with(Settings::toml(&QUICK.replace("300ms", "6s"))).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let mut raw = sent(&host, "demo", "GET", "/api/plugins/demo/webhooks/sleep?ms=3000", &Value::Null).await;
    let (stopped, answer) = tokio::join!(host.stop(), raw.answer());
    assert_eq!((stopped, answer.status), (Some(0), 200), "{answer:?}");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_followed_log_says_its_end_also_when_a_call_outlives_the_grace() {
    let mut host = Host::start_with(Settings::toml(QUICK)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let url = format!("{}/api/plugins/demo/logs?follow=true", host.url());
    let follower = host.client().get(url).bearer_auth(TOKEN).send().await.expect("a stream");
    let raw = sent(&host, "demo", "GET", "/api/plugins/demo/webhooks/sleep?ms=60000", &Value::Null).await;
    let told = told_that_the_host_stops(raw, "webhook");
    let (stopped, text, ()) = tokio::join!(host.stop(), follower.text(), told);
    let text = text.expect("the stream ends in order");
    assert_eq!(stopped, Some(0));
    assert!(text.ends_with("event: end\ndata: {\"reason\":\"stopping\"}\n\n"), "{text}");
}
