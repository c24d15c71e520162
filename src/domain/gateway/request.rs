//! What clients may ask over `/ws` (platform-rest.md §12). What REST has too is asked there, inside of the host, so
//! that both say the same; this is the table of which request is which.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use url::form_urlencoded::{Serializer, byte_serialize};

use super::{
    frame::{Code, Request},
    interest::Topic,
};
use crate::domain::package::hex;

/// What a request comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Whether the host lives.
    Health,
    /// To be told of this too.
    Follow(Topic, String),
    /// Not to be told of it any more.
    Leave(Topic, String),
    /// Something that is so already.
    AsItIs,
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
    /// Makes a change happen once; given by the request's metadata, or by a client's own name of a message.
    pub once: Option<String>,
}

/// Why a request is refused before it is asked anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What kind of refusal it is.
    pub code: Code,
    /// What is wrong, and what would be right.
    pub text: String,
    /// More exactly, for programs: stable, as the codes of REST are.
    pub detail: Option<&'static str>,
}

impl Refused {
    fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), detail: None }
    }
}

/// What an action needs that this host does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Somebody who runs agents.
    AgentRuntime,
    /// Accounts with settings of their own.
    Accounts,
}

impl Lack {
    fn refused(self) -> Refused {
        let (text, detail) = match self {
            Self::AgentRuntime => {
                ("no agent runtime is connected: this host starts, stops and asks no agents", "no_agent_runtime")
            }
            Self::Accounts => (
                "this host has no accounts yet: app-state says who is logged in, and nobody has settings",
                "no_accounts",
            ),
        };
        Refused { detail: Some(detail), ..Refused::new(Code::Conflict, text) }
    }
}

/// Actions of the contract that wait for what this host lacks.
static LACKING: &[(&str, Lack)] = &[
    ("session.launch", Lack::AgentRuntime),
    ("session.stop", Lack::AgentRuntime),
    ("agent.cancel", Lack::AgentRuntime),
    ("permission.respond", Lack::AgentRuntime),
    ("message.queue.add", Lack::AgentRuntime),
    ("message.queue.get", Lack::AgentRuntime),
    ("message.queue.update", Lack::AgentRuntime),
    ("message.queue.append", Lack::AgentRuntime),
    ("user.get", Lack::Accounts),
    ("user.settings.update", Lack::Accounts),
];

/// An action that is a request of REST.
struct Row {
    action: &'static str,
    method: &'static str,
    /// Paths with keys of the payload in braces; the first whose keys are all there is taken.
    paths: &'static [&'static str],
    /// Keys of the payload that REST does not take.
    without: &'static [&'static str],
    /// Keys of the payload that are REST's query, though the rest is its body.
    in_query: &'static [&'static str],
    /// Keys of the payload that REST keeps in `metadata`, unless they say nothing.
    kept_in_metadata: &'static [&'static str],
    /// Said to REST, whatever the payload says: JSON.
    says: Option<(&'static str, &'static str)>,
}

const fn row(action: &'static str, method: &'static str, paths: &'static [&'static str]) -> Row {
    Row { action, method, paths, without: &[], in_query: &[], kept_in_metadata: &[], says: None }
}

