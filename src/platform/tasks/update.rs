//! Changing, moving and putting away tasks (host-data.md §6.2; steps are checked and moves told, §11 row 5).

use std::collections::BTreeSet;

use super::{BulkMove, Moved, create::parent_in, resolved, tell_updated};
use crate::{
    domain::platform::{
        event,
        refusal::{Kind, Refusal},
        session::SessionSummary,
        task::{RepositoryDraft, RepositoryRef, Task, TaskPatch},
        text::may_be_id,
        workflow::{Step, Workflow},
    },
    platform::{PlatformError, Versioned as _},
    store::platform::Work,
};

/// Most tasks that one bulk move touches; more are for several.
const MAX_BULK: usize = 1000;

/// Where a task goes.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub workflow_id: &'a str,
    pub step_id: &'a str,
    /// `None`: it keeps its own.
    pub position: Option<i64>,
}

pub(super) async fn update(
    work: &Work,
    id: &str,
    patch: &TaskPatch,
    expected: Option<i64>,
) -> Result<Task, PlatformError> {
    let mut task = work.task(id).await?;
    task.expect(expected)?;
    let before = task.clone();
    task.apply(patch)?;
    if let Some(step) = &patch.workflow_step_id {
        check_step(work, &task.workflow_id, step).await?;
        task.workflow_step_id = Some(step.clone());
    }
    if let Some(parent) = &patch.parent_id {
        task.parent_id = new_parent(work, &task, parent).await?;
    }
    if let Some(drafts) = &patch.repositories
        && !same_repositories(&task, drafts)
    {
        task.repositories = resolved(work, &task.workspace_id, drafts).await?;
        work.replace_repositories(&task).await?;
    }
    if let Some(state) = patch.state {
        task.enter(state, work.now());
    }
    save(work, before, task).await
}

pub(super) async fn move_to(
    work: &Work,
    id: &str,
    place: Place<'_>,
    expected: Option<i64>,
) -> Result<Moved, PlatformError> {
    let mut task = work.task(id).await?;
    task.expect(expected)?;
    let step = check_place(work, &task.workspace_id, place).await?;
    Ok(Moved { task: save(work, task.clone(), placed(task, place)).await?, step })
}

pub(super) async fn bulk_move(work: &Work, bulk: &BulkMove) -> Result<u64, PlatformError> {
    let not_found = || Refusal::not_found(Kind::Workflow, &bulk.source_workflow_id);
    let source: Workflow = work.peek(&bulk.source_workflow_id).await?.ok_or_else(not_found)?;
    let place = Place { workflow_id: &bulk.target_workflow_id, step_id: &bulk.target_step_id, position: None };
    check_place(work, &source.workspace_id, place).await?;
    let ids: BTreeSet<&str> = bulk.task_ids.iter().map(String::as_str).collect();
    if ids.len() > MAX_BULK {
        return Err(Refusal::TooMany { field: "task_ids", count: ids.len(), limit: MAX_BULK }.into());
    }
    let ids = ids.into_iter().filter(|id| may_be_id(id)).collect::<Vec<_>>();
    let ids = (!bulk.task_ids.is_empty()).then_some(ids.as_slice());
    let step = match bulk.source_step_id.as_str() {
        "" => None,
        step => Some(check_step(work, &source.id, step).await?.id),
    };
    let tasks = work.tasks_of_workflow(&source.id, step.as_deref(), ids, MAX_BULK as u64 + 1).await?;
    if tasks.len() > MAX_BULK {
        return Err(Refusal::TooManyTasks { limit: MAX_BULK }.into());
    }
    let ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
    let mut sessions = work.session_summaries(&ids).await?;
    let count = tasks.len() as u64;
    for task in tasks {
        let sessions = sessions.remove(&task.id).unwrap_or_default();
        let (before, task) = (task.clone(), placed(task, place));
        if let Some(task) = kept(work, &before, task).await? {
            tell(work, &before, &task, &sessions);
        }
    }
    Ok(count)
}

