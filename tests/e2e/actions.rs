//! Actions (contract/rest.md §7; field cases 24, 60, 63, 64, 66): every check in its order, what the plugin learns,
//! what passes of its answer, and what waits for it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    on_both,
    support::{
        Board, Guest, Host, Package, Settings,
        board::{repository, session, task, workspace},
        callable, eventually,
        host::TOKEN,
        raw::{Raw, RawAnswer, chunked, exchange, request},
    },
};

/// Short waits, and room for two.
const QUICK: &str = r#"
[timing]
action_timeout = "1s"
lease_grace = "10s"
drain_grace = "300ms"
stop_grace = "500ms"
restart_delays = ["100ms", "200ms"]
[limits]
action_concurrency = 2
"#;

async fn with_demo(guest: Guest, toml: &str) -> (Host, Board) {
    let host = Host::start_with(Settings::toml(toml)).await;
    host.install(&callable(guest, "demo", "1.0.0")).await;
    let board = Board::make(&host).await;
    (host, board)
}

fn login() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

fn path(key: &str) -> String {
    format!("/api/plugins/demo/actions/{key}")
}

/// Calls an action with this envelope.
async fn act(host: &Host, key: &str, envelope: Value) -> RawAnswer {
    act_with(host, key, envelope.to_string().as_bytes(), &[]).await
}

async fn act_with(host: &Host, key: &str, body: &[u8], headers: &[&str]) -> RawAnswer {
    let login = login();
    let headers = [&[login.as_str()], headers].concat();
    exchange(host, request("POST", &path(key), &headers, body)).await
}

/// Lets the plugin answer this.
async fn responded(host: &Host, board: &Board, answer: Value) -> RawAnswer {
    act(host, "respond", json!({"workspaceId": board.workspace, "body": answer})).await
}

/// An action that the plugin is working on when this returns.
async fn begun(host: &Host, board: &Board, key: &str, body: Value) -> Raw {
    let before = host.calls("demo").len();
    let mut raw = Raw::connect(host).await;
    let envelope = json!({"workspaceId": board.workspace, "body": body}).to_string();
    raw.send(request("POST", &path(key), &[&login()], envelope.as_bytes())).await;
    host.called("demo", before + 1).await;
    raw
}

fn context(board: &Board, task: &str, repository: &str, session: &str, branch: &str) -> Value {
    json!({"actor_id": "operator", "workspace_id": board.workspace, "task_id": task, "repository_id": repository,
        "session_id": session, "head_branch": branch})
}

on_both!(the_plugin_gets_the_bodys_text_and_a_context_that_the_host_has_verified, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let Board { workspace, task, repository, session, .. } = &board;
    for (key, envelope, expected) in [
        ("echo", json!({"workspaceId": workspace}), context(&board, "", "", "", "")),
        ("echo-task", json!({"taskId": task}), context(&board, task, "", "", "")),
        ("echo-task", json!({"taskId": task, "workspaceId": workspace}), context(&board, task, "", "", "")),
        ("echo-task", json!({"taskId": task, "sessionId": session}), context(&board, task, "", session, "")),
        ("echo-task", json!({"taskId": task, "repositoryId": repository}), context(&board, task, repository, "", "")),
        (
            "echo-task",
            json!({"taskId": task, "repositoryId": repository, "sessionId": session}),
            context(&board, task, repository, session, "fix"),
        ),
        (
            "echo-repository",
            json!({"workspaceId": workspace, "repositoryId": repository, "taskId": null}),
            context(&board, "", repository, "", ""),
        ),
    ] {
        let seen = act(&host, key, envelope.clone()).await;
        assert_eq!(seen.json(), json!({"key": key, "context": expected, "body": ""}), "{envelope}");
    }
    let snapshot = json!({"branch": "topic", "head_commit": "abc", "files": {}});
    host.post(&format!("/api/v1/task-sessions/{session}/git-snapshots"), snapshot).await.expect(201);
    let envelope = json!({"taskId": task, "repositoryId": repository, "sessionId": session});
    let seen = act(&host, "echo-task", envelope).await.json();
    assert_eq!(seen["context"]["head_branch"], "topic", "what the session reported last");

    let envelope = format!("{{ \"body\" : {{\"b\": 1.0, \"a\" :[ ]}} , \"workspaceId\":\"{workspace}\"}}");
    let seen = act_with(&host, "echo", envelope.as_bytes(), &[]).await.json();
    assert_eq!(seen["body"], "{\"b\": 1.0, \"a\" :[ ]}", "as it was written");
});

