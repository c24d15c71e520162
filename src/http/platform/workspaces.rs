//! Workspaces (platform-rest.md §3).

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{DONE, Done, given, parts::Part};
use crate::{
    domain::{
        action::Action,
        platform::workspace::{Workspace, WorkspaceDraft},
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post},
        query::Query,
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/workspaces", Action::WorkspaceRead, || web::to(list))
        .about("Workspaces, the newest first")
        .query::<Part>()
        .gives::<WorkspaceList>(200),
    post("/api/v1/workspaces", Action::WorkspaceWrite, || web::to(create))
        .about("Make a workspace with a default board")
        .body::<WorkspaceBody>()
        .needs(&["name"])
        .gives::<WorkspaceView>(200)
        .versioned()
        .once(),
    get("/api/v1/workspaces/{id}", Action::WorkspaceRead, || web::to(read))
        .about("One workspace")
        .gives::<WorkspaceView>(200)
        .versioned(),
    patch("/api/v1/workspaces/{id}", Action::WorkspaceWrite, || web::to(update))
        .about("Change a workspace")
        .body::<WorkspaceBody>()
        .gives::<WorkspaceView>(200)
        .versioned()
        .once(),
    delete("/api/v1/workspaces/{id}", Action::WorkspaceDelete, || web::to(remove))
        .about("Delete a workspace with everything in it")
        .body::<Confirmation>()
        .gives::<Done>(200)
        .versioned()
        .once(),
];

/// A workspace, as it is to be. What is left out stays as it is; an empty text takes away.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WorkspaceBody {
    /// Needed for a new one.
    #[schema(min_length = 1, max_length = 2048, pattern = "\\S")]
    name: Option<String>,
    description: Option<String>,
    owner_id: Option<String>,
    default_executor_id: Option<String>,
    default_environment_id: Option<String>,
    default_agent_profile_id: Option<String>,
    default_config_agent_profile_id: Option<String>,
    /// Start of the identifiers of its tasks: at most 16 capital letters and digits, a letter first.
    #[schema(pattern = "^([A-Z][A-Z0-9]{0,15})?$")]
    task_prefix: Option<String>,
}

impl From<WorkspaceBody> for WorkspaceDraft {
    fn from(body: WorkspaceBody) -> Self {
        Self {
            name: body.name,
            description: body.description,
            owner_id: body.owner_id,
            default_executor_id: body.default_executor_id,
            default_environment_id: body.default_environment_id,
            default_agent_profile_id: body.default_agent_profile_id,
            default_config_agent_profile_id: body.default_config_agent_profile_id,
            task_prefix: body.task_prefix,
        }
    }
}

/// The name of what is to be deleted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Confirmation {
    /// The workspace's name, typed again.
    confirm_name: String,
}

/// A workspace.
#[derive(Debug, Serialize, ToSchema)]
struct WorkspaceView {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    owner_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_executor_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_environment_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_agent_profile_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default_config_agent_profile_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_prefix: Option<String>,
    /// The number of the last task that has an identifier.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_sequence: Option<i64>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
    /// There when its deletion was begun.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    deleting: bool,
}

impl From<Workspace> for WorkspaceView {
    fn from(workspace: Workspace) -> Self {
        Self {
            task_sequence: (workspace.task_sequence > 0).then_some(workspace.task_sequence),
            task_prefix: given(&workspace.task_prefix),
            id: workspace.id,
            name: workspace.name,
            description: workspace.description,
            owner_id: workspace.owner_id,
            default_executor_id: workspace.default_executor_id,
            default_environment_id: workspace.default_environment_id,
            default_agent_profile_id: workspace.default_agent_profile_id,
            default_config_agent_profile_id: workspace.default_config_agent_profile_id,
            created_at: workspace.created_at,
            updated_at: workspace.updated_at,
            version: workspace.version,
            deleting: workspace.deleting,
        }
    }
}

/// Workspaces.
#[derive(Debug, Serialize, ToSchema)]
struct WorkspaceList {
    workspaces: Vec<WorkspaceView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.workspaces, scope(&request));
    let page = async |page| service.list(&scope, &page).await;
    let listed = part.read(page, async || service.count(&scope).await).await?.map(WorkspaceView::from);
    let (workspaces, total, next_cursor) = (listed.items, listed.total, listed.next_cursor);
    Ok(HttpResponse::Ok().json(WorkspaceList { workspaces, total, next_cursor }))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(answer(services.platform.workspaces.get(&scope(&request), &id).await?))
}

async fn create(services: web::Data<Services>, change: Change<WorkspaceBody>) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workspaces.clone();
    let work = async move { service.create(&change.by, &change.body.into()).await };
    Ok(answer(services.tasks.finish(work).await?))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<WorkspaceBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workspaces.clone();
    let work = async move { service.update(&change.by, &id, &change.body.into(), change.expected).await };
    Ok(answer(services.tasks.finish(work).await?))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Confirmation>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.workspaces.clone();
    let work = async move { service.delete(&change.by, &id, &change.body.confirm_name, change.expected).await };
    services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

fn answer(workspace: Workspace) -> HttpResponse {
    let version = workspace.version;
    versioned(StatusCode::OK, version, &WorkspaceView::from(workspace))
}
