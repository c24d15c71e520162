//! Why the platform refuses what it is asked for. The texts are the contract's (wire.md §4, host-data.md §6.1) where it
//! has one; all of them are for the caller.

/// What a thing of the platform is, as messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Kind {
    Workspace,
    Workflow,
    WorkflowStep,
    WorkflowTemplate,
    Repository,
    Agent,
    AgentProfile,
    Executor,
    ExecutorProfile,
    Task,
    Session,
    Turn,
    Message,
}

impl Kind {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Workflow => "workflow",
            Self::WorkflowStep => "workflow step",
            Self::WorkflowTemplate => "workflow template",
            Self::Repository => "repository",
            Self::Agent => "agent",
            Self::AgentProfile => "agent profile",
            Self::Executor => "executor",
            Self::ExecutorProfile => "executor profile",
            Self::Task => "task",
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Message => "message",
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What kind of answer a refusal is; the edges map it to a status (HTTP, gRPC).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The request is wrong by itself or in this place: 400, `InvalidArgument`.
    Invalid,
    /// 404, `NotFound`.
    NotFound,
    /// `If-Match` did not match: 412, `Aborted`.
    Stale,
    /// Another thing is in the way: 409, `FailedPrecondition`.
    Conflict,
    /// 403, `PermissionDenied`.
    Forbidden,
    /// It was there and is no more: 410, `OutOfRange`.
    Gone,
}

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such thing, or none that the reader may see.
    #[error("{kind} \"{id}\" not found")]
    NotFound {
        /// What.
        kind: Kind,
        /// Which, as asked for.
        id: String,
    },
    /// A field is missing or empty.
    #[error("{0} is required")]
    Required(&'static str),
    /// The title of a task has more than 60 characters.
    #[error("task title is too long: task titles must be 60 characters or fewer")]
    TitleTooLong,
    /// No workspace given, and none or several exist.
    #[error("workspace_id is required: cannot resolve a default among the instance's workspaces")]
    NoDefaultWorkspace,
    /// No workflow given, and the workspace has none.
    #[error("workflow_id is required: workspace has no workflow to default to")]
    NoDefaultWorkflow,
    /// The workflow belongs to another workspace.
    #[error("workspace not found")]
    ForeignWorkflow,
    /// The workflow has no such step.
    #[error("invalid task workflow: workflow step not found: {0}")]
    ForeignStep(String),
    /// The parent cannot be one.
    #[error("invalid parent_id: {0}")]
    BadParent(&'static str),
    /// The parent has a parent.
    #[error(
        "invalid parent_id: cannot create a subtask of a subtask \u{2014} maximum nesting depth is 1 for kanban tasks. \
         Create a sibling task under the same parent or a top-level task instead"
    )]
    TooDeeplyNested,
    /// The host alone says where a task comes from.
    #[error("metadata.source is reserved")]
    SourceReserved,
    /// No state that a writer may set.
    #[error("invalid task state \"{0}\"")]
    BadTaskState(String),
    /// A word outside its vocabulary.
    #[error("{field} must be one of: {accepted}")]
    BadWord {
        /// Which field.
        field: &'static str,
        /// The vocabulary.
        accepted: String,
    },
    /// Both ways to name a repository.
    #[error("repository_id and remote descriptor are mutually exclusive")]
    RepositoryTwice,
    /// Neither.
    #[error("repository_id or remote descriptor is required")]
    RepositoryMissing,
    /// A remote descriptor without one of its parts.
    #[error("remote repository descriptor is incomplete")]
    RemoteIncomplete,
    /// A clone address that is not plain https at its provider.
    #[error("remote repository clone_url must match its credential-free HTTPS provider origin")]
    RemoteOrigin,
    /// A profile that does not exist or is off.
    #[error("{0} is not available")]
    Unavailable(&'static str),
    /// A text or object beyond its bound, in bytes.
    #[error("{field} has {size} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Which field.
        field: &'static str,
        /// Its bytes.
        size: usize,
        /// The bound.
        limit: usize,
    },
    /// A list beyond its bound.
    #[error("{field} has {count} entries, at most {limit} are allowed")]
    TooMany {
        /// Which field.
        field: &'static str,
        /// Its entries.
        count: usize,
        /// The bound.
        limit: usize,
    },
    /// An object beyond its bound.
    #[error("{field} is nested deeper than {limit} levels")]
    TooDeep {
        /// Which field.
        field: &'static str,
        /// The bound.
        limit: usize,
    },
    /// PostgreSQL keeps no zero byte in text.
    #[error("{0} contains a zero byte")]
    ZeroByte(&'static str),
    /// Anything else that is wrong with one field.
    #[error("{field} {problem}")]
    Invalid {
        /// Which field.
        field: &'static str,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// A field that does not exist, or cannot have this value.
    #[error("{field} {problem}")]
    BadField {
        /// Which, as given; cut.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// A cursor that this list did not give.
    #[error("page cursor is not valid: pass next_cursor of the same list as it was given, or none for the first page")]
    BadCursor,
    /// A reader of the log was overtaken by its retention.
    #[error(
        "events after this cursor are no longer kept: read the present state of what you follow, then go on from the \
         cursor in details.oldest"
    )]
    CursorExpired {
        /// The cursor before the oldest event that is kept.
        oldest: String,
    },
    /// Too many values in a message filter (wire.md §4).
    #[error("message filter has {count} session/task/type values, max {limit}")]
    MessageFilterTooLarge {
        /// Values given.
        count: usize,
        /// The bound.
        limit: usize,
    },
    /// A bound of time that is none.
    #[error("{field} must be RFC3339: {cause}")]
    BadTime {
        /// `since` or `until`.
        field: &'static str,
        /// What the parser says.
        cause: String,
    },
    /// The thing has another version than the writer expects.
    #[error("{kind} \"{id}\" has version {found}, not {expected}; read it again and repeat the change")]
    Stale {
        /// What.
        kind: Kind,
        /// Which.
        id: String,
        /// What the writer expects.
        expected: i64,
        /// What it has.
        found: i64,
    },
    /// It holds something that must not go with it.
    #[error("{kind} \"{id}\" still has {holds}; move or delete them first")]
    NotEmpty {
        /// What.
        kind: Kind,
        /// Which.
        id: String,
        /// What is in it.
        holds: &'static str,
    },
    /// The deletion of the workspace was begun.
    #[error("workspace \"{0}\" is being deleted")]
    BeingDeleted(String),
    /// What is to be moved at once is too much.
    #[error("the source has more than {limit} tasks; name at most {limit} of them in task_ids")]
    TooManyTasks {
        /// The bound.
        limit: usize,
    },
    /// The name typed to confirm a deletion is another one.
    #[error("confirm_name must be the name of the workspace")]
    NotConfirmed,
    /// A session that has ended takes no more of it.
    #[error("session is {0} \u{2014} cannot send message")]
    SessionOver(super::words::SessionState),
    /// The task's root carries another one's tag.
    #[error("capability 'plugin_owned_tasks' not declared")]
    ForeignTree,
    /// A remote repository names a provider that the plugin does not own.
    #[error("capability 'repository_provider:{0}' not declared")]
    ForeignProvider(String),
    /// A plugin's tree holds someone else's task.
    #[error("plugin-owned task tree contains adopted or user-owned children; detach them before deleting")]
    MixedTree,
    /// An idempotency key that came with another request before.
    #[error("the idempotency key was used with another request; use a new one")]
    KeyReused,
}

