//! Repositories of workspaces (platform-rest.md §7, without branches and scripts).

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use super::{
    DONE, Done, Nothing,
    parts::{Listed, Part, flag},
    patch_of, unsupported,
};
use crate::{
    domain::{
        action::Action,
        platform::{
            Map, merged,
            repository::{Repository, RepositoryFields},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post},
        query::Query,
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/workspaces/{id}/repositories", Action::RepositoryRead, || web::to(list))
        .about("Repositories of a workspace, the newest first")
        .query::<RepositoryQuery>()
        .gives::<RepositoryList>(200),
    post("/api/v1/workspaces/{id}/repositories", Action::RepositoryWrite, || web::to(create))
        .about("Add a repository to a workspace")
        .body::<RepositoryFieldsBody>()
        .needs(&["name"])
        .gives::<RepositoryView>(201)
        .versioned()
        .once(),
    get("/api/v1/repositories/{id}", Action::RepositoryRead, || web::to(read))
        .about("One repository")
        .gives::<RepositoryView>(200)
        .versioned(),
    patch("/api/v1/repositories/{id}", Action::RepositoryWrite, || web::to(update))
        .about("Change a repository")
        .body::<RepositoryFieldsBody>()
        .gives::<RepositoryView>(200)
        .versioned()
        .once(),
    delete("/api/v1/repositories/{id}", Action::RepositoryWrite, || web::to(remove))
        .about("Take a repository out of the lists")
        .gives::<Done>(200)
        .versioned()
        .once(),
];

/// A repository, as it is to be. What is left out stays as it is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RepositoryFieldsBody {
    /// Needed for a new one.
    name: Option<String>,
    source_type: Option<String>,
    local_path: Option<String>,
    provider: Option<String>,
    provider_repo_id: Option<String>,
    provider_host: Option<String>,
    provider_scope: Option<String>,
    provider_owner: Option<String>,
    provider_name: Option<String>,
    /// User and password in it are not kept.
    remote_url: Option<String>,
    default_branch: Option<String>,
    worktree_branch_prefix: Option<String>,
    #[serde(skip_serializing)]
    #[schema(ignore)]
    worktree_branch_template: Option<Value>,
    #[serde(skip_serializing)]
    #[schema(ignore)]
    secret_bindings: Option<Value>,
    pull_before_worktree: Option<bool>,
    setup_script: Option<String>,
    cleanup_script: Option<String>,
    dev_script: Option<String>,
    copy_files: Option<String>,
}

impl RepositoryFieldsBody {
    fn patch(&self) -> Result<Map, ApiError> {
        unsupported("worktree_branch_template", self.worktree_branch_template.as_ref())?;
        unsupported("secret_bindings", self.secret_bindings.as_ref())?;
        patch_of(self)
    }
}

/// Which repositories.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct RepositoryQuery {
    /// Taken for the sake of existing clients; this host keeps no scripts beside the repository's own.
    #[param(value_type = Option<bool>)]
    include_scripts: Option<String>,
    /// Rows of a page; left out: the whole list, as far as 1000 rows.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next_cursor` of an answer to the same question.
    cursor: Option<String>,
}

/// A repository.
#[derive(Debug, Serialize, ToSchema)]
struct RepositoryView {
    id: String,
    workspace_id: String,
    name: String,
    source_type: String,
    local_path: String,
    provider: String,
    provider_repo_id: String,
    provider_host: String,
    provider_scope: String,
    provider_owner: String,
    provider_name: String,
    remote_url: String,
    default_branch: String,
    worktree_branch_prefix: String,
    /// Empty: branches have the prefix and the task's name.
    worktree_branch_template: String,
    pull_before_worktree: bool,
    setup_script: String,
    cleanup_script: String,
    dev_script: String,
    copy_files: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    scripts: Option<Vec<Value>>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<Repository> for RepositoryView {
    fn from(repository: Repository) -> Self {
        let fields = repository.fields;
        Self {
            id: repository.id,
            workspace_id: repository.workspace_id,
            name: fields.name,
            source_type: fields.source_type,
            local_path: fields.local_path,
            provider: fields.provider,
            provider_repo_id: fields.provider_repo_id,
            provider_host: fields.provider_host,
            provider_scope: fields.provider_scope,
            provider_owner: fields.provider_owner,
            provider_name: fields.provider_name,
            remote_url: fields.remote_url,
            default_branch: fields.default_branch,
            worktree_branch_prefix: fields.worktree_branch_prefix,
            worktree_branch_template: String::new(),
            pull_before_worktree: fields.pull_before_worktree,
            setup_script: fields.setup_script,
            cleanup_script: fields.cleanup_script,
            dev_script: fields.dev_script,
            copy_files: fields.copy_files,
            scripts: None,
            created_at: repository.created_at,
            updated_at: repository.updated_at,
            version: repository.version,
        }
    }
}

/// Repositories.
#[derive(Debug, Serialize, ToSchema)]
struct RepositoryList {
    repositories: Vec<RepositoryView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<RepositoryQuery>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.repositories, scope(&request));
    let with_scripts = flag("include_scripts", query.include_scripts.as_deref())?;
    let workspace = services.platform.workspaces.get(&scope, &id).await?.id;
    let page = async |page| service.list(&scope, &workspace, &page).await;
    let part = Part::new(query.limit, query.cursor);
    let listed = part.read(page, async || service.count(&scope, &workspace).await).await?;
    let view = |repository| RepositoryView { scripts: with_scripts.then(Vec::new), ..RepositoryView::from(repository) };
    let Listed { items: repositories, total, next_cursor } = listed.map(view);
    Ok(HttpResponse::Ok().json(RepositoryList { repositories, total, next_cursor }))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(answer(StatusCode::OK, services.platform.repositories.get(&scope(&request), &id).await?))
}

async fn create(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<RepositoryFieldsBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.repositories.clone();
    let fields = merged(&RepositoryFields::default(), &change.body.patch()?)?;
    let work = async move { service.create(&change.by, &id, fields).await };
    Ok(answer(StatusCode::CREATED, services.tasks.finish(work).await?))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<RepositoryFieldsBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.repositories.clone();
    let patch = change.body.patch()?;
    let work = async move { service.update(&change.by, &id, &patch, change.expected).await };
    Ok(answer(StatusCode::OK, services.tasks.finish(work).await?))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.repositories.clone();
    services.tasks.finish(async move { service.delete(&change.by, &id, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

fn answer(status: StatusCode, repository: Repository) -> HttpResponse {
    let version = repository.version;
    versioned(status, version, &RepositoryView::from(repository))
}
