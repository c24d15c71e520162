//! How a plugin is, in its record and in `/metrics` (docs/api.md, docs/operations.md).

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Guest, Host, Package, Settings, Signal, eventually, eventually_some, host::TOKEN, kill},
};

async fn process(host: &Host) -> Value {
    host.plugin("demo").await["process"].clone()
}

/// Settings under which a plugin that was killed stays down.
const STAYS_DOWN: &str = "[timing]\nrestart_delays = [\"1h\"]\ndrain_grace = \"300ms\"\n[limits]\nbuffer_events = 2\n";

on_both!(a_record_shows_the_process_and_what_became_of_events, |guest| {
    let host = Host::start_with(Settings::toml(STAYS_DOWN)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let pid = host.plugin_pid("demo").unwrap();
    let fresh = process(&host).await;
    assert_eq!(fresh["pid"], pid);
    assert!(fresh["uptime_seconds"].as_f64().unwrap() < 60.0 && fresh["started_at"].is_string(), "{fresh}");
    assert!(fresh["memory_bytes"].as_u64().unwrap() > 100_000 && fresh["cpu_seconds"].is_number(), "{fresh}");
    assert_eq!(fresh["processes"], 1);
    let counts =
        ["calls_in_flight", "queue_depth", "buffer_depth", "delivered", "failed", "dropped", "expired", "restarts"];
    assert!(counts.iter().all(|name| fresh[name] == 0), "{fresh}");
    assert_eq!((&fresh["next_restart_at"], &fresh["last_delivery_at"]), (&Value::Null, &Value::Null));
    assert_eq!(host.plugin("demo").await["runtime"]["type"], "binary", "the manifest's block stays");

    host.publish("test.1", json!({})).await;
    let delivered = eventually_some("the event is counted", || async {
        let process = process(&host).await;
        (process["delivered"] == 1).then_some(process)
    })
    .await;
    assert!(delivered["last_delivery_at"].is_string(), "{delivered}");

    let url = format!("{}/api/plugins/demo/webhooks/sleep?ms=20000", host.url());
    let call = tokio::spawn(host.client().get(url).send());
    eventually("the call is in flight", || async { process(&host).await["calls_in_flight"] == 1 }).await;
    call.abort();

    kill(pid, Signal::KILL);
    host.status("demo", "error").await;
    for n in 2..=4 {
        host.publish(&format!("test.{n}"), json!({})).await;
    }
    // A publication is accepted before every plugin's line has it.
    let down = eventually_some("all three came to the buffer", || async {
        let process = process(&host).await;
        (process["buffer_depth"] == 2 && process["dropped"] == 1).then_some(process)
    })
    .await;
    for name in ["pid", "started_at", "uptime_seconds", "memory_bytes", "cpu_seconds", "processes"] {
        assert_eq!(down[name], Value::Null, "{down}");
    }
    assert!(down["next_restart_at"].as_str().unwrap() > delivered["last_delivery_at"].as_str().unwrap(), "{down}");
    assert_eq!(down["queue_depth"], 0);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_go_on_over_restarts_and_end_with_the_plugin() {
    let host = Host::start_with(Settings::toml("[timing]\nrestart_delays = [\"100ms\"]\n")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.publish("test.1", json!({})).await;
    eventually("the event is counted", || async { process(&host).await["delivered"] == 1 }).await;
    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    let back = eventually_some("the plugin came back", || async {
        let process = process(&host).await;
        (process["restarts"] == 1 && process["pid"].is_number()).then_some(process)
    })
    .await;
    assert_eq!((&back["delivered"], &back["next_restart_at"]), (&json!(1), &Value::Null));
    host.uninstall("demo").await.expect(200);
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let new = process(&host).await;
    assert_eq!((&new["delivered"], &new["restarts"]), (&json!(0), &json!(0)));
}

/// The samples of a scrape by their name with labels.
async fn scrape(host: &Host) -> BTreeMap<String, f64> {
    lint(&text(host).await)
}

async fn text(host: &Host) -> String {
    let answer = host.client().get(format!("{}/metrics", host.url())).bearer_auth(TOKEN).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    answer.text().await.unwrap()
}

/// What `promtool check metrics` looks for: a type and a help for each family, names by the conventions, each series
/// once, buckets that grow up to the count.
fn lint(text: &str) -> BTreeMap<String, f64> {
    let (mut types, mut helped, mut samples) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "two types: {line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(!help.is_empty() && helped.insert(name), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    assert_eq!(types.keys().copied().collect::<BTreeSet<_>>(), helped);
    for (name, kind) in &types {
        assert!(name.starts_with("kandev_") || name.starts_with("process_"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == "counter", "{name} is a {kind}");
        let scaled = ["_ms", "milliseconds", "minutes", "kilobytes", "_kb", "_mb", "percent"];
        assert!(!scaled.iter().any(|unit| name.contains(unit)), "{name}: base units only");
    }
    for (series, value) in &samples {
        let name = series.split('{').next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        let kind = types.get(name).or(types.get(family)).unwrap_or_else(|| panic!("{series} has no type"));
        assert!(value.is_finite() && (*value >= 0.0 || *kind == "gauge"), "{series} {value}");
        if name.ends_with("_count") && *kind == "histogram" {
            let labels = series.split_once('{').map_or("", |(_, labels)| labels.trim_end_matches('}'));
            let mut buckets: Vec<(f64, f64)> = samples
                .iter()
                .filter(|(other, _)| other.starts_with(&format!("{family}_bucket{{")) && other.contains(labels))
                .map(|(other, count)| {
                    let bound = other.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
                    (bound.replace('+', "").parse().unwrap_or(f64::INFINITY), *count)
                })
                .collect();
            buckets.sort_by(|one, two| one.0.total_cmp(&two.0));
            assert!(buckets.windows(2).all(|two| two[0].1 <= two[1].1), "{series}: {buckets:?}");
            assert_eq!(buckets.last().map(|last| last.1), Some(*value), "{series}");
        }
    }
    samples
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_tell_of_requests_events_webhooks_processes_and_the_host() {
    let host = Host::start_with(Settings::toml(STAYS_DOWN)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.publish("test.1", json!({})).await;
    eventually("the event is counted", || async { process(&host).await["delivered"] == 1 }).await;
    host.post("/api/plugins/demo/webhooks/echo", json!({})).await.expect(200);
    host.get("/api/plugins/demo/webhooks/error?text=no").await.expect(503);
    let samples = scrape(&host).await;
    let expected = [
        ("kandev_http_requests_total{route=\"/api/plugins/install\",method=\"POST\",status=\"201\"}", 1.0),
        ("kandev_http_requests_total{route=\"/api/plugins/{id}/webhooks/{key}\",method=\"GET\",status=\"503\"}", 1.0),
        ("kandev_http_request_duration_seconds_count{route=\"/api/plugins/install\",method=\"POST\"}", 1.0),
        ("kandev_plugin_status{plugin=\"demo\",status=\"active\"}", 1.0),
        ("kandev_plugin_status{plugin=\"demo\",status=\"error\"}", 0.0),
        ("kandev_plugin_restarting{plugin=\"demo\"}", 0.0),
        ("kandev_plugin_restarts_total{plugin=\"demo\"}", 0.0),
        ("kandev_plugin_events_total{plugin=\"demo\",outcome=\"delivered\"}", 1.0),
        ("kandev_plugin_events_total{plugin=\"demo\",outcome=\"failed\"}", 0.0),
        ("kandev_plugin_events_dropped_total{plugin=\"demo\",cause=\"overflow\"}", 0.0),
        ("kandev_plugin_events_dropped_total{plugin=\"demo\",cause=\"expired\"}", 0.0),
        ("kandev_plugin_delivery_duration_seconds_count{plugin=\"demo\",outcome=\"acknowledged\"}", 1.0),
        ("kandev_plugin_delivery_duration_seconds_count{plugin=\"demo\",outcome=\"failed\"}", 0.0),
        ("kandev_plugin_queue_events{plugin=\"demo\"}", 0.0),
        ("kandev_plugin_buffer_events{plugin=\"demo\"}", 0.0),
        ("kandev_plugin_calls_in_flight{plugin=\"demo\"}", 0.0),
        ("kandev_plugin_processes{plugin=\"demo\"}", 1.0),
        ("kandev_plugin_webhooks_total{plugin=\"demo\",outcome=\"answered\"}", 1.0),
        ("kandev_plugin_webhooks_total{plugin=\"demo\",outcome=\"failed\"}", 1.0),
        ("kandev_plugin_webhook_duration_seconds_count{plugin=\"demo\"}", 2.0),
        ("kandev_database_errors_total{kind=\"unavailable\"}", 0.0),
        ("kandev_log_lines_lost_total{cause=\"disk\"}", 0.0),
        ("kandev_log_followers", 0.0),
        ("kandev_event_writer_events_lost_total", 0.0),
        ("kandev_event_writer_queue_events", 0.0),
        ("kandev_build_info{version=\"0.1.0\"}", 1.0),
    ];
    for (series, value) in expected {
        assert_eq!(samples.get(series), Some(&value), "{series}: {samples:#?}");
    }
    let more_than = [
        ("process_resident_memory_bytes", 1e6),
        ("process_start_time_seconds", 1.7e9),
        ("process_open_fds", 3.0),
        ("process_cpu_seconds_total", 0.0),
        ("kandev_event_writer_events_total", 1.0),
        ("kandev_event_writer_transactions_total", 0.0),
        ("kandev_plugin_memory_bytes{plugin=\"demo\"}", 1e5),
        ("kandev_plugin_start_time_seconds{plugin=\"demo\"}", 1.7e9),
    ];
    for (series, least) in more_than {
        assert!(samples.get(series).is_some_and(|value| *value > least), "{series}: {samples:#?}");
    }

    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    host.status("demo", "error").await;
    host.publish("test.2", json!({})).await;
    // A publication is accepted before every plugin's actor has it.
    let samples = eventually_some("the event waits in the buffer", || async {
        let samples = scrape(&host).await;
        (samples["kandev_plugin_buffer_events{plugin=\"demo\"}"] == 1.0).then_some(samples)
    })
    .await;
    assert_eq!(samples["kandev_plugin_status{plugin=\"demo\",status=\"error\"}"], 1.0);
    assert_eq!(samples["kandev_plugin_restarting{plugin=\"demo\"}"], 1.0);
    assert_eq!(samples.get("kandev_plugin_memory_bytes{plugin=\"demo\"}"), None, "no process, no figure");

    host.uninstall("demo").await.expect(200);
    assert!(!text(&host).await.contains("plugin=\"demo\""), "an uninstalled plugin leaves no label");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_need_the_token_unless_they_are_public() {
    let host = Host::start().await;
    assert_eq!(host.anonymous(Method::GET, "/metrics").await.expect(401)["code"], "unauthenticated");
    let host = Host::start_with(Settings::toml("[metrics]\npublic = true\n")).await;
    let answer = host.anonymous(Method::GET, "/metrics").await.expect(200);
    assert!(answer.as_str().unwrap().contains("kandev_build_info"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_make_no_labels() {
    let host = Host::start().await;
    for path in ["/hunter2", "/api/plugins/hunter2", "/api/plugins/hunter2/webhooks/hunter2?hunter2=1"] {
        host.anonymous(Method::GET, path).await;
    }
    host.anonymous(Method::from_bytes(b"HUNTER2").unwrap(), "/health").await;
    let text = text(&host).await;
    assert!(!text.to_lowercase().contains("hunter2"), "{text}");
    assert!(text.contains("kandev_http_requests_total{route=\"none\",method=\"GET\",status=\"404\"} 1"), "{text}");
    assert!(text.contains("kandev_http_requests_total{route=\"/health\",method=\"other\",status=\"405\"} 1"), "{text}");
}