impl Refusal {
    /// What kind of answer it is.
    pub fn class(&self) -> Class {
        match self {
            Self::NotFound { .. } => Class::NotFound,
            Self::Stale { .. } => Class::Stale,
            Self::NotEmpty { .. }
            | Self::BeingDeleted(_)
            | Self::SessionOver(_)
            | Self::MixedTree
            | Self::KeyReused => Class::Conflict,
            Self::ForeignTree | Self::ForeignProvider(_) => Class::Forbidden,
            Self::CursorExpired { .. } => Class::Gone,
            Self::Required(_)
            | Self::TitleTooLong
            | Self::NoDefaultWorkspace
            | Self::NoDefaultWorkflow
            | Self::ForeignWorkflow
            | Self::ForeignStep(_)
            | Self::BadParent(_)
            | Self::TooDeeplyNested
            | Self::SourceReserved
            | Self::BadTaskState(_)
            | Self::BadWord { .. }
            | Self::RepositoryTwice
            | Self::RepositoryMissing
            | Self::RemoteIncomplete
            | Self::RemoteOrigin
            | Self::Unavailable(_)
            | Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::TooDeep { .. }
            | Self::ZeroByte(_)
            | Self::Invalid { .. }
            | Self::BadField { .. }
            | Self::BadCursor
            | Self::MessageFilterTooLarge { .. }
            | Self::BadTime { .. }
            | Self::TooManyTasks { .. }
            | Self::NotConfirmed => Class::Invalid,
        }
    }

    /// No such thing. The id is cut: it is the caller's own text, of any length.
    pub fn not_found(kind: Kind, id: &str) -> Self {
        Self::NotFound { kind, id: crate::domain::clean::single_line(id, super::text::MAX_ID_BYTES) }
    }
}
