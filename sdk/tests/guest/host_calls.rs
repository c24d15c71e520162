//! Every Host call once, and what came of it: an object with an entry for each.

use kandev_plugin_sdk::{
    Error, ExposeSecret, Host, LaunchOptions, MessageFilter, NewTask, NewTaskRepository, RemoteRepository, Result,
    SecretString, SessionFilter, TaskFilter, TaskUpdate,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The result of one call as JSON.
fn told(result: Result<impl Serialize>) -> Value {
    match result {
        Ok(value) => json!(value),
        Err(error) => json!({"error": format!("{:?}: {error}", error.code())}),
    }
}

pub async fn all(host: &Host) -> Value {
    let mut results = Map::new();
    own_data(host, &mut results).await;
    reading(host, &mut results).await;
    writing(host, &mut results).await;
    Value::Object(results)
}

async fn own_data(host: &Host, results: &mut Map<String, Value>) {
    let state = host.state("s").of("7");
    let mut put = |name: &str, value| results.insert(name.to_owned(), value);
    put("SetState", told(state.set("k", &json!({"n": 1, "deep": [true, null]})).await));
    put("SetState null", told(state.set("empty", &()).await));
    put("SetState list", told(state.set("k", &[1]).await));
    put("GetState", told(state.get::<Value>("k").await));
    put("GetState null", told(state.get::<Option<bool>>("empty").await));
    put("GetState none", told(state.get::<Value>("other").await));
    let listed = state.list().await;
    put("ListState", told(listed.map(|all| all.into_iter().map(|entry| (entry.key, entry.value)).collect::<Vec<_>>())));
    put("DeleteState", told(state.delete("k").await));
    put("GetState deleted", told(state.get::<Value>("k").await));

    put("SetSecret", told(host.set_secret("token", &SecretString::from("hunter2")).await));
    let shown = |secret: Option<SecretString>| secret.map(|secret| secret.expose_secret().to_owned());
    put("GetSecret", told(host.secret("token").await.map(shown)));
    put("DeleteSecret", told(host.delete_secret("token").await));
    put("GetSecret deleted", told(host.secret("token").await.map(shown)));
    put("RevealSecret", told(host.reveal_secret("vault:1").await.map(|secret| shown(Some(secret)))));

    put("GetConfig", told(host.config().await.and_then(|config| config.get::<u32>("interval_s"))));
    put("EmitEvent", told(host.emit("done", &json!({"n": 1})).await));
    put("EmitEvent null", told(host.emit("done", &()).await));
    put("InvokeUtilityAgent", told(host.ask_agent("say hi").await));
}

async fn reading(host: &Host, results: &mut Map<String, Value>) {
    let mut put = |name: &str, value| results.insert(name.to_owned(), value);
    let filter = TaskFilter { states: vec!["TODO".into()], parent_id: Some(String::new()), ..Default::default() };
    put("ListTasks", told(host.tasks(filter).all().await));
    put("GetTask", told(host.task("t9").await));
    put("GetTask none", told(host.task("none").await));
    put("ListWorkspaces", told(host.workspaces().all().await));
    put("ListWorkflows", told(host.workflows("w1").all().await));
    put("ListWorkflowSteps", told(host.workflow_steps("f1").await));
    put("ListAgentProfiles", told(host.agent_profiles().all().await));
    put("ListExecutorProfiles", told(host.executor_profiles().all().await));
    put("ListRepositories", told(host.repositories("w1").all().await));
    let filter = SessionFilter { task_ids: vec!["t9".into()], ..Default::default() };
    put("ListSessions", told(host.sessions(filter.clone()).all().await));
    put("ListSessionCodeStats", told(host.session_code_stats(filter).all().await));
    let filter = MessageFilter { since: Some("2026-01-01T00:00:00Z".into()), ..Default::default() };
    put("ListMessages", told(host.messages(filter).all().await));
}

async fn writing(host: &Host, results: &mut Map<String, Value>) {
    let mut put = |name: &str, value| results.insert(name.to_owned(), value);
    let remote = RemoteRepository { provider_id: "forge".into(), name: "r".into(), ..Default::default() };
    let task = NewTask {
        title: "Fix the door".into(),
        parent_id: Some("t1".into()),
        repositories: vec![NewTaskRepository { remote: Some(remote), ..Default::default() }],
        launch: Some(LaunchOptions { plan_mode: Some("on".into()), ..Default::default() }),
        metadata: [("ticket".to_owned(), json!(12))].into_iter().collect(),
        ..Default::default()
    };
    put("CreateTask", told(host.create_task(task).await));
    let again = NewTask { title: "Look at it".into(), ..Default::default() };
    put("CreateTask once", told(host.create_task_once("event-7", again.clone()).await));
    put("CreateTask bad key", told(host.create_task_once("event\n7", again).await));
    let update = TaskUpdate { id: "t9".into(), state: Some("COMPLETED".into()), ..Default::default() };
    put("UpdateTask", told(host.update_task(update).await));
    put("SendMessage", told(host.send_message("t9", None, "hi").await));
    put("PreviewPluginOwnedTaskTree", told(host.preview_task_tree("t9").await));
    put("DeletePluginOwnedTaskTree", told(host.delete_task_tree("t9").await.map_err(Error::from)));
}