on_both!(a_session_that_names_no_repository_works_in_the_only_one_of_its_task, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let Board { workspace, repository, .. } = &board;
    let only = task(&host, workspace, &[(repository, "fix")]).await;
    let made = host.post(&format!("/api/v1/tasks/{only}/sessions/ensure"), json!({})).await.expect(200);
    assert_eq!(made["session"]["repository_id"], json!(repository));
    let session = made["session_id"].as_str().expect("a session");
    let envelope = json!({"taskId": only, "repositoryId": repository, "sessionId": session});
    let seen = act(&host, "echo-task", envelope).await.json();
    assert_eq!(seen["context"], context(&board, &only, repository, session, "fix"));
    let tokens = format!("/api/v1/task-sessions/{session}/git-credentials");
    assert_eq!(host.post(&tokens, json!({})).await.expect(201)["repository_id"], json!(repository));
});

on_both!(claims_of_an_identity_never_reach_the_plugin_as_truth, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let envelope = json!({"workspaceId": board.workspace, "actorId": "eve", "actor_id": "eve", "headBranch": "evil",
        "context": {"actor_id": "eve"}, "body": {}});
    let headers = [
        "X-Kandev-User: eve",
        "X-Kandev-Actor-Id: eve",
        "x_kandev_actor: eve",
        "X-Forwarded-User: eve",
        "X-User-Id: eve",
        "Cookie: session=eve",
    ];
    let seen = act_with(&host, "echo", envelope.to_string().as_bytes(), &headers).await.json();
    assert_eq!(seen["context"], context(&board, "", "", "", ""));
    let recorded = host.called("demo", 1).await.to_string();
    assert!(!recorded.contains("eve") && !recorded.contains(TOKEN), "{recorded}");
});

on_both!(what_does_not_belong_together_is_refused_with_the_contracts_words, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let foreign_workspace = workspace(&host, "two").await;
    let foreign_repository = repository(&host, &foreign_workspace, "app").await;
    let foreign_task = task(&host, &foreign_workspace, &[(&foreign_repository, "")]).await;
    let foreign_session = session(&host, &foreign_task, &foreign_repository).await;
    let Board { workspace, task, repository, other_repository, session } = &board;
    let only_workspace = "workspace action requires only workspaceId";
    let only_repository = "repository action requires workspaceId and repositoryId";
    let wrong = "invalid_action_context";
    for (key, envelope, status, code, text) in [
        ("echo", json!({}), 400, wrong, only_workspace),
        ("echo", json!({"workspaceId": workspace, "taskId": task}), 400, wrong, only_workspace),
        ("echo", json!({"workspaceId": workspace, "sessionId": "x"}), 400, wrong, only_workspace),
        ("echo", json!({"workspaceId": workspace, "repositoryId": repository}), 400, wrong, only_workspace),
        ("echo", json!({"workspaceId": "absent"}), 404, "workspace_not_found", "workspace not found"),
        ("echo", json!({"workspaceId": "\u{0}'"}), 404, "workspace_not_found", "workspace not found"),
        ("echo-task", json!({"workspaceId": workspace}), 400, wrong, "task action requires taskId"),
        (
            "echo-task",
            json!({"taskId": task, "workspaceId": foreign_workspace}),
            400,
            wrong,
            "workspaceId does not match task",
        ),
        ("echo-task", json!({"taskId": "absent"}), 404, "task_not_found", "task not found"),
        (
            "echo-task",
            json!({"taskId": task, "repositoryId": foreign_repository}),
            404,
            "repository_not_found",
            "repository not found",
        ),
        (
            "echo-task",
            json!({"taskId": task, "sessionId": foreign_session}),
            404,
            "session_not_found",
            "session not found",
        ),
        ("echo-task", json!({"taskId": task, "sessionId": "absent"}), 404, "session_not_found", "session not found"),
        (
            "echo-task",
            json!({"taskId": task, "sessionId": session, "repositoryId": other_repository}),
            404,
            "checkout_not_found",
            "session repository checkout not found",
        ),
        ("echo-repository", json!({"workspaceId": workspace}), 400, wrong, only_repository),
        ("echo-repository", json!({"repositoryId": repository}), 400, wrong, only_repository),
        (
            "echo-repository",
            json!({"workspaceId": workspace, "repositoryId": repository, "taskId": task}),
            400,
            wrong,
            only_repository,
        ),
        (
            "echo-repository",
            json!({"workspaceId": workspace, "repositoryId": foreign_repository}),
            404,
            "repository_not_found",
            "repository not found",
        ),
        (
            "echo-repository",
            json!({"workspaceId": "absent", "repositoryId": repository}),
            404,
            "repository_not_found",
            "repository not found",
        ),
    ] {
        let told = act(&host, key, envelope.clone()).await.expect_error(status, code);
        assert_eq!(told, text, "{key} {envelope}");
    }
    host.request(Method::DELETE, &format!("/api/v1/repositories/{other_repository}"), None).await.expect(200);
    let envelope = json!({"taskId": task, "repositoryId": other_repository});
    act(&host, "echo-task", envelope).await.expect_error(404, "repository_not_found");
    assert_eq!(host.calls("demo"), Vec::<Value>::new(), "none of them reached the plugin");
});

