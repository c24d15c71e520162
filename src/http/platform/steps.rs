//! Steps of workflows (platform-rest.md §4, events.md §7).

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{DONE, Done, Nothing};
use crate::{
    domain::{
        action::Action,
        platform::{
            Map,
            words::StageType,
            workflow::{Step, StepDraft},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, post, put},
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/workflows/{id}/workflow/steps", Action::WorkflowRead, || web::to(list))
        .about("Steps of a workflow, in order")
        .gives::<StepList>(200),
    post("/api/v1/workflows/{id}/workflow/steps", Action::WorkflowWrite, || web::to(create_of_template))
        .about("Add the steps of a template")
        .body::<TemplateChoice>()
        .gives::<Done>(201)
        .once(),
    put("/api/v1/workflows/{id}/workflow/steps/reorder", Action::WorkflowWrite, || web::to(reorder))
        .about("Put the steps of a workflow into an order")
        .body::<StepOrder>()
        .gives::<Done>(200)
        .once(),
    get("/api/v1/workspaces/{id}/workflow-steps", Action::WorkflowRead, || web::to(list_of_workspace))
        .about("Steps of all workflows of a workspace")
        .gives::<StepList>(200),
    post("/api/v1/workflow/steps", Action::WorkflowWrite, || web::to(create))
        .about("Add a step to a workflow")
        .body::<NewStep>()
        .needs(&["name"])
        .gives::<StepView>(201)
        .versioned()
        .once(),
    get("/api/v1/workflow/steps/{id}", Action::WorkflowRead, || web::to(read))
        .about("One step")
        .gives::<StepAnswer>(200)
        .versioned(),
    put("/api/v1/workflow/steps/{id}", Action::WorkflowWrite, || web::to(update))
        .about("Change a step")
        .body::<StepBody>()
        .gives::<StepView>(200)
        .versioned()
        .once(),
    delete("/api/v1/workflow/steps/{id}", Action::WorkflowWrite, || web::to(remove))
        .about("Delete a step without tasks")
        .gives::<Done>(200)
        .versioned()
        .once(),
];

/// A step, as it is to be. What is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StepBody {
    name: Option<String>,
    #[schema(minimum = 0, maximum = 2147483647)]
    position: Option<i64>,
    color: Option<String>,
    stage_type: Option<StageType>,
    prompt: Option<String>,
    /// What happens on entering, leaving and at turns; replaces all of it. It is kept and shown, and run by nothing
    /// yet.
    #[schema(value_type = Option<Object>)]
    events: Option<Map>,
    allow_manual_move: Option<bool>,
    is_start_step: Option<bool>,
    show_in_command_panel: Option<bool>,
    #[schema(minimum = 0, maximum = 2147483647)]
    auto_archive_after_hours: Option<i64>,
    #[schema(minimum = 0, maximum = 2147483647)]
    wip_limit: Option<i64>,
    pull_from_step_id: Option<String>,
    agent_profile_id: Option<String>,
    auto_advance_requires_signal: Option<bool>,
    cancel_triggers_turn_complete: Option<bool>,
}

/// A new step; it goes to the end unless it has a position.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewStep {
    workflow_id: String,
    name: Option<String>,
    #[schema(minimum = 0, maximum = 2147483647)]
    position: Option<i64>,
    color: Option<String>,
    stage_type: Option<StageType>,
    prompt: Option<String>,
    #[schema(value_type = Option<Object>)]
    events: Option<Map>,
    allow_manual_move: Option<bool>,
    is_start_step: Option<bool>,
    show_in_command_panel: Option<bool>,
    #[schema(minimum = 0, maximum = 2147483647)]
    auto_archive_after_hours: Option<i64>,
    #[schema(minimum = 0, maximum = 2147483647)]
    wip_limit: Option<i64>,
    pull_from_step_id: Option<String>,
    agent_profile_id: Option<String>,
    auto_advance_requires_signal: Option<bool>,
    cancel_triggers_turn_complete: Option<bool>,
}

impl NewStep {
    /// Of which workflow, and the rest.
    fn parts(self) -> (String, StepBody) {
        let body = StepBody {
            name: self.name,
            position: self.position,
            color: self.color,
            stage_type: self.stage_type,
            prompt: self.prompt,
            events: self.events,
            allow_manual_move: self.allow_manual_move,
            is_start_step: self.is_start_step,
            show_in_command_panel: self.show_in_command_panel,
            auto_archive_after_hours: self.auto_archive_after_hours,
            wip_limit: self.wip_limit,
            pull_from_step_id: self.pull_from_step_id,
            agent_profile_id: self.agent_profile_id,
            auto_advance_requires_signal: self.auto_advance_requires_signal,
            cancel_triggers_turn_complete: self.cancel_triggers_turn_complete,
        };
        (self.workflow_id, body)
    }
}

