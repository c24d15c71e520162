//! The platform's data as the host sends it (wire.md §3.3). Times are RFC 3339 text in UTC, ids opaque text. A newer
//! host may send more: the types are open.

use crate::{json::Object, wire::received};

received! {
    /// A task.
    struct Task {
        /// Its id.
        id: String,
        /// Its workspace.
        workspace_id: String,
        /// Its workflow.
        workflow_id: String,
        /// The title.
        title: String,
        /// The description.
        description: String,
        /// Such as `TODO` or `IN_PROGRESS`.
        state: String,
        /// `critical`, `high`, `medium` or `low`.
        priority: String,
        /// Its origin: `manual`, `agent_created`, `routine`, ….
        created_by: String,
        /// When it was created.
        created_at: String,
        /// When it was changed last.
        updated_at: String,
        /// When work began; older hosts do not say.
        started_at: Option<String>,
        /// When it was done; older hosts do not say.
        completed_at: Option<String>,
        /// The task it is part of; `None` for a root.
        parent_id: Option<String>,
        /// The short name such as `KAN-7`; empty when it has none.
        identifier: String,
        /// Whether it is a quick chat.
        is_ephemeral: bool,
        /// The repositories it works on.
        repositories: Vec<TaskRepository>,
        /// Whatever was put there.
        metadata: Object,
    }

    /// A repository that a task works on.
    struct TaskRepository {
        /// The attachment's id.
        id: String,
        /// The repository.
        repository_id: String,
        /// The branch that work begins from.
        base_branch: String,
        /// The order among the task's repositories.
        position: i32,
        /// The branch that is checked out.
        checkout_branch: String,
    }

    /// A workspace.
    struct Workspace {
        /// Its id.
        id: String,
        /// Its name.
        name: String,
        /// What it is for.
        description: Option<String>,
        /// The user who owns it.
        owner_id: String,
        /// Where its tasks run.
        default_executor_id: Option<String>,
        /// Who does its tasks.
        default_agent_profile_id: Option<String>,
        /// When it was created.
        created_at: String,
        /// When it was changed last.
        updated_at: String,
    }

    /// A workflow of a workspace.
    struct Workflow {
        /// Its id.
        id: String,
        /// Its workspace.
        workspace_id: String,
        /// Its name.
        name: String,
        /// What it is for.
        description: Option<String>,
        /// The order among the workspace's workflows.
        sort_order: i32,
        /// When it was created.
        created_at: String,
        /// When it was changed last.
        updated_at: String,
    }

    /// A step of a workflow.
    struct WorkflowStep {
        /// Its id.
        id: String,
        /// Its workflow.
        workflow_id: String,
        /// Its name.
        name: String,
        /// The order among the workflow's steps.
        position: i32,
        /// `work`, `review`, `approval` or `custom`.
        stage_type: String,
    }

    /// A way to run an agent.
    struct AgentProfile {
        /// Its id.
        id: String,
        /// The agent.
        agent_id: String,
        /// The agent's name.
        display_name: String,
        /// The profile's name.
        name: String,
        /// The model.
        model: String,
        /// The mode.
        mode: String,
    }

    /// A place where agents run.
    struct ExecutorProfile {
        /// Its id.
        id: String,
        /// Its name.
        display_name: String,
        /// What kind of place.
        executor_type: String,
    }

    /// A repository of a workspace.
    struct Repository {
        /// Its id.
        id: String,
        /// Its workspace.
        workspace_id: String,
        /// Its name.
        name: String,
        /// Its main branch.
        default_branch: Option<String>,
        /// Where it comes from.
        source_type: String,
        /// The provider.
        provider_id: String,
        /// Its id at the provider.
        provider_repository_id: String,
        /// The provider's server.
        provider_host: String,
        /// The owner or project at the provider.
        owner_or_project: String,
        /// The provider's name.
        provider_name: String,
        /// Where it is cloned from, without user information.
        remote_url: String,
        /// The provider's scope.
        provider_scope: String,
    }

    /// A run of an agent on a task.
    struct Session {
        /// Its id.
        id: String,
        /// Its task.
        task_id: String,
        /// The agent's profile.
        agent_profile_id: String,
        /// The agent's name.
        agent_display_name: String,
        /// The model.
        model: String,
        /// The agent's own id of it; empty when there is none.
        acp_session_id: String,
        /// Its state.
        state: String,
        /// When it began.
        started_at: String,
        /// When it ended; `None` while it runs.
        ended_at: Option<String>,
        /// The profile's name.
        agent_profile_name: String,
    }

    /// How many lines a session wrote.
    struct SessionCodeStats {
        /// The session.
        session_id: String,
        /// Lines added in commits.
        lines_added_committed: i64,
        /// Lines deleted in commits.
        lines_deleted_committed: i64,
        /// The most lines that were added and not yet committed.
        lines_added_peak_pending: i64,
        /// The most lines that were deleted and not yet committed.
        lines_deleted_peak_pending: i64,
        /// Whether the numbers of committed lines are known.
        committed_lines_available: bool,
    }

    /// A message of a session.
    struct Message {
        /// Its id.
        id: String,
        /// Its session.
        session_id: String,
        /// Its task.
        task_id: String,
        /// Its turn.
        turn_id: String,
        /// `user` or `agent`.
        author_type: String,
        /// The text, without what is hidden from people.
        content: String,
        /// Its type, such as `message`.
        kind: String = r#type,
        /// When it was written.
        created_at: String,
    }
}

/// Where a message to an agent went.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct SentMessage {
    /// The session.
    pub session_id: String,
    /// `queued`, `sent` or `started`.
    pub status: String,
}
