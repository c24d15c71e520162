//! Tasks: shapes, and the rules about titles, metadata, provenance, states and their times.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;

use super::{
    Map,
    refusal::Refusal,
    repository::RemoteRepository,
    text::{MAX_TITLE_CHARS, check_name, check_object, check_text},
    words::{Origin, PlanMode, Priority, TaskState},
};
use crate::domain::id::PluginId;

/// Metadata key of a task's provenance; the host alone writes it.
pub const SOURCE: &str = "source";
/// Metadata key of tasks that set the platform up; lists leave those out.
pub const CONFIG_MODE: &str = "config_mode";

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// A UUID of version 7.
    pub id: String,
    /// Whose.
    pub workspace_id: String,
    /// On which board.
    pub workflow_id: String,
    /// Where on it; `None` on a board without steps.
    pub workflow_step_id: Option<String>,
    /// At most 60 characters.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// How far it is.
    pub state: TaskState,
    /// How urgent.
    pub priority: Priority,
    /// How it came to be.
    pub origin: Origin,
    /// Place within its step.
    pub position: i64,
    /// `KAN-7` in a workspace with a prefix, else empty.
    pub identifier: String,
    /// The caller's own id of it, unique in its workspace.
    pub external_id: Option<String>,
    /// Of which task it is a part.
    pub parent_id: Option<String>,
    /// A quick chat rather than work.
    pub is_ephemeral: bool,
    /// Put away, UTC.
    #[serde(with = "time::serde::rfc3339::option")]
    pub archived_at: Option<OffsetDateTime>,
    /// First in progress, UTC.
    #[serde(with = "time::serde::rfc3339::option")]
    pub started_at: Option<OffsetDateTime>,
    /// In its final state since, UTC; `None` while it is in no such state.
    #[serde(with = "time::serde::rfc3339::option")]
    pub completed_at: Option<OffsetDateTime>,
    /// Everything else about it; its `source` is who made it.
    pub metadata: Map,
    /// What it works on, by position.
    pub repositories: Vec<TaskRepository>,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

/// A repository that a task works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRepository {
    /// A UUID of version 7.
    pub id: String,
    /// Which.
    pub repository_id: String,
    /// Work begins at this branch; empty for the main one.
    pub base_branch: String,
    /// Work goes on in this branch; empty for a new one.
    pub checkout_branch: String,
    /// The pull request it is about.
    pub pull_request_number: Option<i64>,
    /// Place in the task's list.
    pub position: i64,
}

/// A repository for a new task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryDraft {
    /// Which.
    pub repository: RepositoryRef,
    /// Empty for the main one.
    pub base_branch: String,
    /// Empty for a new one.
    pub checkout_branch: String,
    /// The pull request it is about.
    pub pull_request_number: Option<i64>,
}

/// How a writer names a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepositoryRef {
    /// One of the workspace, by its id.
    Known(String),
    /// One of a provider; it is added to the workspace unless it is there.
    Remote(RemoteRepository),
}

impl RepositoryRef {
    /// From the two fields of the wire, of which exactly one must be there.
    pub fn of(id: &str, remote: Option<RemoteRepository>) -> Result<Self, Refusal> {
        match (id.is_empty(), remote) {
            (false, Some(_)) => Err(Refusal::RepositoryTwice),
            (true, None) => Err(Refusal::RepositoryMissing),
            (false, None) => Ok(Self::Known(id.to_owned())),
            (true, Some(remote)) => Ok(Self::Remote(remote)),
        }
    }
}

/// Who writes. What a plugin makes carries its tag, whatever it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// The operator, a program with the operator's token, or the host.
    Operator,
    /// A plugin.
    Plugin(PluginId),
}

impl Author {
    /// The tag of what it makes; none for the operator.
    pub fn tag(&self) -> Option<String> {
        match self {
            Self::Operator => None,
            Self::Plugin(id) => Some(format!("plugin:{id}")),
        }
    }
}