on_both!(an_envelope_is_one_object_within_two_bounds, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let workspace = &board.workspace;
    for body in ["", "[]", "3", "{", "{}{}", "{} x", "{\"taskId\":1}", "{\"body\":}", "\u{feff}{}"] {
        let told = act_with(&host, "echo", body.as_bytes(), &[]).await.expect_error(400, "invalid_payload");
        assert_eq!(told, "invalid plugin action payload", "{body:?}");
    }
    // The largest body that a manifest can allow passes, one byte more does not, and 64 where the manifest says so.
    let text = |length: usize| "x".repeat(length - 2);
    let largest = act(&host, "echo", json!({"workspaceId": workspace, "body": text(1 << 20)})).await;
    assert_eq!(largest.status, 502, "the answer, with the body in it, is larger than 1 MiB");
    for (key, limit) in [("echo", 1 << 20), ("echo-task", 64)] {
        let envelope = json!({"workspaceId": workspace, "taskId": board.task, "body": text(limit + 1)});
        let told = act(&host, key, envelope).await.expect_error(413, "body_too_large");
        assert_eq!(told, "plugin action body exceeds declared maximum size");
    }
    let padded = |length: usize| {
        let envelope = json!({"workspaceId": workspace, "body": 1}).to_string();
        [envelope.as_bytes(), &b" ".repeat(length - envelope.len())].concat()
    };
    assert_eq!(act_with(&host, "echo", &padded((1 << 20) + 4096), &[]).await.json()["body"], "1");
    let before = host.calls("demo").len();
    let large = request("POST", &path("echo"), &[&login()], &padded((1 << 20) + 4097));
    let told = Raw::connect(&host).await.send_and_read(large).await.expect_error(413, "body_too_large");
    assert_eq!(told, "plugin action request exceeds maximum size");
    assert_eq!(host.calls("demo").len(), before);
});

on_both!(an_envelope_in_chunks_counts_as_it_is_and_a_broken_one_never_reaches_the_plugin, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let envelope = json!({"workspaceId": board.workspace, "body": 1}).to_string();
    let head = |lines: &str| format!("POST {} HTTP/1.1\r\nHost: x\r\n{}\r\n{lines}\r\n\r\n", path("echo"), login());
    let sent = |length: usize| {
        let padded = [envelope.as_bytes(), &b" ".repeat(length - envelope.len())].concat();
        [head("Transfer-Encoding: chunked").as_bytes(), &chunked(&padded, 60_000)].concat()
    };
    let limit = (1 << 20) + 4096;
    assert_eq!(Raw::connect(&host).await.send_and_read(sent(limit)).await.json()["body"], "1");
    let before = host.calls("demo").len();
    Raw::connect(&host).await.send_and_read(sent(limit + 1)).await.expect_error(413, "body_too_large");
    for half in [
        format!("{}{}", head(&format!("Content-Length: {}", envelope.len())), &envelope[..envelope.len() - 1]),
        format!("{}{:x}\r\n{envelope}\r\n", head("Transfer-Encoding: chunked"), envelope.len()),
    ] {
        let mut raw = Raw::connect(&host).await;
        raw.send(half.as_bytes()).await;
        raw.finish().await;
        let rest = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400 "), "{rest}");
    }
    for lines in ["Content-Length: 2\r\nContent-Length: 3", "Content-Length: 2\r\nTransfer-Encoding: chunked"] {
        assert_eq!(exchange(&host, format!("{}{{}}", head(lines))).await.status, 400, "{lines}");
    }
    assert_eq!(host.calls("demo").len(), before, "none of them reached the plugin");

    let mut raw = Raw::connect(&host).await;
    raw.send(head(&format!("Content-Length: {}\r\nExpect: 100-continue", envelope.len()))).await;
    assert_eq!((raw.line().await.as_str(), raw.line().await.as_str()), ("HTTP/1.1 100 Continue", ""));
    raw.send(&envelope).await;
    assert_eq!(raw.answer().await.json()["body"], "1");
});

