//! What must not pile up, and what must not get through: descriptors, threads, tasks and socket files over many
//! starts, floods of output, the host's own variables and secrets (field cases 3, 10, 11, 16, 23, 28, 29, 57).

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    on_both,
    support::{Guest, Host, Package, Settings, Signal, eventually, eventually_some, kill, wait::within},
};

/// Descriptors and threads come and go with idle connections and the pool of blocking threads; a leak of one for each
/// start is far above this.
const SLACK: usize = 12;

const FAST: &str = r#"
[timing]
ping_interval = "1h"
restart_delays = ["20ms", "20ms", "20ms", "20ms", "20ms"]
restart_stability = "10ms"
drain_grace = "300ms"
stop_grace = "2s"
term_grace = "300ms"
"#;

/// A host whose socket folders lie in a place of its own.
async fn host_with_sockets(toml: &str) -> (Host, TempDir) {
    let sockets = tempfile::Builder::new().prefix("khs-").tempdir().expect("a temporary folder");
    let settings = Settings::toml(toml).env("XDG_RUNTIME_DIR", sockets.path().to_str().expect("a path as text"));
    (Host::start_with(settings).await, sockets)
}

/// Everything below a folder.
fn entries(folder: &Path) -> usize {
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten();
    below.map(|entry| 1 + if entry.path().is_dir() { entries(&entry.path()) } else { 0 }).sum()
}

/// Descriptors and threads of the host.
fn resources(host: &Host) -> (usize, usize) {
    let count = |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", host.pid())).expect("a live host").count();
    (count("fd"), count("task"))
}

async fn cycles(host: &Host, count: usize) {
    for _ in 0..count {
        host.command("demo", "enable").await.expect(200);
        host.command("demo", "disable").await.expect(200);
    }
}

/// Tasks that were alive when the host began its last stop.
fn tasks_at_stop(host: &Host) -> usize {
    let log = host.log();
    let line = log.lines().rfind(|line| line.contains("tasks alive")).expect("the stop is logged");
    let count = line.rsplit(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    count.and_then(|digits| digits.parse().ok()).expect("a number of tasks")
}

on_both!(many_starts_and_stops_leave_descriptors_threads_tasks_and_socket_files_as_after_the_first, |guest| {
    let (mut host, sockets) = host_with_sockets(FAST).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    host.command("demo", "disable").await.expect(200);
    cycles(&host, 4).await;
    assert_eq!(host.stop().await, Some(0));
    let first_tasks = tasks_at_stop(&host);

    host.spawn().await;
    cycles(&host, 5).await;
    let (first_fds, first_threads) = resources(&host);
    let first_files = entries(sockets.path());
    cycles(&host, if guest == Guest::Rust { 195 } else { 45 }).await;
    eventually("descriptors and threads are as after the first starts", || async {
        let (fds, threads) = resources(&host);
        fds <= first_fds + SLACK && threads <= first_threads + SLACK
    })
    .await;
    assert_eq!(entries(sockets.path()), first_files, "socket files");
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    assert_eq!(host.stop().await, Some(0));
    let last_tasks = tasks_at_stop(&host);
    assert!(last_tasks <= first_tasks + SLACK, "{first_tasks} tasks after the first starts, {last_tasks} at the end");
});

// Field case 23.
on_both!(fifty_installs_in_a_row_are_active_and_answer_without_a_restart_of_the_host, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let archive = Package::of(guest, "demo", "1.0.0").archive().await;
    for _ in 0..if guest == Guest::Rust { 50 } else { 10 } {
        let body = host.upload(archive.clone()).await.expect(201);
        assert_eq!(body["plugin"]["status"], "active", "{body}");
        let echo = host.post("/api/plugins/demo/webhooks/echo", json!({"n": 1})).await.expect(200);
        assert_eq!(echo["key"], "echo");
        host.uninstall("demo").await.expect(200);
    }
});

