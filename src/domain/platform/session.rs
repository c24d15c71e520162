//! Sessions of work on a task, and their turns.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;

use super::{
    Map,
    refusal::Refusal,
    task::TaskRepository,
    words::{ReviewStatus, SessionState},
};

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// A UUID of version 7.
    pub id: String,
    /// Of which task.
    pub task_id: String,
    /// The task's workspace.
    pub workspace_id: String,
    /// Its name.
    pub name: String,
    /// How far it is.
    pub state: SessionState,
    /// Why it failed.
    pub error_message: String,
    /// With which agent profile; that may be gone.
    pub agent_profile_id: String,
    /// What the profile was then.
    pub agent_profile_snapshot: Map,
    /// Where it runs; may be empty.
    pub executor_id: String,
    /// With which executor profile; may be empty.
    pub executor_profile_id: String,
    /// What the executor was then.
    pub executor_snapshot: Map,
    /// In which repository; may be empty.
    pub repository_id: String,
    /// Work began at this branch.
    pub base_branch: String,
    /// Everything else about it.
    pub metadata: Map,
    /// What messages to the task go to.
    pub is_primary: bool,
    /// Review.
    pub review_status: Option<ReviewStatus>,
    /// The last message a person has read.
    pub last_read_message_id: Option<String>,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// Over since, UTC.
    #[serde(with = "time::serde::rfc3339::option")]
    pub completed_at: Option<OffsetDateTime>,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

impl Session {
    /// The agent's name as the profile had it.
    pub fn agent_display_name(&self) -> &str {
        text(&self.agent_profile_snapshot, &["agent_display_name", "display_name", "agent_name"])
    }

    /// The profile's name as it was.
    pub fn agent_profile_name(&self) -> &str {
        text(&self.agent_profile_snapshot, &["name"])
    }

    /// The model: snapshot key `model`, else `model_name`, else `llm` (host-data.md §3).
    pub fn model(&self) -> &str {
        text(&self.agent_profile_snapshot, &["model", "model_name", "llm"])
    }

    /// The agent protocol's own session: metadata `acp.session_id`, as one key or as a path; the first that says
    /// something.
    pub fn acp_session_id(&self) -> &str {
        let nested = || self.metadata.get("acp").and_then(|acp| acp.get("session_id")).and_then(Value::as_str);
        let flat = self.metadata.get("acp.session_id").and_then(Value::as_str);
        flat.filter(|id| !id.is_empty()).or_else(nested).unwrap_or_default()
    }

    /// Goes into another state and keeps the time of its end.
    pub fn enter(&mut self, state: SessionState, now: OffsetDateTime) {
        self.completed_at = match state.is_final() {
            false => None,
            true => self.completed_at.filter(|_| self.state.is_final()).or(Some(now)),
        };
        self.state = state;
    }
}

fn text<'a>(map: &'a Map, keys: &[&str]) -> &'a str {
    let texts = keys.iter().filter_map(|key| map.get(*key)?.as_str());
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// A session to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Of which task.
    pub task_id: String,
    /// Its name; may be empty.
    pub name: String,
    /// Default `CREATED`.
    pub state: Option<SessionState>,
    /// Of which the snapshot is taken; may be empty.
    pub agent_profile_id: String,
    /// With which executor profile; may be empty.
    pub executor_profile_id: String,
    /// In which repository; empty for the task's only one, and for none when it has several or none.
    pub repository_id: String,
    /// Work begins at this branch; empty for the one that the task names for the repository.
    pub base_branch: String,
    /// Everything else.
    pub metadata: Map,
}

impl NewSession {
    /// Where the session works, of a task on these repositories: the repository, and the branch at which work begins.
    ///
    /// What is asked for counts. Of several repositories none is guessed: a wrong one would give its credentials away.
    pub fn place(&self, repositories: &[TaskRepository]) -> (String, String) {
        let attached = match (self.repository_id.as_str(), repositories) {
            ("", [only]) => Some(only),
            ("", _) => None,
            (asked, _) => repositories.iter().find(|attached| attached.repository_id == asked),
        };
        let (repository, branch) = attached
            .map(|attached| (attached.repository_id.as_str(), attached.base_branch.as_str()))
            .unwrap_or_default();
        let first = |asked: &str, own: &str| if asked.is_empty() { own.to_owned() } else { asked.to_owned() };
        (first(&self.repository_id, repository), first(&self.base_branch, branch))
    }
}

/// What changes of a session. `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionPatch {
    /// Its name.
    pub name: Option<String>,
    /// Any may follow any.
    pub state: Option<SessionState>,
    /// Why it failed.
    pub error_message: Option<String>,
    /// True takes it from the session that has it.
    pub is_primary: Option<bool>,
    /// Review; `Some(None)` takes it away.
    pub review_status: Option<Option<ReviewStatus>>,
    /// Merged into what is there; null takes a key away.
    pub metadata: Option<Map>,
}

