//! REST for the platform, below `/api/v1` (contract/platform-rest.md §3–8): one file a resource, each with its routes,
//! the shapes of its bodies and its handlers. No rule is here: the services have them.
//!
//! `change` reads what comes with a change; `parts` are the lists.

mod agents;
mod code;
mod events;
mod executors;
mod messages;
mod office;
mod parts;
mod repositories;
mod sessions;
mod snapshots;
mod steps;
mod task_bodies;
mod tasks;
mod workflows;
mod workspaces;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{ApiError, endpoint::Endpoint};
use crate::domain::platform::{Map, refusal::Refusal, workspace::given};

/// The routes, in the order in which paths are tried: what is asked for most comes first.
pub(super) static ROUTES: &[&[Endpoint]] = &[
    tasks::ROUTES,
    messages::ROUTES,
    sessions::ROUTES,
    code::ROUTES,
    workspaces::ROUTES,
    workflows::ROUTES,
    steps::ROUTES,
    snapshots::ROUTES,
    repositories::ROUTES,
    agents::ROUTES,
    executors::ROUTES,
    events::ROUTES,
    office::ROUTES,
];

/// A change that needs no words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
struct Done {
    success: bool,
}

const DONE: Done = Done { success: true };

/// An object that is there only when something is in it.
fn filled(map: &Map) -> Option<Map> {
    (!map.is_empty()).then(|| map.clone())
}

/// The fields that a body names; `null` counts as left out.
fn patch_of(body: &impl Serialize) -> Result<Map, ApiError> {
    match serde_json::to_value(body).map_err(ApiError::internal)? {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            Ok(fields)
        }
        _ => Ok(Map::new()),
    }
}

/// Refuses a field of the contract that this host does not keep yet, unless it is as good as left out: what somebody
/// says must not be lost silently.
fn unsupported(field: &'static str, value: Option<&Value>) -> Result<(), Refusal> {
    let empty = match value {
        None | Some(Value::Null | Value::Bool(false)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Bool(true) | Value::Number(_)) => false,
    };
    let problem = || "is not kept by this host; leave it out or empty".to_owned();
    if empty { Ok(()) } else { Err(Refusal::Invalid { field, problem: problem() }) }
}
