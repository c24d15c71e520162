//! A new task: where it goes unless its maker says, what it inherits, and what it is refused for (host-data.md §6.1).

use super::{Created, resolved};
use crate::{
    domain::platform::{
        event,
        profile::{AgentProfile, ExecutorProfile},
        refusal::{Kind, Refusal},
        task::{Launch, NewTask, Task, TaskRepository, check_title, stored_metadata},
        words::{Origin, PlanMode, Priority, TaskState},
        workflow::{Workflow, placement},
        workspace::Workspace,
    },
    platform::{By, PlatformError, new_id},
    store::platform::Work,
};

/// Makes the task; the checks that need no row were made.
pub(super) async fn create(work: &Work, by: &By, id: &str, new: &NewTask) -> Result<Created, PlatformError> {
    if let Some(launch) = &new.launch {
        check_launch(work, launch).await?;
    }
    let mut workspace = workspace_of(work, new).await?;
    if !new.external_id.is_empty()
        && let Some(task) = work.task_by_external_id(&workspace.id, &new.external_id).await?
    {
        return Ok(Created { task, deduplicated: true });
    }
    let default = default_workflow(work, &workspace, new).await?;
    // The contract's order: what is wrong with the title is told after what is missing, and before what does not fit.
    check_title(&new.title)?;
    let workflow = match default {
        Some(workflow) => workflow,
        None => named_workflow(work, &workspace, new).await?,
    };
    let workflow_step_id = step_of(work, &workflow, new).await?;
    let parent = match new.parent_id.as_str() {
        "" => None,
        parent => Some(parent_in(work, &workspace.id, parent).await?),
    };
    let repositories = match &parent {
        Some(parent) if new.repositories.is_empty() => inherited(&parent.repositories),
        _ => resolved(work, &workspace.id, &new.repositories).await?,
    };
    let identifier = workspace.next_identifier();
    if identifier.is_some() {
        work.update(&workspace).await?;
    }
    let now = work.now();
    let mut task = Task {
        id: id.to_owned(),
        workspace_id: workspace.id,
        workflow_id: workflow.id,
        workflow_step_id,
        title: new.title.clone(),
        description: new.description.clone(),
        state: TaskState::Created,
        priority: new.priority.unwrap_or(Priority::Medium),
        origin: new.origin.unwrap_or(Origin::Manual),
        position: new.position,
        identifier: identifier.unwrap_or_default(),
        external_id: (!new.external_id.is_empty()).then(|| new.external_id.clone()),
        parent_id: parent.map(|parent| parent.id),
        is_ephemeral: new.is_ephemeral,
        archived_at: None,
        started_at: None,
        completed_at: None,
        metadata: stored_metadata(&by.author, new.metadata.clone()),
        repositories,
        created_at: now,
        updated_at: now,
        version: 1,
    };
    task.enter(new.state.unwrap_or(TaskState::Created), now);
    work.insert_task(&task).await?;
    work.tell(event::task(&task));
    Ok(Created { task, deduplicated: false })
}

/// Profiles are looked at when an agent is to be started, and only then.
async fn check_launch(work: &Work, launch: &Launch) -> Result<(), PlatformError> {
    if !launch.agent_profile_id.is_empty() {
        let profile = work.peek::<AgentProfile>(&launch.agent_profile_id).await?;
        if profile.is_none_or(|profile| !profile.fields.enabled) {
            return Err(Refusal::Unavailable("launch.agent_profile_id").into());
        }
    }
    if !launch.executor_profile_id.is_empty()
        && work.peek::<ExecutorProfile>(&launch.executor_profile_id).await?.is_none()
    {
        return Err(Refusal::Unavailable("launch.executor_profile_id").into());
    }
    Ok(())
}

/// The workspace; locked when the task takes a number or an external id in it, so that nobody takes the same.
async fn workspace_of(work: &Work, new: &NewTask) -> Result<Workspace, PlatformError> {
    let found = match new.workspace_id.as_str() {
        "" => work.only_workspace().await?.ok_or(Refusal::NoDefaultWorkspace)?,
        id => work.peek(id).await?.ok_or_else(|| Refusal::not_found(Kind::Workspace, id))?,
    };
    if found.task_prefix.is_empty() && new.external_id.is_empty() {
        return Ok(found);
    }
    work.get(&found.id).await
}

/// The first of the workspace, when none is named.
async fn default_workflow(
    work: &Work,
    workspace: &Workspace,
    new: &NewTask,
) -> Result<Option<Workflow>, PlatformError> {
    if !new.workflow_id.is_empty() {
        return Ok(None);
    }
    Ok(Some(work.first_workflow(&workspace.id).await?.ok_or(Refusal::NoDefaultWorkflow)?))
}

async fn named_workflow(work: &Work, workspace: &Workspace, new: &NewTask) -> Result<Workflow, PlatformError> {
    let not_found = || Refusal::not_found(Kind::Workflow, &new.workflow_id);
    let workflow: Workflow = work.peek(&new.workflow_id).await?.ok_or_else(not_found)?;
    if workflow.workspace_id != workspace.id {
        return Err(Refusal::ForeignWorkflow.into());
    }
    Ok(workflow)
}

async fn step_of(work: &Work, workflow: &Workflow, new: &NewTask) -> Result<Option<String>, PlatformError> {
    let steps = work.steps_of(&workflow.id).await?;
    if new.workflow_step_id.is_empty() {
        let planning = matches!(new.plan_mode, Some(PlanMode::On | PlanMode::Replace));
        return Ok(placement(&steps, planning).map(|step| step.id.clone()));
    }
    let step = steps.into_iter().find(|step| step.id == new.workflow_step_id);
    let step =
        step.ok_or_else(|| Refusal::ForeignStep(crate::domain::clean::single_line(&new.workflow_step_id, 128)))?;
    Ok(Some(step.id))
}

/// A task that may have parts: of this workspace, and no part itself.
pub(super) async fn parent_in(work: &Work, workspace_id: &str, id: &str) -> Result<Task, PlatformError> {
    let parent = match work.task(id).await {
        Ok(parent) => parent,
        Err(PlatformError::Refused(Refusal::NotFound { .. })) => {
            return Err(Refusal::BadParent("no such task").into());
        }
        Err(error) => return Err(error),
    };
    if parent.workspace_id != workspace_id {
        return Err(Refusal::BadParent("it is a task of another workspace").into());
    }
    if parent.parent_id.is_some() {
        return Err(Refusal::TooDeeplyNested.into());
    }
    Ok(parent)
}

fn inherited(repositories: &[TaskRepository]) -> Vec<TaskRepository> {
    repositories.iter().map(|repository| TaskRepository { id: new_id(), ..repository.clone() }).collect()
}
