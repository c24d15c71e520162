//! Executors and their profiles (platform-rest.md §8).

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    DONE, Done, Nothing, given,
    parts::{Listed, Part},
    patch_of, unsupported,
};
use crate::{
    domain::{
        action::Action,
        platform::{
            Map, Scope, merged,
            profile::{Executor, ExecutorFields, ExecutorProfile, ExecutorProfileFields},
            refusal::Refusal,
            words::ExecutorType,
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post},
        query::Query,
    },
    platform::executors::At,
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/executors", Action::ExecutorRead, || web::to(list))
        .about("Executors, the oldest first")
        .gives::<ExecutorList>(200),
    post("/api/v1/executors", Action::ExecutorWrite, || web::to(create))
        .about("Make an executor")
        .body::<ExecutorBody>()
        .needs(&["name", "type"])
        .gives::<ExecutorView>(201)
        .versioned()
        .once(),
    get("/api/v1/executors/{id}", Action::ExecutorRead, || web::to(read))
        .about("One executor")
        .gives::<ExecutorView>(200)
        .versioned(),
    patch("/api/v1/executors/{id}", Action::ExecutorWrite, || web::to(update))
        .about("Change an executor")
        .body::<ExecutorBody>()
        .gives::<ExecutorView>(200)
        .versioned()
        .once(),
    delete("/api/v1/executors/{id}", Action::ExecutorWrite, || web::to(remove))
        .about("Delete an executor; its profiles stay")
        .gives::<Done>(200)
        .versioned()
        .once(),
    get("/api/v1/executor-profiles", Action::ExecutorRead, || web::to(profiles))
        .about("Profiles of all executors, by executor and name")
        .query::<Part>()
        .gives::<ExecutorProfileList>(200),
    get("/api/v1/executors/{id}/profiles", Action::ExecutorRead, || web::to(profiles_of))
        .about("Profiles of an executor, by name")
        .query::<Part>()
        .gives::<ExecutorProfileList>(200),
    post("/api/v1/executors/{id}/profiles", Action::ExecutorWrite, || web::to(create_profile))
        .about("Make a profile of an executor")
        .body::<ExecutorProfileBody>()
        .needs(&["name"])
        .gives::<ExecutorProfileView>(201)
        .versioned()
        .once(),
    get("/api/v1/executors/{id}/profiles/{profile}", Action::ExecutorRead, || web::to(read_profile))
        .about("One profile of an executor")
        .gives::<ExecutorProfileView>(200)
        .versioned(),
    patch("/api/v1/executors/{id}/profiles/{profile}", Action::ExecutorWrite, || web::to(update_profile))
        .about("Change a profile of an executor")
        .body::<ExecutorProfileBody>()
        .gives::<ExecutorProfileView>(200)
        .versioned()
        .once(),
    delete("/api/v1/executors/{id}/profiles/{profile}", Action::ExecutorWrite, || web::to(remove_profile))
        .about("Delete a profile of an executor")
        .gives::<Done>(200)
        .versioned()
        .once(),
];

/// An executor, as it is to be. What is left out stays as it is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorBody {
    /// Needed for a new one.
    name: Option<String>,
    /// Needed for a new one.
    #[serde(rename = "type")]
    executor_type: Option<ExecutorType>,
    status: Option<String>,
    resumable: Option<bool>,
    /// Replaces all of it.
    #[schema(value_type = Option<Object>)]
    config: Option<Map>,
}

/// A profile, as it is to be. What is left out stays as it is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorProfileBody {
    /// Needed for a new one.
    name: Option<String>,
    mcp_policy: Option<String>,
    /// Replaces all of it.
    #[schema(value_type = Option<Object>)]
    config: Option<Map>,
    prepare_script: Option<String>,
    cleanup_script: Option<String>,
    #[serde(skip_serializing)]
    #[schema(ignore)]
    env_vars: Option<Value>,
}

impl ExecutorProfileBody {
    fn patch(&self) -> Result<Map, ApiError> {
        unsupported("env_vars", self.env_vars.as_ref())?;
        patch_of(self)
    }
}

/// An executor.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutorView {
    id: String,
    name: String,
    #[serde(rename = "type")]
    executor_type: ExecutorType,
    status: String,
    is_system: bool,
    resumable: bool,
    #[schema(value_type = Object)]
    config: Map,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<Executor> for ExecutorView {
    fn from(executor: Executor) -> Self {
        let fields = executor.fields;
        Self {
            id: executor.id,
            name: fields.name,
            executor_type: fields.executor_type,
            status: fields.status,
            is_system: fields.is_system,
            resumable: fields.resumable,
            config: fields.config,
            created_at: executor.created_at,
            updated_at: executor.updated_at,
            version: executor.version,
        }
    }
}

