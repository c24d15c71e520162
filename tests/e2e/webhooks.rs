//! The webhook relay (contract/rest.md §6; field cases 22, 60, 62–67, 71, 9).

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    on_both,
    support::{
        Guest, Host, Package, Settings, eventually,
        host::TOKEN,
        package::hex,
        raw::{Raw, RawAnswer, chunked, exchange, request},
    },
};

const MIB: usize = 1024 * 1024;

/// Restarts at once, so that a case can see one.
const FAST: &str = r#"
[timing]
restart_delays = ["100ms", "200ms", "300ms"]
drain_grace = "300ms"
stop_grace = "500ms"
webhook_timeout = "3s"
webhook_timeout_authenticated = "5s"
"#;

fn hook(rest: &str) -> String {
    format!("/api/plugins/demo/webhooks/{rest}")
}

fn login() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

async fn with_demo(guest: Guest) -> Host {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    host
}

/// How often the plugin was called.
fn calls(host: &Host) -> usize {
    host.recorded("demo", "webhooks.jsonl").len()
}

/// What the plugin saw of a request, by its echo.
async fn echoed(host: &Host, method: &str, rest: &str, headers: &[&str], body: &[u8]) -> Value {
    let answer = exchange(host, request(method, &hook(rest), headers, body)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

/// Lets the plugin answer this.
async fn responded(host: &Host, answer: Value) -> RawAnswer {
    exchange(host, request("POST", &hook("respond"), &[], answer.to_string().as_bytes())).await
}

// Field case 70, as far as it is the host's: a plugin can check the signature of what was sent.
on_both!(the_plugin_gets_method_path_query_and_the_bodys_bytes_unchanged, |guest| {
    let host = with_demo(guest).await;
    for (rest, path, query) in [
        ("echo", "", ""),
        ("echo/", "/", ""),
        ("echo?a=1&a=%20&b", "", "a=1&a=%20&b"),
        ("echo/x%2Fy//z%20/%E2%82%AC?q=%2f", "/x%2Fy//z%20/%E2%82%AC", "q=%2f"),
        ("echo/a/../b/./c", "/a/../b/./c", ""),
        ("%65cho/x", "/x", ""),
        ("echo?", "", ""),
    ] {
        for method in ["GET", "POST"] {
            let seen = echoed(&host, method, rest, &[], b"").await;
            let expected = (json!("echo"), json!(method), json!(path), json!(query));
            let found = (&seen["key"], &seen["method"], &seen["path"], &seen["query"]);
            assert_eq!(found, (&expected.0, &expected.1, &expected.2, &expected.3), "{rest}");
        }
    }
    let body: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let seen = echoed(&host, "POST", "echo", &["Content-Type: application/x-own"], &body).await;
    assert_eq!(STANDARD.decode(seen["body_base64"].as_str().unwrap()).unwrap(), body);
    let with_get = echoed(&host, "GET", "echo", &[], b"body of a GET").await;
    assert_eq!(with_get["body_len"], 13);
});

on_both!(credentials_connection_headers_and_claims_of_identity_never_reach_the_plugin, |guest| {
    let host = with_demo(guest).await;
    let login = login();
    let headers = [
        login.as_str(),
        "Cookie: session=secret",
        "Proxy-Authorization: Basic x",
        "Connection: keep-alive, X-Named",
        "X-Named: 1",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "X-Kandev-User: admin",
        "x_kandev_user: admin",
        "X-KANDEV-Auth-Login: eve",
        "X-Hub-Signature-256: sha256=ABCDEF",
        "x-twice: 1",
        "X-Twice: 2",
        "X-Forwarded-For: 192.0.2.1",
        "Content-Type: text/plain",
    ];
    let mut seen = echoed(&host, "POST", "echo", &headers, b"x").await;
    let seen: Map<String, Value> = seen["headers"].as_object_mut().map(std::mem::take).unwrap();
    let expected = json!({
        "X-Hub-Signature-256": "sha256=ABCDEF", "X-Twice": "1, 2", "X-Forwarded-For": "192.0.2.1",
        "Content-Type": "text/plain", "Content-Length": "1",
    });
    assert_eq!(Value::Object(seen), expected);

    let mut raw = Raw::connect(&host).await;
    let head = format!("POST {} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", hook("echo"));
    raw.send([head.as_bytes(), &chunked(b"abc", 2)].concat()).await;
    let seen = raw.answer().await.json();
    assert_eq!((&seen["headers"], &seen["body_len"]), (&json!({}), &json!(3)));
});

on_both!(foreign_bytes_in_headers_and_addresses_are_relayed_or_refused_and_never_500, |guest| {
    let host = with_demo(guest).await;
    let seen = echoed(&host, "GET", "echo", &["X-Signature: sha256=é"], b"").await;
    assert_eq!(seen["headers"]["X-Signature"], "sha256=é");
    let line = |value: &[u8]| {
        let head = format!("GET {} HTTP/1.1\r\nHost: x\r\nX-Signature: ", hook("echo"));
        [head.as_bytes(), value, b"\r\n\r\n"].concat()
    };
    exchange(&host, line(b"\xff\xfe")).await.expect_error(400, "invalid_header");
    for value in [&b"a\0b"[..], b"a\x01b", b"a\x7fb"] {
        let answer = exchange(&host, line(value)).await;
        assert!((400..500).contains(&answer.status) || answer.status == 200, "{value:?}: {answer:?}");
    }
    for target in ["%", "%zz", "%00", "%ff%fe", "echo%0d%0aX: y", &"x".repeat(5000), "..%2f..%2fhealth"] {
        let answer = exchange(&host, request("GET", &hook(target).replace(' ', "%20"), &[], b"")).await;
        answer.expect_error(404, "webhook_not_found");
    }
    let bearer =
        [b"GET /api/plugins HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xc3\xa9\xff\r\n\r\n".as_slice()].concat();
    exchange(&host, bearer).await.expect_error(401, "unauthenticated");
    assert_eq!(host.plugin("demo").await["restart_count"], 0);
});

on_both!(large_bodies_pass_up_to_the_limits_in_both_directions, |guest| {
    let host = with_demo(guest).await;
    let login = login();
    for (rest, headers, limit) in [("echo", vec![], 4 * MIB), ("big", vec![login.as_str()], 16 * MIB)] {
        let body: Vec<u8> = (0..limit).map(|n| (n % 251) as u8).collect();
        let sent = exchange(&host, request("POST", &hook(rest), &headers, &body)).await;
        assert_eq!((sent.status, &sent.json()["body_len"]), (200, &json!(limit)), "{rest}");
        if rest == "big" {
            assert_eq!(sent.json()["sha256"], hex(&Sha256::digest(&body)));
        }
        let before = calls(&host);
        let over = [body.as_slice(), b"x"].concat();
        let refused = Raw::connect(&host).await.send_and_read(request("POST", &hook(rest), &headers, &over)).await;
        let text = refused.expect_error(413, "body_too_large");
        assert_eq!(text, format!("webhook body exceeds max size of {limit} bytes"));

        let chunks = |body: &[u8]| {
            let more: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
            let head = format!("POST {} HTTP/1.1\r\nHost: x\r\n{more}Transfer-Encoding: chunked\r\n\r\n", hook(rest));
            [head.as_bytes(), &chunked(body, 60_000)].concat()
        };
        let refused = Raw::connect(&host).await.send_and_read(chunks(&over)).await;
        refused.expect_error(413, "body_too_large");
        assert_eq!(calls(&host), before, "a refused body never reaches the plugin");
        let sent = Raw::connect(&host).await.send_and_read(chunks(&body)).await;
        assert_eq!((sent.status, &sent.json()["body_len"]), (200, &json!(limit)), "{rest} in chunks");
    }
    let answer = responded(&host, json!({"body_repeat": {"byte": 120, "count": 10 * MIB}})).await;
    assert_eq!((answer.status, answer.body.len()), (200, 10 * MIB));
    assert!(answer.body.iter().all(|byte| *byte == b'x'));
});

on_both!(broken_requests_never_reach_the_plugin, |guest| {
    let host = with_demo(guest).await;
    let head = |lines: &str| format!("POST {} HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n", hook("echo"));
    // A client that goes away half way, and chunks that are none: the connection ends, with 400 or without an answer.
    for half in [
        head("Content-Length: 10") + "12345",
        head("Transfer-Encoding: chunked") + "5\r\n12345\r\n",
        head("Transfer-Encoding: chunked") + "zz\r\nab\r\n0\r\n\r\n",
        head("Transfer-Encoding: chunked") + "ffffffffffffffffff\r\nab",
    ] {
        let mut raw = Raw::connect(&host).await;
        raw.send(half.as_bytes()).await;
        raw.finish().await;
        let rest = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{rest}");
    }
    for broken in [
        head("Content-Length: 2\r\nContent-Length: 3") + "ab",
        head("Content-Length: 2, 3") + "ab",
        head("Content-Length: -1"),
        head("Content-Length: +2") + "ab",
        head("Content-Length: 99999999999999999999"),
        head("Content-Length: 2\r\nTransfer-Encoding: chunked") + "2\r\nab\r\n0\r\n\r\n",
        head("Transfer-Encoding: gzip") + "ab",
    ] {
        let answer = exchange(&host, broken.as_bytes()).await;
        assert_eq!(answer.status, 400, "{broken}: {answer:?}");
    }
    assert_eq!(calls(&host), 0);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_waits_for_100_continue_gets_it() {
    let host = with_demo(Guest::Rust).await;
    let mut raw = Raw::connect(&host).await;
    let head =
        format!("POST {} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n", hook("echo"));
    raw.send(head).await;
    assert_eq!((raw.line().await.as_str(), raw.line().await.as_str()), ("HTTP/1.1 100 Continue", ""));
    raw.send("abc").await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, &answer.json()["body_len"]), (200, &json!(3)));
}

on_both!(only_a_lawful_status_is_relayed, |guest| {
    let host = with_demo(guest).await;
    for status in [0, 42, 99, 100, 101, 199, 600, -1, 65_736] {
        let answer = responded(&host, json!({"status": status, "body": "internal"})).await;
        let text = answer.expect_error(502, "invalid_webhook_answer");
        assert_eq!(text, format!("plugin returned invalid webhook status {status}"));
    }
    for status in [200, 201, 299, 302, 404, 418, 500, 503, 599] {
        let answer = responded(&host, json!({"status": status, "body": "text"})).await;
        assert_eq!((i64::from(answer.status), answer.body.as_slice()), (status, &b"text"[..]));
    }
    // A status without body, followed on the same connection by a whole answer: nothing was left over.
    for status in [204, 304] {
        let wanted = json!({"status": status, "headers": {"X-Kept": "1"}, "body": "left over"}).to_string();
        let mut raw = Raw::connect(&host).await;
        raw.send(request("POST", &hook("respond"), &[], wanted.as_bytes())).await;
        let answer = raw.answer().await;
        assert_eq!((answer.status, answer.values("x-kept")), (status, vec!["1"]));
        raw.send(request("GET", &hook("echo"), &[], b"")).await;
        assert_eq!(raw.answer().await.json()["key"], "echo");
    }
});

on_both!(answer_headers_are_relayed_unchanged_but_for_what_is_the_hosts, |guest| {
    let host = with_demo(guest).await;
    let answer = responded(
        &host,
        json!({"headers": {
            "Content-Length": "5", "Transfer-Encoding": "chunked", "Connection": "close, X-Named", "X-Named": "1",
            "Keep-Alive": "timeout=1", "Upgrade": "h2c", "Trailer": "x", "set-COOKIE": "a=b", "Set-Cookie": "c=d",
            "x-kandev-auth-login": "eve", "X-KANDEV-AUTH-LOGIN": "eve", "X-Own": "é\tv", "ETag": "\"1\"",
            "Content-Type": "text/x-own", "Location": "/elsewhere", "Access-Control-Allow-Origin": "*",
        }, "body": "ten bytes."}),
    )
    .await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"ten bytes."[..]));
    assert_eq!(answer.values("content-length"), ["10"]);
    let own = ["date", "x-request-id", "content-length"];
    let mut relayed: Vec<_> = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str())).collect();
    relayed.sort();
    let relayed: Vec<_> = relayed.into_iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        relayed,
        [
            ("access-control-allow-origin", "*"),
            ("content-type", "text/x-own"),
            ("etag", "\"1\""),
            ("location", "/elsewhere"),
            ("x-own", "é\tv"),
        ]
    );
    for headers in [
        json!({"X-Bad": "a\r\nSet-Cookie: b"}),
        json!({"X-Bad": "a\nb"}),
        json!({"X-Bad": "a\u{0}b"}),
        json!({"X\r\nSet-Cookie: b": "1"}),
        json!({"X Bad": "1"}),
        json!({"": "1"}),
        json!({"X-É": "1"}),
        json!({"Content-Type": "a/b", "content-type": "c/d"}),
    ] {
        let answer = responded(&host, json!({"headers": headers, "body": "internal"})).await;
        let text = answer.expect_error(502, "invalid_webhook_answer");
        assert!(!text.contains("Cookie") && answer.values("set-cookie").is_empty(), "{answer:?}");
    }
});