// Field case 16.
on_both!(fifty_restarts_leave_no_socket_file_and_take_none_from_a_live_plugin, |guest| {
    let (host, sockets) = host_with_sockets(FAST).await;
    host.install(&Package::of(guest, "calm", "1.0.0")).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let calm = host.plugin_pid("calm");
    let first = entries(sockets.path());
    for turn in 0..if guest == Guest::Rust { 50 } else { 16 } {
        let pid = host.plugin_pid("demo").expect("a running plugin");
        if turn % 3 == 0 {
            host.command("demo", "disable").await.expect(200);
            host.command("demo", "enable").await.expect(200);
        } else {
            kill(pid, Signal::KILL);
        }
        eventually("the plugin is back", || async {
            host.plugin_pid("demo") != Some(pid) && host.plugin("demo").await["status"] == "active"
        })
        .await;
    }
    // The guest listens for the broker when it comes up; both plugins have as many files as in the beginning.
    eventually("only the sockets of live plugins are there", || async { entries(sockets.path()) <= first }).await;
    assert_eq!(host.plugin_pid("calm"), calm);
    for id in ["calm", "demo"] {
        let call = json!([{"rpc": "GetConfig", "request": {}}]);
        assert_eq!(host.host_calls(id, call).await[0]["ok"], true, "{id} still reaches the host");
    }
    for id in ["calm", "demo"] {
        host.command(id, "disable").await.expect(200);
    }
    assert!(entries(sockets.path()) <= 1, "only the host's own folder is left");
});

// Field case 3.
on_both!(folders_too_long_for_a_socket_path_keep_no_plugin_from_starting, |guest| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = folder.path().join("x".repeat(120));
    std::fs::create_dir(&long).expect("a folder with a long name");
    let long = long.to_str().expect("a path as text");
    let host = Host::start_with(Settings::default().env("TMPDIR", long).env("XDG_RUNTIME_DIR", long)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let call = json!([{"rpc": "GetConfig", "request": {}}]);
    assert_eq!(host.host_calls("demo", call).await[0]["ok"], true);
});

/// What a plugin may find in its environment: the allow-list, go-plugin's variables and the host's two.
const ALLOWED: [&str; 27] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "KANDEV_PLUGIN",
    "KANDEV_PLUGIN_DATA_DIR",
    "KANDEV_HOST_HOME_ID",
    "PLUGIN_MIN_PORT",
    "PLUGIN_MAX_PORT",
    "PLUGIN_PROTOCOL_VERSIONS",
    "PLUGIN_CLIENT_CERT",
    "PLUGIN_UNIX_SOCKET_DIR",
    "PLUGIN_UNIX_SOCKET_GROUP",
    "PLUGIN_MULTIPLEX_GRPC",
    "PWD",
];

/// As an operator gives it.
const VAULT_KEY: &str = "5ec5e7005ec5e7005ec5e7005ec5e7005ec5e7005ec5e7005ec5e7005ec5e700";

// Field cases 28 and 29.
on_both!(a_plugin_sees_the_allowed_variables_and_the_hosts_own_values_only, |guest| {
    let database = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite://{}?mode=rwc", database.path().join("hunter2.db").display());
    let settings = Settings::default()
        .env("SECRET_X", "hunter2")
        .env("MY_DATABASE_URL", "postgres://u:hunter2@db/x")
        .env("DATABASE_URL", &url)
        .env("AWS_SECRET_ACCESS_KEY", "hunter2")
        .env("KANDEV_VAULT_KEY", VAULT_KEY)
        .env("KANDEV_PLUGIN_DATA_DIR", "/hunter2")
        .env("TZ", "Europe/Berlin");
    let host = Host::start_with(settings).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let text = std::fs::read_to_string(host.data("demo").join("env.json")).expect("the fixture recorded it");
    let seen: serde_json::Map<String, Value> = serde_json::from_str(&text).expect("an object");
    let foreign: Vec<_> = seen.keys().filter(|name| !ALLOWED.contains(&name.as_str())).collect();
    assert_eq!(foreign, Vec::<&String>::new());
    let of_the_host = ["hunter2", VAULT_KEY, crate::support::host::TOKEN];
    assert!(of_the_host.iter().all(|secret| !text.contains(secret)), "{text}");
    assert_eq!(seen["PATH"], std::env::var("PATH").expect("a PATH").as_str());
    assert_eq!(seen["TZ"], "Europe/Berlin");
    let data = host.data("demo");
    assert_eq!(seen["KANDEV_PLUGIN_DATA_DIR"], data.to_str().expect("a path as text"));
    let pid = host.plugin_pid("demo").expect("a running plugin");
    let raw = std::fs::read(format!("/proc/{pid}/environ")).expect("its environment");
    let all = String::from_utf8_lossy(&raw);
    let named: Vec<_> = all.split('\0').filter(|entry| entry.starts_with("KANDEV_PLUGIN_DATA_DIR=")).collect();
    assert_eq!(named, [format!("KANDEV_PLUGIN_DATA_DIR={}", data.display())]);
});

