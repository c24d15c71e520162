//! Workflows and their templates (platform-rest.md §4). Steps are `steps`' part.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use super::{
    DONE, Done, given,
    parts::{Listed, Part},
    unsupported,
};
use crate::{
    domain::{
        action::Action,
        platform::{
            Scope,
            refusal::{Kind, Refusal},
            template::{self, TEMPLATES, Template},
            words::StageType,
            workflow::{Workflow, WorkflowDraft},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post, put},
        query::Query,
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/workflows", Action::WorkflowRead, || web::to(list))
        .about("Workflows of a workspace, or of all")
        .query::<WorkflowQuery>()
        .gives::<WorkflowList>(200),
    get("/api/v1/workspaces/{id}/workflows", Action::WorkflowRead, || web::to(list_of_workspace))
        .about("Workflows of a workspace")
        .query::<Part>()
        .gives::<WorkflowList>(200),
    post("/api/v1/workflows", Action::WorkflowWrite, || web::to(create))
        .about("Make a workflow, with the steps of a template when one is named")
        .body::<NewWorkflow>()
        .gives::<WorkflowView>(201)
        .versioned()
        .once(),
    get("/api/v1/workflow/templates", Action::WorkflowRead, || web::to(templates))
        .about("Templates of workflows")
        .gives::<TemplateList>(200),
    get("/api/v1/workflow/templates/{id}", Action::WorkflowRead, || web::to(template))
        .about("One template")
        .gives::<TemplateAnswer>(200),
    get("/api/v1/workflows/{id}", Action::WorkflowRead, || web::to(read))
        .about("One workflow")
        .gives::<WorkflowView>(200)
        .versioned(),
    patch("/api/v1/workflows/{id}", Action::WorkflowWrite, || web::to(update))
        .about("Change a workflow")
        .body::<WorkflowBody>()
        .gives::<WorkflowView>(200)
        .versioned()
        .once(),
    delete("/api/v1/workflows/{id}", Action::WorkflowWrite, || web::to(remove))
        .about("Delete a workflow without tasks")
        .gives::<Done>(200)
        .versioned()
        .once(),
    put("/api/v1/workspaces/{id}/workflows/reorder", Action::WorkflowWrite, || web::to(reorder))
        .about("Put the workflows of a workspace into an order")
        .body::<Order>()
        .gives::<Done>(200)
        .once(),
];

/// A workflow, as it is to be. What is left out stays as it is; an empty text takes away.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WorkflowBody {
    name: Option<String>,
    description: Option<String>,
    prompt: Option<String>,
    agent_profile_id: Option<String>,
    hidden: Option<bool>,
}

/// A new workflow.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewWorkflow {
    workspace_id: String,
    /// Left out: the template's.
    name: Option<String>,
    description: Option<String>,
    prompt: Option<String>,
    agent_profile_id: Option<String>,
    hidden: Option<bool>,
    /// Its steps come along.
    workflow_template_id: Option<String>,
    #[schema(ignore)]
    style: Option<Value>,
}

/// The order.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Order {
    /// The first comes first; those that are left out come after, as they were.
    #[schema(max_items = 100)]
    workflow_ids: Vec<String>,
}

/// Which workflows.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct WorkflowQuery {
    /// Of this workspace; left out: of all.
    workspace_id: Option<String>,
    /// Rows of a page; left out: the whole list, as far as 1000 rows.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next_cursor` of an answer to the same question.
    cursor: Option<String>,
}

/// A workflow.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WorkflowView {
    id: String,
    workspace_id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_profile_id: Option<String>,
    /// Place in its workspace, the smallest first.
    sort_order: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<bool>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<Workflow> for WorkflowView {
    fn from(workflow: Workflow) -> Self {
        Self {
            id: workflow.id,
            workspace_id: workflow.workspace_id,
            name: workflow.name,
            description: workflow.description,
            prompt: given(&workflow.prompt),
            agent_profile_id: workflow.agent_profile_id,
            sort_order: workflow.sort_order,
            hidden: workflow.hidden.then_some(true),
            created_at: workflow.created_at,
            updated_at: workflow.updated_at,
            version: workflow.version,
        }
    }
}

