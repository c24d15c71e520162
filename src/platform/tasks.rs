//! Tasks: making, changing, moving, putting away and deleting them, and the trees that a plugin owns.

mod create;
mod delete;
mod update;

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use super::{
    By, PlatformError,
    clearing::{self, Begun, Earlier, ROWS},
};
use crate::{
    domain::{
        id::PluginId,
        platform::{
            Scope, event,
            page::{Page, PageRequest},
            refusal::Refusal,
            repository::{Repository, RepositoryFields},
            session::SessionSummary,
            task::{NewTask, RepositoryDraft, RepositoryRef, Task, TaskFilter, TaskPatch, TaskRepository},
            workflow::{Destination, Step},
            workspace::Workspace,
        },
    },
    store::{
        db::DbFault,
        platform::{Holder, PlatformStore, TaskQuery, Work},
    },
};

/// Said when an agent is wanted for a new task: starting one is fire and forget, the task is there.
pub const NO_AGENTS: &str = "no agent runtime is connected: the task was created, no agent was started";

/// The service.
#[derive(Debug, Clone)]
pub struct Tasks {
    store: PlatformStore,
}

/// A task that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// It.
    pub task: Task,
    /// Whether it was there already, by its external id.
    pub deduplicated: bool,
}

/// A task that was moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// It.
    pub task: Task,
    /// The step where it is now.
    pub step: Step,
}

/// Where tasks are moved from, all at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BulkMove {
    /// From this workflow.
    pub source_workflow_id: String,
    /// From this step; empty for all of them.
    pub source_step_id: String,
    /// Only these; empty for all.
    pub task_ids: Vec<String>,
    /// To this workflow.
    pub target_workflow_id: String,
    /// To this step.
    pub target_step_id: String,
}