const WORKFLOW: &[&str] = &["/api/v1/workflows/{id}"];
const STEP: &[&str] = &["/api/v1/workflow/steps/{id}"];
const TASK: &[&str] = &["/api/v1/tasks/{id}"];
const WORKSPACE: &[&str] = &["/api/v1/workspaces/{id}"];
const REPOSITORIES: &[&str] = &["/api/v1/workspaces/{workspace_id}/repositories"];
const REPOSITORY: &[&str] = &["/api/v1/repositories/{id}"];
const EXECUTOR: &[&str] = &["/api/v1/executors/{id}"];
const EXECUTOR_PROFILES: &[&str] = &["/api/v1/executors/{executor_id}/profiles"];
const ALL_EXECUTOR_PROFILES: &[&str] = &[EXECUTOR_PROFILES[0], "/api/v1/executor-profiles"];
const EXECUTOR_PROFILE: &[&str] = &["/api/v1/executors/{executor_id}/profiles/{id}"];
const SECRETS: &[&str] = &["/api/v1/secrets"];
const SECRET: &[&str] = &["/api/v1/secrets/{id}"];
const SESSION: &[&str] = &["/api/v1/task-sessions/{session_id}"];
const MESSAGES: &[&str] = &["/api/v1/task-sessions/{session_id}/messages"];
const MESSAGE_SEARCH: &[&str] = &["/api/v1/task-sessions/{session_id}/messages/search"];

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
    // A workspace's list takes a workflow too.
    row("task.list", "GET", &["/api/v1/workspaces/{workspace_id}/tasks", "/api/v1/workflows/{workflow_id}/tasks"]),
    row("task.create", "POST", &["/api/v1/tasks"]),
    row("task.get", "GET", TASK),
    row("task.update", "PATCH", TASK),
    Row { in_query: &["cascade"], ..row("task.delete", "DELETE", TASK) },
    row("task.move", "POST", &["/api/v1/tasks/{id}/move"]),
    row("task.state", "PATCH", TASK),
    row("task.archive", "POST", &["/api/v1/tasks/{id}/archive"]),
    row("task.session.list", "GET", &["/api/v1/tasks/{task_id}/sessions"]),
    Row { without: &["session_id"], ..row("session.ensure", "POST", &["/api/v1/tasks/{task_id}/sessions/ensure"]) },
    Row { without: &["task_id"], ..row("session.delete", "DELETE", SESSION) },
    Row { without: &["task_id"], ..row("session.rename", "PATCH", SESSION) },
    Row { without: &["task_id"], says: Some(("is_primary", "true")), ..row("session.set_primary", "PATCH", SESSION) },
    Row { without: &["task_id"], ..row("message.list", "GET", MESSAGES) },
    Row { without: &["task_id"], ..row("message.search", "GET", MESSAGE_SEARCH) },
    Row {
        without: &["task_id", MESSAGE_NAMES[0], MESSAGE_NAMES[1]],
        kept_in_metadata: &[
            "model",
            "plan_mode",
            "has_review_comments",
            "attachments",
            "context_files",
            "entity_references",
        ],
        ..row("message.add", "POST", MESSAGES)
    },
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
    row("executor.profile.list", "GET", ALL_EXECUTOR_PROFILES),
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

/// A client's own names of a message, the first that is there: sent twice, it is one message.
const MESSAGE_NAMES: [&str; 2] = ["client_message_id", "message_id"];

/// Longest name that a client gives, in characters (platform-rest.md §12).
const MAX_NAME_CHARS: usize = 128;

/// Actions of all rows, for whoever looks whether each is tried.
pub fn rest_actions() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.action)
}

/// Methods and paths of all rows, for whoever compares them with the routes.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROWS.iter().flat_map(|row| row.paths.iter().map(|path| (row.method, *path)))
}

/// What a request of `user` comes down to.
///
/// # Errors
/// When nobody knows its action or this host cannot do it yet, a key is missing, or somebody wants to be told of what
/// is another user's own.
pub fn asked(request: &Request, user: &str) -> Result<Asked, Refused> {
    let topic = |topic: Topic| id_of(&request.payload, topic.key()).map(|id| (topic, id.to_owned()));
    let follow = |of: Topic| topic(of).map(|(topic, id)| Asked::Follow(topic, id));
    let leave = |of: Topic| topic(of).map(|(topic, id)| Asked::Leave(topic, id));
    match request.action.as_str() {
        "health.check" => Ok(Asked::Health),
        "user.subscribe" | "user.unsubscribe" => own(&request.payload, user),
        "task.subscribe" => follow(Topic::Task),
        "task.unsubscribe" => leave(Topic::Task),
        "session.subscribe" | "session.focus" => follow(Topic::Session),
        "session.unsubscribe" => leave(Topic::Session),
        // Looking away is not leaving.
        "session.unfocus" => id_of(&request.payload, Topic::Session.key()).map(|_| Asked::AsItIs),
        "run.subscribe" => follow(Topic::Run),
        "run.unsubscribe" => leave(Topic::Run),
        action => match (ROWS.iter().find(|row| row.action == action), lack(action)) {
            (Some(row), _) => row.call(request).map(Asked::Rest),
            (None, Some(lack)) => Err(lack.refused()),
            (None, None) => Err(Refused::new(Code::UnknownAction, "unknown action")),
        },
    }
}