on_both!(who_may_act_when_and_on_what_is_checked_in_order, |guest| {
    let (host, board) = with_demo(guest, "").await;
    let envelope = json!({"workspaceId": board.workspace});
    let absent = host.post("/api/plugins/absent/actions/echo", json!({})).await.expect(404);
    assert_eq!(absent, json!({"error": "plugin not found", "code": "plugin_not_found"}));
    for key in ["nope", "ECHO", "echo%2F"] {
        let told = act_with(&host, key, b"not JSON", &[]).await.expect_error(404, "action_not_found");
        assert_eq!(told, "plugin action not found", "before the body is looked at");
    }
    let anonymous = host.anonymous(Method::POST, &path("echo")).await.expect(401);
    assert_eq!(anonymous, json!({"error": "authentication required", "code": "unauthenticated"}));
    let get = exchange(&host, request("GET", &path("echo"), &[&login()], b"")).await;
    assert_eq!((get.status, get.values("allow")), (405, vec!["POST"]));
    exchange(&host, request("POST", &path("echo/below"), &[&login()], b"{}"))
        .await
        .expect_error(404, "route_not_found");

    host.command("demo", "disable").await.expect(200);
    for key in ["echo", "nope"] {
        let told = act(&host, key, envelope.clone()).await.expect_error(503, "plugin_not_running");
        assert_eq!(told, "plugin is not active");
    }
    host.command("demo", "enable").await.expect(200);
    assert_eq!(act(&host, "echo", envelope).await.status, 200);
});

