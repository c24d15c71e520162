//! GetState, SetState, DeleteState, ListState (host-data.md §7).

use kandev_proto::{
    json_from_struct, struct_from_json,
    v1::{
        DeleteStateRequest, DeleteStateResponse, GetStateRequest, GetStateResponse, ListStateRequest,
        ListStateResponse, SetStateRequest, SetStateResponse, StateEntry,
    },
};
use prost_types::Struct;
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tonic::Status;

use super::status;
use crate::{
    domain::id::PluginId,
    store::plugin_state::{Scope, StateStore},
};

pub async fn get(store: &StateStore, plugin: &PluginId, request: GetStateRequest) -> Result<GetStateResponse, Status> {
    let scope = Scope { name: request.scope, id: request.scope_id };
    let found = store.get(plugin, &scope, &request.key).await.map_err(status::of_state)?;
    Ok(GetStateResponse { found: found.is_some(), value: found.and_then(to_struct) })
}

pub async fn set(store: &StateStore, plugin: &PluginId, request: SetStateRequest) -> Result<SetStateResponse, Status> {
    let scope = Scope { name: request.scope, id: request.scope_id };
    let value = request.value.map_or(Value::Null, |value| Value::Object(json_from_struct(value)));
    store.set(plugin, &scope, &request.key, &value, OffsetDateTime::now_utc()).await.map_err(status::of_state)?;
    Ok(SetStateResponse {})
}

pub async fn delete(
    store: &StateStore,
    plugin: &PluginId,
    request: DeleteStateRequest,
) -> Result<DeleteStateResponse, Status> {
    let scope = Scope { name: request.scope, id: request.scope_id };
    store.delete(plugin, &scope, &request.key).await.map_err(status::of_state)?;
    Ok(DeleteStateResponse {})
}

pub async fn list(
    store: &StateStore,
    plugin: &PluginId,
    request: ListStateRequest,
) -> Result<ListStateResponse, Status> {
    let scope = Scope { name: request.scope, id: request.scope_id };
    let entries = store.list(plugin, &scope).await.map_err(status::of_state)?;
    let entries = entries.into_iter().map(|entry| StateEntry {
        key: entry.key,
        value: to_struct(entry.value),
        // Fails for years beyond 9999 only, which no clock of the host gives.
        updated_at: entry.updated_at.format(&Rfc3339).unwrap_or_default(),
    });
    Ok(ListStateResponse { entries: entries.collect() })
}

/// Only objects are stored; null, an entry without a value, reads as absent (wire.md §3.1).
fn to_struct(value: Value) -> Option<Struct> {
    match value {
        Value::Object(object) => Some(struct_from_json(object)),
        _ => None,
    }
}
