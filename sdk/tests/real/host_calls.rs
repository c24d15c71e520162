//! Every RPC of the Host service, called by a real plugin process through the SDK.

use kandev_proto::v1;
use serde_json::{Value, json};

use crate::{
    memory_host::MemoryHost,
    support::{Guest, rpcs},
};

async fn results(host: &MemoryHost) -> Value {
    let mut guest = Guest::start("full", host).await;
    let request = v1::WebhookRequest { webhook_key: "host".into(), ..Default::default() };
    let answer = guest.client.handle_webhook(request).await.unwrap().into_inner();
    guest.stop().await;
    serde_json::from_slice(&answer.body).unwrap()
}

/// Of the lists: the ids, in order. Of the rest: everything.
fn ids(results: &Value, name: &str) -> Value {
    let items = results[name].as_array().unwrap_or_else(|| panic!("{name}: {}", results[name]));
    items.iter().map(|item| item.get("id").or(item.get("session_id")).cloned().unwrap_or_default()).collect()
}

#[tokio::test]
async fn every_call_reaches_the_host_and_its_answer_comes_back() {
    let host = MemoryHost::default();
    let results = results(&host).await;
    let exact = json!({
        "SetState": null, "SetState null": null,
        "SetState list": {"error": "InvalidArgument: a state value must be a JSON object, not a list"},
        "GetState": {"n": 1, "deep": [true, null]}, "GetState null": null, "GetState none": null,
        "ListState": [["empty", null], ["k", {"n": 1, "deep": [true, null]}]],
        "DeleteState": null, "GetState deleted": null,
        "SetSecret": null, "GetSecret": "hunter2", "DeleteSecret": null, "GetSecret deleted": null,
        "RevealSecret": "revealed vault:1",
        "GetConfig": 60, "EmitEvent": null, "EmitEvent null": null, "InvokeUtilityAgent": "answer to say hi",
        "GetTask none": {"error": "NotFound: task \"none\" not found"},
        "SendMessage": {"session_id": "s1", "status": "queued"},
        "DeletePluginOwnedTaskTree": ["t9"],
    });
    for rpc in rpcs("Host") {
        let result = results.get(&rpc).unwrap_or_else(|| panic!("the SDK does not call {rpc}"));
        assert!(!result.to_string().contains("Unimplemented"), "{rpc}: {result}");
    }
    for (name, expected) in exact.as_object().unwrap() {
        assert_eq!(&results[name], expected, "{name}");
    }
    for name in [
        "ListTasks",
        "ListWorkspaces",
        "ListWorkflows",
        "ListAgentProfiles",
        "ListExecutorProfiles",
        "ListRepositories",
        "ListSessions",
        "ListSessionCodeStats",
        "ListMessages",
    ] {
        assert_eq!(ids(&results, name), json!(["1", "2"]), "{name} is walked over both pages");
    }
    assert_eq!(ids(&results, "ListWorkflowSteps"), json!(["1"]));
    assert_eq!(ids(&results, "PreviewPluginOwnedTaskTree"), json!(["t9"]));
    assert_eq!(results["GetTask"]["title"], "Task t9");
    assert_eq!(results["UpdateTask"]["state"], "COMPLETED");
    assert_eq!(results["CreateTask"]["parent_id"], "t1");
    assert_eq!(results["CreateTask"]["metadata"], json!({"ticket": 12}));
    assert_eq!(results["CreateTask once"]["id"], "t10");
    let bad_key = "InvalidArgument: the idempotency key must be visible ASCII characters";
    assert_eq!(results["CreateTask bad key"]["error"], bad_key);
    assert_eq!(results["ListMessages"][0]["kind"], "message");
    assert_eq!(results["ListSessionCodeStats"][0]["lines_added_committed"], 1_u64 << 40);
}

#[tokio::test]
async fn requests_hold_what_the_plugin_said_and_nothing_else() {
    let host = MemoryHost::default();
    results(&host).await;
    let object = |key: &str, value: Value| {
        Some(kandev_proto::struct_from_json(serde_json::Map::from_iter([(key.to_owned(), value)])))
    };
    let page = |cursor: &str| Some(v1::Page { limit: 200, cursor: cursor.into() });

    let filter = v1::TaskFilter { states: vec!["TODO".into()], parent_id: Some(String::new()), ..Default::default() };
    assert!(host.saw(&v1::ListTasksRequest { filter: Some(filter.clone()), page: page("") }));
    assert!(host.saw(&v1::ListTasksRequest { filter: Some(filter), page: page("2") }));
    let filter = v1::SessionFilter { task_ids: vec!["t9".into()], ..Default::default() };
    assert!(host.saw(&v1::ListSessionCodeStatsRequest { filter: Some(filter), page: page("2") }));
    let filter = v1::MessageFilter { since: Some("2026-01-01T00:00:00Z".into()), ..Default::default() };
    assert!(host.saw(&v1::ListMessagesRequest { filter: Some(filter), page: page("") }));

    assert!(host.saw(&v1::EmitEventRequest { event_name: "done".into(), payload: object("n", json!(1)) }));
    assert!(host.saw(&v1::EmitEventRequest { event_name: "done".into(), payload: None }));
    assert!(host.saw(&Some("event-7".to_owned())) && host.saw(&None::<String>), "a key when it is asked for");
    let remote = v1::RemoteRepositoryDescriptor { provider_id: "forge".into(), name: "r".into(), ..Default::default() };
    assert!(host.saw(&v1::CreateTaskRequest {
        title: "Fix the door".into(),
        parent_id: Some("t1".into()),
        repositories: vec![v1::PluginTaskRepository { remote: Some(remote), ..Default::default() }],
        launch: Some(v1::PluginTaskLaunchOptions { plan_mode: Some("on".into()), ..Default::default() }),
        metadata: object("ticket", json!(12)),
        ..Default::default()
    }));
    let update = v1::UpdateTaskRequest { id: "t9".into(), state: Some("COMPLETED".into()), ..Default::default() };
    assert!(host.saw(&update));
    let message = v1::SendMessageRequest { task_id: "t9".into(), session_id: String::new(), text: "hi".into() };
    assert!(host.saw(&message));
}