fn lack(action: &str) -> Option<Lack> {
    LACKING.iter().find(|(lacking, _)| *lacking == action).map(|(_, lack)| *lack)
}

/// What is a user's own is told to that user anyway, and to nobody else.
fn own(payload: &Map<String, Value>, user: &str) -> Result<Asked, Refused> {
    match payload.get("user_id") {
        None | Some(Value::Null) => Ok(Asked::AsItIs),
        Some(Value::String(id)) if id.is_empty() || id == user => Ok(Asked::AsItIs),
        Some(Value::String(_)) => Err(Refused::new(
            Code::Forbidden,
            "payload.user_id must be your own: what is a user's own is told to nobody else",
        )),
        Some(_) => Err(Refused::new(Code::ValidationError, "payload.user_id must be a text")),
    }
}

fn id_of<'a>(payload: &'a Map<String, Value>, key: &str) -> Result<&'a str, Refused> {
    match payload.get(key).and_then(Value::as_str) {
        Some(id) if !id.is_empty() => Ok(id),
        _ => Err(Refused::new(Code::ValidationError, format!("payload.{key} is required, as a text"))),
    }
}

impl Row {
    fn call(&self, request: &Request) -> Result<Call, Refused> {
        let mut payload = request.payload.clone();
        let fits = |path: &&str| keys(path).all(|key| id_of(&request.payload, key).is_ok());
        let path = self.paths.iter().copied().find(fits).or(self.paths.first().copied()).unwrap_or_default();
        let mut target = path.to_owned();
        for key in keys(path) {
            let id: String = byte_serialize(id_of(&payload, key)?.as_bytes()).collect();
            target = target.replace(&format!("{{{key}}}"), &id);
            payload.remove(key);
        }
        let own_key = self.own_key(request)?;
        let once = request.metadata.idempotency_key.clone().or(own_key);
        payload.retain(|key, _| !self.without.contains(&key.as_str()));
        self.keep_in_metadata(&mut payload);
        if let Some((key, value)) = self.says {
            payload.insert(key.to_owned(), serde_json::from_str(value).unwrap_or_default());
        }
        let reads = self.method == "GET";
        let in_query = |key: &String| reads || self.in_query.contains(&key.as_str());
        let (asks, says): (Map<_, _>, Map<_, _>) = payload.into_iter().partition(|(key, _)| in_query(key));
        let query = query(&asks)?;
        let target = if query.is_empty() { target } else { format!("{target}?{query}") };
        let body = if reads { String::new() } else { Value::Object(says).to_string() };
        Ok(Call { method: self.method, target, body, once: once.filter(|_| !reads) })
    }

    /// Moves what has its place there. A `metadata` that is no object is left to REST, which refuses it.
    fn keep_in_metadata(&self, payload: &mut Map<String, Value>) {
        let moved = self.kept_in_metadata.iter().filter_map(|key| payload.remove(*key).map(|value| (*key, value)));
        let moved: Vec<_> = moved.filter(|(_, value)| !says_nothing(value)).collect();
        if moved.is_empty() {
            return;
        }
        let metadata = payload.entry("metadata").or_insert(Value::Null);
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        if let Value::Object(metadata) = metadata {
            metadata.extend(moved.into_iter().map(|(key, value)| (key.to_owned(), value)));
        }
    }

