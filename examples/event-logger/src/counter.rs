//! The plugin itself: every event is logged and counted in the host's state store, the webhook `stats` answers the
//! counts. Calls that are not written here get the SDK's default answers.

use std::collections::BTreeMap;

use kandev_plugin_sdk::{Event, Host, Plugin, Result, WebhookRequest, WebhookResponse};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Where the counts lie: one entry an event type.
const SCOPE: &str = "event-counts";

/// What is stored for an event type.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Count {
    count: u64,
    last_event_id: String,
}

/// Counts events in the host's state store.
pub struct EventCounter;

/// Adds one to the type's count, unless this very event was counted already. Returns the count.
async fn count(host: &Host, event: &Event) -> Result<u64> {
    let state = host.state(SCOPE);
    let mut stored: Count = state.get(&event.kind).await?.unwrap_or_default();
    if stored.last_event_id != event.id {
        stored = Count { count: stored.count + 1, last_event_id: event.id.clone() };
        state.set(&event.kind, &stored).await?;
    }
    Ok(stored.count)
}

impl Plugin for EventCounter {
    async fn on_event(&self, host: &Host, event: Event) -> Result<()> {
        match count(host, &event).await {
            Ok(count) => {
                tracing::info!(event_type = event.kind, event_id = event.id, count, "event");
                Ok(())
            }
            // Not acknowledged: the host delivers it again.
            Err(error) => {
                tracing::warn!(event_type = event.kind, %error, "event not counted");
                Err(error)
            }
        }
    }

    async fn handle_webhook(&self, host: &Host, request: WebhookRequest) -> Result<WebhookResponse> {
        if request.key != "stats" {
            return Ok(WebhookResponse::new(404));
        }
        let entries = host.state(SCOPE).list().await?;
        let counts = entries.into_iter().map(|entry| Ok((entry.key.clone(), entry.parse::<Count>()?.count)));
        let counts = counts.collect::<Result<BTreeMap<String, u64>>>()?;
        WebhookResponse::json(&json!({"total": counts.values().sum::<u64>(), "events": counts}))
    }
}