on_both!(only_a_lawful_answer_passes_and_only_four_of_its_headers, |guest| {
    let (host, board) = with_demo(guest, "").await;
    for status in [1, 42, 99, 100, 199, 600, -1, 65_736] {
        let told = responded(&host, &board, json!({"status": status, "body": "internal"})).await;
        assert_eq!(told.expect_error(502, "invalid_action_answer"), "plugin returned an invalid action status");
    }
    for (status, sent) in [(0, 200), (200, 200), (201, 201), (299, 299), (404, 404), (500, 500), (599, 599)] {
        let answer = responded(&host, &board, json!({"status": status, "body": "text"})).await;
        assert_eq!((answer.status, answer.body.as_slice()), (sent, &b"text"[..]));
        assert_eq!(answer.values("content-type"), ["application/json; charset=utf-8"]);
    }
    for status in [204, 304] {
        let answer = responded(&host, &board, json!({"status": status, "body": "left over"})).await;
        assert_eq!((answer.status, answer.values("content-type")), (status, vec![]));
    }
    let untyped = responded(&host, &board, json!({"body": "text", "headers": {"Content-Type": ""}})).await;
    assert_eq!(untyped.values("content-type"), ["application/json; charset=utf-8"]);
    let empty = responded(&host, &board, json!({})).await.expect_error(502, "invalid_action_answer");
    assert_eq!(empty, "plugin returned an empty action response");
    let large = responded(&host, &board, json!({"body_repeat": 1 << 20})).await;
    assert_eq!((large.status, large.body.len()), (200, 1 << 20));
    // The last is more than `limits.message_bytes`, too.
    for (count, headers) in [((1 << 20) + 1, json!({})), ((1 << 20) + 1, json!({"ETag": "x"})), (18 << 20, json!({}))] {
        let told = responded(&host, &board, json!({"body_repeat": count, "headers": headers})).await;
        let told = told.expect_error(502, "invalid_action_answer");
        assert_eq!(told, "plugin action response exceeds maximum size");
    }
    let hostile = json!({"body": "ten bytes.", "headers": {
        "Cache-Control": "no-store", "CONTENT-TYPE": "text/plain", "ETag": "\"1\"", "Retry-After": "7",
        "Set-Cookie": "a=b", "set-cookie": "c=d", "Content-Length": "5", "Transfer-Encoding": "chunked",
        "Connection": "close", "Location": "/elsewhere", "X-Kandev-Auth-Login": "eve",
        "Access-Control-Allow-Origin": "*", "Content-Security-Policy": "x", "X-Request-Id": "forged",
        "WWW-Authenticate": "Basic", "Clear-Site-Data": "*",
    }});
    let answer = responded(&host, &board, hostile).await;
    let own = ["date", "x-request-id", "content-length"];
    let mut relayed: Vec<_> = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str())).collect();
    relayed.sort();
    let relayed: Vec<_> = relayed.into_iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let passed = [
        ("cache-control", "no-store"),
        ("content-type", "text/plain"),
        ("etag", "\"1\""),
        ("retry-after", "7"),
        ("x-content-type-options", "nosniff"),
    ];
    assert_eq!((relayed, answer.body.as_slice()), (passed.to_vec(), &b"ten bytes."[..]));
    assert_ne!(answer.values("x-request-id"), ["forged"]);
    for value in ["a\r\nSet-Cookie: b", "a\nb", "a\u{0}b"] {
        let headers = json!({"ETag": value, "Content-Type": value, "X\r\nSet-Cookie: b": "1"});
        let answer = responded(&host, &board, json!({"body": "x", "headers": headers})).await;
        assert_eq!((answer.status, answer.values("etag"), answer.values("set-cookie")), (200, vec![], vec![]));
        assert_eq!(answer.values("content-type"), ["application/json; charset=utf-8"]);
    }
});

on_both!(a_plugin_that_fails_is_503_without_its_words_and_one_that_is_slow_504, |guest| {
    let (host, board) = with_demo(guest, QUICK).await;
    let envelope = |body: Value| json!({"workspaceId": board.workspace, "body": body});
    for (key, body) in [("fail", json!({"text": "password-hunter2"})), ("absent", json!(1))] {
        let told = act(&host, key, envelope(body)).await.expect_error(503, "action_failed");
        assert_eq!(told, "plugin action unavailable");
    }
    let begin = Instant::now();
    let told = act(&host, "sleep", envelope(json!({"ms": 60_000}))).await.expect_error(504, "action_timeout");
    assert_eq!(told, "plugin action timed out");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!(host.call_ended("demo", 3).await["cancelled"], true, "the plugin learns of it");

    let told = act(&host, "crash", envelope(json!(1))).await.expect_error(503, "action_failed");
    assert_eq!(told, "plugin action unavailable");
    host.status("demo", "active").await;
    eventually("it answers again", || async { act(&host, "echo", envelope(json!(1))).await.status == 200 }).await;
});

on_both!(a_client_that_hangs_up_cancels_its_action_in_the_plugin, |guest| {
    let (host, board) = with_demo(guest, "").await;
    assert_eq!(act(&host, "echo", json!({"workspaceId": board.workspace})).await.status, 200);
    let raw = begun(&host, &board, "sleep", json!({"ms": 60_000})).await;
    drop(raw);
    let end = host.call_ended("demo", 2).await;
    assert_eq!((&end["name"], &end["cancelled"]), (&json!("sleep"), &json!(true)));
    let mut raw = begun(&host, &board, "sleep", json!({"ms": 60_000})).await;
    raw.finish().await;
    assert_eq!(host.call_ended("demo", 3).await["cancelled"], true, "closing one side is hanging up");
    assert_eq!(raw.rest().await, b"");
    eventually("both are counted", || async {
        let metrics = host.get("/metrics").await.body.as_str().unwrap_or_default().to_owned();
        metrics.contains("kandev_plugin_actions_total{plugin=\"demo\",outcome=\"abandoned\"} 2")
    })
    .await;
    let lines = host.log();
    let served = lines.lines().find(|line| line.contains("request served") && line.contains("/actions/{key}"));
    assert!(served.is_some_and(|line| line.contains("plugin.id=\"demo\"")), "{lines}");
    assert!(!lines.contains("/actions/echo"), "raw paths are not logged");
});

