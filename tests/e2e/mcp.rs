//! Agents' tools over the Model Context Protocol (`/mcp`), message by message: sessions, the list, calls and refusals,
//! being told of changes, who may ask, bounds and the end. The official client has its own test, scripts/mcp.sh.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    on_both,
    support::{
        Board, Guest, Host, Settings, TOKEN, callable, eventually,
        mcp::{Said, Session, Told, WITH_SESSIONS, WITHOUT_SESSIONS, alone, initialize, message, post, to_mcp},
        raw::{Raw, request},
    },
};

const CHANGED: &str = "notifications/tools/list_changed";

async fn with_demo(guest: Guest, toml: &str) -> Host {
    let host = Host::start_with(Settings::toml(toml)).await;
    host.install(&callable(guest, "demo", "1.0.0")).await;
    host
}

/// A call that goes on until it is cancelled, on a connection of its own.
async fn endless(host: &Host, id: u64, headers: &[String], meta: Value) -> Raw {
    let mut raw = Raw::connect(host).await;
    let params = json!({"name": "demo__sleep", "arguments": {"ms": 60_000}, "_meta": meta});
    let login = format!("Authorization: Bearer {TOKEN}");
    let mut head =
        vec![login.as_str(), "Content-Type: application/json", "Accept: application/json, text/event-stream"];
    head.extend(headers.iter().map(String::as_str));
    raw.send(request("POST", "/mcp", &head, message(id, "tools/call", params).to_string().as_bytes())).await;
    raw
}

on_both!(a_session_lists_the_tools_of_active_plugins_and_calls_them, |guest| {
    let host = with_demo(guest, "").await;
    let session = Session::begin(&host, "").await;
    assert_eq!(session.about["protocolVersion"], WITH_SESSIONS);
    assert_eq!(session.about["serverInfo"]["name"], "kandev-host");
    assert_eq!(session.about["capabilities"], json!({"tools": {"listChanged": true}}));
    assert!(session.about["instructions"].as_str().is_some_and(|text| text.contains("<plugin>__<tool>")));

    let list = session.ask("tools/list", json!({})).await["result"].clone();
    let tools = list["tools"].as_array().expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected =
        ["absent", "crash", "echo", "fail", "measure", "respond", "sleep"].map(|name| format!("demo__{name}"));
    assert_eq!((names, list.get("nextCursor")), (expected.iter().map(String::as_str).collect(), None));
    let echo = json!({
        "name": "demo__echo", "title": "Fixture: echo", "description": "Answers the call as JSON",
        "inputSchema": {"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
            "text": {"type": "string", "minLength": 1}, "n": {"type": "integer", "maximum": 10},
            "list": {"type": "array", "items": {"type": "string"}}}},
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
        "_meta": {"kandev-host/plugin": "demo", "kandev-host/tool": "echo",
            "kandev-host/surfaces": ["kanban-task", "office-task"]},
    });
    assert_eq!(tools[2], echo);
    assert_eq!(tools[4]["outputSchema"]["required"], json!(["celsius"]));

    let arguments = json!({"text": "hällo s3cret-argument", "n": 3});
    let result = session.call("demo__echo", arguments.clone()).await;
    let seen = host.called("demo", 1).await;
    let expected = json!({"content": [{"type": "text", "text": "hällo s3cret-argument"}], "isError": false,
        "structuredContent": {"arguments": arguments}, "_meta": {"kandev-host/invocation_id": seen["invocation_id"]}});
    assert_eq!(result, expected);
    let nowhere = json!({"task_id": "", "session_id": "", "workspace_id": "", "surface": ""});
    assert_eq!((&seen["arguments"], &seen["context"]), (&arguments, &nowhere));
    let measured = session.call("demo__measure", json!({"text": "12 °C", "structured": {"celsius": 12}})).await;
    assert_eq!(measured["structuredContent"], json!({"celsius": 12}));
    assert_eq!(session.ask("ping", json!({})).await["result"], json!({}));
    assert!(!host.log().contains("s3cret-argument"), "arguments are not logged");
});

