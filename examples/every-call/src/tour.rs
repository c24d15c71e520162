//! The plugin itself. Events are kept in the state, the webhook `run` makes each Host call once, `seen` answers what
//! was kept.

use kandev_plugin_sdk::{
    Event, Host, MessageFilter, NewTask, Plugin, Result, SessionFilter, TaskFilter, TaskUpdate, WebhookRequest,
    WebhookResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An event as it is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    id: String,
    at: String,
    payload: Value,
}

/// What the state holds of starts and stops.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Life {
    starts: u64,
    clean_stops: u64,
}

/// Makes and answers every call.
pub struct Tour;

impl Plugin for Tour {
    async fn on_start(&self, host: &Host) -> Result<()> {
        let state = host.state("life");
        let mut life: Life = state.get("life").await?.unwrap_or_default();
        life.starts += 1;
        state.set("life", &life).await
    }

    async fn on_stop(&self, host: &Host) -> Result<()> {
        let state = host.state("life");
        let mut life: Life = state.get("life").await?.unwrap_or_default();
        life.clean_stops += 1;
        state.set("life", &life).await
    }

    /// The last event of each type, also the one that [`run`] publishes.
    async fn on_event(&self, host: &Host, event: Event) -> Result<()> {
        tracing::info!(event_type = event.kind, event_id = event.id, "event");
        let seen = Seen { id: event.id, at: event.occurred_at, payload: event.payload };
        host.state("seen").set(&event.kind, &seen).await
    }

    async fn handle_webhook(&self, host: &Host, request: WebhookRequest) -> Result<WebhookResponse> {
        match request.key.as_str() {
            "run" => WebhookResponse::json(&run(host, request.query_value("note")).await?),
            "seen" => WebhookResponse::json(&seen(host).await?),
            _ => Ok(WebhookResponse::new(404)),
        }
    }
}

/// Each Host call once, and what it answered.
async fn run(host: &Host, note: Option<String>) -> Result<Value> {
    let config = host.config().await?;
    let greeting = config.get::<String>("greeting")?.unwrap_or_else(|| "hello".to_owned());

    let state = host.state("run").of("demo");
    let before = state.get::<Value>("note").await?;
    state.set("note", &json!({"text": note, "greeting": greeting})).await?;
    let stored = state.get::<Value>("note").await?;
    let keys: Vec<String> = state.list().await?.into_iter().map(|entry| entry.key).collect();
    state.delete("note").await?;
    let after = state.get::<Value>("note").await?;

    host.emit("ran", &json!({"greeting": greeting})).await?;
    let platform = platform(host).await?;
    Ok(json!({"before": before, "stored": stored, "keys": keys, "after": after, "platform": platform}))
}

/// How much there is of everything; and with a single workspace, a task from its making to its end.
async fn platform(host: &Host) -> Result<Value> {
    let workspaces = host.workspaces().all().await?;
    let workflows = host.workflows("").all().await?;
    let (mut steps, mut repositories) = (0, 0);
    for workflow in &workflows {
        steps += host.workflow_steps(&workflow.id).await?.len();
    }
    for workspace in &workspaces {
        repositories += host.repositories(&workspace.id).all().await?.len();
    }
    let task = if workspaces.len() == 1 { Some(own_task(host).await?) } else { None };
    Ok(json!({
        "workspaces": workspaces.len(),
        "workflows": workflows.len(),
        "steps": steps,
        "repositories": repositories,
        "agent_profiles": host.agent_profiles().all().await?.len(),
        "executor_profiles": host.executor_profiles().all().await?.len(),
        "tasks": host.tasks(TaskFilter::default()).all().await?.len(),
        "sessions": host.sessions(SessionFilter::default()).all().await?.len(),
        "sessions_with_statistics": host.session_code_stats(SessionFilter::default()).all().await?.len(),
        "messages": host.messages(MessageFilter::default()).all().await?.len(),
        "task": task,
    }))
}

/// Made, changed, read and deleted again.
async fn own_task(host: &Host) -> Result<Value> {
    let made = host.create_task(NewTask { title: "A task of every-call".to_owned(), ..NewTask::default() }).await?;
    let done = TaskUpdate { id: made.id.clone(), state: Some("COMPLETED".to_owned()), ..TaskUpdate::default() };
    host.update_task(done).await?;
    let state = host.task(&made.id).await?.state;
    let previewed = host.preview_task_tree(&made.id).await?.len();
    let deleted = host.delete_task_tree(&made.id).await?.len();
    Ok(json!({"state": state, "previewed": previewed, "deleted": deleted}))
}

/// What was kept.
async fn seen(host: &Host) -> Result<Value> {
    let life = host.state("life").get::<Life>("life").await?.unwrap_or_default();
    let entries = host.state("seen").list().await?.into_iter();
    let events = entries.map(|entry| Ok((entry.key.clone(), json!(entry.parse::<Seen>()?)))).collect::<Result<_>>()?;
    Ok(json!({"life": life, "events": Value::Object(events)}))
}
