//! Every RPC of the Plugin service, answered by a real plugin process on the SDK; start, stop, panics, log lines.

use goplugin::host::Level;
use kandev_proto::{json_from_struct, struct_from_json, v1};
use prost_types::Struct;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    memory_host::MemoryHost,
    support::{Guest, LIMIT, rpcs},
};

fn object(value: Value) -> Option<Struct> {
    let Value::Object(object) = value else { panic!("an object") };
    Some(struct_from_json(object))
}

fn told(status: &Status) -> (Code, &str) {
    (status.code(), status.message())
}

fn event(kind: &str) -> v1::Event {
    let payload = object(json!({"a": 1}));
    let occurred_at = "2026-01-01T00:00:00Z".into();
    v1::Event { event_id: "e1".into(), event_type: kind.into(), occurred_at, workspace_id: "w1".into(), payload }
}

fn webhook(key: &str) -> v1::WebhookRequest {
    v1::WebhookRequest {
        webhook_key: key.into(),
        method: "POST".into(),
        path: "/sub".into(),
        query: "a=1".into(),
        headers: [("X-Test".to_owned(), "yes".to_owned())].into(),
        body: br#"{"n":1}"#.as_slice().into(),
    }
}

fn action(key: &str, body: &'static str) -> v1::PluginActionRequest {
    let context = v1::VerifiedActionContext { actor_id: "u1".into(), head_branch: "main".into(), ..Default::default() };
    v1::PluginActionRequest { action_key: key.into(), context: Some(context), body: body.as_bytes().into() }
}

#[tokio::test]
async fn a_plugin_without_methods_answers_the_contracts_defaults() {
    let mut guest = Guest::start("defaults", &MemoryHost::default()).await;
    let client = &mut guest.client;
    client.deliver_event(event("any")).await.expect("acknowledged");
    let answer = client.handle_webhook(webhook("any")).await.unwrap().into_inner();
    assert_eq!(answer, v1::WebhookResponse { status: 404, ..Default::default() });
    let refusals = [
        client.handle_action(action("any", "{}")).await.unwrap_err(),
        client.search_entity_references(v1::SearchEntityReferencesRequest::default()).await.unwrap_err(),
        client.authorize_entity_reference(v1::AuthorizeEntityReferenceRequest::default()).await.unwrap_err(),
        client.resolve_git_credential(v1::ResolveGitCredentialRequest::default()).await.unwrap_err(),
        client.get_git_credential_binding(v1::GitCredentialBindingRequest::default()).await.unwrap_err(),
        client.invoke_agent_tool(v1::AgentToolRequest::default()).await.unwrap_err(),
    ];
    let what = [
        "action handler",
        "entity reference searcher",
        "entity reference authorizer",
        "git credential resolver",
        "git credential binder",
        "agent tool invocation",
    ];
    for (refusal, what) in refusals.iter().zip(what) {
        assert_eq!(told(refusal), (Code::Unimplemented, &*format!("pluginsdk: plugin does not implement {what}")));
    }
    guest.stop().await;
}

/// An RPC that is new in the contract has a generated stub, which nobody would miss.
#[tokio::test]
async fn every_call_of_the_contract_is_answered_by_the_sdk_and_not_by_a_stub() {
    let guest = Guest::start("defaults", &MemoryHost::default()).await;
    for rpc in rpcs("Plugin") {
        match guest.call(&rpc).await {
            Ok(()) => {}
            Err(refusal) => assert!(refusal.message().starts_with("pluginsdk: "), "{rpc}: {refusal}"),
        }
    }
    let refusal = guest.call("Unknown").await.unwrap_err();
    assert!(!refusal.message().starts_with("pluginsdk: "), "{refusal}");
    guest.stop().await;
}

#[tokio::test]
async fn events_and_webhooks_reach_the_author_as_own_types() {
    let mut guest = Guest::start("full", &MemoryHost::default()).await;
    guest.client.deliver_event(event("test.ok")).await.unwrap();
    let failed = guest.client.deliver_event(event("test.fail")).await.unwrap_err();
    assert_eq!(told(&failed), (Code::Unavailable, "not now"));
    let answer = guest.client.handle_webhook(webhook("echo")).await.unwrap().into_inner();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.status, answer.headers["Content-Type"].as_str()), (200, "application/json"));
    assert_eq!(body, json!({"method": "POST", "path": "/sub", "query": "a=1", "x": "yes", "body": {"n": 1}}));
    guest.stop().await;
}