async fn lines(host: &Host) -> Vec<(String, String)> {
    let body = host.get("/api/plugins/demo/logs").await.expect(200);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let lines = body["lines"].as_array().expect("lines").iter();
    lines.map(|line| (text(&line["stream"]), text(&line["message"]))).collect()
}

// Field cases 10 and 11.
on_both!(floods_of_output_block_nobody_and_are_shown_in_bounded_lines, |guest| {
    let host = Host::start_with(Settings::toml("[limits]\nlog_lines = 3000\n")).await;
    let floods = json!({"flood_stdout": 1 << 20, "big_stderr_line": 300 << 10, "flood_stderr": 1000});
    host.install(&Package::of(guest, "demo", "1.0.0").switches(&floods)).await;
    eventually("both floods were written", || async { host.recorded("demo", "floods.jsonl").len() == 2 }).await;
    let shown = eventually_some("the last line is there", || async {
        let shown = lines(&host).await;
        shown.iter().any(|(_, text)| text == "flood line 1000 of 1000").then_some(shown)
    })
    .await;
    let short: Vec<_> =
        shown.iter().filter(|(_, text)| text.starts_with("flood line ")).map(|(_, text)| text).collect();
    let expected: Vec<_> = (1..=1000).map(|n| format!("flood line {n} of 1000")).collect();
    assert_eq!(short, expected.iter().collect::<Vec<_>>());
    let long: Vec<_> = shown.iter().filter(|(stream, text)| stream == "stderr" && text.len() > 1000).collect();
    assert_eq!(long.len(), 1, "the long line is there once, cut");
    assert!(long[0].1.len() < 80 << 10, "{}", long[0].1.len());
    assert!(shown.iter().all(|(_, text)| text.len() < 80 << 10 && !text.contains(char::is_control)));
    assert_eq!(host.post("/api/plugins/demo/webhooks/echo", json!({})).await.status, 200);
    assert_eq!(host.recorded("demo", "starts.jsonl").len(), 1);
});

on_both!(the_logs_route_shows_the_last_two_hundred_lines, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0").switches(&json!({"flood_stderr": 1000}))).await;
    let shown = within(std::time::Duration::from_secs(30), "the last line is there", || async {
        let shown = lines(&host).await;
        shown.iter().any(|(_, text)| text == "flood line 1000 of 1000").then_some(shown)
    })
    .await;
    assert_eq!(shown.len(), 200);
});

// Field case 57.
on_both!(a_secret_in_a_plugins_failure_is_in_no_answer_and_no_record, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let secrets = ["ghp_0123456789abcdefghijABCDEFGHIJ456789", "hunter2-password"];
    let text = format!("cannot log in with token={} and password: {}", secrets[0], secrets[1]);
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"panic_before_handshake": text}));
    let body = host.upload(package.archive().await).await.expect(201);
    let record = host.plugin("demo").await;
    let file = std::fs::read_to_string(host.plugins().join("demo.yml")).expect("a record");
    let last_error = record["last_error"].as_str().expect("a reason");
    assert!(last_error.contains("cannot log in with token=[REDACTED]"), "{last_error}");
    assert!(!last_error.contains('\n') && last_error.len() <= 2048);
    let enable = host.command("demo", "enable").await.body;
    assert!(enable["error"].as_str().expect("a reason").contains("token=[REDACTED]"), "{enable}");
    for shown in [body.to_string(), record.to_string(), file, enable.to_string()] {
        assert!(secrets.iter().all(|secret| !shown.contains(secret)), "{shown}");
    }
});
