//! What clients may ask over `/ws` (platform-rest.md §12). What REST has too is asked there, inside of the host, so that
//! both say the same; this is the table of which request is which.

use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::{
    frame::{Code, Request},
    interest::Topic,
};

/// What a request comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Whether the host lives.
    Health,
    /// To be told of this too.
    Follow(Topic, String),
    /// Not to be told of it any more.
    Leave(Topic, String),
    /// To be told of what is the user's own, or not: it always is.
    Own,
    /// A request of REST.
    Rest(Call),
}

/// A request of REST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its method.
    pub method: &'static str,
    /// Path and query.
    pub target: String,
    /// Its body of JSON; empty for none.
    pub body: String,
    /// Makes a change happen once; given by the request's metadata, or by a message's `client_message_id`.
    pub once: Option<String>,
}

/// Why a request is refused before it is asked anywhere.
pub type Refused = (Code, String);

/// An action that is a request of REST.
struct Row {
    action: &'static str,
    method: &'static str,
    /// Paths with keys of the payload in braces; the first whose keys are all there is taken.
    paths: &'static [&'static str],
    /// Keys of the payload that REST does not take.
    without: &'static [&'static str],
    /// Said to REST, whatever the payload says: JSON.
    says: Option<(&'static str, &'static str)>,
}

const fn row(action: &'static str, method: &'static str, paths: &'static [&'static str]) -> Row {
    Row { action, method, paths, without: &[], says: None }
}

const WORKFLOW: &[&str] = &["/api/v1/workflows/{id}"];
const STEP: &[&str] = &["/api/v1/workflow/steps/{id}"];
const TASK: &[&str] = &["/api/v1/tasks/{id}"];
const WORKSPACE: &[&str] = &["/api/v1/workspaces/{id}"];
const REPOSITORIES: &[&str] = &["/api/v1/workspaces/{workspace_id}/repositories"];
const REPOSITORY: &[&str] = &["/api/v1/repositories/{id}"];
const EXECUTOR: &[&str] = &["/api/v1/executors/{id}"];
const EXECUTOR_PROFILES: &[&str] = &["/api/v1/executors/{executor_id}/profiles"];
const EXECUTOR_PROFILE: &[&str] = &["/api/v1/executors/{executor_id}/profiles/{id}"];
const SECRETS: &[&str] = &["/api/v1/secrets"];
const SECRET: &[&str] = &["/api/v1/secrets/{id}"];
const SESSION: &[&str] = &["/api/v1/task-sessions/{session_id}"];
const MESSAGES: &[&str] = &["/api/v1/task-sessions/{session_id}/messages"];

static ROWS: &[Row] = &[
    row("workspace.list", "GET", &["/api/v1/workspaces"]),
    row("workspace.create", "POST", &["/api/v1/workspaces"]),
    row("workspace.get", "GET", WORKSPACE),
    row("workspace.update", "PATCH", WORKSPACE),
    row("workspace.delete", "DELETE", WORKSPACE),
    row("workflow.list", "GET", &["/api/v1/workspaces/{workspace_id}/workflows", "/api/v1/workflows"]),
    row("workflow.create", "POST", &["/api/v1/workflows"]),
    row("workflow.get", "GET", WORKFLOW),
    row("workflow.update", "PATCH", WORKFLOW),
    row("workflow.delete", "DELETE", WORKFLOW),
    row("workflow.reorder", "PUT", &["/api/v1/workspaces/{workspace_id}/workflows/reorder"]),
    row("workflow.step.list", "GET", &["/api/v1/workflows/{workflow_id}/workflow/steps"]),
    row("workflow.step.get", "GET", STEP),
    row("workflow.step.create", "POST", &["/api/v1/workflow/steps"]),
    row("task.list", "GET", &["/api/v1/workflows/{workflow_id}/tasks", "/api/v1/workspaces/{workspace_id}/tasks"]),
    row("task.create", "POST", &["/api/v1/tasks"]),
    row("task.get", "GET", TASK),
    row("task.update", "PATCH", TASK),
    row("task.delete", "DELETE", TASK),
    row("task.move", "POST", &["/api/v1/tasks/{id}/move"]),
    row("task.state", "PATCH", TASK),
    row("task.archive", "POST", &["/api/v1/tasks/{id}/archive"]),
    row("task.session.list", "GET", &["/api/v1/tasks/{task_id}/sessions"]),
    row("session.ensure", "POST", &["/api/v1/tasks/{task_id}/sessions/ensure"]),
    Row { without: &["task_id"], ..row("session.delete", "DELETE", SESSION) },
    Row { without: &["task_id"], ..row("session.rename", "PATCH", SESSION) },
    Row { without: &["task_id"], says: Some(("is_primary", "true")), ..row("session.set_primary", "PATCH", SESSION) },
    Row { without: &["task_id"], ..row("message.list", "GET", MESSAGES) },
    Row { without: &["task_id", CLIENT_MESSAGE_ID], ..row("message.add", "POST", MESSAGES) },
    row("repository.list", "GET", REPOSITORIES),
    row("repository.create", "POST", REPOSITORIES),
    row("repository.get", "GET", REPOSITORY),
    row("repository.update", "PATCH", REPOSITORY),
    row("repository.delete", "DELETE", REPOSITORY),
    row("executor.list", "GET", &["/api/v1/executors"]),
    row("executor.create", "POST", &["/api/v1/executors"]),
    row("executor.get", "GET", EXECUTOR),
    row("executor.update", "PATCH", EXECUTOR),
    row("executor.delete", "DELETE", EXECUTOR),
    row("executor.profile.list", "GET", EXECUTOR_PROFILES),
    row("executor.profile.create", "POST", EXECUTOR_PROFILES),
    row("executor.profile.get", "GET", EXECUTOR_PROFILE),
    row("executor.profile.update", "PATCH", EXECUTOR_PROFILE),
    row("executor.profile.delete", "DELETE", EXECUTOR_PROFILE),
    row("secrets.list", "GET", SECRETS),
    row("secrets.create", "POST", SECRETS),
    row("secrets.get", "GET", SECRET),
    row("secrets.update", "PUT", SECRET),
    row("secrets.delete", "DELETE", SECRET),
];