on_both!(what_a_model_can_act_on_is_a_result_and_other_refusals_are_errors, |guest| {
    let host = with_demo(guest, "[timing]\ntool_timeout = \"1s\"\nrestart_delays = [\"100ms\"]\n").await;
    let session = Session::begin(&host, "").await;
    for (tool, arguments, code, text) in [
        ("echo", json!({"text": ""}), "invalid_arguments", "the arguments do not fit the tool \"echo\": /text: "),
        ("fail", json!({"text": "password-hunter2"}), "tool_failed", "plugin \"demo\" failed to call the tool"),
        ("respond", json!({}), "invalid_tool_result", "the tool \"respond\" returned a blank text"),
        ("sleep", json!({"ms": 60_000}), "tool_timeout", "plugin \"demo\" did not answer the tool call in time"),
    ] {
        let result = session.call(&format!("demo__{tool}"), arguments).await;
        assert_eq!((&result["isError"], &result["_meta"]["kandev-host/code"]), (&json!(true), &json!(code)));
        let shown = result["content"][0]["text"].as_str().expect("a text");
        assert!(shown.contains(text) && !shown.contains("hunter2"), "{shown}");
    }
    let said = session.call("demo__respond", json!({"text": "no", "is_error": true})).await;
    assert_eq!((&said["isError"], &said["content"][0]["text"]), (&json!(true), &json!("no")));

    for name in ["demo__nope", "demo", "other__echo", "DEMO__ECHO"] {
        let error = session.refused(name, json!({})).await;
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("tool_not_found")), "{error}");
    }
    let wrong = session.ask("tools/list", json!({"cursor": "no cursor"})).await;
    assert_eq!(wrong["error"]["code"], -32602);
    assert_eq!(session.ask("no/such", json!({})).await["error"]["code"], -32601);
    let no_object = session.ask("tools/call", json!({"name": "demo__echo", "arguments": [1]})).await;
    assert_eq!(no_object["error"], json!({"code": -32602, "message": "params are not those of tools/call"}));

    host.command("demo", "disable").await.expect(200);
    assert_eq!(session.tools().await, [[""; 0]]);
    let error = session.refused("demo__echo", json!({"text": "x"})).await;
    assert!(error["message"].as_str().unwrap().contains("no active plugin offers a tool \"demo__echo\""), "{error}");
});

on_both!(the_address_says_where_the_agent_works_and_the_host_verifies_it, |guest| {
    let host = with_demo(guest, "").await;
    let Board { workspace, task, session: work, .. } = Board::make(&host).await;
    let place = |session: &str| json!({"task_id": task, "session_id": session, "workspace_id": workspace, "surface": "kanban-task"});
    for (n, (query, expected)) in [
        (format!("?task_id={task}"), place("")),
        (format!("?session_id={work}"), place(&work)),
        (format!("?task_id={task}&session_id={work}"), place(&work)),
    ]
    .into_iter()
    .enumerate()
    {
        let session = Session::begin(&host, &query).await;
        session.call("demo__echo", json!({"text": "x"})).await;
        assert_eq!(host.called("demo", n + 1).await["context"], expected, "{query}");
        assert!(!session.tools().await.concat().contains(&"demo__fail".to_owned()), "not offered on kanban-task");
        let result = session.call("demo__fail", json!({})).await;
        assert_eq!(result["_meta"]["kandev-host/code"], "tool_not_offered");
    }
    for (query, code) in [("?task_id=absent", "task_not_found"), ("?session_id=absent", "session_not_found")] {
        let session = Session::begin(&host, query).await;
        let error = session.refused("demo__echo", json!({"text": "x"})).await;
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!(code)), "{query}");
    }
    assert_eq!(host.calls("demo").len(), 3, "none of those reached the plugin");
    post(to_mcp(&host, Method::POST, "?workspace=x"), &initialize()).await.refused(400, "invalid_query");
});

on_both!(a_session_is_told_when_the_list_becomes_another_one, |guest| {
    let host = with_demo(guest, "").await;
    let session = Session::begin(&host, "").await;
    let mut told = session.listen().await;
    host.command("demo", "disable").await.expect(200);
    told.next(CHANGED).await;
    host.command("demo", "enable").await.expect(200);
    told.next(CHANGED).await;
});

on_both!(clients_without_sessions_are_served_request_by_request, |guest| {
    let host = with_demo(guest, "[limits]\nmcp_sessions = 1\n").await;
    let ask = async |id, method: &str, params| Said::of(alone(&host, id, method, params).send().await.unwrap()).await;
    let about = ask(1, "server/discover", json!({})).await.answer()["result"].clone();
    assert!(about["supportedVersions"].as_array().unwrap().contains(&json!(WITHOUT_SESSIONS)), "{about}");
    let list = ask(2, "tools/list", json!({})).await.answer()["result"].clone();
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(7));
    let said = ask(3, "tools/call", json!({"name": "demo__echo", "arguments": {"text": "x"}})).await;
    assert_eq!((said.status, said.session.as_deref()), (200, None));
    assert_eq!(said.answer()["result"]["content"], json!([{"type": "text", "text": "x"}]));

    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let mut told = Told::of(alone(&host, 4, "subscriptions/listen", wanted.clone()).send().await.unwrap());
    let confirmed = told.next("notifications/subscriptions/acknowledged").await;
    assert_eq!(confirmed["params"]["notifications"], json!({"toolsListChanged": true}));
    ask(5, "subscriptions/listen", wanted.clone()).await.refused(429, "too_many_mcp_sessions");
    host.command("demo", "disable").await.expect(200);
    told.next(CHANGED).await;
    drop(told);
    eventually("its place is free", || async {
        let response = alone(&host, 6, "subscriptions/listen", wanted.clone()).send().await.unwrap();
        response.status() == 200
    })
    .await;
});

