//! A new task: where it goes unless its maker says, what it inherits, and what it is refused for (host-data.md §6.1).

use super::{Created, held, resolved};
use crate::{
    domain::{
        clean::single_line,
        platform::{
            event,
            profile::{AgentProfile, ExecutorProfile},
            refusal::{Kind, Refusal},
            task::{Launch, NewTask, Task, TaskRepository, check_title, stored_metadata},
            words::{Origin, PlanMode, Priority, TaskState},
            workflow::{Destination, Lane},
        },
    },
    platform::{By, PlatformError, new_id},
    store::platform::Work,
};

/// Makes the task; the checks that need no row were made. `looked` is what `PlatformStore::destination` said before;
/// without it the work looks itself. What has gone since then is a conflict, so that the work is done again and looks
/// itself.
pub(super) async fn create(
    work: &Work,
    by: &By,
    id: &str,
    new: &NewTask,
    looked: Option<Option<Destination>>,
) -> Result<Created, PlatformError> {
    if let Some(launch) = &new.launch {
        check_launch(work, launch).await?;
    }
    let Destination { workspace_id, numbers_tasks, closed, lane } = destination(work, new, looked).await?;
    if closed {
        return Err(Refusal::BeingDeleted(workspace_id).into());
    }
    // Locked when the task takes a number or an external id in it, so that nobody takes the same.
    let taken = numbers_tasks || !new.external_id.is_empty();
    let workspace = if taken { Some(held(work, &workspace_id).await?) } else { None };
    if let Some(workspace) = &workspace {
        // It may have been closed since it was looked at.
        workspace.expect_open()?;
    }
    if !new.external_id.is_empty()
        && let Some(task) = work.task_by_external_id(&workspace_id, &new.external_id).await?
    {
        return Ok(Created { task, deduplicated: true });
    }
    if new.workflow_id.is_empty() && lane.is_none() {
        return Err(Refusal::NoDefaultWorkflow.into());
    }
    // The contract's order: what is wrong with the title is told after what is missing, and before what does not fit.
    check_title(&new.title)?;
    let lane = lane.ok_or_else(|| Refusal::not_found(Kind::Workflow, &new.workflow_id))?;
    if lane.workspace_id != workspace_id {
        return Err(Refusal::ForeignWorkflow.into());
    }
    let workflow_step_id = step_in(&lane, new)?;
    let parent = match new.parent_id.as_str() {
        "" => None,
        parent => Some(parent_in(work, &workspace_id, parent).await?),
    };
    let repositories = match &parent {
        Some(parent) if new.repositories.is_empty() => inherited(&parent.repositories),
        _ => resolved(work, &workspace_id, &new.repositories).await?,
    };
    let mut identifier = None;
    if let Some(mut workspace) = workspace {
        identifier = workspace.next_identifier();
        if identifier.is_some() {
            work.update(&workspace).await?;
        }
    }
    let now = work.now();
    let mut task = Task {
        id: id.to_owned(),
        workspace_id,
        workflow_id: lane.id,
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

async fn destination(
    work: &Work,
    new: &NewTask,
    looked: Option<Option<Destination>>,
) -> Result<Destination, PlatformError> {
    let found = match looked {
        Some(found) => found,
        None => work.destination(&new.workspace_id, &new.workflow_id).await?,
    };
    Ok(found.ok_or_else(|| match new.workspace_id.as_str() {
        "" => Refusal::NoDefaultWorkspace,
        id => Refusal::not_found(Kind::Workspace, id),
    })?)
}

fn step_in(lane: &Lane, new: &NewTask) -> Result<Option<String>, Refusal> {
    let wanted = new.workflow_step_id.as_str();
    if wanted.is_empty() {
        let planning = matches!(new.plan_mode, Some(PlanMode::On | PlanMode::Replace));
        return Ok(lane.placement(planning).map(|step| step.id.clone()));
    }
    if !lane.steps.iter().any(|step| step.id == wanted) {
        return Err(Refusal::ForeignStep(single_line(wanted, 128)));
    }
    Ok(Some(wanted.to_owned()))
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
