//! The plugin itself. Events are kept in the state, the webhook `run` makes each Host call once, `seen` answers what
//! was kept.

use kandev_plugin_sdk::{Event, Host, Plugin, Result, WebhookRequest, WebhookResponse};
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
    Ok(json!({"before": before, "stored": stored, "keys": keys, "after": after}))
}

/// What was kept.
async fn seen(host: &Host) -> Result<Value> {
    let life = host.state("life").get::<Life>("life").await?.unwrap_or_default();
    let entries = host.state("seen").list().await?.into_iter();
    let events = entries.map(|entry| Ok((entry.key.clone(), json!(entry.parse::<Seen>()?)))).collect::<Result<_>>()?;
    Ok(json!({"life": life, "events": Value::Object(events)}))
}