impl Tasks {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of tasks, the newest first, ids in order.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &TaskFilter,
        page: &PageRequest,
    ) -> Result<Page<Task>, PlatformError> {
        filter.check()?;
        self.store.tasks(scope, filter, page).await
    }

    /// A part of the same list by its number, and how many tasks the whole list has. The cost grows with the number. A
    /// part may have fewer rows than it was asked for, since its bytes are bounded: its cursor leads on from there.
    pub async fn list_at(
        &self,
        scope: &Scope,
        filter: &TaskFilter,
        part: TaskQuery,
    ) -> Result<(Page<Task>, u64), PlatformError> {
        filter.check()?;
        self.store.tasks_at(scope, filter, part).await
    }

    /// How many tasks such a list has.
    pub async fn count(&self, scope: &Scope, filter: &TaskFilter) -> Result<u64, PlatformError> {
        filter.check()?;
        self.store.count_tasks(scope, filter).await
    }

    /// One task, whatever it is: put away, quick chat, automation run.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Task, PlatformError> {
        self.store.task(scope, id).await
    }

    /// The task of a workspace with this external id.
    pub async fn by_external_id(
        &self,
        scope: &Scope,
        workspace_id: &str,
        external_id: &str,
    ) -> Result<Task, PlatformError> {
        self.store.task_by_external_id(scope, workspace_id, external_id).await
    }

    /// How many parts a task has.
    pub async fn subtask_count(&self, scope: &Scope, id: &str) -> Result<u64, PlatformError> {
        let task = self.get(scope, id).await?;
        self.store.subtask_count(&task.id).await
    }

    /// What each of these tasks shows of its sessions, by task id; tasks without sessions are left out.
    pub async fn session_summaries(
        &self,
        scope: &Scope,
        ids: &[String],
    ) -> Result<HashMap<String, SessionSummary>, PlatformError> {
        self.store.session_summaries(scope, ids).await
    }

    /// A new task (host-data.md §6.1). Tells `task.created`, and `repository.created` of a remote that was not known.
    /// An agent is not started: the log says so, and the edges do by [`NO_AGENTS`].
    pub async fn create(&self, by: &By, new: &NewTask) -> Result<Created, PlatformError> {
        new.check()?;
        let looked = self.store.destination(&by.scope, &new.workspace_id, &new.workflow_id).await?;
        self.create_at(by, new, looked).await
    }

    /// As [`Self::create`], which has looked where the task goes. What closes after that look may still take the task,
    /// as if it had come just before; what is gone does not.
    pub(super) async fn create_at(
        &self,
        by: &By,
        new: &NewTask,
        looked: Option<Destination>,
    ) -> Result<Created, PlatformError> {
        let id = &super::new_id();
        // Once: work that is done again, since what it needs had gone meanwhile, looks itself.
        let looked = Mutex::new(Some(looked));
        let looked = || looked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = |work| {
            let looked = looked();
            async move { create::create(&work, by, id, new, looked).await }
        };
        let created = self.store.write(&by.scope, by.once.as_ref(), work).await?;
        if new.launch.is_some() {
            tracing::warn!(task.id = %created.task.id, "{NO_AGENTS}");
        }
        Ok(created)
    }

    /// Changes a task (host-data.md §6.2). Tells `task.state_changed` when the state differs, `task.updated`, and
    /// `task.moved` when the step differs; nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        patch: &TaskPatch,
        expected: Option<i64>,
    ) -> Result<Task, PlatformError> {
        patch.check()?;
        let work = |work| async move { update::update(&work, id, patch, expected).await };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Moves a task to a step of a workflow of its workspace. Tells `task.updated` and `task.moved`.
    pub async fn move_to(
        &self,
        by: &By,
        id: &str,
        workflow_id: &str,
        step_id: &str,
        position: i64,
        expected: Option<i64>,
    ) -> Result<Moved, PlatformError> {
        let place = update::Place { workflow_id, step_id, position: Some(position) };
        let work = |work| async move { update::move_to(&work, id, place, expected).await };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Moves many tasks at once, all or none; how many. Tells what [`Self::move_to`] tells, of each.
    pub async fn bulk_move(&self, by: &By, bulk: &BulkMove) -> Result<u64, PlatformError> {
        self.store.write(&by.scope, by.once.as_ref(), |work| async move { update::bulk_move(&work, bulk).await }).await
    }

    /// Puts a task away, or takes it out again. Tells `task.updated`; nothing when it was so already.
    pub async fn set_archived(
        &self,
        by: &By,
        id: &str,
        archived: bool,
        expected: Option<i64>,
    ) -> Result<Task, PlatformError> {
        let work = |work| async move { update::set_archived(&work, id, archived, expected).await };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a task with its sessions; its parts too (`cascade`), or they become tasks of their own. Tells
    /// `task.deleted` of each that is gone, parts first, and `task.updated` of each that lost its parent. `expected` is
    /// looked at once: what changes while very many messages go does not end the deletion.
    pub async fn delete(&self, by: &By, id: &str, cascade: bool, expected: Option<i64>) -> Result<(), PlatformError> {
        self.delete_by(by, id, cascade, expected, ROWS).await
    }

    /// As [`Self::delete`], at most about `rows` rows in a transaction.
    pub(super) async fn delete_by(
        &self,
        by: &By,
        id: &str,
        cascade: bool,
        expected: Option<i64>,
        rows: u64,
    ) -> Result<(), PlatformError> {
        let begun = self.begun(Holder::Task(id, cascade)).await?;
        self.remove(by, begun, id, cascade, expected, rows).await
    }

    /// Goes on with a deletion of tasks that was begun; nothing when they are gone.
    pub(super) async fn finish_deletion(&self, holder: Holder<'_>) -> Result<(), PlatformError> {
        let by = &By::operator();
        match holder {
            Holder::Task(id, cascade) => self.remove(by, Begun::EARLIER, id, cascade, None, ROWS).await,
            Holder::Owned(root, tag) => self.remove_owned(by, Begun::EARLIER, root, tag).await.map(drop),
            Holder::Workspace(_) | Holder::Session(_) => Ok(()),
        }
    }

    async fn remove(
        &self,
        by: &By,
        begun: Begun,
        id: &str,
        cascade: bool,
        expected: Option<i64>,
        rows: u64,
    ) -> Result<(), PlatformError> {
        let work = |work, begun| async move { delete::delete(&work, begun, id, cascade, expected, rows).await };
        clearing::delete(&self.store, by, begun, Holder::Task(id, cascade), rows, work).await
    }

    /// The tasks that [`Self::delete_owned_tree`] would delete, the root first (host-data.md §6.4).
    pub async fn owned_tree(&self, scope: &Scope, plugin: &PluginId, root: &str) -> Result<Vec<Task>, PlatformError> {
        delete::owned_tree(&self.store, scope, plugin, root).await
    }

    /// Deletes the tasks of a tree that the plugin made, all or none; their ids, parts first. No such root: none. Tells
    /// `task.deleted` of each. Somebody else's part that comes while very many messages go becomes a task of its own
    /// and keeps what it has.
    pub async fn delete_owned_tree(
        &self,
        scope: &Scope,
        plugin: &PluginId,
        root: &str,
    ) -> Result<Vec<String>, PlatformError> {
        let by = By::plugin(plugin).within(scope.clone());
        let tag = delete::tag(plugin);
        let begun = self.begun(Holder::Owned(root, &tag)).await?;
        self.remove_owned(&by, begun, root, &tag).await
    }

    /// Whether the deletion was begun. Another one of the same task is finished before: who deletes a task alone after
    /// a deletion with its parts was cut off would keep parts with some of their messages.
    async fn begun(&self, holder: Holder<'_>) -> Result<Begun, PlatformError> {
        match clearing::earlier(&self.store, holder).await? {
            Earlier::None => return Ok(Begun::NOT_YET),
            Earlier::Same => {}
            Earlier::Other(noted) => self.finish_deletion(noted.holder()?).await?,
        }
        Ok(Begun::EARLIER)
    }

    async fn remove_owned(&self, by: &By, begun: Begun, root: &str, tag: &str) -> Result<Vec<String>, PlatformError> {
        let work = |work, begun| async move { delete::delete_owned_tree(&work, begun, tag, root).await };
        clearing::delete(&self.store, by, begun, Holder::Owned(root, tag), ROWS, work).await
    }
}

/// What a task is to work on, from what a writer says; remotes that the workspace does not know are added to it.
async fn resolved(
    work: &Work,
    workspace_id: &str,
    drafts: &[RepositoryDraft],
) -> Result<Vec<TaskRepository>, PlatformError> {
    let ids: Vec<_> = drafts
        .iter()
        .filter_map(|draft| match &draft.repository {
            RepositoryRef::Known(id) => Some(id.as_str()),
            RepositoryRef::Remote(_) => None,
        })
        .collect();
    let possible: Vec<_> = ids.into_iter().filter(|id| crate::domain::platform::text::may_be_id(id)).collect();
    let known = work.repositories_by_id(&possible).await?;
    let mut resolved = Vec::with_capacity(drafts.len());
    for (position, draft) in (0..).zip(drafts) {
        let repository_id = match &draft.repository {
            RepositoryRef::Known(id) => {
                let of_workspace = |repository: &&Repository| {
                    repository.id == *id && repository.workspace_id == workspace_id && repository.deleted_at.is_none()
                };
                let found = known.iter().find(of_workspace);
                let refused = || Refusal::not_found(crate::domain::platform::refusal::Kind::Repository, id);
                found.ok_or_else(refused)?.id.clone()
            }
            RepositoryRef::Remote(remote) => {
                let fields = remote.fields()?;
                repository_of(work, workspace_id, fields).await?.id
            }
        };
        resolved.push(TaskRepository {
            id: super::new_id(),
            repository_id,
            base_branch: draft.base_branch.clone(),
            checkout_branch: draft.checkout_branch.clone(),
            pull_request_number: draft.pull_request_number,
            position,
        });
    }
    Ok(resolved)
}

/// The repository of a provider in a workspace, added when it is not there. Whoever adds one holds the workspace, so
/// that two writers do not add the same.
async fn repository_of(work: &Work, workspace_id: &str, fields: RepositoryFields) -> Result<Repository, PlatformError> {
    if let Some(known) = work.repository_of_provider(workspace_id, &fields).await? {
        return Ok(known);
    }
    held(work, workspace_id).await?;
    match work.repository_of_provider(workspace_id, &fields).await? {
        Some(added) => Ok(added),
        None => super::repositories::create(work, workspace_id, fields).await,
    }
}

/// A workspace that was there when it was looked at, locked. When it has gone since, the work is done again, and looks
/// again.
async fn held(work: &Work, id: &str) -> Result<Workspace, PlatformError> {
    let gone = || DbFault::Conflict(format!("workspace \"{id}\" has just been deleted"));
    Ok(work.find::<Workspace>(id).await?.ok_or_else(gone)?)
}

/// Something that a task shows has changed: tells `task.updated`.
pub(super) async fn tell_updated(work: &Work, task: &Task) -> Result<(), PlatformError> {
    let sessions = work.session_summary(&task.id).await?;
    work.tell(event::task_updated(task, &sessions, None));
    Ok(())
}