/// Which sessions a list shows. Empty lists do not restrict; fields restrict together. Without `task_ids`, sessions of
/// tasks that set the platform up and of automation runs are left out (host-data.md §3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Of one of these tasks.
    pub task_ids: Vec<String>,
    /// In one of these workspaces.
    pub workspace_ids: Vec<String>,
    /// In one of these states; unknown words match nothing.
    pub states: Vec<String>,
}

impl SessionFilter {
    /// Bounds its values.
    pub fn check(&self) -> Result<(), Refusal> {
        let lists = [("task_ids", &self.task_ids), ("workspace_ids", &self.workspace_ids), ("states", &self.states)];
        lists.into_iter().try_for_each(|(field, values)| super::text::check_filter(field, values))
    }
}

/// What a task shows of its sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// How many.
    pub count: i64,
    /// The one that messages go to.
    pub primary: Option<PrimarySession>,
}

/// The primary session of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimarySession {
    /// Which.
    pub id: String,
    /// How far it is.
    pub state: SessionState,
    /// Review.
    pub review_status: Option<ReviewStatus>,
    /// Where it runs; may be empty.
    pub executor_id: String,
}

/// A turn: one prompt and what comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// A UUID of version 7.
    pub id: String,
    /// Of which session.
    pub session_id: String,
    /// Of which task.
    pub task_id: String,
    /// Everything else about it.
    pub metadata: Map,
    /// Begun, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// Over, UTC.
    #[serde(with = "time::serde::rfc3339::option")]
    pub completed_at: Option<OffsetDateTime>,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    fn session(snapshot: Value, metadata: Value) -> Session {
        let at = datetime!(2026-11-29 12:00 UTC);
        Session {
            id: "s".to_owned(),
            task_id: "t".to_owned(),
            workspace_id: "w".to_owned(),
            name: String::new(),
            state: SessionState::Created,
            error_message: String::new(),
            agent_profile_id: String::new(),
            agent_profile_snapshot: snapshot.as_object().cloned().unwrap(),
            executor_id: String::new(),
            executor_profile_id: String::new(),
            executor_snapshot: Map::new(),
            repository_id: String::new(),
            base_branch: String::new(),
            metadata: metadata.as_object().cloned().unwrap(),
            is_primary: false,
            review_status: None,
            last_read_message_id: None,
            started_at: at,
            completed_at: None,
            updated_at: at,
            version: 1,
        }
    }

    #[test]
    fn the_model_is_the_first_of_three_keys() {
        for (snapshot, model) in [
            (json!({"model": "a", "model_name": "b", "llm": "c"}), "a"),
            (json!({"model": "", "model_name": "b", "llm": "c"}), "b"),
            (json!({"model": 1, "llm": "c"}), "c"),
            (json!({}), ""),
        ] {
            assert_eq!(session(snapshot, json!({})).model(), model);
        }
    }

    #[test]
    fn the_agents_own_session_is_read_from_both_forms() {
        assert_eq!(session(json!({}), json!({"acp": {"session_id": "x"}})).acp_session_id(), "x");
        assert_eq!(session(json!({}), json!({"acp.session_id": "y"})).acp_session_id(), "y");
        let both = json!({"acp.session_id": "", "acp": {"session_id": "x"}});
        assert_eq!(session(json!({}), both).acp_session_id(), "x");
        assert_eq!(session(json!({}), json!({"acp": "z"})).acp_session_id(), "");
    }

    #[test]
    fn a_session_works_where_it_is_asked_to_or_in_the_only_repository_of_its_task() {
        let attached = |id: &str, branch: &str| TaskRepository {
            id: format!("row of {id}"),
            repository_id: id.to_owned(),
            base_branch: branch.to_owned(),
            checkout_branch: "fix".to_owned(),
            pull_request_number: None,
            position: 0,
        };
        let two = [attached("a", "main"), attached("b", "dev")];
        let (none, one, two) = (&two[..0], &two[..1], &two[..]);
        for (repository, branch, repositories, expected) in [
            ("", "", none, ("", "")),
            ("", "next", none, ("", "next")),
            ("", "", one, ("a", "main")),
            ("", "next", one, ("a", "next")),
            ("", "", two, ("", "")),
            ("b", "", two, ("b", "dev")),
            ("b", "next", two, ("b", "next")),
            ("c", "", one, ("c", "")),
        ] {
            let new = NewSession {
                repository_id: repository.to_owned(),
                base_branch: branch.to_owned(),
                ..NewSession::default()
            };
            let (found, begins) = new.place(repositories);
            assert_eq!((found.as_str(), begins.as_str()), expected, "{repository:?} {branch:?}");
        }
    }

    #[test]
    fn the_end_of_a_session_is_kept_while_it_is_over() {
        let mut session = session(json!({}), json!({}));
        let at = |hour: i64| session_time() + time::Duration::hours(hour);
        session.enter(SessionState::Failed, at(1));
        session.enter(SessionState::Completed, at(2));
        assert_eq!(session.completed_at, Some(at(1)));
        session.enter(SessionState::Running, at(3));
        assert_eq!(session.completed_at, None);
    }

    fn session_time() -> OffsetDateTime {
        datetime!(2026-11-29 12:00 UTC)
    }
}
