//! Workflows and their steps. A workflow or step that still has tasks is not deleted.

use super::{By, PlatformError, Versioned as _, new_id};
use crate::{
    domain::platform::{
        Scope,
        event::{self, Happened},
        page::{Page, PageRequest},
        refusal::{Kind, Refusal},
        template::{self, Template},
        text::{MAX_ITEMS, check_items},
        workflow::{MAX_NUMBER, Step, StepDraft, Workflow, WorkflowDraft},
        workspace::Workspace,
    },
    store::platform::{PlatformStore, Work},
};

/// The service.
#[derive(Debug, Clone)]
pub struct Workflows {
    store: PlatformStore,
}

impl Workflows {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of workflows that are not hidden, of one workspace or (empty) of all: by place, time of making, id.
    pub async fn list(
        &self,
        scope: &Scope,
        workspace_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Workflow>, PlatformError> {
        self.store.workflows(scope, workspace_id, page).await
    }

    /// How many workflows that list has.
    pub async fn count(&self, scope: &Scope, workspace_id: &str) -> Result<u64, PlatformError> {
        self.store.count_workflows(scope, workspace_id).await
    }

    /// One workflow.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Workflow, PlatformError> {
        self.store.find(scope, id).await
    }

    /// All steps of a workflow, by place; none when there is no such workflow.
    pub async fn steps(&self, scope: &Scope, workflow_id: &str) -> Result<Vec<Step>, PlatformError> {
        match self.get(scope, workflow_id).await {
            Ok(_) => self.store.steps(workflow_id).await,
            Err(PlatformError::Refused(Refusal::NotFound { .. })) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// All steps of the workflows of a workspace that are not hidden: by workflow, then by place.
    pub async fn steps_of_workspace(&self, scope: &Scope, workspace_id: &str) -> Result<Vec<Step>, PlatformError> {
        let workspace: Workspace = self.store.find(scope, workspace_id).await?;
        self.store.steps_of_workspace(&workspace.id).await
    }

    /// One step.
    pub async fn step(&self, scope: &Scope, id: &str) -> Result<Step, PlatformError> {
        self.store.find(scope, id).await
    }

    /// A new workflow at the end of its workspace, with the steps of a template when one is named. Tells
    /// `workflow.created` and `workflow_step.created`.
    pub async fn create(
        &self,
        by: &By,
        workspace_id: &str,
        draft: &WorkflowDraft,
        template_id: Option<&str>,
    ) -> Result<Workflow, PlatformError> {
        let work = |work: Work| async move {
            let workspace: Workspace = work.get(workspace_id).await?;
            create(&work, &workspace.id, draft, template_id).await
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes a workflow. Tells `workflow.updated`; nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        draft: &WorkflowDraft,
        expected: Option<i64>,
    ) -> Result<Workflow, PlatformError> {
        let work = |work: Work| async move {
            let mut workflow: Workflow = work.get(id).await?;
            workflow.expect(expected)?;
            let before = workflow.clone();
            workflow.apply(draft)?;
            if workflow != before {
                save(&work, &mut workflow).await?;
            }
            Ok(workflow)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a workflow without tasks. Tells `workflow_step.updated` of steps elsewhere that pulled from its own,
    /// `workflow_step.deleted` of these and `workflow.deleted`.
    pub async fn delete(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let mut workflow: Workflow = work.get(id).await?;
            workflow.expect(expected)?;
            if work.workflow_has_tasks(id).await? {
                return Err(not_empty(Kind::Workflow, id));
            }
            let steps = work.steps_of(id).await?;
            work.delete::<Workflow>(id).await?;
            pull_no_longer(&work, &workflow, &steps).await?;
            for step in &steps {
                work.tell(event::step(Happened::Deleted, &workflow.workspace_id, step));
            }
            work.tell(event::workflow(Happened::Deleted, &workflow));
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Puts the workflows of a workspace into this order; those that are not named come after, as they were. Tells
    /// `workflow.updated` of each that changes place.
    pub async fn reorder(&self, by: &By, workspace_id: &str, ids: &[String]) -> Result<(), PlatformError> {
        check_items("workflow_ids", ids.len())?;
        let work = |work: Work| async move {
            work.get::<Workspace>(workspace_id).await?;
            let mut all = work.workflows_of(workspace_id).await?;
            in_order(&mut all, ids, |workflow| &workflow.id, Kind::Workflow)?;
            for (place, mut workflow) in (0..).zip(all) {
                if workflow.sort_order != place {
                    workflow.sort_order = place;
                    save(&work, &mut workflow).await?;
                }
            }
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// A new step, at the end unless it says. Tells `workflow_step.created`.
    pub async fn create_step(&self, by: &By, workflow_id: &str, draft: &StepDraft) -> Result<Step, PlatformError> {
        let work = |work: Work| async move {
            let workflow: Workflow = work.get(workflow_id).await?;
            let mut steps = work.steps_of(workflow_id).await?;
            add_step(&work, &workflow, &mut steps, draft).await
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// The steps of a template, at the end. Tells `workflow_step.created` of each.
    pub async fn create_steps_of(&self, by: &By, workflow_id: &str, template_id: &str) -> Result<(), PlatformError> {
        let template = find_template(template_id)?;
        let work = |work: Work| async move {
            let workflow: Workflow = work.get(workflow_id).await?;
            add_steps_of(&work, &workflow, template).await
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes a step. Tells `workflow_step.updated`; nothing when nothing changes.
    pub async fn update_step(
        &self,
        by: &By,
        id: &str,
        draft: &StepDraft,
        expected: Option<i64>,
    ) -> Result<Step, PlatformError> {
        let work = |work: Work| async move {
            let (workflow, mut step) = step_with_workflow(&work, id).await?;
            step.expect(expected)?;
            let before = step.clone();
            step.apply(draft)?;
            if step != before {
                if step.is_start_step && !before.is_start_step {
                    let steps = work.steps_of(&workflow.id).await?;
                    no_other_start(&work, &workflow, steps).await?;
                }
                save_step(&work, &workflow, &mut step).await?;
            }
            Ok(step)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a step without tasks. Tells `workflow_step.updated` of those that pulled from it, and
    /// `workflow_step.deleted`.
    pub async fn delete_step(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let (workflow, mut step) = step_with_workflow(&work, id).await?;
            step.expect(expected)?;
            if work.step_has_tasks(id).await? {
                return Err(not_empty(Kind::WorkflowStep, id));
            }
            work.delete::<Step>(id).await?;
            pull_no_longer(&work, &workflow, std::slice::from_ref(&step)).await?;
            work.tell(event::step(Happened::Deleted, &workflow.workspace_id, &step));
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Puts the steps of a workflow into this order; those that are not named come after, as they were. Tells
    /// `workflow_step.updated` of each that changes place.
    pub async fn reorder_steps(&self, by: &By, workflow_id: &str, ids: &[String]) -> Result<(), PlatformError> {
        check_items("step_ids", ids.len())?;
        let work = |work: Work| async move {
            let workflow: Workflow = work.get(workflow_id).await?;
            let mut all = work.steps_of(workflow_id).await?;
            in_order(&mut all, ids, |step| &step.id, Kind::WorkflowStep)?;
            for (place, mut step) in (0..).zip(all) {
                if step.position != place {
                    step.position = place;
                    save_step(&work, &workflow, &mut step).await?;
                }
            }
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}

/// A new workflow at the end of a workspace, whose row exists. Without a name it has the template's.
pub(super) async fn create(
    work: &Work,
    workspace_id: &str,
    draft: &WorkflowDraft,
    template_id: Option<&str>,
) -> Result<Workflow, PlatformError> {
    let template = template_id.map(find_template).transpose()?;
    let mut draft = draft.clone();
    if let (None, Some(template)) = (&draft.name, template) {
        draft.name = Some(template.name.to_owned());
        draft.description.get_or_insert_with(|| template.description.to_owned());
    }
    let place = work.workflows_of(workspace_id).await?.last().map_or(0, |last| last.sort_order + 1);
    let workflow = Workflow::new(new_id(), workspace_id, place, &draft, work.now())?;
    work.insert(&workflow).await?;
    work.tell(event::workflow(Happened::Created, &workflow));
    if let Some(template) = template {
        add_steps_of(work, &workflow, template).await?;
    }
    Ok(workflow)
}

fn find_template(id: &str) -> Result<&'static Template, Refusal> {
    template::find(id).ok_or_else(|| Refusal::not_found(Kind::WorkflowTemplate, id))
}

async fn add_steps_of(work: &Work, workflow: &Workflow, template: &Template) -> Result<(), PlatformError> {
    let mut steps = work.steps_of(&workflow.id).await?;
    for draft in template.drafts() {
        add_step(work, workflow, &mut steps, &draft).await?;
    }
    Ok(())
}

async fn add_step(
    work: &Work,
    workflow: &Workflow,
    steps: &mut Vec<Step>,
    draft: &StepDraft,
) -> Result<Step, PlatformError> {
    if steps.len() >= MAX_ITEMS {
        return Err(Refusal::TooMany { field: "steps", count: steps.len() + 1, limit: MAX_ITEMS }.into());
    }
    // Behind the last one; beside it, where there is no place behind.
    let place = steps.iter().map(|step| (step.position + 1).min(MAX_NUMBER)).max().unwrap_or(0);
    let step = Step::new(new_id(), &workflow.id, place, draft, work.now())?;
    if step.is_start_step {
        no_other_start(work, workflow, std::mem::take(steps)).await?;
        *steps = work.steps_of(&workflow.id).await?;
    }
    work.insert(&step).await?;
    work.tell(event::step(Happened::Created, &workflow.workspace_id, &step));
    steps.push(step.clone());
    Ok(step)
}

/// Takes the mark of the start step from whichever has it.
async fn no_other_start(work: &Work, workflow: &Workflow, steps: Vec<Step>) -> Result<(), PlatformError> {
    for mut step in steps.into_iter().filter(|step| step.is_start_step) {
        step.is_start_step = false;
        save_step(work, workflow, &mut step).await?;
    }
    Ok(())
}

/// No step of the workspace pulls from these any more: they are gone.
async fn pull_no_longer(work: &Work, workflow: &Workflow, gone: &[Step]) -> Result<(), PlatformError> {
    let ids: Vec<_> = gone.iter().map(|step| step.id.as_str()).collect();
    for mut step in work.steps_pulling_from(&workflow.workspace_id, &ids).await? {
        step.pull_from_step_id = None;
        save_step(work, workflow, &mut step).await?;
    }
    Ok(())
}

/// A step and its workflow, both locked: the workflow first, as whoever orders its steps holds it.
async fn step_with_workflow(work: &Work, id: &str) -> Result<(Workflow, Step), PlatformError> {
    let found: Step = work.peek(id).await?.ok_or_else(|| Refusal::not_found(Kind::WorkflowStep, id))?;
    Ok((work.get(&found.workflow_id).await?, work.get(id).await?))
}

async fn save(work: &Work, workflow: &mut Workflow) -> Result<(), PlatformError> {
    workflow.touch(work.now());
    work.update(workflow).await?;
    work.tell(event::workflow(Happened::Updated, workflow));
    Ok(())
}

async fn save_step(work: &Work, workflow: &Workflow, step: &mut Step) -> Result<(), PlatformError> {
    step.touch(work.now());
    work.update(step).await?;
    work.tell(event::step(Happened::Updated, &workflow.workspace_id, step));
    Ok(())
}

/// Those named first, in the order of the names; the others stay in theirs.
fn in_order<T>(all: &mut [T], ids: &[String], id: impl Fn(&T) -> &String, kind: Kind) -> Result<(), Refusal> {
    if let Some(unknown) = ids.iter().find(|named| !all.iter().any(|each| id(each) == *named)) {
        return Err(Refusal::not_found(kind, unknown));
    }
    all.sort_by_key(|each| ids.iter().position(|named| named == id(each)).unwrap_or(ids.len()));
    Ok(())
}

fn not_empty(kind: Kind, id: &str) -> PlatformError {
    Refusal::NotEmpty { kind, id: id.to_owned(), holds: "tasks" }.into()
}