/// A profile of an executor.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutorProfileView {
    id: String,
    executor_id: String,
    /// Left out when the executor is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    executor_type: Option<ExecutorType>,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_policy: Option<String>,
    #[schema(value_type = Object)]
    config: Map,
    prepare_script: String,
    cleanup_script: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<ExecutorProfile> for ExecutorProfileView {
    fn from(profile: ExecutorProfile) -> Self {
        let fields = profile.fields;
        Self {
            id: profile.id,
            executor_id: profile.executor_id,
            executor_type: profile.executor_type,
            name: fields.name,
            mcp_policy: given(&fields.mcp_policy),
            config: fields.config,
            prepare_script: fields.prepare_script,
            cleanup_script: fields.cleanup_script,
            created_at: profile.created_at,
            updated_at: profile.updated_at,
            version: profile.version,
        }
    }
}

/// Executors.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutorList {
    executors: Vec<ExecutorView>,
    total: usize,
}

/// Profiles of executors.
#[derive(Debug, Serialize, ToSchema)]
struct ExecutorProfileList {
    profiles: Vec<ExecutorProfileView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn list(services: web::Data<Services>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let executors = services.platform.executors.list(&scope(&request)).await?;
    let executors: Vec<_> = executors.into_iter().map(ExecutorView::from).collect();
    let total = executors.len();
    Ok(HttpResponse::Ok().json(ExecutorList { executors, total }))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(answer(StatusCode::OK, services.platform.executors.get(&scope(&request), &id).await?))
}

async fn create(services: web::Data<Services>, change: Change<ExecutorBody>) -> Result<HttpResponse, ApiError> {
    let service = services.platform.executors.clone();
    let ExecutorBody { name, executor_type, status, resumable, config } = change.body;
    let fields = ExecutorFields {
        name: name.ok_or(Refusal::Required("name"))?,
        executor_type: executor_type.ok_or(Refusal::Required("type"))?,
        status: status.unwrap_or_else(|| "active".to_owned()),
        is_system: false,
        resumable: resumable.unwrap_or_default(),
        config: config.unwrap_or_default(),
    };
    let work = async move { service.create(&change.by, fields).await };
    Ok(answer(StatusCode::CREATED, services.tasks.finish(work).await?))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<ExecutorBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.executors.clone();
    let patch = patch_of(&change.body)?;
    let work = async move { service.update(&change.by, &id, &patch, change.expected).await };
    Ok(answer(StatusCode::OK, services.tasks.finish(work).await?))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.executors.clone();
    services.tasks.finish(async move { service.delete(&change.by, &id, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

async fn profiles(
    services: web::Data<Services>,
    request: HttpRequest,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    listed(&services, &scope(&request), None, &part).await
}

async fn profiles_of(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let executor = services.platform.executors.get(&scope, &id).await?;
    listed(&services, &scope, Some(&executor.id), &part).await
}

async fn listed(
    services: &Services,
    scope: &Scope,
    executor: Option<&str>,
    part: &Part,
) -> Result<HttpResponse, ApiError> {
    let service = &services.platform.executors;
    let page = async |page| match executor {
        None => service.profiles(scope, &page).await,
        Some(executor) => service.profiles_of(scope, executor, &page).await,
    };
    let listed = part.read(page, async || service.count_profiles(scope, executor).await).await?;
    let Listed { items: profiles, total, next_cursor } = listed.map(ExecutorProfileView::from);
    Ok(HttpResponse::Ok().json(ExecutorProfileList { profiles, total, next_cursor }))
}

/// A profile, by the two names in its path.
fn at(path: &(String, String)) -> At<'_> {
    At { executor_id: &path.0, profile_id: &path.1 }
}

async fn read_profile(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let profile = services.platform.executors.profile(&scope(&request), at(&path)).await?;
    Ok(profile_answer(StatusCode::OK, profile))
}

async fn create_profile(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<ExecutorProfileBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.executors.clone();
    let fields = merged(&ExecutorProfileFields::default(), &change.body.patch()?)?;
    let work = async move { service.create_profile(&change.by, &id, fields).await };
    Ok(profile_answer(StatusCode::CREATED, services.tasks.finish(work).await?))
}

async fn update_profile(
    services: web::Data<Services>,
    path: web::Path<(String, String)>,
    change: Change<ExecutorProfileBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.executors.clone();
    let patch = change.body.patch()?;
    let work = async move { service.update_profile(&change.by, at(&path), &patch, change.expected).await };
    Ok(profile_answer(StatusCode::OK, services.tasks.finish(work).await?))
}

async fn remove_profile(
    services: web::Data<Services>,
    path: web::Path<(String, String)>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.executors.clone();
    services.tasks.finish(async move { service.delete_profile(&change.by, at(&path), change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

fn answer(status: StatusCode, executor: Executor) -> HttpResponse {
    let version = executor.version;
    versioned(status, version, &ExecutorView::from(executor))
}

fn profile_answer(status: StatusCode, profile: ExecutorProfile) -> HttpResponse {
    let version = profile.version;
    versioned(status, version, &ExecutorProfileView::from(profile))
}
