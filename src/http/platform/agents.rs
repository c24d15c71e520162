//! Agents and their profiles (platform-rest.md §8).

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{DONE, Done, Nothing, given, patch_of};
use crate::{
    domain::{
        action::Action,
        platform::{
            Map,
            profile::{AgentProfile, AgentProfileFields},
            refusal::Refusal,
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post, put},
    },
    platform::agents::Known,
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/agents", Action::AgentRead, || web::to(list))
        .about("Agents with their profiles, in display order")
        .gives::<AgentList>(200),
    put("/api/v1/agents/{id}", Action::AgentWrite, || web::to(register))
        .about("Make an agent known, or change its name and place")
        .body::<AgentBody>()
        .gives::<AgentView>(200)
        .versioned()
        .once(),
    post("/api/v1/agents/{id}/profiles", Action::AgentWrite, || web::to(create))
        .about("Make a profile of an agent")
        .body::<ProfileBody>()
        .needs(&["name"])
        .gives::<ProfileView>(201)
        .versioned()
        .once(),
    get("/api/v1/agent-profiles/{id}", Action::AgentRead, || web::to(read))
        .about("One profile of an agent")
        .gives::<ProfileView>(200)
        .versioned(),
    patch("/api/v1/agent-profiles/{id}", Action::AgentWrite, || web::to(update))
        .about("Change a profile of an agent")
        .body::<ProfileBody>()
        .gives::<ProfileView>(200)
        .versioned()
        .once(),
    delete("/api/v1/agent-profiles/{id}", Action::AgentWrite, || web::to(remove))
        .about("Delete a profile of an agent")
        .gives::<Done>(200)
        .versioned()
        .once(),
];

/// An agent, as it is to be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AgentBody {
    name: String,
    /// Place in lists, the smallest first.
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    position: i64,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    supports_mcp: bool,
}

/// A profile, as it is to be. What is left out stays as it is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ProfileBody {
    /// Needed for a new one.
    name: Option<String>,
    model: Option<String>,
    mode: Option<String>,
    /// Only of this workspace.
    workspace_id: Option<String>,
    enabled: Option<bool>,
    /// Everything else, as the agent's adapter wants it; replaces all of it, and what is named below is put into it.
    #[schema(value_type = Option<Object>)]
    settings: Option<Map>,
    kind: Option<String>,
    fallback_model: Option<String>,
    auto_fallback: Option<bool>,
    #[schema(value_type = Option<Object>)]
    config_options: Option<Map>,
    allow_indexing: Option<bool>,
    auto_approve: Option<bool>,
    #[schema(value_type = Option<Vec<Value>>)]
    cli_flags: Option<Vec<Value>>,
    #[schema(value_type = Option<Vec<Value>>)]
    env_vars: Option<Vec<Value>>,
    cli_passthrough: Option<bool>,
    command_prefix: Option<String>,
}

/// Fields of a profile that are kept among its settings: each takes the place of that entry only.
const KEPT_IN_SETTINGS: [&str; 10] = [
    "kind",
    "fallback_model",
    "auto_fallback",
    "config_options",
    "allow_indexing",
    "auto_approve",
    "cli_flags",
    "env_vars",
    "cli_passthrough",
    "command_prefix",
];