/// A task to be made (host-data.md §6.1). Empty ids count as not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTask {
    /// Default: the only workspace.
    pub workspace_id: String,
    /// Default: the first that is not hidden.
    pub workflow_id: String,
    /// Default: see `workflow::placement`.
    pub workflow_step_id: String,
    /// Needed.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// Default `CREATED`.
    pub state: Option<TaskState>,
    /// Default `medium`.
    pub priority: Option<Priority>,
    /// Default `manual`.
    pub origin: Option<Origin>,
    /// Place within its step, default 0.
    pub position: i64,
    /// Of which task it is a part.
    pub parent_id: String,
    /// A task of this workspace with the same one is answered instead of made again.
    pub external_id: String,
    /// A quick chat.
    pub is_ephemeral: bool,
    /// Default for a part of a task: what its parent works on.
    pub repositories: Vec<RepositoryDraft>,
    /// A plugin's is kept under its tag.
    pub metadata: Map,
    /// Whether planning comes first.
    pub plan_mode: Option<PlanMode>,
    /// What an agent is to be started with; `None`: none is.
    pub launch: Option<Launch>,
}

/// What an agent is to be started with. Empty: the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// Which agent profile.
    pub agent_profile_id: String,
    /// Where.
    pub executor_profile_id: String,
    /// Instead of the task's description.
    pub prompt: String,
}

/// What changes of a task. `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskPatch {
    /// At most 60 characters; may be emptied.
    pub title: Option<String>,
    /// May be emptied.
    pub description: Option<String>,
    /// May be any that a writer may set.
    pub state: Option<TaskState>,
    /// How urgent.
    pub priority: Option<Priority>,
    /// Another step of its workflow.
    pub workflow_step_id: Option<String>,
    /// Place within its step.
    pub position: Option<i64>,
    /// Replaces all of it, but for its `source`.
    pub metadata: Option<Map>,
    /// Empty makes it a task of its own.
    pub parent_id: Option<String>,
    /// Replaces all of them.
    pub repositories: Option<Vec<RepositoryDraft>>,
}

/// A title that may be empty.
pub fn check_title(title: &str) -> Result<(), Refusal> {
    if title.chars().count() > MAX_TITLE_CHARS {
        return Err(Refusal::TitleTooLong);
    }
    check_name("title", title)
}

impl NewTask {
    /// The checks that come before anything else is looked at: a title, and the metadata.
    pub fn check_begins(&self) -> Result<(), Refusal> {
        if self.title.trim().is_empty() {
            return Err(Refusal::Required("title"));
        }
        check_new_metadata(&self.metadata)
    }

    /// The checks that need no row: title, then metadata, then the rest (host-data.md §6.1). How long the title is
    /// comes later, after the defaults: [`check_title`].
    pub fn check(&self) -> Result<(), Refusal> {
        self.check_begins()?;
        check_repositories(&self.repositories)?;
        check_text("description", &self.description)?;
        check_name("external_id", &self.external_id)?;
        if self.state == Some(TaskState::Scheduling) {
            return Err(Refusal::BadTaskState(TaskState::Scheduling.as_str().to_owned()));
        }
        Ok(())
    }
}

impl TaskPatch {
    /// The checks that need no row.
    pub fn check(&self) -> Result<(), Refusal> {
        self.title.as_deref().map_or(Ok(()), check_title)?;
        self.description.as_deref().map_or(Ok(()), |text| check_text("description", text))?;
        if let Some(metadata) = &self.metadata {
            check_object("metadata", metadata)?;
        }
        check_repositories(self.repositories.as_deref().unwrap_or_default())?;
        if self.state == Some(TaskState::Scheduling) {
            return Err(Refusal::BadTaskState(TaskState::Scheduling.as_str().to_owned()));
        }
        Ok(())
    }
}

/// Metadata of something new: where it comes from is for the host alone to say.
pub fn check_new_metadata(metadata: &Map) -> Result<(), Refusal> {
    if metadata.contains_key(SOURCE) {
        return Err(Refusal::SourceReserved);
    }
    check_object("metadata", metadata)
}

fn check_repositories(drafts: &[RepositoryDraft]) -> Result<(), Refusal> {
    super::text::check_items("repositories", drafts.len())?;
    for draft in drafts {
        check_name("base_branch", &draft.base_branch)?;
        check_name("checkout_branch", &draft.checkout_branch)?;
        if let RepositoryRef::Remote(remote) = &draft.repository {
            remote.fields()?;
        }
    }
    Ok(())
}

/// What is kept of a new task's metadata: a plugin's own goes under its tag, and the tag is its source.
pub fn stored_metadata(author: &Author, given: Map) -> Map {
    let Some(tag) = author.tag() else { return given };
    let mut stored = Map::new();
    stored.insert(SOURCE.to_owned(), tag.clone().into());
    if !given.is_empty() {
        stored.insert(tag, given.into());
    }
    stored
}

impl Task {
    /// Who made it, when it was a plugin.
    pub fn source(&self) -> Option<&str> {
        self.metadata.get(SOURCE).and_then(Value::as_str)
    }

