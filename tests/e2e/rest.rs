//! The routes of the REST interface beside webhooks and packages (contract/rest.md §1 and §2; field case 83).

use std::{os::unix::fs::PermissionsExt, process::Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{
        Guest, Host, Package, Settings, eventually, eventually_some,
        host::TOKEN,
        package::executable_path,
        raw::{self, Raw, exchange, request},
    },
};

const ECHO: &str = "/api/plugins/demo/webhooks/echo";

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// Waits for a recorded moment of a plugin.
async fn recorded(host: &Host, id: &str, file: &str, count: usize) {
    eventually(&format!("{count} lines in {file}"), || async { host.recorded(id, file).len() >= count }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_closed_route_asks_for_a_login_with_one_constant_answer() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let closed = [
        ("GET", "/api/plugins"),
        ("POST", "/api/plugins/install"),
        ("GET", "/api/plugins/demo"),
        ("GET", "/api/plugins/absent"),
        ("DELETE", "/api/plugins/demo"),
        ("POST", "/api/plugins/demo/enable"),
        ("POST", "/api/plugins/demo/disable"),
        ("GET", "/api/plugins/demo/logs"),
        ("GET", "/api/plugins/demo/webhooks/big"),
        ("POST", "/api/plugins/demo/webhooks/host"),
        ("POST", "/api/v1/events"),
    ];
    let twice = format!("{}\r\n{}", bearer(TOKEN), bearer(TOKEN));
    let credentials = [
        "X-None: 1".to_owned(),
        bearer("wrong"),
        bearer(&TOKEN[..TOKEN.len() - 1]),
        bearer(&format!("{TOKEN}x")),
        bearer(&TOKEN.to_uppercase()),
        "Authorization: Bearer".to_owned(),
        format!("Authorization: {TOKEN}"),
        format!("Authorization: Basic {TOKEN}"),
        format!("Cookie: token={TOKEN}"),
        twice,
    ];
    for (method, path) in closed {
        for credential in &credentials {
            let answer = exchange(&host, request(method, path, &[credential], b"")).await;
            assert_eq!(answer.status, 401, "{method} {path} {credential}");
            assert_eq!(answer.values("www-authenticate"), ["Bearer"]);
            assert_eq!(answer.values("content-type"), ["application/json"]);
            assert_eq!(answer.json(), json!({"error": "authentication required", "code": "unauthenticated"}));
        }
    }
    let by_query = exchange(&host, request("GET", &format!("/api/plugins?token={TOKEN}"), &[], b"")).await;
    by_query.expect_error(401, "unauthenticated");
    assert_eq!(host.plugin("demo").await["status"], "active", "nothing took effect");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_login_is_asked_for_before_the_body_is_read() {
    let host = Host::start().await;
    let mut raw = Raw::connect(&host).await;
    raw.send("POST /api/plugins/install HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n").await;
    raw.answer().await.expect_error(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_are_open() {
    let host = Host::start().await;
    assert_eq!(host.anonymous(Method::GET, "/health").await.expect(200), json!({"status": "ok"}));
    assert_eq!(host.anonymous(Method::GET, "/ready").await.expect(200), json!({"status": "ready"}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_routes_and_methods_are_json() {
    let host = Host::start().await;
    for path in ["/", "/api", "/api/plugins/", "/api/plugins/a/b", "/api/v1/plugins", "/%00", "/api/plugins/%ff/x/y"] {
        let answer = exchange(&host, request("GET", path, &[&bearer(TOKEN)], b"")).await;
        assert_eq!(answer.expect_error(404, "route_not_found"), "no such route", "{path}");
        exchange(&host, request("GET", path, &[], b"")).await.expect_error(404, "route_not_found");
    }
    for (method, path, allow) in [
        ("DELETE", "/health", "GET"),
        ("HEAD", "/ready", "GET"),
        ("POST", "/api/plugins", "GET"),
        ("GET", "/api/plugins/install", "POST"),
        ("PUT", "/api/plugins/a", "GET, DELETE, PATCH"),
        ("GET", "/api/plugins/a/enable", "POST"),
        ("GET", "/api/plugins/a/disable", "POST"),
        ("POST", "/api/plugins/a/logs", "GET"),
        ("PUT", "/api/v1/events", "POST, GET"),
        ("BREW", "/api/plugins", "GET"),
    ] {
        let mut raw = Raw::connect(&host).await;
        raw.send(request(method, path, &[&bearer(TOKEN)], b"")).await;
        let answer = if method == "HEAD" { raw.head_answer().await } else { raw.answer().await };
        assert_eq!((answer.status, answer.values("allow")), (405, vec![allow]), "{method} {path}");
        if method != "HEAD" {
            answer.expect_error(405, "method_not_allowed");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_empty_is_an_empty_list() {
    let host = Host::start().await;
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}));
    for path in ["/api/plugins/absent", "/api/plugins/absent/logs"] {
        let body = host.get(path).await.expect(404);
        assert_eq!(body, json!({"error": "plugin not found", "code": "plugin_not_found"}));
    }
    for command in ["enable", "disable"] {
        assert_eq!(host.command("absent", command).await.expect(404)["code"], "plugin_not_found");
    }
    assert_eq!(host.uninstall("absent").await.expect(404)["code"], "plugin_not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_given_token_one_is_made_privately_and_never_logged() {
    let mut host = Host::start_with(Settings::default().env("KANDEV_ADMIN_TOKEN", "").env("KANDEV_LOG", "trace")).await;
    let file = host.home().join("admin-token");
    let text = std::fs::read_to_string(&file).expect("a token was made");
    let token = text.trim_end();
    assert!(token.len() >= 32, "long enough not to be guessed");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let list = request("GET", "/api/plugins", &[&bearer(token)], b"");
    assert_eq!(exchange(&host, &list).await.json(), json!({"plugins": []}));
    exchange(&host, request("GET", "/api/plugins", &[&bearer(TOKEN)], b"")).await.expect_error(401, "unauthenticated");

    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "a later start keeps it");
    assert_eq!(exchange(&host, &list).await.status, 200);
    assert!(!host.log().contains(token), "the log shows the token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_given_token_makes_no_file_and_is_never_logged() {
    let host = Host::start_with(Settings::default().env("KANDEV_LOG", "trace")).await;
    host.get("/api/plugins").await.expect(200);
    assert!(!host.home().join("admin-token").exists());
    assert!(!host.log().contains(TOKEN), "the log shows the token");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_json_tells_the_real_port_is_replaced_when_stale_and_gone_after_a_stop() {
    let mut host = Host::start().await;
    let file = host.home().join("run/host.json");
    let read = || serde_json::from_slice::<Value>(&std::fs::read(&file).expect("host.json")).expect("JSON");
    assert_eq!(read(), json!({"pid": host.pid(), "url": host.url()}));
    let port: u16 = host.url().rsplit(':').next().unwrap().parse().unwrap();
    assert_ne!(port, 0);

    let dead = host.pid();
    host.kill();
    assert_eq!(read()["pid"], dead, "a host that was killed leaves it behind");
    host.spawn().await;
    assert_eq!(read(), json!({"pid": host.pid(), "url": host.url()}));

    assert_eq!(host.stop().await, Some(0));
    assert!(!file.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_host_on_the_same_home_is_refused_and_the_first_goes_on() {
    let host = Host::start().await;
    let second = tokio::process::Command::new(env!("CARGO_BIN_EXE_kandev-host"))
        .args(["serve", "--listen", "127.0.0.1:0", "--home"])
        .arg(host.home())
        .env("KANDEV_ADMIN_TOKEN", TOKEN)
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let second = tokio::time::timeout(std::time::Duration::from_secs(30), second).await.expect("it ends").unwrap();
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("another kandev-host (pid {}) uses ", host.pid())), "{text}");
    assert!(text.contains("stop it, or start this one with another --home"), "{text}");
    host.get("/api/plugins").await.expect(200);
    let announced: Value = serde_json::from_slice(&std::fs::read(host.home().join("run/host.json")).unwrap()).unwrap();
    assert_eq!(announced["pid"], host.pid());
}

fn runtime() -> Value {
    json!({"type": "binary", "executables": {"linux-amd64": executable_path(), "linux-arm64": executable_path()}})
}

/// What the record says of every package without a signature.
const UNSIGNED: &str = "the package is unsigned: only its checksums were verified";

fn take_digest(record: &mut Value) -> Value {
    record.as_object_mut().unwrap().remove("executable_sha256").expect("the executable's digest")
}

fn assert_is_digest(digest: &Value) {
    let text = digest.as_str().unwrap_or_default();
    assert!(text.len() == 64 && text.chars().all(|c| c.is_ascii_hexdigit()), "{digest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_a_rich_manifest_has_every_key() {
    let host = Host::start().await;
    let manifest = format!("{}\nruntime: {}\n", include_str!("rich_manifest.yaml"), runtime());
    let package = Package::of(Guest::Rust, "rich", "2.1.0").manifest(|_| manifest);
    let body = host.install(&package.file("ui/bundle.js", "register()").file("ui/a.css", "a{}")).await;
    let mut record = host.record("rich").await;
    let listed = host.get("/api/plugins").await.expect(200)["plugins"][0].clone();
    assert_eq!((&listed, &body["plugin"]), (&record, &record), "one shape everywhere");
    let fields = record["config_schema"]["properties"].as_object().unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["z", "a", "10", "utility_agent"], "the author's order");
    let installed_at = record.as_object_mut().unwrap().remove("installed_at").unwrap();
    assert!(installed_at.as_str().unwrap().ends_with('Z'), "UTC: {installed_at}");
    assert_is_digest(&take_digest(&mut record));
    assert_eq!(
        record,
        json!({
            "id": "rich", "api_version": 1, "version": "2.1.0", "display_name": "Rich", "description": "Has everything",
            "author": "acme", "categories": ["connector", "tools"], "icon": "assets/icon.svg",
            "repo_url": "https://example.test/rich", "base_url": "",
            "endpoints": {"health": "", "events": "", "webhooks": ""},
            "capabilities": {"events": ["task.*"], "api_read": ["tasks"], "api_write": ["messages"], "state": true,
                "secrets": true, "agent_invoke": true, "auth": true, "user_state": true},
            "webhooks": [
                {"key": "in", "description": "In", "method": "POST", "access": "authenticated",
                    "max_body_bytes": 5_000_000},
                {"key": "open", "access": "public"}
            ],
            "actions": [{"key": "do", "scope": "task", "max_body_bytes": 1000}],
            "repository_providers": ["git-acme"],
            "reference_sources": [{"source": "acme", "provider": "acme", "kind": "issue", "display_name": "Acme",
                "kind_label": "Issue", "order": 3}],
            "auth_providers": [{"id": "acme", "display_name": "Acme", "initiate": "in"}],
            "config_schema": {"type": "object", "properties": {"z": {"type": "string", "secret": true},
                "a": {"type": "boolean"}, "10": {"enum": [1, 2]},
                "utility_agent": {"type": "string", "format": "utility-agent"}}},
            "agent_tools": [{"name": "look", "description": "Looks", "surfaces": ["kanban-task"],
                "input_schema": {"type": "object"}, "annotations": {"read_only_hint": true}}],
            "ui": {"bundle": "/ui/bundle.js", "styles": ["/ui/a.css"],
                "pages": [{"key": "p", "title": "P", "path": "/p", "surface": "settings"}],
                "keybindings": [{"id": "go", "default": "mod+k", "description": "Go"}]},
            "runtime": runtime(), "min_kandev_version": "v0.88",
            "status": "active", "install_path": host.plugins().join("rich/2.1.0"), "signed": false,
            "warnings": [UNSIGNED],
            "restart_count": 0, "restarting": false, "last_error": null, "last_error_at": null
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_a_bare_manifest_leaves_out_what_is_empty() {
    let host = Host::start().await;
    let manifest = format!("id: bare\napi_version: 1\nversion: \"1\"\nruntime: {}\n", runtime());
    host.install(&Package::of(Guest::Rust, "bare", "1").manifest(|_| manifest)).await;
    let mut record = host.record("bare").await;
    assert!(record.as_object_mut().unwrap().remove("installed_at").is_some());
    assert_is_digest(&take_digest(&mut record));
    assert_eq!(
        record,
        json!({
            "id": "bare", "api_version": 1, "version": "1", "display_name": "", "description": "", "author": "",
            "categories": null, "base_url": "", "endpoints": {"health": "", "events": "", "webhooks": ""},
            "capabilities": {}, "ui": {}, "runtime": runtime(), "status": "active",
            "install_path": host.plugins().join("bare/1"), "signed": false, "warnings": [UNSIGNED], "restart_count": 0, "restarting": false,
            "last_error": null, "last_error_at": null
        })
    );
}

on_both!(the_log_holds_the_last_200_lines_of_both_streams_in_order, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    for (stream, text) in [("stderr", "first"), ("stdout", "second%1b%5b31m")] {
        let path = format!("/api/plugins/demo/webhooks/print?stream={stream}&text={text}");
        host.get(&path).await.expect(200);
    }
    let line = eventually_some("both lines in the log", || async {
        let body = host.get("/api/plugins/demo/logs").await.expect(200);
        let lines = body["lines"].as_array().unwrap().clone();
        let find = |text: &str| lines.iter().find(|line| line["message"].as_str().unwrap().contains(text)).cloned();
        find("first").and(find("second"))
    })
    .await;
    let keys: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["time", "level", "stream", "message"]);
    assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    assert!(!line["message"].as_str().unwrap().contains('\u{1b}'), "cleaned: {line}");

    // Beyond the bound the oldest go.
    host.set_switches("demo", &json!({"flood_stderr": 500}));
    host.command("demo", "disable").await.expect(200);
    host.command("demo", "enable").await.expect(200);
    let lines = eventually_some("the end of the flood", || async {
        let body = host.get("/api/plugins/demo/logs").await.expect(200);
        let lines = body["lines"].as_array().unwrap().clone();
        lines.iter().any(|line| line["message"].as_str().unwrap().contains("flood line 500")).then_some(lines)
    })
    .await;
    assert_eq!(lines.len(), 200);
    let times: Vec<_> = lines.iter().map(|line| line["time"].as_str().unwrap().to_owned()).collect();
    assert!(times.is_sorted(), "oldest first");
});

on_both!(a_command_whose_client_hangs_up_still_finishes, |guest| {
    let host = Host::start().await;
    let slow = json!({"slow_start_ms": 700, "ignore_shutdown": true});
    let archive = Package::of(guest, "demo", "1.0.0").switches(&slow).archive().await;

    let head = "--b\r\nContent-Disposition: form-data; name=\"package\"; filename=\"p\"\r\n\r\n";
    let form = [head.as_bytes(), &archive, b"\r\n--b--\r\n"].concat();
    let multipart = "Content-Type: multipart/form-data; boundary=b";
    let mut client = Raw::connect(&host).await;
    client.send(request("POST", "/api/plugins/install", &[&bearer(TOKEN), multipart], &form)).await;
    recorded(&host, "demo", "starts.jsonl", 1).await;
    drop(client);
    host.status("demo", "active").await;

    let mut client = Raw::connect(&host).await;
    client.send(request("POST", "/api/plugins/demo/disable", &[&bearer(TOKEN)], b"")).await;
    recorded(&host, "demo", "stops.jsonl", 1).await;
    drop(client);
    host.status("demo", "disabled").await;
    eventually("the process is gone", || async { host.plugin_processes().is_empty() }).await;

    let mut client = Raw::connect(&host).await;
    client.send(request("POST", "/api/plugins/demo/enable", &[&bearer(TOKEN)], b"")).await;
    recorded(&host, "demo", "starts.jsonl", 2).await;
    drop(client);
    host.status("demo", "active").await;

    let mut client = Raw::connect(&host).await;
    client.send(request("DELETE", "/api/plugins/demo", &[&bearer(TOKEN)], b"")).await;
    recorded(&host, "demo", "stops.jsonl", 2).await;
    drop(client);
    eventually("the plugin is gone", || async { host.get("/api/plugins/demo").await.status == 404 }).await;
    eventually("its files are gone", || async { !host.plugins().join("demo").exists() }).await;
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let host = Host::start().await;
    let archive = Package::of(Guest::Rust, "demo", "1.0.0").archive().await;
    let head = "--b\r\nContent-Disposition: form-data; name=\"package\"; filename=\"p\"\r\n\r\n";
    let form = [head.as_bytes(), &archive, b"\r\n--b--\r\n"].concat();
    let multipart = "Content-Type: multipart/form-data; boundary=b";
    let whole = request("POST", "/api/plugins/install", &[&bearer(TOKEN), multipart], &form);
    let staging = host.plugins().join(".staging");
    let staged = || std::fs::read_dir(&staging).map_or(0, Iterator::count);
    let mut client = Raw::connect(&host).await;
    client.send(&whole[..whole.len() / 2]).await;
    eventually("the upload is being staged", || async { staged() == 1 }).await;
    drop(client);
    eventually("the staged half is gone", || async { staged() == 0 }).await;
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enable_that_fails_is_500_with_the_reason_and_the_record_says_error() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.command("demo", "disable").await.expect(200);
    host.set_switches("demo", &json!({"crash_before_handshake": 7}));
    let body = host.command("demo", "enable").await.expect(500);
    assert_eq!(body["code"], "start_failed");
    assert!(body["error"].as_str().unwrap().contains("ended before its handshake line"), "{body}");
    let record = host.plugin("demo").await;
    assert_eq!((&record["status"], &record["restarting"]), (&json!("error"), &json!(false)), "{record}");
    let unavailable = raw::exchange(&host, request("GET", ECHO, &[], b"")).await;
    unavailable.expect_error(503, "plugin_not_running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_publishes_events_and_broken_ones_are_refused() {
    let host = Host::start_with(Settings::toml("[limits]\nevent_bytes = 2000\nrequest_bytes = 1024\n")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let publish = |body: Value| async { host.post("/api/v1/events", body).await };
    let accepted = publish(json!({"subject": "test.a", "workspace_id": "w", "payload": {"n": 1}})).await.expect(202);
    assert_eq!(accepted.as_object().unwrap().keys().collect::<Vec<_>>(), ["event_id"]);
    let events = host.events("demo", 1).await;
    assert_eq!((&events[0]["event_id"], &events[0]["workspace_id"]), (&accepted["event_id"], &json!("w")));

    for subject in ["", "a..b", ".a", "a.", "a.*", "a.>", "a b", "a\nb", &"x".repeat(513)] {
        let body = publish(json!({"subject": subject, "payload": {}})).await.expect(400);
        assert_eq!(body["code"], "invalid_subject", "{subject:?}: {body}");
    }
    for subject in ["plugin", "plugin.demo.x"] {
        assert_eq!(publish(json!({"subject": subject, "payload": {}})).await.expect(400)["code"], "reserved_subject");
    }
    for body in [
        json!({"subject": "test.a"}),
        json!({"payload": {}}),
        json!({"subject": "test.a", "payload": [1]}),
        json!({"subject": "test.a", "payload": "x"}),
        json!({"subject": "test.a", "payload": {}, "more": 1}),
        json!({"subject": "test.a", "payload": {}, "workspace_id": "x".repeat(513)}),
        json!([]),
    ] {
        assert_eq!(publish(body.clone()).await.expect(400)["code"], "invalid_payload", "{body}");
    }
    let large = publish(json!({"subject": "test.a", "payload": {"x": "x".repeat(2500)}})).await.expect(413);
    assert_eq!(large["code"], "event_too_large");
    assert!(large["error"].as_str().unwrap().contains("2000"), "{large}");
    let larger = publish(json!({"subject": "test.a", "payload": {"x": "x".repeat(9000)}})).await.expect(413);
    assert_eq!(larger["code"], "body_too_large");
    for text in ["", "{", "{\"subject\":\"test.a\",\"payload\":{}}x", "\u{0}"] {
        let answer = exchange(&host, request("POST", "/api/v1/events", &[&bearer(TOKEN)], text.as_bytes())).await;
        answer.expect_error(400, "invalid_payload");
    }
    let last = host.publish("test.last", json!({})).await;
    let events = host.events("demo", 2).await;
    assert_eq!((events.len(), &events[1]["event_id"]), (2, &json!(last)), "nothing refused was delivered");
}
