//! The plugin itself: every event is logged and counted in the host's state store, the webhook `stats` answers the
//! counts. RPCs that are not written here answer `Unimplemented`.

use std::collections::{BTreeMap, HashMap};

use kandev_proto::{
    json_from_struct, struct_from_json,
    v1::{self, plugin_server::Plugin},
};
use prost_types::Struct;
use serde_json::{Map, Value, json};
use tonic::{Request, Response, Status};

use crate::host::Host;

/// Where the counts lie: one entry an event type, `{"count": 3, "last_event_id": ".."}`.
const SCOPE: &str = "event-counts";

/// Counts events in the host's state store.
pub struct EventCounter {
    host: Host,
}

impl EventCounter {
    pub fn new(host: Host) -> Self {
        EventCounter { host }
    }

    /// Adds one to the type's count, unless this very event was counted already. Returns the count.
    async fn count(&self, event: &v1::Event) -> Result<u64, Status> {
        let mut host = self.host.client().await?;
        let (scope, key) = (SCOPE.to_owned(), event.event_type.clone());
        let read = v1::GetStateRequest { scope: scope.clone(), key: key.clone(), ..Default::default() };
        let stored = stored_object(host.get_state(read).await?.into_inner().value);
        if stored.get("last_event_id").is_some_and(|id| id == &event.event_id) {
            return Ok(stored_count(&stored));
        }
        let count = stored_count(&stored) + 1;
        let value =
            Map::from_iter([("count".to_owned(), json!(count)), ("last_event_id".to_owned(), json!(event.event_id))]);
        let write = v1::SetStateRequest { scope, key, value: Some(struct_from_json(value)), ..Default::default() };
        host.set_state(write).await?;
        Ok(count)
    }

    async fn stats(&self) -> Result<Value, Status> {
        let mut host = self.host.client().await?;
        let list = v1::ListStateRequest { scope: SCOPE.to_owned(), scope_id: String::new() };
        let entries = host.list_state(list).await?.into_inner().entries;
        let counts: BTreeMap<String, u64> =
            entries.into_iter().map(|entry| (entry.key, stored_count(&stored_object(entry.value)))).collect();
        Ok(json!({"total": counts.values().sum::<u64>(), "events": counts}))
    }
}

fn stored_object(value: Option<Struct>) -> Map<String, Value> {
    value.map(json_from_struct).unwrap_or_default()
}

fn stored_count(stored: &Map<String, Value>) -> u64 {
    stored.get("count").and_then(Value::as_u64).unwrap_or(0)
}

/// A line on stderr in the form that go-plugin's hosts read: level, message and fields.
fn log(level: &str, message: &str, mut fields: Value) {
    fields["@level"] = level.into();
    fields["@message"] = message.into();
    eprintln!("{fields}");
}

#[tonic::async_trait]
impl Plugin for EventCounter {
    async fn deliver_event(&self, request: Request<v1::Event>) -> Result<Response<v1::EventAck>, Status> {
        let event = request.into_inner();
        match self.count(&event).await {
            Ok(count) => {
                let fields = json!({"event_type": event.event_type, "event_id": event.event_id, "count": count});
                log("info", "event", fields);
                Ok(Response::new(v1::EventAck {}))
            }
            Err(status) => {
                let fields = json!({"event_type": event.event_type, "error": status.message()});
                log("warn", "event not counted", fields);
                Err(status)
            }
        }
    }

    async fn handle_webhook(
        &self,
        request: Request<v1::WebhookRequest>,
    ) -> Result<Response<v1::WebhookResponse>, Status> {
        if request.get_ref().webhook_key != "stats" {
            return Ok(Response::new(v1::WebhookResponse { status: 404, ..Default::default() }));
        }
        let body = self.stats().await?.to_string().into_bytes().into();
        let headers = HashMap::from([("Content-Type".to_owned(), "application/json".to_owned())]);
        Ok(Response::new(v1::WebhookResponse { status: 200, headers, body }))
    }
}