    /// Whether it sets the platform up; lists leave it out.
    pub fn is_config_mode(&self) -> bool {
        self.metadata.get(CONFIG_MODE).is_some_and(truthy)
    }

    /// Takes over title, description, priority, position and metadata; the rest of a patch needs other rows.
    pub fn apply(&mut self, patch: &TaskPatch) -> Result<(), Refusal> {
        if let Some(title) = &patch.title {
            self.title.clone_from(title);
        }
        if let Some(description) = &patch.description {
            self.description.clone_from(description);
        }
        if let Some(metadata) = &patch.metadata {
            self.replace_metadata(metadata)?;
        }
        self.priority = patch.priority.unwrap_or(self.priority);
        self.position = patch.position.unwrap_or(self.position);
        Ok(())
    }

    /// New metadata may repeat the task's `source` and may leave it out; it cannot change it.
    fn replace_metadata(&mut self, metadata: &Map) -> Result<(), Refusal> {
        let source = self.metadata.get(SOURCE).cloned();
        if metadata.get(SOURCE).is_some_and(|given| Some(given) != source.as_ref()) {
            return Err(Refusal::SourceReserved);
        }
        self.metadata.clone_from(metadata);
        if let Some(source) = source {
            self.metadata.insert(SOURCE.to_owned(), source);
        }
        Ok(())
    }

    /// Goes into another state and keeps the times: begun when it is first in progress, over while it is in a final
    /// state.
    pub fn enter(&mut self, state: TaskState, now: OffsetDateTime) {
        if state == TaskState::InProgress && self.started_at.is_none() {
            self.started_at = Some(now);
        }
        match (self.state.is_final(), state.is_final()) {
            (_, false) => self.completed_at = None,
            (false, true) => self.completed_at = Some(now),
            (true, true) => self.completed_at = self.completed_at.or(Some(now)),
        }
        self.state = state;
    }
}

/// As the contract's host reads a flag in metadata.
fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !matches!(text.as_str(), "" | "false" | "0"),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Which tasks a list shows. Empty lists do not restrict; fields restrict together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// In one of these workspaces.
    pub workspace_ids: Vec<String>,
    /// On one of these boards.
    pub workflow_ids: Vec<String>,
    /// In one of these states; unknown words match nothing.
    pub states: Vec<String>,
    /// Parts of this task; empty: tasks of their own only.
    pub parent_id: Option<String>,
    /// Quick chats.
    pub ephemeral: Show,
    /// What was put away.
    pub archived: Show,
    /// Tasks that set the platform up, and runs of automations.
    pub internal: Show,
    /// Working on this repository.
    pub repository_id: Option<String>,
    /// Title, description or identifier contain this text, whatever the case of its letters a to z.
    pub text: Option<String>,
}

impl TaskFilter {
    /// Bounds its values.
    pub fn check(&self) -> Result<(), Refusal> {
        let lists =
            [("workspace_ids", &self.workspace_ids), ("workflow_ids", &self.workflow_ids), ("states", &self.states)];
        lists.into_iter().try_for_each(|(field, values)| super::text::check_filter(field, values))
    }
}