on_both!(a_client_that_gives_up_or_hangs_up_cancels_its_call, |guest| {
    let host = with_demo(guest, "").await;
    let session = Session::begin(&host, "").await;
    let of_session = [format!("Mcp-Session-Id: {}", session.id), format!("MCP-Protocol-Version: {WITH_SESSIONS}")];
    let hung_up = endless(&host, 100, &of_session, json!({})).await;
    host.called("demo", 1).await;
    drop(hung_up);
    assert_eq!(host.call_ended("demo", 1).await["cancelled"], true);

    let _given_up = endless(&host, 101, &of_session, json!({})).await;
    host.called("demo", 2).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 101}});
    assert_eq!(session.send(&cancel).await.status, 202);
    assert_eq!(host.call_ended("demo", 2).await["cancelled"], true);

    let _ended = endless(&host, 102, &of_session, json!({})).await;
    host.called("demo", 3).await;
    assert_eq!(session.end().await.status, 204);
    assert_eq!(host.call_ended("demo", 3).await["cancelled"], true, "its session has ended");

    let of_none = [
        format!("MCP-Protocol-Version: {WITHOUT_SESSIONS}"),
        "Mcp-Method: tools/call".to_owned(),
        "Mcp-Name: demo__sleep".to_owned(),
    ];
    let meta = json!({"io.modelcontextprotocol/protocolVersion": WITHOUT_SESSIONS,
        "io.modelcontextprotocol/clientCapabilities": {}});
    let hung_up = endless(&host, 1, &of_none, meta).await;
    host.called("demo", 4).await;
    drop(hung_up);
    assert_eq!(host.call_ended("demo", 4).await["cancelled"], true);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_asks_without_the_token_and_no_page_of_somebody_else_with_it() {
    let host = Host::start().await;
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(host.anonymous(method.clone(), "/mcp").await.expect(401)["code"], "unauthenticated");
        assert_eq!(host.with_token("wrong", method, "/mcp").await.status, 401);
    }
    let begin =
        async |origin: &str| post(to_mcp(&host, Method::POST, "").header("Origin", origin), &initialize()).await;
    for origin in ["http://evil.example.test", "null", "http://127.0.0.1:1"] {
        begin(origin).await.refused(403, "foreign_origin");
    }
    // A name that leads here is an origin of its own host: the gate lets it pass.
    let rebound = to_mcp(&host, Method::POST, "").header("Host", "evil.example.test");
    let rebound = rebound.header("Origin", "http://evil.example.test");
    post(rebound, &initialize()).await.refused(403, "origin_refused");
    assert_eq!(begin(host.url()).await.status, 200, "the host's own page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_an_origin_that_the_operator_lists_may_ask() {
    let toml = "[http]\nallowed_origins = [\"https://kandev.example.test\"]\n";
    let host = Host::start_with(Settings::toml(toml)).await;
    let begin =
        async |origin: &str| post(to_mcp(&host, Method::POST, "").header("Origin", origin), &initialize()).await;
    assert_eq!(begin("https://kandev.example.test").await.status, 200);
    begin("http://kandev.example.test").await.refused(403, "foreign_origin");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_refused_in_the_hosts_words() {
    let host = Host::start().await;
    let session = Session::begin(&host, "").await;
    let raw = async |body: &str, media: &str| {
        let request = session.request(Method::POST).header("Content-Type", media).body(body.to_owned());
        Said::of(request.send().await.expect("an answer")).await
    };
    raw("{", "application/json").await.refused(400, "invalid_mcp_message");
    let batch = raw(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "application/json").await;
    let text = batch.refused(400, "invalid_mcp_message");
    assert_eq!(text, "batches are not taken: send each message by itself");
    for no_message in [
        "{}",
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
    ] {
        let said = raw(no_message, "application/json").await;
        let text = said.refused(400, "invalid_mcp_message");
        assert!(text.starts_with("the body is no message of JSON-RPC: a request has \"jsonrpc\":\"2.0\""), "{text}");
    }
    raw("{}", "text/plain").await.refused(415, "unsupported_media_type");
    raw(&format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20)), "application/json").await.refused(413, "body_too_large");
    let picky = host.client().post(format!("{}/mcp", host.url())).bearer_auth(TOKEN).header("Accept", "text/html");
    post(picky, &initialize()).await.refused(406, "not_acceptable");
    let curl = host.client().post(format!("{}/mcp", host.url())).bearer_auth(TOKEN).header("Accept", "*/*");
    let pong = post(curl.header("Mcp-Session-Id", &session.id), &message(7, "ping", json!({}))).await;
    assert_eq!(pong.answer()["result"], json!({}));
    let unknown = to_mcp(&host, Method::POST, "").header("Mcp-Session-Id", "absent");
    let text = post(unknown, &message(1, "tools/list", json!({}))).await;
    assert_eq!(text.refused(404, "mcp_session_not_found"), "no such session; send initialize for a new one");
    let without = post(to_mcp(&host, Method::POST, ""), &message(1, "tools/list", json!({}))).await;
    without.refused(400, "invalid_mcp_message");
    let version = to_mcp(&host, Method::GET, "").header("Mcp-Session-Id", &session.id);
    let version = version.header("MCP-Protocol-Version", "1999-01-01").send().await.expect("an answer");
    Said::of(version).await.refused(400, "invalid_mcp_message");
    assert_eq!(session.ask("ping", json!({})).await["result"], json!({}), "the session lives");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_initialize_without_its_params_is_answered_by_its_id_and_takes_no_seat() {
    let host = Host::start_with(Settings::toml("[limits]\nmcp_sessions = 1\n")).await;
    let error = json!({"code": -32602, "message": "params are not those of initialize"});
    let without = json!({"jsonrpc": "2.0", "id": "first", "method": "initialize"});
    for (asked, id) in [(without, json!("first")), (message(2, "initialize", json!({})), json!(2))] {
        let said = post(to_mcp(&host, Method::POST, ""), &asked).await;
        assert_eq!((said.status, said.session), (200, None));
        assert_eq!(said.messages, [json!({"jsonrpc": "2.0", "id": id, "error": error})]);
    }
    let session = Session::begin(&host, "").await;
    assert_eq!(session.ask("ping", json!({})).await["result"], json!({}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_bounded_and_end_when_they_are_ended_or_not_used() {
    let host = Host::start_with(Settings::toml("[limits]\nmcp_sessions = 2\n[timing]\nmcp_idle = \"6s\"\n")).await;
    let (listening, ended) = (Session::begin(&host, "").await, Session::begin(&host, "").await);
    let told = listening.listen().await;
    let full = post(to_mcp(&host, Method::POST, ""), &initialize()).await;
    assert!(full.refused(429, "too_many_mcp_sessions").contains("limits.mcp_sessions"));
    assert_eq!(ended.end().await.status, 204);
    ended.send(&message(9, "ping", json!({}))).await.refused(404, "mcp_session_not_found");

    let unused = Session::begin(&host, "").await;
    eventually("the unused session is closed", || async {
        let metrics = host.get("/metrics").await.body.as_str().unwrap_or_default().to_owned();
        metrics.contains("\nkandev_mcp_sessions 1")
    })
    .await;
    unused.send(&message(9, "ping", json!({}))).await.refused(404, "mcp_session_not_found");
    assert_eq!(listening.ask("ping", json!({})).await["result"], json!({}), "who listens is there");
    drop(told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_many_tools_comes_in_pages() {
    let host = Host::start().await;
    for n in 0..8 {
        host.install(&callable(Guest::Rust, &format!("org.example.plugin_{n}"), "1.0.0")).await;
    }
    let session = Session::begin(&host, "").await;
    let pages = session.tools().await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [50, 6]);
    let names = pages.concat();
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(names, sorted);
    let lawful =
        |name: &String| name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    assert!(names.iter().all(lawful), "{names:?}");
    let echo = names.iter().find(|name| name.ends_with("__echo")).expect("an echo");
    assert_eq!(session.call(echo, json!({"text": "x"})).await["content"][0]["text"], "x");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_streams_do_not_hold_up_the_hosts_stop() {
    let mut host = with_demo(Guest::Rust, "[timing]\ndrain_grace = \"15s\"\n").await;
    let (told, listening) = {
        let session = Session::begin(&host, "").await;
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let mut listening = Told::of(alone(&host, 1, "subscriptions/listen", wanted).send().await.unwrap());
        listening.next("notifications/subscriptions/acknowledged").await;
        (session.listen().await, listening)
    };
    let begin = Instant::now();
    assert_eq!(host.stop().await, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    told.rest().await;
    let last = listening.rest().await.pop().expect("messages");
    assert_eq!((&last["id"], last.get("error")), (&json!(1), None), "the subscription ends in order: {last}");
}
