//! A board as a whole: a workflow with its steps and tasks (platform-rest.md §3, §4).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::{parts::Part, steps::StepView, task_bodies::TaskView, tasks, workflows::WorkflowView};
use crate::{
    domain::{
        action::Action,
        platform::{
            Scope,
            page::PageRequest,
            refusal::{Kind, Refusal},
            workflow::Workflow,
        },
    },
    http::{
        ApiError, Services,
        change::scope,
        endpoint::{Endpoint, get},
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/workflows/{id}/snapshot", Action::TaskRead, || web::to(of_workflow))
        .about("A workflow with its steps and its first 1000 tasks")
        .gives::<Snapshot>(200),
    get("/api/v1/workspaces/{id}/snapshot", Action::TaskRead, || web::to(of_workspace))
        .about("The first workflow of a workspace with its steps and its first 1000 tasks")
        .gives::<Snapshot>(200),
];

/// A board.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BoardSnapshot)]
struct Snapshot {
    workflow: WorkflowView,
    steps: Vec<StepView>,
    tasks: Vec<TaskView>,
    /// Where `/api/v1/workflows/{id}/tasks` goes on, when there are more tasks than these.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn of_workflow(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let workflow = services.platform.workflows.get(&scope, &id).await?;
    snapshot(&services, &scope, workflow).await
}

async fn of_workspace(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let workspace = services.platform.workspaces.get(&scope, &id).await?;
    let first = services.platform.workflows.list(&scope, &workspace.id, &PageRequest::new(1, "")).await?;
    let none = || Refusal::not_found(Kind::Workflow, "the first of its workspace");
    snapshot(&services, &scope, first.items.into_iter().next().ok_or_else(none)?).await
}

async fn snapshot(services: &Services, scope: &Scope, workflow: Workflow) -> Result<HttpResponse, ApiError> {
    let filter = tasks::on_board(&workflow.id);
    let service = &services.platform.tasks;
    let page = async |page| service.list(scope, &filter, &page).await;
    let tasks = Part::default().rows(page).await?;
    let steps = services.platform.workflows.steps(scope, &workflow.id).await?;
    let next_cursor = tasks.next_cursor;
    Ok(HttpResponse::Ok().json(Snapshot {
        workflow: workflow.into(),
        steps: steps.into_iter().map(StepView::from).collect(),
        tasks: tasks::views(services, scope, tasks.items).await?,
        next_cursor,
    }))
}