/// Whether a list shows a kind of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Show {
    /// Leaves them out.
    #[default]
    Without,
    /// Shows them among the others.
    With,
    /// Shows nothing else.
    Only,
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-11-29 12:00 UTC);

    fn task() -> Task {
        Task {
            id: "t".to_owned(),
            workspace_id: "w".to_owned(),
            workflow_id: "f".to_owned(),
            workflow_step_id: None,
            title: "x".to_owned(),
            description: String::new(),
            state: TaskState::Created,
            priority: Priority::Medium,
            origin: Origin::Manual,
            position: 0,
            identifier: String::new(),
            external_id: None,
            parent_id: None,
            is_ephemeral: false,
            archived_at: None,
            started_at: None,
            completed_at: None,
            metadata: Map::new(),
            repositories: Vec::new(),
            created_at: NOW,
            updated_at: NOW,
            version: 1,
        }
    }

    fn map(value: Value) -> Map {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_title_has_sixty_characters_of_any_language() {
        assert_eq!(check_title(&"ä".repeat(60)), Ok(()));
        assert_eq!(check_title(&"\u{1F600}".repeat(61)), Err(Refusal::TitleTooLong));
        assert_eq!(check_title(&"x".repeat(1 << 20)), Err(Refusal::TitleTooLong));
        assert_eq!(check_title("a\0b"), Err(Refusal::ZeroByte("title")));
        let blank = NewTask { title: "  ".to_owned(), ..NewTask::default() };
        assert_eq!(blank.check(), Err(Refusal::Required("title")));
        let emptied = TaskPatch { title: Some(String::new()), ..TaskPatch::default() };
        assert_eq!(emptied.check(), Ok(()));
    }

    #[test]
    fn the_title_is_checked_before_the_metadata_and_that_before_the_repositories() {
        let twice = NewTask { metadata: map(json!({"source": 1})), ..NewTask::default() };
        assert_eq!(twice.check(), Err(Refusal::Required("title")));
        let remote = RepositoryRef::Remote(RemoteRepository::default());
        let draft = RepositoryDraft {
            repository: remote,
            base_branch: String::new(),
            checkout_branch: String::new(),
            pull_request_number: None,
        };
        let twice = NewTask { title: "x".to_owned(), repositories: vec![draft], ..twice };
        assert_eq!(twice.check(), Err(Refusal::SourceReserved));
        assert_eq!(NewTask { metadata: Map::new(), ..twice }.check(), Err(Refusal::RemoteIncomplete));
    }

    #[test]
    fn a_plugins_metadata_goes_under_its_tag_and_its_tag_is_the_source() {
        let plugin = Author::Plugin(PluginId::new("acme").unwrap());
        let stored = stored_metadata(&plugin, map(json!({"a": 1})));
        assert_eq!(Value::from(stored), json!({"source": "plugin:acme", "plugin:acme": {"a": 1}}));
        assert_eq!(Value::from(stored_metadata(&plugin, Map::new())), json!({"source": "plugin:acme"}));
        assert_eq!(Value::from(stored_metadata(&Author::Operator, map(json!({"a": 1})))), json!({"a": 1}));
    }

    #[test]
    fn nobody_changes_where_a_task_comes_from() {
        let mut task = Task { metadata: map(json!({"source": "plugin:acme", "a": 1})), ..task() };
        let patch = |metadata| TaskPatch { metadata: Some(map(metadata)), ..TaskPatch::default() };
        assert_eq!(task.apply(&patch(json!({"source": "plugin:other"}))), Err(Refusal::SourceReserved));
        task.apply(&patch(json!({"b": 2}))).unwrap();
        assert_eq!(Value::from(task.metadata.clone()), json!({"b": 2, "source": "plugin:acme"}));
        task.apply(&patch(json!({"source": "plugin:acme"}))).unwrap();
        assert_eq!(task.source(), Some("plugin:acme"));
        let mut own = super::Task { metadata: Map::new(), ..task };
        assert_eq!(own.apply(&patch(json!({"source": "plugin:acme"}))), Err(Refusal::SourceReserved));
    }

    #[test]
    fn times_follow_the_states() {
        let mut task = task();
        let at = |hour: i64| NOW + time::Duration::hours(hour);
        task.enter(TaskState::Review, at(1));
        assert_eq!((task.started_at, task.completed_at), (None, None));
        task.enter(TaskState::InProgress, at(2));
        task.enter(TaskState::InProgress, at(3));
        assert_eq!((task.started_at, task.completed_at), (Some(at(2)), None));
        task.enter(TaskState::Failed, at(4));
        task.enter(TaskState::Completed, at(5));
        assert_eq!((task.started_at, task.completed_at), (Some(at(2)), Some(at(4))));
        task.enter(TaskState::InProgress, at(6));
        assert_eq!((task.started_at, task.completed_at), (Some(at(2)), None));
    }

    #[test]
    fn config_mode_is_a_flag_however_it_is_written() {
        for (value, is) in [
            (json!(true), true),
            (json!("true"), true),
            (json!(1), true),
            (json!({}), true),
            (json!(false), false),
            (json!("false"), false),
            (json!(""), false),
            (json!(0), false),
            (json!(null), false),
        ] {
            let task = Task { metadata: map(json!({ "config_mode": value })), ..task() };
            assert_eq!(task.is_config_mode(), is, "{value}");
        }
    }

    #[test]
    fn exactly_one_way_names_a_repository() {
        assert_eq!(RepositoryRef::of("", None), Err(Refusal::RepositoryMissing));
        assert_eq!(RepositoryRef::of("r", Some(RemoteRepository::default())), Err(Refusal::RepositoryTwice));
        assert_eq!(RepositoryRef::of("r", None), Ok(RepositoryRef::Known("r".to_owned())));
    }
}
