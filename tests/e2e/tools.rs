//! Agents' tools over REST (contract/manifest.md §2, wire.md §2.1): the list, checked arguments and results, the
//! deadline, the place where an agent works.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{
        Board, Guest, Host, Package, Settings,
        board::{session, task, workspace},
        callable, eventually,
        host::{Answer, TOKEN},
        raw::{Raw, request},
    },
};

const QUICK: &str = r#"
[timing]
tool_timeout = "1s"
lease_grace = "10s"
drain_grace = "300ms"
stop_grace = "500ms"
restart_delays = ["100ms", "200ms"]
[limits]
tool_concurrency = 1
"#;

async fn with_demo(guest: Guest, toml: &str) -> Host {
    let host = Host::start_with(Settings::toml(toml)).await;
    host.install(&callable(guest, "demo", "1.0.0")).await;
    host
}

fn path(tool: &str) -> String {
    format!("/api/v1/tools/demo/{tool}")
}

async fn call(host: &Host, tool: &str, arguments: Value) -> Answer {
    host.post(&path(tool), json!({"arguments": arguments})).await
}

/// Names and plugins of the list.
async fn listed(host: &Host, query: &str) -> Vec<String> {
    let list = host.get(&format!("/api/v1/tools{query}")).await.expect(200);
    let tools = list["tools"].as_array().expect("tools").iter();
    tools.map(|tool| format!("{}/{}", tool["plugin"].as_str().unwrap(), tool["name"].as_str().unwrap())).collect()
}

/// The places of an error's violations.
#[track_caller]
fn places(body: &Value, code: &str) -> Vec<String> {
    assert_eq!(body["code"], code, "{body}");
    let violations = body["violations"].as_array().expect("violations").iter();
    violations.map(|violation| violation["path"].as_str().expect("a path").to_owned()).collect()
}

on_both!(the_list_has_the_tools_of_active_plugins_with_schemas_and_hints, |guest| {
    let host = with_demo(guest, "").await;
    host.install(&Package::of(guest, "bare", "1.0.0")).await;
    let list = host.get("/api/v1/tools").await.expect(200);
    let echo = json!({
        "plugin": "demo", "name": "echo", "description": "Answers the call as JSON",
        "surfaces": ["kanban-task", "office-task"],
        "input_schema": {"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
            "text": {"type": "string", "minLength": 1}, "n": {"type": "integer", "maximum": 10},
            "list": {"type": "array", "items": {"type": "string"}}}},
        "annotations": {"read_only_hint": true, "destructive_hint": false, "idempotent_hint": true, "open_world_hint": false},
    });
    assert_eq!(list["tools"][0], echo);
    let measure = &list["tools"][2];
    assert_eq!(measure["output_schema"]["required"], json!(["celsius"]));
    assert_eq!(
        (&measure["annotations"]["destructive_hint"], &measure["annotations"]["open_world_hint"]),
        (&json!(true), &json!(true))
    );
    let all = ["echo", "respond", "measure", "sleep", "fail", "crash", "absent"].map(|name| format!("demo/{name}"));
    assert_eq!(listed(&host, "").await, all);
    assert_eq!(listed(&host, "?surface=office-task").await, ["demo/echo", "demo/fail"]);
    let wrong = host.get("/api/v1/tools?surface=moon").await.expect(400);
    assert_eq!(wrong["code"], "invalid_query");

    host.command("demo", "disable").await.expect(200);
    assert_eq!(listed(&host, "").await, Vec::<String>::new());
    assert_eq!(call(&host, "echo", json!({"text": "x"})).await.expect(503)["code"], "plugin_not_running");
    host.command("demo", "enable").await.expect(200);
    assert_eq!(listed(&host, "").await, all);
    host.uninstall("demo").await.expect(200);
    assert_eq!(listed(&host, "").await, Vec::<String>::new());
    assert_eq!(host.anonymous(Method::GET, "/api/v1/tools").await.status, 401);
    assert_eq!(host.anonymous(Method::POST, &path("echo")).await.status, 401);
});