on_both!(one_action_more_than_the_bound_is_429_and_webhooks_have_their_own_room, |guest| {
    let (host, board) = with_demo(guest, &QUICK.replace("action_timeout = \"1s\"", "")).await;
    let busy = [
        begun(&host, &board, "sleep", json!({"ms": 60_000})).await,
        begun(&host, &board, "sleep", json!({"ms": 60_000})).await,
    ];
    let refused = act(&host, "echo", json!({"workspaceId": board.workspace})).await;
    assert_eq!(refused.expect_error(429, "too_many_calls"), "plugin \"demo\" has too many actions under way");
    assert_eq!(refused.values("retry-after"), ["1"]);
    assert_eq!(host.calls("demo").len(), 2, "the third never reached the plugin");
    assert_eq!(host.post("/api/plugins/demo/webhooks/echo", json!({})).await.status, 200);
    drop(busy);
    eventually("there is room again", || async {
        act(&host, "echo", json!({"workspaceId": board.workspace})).await.status == 200
    })
    .await;
});

/// What stops a plugin, with what its status is then.
async fn stopped_by(host: &Host, command: &str) {
    match command {
        "disable" => drop(host.command("demo", "disable").await.expect(200)),
        "uninstall" => drop(host.uninstall("demo").await.expect(200)),
        "config" => {
            let config = json!({"config": {"a": 1}});
            host.request(Method::PATCH, "/api/plugins/demo", Some(config)).await.expect(200);
        }
        _ => {
            let body = host.upload(callable(Guest::Rust, "demo", "2.0.0").archive().await).await.expect(201);
            assert_eq!(body["plugin"]["status"], "active", "{body}");
        }
    }
}

on_both!(what_stops_a_plugin_waits_for_its_running_actions_and_then_goes_on, |guest| {
    let toml = QUICK.replace("action_timeout = \"1s\"", "");
    for command in ["disable", "config", "upgrade", "uninstall"] {
        let (host, board) = with_demo(guest, &toml).await;
        let mut running = begun(&host, &board, "sleep", json!({"ms": 4000})).await;
        let begin = Instant::now();
        let stopping = stopped_by(&host, command);
        let refused = async {
            // As soon as the stop has begun, nothing new gets in.
            eventually("the stop has begun", || async {
                let answer = act(&host, "echo", json!({"workspaceId": board.workspace})).await;
                answer.status == 503 || answer.status == 404
            })
            .await;
            let answer = running.answer().await;
            assert_eq!((answer.status, answer.json()), (200, json!({"slept_ms": 4000})), "{command}");
        };
        tokio::join!(stopping, refused);
        assert!(begin.elapsed() < Duration::from_secs(10), "{command}: it goes on when the action is done");
    }
});

on_both!(a_stop_does_not_wait_for_an_action_beyond_its_grace, |guest| {
    let toml = QUICK.replace("action_timeout = \"1s\"", "").replace("lease_grace = \"10s\"", "lease_grace = \"700ms\"");
    let (host, board) = with_demo(guest, &toml).await;
    let mut running = begun(&host, &board, "sleep", json!({"ms": 60_000})).await;
    let begin = Instant::now();
    host.command("demo", "disable").await.expect(200);
    let took = begin.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_secs(10), "{took:?}");
    assert_eq!(running.answer().await.expect_error(503, "action_failed"), "plugin action unavailable");
});

on_both!(the_hosts_own_stop_gives_actions_the_short_grace, |guest| {
    let (mut host, board) = with_demo(guest, &QUICK.replace("action_timeout = \"1s\"", "")).await;
    let _running = begun(&host, &board, "sleep", json!({"ms": 60_000})).await;
    let begin = Instant::now();
    assert_eq!(host.stop().await, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_without_actions_has_none() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    act(&host, "echo", json!({})).await.expect_error(404, "action_not_found");
}