/// Workflows.
#[derive(Debug, Serialize, ToSchema)]
struct WorkflowList {
    workflows: Vec<WorkflowView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A template.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateView {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    steps: Vec<TemplateStep>,
}

/// A step of a template.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateStep {
    name: &'static str,
    position: usize,
    color: &'static str,
    stage_type: StageType,
    is_start_step: bool,
}

impl From<&Template> for TemplateView {
    fn from(template: &Template) -> Self {
        let steps = template.steps.iter().enumerate().map(|(position, (name, color, stage_type, is_start_step))| {
            TemplateStep { name, position, color, stage_type: *stage_type, is_start_step: *is_start_step }
        });
        Self { id: template.id, name: template.name, description: template.description, steps: steps.collect() }
    }
}

/// Templates.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateList {
    templates: Vec<TemplateView>,
}

/// One template.
#[derive(Debug, Serialize, ToSchema)]
struct TemplateAnswer {
    template: TemplateView,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    Query(query): Query<WorkflowQuery>,
) -> Result<HttpResponse, ApiError> {
    let WorkflowQuery { workspace_id, limit, cursor } = query;
    let part = Part::new(limit, cursor);
    listed(&services, &scope(&request), &workspace_id.unwrap_or_default(), &part).await
}

async fn list_of_workspace(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let workspace = services.platform.workspaces.get(&scope, &id).await?;
    listed(&services, &scope, &workspace.id, &part).await
}

async fn listed(services: &Services, scope: &Scope, workspace: &str, part: &Part) -> Result<HttpResponse, ApiError> {
    let service = &services.platform.workflows;
    let page = async |page| service.list(scope, workspace, &page).await;
    let listed = part.read(page, async || service.count(scope, workspace).await).await?;
    let Listed { items: workflows, total, next_cursor } = listed.map(WorkflowView::from);
    Ok(HttpResponse::Ok().json(WorkflowList { workflows, total, next_cursor }))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(answer(StatusCode::OK, services.platform.workflows.get(&scope(&request), &id).await?))
}

async fn create(services: web::Data<Services>, change: Change<NewWorkflow>) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let NewWorkflow { workspace_id, name, description, prompt, agent_profile_id, hidden, workflow_template_id, style } =
        change.body;
    unsupported("style", style.as_ref())?;
    let draft = WorkflowDraft { name, description, prompt, agent_profile_id, hidden };
    let template = workflow_template_id.filter(|id| !id.is_empty());
    let work = async move { service.create(&change.by, &workspace_id, &draft, template.as_deref()).await };
    Ok(answer(StatusCode::CREATED, services.tasks.finish(work).await?))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<WorkflowBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let WorkflowBody { name, description, prompt, agent_profile_id, hidden } = change.body;
    let draft = WorkflowDraft { name, description, prompt, agent_profile_id, hidden };
    let work = async move { service.update(&change.by, &id, &draft, change.expected).await };
    Ok(answer(StatusCode::OK, services.tasks.finish(work).await?))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<super::Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    services.tasks.finish(async move { service.delete(&change.by, &id, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

async fn reorder(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Order>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workflows.clone();
    let work = async move { service.reorder(&change.by, &id, &change.body.workflow_ids).await };
    services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

async fn templates() -> HttpResponse {
    HttpResponse::Ok().json(TemplateList { templates: TEMPLATES.iter().map(TemplateView::from).collect() })
}

async fn template(id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let found = template::find(&id).ok_or_else(|| Refusal::not_found(Kind::WorkflowTemplate, &id))?;
    Ok(HttpResponse::Ok().json(TemplateAnswer { template: found.into() }))
}

fn answer(status: StatusCode, workflow: Workflow) -> HttpResponse {
    let version = workflow.version;
    versioned(status, version, &WorkflowView::from(workflow))
}