on_both!(a_plugins_error_is_503_without_its_text, |guest| {
    let host = with_demo(guest).await;
    let answer = exchange(&host, request("GET", &hook("error?text=password-hunter2"), &[], b"")).await;
    let text = answer.expect_error(503, "webhook_failed");
    assert_eq!(text, "plugin \"demo\" failed to handle the webhook");
    assert_eq!(host.plugin("demo").await["status"], "active", "an error is no crash");
});

on_both!(a_crash_within_a_call_is_503_and_the_plugin_comes_back, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let answer = exchange(&host, request("POST", &hook("crash"), &[], b"x")).await;
    let text = answer.expect_error(503, "webhook_failed");
    assert_eq!(text, "plugin \"demo\" failed to handle the webhook");
    // Until it is back, calls are refused with a reason; then they pass again.
    eventually("the next call passes", || async {
        let answer = exchange(&host, request("GET", &hook("echo"), &[], b"")).await;
        if answer.status == 503 {
            assert!(["plugin_not_running", "webhook_failed"].contains(&answer.json()["code"].as_str().unwrap()));
        } else {
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        answer.status == 200
    })
    .await;
    assert_eq!(host.plugin("demo").await["restart_count"], 1);
});

on_both!(a_call_that_takes_too_long_is_504_and_authenticated_ones_may_take_longer, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let manifest = |text: String| text + "  - {key: hang, access: authenticated}\n";
    let package = Package::of(guest, "demo", "1.0.0").manifest(manifest);
    host.install(&package.switches(&json!({"hang_on_webhook": "hang"}))).await;
    let text = exchange(&host, request("GET", &hook("sleep?ms=60000"), &[], b"")).await;
    let text = text.expect_error(504, "webhook_timeout");
    assert_eq!(text, "plugin \"demo\" did not answer the webhook in time");
    let begin = tokio::time::Instant::now();
    let answer = exchange(&host, request("GET", &hook("hang"), &[&login()], b"")).await;
    answer.expect_error(504, "webhook_timeout");
    assert!(begin.elapsed() >= std::time::Duration::from_secs(5), "the longer time limit holds");
    assert_eq!(echoed(&host, "GET", "echo", &[], b"").await["key"], "echo");
});

