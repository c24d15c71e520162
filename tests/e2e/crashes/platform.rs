//! A plugin makes a task: the task and its event are there together or not at all, and the event is published.

use kandev_host::{
    config::{Limits, Timing},
    domain::platform::{
        Scope,
        page::PageRequest,
        task::{Task, TaskFilter},
        workspace::WorkspaceDraft,
    },
    platform::{By, Platform},
    store::{
        db::Db,
        platform::{EventFilter, PlatformStore},
    },
};
use serde_json::{Value, json};

use super::{Archives, ID, Left, Outcome, call, host_calls, install};
use crate::support::{Host, eventually, host::Answer};

/// Looks into the host's database; no host may run.
async fn look<T>(host: &Host, work: impl AsyncFnOnce(&Platform) -> T) -> T {
    let url = format!("sqlite://{}", host.home().join("kandev.db").display());
    let db = Db::connect(&url.into(), &Timing::default(), &Limits::default()).await.expect("the host's database");
    let found = work(&Platform::new(&PlatformStore::new(db.clone()))).await;
    db.close().await.expect("the database is closed");
    found
}

/// One workspace, and no task in it.
pub async fn prepare(host: &mut Host, archives: &Archives) {
    host.kill();
    look(host, async |platform| {
        let (by, page) = (By::operator(), PageRequest::default());
        for task in tasks(platform).await {
            platform.tasks.delete(&by, &task.id, true, None).await.expect("an earlier moment's task");
        }
        if platform.workspaces.list(&Scope::All, &page).await.expect("workspaces").items.is_empty() {
            let draft = WorkspaceDraft { name: Some("one".to_owned()), ..WorkspaceDraft::default() };
            platform.workspaces.create(&by, &draft).await.expect("a workspace");
        }
    })
    .await;
    host.spawn().await;
    install(host, &archives.old).await;
}

async fn tasks(platform: &Platform) -> Vec<Task> {
    platform.tasks.list(&Scope::All, &TaskFilter::default(), &PageRequest::default()).await.expect("tasks").items
}

pub async fn operate(host: &Host) -> Answer {
    let path = format!("/api/plugins/{ID}/webhooks/host");
    host.post(&path, json!({"calls": [call("CreateTask", json!({"title": "x"}))]})).await
}

pub async fn check(host: &mut Host, outcome: &Outcome<'_>) {
    host.status(ID, "active").await;
    if outcome.moment.left == Left::New {
        // The host died before it could publish: the next one does, to the plugin's new process.
        let found = host_calls(host, json!([call("ListTasks", json!({}))])).await;
        let id = &found[0]["tasks"][0]["id"];
        assert!(id.is_string(), "the task was committed: {found:?}");
        eventually("the event that was only committed is delivered", || async { was_told(host, id) }).await;
    }
    host.kill();
    let (tasks, told) = look(host, async |platform| {
        let tasks = tasks(platform).await;
        let filter = EventFilter { subjects: vec!["task.created".to_owned()], ..EventFilter::default() };
        let log = platform.events.list(&Scope::All, &filter, &PageRequest::new(200, "")).await.expect("the log").items;
        let of = |task: &Task| log.iter().filter(|event| event.payload["task_id"] == task.id).count();
        let told: Vec<_> = tasks.iter().map(of).collect();
        (tasks.len(), told)
    })
    .await;
    let lawful: &[usize] = match (&outcome.answered, outcome.moment.left) {
        (Some(answer), _) if answer.body["results"][0]["ok"] == true => &[1],
        (_, Left::New) => &[1],
        _ => &[0, 1],
    };
    assert!(lawful.contains(&tasks), "{tasks} tasks, answered {:?}", outcome.answered);
    assert_eq!(told, vec![1; tasks], "the log has the event of each task, once");
    host.spawn().await;
    host.status(ID, "active").await;
    host.uninstall(ID).await.expect(200);
}

/// Whether the plugin was told that this task was made.
fn was_told(host: &Host, id: &Value) -> bool {
    let events = host.recorded(ID, "events.jsonl");
    events.iter().any(|event| event["event_type"] == "task.created" && event["payload"]["task_id"] == *id)
}