impl ProfileBody {
    /// What it names: fields, and entries of the settings.
    fn parts(&self) -> Result<(Map, Map), ApiError> {
        let (entries, fields) =
            patch_of(self)?.into_iter().partition(|(name, _)| KEPT_IN_SETTINGS.contains(&name.as_str()));
        Ok((fields, entries))
    }
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
struct AgentView {
    id: String,
    name: String,
    supports_mcp: bool,
    profiles: Vec<ProfileView>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<Known> for AgentView {
    fn from(Known { agent, profiles }: Known) -> Self {
        Self {
            id: agent.id,
            name: agent.name,
            supports_mcp: agent.supports_mcp,
            profiles: profiles.into_iter().map(ProfileView::from).collect(),
            created_at: agent.created_at,
            updated_at: agent.updated_at,
            version: agent.version,
        }
    }
}

/// A profile of an agent. What is not set in `settings` is false, empty or left out.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileView {
    id: String,
    agent_id: String,
    name: String,
    agent_display_name: String,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback_model: Option<String>,
    auto_fallback: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    config_options: Option<Map>,
    allow_indexing: bool,
    auto_approve: bool,
    #[schema(value_type = Vec<Value>)]
    cli_flags: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Value>>)]
    env_vars: Option<Vec<Value>>,
    cli_passthrough: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_prefix: Option<String>,
    enabled: bool,
    user_modified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<String>,
    #[schema(value_type = Object)]
    settings: Map,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<AgentProfile> for ProfileView {
    fn from(profile: AgentProfile) -> Self {
        let fields = profile.fields;
        let flag = |name: &str| fields.settings.get(name).and_then(Value::as_bool).unwrap_or_default();
        let text = |name: &str| fields.settings.get(name).and_then(Value::as_str).map(str::to_owned);
        let list = |name: &str| fields.settings.get(name).and_then(Value::as_array).cloned();
        Self {
            kind: text("kind").unwrap_or_default(),
            fallback_model: text("fallback_model"),
            config_options: fields.settings.get("config_options").and_then(Value::as_object).cloned(),
            env_vars: list("env_vars"),
            command_prefix: text("command_prefix"),
            auto_fallback: flag("auto_fallback"),
            allow_indexing: flag("allow_indexing"),
            auto_approve: flag("auto_approve"),
            cli_passthrough: flag("cli_passthrough"),
            cli_flags: list("cli_flags").unwrap_or_default(),
            id: profile.id,
            agent_id: profile.agent_id,
            name: fields.name,
            agent_display_name: profile.agent_display_name,
            model: fields.model,
            mode: given(&fields.mode),
            enabled: fields.enabled,
            user_modified: profile.version > 1,
            workspace_id: fields.workspace_id,
            settings: fields.settings,
            created_at: profile.created_at,
            updated_at: profile.updated_at,
            version: profile.version,
        }
    }
}

/// Agents.
#[derive(Debug, Serialize, ToSchema)]
struct AgentList {
    agents: Vec<AgentView>,
    total: usize,
}

async fn list(services: web::Data<Services>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let known = services.platform.agents.list(&scope(&request)).await?;
    let agents: Vec<_> = known.into_iter().map(AgentView::from).collect();
    let total = agents.len();
    Ok(HttpResponse::Ok().json(AgentList { agents, total }))
}

async fn register(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<AgentBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.agents.clone();
    let AgentBody { name, position, supports_mcp } = change.body;
    let work = async move { service.register(&change.by, &id, &name, position, supports_mcp, change.expected).await };
    let known = services.tasks.finish(work).await?;
    Ok(versioned(StatusCode::OK, known.agent.version, &AgentView::from(known)))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(answer(StatusCode::OK, services.platform.agents.profile(&scope(&request), &id).await?))
}

async fn create(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<ProfileBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.agents.clone();
    let (_, entries) = change.body.parts()?;
    let ProfileBody { name, model, mode, workspace_id, enabled, settings, .. } = change.body;
    let fields = AgentProfileFields {
        name: name.ok_or(Refusal::Required("name"))?,
        model: model.unwrap_or_default(),
        mode: mode.unwrap_or_default(),
        workspace_id: workspace_id.filter(|id| !id.is_empty()),
        enabled: enabled.unwrap_or(true),
        settings: settings.into_iter().flatten().chain(entries).collect(),
    };
    let work = async move { service.create_profile(&change.by, &id, fields).await };
    Ok(answer(StatusCode::CREATED, services.tasks.finish(work).await?))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<ProfileBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.agents.clone();
    let (mut patch, entries) = change.body.parts()?;
    if change.body.workspace_id.as_deref() == Some("") {
        patch.insert("workspace_id".to_owned(), Value::Null);
    }
    let work = async move { service.update_profile(&change.by, &id, &patch, &entries, change.expected).await };
    Ok(answer(StatusCode::OK, services.tasks.finish(work).await?))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.agents.clone();
    services.tasks.finish(async move { service.delete_profile(&change.by, &id, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

fn answer(status: StatusCode, profile: AgentProfile) -> HttpResponse {
    let version = profile.version;
    versioned(status, version, &ProfileView::from(profile))
}