on_both!(one_call_more_than_the_bound_is_429_and_the_room_comes_back, |guest| {
    let host =
        Host::start_with(Settings::toml("[limits]\nwebhook_concurrency = 3\n[timing]\nwebhook_timeout = \"8s\"\n"))
            .await;
    host.install(&Package::of(guest, "demo", "1.0.0").switches(&json!({"hang_on_webhook": "sleep"}))).await;
    let mut busy = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::connect(&host).await;
        raw.send(request("GET", &hook("sleep?ms=0"), &[], b"")).await;
        busy.push(raw);
    }
    eventually("three calls are under way", || async { calls(&host) == 3 }).await;
    let refused = exchange(&host, request("GET", &hook("echo"), &[], b"")).await;
    let text = refused.expect_error(429, "too_many_calls");
    assert_eq!(text, "plugin \"demo\" has too many webhook calls under way");
    assert_eq!(refused.values("retry-after"), ["1"]);
    assert_eq!(calls(&host), 3, "the fourth never reached the plugin");
    for mut raw in busy {
        raw.answer().await.expect_error(504, "webhook_timeout");
    }
    assert_eq!(echoed(&host, "GET", "echo", &[], b"").await["key"], "echo", "there is room again");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_call_what_and_when() {
    let host = with_demo(Guest::Rust).await;
    let absent = exchange(&host, request("GET", "/api/plugins/absent/webhooks/echo", &[], b"")).await;
    assert_eq!(absent.expect_error(404, "plugin_not_found"), "plugin not found");
    let unknown = exchange(&host, request("GET", &hook("absent"), &[], b"")).await;
    assert_eq!(unknown.expect_error(404, "webhook_not_found"), "plugin \"demo\" has no webhook \"absent\"");
    exchange(&host, request("GET", &hook(""), &[], b"")).await.expect_error(404, "webhook_not_found");
    for (method, allow) in [("HEAD", "GET, POST"), ("PUT", "GET, POST"), ("OPTIONS", "GET, POST"), ("X", "GET, POST")] {
        for rest in ["echo", "echo/below", "absent"] {
            let mut raw = Raw::connect(&host).await;
            raw.send(request(method, &hook(rest), &[], b"")).await;
            let answer = if method == "HEAD" { raw.head_answer().await } else { raw.answer().await };
            assert_eq!((answer.status, answer.values("allow")), (405, vec![allow]), "{method} {rest}");
        }
    }
    // Refused from the head alone: no byte of the body was sent.
    for credential in ["X-None: 1", "Authorization: Bearer wrong", "Cookie: session=1"] {
        let mut raw = Raw::connect(&host).await;
        let lines = format!("Host: x\r\n{credential}\r\nContent-Length: 5");
        raw.send(format!("POST {} HTTP/1.1\r\n{lines}\r\n\r\n", hook("big"))).await;
        let answer = raw.answer().await;
        answer.expect_error(401, "unauthenticated");
        assert_eq!(answer.values("www-authenticate"), ["Bearer"]);
    }
    assert_eq!(calls(&host), 0);
    let foreign = echoed(&host, "POST", "echo", &["Authorization: Bearer of-another-service"], b"").await;
    assert_eq!(foreign["headers"], json!({}), "public webhooks ignore foreign credentials and keep them back");

    host.command("demo", "disable").await.expect(200);
    for rest in ["echo", "echo/below"] {
        let off = exchange(&host, request("POST", &hook(rest), &[], b"x")).await;
        assert_eq!(off.expect_error(503, "plugin_not_running"), "plugins: plugin \"demo\" is not running");
    }
    exchange(&host, request("GET", &hook("absent"), &[], b"")).await.expect_error(404, "webhook_not_found");
    exchange(&host, request("GET", &hook("big"), &[], b"")).await.expect_error(401, "unauthenticated");
    host.uninstall("demo").await.expect(200);
    assert_eq!(host.anonymous(Method::GET, &hook("echo")).await.expect(404)["code"], "plugin_not_found");
}

/// Providers may send what they like; who needs the login is held to the origin as on every route (field case 81).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_other_origins_reach_public_webhooks_and_nothing_that_needs_the_token() {
    let host = with_demo(Guest::Rust).await;
    let login = login();
    let login = login.as_str();
    for origin in ["Origin: https://evil.test", "Origin: null"] {
        assert_eq!(echoed(&host, "POST", "echo", &[origin], b"x").await["method"], "POST");
        for (method, target) in [("POST", hook("big")), ("GET", "/metrics".to_owned())] {
            let refused = exchange(&host, request(method, &target, &[login, origin], b"")).await;
            refused.expect_error(403, "foreign_origin");
        }
    }
    assert_eq!(calls(&host), 2);
    let own = exchange(&host, request("POST", &hook("big"), &[login, "Origin: https://kandev.test"], b"x")).await;
    assert_eq!(own.status, 200, "{own:?}");
}