    /// A client's names are its session's. The key is a digest, since a name may have characters that no header takes.
    fn own_key(&self, request: &Request) -> Result<Option<String>, Refused> {
        let mut first = None;
        for key in MESSAGE_NAMES.into_iter().filter(|name| self.without.contains(name)) {
            match request.payload.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::String(name)) if name.chars().count() <= MAX_NAME_CHARS => {
                    first = first.or(Some(name).filter(|name| !name.is_empty()));
                }
                Some(_) => {
                    let text = format!("payload.{key} must be a text of at most {MAX_NAME_CHARS} characters");
                    return Err(Refused::new(Code::ValidationError, text));
                }
            }
        }
        let Some(name) = first else { return Ok(None) };
        let session = id_of(&request.payload, "session_id")?;
        Ok(Some(hex(&Sha256::digest(format!("{session}\n{name}")).into())))
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(said) => !said,
        Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
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
            _ => {
                let text = format!("payload.{key} must be a text, a number or a boolean");
                return Err(Refused::new(Code::ValidationError, text));
            }
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

    fn asked_by_me(action: &str, payload: Value) -> Result<Asked, Refused> {
        asked(&request(action, payload), "me")
    }

    fn rest(action: &str, payload: Value) -> (&'static str, String, String) {
        match asked_by_me(action, payload).unwrap() {
            Asked::Rest(call) => (call.method, call.target, call.body),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_message_brings_along_is_kept_in_its_metadata() {
        let said = |more: Value| {
            let mut payload = json!({"task_id": "t", "session_id": "s", "content": "c"});
            payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_str::<Value>(&rest("message.add", payload).2).unwrap()
        };
        let nothing = json!({"message_id": "m", "client_message_id": "n", "model": "", "plan_mode": false,
            "has_review_comments": false, "attachments": [], "context_files": [], "entity_references": null});
        assert_eq!(said(nothing), json!({"content": "c"}));
        let all = json!({"author_id": "a", "model": "x", "plan_mode": true, "has_review_comments": true,
            "attachments": [{"type": "image"}], "context_files": ["f"], "entity_references": [{"id": "r"}]});
        let mut kept = all.clone();
        kept.as_object_mut().unwrap().remove("author_id");
        assert_eq!(said(all), json!({"content": "c", "author_id": "a", "metadata": kept}));
        let beside = json!({"metadata": {"k": 1}, "model": "x"});
        assert_eq!(said(beside), json!({"content": "c", "metadata": {"k": 1, "model": "x"}}));
        assert_eq!(said(json!({"metadata": 7, "model": "x"}))["metadata"], 7);
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
            rest("message.search", json!({"session_id": "s", "query": "a b", "limit": 5})),
            ("GET", "/api/v1/task-sessions/s/messages/search?limit=5&query=a+b".to_owned(), String::new())
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
        let both = json!({"workspace_id": "w", "workflow_id": "f", "page": 2});
        assert_eq!(rest("task.list", both).1, "/api/v1/workspaces/w/tasks?page=2&workflow_id=f");
        assert_eq!(rest("workflow.list", json!({})).1, "/api/v1/workflows");
        let missing = asked_by_me("task.list", json!({}));
        let text = "payload.workspace_id is required, as a text".to_owned();
        assert_eq!(missing, Err(Refused::new(Code::ValidationError, text)));
        assert_eq!(rest("executor.profile.list", json!({"executor_id": "e"})).1, "/api/v1/executors/e/profiles");
        assert_eq!(rest("executor.profile.list", json!({})).1, "/api/v1/executor-profiles");
    }

    #[test]
    fn a_deletion_says_how_in_its_query() {
        let deletion = rest("task.delete", json!({"id": "t", "cascade": true}));
        assert_eq!(deletion, ("DELETE", "/api/v1/tasks/t?cascade=true".to_owned(), "{}".to_owned()));
    }

    fn key_of(more: Value) -> Result<Option<String>, Refused> {
        let mut payload = json!({"session_id": "s", "task_id": "t", "content": "x"});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        match asked_by_me("message.add", payload)? {
            Asked::Rest(call) => {
                assert_eq!(call.body, r#"{"content":"x"}"#);
                Ok(call.once)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_message_sent_again_by_its_name_is_the_same_message() {
        let named = key_of(json!({"client_message_id": "c"})).unwrap().unwrap();
        assert!(named.len() == 64 && named.bytes().all(|byte| byte.is_ascii_hexdigit()), "{named}");
        for same in [json!({"message_id": "c"}), json!({"client_message_id": "c", "message_id": "m"})] {
            assert_eq!(key_of(same).unwrap().as_ref(), Some(&named));
        }
        for other in [json!({"client_message_id": "d"}), json!({"client_message_id": "c", "session_id": "s2"})] {
            assert_ne!(key_of(other).unwrap().unwrap(), named);
        }
        for none in [json!({}), json!({"client_message_id": null, "message_id": ""})] {
            assert_eq!(key_of(none), Ok(None));
        }
    }

    #[test]
    fn a_messages_name_is_a_text_of_128_characters_at_most() {
        assert!(key_of(json!({"message_id": "ä".repeat(128)})).unwrap().is_some());
        for wrong in [json!(7), json!("ä".repeat(129))] {
            let text = "payload.message_id must be a text of at most 128 characters";
            let refused = key_of(json!({"client_message_id": "c", "message_id": wrong}));
            assert_eq!(refused, Err(Refused::new(Code::ValidationError, text)));
        }
    }

    #[test]
    fn following_needs_the_id_of_what_is_followed() {
        assert_eq!(
            asked_by_me("task.subscribe", json!({"task_id": "t"})),
            Ok(Asked::Follow(Topic::Task, "t".to_owned()))
        );
        assert_eq!(
            asked_by_me("session.unsubscribe", json!({"session_id": "s"})),
            Ok(Asked::Leave(Topic::Session, "s".to_owned()))
        );
        let refused = asked_by_me("task.subscribe", json!({"task_id": 7})).unwrap_err();
        assert_eq!(refused, Refused::new(Code::ValidationError, "payload.task_id is required, as a text"));
    }

    #[test]
    fn a_user_subscribes_to_what_is_its_own_only() {
        for action in ["user.subscribe", "user.unsubscribe"] {
            for own in [json!({}), json!({"user_id": null}), json!({"user_id": ""}), json!({"user_id": "me"})] {
                assert_eq!(asked_by_me(action, own.clone()), Ok(Asked::AsItIs), "{own}");
            }
            assert_eq!(asked_by_me(action, json!({"user_id": "you"})).unwrap_err().code, Code::Forbidden);
            assert_eq!(asked_by_me(action, json!({"user_id": 7})).unwrap_err().code, Code::ValidationError);
        }
    }

    #[test]
    fn what_waits_for_something_that_this_host_lacks_says_for_what() {
        for (action, lack) in LACKING {
            assert!(!ROWS.iter().any(|row| row.action == *action), "{action}");
            assert_eq!(asked_by_me(action, json!({})), Err(lack.refused()));
        }
        let launch = asked_by_me("session.launch", json!({"task_id": "t"})).unwrap_err();
        assert_eq!((launch.code, launch.detail), (Code::Conflict, Some("no_agent_runtime")));
        assert_eq!(asked_by_me("user.get", json!({})).unwrap_err().detail, Some("no_accounts"));
    }

    #[test]
    fn what_nobody_knows_is_said_to_be_unknown() {
        let refused = asked_by_me("task.explode", json!({})).unwrap_err();
        assert_eq!(refused, Refused::new(Code::UnknownAction, "unknown action"));
    }
}