/// A client's own name of a message: sent twice, it is one message.
const CLIENT_MESSAGE_ID: &str = "client_message_id";

/// Methods and paths of all rows, for whoever compares them with the routes.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().flat_map(|row| row.paths.iter().map(|path| (row.method, *path)))
}

/// What a request comes down to.
///
/// # Errors
/// When nobody knows its action, or a key is missing.
pub fn asked(request: &Request) -> Result<Asked, Refused> {
    let topic = |topic: Topic| id_of(&request.payload, topic.key()).map(|id| (topic, id.to_owned()));
    let follow = |of: Topic| topic(of).map(|(topic, id)| Asked::Follow(topic, id));
    let leave = |of: Topic| topic(of).map(|(topic, id)| Asked::Leave(topic, id));
    match request.action.as_str() {
        "health.check" => Ok(Asked::Health),
        "user.subscribe" | "user.unsubscribe" => Ok(Asked::Own),
        "task.subscribe" => follow(Topic::Task),
        "task.unsubscribe" => leave(Topic::Task),
        "session.subscribe" | "session.focus" => follow(Topic::Session),
        "session.unsubscribe" => leave(Topic::Session),
        // Looking away is not leaving.
        "session.unfocus" => id_of(&request.payload, Topic::Session.key()).map(|_| Asked::Own),
        "run.subscribe" => follow(Topic::Run),
        "run.unsubscribe" => leave(Topic::Run),
        action => match ROWS.iter().find(|row| row.action == action) {
            Some(row) => row.call(request).map(Asked::Rest),
            None => Err((Code::UnknownAction, "unknown action".to_owned())),
        },
    }
}

fn id_of<'a>(payload: &'a Map<String, Value>, key: &str) -> Result<&'a str, Refused> {
    match payload.get(key).and_then(Value::as_str) {
        Some(id) if !id.is_empty() => Ok(id),
        _ => Err((Code::ValidationError, format!("payload.{key} is required, as a text"))),
    }
}

impl Row {
    fn call(&self, request: &Request) -> Result<Call, Refused> {
        let mut payload = request.payload.clone();
        let fits = |path: &&str| keys(path).all(|key| id_of(&request.payload, key).is_ok());
        let path = self.paths.iter().copied().find(fits).or(self.paths.last().copied()).unwrap_or_default();
        let mut target = path.to_owned();
        for key in keys(path) {
            let id: String = byte_serialize(id_of(&payload, key)?.as_bytes()).collect();
            target = target.replace(&format!("{{{key}}}"), &id);
            payload.remove(key);
        }
        let once = request.metadata.idempotency_key.clone().or_else(|| self.own_key(request));
        payload.retain(|key, _| !self.without.contains(&key.as_str()));
        if let Some((key, value)) = self.says {
            payload.insert(key.to_owned(), serde_json::from_str(value).unwrap_or_default());
        }
        if self.method != "GET" {
            return Ok(Call { method: self.method, target, body: Value::Object(payload).to_string(), once });
        }
        let query = query(&payload)?;
        let target = if query.is_empty() { target } else { format!("{target}?{query}") };
        Ok(Call { method: self.method, target, body: String::new(), once: None })
    }

