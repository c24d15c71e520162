//! Reading the platform's data. Lists come as [`Items`], which fetch page by page.

use kandev_proto::v1;

use super::{Host, Items};
use crate::{
    AgentProfile, Error, ExecutorProfile, Message, MessageFilter, Repository, Result, Session, SessionCodeStats,
    SessionFilter, Task, TaskFilter, Workflow, WorkflowStep, Workspace,
    wire::{FromWire as _, IntoWire},
};

/// A paged list: its RPC, the request around a page, and the items' field.
macro_rules! items {
    ($host:ident, $rpc:ident, $items:ident, |$page:ident| $request:expr) => {{
        let host = $host.clone();
        Items::new(move |page| {
            let $page = Some(page);
            let (host, request) = (host.clone(), $request);
            async move {
                let answer = host.call(|mut host| async move { host.$rpc(request).await }).await?;
                Ok((Vec::from_wire(answer.$items), answer.page_info))
            }
        })
    }};
}

impl Host {
    /// The tasks that the filter takes, newest first. `ListTasks`; capability `api_read: [tasks]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// use kandev_plugin_sdk::TaskFilter;
    ///
    /// let mut tasks = host.tasks(TaskFilter { states: vec!["TODO".into()], ..Default::default() });
    /// while let Some(task) = tasks.next().await? {
    ///     println!("{} {}", task.identifier, task.title);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn tasks(&self, filter: TaskFilter) -> Items<Task> {
        let filter: v1::TaskFilter = filter.into_wire();
        items!(self, list_tasks, tasks, |page| v1::ListTasksRequest { filter: Some(filter.clone()), page })
    }

    /// One task; [`Code::NotFound`](crate::Code::NotFound) when there is none. `GetTask`; capability
    /// `api_read: [tasks]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// println!("{}", host.task("task-7").await?.title);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn task(&self, id: &str) -> Result<Task> {
        let request = v1::GetTaskRequest { id: id.to_owned() };
        task_of(self.call(|mut host| async move { host.get_task(request).await }).await?.task)
    }

    /// Every workspace. `ListWorkspaces`; capability `api_read: [workspaces]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let workspaces = host.workspaces().all().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn workspaces(&self) -> Items<Workspace> {
        items!(self, list_workspaces, workspaces, |page| v1::ListWorkspacesRequest { page })
    }

    /// The workflows of a workspace, of all of them for `""`. `ListWorkflows`; capability `api_read: [workflows]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let workflows = host.workflows("workspace-1").all().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn workflows(&self, workspace_id: impl Into<String>) -> Items<Workflow> {
        let workspace_id = workspace_id.into();
        items!(self, list_workflows, workflows, |page| v1::ListWorkflowsRequest {
            workspace_id: workspace_id.clone(),
            page
        })
    }

    /// The steps of a workflow, in order, in one answer. `ListWorkflowSteps`; capability `api_read: [workflows]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let steps = host.workflow_steps("workflow-1").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn workflow_steps(&self, workflow_id: &str) -> Result<Vec<WorkflowStep>> {
        let request = v1::ListWorkflowStepsRequest { workflow_id: workflow_id.to_owned() };
        let answer = self.call(|mut host| async move { host.list_workflow_steps(request).await }).await?;
        Ok(Vec::from_wire(answer.steps))
    }

    /// Every agent profile. `ListAgentProfiles`; capability `api_read: [agent_profiles]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let profiles = host.agent_profiles().all().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn agent_profiles(&self) -> Items<AgentProfile> {
        items!(self, list_agent_profiles, profiles, |page| v1::ListAgentProfilesRequest { page })
    }

    /// Every executor profile. `ListExecutorProfiles`; capability `api_read: [executor_profiles]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let profiles = host.executor_profiles().all().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn executor_profiles(&self) -> Items<ExecutorProfile> {
        items!(self, list_executor_profiles, profiles, |page| v1::ListExecutorProfilesRequest { page })
    }

    /// The repositories of a workspace. `ListRepositories`; capability `api_read: [repositories]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let repositories = host.repositories("workspace-1").all().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn repositories(&self, workspace_id: impl Into<String>) -> Items<Repository> {
        let workspace_id = workspace_id.into();
        items!(self, list_repositories, repositories, |page| v1::ListRepositoriesRequest {
            workspace_id: workspace_id.clone(),
            page
        })
    }

    /// The sessions that the filter takes, newest first. `ListSessions`; capability `api_read: [sessions]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// use kandev_plugin_sdk::SessionFilter;
    ///
    /// let filter = SessionFilter { task_ids: vec!["task-7".into()], ..Default::default() };
    /// let sessions = host.sessions(filter).all().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sessions(&self, filter: SessionFilter) -> Items<Session> {
        let filter: v1::SessionFilter = filter.into_wire();
        items!(self, list_sessions, sessions, |page| v1::ListSessionsRequest { filter: Some(filter.clone()), page })
    }

    /// How many lines each of these sessions wrote, in the order of [`Host::sessions`] (older hosts: the other way
    /// round). `ListSessionCodeStats`; capability `api_read: [sessions]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let mut stats = host.session_code_stats(Default::default());
    /// let mut added = 0;
    /// while let Some(session) = stats.next().await? {
    ///     added += session.lines_added_committed;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn session_code_stats(&self, filter: SessionFilter) -> Items<SessionCodeStats> {
        let filter: v1::SessionFilter = filter.into_wire();
        items!(self, list_session_code_stats, stats, |page| v1::ListSessionCodeStatsRequest {
            filter: Some(filter.clone()),
            page
        })
    }

    /// The messages that the filter takes, oldest first. `ListMessages`; capability `api_read: [messages]`.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// use kandev_plugin_sdk::MessageFilter;
    ///
    /// let filter = MessageFilter { since: Some("2026-01-01T00:00:00Z".into()), ..Default::default() };
    /// let mut messages = host.messages(filter);
    /// while let Some(message) = messages.next().await? {
    ///     println!("{}: {}", message.author_type, message.content);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn messages(&self, filter: MessageFilter) -> Items<Message> {
        let filter: v1::MessageFilter = filter.into_wire();
        items!(self, list_messages, messages, |page| v1::ListMessagesRequest { filter: Some(filter.clone()), page })
    }
}

/// The task of an answer; a host that sends none broke the contract.
pub(super) fn task_of(task: Option<v1::Task>) -> Result<Task> {
    task.map(Task::from_wire).ok_or_else(|| Error::internal("the host's answer holds no task"))
}