impl From<StepBody> for StepDraft {
    fn from(body: StepBody) -> Self {
        Self {
            name: body.name,
            position: body.position,
            stage_type: body.stage_type,
            color: body.color,
            prompt: body.prompt,
            events: body.events,
            allow_manual_move: body.allow_manual_move,
            is_start_step: body.is_start_step,
            show_in_command_panel: body.show_in_command_panel,
            auto_archive_after_hours: body.auto_archive_after_hours,
            wip_limit: body.wip_limit,
            pull_from_step_id: body.pull_from_step_id,
            agent_profile_id: body.agent_profile_id,
            auto_advance_requires_signal: body.auto_advance_requires_signal,
            cancel_triggers_turn_complete: body.cancel_triggers_turn_complete,
        }
    }
}

/// Whose steps to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TemplateChoice {
    template_id: String,
}

/// The order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StepOrder {
    /// The first comes first; those that are left out come after, as they were.
    #[schema(max_items = 100)]
    step_ids: Vec<String>,
}

/// A step of a workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StepView {
    id: String,
    workflow_id: String,
    name: String,
    position: i64,
    color: String,
    stage_type: StageType,
    prompt: String,
    #[schema(value_type = Object)]
    events: Map,
    allow_manual_move: bool,
    is_start_step: bool,
    show_in_command_panel: bool,
    auto_archive_after_hours: i64,
    wip_limit: i64,
    /// Empty for none.
    pull_from_step_id: String,
    /// Empty for none.
    agent_profile_id: String,
    auto_advance_requires_signal: bool,
    cancel_triggers_turn_complete: bool,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<Step> for StepView {
    fn from(step: Step) -> Self {
        Self {
            id: step.id,
            workflow_id: step.workflow_id,
            name: step.name,
            position: step.position,
            color: step.color,
            stage_type: step.stage_type,
            prompt: step.prompt,
            events: step.events,
            allow_manual_move: step.allow_manual_move,
            is_start_step: step.is_start_step,
            show_in_command_panel: step.show_in_command_panel,
            auto_archive_after_hours: step.auto_archive_after_hours,
            wip_limit: step.wip_limit,
            pull_from_step_id: step.pull_from_step_id.unwrap_or_default(),
            agent_profile_id: step.agent_profile_id.unwrap_or_default(),
            auto_advance_requires_signal: step.auto_advance_requires_signal,
            cancel_triggers_turn_complete: step.cancel_triggers_turn_complete,
            created_at: step.created_at,
            updated_at: step.updated_at,
            version: step.version,
        }
    }
}

/// Steps.
#[derive(Debug, Serialize, ToSchema)]
struct StepList {
    steps: Vec<StepView>,
}

/// One step.
#[derive(Debug, Serialize, ToSchema)]
struct StepAnswer {
    step: StepView,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.workflows, scope(&request));
    let workflow = service.get(&scope, &id).await?;
    Ok(listed(service.steps(&scope, &workflow.id).await?))
}

async fn list_of_workspace(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(listed(services.platform.workflows.steps_of_workspace(&scope(&request), &id).await?))
}

fn listed(steps: Vec<Step>) -> HttpResponse {
    HttpResponse::Ok().json(StepList { steps: steps.into_iter().map(StepView::from).collect() })
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let step = services.platform.workflows.step(&scope(&request), &id).await?;
    let version = step.version;
    Ok(versioned(StatusCode::OK, version, &StepAnswer { step: step.into() }))
}

async fn create(services: web::Data<Services>, change: Change<NewStep>) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let (workflow, body) = change.body.parts();
    let work = async move { service.create_step(&change.by, &workflow, &body.into()).await };
    Ok(answer(StatusCode::CREATED, services.tasks.finish(work).await?))
}

async fn create_of_template(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<TemplateChoice>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let work = async move { service.create_steps_of(&change.by, &id, &change.body.template_id).await };
    services.tasks.finish(work).await?;
    Ok(HttpResponse::Created().json(DONE))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<StepBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let work = async move { service.update_step(&change.by, &id, &change.body.into(), change.expected).await };
    Ok(answer(StatusCode::OK, services.tasks.finish(work).await?))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    services.tasks.finish(async move { service.delete_step(&change.by, &id, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

async fn reorder(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<StepOrder>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let work = async move { service.reorder_steps(&change.by, &id, &change.body.step_ids).await };
    services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

fn answer(status: StatusCode, step: Step) -> HttpResponse {
    let version = step.version;
    versioned(status, version, &StepView::from(step))
}
