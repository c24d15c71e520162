//! What a plugin asks the platform for: filters of lists, and tasks to make or change (wire.md §3.3).

use crate::{json::Object, wire::sent};

sent! {
    /// Which tasks. An empty list filters nothing.
    struct TaskFilter as TaskFilter {
        /// Of these workspaces.
        workspace_ids: Vec<String>,
        /// In these workflows.
        workflow_ids: Vec<String>,
        /// In these states.
        states: Vec<String>,
        /// Parts of this task; `Some("")` gives roots only, `None` all.
        parent_id: Option<String>,
        /// With quick chats.
        include_ephemeral: bool,
    }

    /// Which sessions. An empty list filters nothing.
    struct SessionFilter as SessionFilter {
        /// Of these tasks.
        task_ids: Vec<String>,
        /// Of these workspaces.
        workspace_ids: Vec<String>,
        /// In these states.
        states: Vec<String>,
    }

    /// Which messages. An empty list filters nothing; the lists may have 400 values together.
    struct MessageFilter as MessageFilter {
        /// Of these sessions.
        session_ids: Vec<String>,
        /// Of these tasks.
        task_ids: Vec<String>,
        /// RFC 3339, inclusive.
        since: Option<String>,
        /// RFC 3339, exclusive.
        until: Option<String>,
        /// Of these types.
        types: Vec<String>,
    }

    /// A task to create.
    struct NewTask as CreateTaskRequest {
        /// The workspace; `None` when the instance has only one.
        workspace_id: Option<String>,
        /// The workflow; `None` for the workspace's default.
        workflow_id: Option<String>,
        /// The step; `None` for the workflow's start step, else its first.
        workflow_step_id: Option<String>,
        /// The title, required, 60 characters at most.
        title: String,
        /// The description, which the agent reads.
        description: String,
        /// The task it is part of.
        parent_id: Option<String>,
        /// Whether an agent begins at once. The task is made either way: a host that cannot start one says so in its
        /// log.
        start_agent: bool,
        /// What it works on.
        repositories: Vec<NewTaskRepository>,
        /// How the agent begins.
        launch: Option<LaunchOptions>,
        /// Whatever you like; it is kept under the key `plugin:<id>`. The key `source` is the host's.
        metadata: Object,
    }

    /// A repository for a new task: one that the host knows, or one of a provider that the plugin owns.
    struct NewTaskRepository as PluginTaskRepository {
        /// The one that the host knows; `None` with `remote`.
        repository_id: Option<String>,
        /// The provider's; `None` with `repository_id`.
        remote: Option<RemoteRepository>,
        /// The branch that work begins from.
        base_branch: Option<String>,
        /// The branch to check out.
        checkout_branch: Option<String>,
        /// The pull request.
        pull_request_number: Option<i64>,
    }

    /// A repository of a provider that the plugin owns (`repository_providers` of the manifest).
    struct RemoteRepository as RemoteRepositoryDescriptor {
        /// The provider.
        provider_id: String,
        /// Its server.
        provider_host: String,
        /// The owner or project there.
        owner_or_project: String,
        /// The repository's id there.
        provider_repository_id: String,
        /// Its name.
        name: String,
        /// HTTPS, on the provider's server, without credentials.
        clone_url: String,
        /// Its main branch.
        default_branch: Option<String>,
        /// The branch that work begins from.
        base_branch: Option<String>,
        /// The branch of the work.
        head_branch: Option<String>,
        /// The pull request.
        pull_request_number: Option<i64>,
        /// The provider's scope.
        provider_scope: String,
    }

    /// How an agent begins a new task.
    struct LaunchOptions as PluginTaskLaunchOptions {
        /// Who.
        agent_profile_id: Option<String>,
        /// Where.
        executor_profile_id: Option<String>,
        /// With what prompt.
        prompt: Option<String>,
        /// `off`, `on` or `replace`.
        plan_mode: Option<String>,
    }

    /// What to change in a task; `None` leaves it.
    struct TaskUpdate as UpdateTaskRequest {
        /// The task.
        id: String,
        /// The title.
        title: Option<String>,
        /// The description.
        description: Option<String>,
        /// The state.
        state: Option<String>,
        /// The step of its workflow.
        workflow_step_id: Option<String>,
    }
}
