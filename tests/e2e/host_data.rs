//! The platform's data as a plugin has it through the Host service: walked while it grows, written and told
//! (contract/host-data.md).

use std::collections::BTreeSet;

use kandev_host::{
    config::{Limits, Timing},
    domain::platform::{task::NewTask, workspace::WorkspaceDraft},
    platform::{By, Platform},
    store::{db::Db, platform::PlatformStore},
};
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Guest, Host, Package, eventually},
};

/// A walk's page: no divisor of the number of rows.
const PAGE: usize = 7;

const OLD: usize = 60;

fn call(rpc: &str, request: Value) -> Value {
    json!({"rpc": rpc, "request": request})
}

async fn one(host: &Host, rpc: &str, request: Value) -> Value {
    let result = host.host_calls("demo", json!([call(rpc, request)])).await.remove(0);
    assert_eq!(result["ok"], true, "{rpc}: {result}");
    result["response"].clone()
}

/// A host with a workspace and tasks in it, and the plugin that may read and write tasks. The tasks' ids.
async fn started(guest: Guest, tasks: usize) -> (Host, BTreeSet<String>) {
    let mut host = Host::start().await;
    assert_eq!(host.stop().await, Some(0));
    let url = format!("sqlite://{}", host.home().join("kandev.db").display());
    let db = Db::connect(&url.into(), &Timing::default(), &Limits::default()).await.expect("the host's database");
    let (platform, by) = (Platform::new(&PlatformStore::new(db.clone())), By::operator());
    let draft = WorkspaceDraft { name: Some("one".to_owned()), ..WorkspaceDraft::default() };
    platform.workspaces.create(&by, &draft).await.expect("a workspace");
    let mut ids = BTreeSet::new();
    for n in 0..tasks {
        let new = NewTask { title: format!("old {n}"), ..NewTask::default() };
        ids.insert(platform.tasks.create(&by, &new).await.expect("a task").task.id);
    }
    db.close().await.expect("the database is closed");
    host.spawn().await;
    let rights = "capabilities:\n  api_read: [tasks, workspaces]\n  api_write: [tasks]";
    host.install(&Package::of(guest, "demo", "1.0.0").manifest(|text| text.replace("capabilities:", rights))).await;
    (host, ids)
}

/// Ids of all tasks, as the plugin finds them page by page.
async fn walk(host: &Host) -> Vec<String> {
    let (mut walked, mut cursor) = (Vec::new(), String::new());
    loop {
        let answer = one(host, "ListTasks", json!({"page": {"limit": PAGE, "cursor": cursor}})).await;
        let tasks = answer["tasks"].as_array().expect("tasks");
        walked.extend(tasks.iter().map(|task| task["id"].as_str().expect("an id").to_owned()));
        let info = &answer["page_info"];
        info["next_cursor"].as_str().expect("a cursor").clone_into(&mut cursor);
        assert_eq!(info["has_more"], json!(!cursor.is_empty()));
        if cursor.is_empty() {
            return walked;
        }
        assert_eq!(tasks.len(), PAGE);
    }
}

on_both!(a_walk_sees_each_old_task_once_while_others_are_made, |guest| {
    let (host, old) = started(guest, OLD).await;
    let make = async {
        let mut made = 0;
        // As many as the walk has pages, and more than a page of them.
        for batch in 0..OLD / PAGE {
            let calls: Vec<_> =
                (0..5).map(|n| call("CreateTask", json!({"title": format!("new {batch}.{n}")}))).collect();
            let results = host.host_calls("demo", json!(calls)).await;
            made += results.iter().filter(|result| result["ok"] == true).count();
        }
        made
    };
    let (walked, made) = tokio::join!(walk(&host), make);
    assert_eq!(made, OLD / PAGE * 5);
    let seen: BTreeSet<_> = walked.iter().cloned().collect();
    assert_eq!(seen.len(), walked.len(), "none twice");
    assert_eq!(old.difference(&seen).count(), 0, "each old one");
    assert_eq!(walk(&host).await.len(), OLD + made);
});

on_both!(what_a_plugin_writes_is_its_own_is_told_to_it_and_can_be_deleted_by_it, |guest| {
    let (host, _) = started(guest, 0).await;
    let request = json!({"title": "x", "start_agent": true, "metadata": {"n": 1}});
    let task = one(&host, "CreateTask", request).await["task"].clone();
    assert_eq!(task["metadata"], json!({"source": "plugin:demo", "plugin:demo": {"n": 1}}));
    eventually("the log says so", || async { host.log().contains("no agent runtime is connected") }).await;
    let id = task["id"].as_str().expect("an id");
    let changed = one(&host, "UpdateTask", json!({"id": id, "state": "COMPLETED"})).await["task"].clone();
    assert_eq!((&changed["state"], &changed["title"]), (&json!("COMPLETED"), &json!("x")));
    assert_eq!(one(&host, "GetTask", json!({"id": id})).await["task"], changed);
    let doomed = one(&host, "PreviewPluginOwnedTaskTree", json!({"root_task_id": id})).await;
    assert_eq!(doomed["tasks"], json!([changed]));
    let deleted = one(&host, "DeletePluginOwnedTaskTree", json!({"root_task_id": id})).await;
    assert_eq!(deleted["deleted_task_ids"], json!([id]));
    let told = host.events("demo", 4).await;
    let told: Vec<_> =
        told.iter().map(|event| (event["event_type"].clone(), event["payload"]["task_id"].clone())).collect();
    let subjects = ["task.created", "task.state_changed", "task.updated", "task.deleted"];
    assert_eq!(told, subjects.map(|subject| (json!(subject), json!(id))));
});