/// Field case 67: what the manifest says of the method is for the plugin to hold callers to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_for_post_is_called_with_get_too_and_with_nothing_else() {
    let host = Host::start().await;
    let for_post = |text: String| text.replace("  - key: echo\n", "  - key: echo\n    method: POST\n");
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0").manifest(for_post)).await;
    for method in ["GET", "POST"] {
        assert_eq!(echoed(&host, method, "echo", &[], b"").await["method"], method);
    }
    for method in ["PUT", "PATCH", "DELETE", "OPTIONS"] {
        exchange(&host, request(method, &hook("echo"), &[], b"")).await.expect_error(405, "method_not_allowed");
    }
    assert_eq!(calls(&host), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_without_access_is_public_and_the_install_says_so() {
    let host = Host::start().await;
    let body = host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let warnings: Vec<_> = body["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert!(warnings.contains(&"webhook \"echo\" declares no access and is public: anyone can call it"), "{body}");
    assert!(!warnings.iter().any(|text| text.contains("\"big\"")), "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_asks_for_an_upgrade_is_answered_as_if_it_did_not() {
    let host = with_demo(Guest::Rust).await;
    for headers in [&["Connection: Upgrade", "Upgrade: websocket"][..], &["Upgrade: websocket"]] {
        let got = echoed(&host, "GET", "echo", headers, b"").await;
        assert_eq!((&got["method"], &got["body_len"]), (&json!("GET"), &json!(0)), "{headers:?}");
        assert_eq!(got["headers"].get("Upgrade"), None);
        let got = echoed(&host, "POST", "echo", headers, b"hi").await;
        assert_eq!(
            (&got["method"], &got["body_base64"]),
            (&json!("POST"), &json!(STANDARD.encode("hi"))),
            "{headers:?}"
        );
    }
}