#[tokio::test]
async fn an_actions_own_errors_are_http_answers_and_others_are_not() {
    let mut guest = Guest::start("full", &MemoryHost::default()).await;
    let client = &mut guest.client;
    let answer = client.handle_action(action("do", "[1]")).await.unwrap().into_inner();
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body, json!({"actor": "u1", "branch": "main", "body": [1]}));
    assert_eq!((answer.status, answer.headers), (202, [("X-Test".to_owned(), "1".to_owned())].into()));

    let answer = client.handle_action(action("refuse", "{}")).await.unwrap().into_inner();
    assert_eq!((answer.status, &answer.body[..]), (409, br#"{"error":"somebody else was faster"}"#.as_slice()));
    let answer = client.handle_action(action("do", "no json")).await.unwrap().into_inner();
    assert_eq!(answer.status, 400);
    let bug = client.handle_action(action("bug", "{}")).await.unwrap_err();
    assert_eq!(told(&bug), (Code::Internal, "an index was wrong"));
    let of_the_host = client.handle_action(action("denied", "{}")).await.unwrap_err();
    assert_eq!(told(&of_the_host), (Code::NotFound, "task \"none\" not found"));
    guest.stop().await;
}

#[tokio::test]
async fn references_credentials_and_tools_are_answered() {
    let mut guest = Guest::start("full", &MemoryHost::default()).await;
    let client = &mut guest.client;
    let search = v1::SearchEntityReferencesRequest {
        source: "issues".into(),
        workspace_id: "w1".into(),
        query: "door".into(),
        limit: 2,
    };
    let found = client.search_entity_references(search).await.unwrap().into_inner().candidates;
    assert_eq!(
        (found.len(), &*found[1].title, &*found[1].url),
        (2, "door in issues of w1", "https://tracker.example/1")
    );
    assert_eq!(found[1].attributes, object(json!({"n": 1})));

    let mut question = v1::AuthorizeEntityReferenceRequest { purpose: "search".into(), ..Default::default() };
    let denied = client.authorize_entity_reference(question.clone()).await.unwrap().into_inner();
    assert_eq!(denied, v1::AuthorizeEntityReferenceResponse { allowed: false, reason: "search of None".into() });
    question.reference = object(json!({"scope": "public"}));
    let allowed = client.authorize_entity_reference(question).await.unwrap().into_inner();
    assert_eq!(allowed, v1::AuthorizeEntityReferenceResponse { allowed: true, reason: String::new() });

    let request = v1::ResolveGitCredentialRequest {
        provider_id: "forge".into(),
        host: "git.example".into(),
        path: "/r.git".into(),
        ..Default::default()
    };
    let credential = client.resolve_git_credential(request).await.unwrap().into_inner();
    let expected = v1::ResolveGitCredentialResponse {
        username: "forge".into(),
        secret: "git.example/r.git".into(),
        expires_at: "2030-01-01T00:00:00Z".into(),
    };
    assert_eq!(credential, expected);
    for (host, expected) in [("git.example", "rev-r1"), ("other.example", "")] {
        let request =
            v1::GitCredentialBindingRequest { host: host.into(), repository_id: "r1".into(), ..Default::default() };
        assert_eq!(client.get_git_credential_binding(request).await.unwrap().into_inner().binding, expected);
    }

    let context = v1::AgentToolContext { surface: "kanban-task".into(), ..Default::default() };
    let request = v1::AgentToolRequest {
        invocation_id: "i1".into(),
        name: "weather".into(),
        arguments: object(json!({"city": "x"})),
        context: Some(context),
    };
    let answer = client.invoke_agent_tool(request).await.unwrap().into_inner();
    assert_eq!((&*answer.text, answer.is_error), ("weather on kanban-task", false));
    let structured = Value::Object(json_from_struct(answer.structured_content.unwrap()));
    assert_eq!(structured, json!({"id": "i1", "arguments": {"city": "x"}}));
    let failing = v1::AgentToolRequest { name: "fail".into(), ..Default::default() };
    let answer = client.invoke_agent_tool(failing).await.unwrap().into_inner();
    assert_eq!(answer, v1::AgentToolResponse { text: "it rains".into(), structured_content: None, is_error: true });
    guest.stop().await;
}

#[tokio::test]
async fn a_panic_is_answered_and_logged_and_the_plugin_lives_on() {
    let mut guest = Guest::start("full", &MemoryHost::default()).await;
    let panicked = guest.client.deliver_event(event("test.panic")).await.unwrap_err();
    assert_eq!(told(&panicked), (Code::Internal, "the plugin's handler panicked; its log says where"));
    guest.client.handle_webhook(webhook("panic")).await.unwrap_err();
    guest.client.deliver_event(event("test.ok")).await.expect("it lives");
    let (level, _) = guest.line_with(&["panic at=", "guest.rs:", "text=\"boom at event e1\""]).await;
    assert_eq!(level, Level::Error);
    let (level, line) = guest.line_with(&["call=HandleWebhook"]).await;
    let expected = "the plugin's handler panicked call=HandleWebhook panic=\"boom in a webhook\"";
    assert_eq!((level, &*line), (Level::Error, expected));
    guest.stop().await;
}

#[tokio::test]
async fn log_lines_reach_the_host_with_level_fields_and_span() {
    let mut guest = Guest::start("full", &MemoryHost::default()).await;
    guest.client.deliver_event(event("test.ok")).await.unwrap();
    let (level, line) = guest.line_with(&["seen"]).await;
    assert_eq!((level, &*line), (Level::Warn, r#"seen workspace=w1 n=3 payload="{\"a\":1}" event_id=e1"#));
    let (_, lines) = guest.stop().await;
    assert!(!lines.iter().any(|(_, line)| line.contains("not written")), "{lines:?}");
}

#[tokio::test]
async fn both_hooks_run_and_can_call_the_host() {
    let host = MemoryHost::default();
    let guest = Guest::start("full", &host).await;
    let deadline = tokio::time::Instant::now() + LIMIT;
    while host.keys("life") != ["start"] {
        assert!(tokio::time::Instant::now() < deadline, "the start hook did not run");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let (report, _) = guest.stop().await;
    assert_eq!(host.keys("life"), ["start", "stop"]);
    assert!(report.contains("code 0"), "{report}");
}

#[tokio::test]
async fn a_stop_hook_that_does_not_end_is_left_after_its_limit() {
    let guest = Guest::start("slow-stop", &MemoryHost::default()).await;
    let (report, lines) = guest.stop().await;
    assert!(report.contains("code 0"), "{report}");
    let expected = "the plugin's stop hook took too long and was left limit_ms=200";
    assert_eq!(lines, [(Level::Warn, expected.to_owned())]);
}