on_both!(a_call_gives_the_plugin_its_arguments_and_a_verified_place, |guest| {
    let host = with_demo(guest, "").await;
    let board = Board::make(&host).await;
    let Board { workspace: one, task: one_task, session: one_session, .. } = &board;
    let arguments = json!({"text": "hällo", "n": 3, "list": ["a"]});
    let answer = call(&host, "echo", arguments.clone()).await.expect(200);
    let seen = host.called("demo", 1).await;
    let expected = json!({"invocation_id": answer["invocation_id"], "text": "hällo", "is_error": false,
        "structured_content": {"arguments": arguments}});
    assert_eq!(answer, expected);
    let nowhere = json!({"task_id": "", "session_id": "", "workspace_id": "", "surface": ""});
    assert_eq!(
        (&seen["invocation_id"], &seen["arguments"], &seen["context"], &seen["name"]),
        (&answer["invocation_id"], &arguments, &nowhere, &json!("echo"))
    );
    assert!(uuid::Uuid::try_parse(answer["invocation_id"].as_str().unwrap()).is_ok());

    let place = |session: &str| json!({"task_id": one_task, "session_id": session, "workspace_id": one, "surface": "kanban-task"});
    for (n, (body, expected)) in [
        (json!({"task_id": one_task}), place("")),
        (json!({"task_id": one_task, "session_id": one_session}), place(one_session)),
        (json!({"session_id": one_session, "task_id": null}), place(one_session)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut body = body;
        body["arguments"] = json!({"text": "x"});
        host.post(&path("echo"), body.clone()).await.expect(200);
        assert_eq!(host.called("demo", n + 2).await["context"], expected, "{body}");
    }

    let foreign_task = task(&host, &workspace(&host, "two").await, &[]).await;
    let foreign_session = session(&host, &foreign_task, "").await;
    for (body, code, text) in [
        (json!({"task_id": "absent"}), "task_not_found", "task not found"),
        (json!({"session_id": "absent"}), "session_not_found", "session not found"),
        (json!({"task_id": one_task, "session_id": foreign_session}), "session_not_found", "session not found"),
    ] {
        let refused = host.post(&path("respond"), body.clone()).await.expect(404);
        assert_eq!(refused, json!({"error": text, "code": code}), "{body}");
    }
    let office = host.post(&path("fail"), json!({"task_id": one_task})).await.expect(400);
    assert_eq!(office, json!({"error": "the tool \"fail\" is not offered on kanban-task", "code": "tool_not_offered"}));
    assert_eq!(host.calls("demo").len(), 4, "none of those reached the plugin");
});

on_both!(claims_of_an_identity_never_reach_a_tool_as_truth, |guest| {
    let host = with_demo(guest, "").await;
    let mut call = host.client().post(format!("{}{}", host.url(), path("echo"))).bearer_auth(TOKEN);
    for name in ["X-Kandev-User", "X-Kandev-Task-Id", "X-Kandev-Session-Id", "X-Forwarded-User", "Cookie"] {
        call = call.header(name, "eve");
    }
    let body = json!({"arguments": {"text": "x"}});
    assert_eq!(crate::support::host::answer(call.json(&body)).await.status, 200);
    let seen = host.called("demo", 1).await;
    let nowhere = json!({"task_id": "", "session_id": "", "workspace_id": "", "surface": ""});
    assert_eq!(seen["context"], nowhere);
    assert!(!seen.to_string().contains("eve") && !seen.to_string().contains(TOKEN), "{seen}");
    let claimed = json!({"arguments": {"text": "x"}, "context": {"task_id": "eve"}});
    assert_eq!(host.post(&path("echo"), claimed).await.expect(400)["code"], "invalid_payload");
});

on_both!(arguments_that_break_the_schema_are_400_with_every_place, |guest| {
    let host = with_demo(guest, "").await;
    for (arguments, expected) in [
        (json!({}), vec!["/text"]),
        (json!({"text": ""}), vec!["/text"]),
        (json!({"text": "x", "n": "secret-value"}), vec!["/n"]),
        (json!({"text": "x", "n": 11}), vec!["/n"]),
        (json!({"text": "x", "list": ["a", 1, 2]}), vec!["/list/1", "/list/2"]),
        (json!({"text": "x", "list": [9_007_199_254_740_993_i64]}), vec!["/list/0", "/list/0"]),
        (json!({"text": "x", "more": 1}), vec![""]),
    ] {
        let refused = call(&host, "echo", arguments.clone()).await.expect(400);
        assert_eq!(places(&refused, "invalid_arguments"), expected, "{arguments}");
        let text = refused["error"].as_str().unwrap();
        assert!(text.starts_with("the arguments do not fit the tool \"echo\": "), "{text}");
        assert!(!refused.to_string().contains("secret-value"), "{refused}");
    }
    for body in [json!({"arguments": []}), json!({"arguments": "x"}), json!({"args": {}})] {
        assert_eq!(host.post(&path("echo"), body.clone()).await.expect(400)["code"], "invalid_payload", "{body}");
    }
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    let refused = call(&host, "respond", json!({"a": deep})).await.expect(400);
    assert_eq!(places(&refused, "invalid_arguments"), [""]);
    let large = call(&host, "respond", json!({"a": "x".repeat(2 << 20)})).await.expect(413);
    assert_eq!(large["code"], "body_too_large");
    assert_eq!(host.calls("demo"), Vec::<Value>::new(), "none of them reached the plugin");
});

on_both!(a_result_is_bounded_has_text_and_fits_its_schema, |guest| {
    let host = with_demo(guest, "").await;
    let said = call(&host, "respond", json!({"text": "no", "is_error": true})).await.expect(200);
    assert_eq!((&said["text"], &said["is_error"], said.get("structured_content")), (&json!("no"), &json!(true), None));
    let said = call(&host, "respond", json!({"text": "x", "structured": {"any": [1, null]}})).await.expect(200);
    assert_eq!(said["structured_content"], json!({"any": [1, null]}));
    for blank in [json!({}), json!({"text": " \n"}), json!({"text": "", "is_error": true, "structured": {"a": 1}})] {
        let refused = call(&host, "respond", blank).await.expect(502);
        assert_eq!(refused["code"], "invalid_tool_result");
        assert_eq!(refused["error"], "plugin \"demo\": the tool \"respond\" returned a blank text");
    }
    let whole = call(&host, "respond", json!({"text_repeat": 1 << 20})).await.expect(200);
    assert_eq!(whole["text"].as_str().map(str::len), Some(1 << 20));
    for large in [json!({"text_repeat": (1 << 20) + 1}), json!({"text_repeat": 1 << 20, "structured": {}})] {
        let refused = call(&host, "respond", large).await.expect(502);
        assert_eq!(refused["error"], "plugin \"demo\": the tool \"respond\" returned more than 1048576 bytes");
    }
    let unread = call(&host, "respond", json!({"text_repeat": 18 << 20})).await.expect(502);
    let text = "plugin \"demo\": the tool returned more than 1048576 bytes";
    assert_eq!(unread, json!({"error": text, "code": "invalid_tool_result"}), "more than limits.message_bytes");
    let good = call(&host, "measure", json!({"text": "12 °C", "structured": {"celsius": 12}})).await.expect(200);
    assert_eq!(good["structured_content"], json!({"celsius": 12}));
    let bad = call(&host, "measure", json!({"text": "x", "structured": {"celsius": "warm-secret"}})).await.expect(502);
    assert_eq!(places(&bad, "invalid_tool_result"), ["/celsius"]);
    assert!(!bad.to_string().contains("warm-secret"), "{bad}");
    let missing = call(&host, "measure", json!({"text": "x"})).await.expect(502);
    assert_eq!(missing["code"], "invalid_tool_result");
    let failed = call(&host, "measure", json!({"text": "no sensor", "is_error": true})).await.expect(200);
    assert_eq!(failed["is_error"], true, "what failed need not fit");
});

on_both!(a_tool_that_fails_is_503_one_that_is_slow_504_and_none_is_called_twice, |guest| {
    let host = with_demo(guest, QUICK).await;
    for (tool, arguments) in [("fail", json!({"text": "password-hunter2"})), ("absent", json!({}))] {
        let refused = call(&host, tool, arguments).await.expect(503);
        assert_eq!(refused, json!({"error": "plugin \"demo\" failed to call the tool", "code": "tool_failed"}));
    }
    let slow = call(&host, "sleep", json!({"ms": 60_000})).await.expect(504);
    assert_eq!(slow, json!({"error": "plugin \"demo\" did not answer the tool call in time", "code": "tool_timeout"}));
    assert_eq!(host.call_ended("demo", 3).await["cancelled"], true, "the plugin learns of it");
    assert_eq!(call(&host, "crash", json!({})).await.expect(503)["code"], "tool_failed");
    host.status("demo", "active").await;
    eventually("it answers again", || async { call(&host, "echo", json!({"text": "x"})).await.status == 200 }).await;
    let names: Vec<_> = host.calls("demo").iter().map(|call| call["name"].clone()).collect();
    assert_eq!(names, ["fail", "absent", "sleep", "crash", "echo"]);
    for (tool, status, code) in [("nope", 404, "tool_not_found"), ("Echo", 404, "tool_not_found")] {
        assert_eq!(call(&host, tool, json!({})).await.expect(status)["code"], code);
    }
    let absent = host.post("/api/v1/tools/absent/echo", json!({})).await.expect(404);
    assert_eq!(absent["code"], "plugin_not_found");
});

on_both!(a_tool_call_is_a_lease_and_belongs_to_its_client, |guest| {
    let host = with_demo(guest, &QUICK.replace("tool_timeout = \"1s\"", "")).await;
    let begin = async |ms: u64, count: usize| {
        let mut raw = Raw::connect(&host).await;
        let body = json!({"arguments": {"ms": ms}}).to_string();
        let login = format!("Authorization: Bearer {TOKEN}");
        let head = [login.as_str(), "Content-Type: application/json"];
        raw.send(request("POST", &path("sleep"), &head, body.as_bytes())).await;
        host.called("demo", count).await;
        raw
    };
    let raw = begin(60_000, 1).await;
    let refused = call(&host, "respond", json!({"text": "x"})).await.expect(429);
    assert_eq!(refused["error"], "plugin \"demo\" has too many tool calls under way");
    drop(raw);
    assert_eq!(host.call_ended("demo", 1).await["cancelled"], true);
    eventually("there is room again", || async {
        let metrics = host.get("/metrics").await.body.as_str().unwrap_or_default().to_owned();
        metrics.contains("kandev_plugin_tools_total{plugin=\"demo\",outcome=\"abandoned\"} 1")
    })
    .await;
    let mut running = begin(1500, 2).await;
    let (disabled, answer) = tokio::join!(host.command("demo", "disable"), running.answer());
    disabled.expect(200);
    assert_eq!((answer.status, &answer.json()["text"]), (200, &json!("slept 1500 ms")));
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_whose_tool_has_a_schema_that_cannot_be_used_is_refused() {
    let host = Host::start().await;
    for (schema, why) in [
        ("{type: object, properties: {a: {type: text}}}", "is not a valid JSON Schema"),
        ("{type: object, properties: {a: {$ref: 'https://example.test/x'}}}", "cannot be used: its $ref"),
        ("{type: object, properties: {a: {$ref: '#'}}}", "cannot be used: its references run in a circle"),
        ("{type: object, properties: {a: {pattern: '('}}}", "cannot be used: it is not a valid JSON Schema"),
    ] {
        let tool =
            format!("agent_tools:\n  - {{name: t, description: d, surfaces: [kanban-task], input_schema: {schema}}}\n");
        let package = Package::of(Guest::Rust, "demo", "1.0.0").manifest(|text| text + &tool);
        let refused = host.upload(package.archive().await).await.expect(400);
        let text = refused["error"].as_str().unwrap();
        assert!(text.contains("agent_tools[0].input_schema ") && text.contains(why), "{schema}: {text}");
    }
}