pub(super) async fn set_archived(
    work: &Work,
    id: &str,
    archived: bool,
    expected: Option<i64>,
) -> Result<Task, PlatformError> {
    let mut task = work.task(id).await?;
    task.expect(expected)?;
    if task.archived_at.is_some() != archived {
        task.archived_at = archived.then(|| work.now());
        task.touch(work.now());
        work.update(&task).await?;
        tell_updated(work, &task).await?;
    }
    Ok(task)
}

/// A workflow of the workspace, and a step of it.
async fn check_place(work: &Work, workspace_id: &str, place: Place<'_>) -> Result<Step, PlatformError> {
    let not_found = || Refusal::not_found(Kind::Workflow, place.workflow_id);
    let workflow: Workflow = work.peek(place.workflow_id).await?.ok_or_else(not_found)?;
    if workflow.workspace_id != workspace_id {
        return Err(Refusal::ForeignWorkflow.into());
    }
    check_step(work, &workflow.id, place.step_id).await
}

async fn check_step(work: &Work, workflow_id: &str, step_id: &str) -> Result<Step, PlatformError> {
    match work.peek::<Step>(step_id).await? {
        Some(step) if step.workflow_id == workflow_id => Ok(step),
        _ => Err(Refusal::ForeignStep(crate::domain::clean::single_line(step_id, 128)).into()),
    }
}

fn placed(mut task: Task, place: Place<'_>) -> Task {
    place.workflow_id.clone_into(&mut task.workflow_id);
    task.workflow_step_id = Some(place.step_id.to_owned());
    task.position = place.position.unwrap_or(task.position);
    task
}

/// Writes a task that may have changed, and tells what has.
async fn save(work: &Work, before: Task, task: Task) -> Result<Task, PlatformError> {
    let Some(task) = kept(work, &before, task).await? else { return Ok(before) };
    let sessions = work.session_summary(&task.id).await?;
    tell(work, &before, &task, &sessions);
    Ok(task)
}

/// Writes a task that may have changed; none when it has not.
async fn kept(work: &Work, before: &Task, mut task: Task) -> Result<Option<Task>, PlatformError> {
    if task == *before {
        return Ok(None);
    }
    task.touch(work.now());
    work.update(&task).await?;
    Ok(Some(task))
}

/// Tells how a task has changed.
fn tell(work: &Work, before: &Task, task: &Task, sessions: &SessionSummary) {
    if task.state != before.state {
        work.tell(event::task_state_changed(task, sessions, before.state));
    }
    let old_workflow = (task.workflow_id != before.workflow_id).then_some(before.workflow_id.as_str());
    work.tell(event::task_updated(task, sessions, old_workflow));
    if old_workflow.is_some() || task.workflow_step_id != before.workflow_step_id {
        let from_step = before.workflow_step_id.as_deref();
        work.tell(event::task_moved(task, sessions, &before.workflow_id, from_step));
    }
}

/// The new parent; empty for none. A task with parts cannot become one.
async fn new_parent(work: &Work, task: &Task, parent: &str) -> Result<Option<String>, PlatformError> {
    if parent.is_empty() || task.parent_id.as_deref() == Some(parent) {
        return Ok((!parent.is_empty()).then(|| parent.to_owned()));
    }
    if parent == task.id {
        return Err(Refusal::BadParent("a task cannot be a part of itself").into());
    }
    if work.has_children(&task.id).await? {
        return Err(Refusal::BadParent("a task with subtasks cannot become one").into());
    }
    Ok(Some(parent_in(work, &task.workspace_id, parent).await?.id))
}

/// Whether a writer names what the task works on already.
fn same_repositories(task: &Task, drafts: &[RepositoryDraft]) -> bool {
    task.repositories.len() == drafts.len()
        && task.repositories.iter().zip(drafts).all(|(has, draft)| {
            draft.repository == RepositoryRef::Known(has.repository_id.clone())
                && draft.base_branch == has.base_branch
                && draft.checkout_branch == has.checkout_branch
                && draft.pull_request_number == has.pull_request_number
        })
}