    /// A client's names are its session's.
    fn own_key(&self, request: &Request) -> Option<String> {
        let text = |key: &str| request.payload.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let own = self.without.contains(&CLIENT_MESSAGE_ID).then(|| text(CLIENT_MESSAGE_ID)).flatten()?;
        Some(byte_serialize(format!("{}/{own}", text("session_id")?).as_bytes()).collect())
    }
}

/// The keys in a path's braces.
fn keys(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(key, _)| key))
}

fn query(payload: &Map<String, Value>) -> Result<String, Refused> {
    let mut query = Serializer::new(String::new());
    for (key, value) in payload {
        match value {
            Value::Null => {}
            Value::String(text) => {
                query.append_pair(key, text);
            }
            Value::Number(_) | Value::Bool(_) => {
                query.append_pair(key, &value.to_string());
            }
            _ => return Err((Code::ValidationError, format!("payload.{key} must be a text, a number or a boolean"))),
        }
    }
    Ok(query.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::gateway::frame::Metadata;

    fn request(action: &str, payload: Value) -> Request {
        let payload = payload.as_object().unwrap().clone();
        Request { id: None, action: action.to_owned(), payload, metadata: Metadata::default() }
    }

    fn rest(action: &str, payload: Value) -> (&'static str, String, String) {
        match asked(&request(action, payload)).unwrap() {
            Asked::Rest(call) => (call.method, call.target, call.body),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_of_the_path_go_into_it_and_the_rest_is_query_or_body() {
        assert_eq!(
            rest(
                "message.list",
                json!({"session_id": "s", "task_id": "t", "limit": 5, "sort": "desc", "before": null})
            ),
            ("GET", "/api/v1/task-sessions/s/messages?limit=5&sort=desc".to_owned(), String::new())
        );
        assert_eq!(
            rest("task.state", json!({"id": "t/1", "state": "TODO"})),
            ("PATCH", "/api/v1/tasks/t%2F1".to_owned(), r#"{"state":"TODO"}"#.to_owned())
        );
        assert_eq!(
            rest("session.set_primary", json!({"task_id": "t", "session_id": "s"})),
            ("PATCH", "/api/v1/task-sessions/s".to_owned(), r#"{"is_primary":true}"#.to_owned())
        );
    }

    #[test]
    fn the_narrowest_list_whose_keys_are_there_is_taken() {
        assert_eq!(rest("task.list", json!({"workflow_id": "f"})).1, "/api/v1/workflows/f/tasks");
        assert_eq!(rest("task.list", json!({"workspace_id": "w"})).1, "/api/v1/workspaces/w/tasks");
        assert_eq!(rest("workflow.list", json!({})).1, "/api/v1/workflows");
        let missing = asked(&request("task.list", json!({})));
        let text = "payload.workspace_id is required, as a text".to_owned();
        assert_eq!(missing, Err((Code::ValidationError, text)));
    }

    #[test]
    fn a_message_sent_again_is_the_same_message() {
        let payload = json!({"session_id": "s", "task_id": "t", "content": "x", "client_message_id": "c1"});
        let Ok(Asked::Rest(call)) = asked(&request("message.add", payload)) else { panic!("a call") };
        assert_eq!((call.once.as_deref(), call.body.as_str()), (Some("s%2Fc1"), r#"{"content":"x"}"#));
    }

    #[test]
    fn following_needs_the_id_of_what_is_followed() {
        assert_eq!(
            asked(&request("task.subscribe", json!({"task_id": "t"}))),
            Ok(Asked::Follow(Topic::Task, "t".to_owned()))
        );
        assert_eq!(
            asked(&request("session.unsubscribe", json!({"session_id": "s"}))),
            Ok(Asked::Leave(Topic::Session, "s".to_owned()))
        );
        assert_eq!(asked(&request("user.subscribe", json!({}))), Ok(Asked::Own));
        let refused = asked(&request("task.subscribe", json!({"task_id": 7}))).unwrap_err();
        assert_eq!(refused, (Code::ValidationError, "payload.task_id is required, as a text".to_owned()));
    }

    #[test]
    fn what_nobody_knows_is_said_to_be_unknown() {
        let refused = asked(&request("task.explode", json!({}))).unwrap_err();
        assert_eq!(refused, (Code::UnknownAction, "unknown action".to_owned()));
    }
}
