//! A plugin's log: asked for, followed, and kept on disk (docs/api.md "Logs", docs/logging.md).

use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{Guest, Host, Package, Settings, eventually, eventually_some, host::TOKEN};

const QUICK: &str = "[timing]\nlog_keep_alive = \"200ms\"\nstop_grace = \"500ms\"\ndrain_grace = \"300ms\"\n";

async fn host_with_plugin(toml: &str) -> Host {
    let host = Host::start_with(Settings::toml(toml)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host
}

/// Has the plugin print a line on its standard error.
async fn print(host: &Host, text: &str) {
    let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    host.get(&format!("/api/plugins/demo/webhooks/print?stream=stderr&text={text}")).await.expect(200);
}

async fn messages(host: &Host, query: &str) -> Vec<String> {
    let body = host.get(&format!("/api/plugins/demo/logs{query}")).await.expect(200);
    body["lines"].as_array().unwrap().iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

/// Waits until the plugin's line is in the log, so that what comes next comes behind it.
async fn printed(host: &Host, text: &str, shown: &str) {
    print(host, text).await;
    eventually(shown, || async { messages(host, "").await.iter().any(|message| message == shown) }).await;
}

/// A stream of server-sent events, as text.
struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(host: &Host, query: &str, seen: Option<&str>) -> Result<Self, Value> {
        let url = format!("{}/api/plugins/demo/logs?follow=true{query}", host.url());
        let mut request = host.client().get(url).bearer_auth(TOKEN);
        if let Some(seen) = seen {
            request = request.header("last-event-id", seen);
        }
        let response = request.send().await.unwrap();
        match response.status() {
            StatusCode::OK => {
                assert_eq!(response.headers()["content-type"], "text/event-stream");
                assert_eq!(response.headers()["cache-control"], "no-store");
                Ok(Self { response, text: String::new() })
            }
            _ => Err(response.json().await.unwrap()),
        }
    }

    /// Reads until the text has this.
    async fn until(&mut self, part: &str) {
        let reading = async {
            while !self.text.contains(part) {
                let piece = self.response.chunk().await.unwrap().unwrap_or_else(|| panic!("ended: {}", self.text));
                self.text.push_str(std::str::from_utf8(&piece).unwrap());
            }
        };
        if tokio::time::timeout(Duration::from_secs(30), reading).await.is_err() {
            panic!("{part} did not come: {}", self.text);
        }
    }

    /// Reads to the end.
    async fn rest(mut self) -> String {
        let reading = async {
            while let Some(piece) = self.response.chunk().await.unwrap() {
                self.text.push_str(std::str::from_utf8(&piece).unwrap());
            }
        };
        tokio::time::timeout(Duration::from_secs(30), reading).await.expect("the stream ends");
        self.text
    }

    /// The id of the last line so far.
    fn last_id(&self) -> String {
        self.text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_chosen_by_level_time_and_number() {
    let host = host_with_plugin("").await;
    for (text, shown) in [("[WARN] w", "w"), ("plain", "plain"), ("[ERROR] e", "e")] {
        printed(&host, text, shown).await;
    }
    let warnings = messages(&host, "?level=warn").await;
    assert_eq!(warnings, ["w", "e"]);
    assert_eq!(messages(&host, "?level=warn&limit=1").await, ["e"]);
    assert_eq!(messages(&host, "?limit=0").await, [""; 0]);
    let body = host.get("/api/plugins/demo/logs?level=error").await.expect(200);
    let time = body["lines"][0]["time"].as_str().unwrap();
    assert_eq!(messages(&host, &format!("?since={time}")).await, ["e"]);
    assert_eq!(messages(&host, "?since=2999-01-01T00:00:00Z").await, [""; 0]);
    for query in ["level=loud", "limit=many", "since=today", "follow=perhaps", "level=a&level=b"] {
        let body = host.get(&format!("/api/plugins/demo/logs?{query}")).await.expect(400);
        assert_eq!(body["code"], "invalid_query", "{query}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_gets_old_lines_and_new_ones_and_a_sign_of_life_between() {
    let host = host_with_plugin(QUICK).await;
    printed(&host, "[WARN] old", "old").await;
    let mut stream = Stream::open(&host, "&level=warn&limit=1", None).await.unwrap();
    stream.until("\"message\":\"old\"}\n\n").await;
    stream.until(": keep-alive\n\n").await;
    print(&host, "not this").await;
    print(&host, "[ERROR] new").await;
    stream.until("\"message\":\"new\"}\n\n").await;
    assert!(!stream.text.contains("not this"), "{}", stream.text);
    let block = stream.text.split("\n\n").find(|block| block.contains("\"new\"")).unwrap();
    let lines: Vec<_> = block.lines().collect();
    assert!(lines[0].starts_with("id: ") && lines[1] == "event: line", "{block}");
    let line: Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!((&line["level"], &line["stream"]), (&json!("error"), &json!("stderr")));
    assert!(line["time"].is_string());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_goes_on_behind_the_last_line_it_saw_and_learns_what_it_missed() {
    let host = host_with_plugin("[limits]\nlog_lines = 3\nlog_buffer_lines = 3\n").await;
    printed(&host, "first", "first").await;
    let mut stream = Stream::open(&host, "&limit=1", None).await.unwrap();
    stream.until("\"first\"").await;
    let seen = stream.last_id();
    drop(stream);
    for n in 1..=5 {
        printed(&host, &format!("line-{n}"), &format!("line-{n}")).await;
    }
    let mut again = Stream::open(&host, "", Some(&seen)).await.unwrap();
    again.until("\"line-5\"").await;
    assert!(again.text.contains("event: skipped\ndata: {\"count\":2}\n\n"), "{}", again.text);
    assert!(!again.text.contains("\"line-2\"") && again.text.contains("\"line-3\""), "{}", again.text);
    let seen = again.last_id();
    print(&host, "last").await;
    let mut third = Stream::open(&host, "", Some(&seen)).await.unwrap();
    third.until("\"last\"").await;
    assert!(!third.text.contains("line-"), "{}", third.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_with_the_plugin_and_with_the_host() {
    let mut host = host_with_plugin(QUICK).await;
    let stream = Stream::open(&host, "", None).await.unwrap();
    host.uninstall("demo").await.expect(200);
    let text = stream.rest().await;
    assert!(text.ends_with("event: end\ndata: {\"reason\":\"uninstalled\"}\n\n"), "{text}");

    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let stream = Stream::open(&host, "", None).await.unwrap();
    let (stopped, text) = tokio::join!(host.stop(), stream.rest());
    assert_eq!(stopped, Some(0));
    assert!(text.ends_with("event: end\ndata: {\"reason\":\"stopping\"}\n\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_makes_room_for_another() {
    let host = host_with_plugin(&format!("{QUICK}[limits]\nlog_followers = 1\n")).await;
    let first = Stream::open(&host, "", None).await.unwrap();
    let refused = Stream::open(&host, "", None).await.err().unwrap();
    assert_eq!(refused["code"], "too_many_followers");
    drop(first);
    eventually("the place is free", || async { Stream::open(&host, "", None).await.is_ok() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_does_not_read_holds_nothing_up() {
    let host = host_with_plugin("[limits]\nlog_buffer_lines = 200\n").await;
    let deaf = Stream::open(&host, "", None).await.unwrap();
    let long = "x".repeat(15_000);
    for _ in 0..20 {
        for _ in 0..60 {
            print(&host, &long).await;
        }
        assert_eq!(host.post("/api/plugins/demo/webhooks/echo", json!({})).await.status, 200);
    }
    printed(&host, "end-of-it", "end-of-it").await;
    let mut slow = deaf;
    slow.until("\"end-of-it\"").await;
    assert!(slow.text.contains("event: skipped\n"), "more than its connection holds was not kept for it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_on_disk_survive_the_host_and_go_with_the_plugin() {
    let mut host = host_with_plugin(QUICK).await;
    printed(&host, "[WARN] remember me", "remember me").await;
    let file = host.home().join("logs/demo/plugin.log");
    let on_disk = || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    eventually("the line is on disk", || async { on_disk().iter().any(|line| line["message"] == "remember me") }).await;
    let line = on_disk().into_iter().find(|line| line["message"] == "remember me").unwrap();
    assert_eq!((&line["level"], &line["stream"]), (&json!("warn"), &json!("stderr")));
    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    assert!(messages(&host, "").await.iter().any(|message| message == "remember me"));
    host.status("demo", "active").await;
    host.uninstall("demo").await.expect(200);
    assert!(!host.home().join("logs/demo").exists(), "no trace is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_files_have_a_bound_in_total() {
    let host = Host::start_with(Settings::toml("[limits]\nlog_file_bytes = 131072\nlog_files = 2\n")).await;
    let package = Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"flood_stderr": 5000}));
    host.install(&package).await;
    let folder = host.home().join("logs/demo");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let older = eventually_some("a file was rotated", || {
        let older = read("plugin.1.log");
        async move { (!older.is_empty()).then_some(older) }
    })
    .await;
    assert!(older.len() <= 131_072 && read("plugin.log").len() <= 131_072);
    assert!(!folder.join("plugin.2.log").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_folder_that_cannot_be_written_stops_nothing() {
    let host = Host::start().await;
    std::fs::write(host.home().join("logs"), "in the way").unwrap();
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    printed(&host, "still here", "still here").await;
    eventually("the host says so", || async { host.log().contains("log lines cannot be written to disk") }).await;
    assert_eq!(host.log().matches("log lines cannot be written to disk").count(), 1, "once, not for every line");
    host.uninstall("demo").await.expect(200);
}
