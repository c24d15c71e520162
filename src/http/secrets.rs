//! `/api/v1/secrets`: secrets that the operator keeps, and the plugins that may reveal each (the shape of
//! platform-rest.md §9, without reveal, copy and move). A value goes in and never out.

use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    change,
    endpoint::{Content, Endpoint, delete, get, post, put},
    query::Query,
};
use crate::{
    actors::RegistryError,
    domain::{
        action::Action,
        id::PluginId,
        shared_secret::{SecretFilter, SecretScope, SharedSecret, check_name},
    },
    vault::{NewSecret, SecretChange, SharedError},
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/secrets", Action::SecretRead, || web::to(list))
        .about("Secrets that the operator keeps, by name; never a value")
        .query::<Parameters>()
        .gives::<Items>(200),
    post("/api/v1/secrets", Action::SecretWrite, || web::to(create))
        .about("Keep a secret")
        .body::<Fields>()
        .needs(&["name"])
        .gives::<Item>(201)
        .refuses(&[404, 409]),
    get("/api/v1/secrets/{id}", Action::SecretRead, || web::to(read))
        .about("One secret, without its value")
        .gives::<Item>(200),
    put("/api/v1/secrets/{id}", Action::SecretWrite, || web::to(change))
        .about("Change what the body names of a secret")
        .body::<Fields>()
        .gives::<Item>(200)
        .refuses(&[409]),
    delete("/api/v1/secrets/{id}", Action::SecretWrite, || web::to(remove))
        .about("Delete a secret: no plugin can reveal it any more")
        .gives_of(204, Content::Empty),
    get("/api/v1/secrets/{id}/plugins", Action::SecretRead, || web::to(plugins))
        .about("The plugins that may reveal a secret")
        .gives::<Plugins>(200),
    put("/api/v1/secrets/{id}/plugins/{plugin}", Action::SecretShare, || web::to(share))
        .about("Let an installed plugin reveal a secret")
        .gives::<Plugins>(200)
        .refuses(&[504]),
    delete("/api/v1/secrets/{id}/plugins/{plugin}", Action::SecretShare, || web::to(unshare))
        .about("Let a plugin no more reveal a secret")
        .gives_of(204, Content::Empty),
];

/// JSON may write one byte of a value in six.
const ESCAPED: u64 = 6;

/// A secret as it is to be. An unknown field is refused: a misspelt `value` would be lost.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SecretFields)]
struct Fields {
    /// Needed for a new one.
    #[schema(
        max_length = 200,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    name: Option<String>,
    #[schema(value_type = Option<String>, format = Password, write_only)]
    value: Option<SecretString>,
    /// `workspace` goes with `workspace_id`; left out: what `workspace_id` implies.
    #[schema(pattern = "^(global|workspace)?$")]
    scope: Option<String>,
    #[schema(max_length = 512, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    workspace_id: Option<String>,
}

/// The query of the list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Of the whole host, or of workspaces.
    #[param(pattern = "^(global|workspace)?$")]
    scope: Option<String>,
    /// Of this workspace.
    #[param(max_length = 512, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    workspace_id: Option<String>,
    /// With those of the whole host.
    #[serde(default)]
    include_global: bool,
}

/// What is told of a secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Secret)]
struct Item {
    id: Uuid,
    name: String,
    scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<String>,
    has_value: bool,
    #[schema(value_type = Vec<String>)]
    plugins: Vec<PluginId>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

impl From<SharedSecret> for Item {
    fn from(secret: SharedSecret) -> Self {
        let SharedSecret { id, name, scope, has_value, plugins, created_at, updated_at } = secret;
        let workspace_id = scope.workspace_id().map(str::to_owned);
        Self { id, name, scope: scope.name(), workspace_id, has_value, plugins, created_at, updated_at }
    }
}

/// Secrets.
#[derive(Serialize, ToSchema)]
#[schema(as = SecretList)]
struct Items(Vec<Item>);

/// `{"plugins":[…]}`: who may reveal.
#[derive(Serialize, ToSchema)]
#[schema(as = SecretPlugins)]
struct Plugins {
    #[schema(value_type = Vec<String>)]
    plugins: Vec<PluginId>,
}

/// `POST /api/v1/secrets`: keeps a new one.
pub async fn create(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let Fields { name, value, scope, workspace_id } = fields(&services, &request, payload).await?;
    let name = check_name(name.unwrap_or_default())?;
    let of = SecretScope::new(scope, workspace_id)?;
    check_workspace(&services, &request, &of).await?;
    let new = NewSecret { name, scope: of, value: value.unwrap_or_default() };
    let vault = services.vault.clone();
    let made = services.tasks.finish(async move { vault.create_shared(new).await }).await?;
    Ok(HttpResponse::Created().json(Item::from(made)))
}

/// `GET /api/v1/secrets`: a bare array, by name.
pub async fn list(services: web::Data<Services>, Query(query): Query<Parameters>) -> Result<HttpResponse, ApiError> {
    let Parameters { scope, workspace_id, include_global } = query;
    let filter = SecretFilter::new(scope, workspace_id, include_global)?;
    let items = services.vault.list_shared(&filter).await?.into_iter().map(Item::from).collect();
    Ok(HttpResponse::Ok().json(Items(items)))
}

/// `GET /api/v1/secrets/{id}`.
pub async fn read(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let found = services.vault.shared(secret_id(&id)?).await?;
    Ok(HttpResponse::Ok().json(Item::from(found)))
}

/// `PUT /api/v1/secrets/{id}`: changes what the body names, keeps the rest.
pub async fn change(
    services: web::Data<Services>,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let id = secret_id(&id)?;
    let Fields { name, value, scope, workspace_id } = fields(&services, &request, payload).await?;
    let of = match (scope, workspace_id) {
        (None, None) => None,
        (scope, workspace_id) => Some(SecretScope::new(scope, workspace_id)?),
    };
    if let Some(of) = &of {
        check_workspace(&services, &request, of).await?;
    }
    let change = SecretChange { name: name.map(check_name).transpose()?, scope: of, value };
    let vault = services.vault.clone();
    let changed = services.tasks.finish(async move { vault.change_shared(id, change).await }).await?;
    Ok(HttpResponse::Ok().json(Item::from(changed)))
}

/// `DELETE /api/v1/secrets/{id}`: no plugin can reveal it any more.
pub async fn remove(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (vault, id) = (services.vault.clone(), secret_id(&id)?);
    services.tasks.finish(async move { vault.delete_shared(id).await }).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `GET /api/v1/secrets/{id}/plugins`: who may reveal it.
pub async fn plugins(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let SharedSecret { plugins, .. } = services.vault.shared(secret_id(&id)?).await?;
    Ok(HttpResponse::Ok().json(Plugins { plugins }))
}

/// `PUT /api/v1/secrets/{id}/plugins/{plugin}`: an installed plugin may reveal it.
pub async fn share(services: web::Data<Services>, path: web::Path<(String, String)>) -> Result<HttpResponse, ApiError> {
    let id = secret_id(&path.0)?;
    let plugin = services.registry.get(&path.1).await?.record.id().clone();
    let (vault, registry) = (services.vault.clone(), services.registry.clone());
    let shared = async move {
        vault.share(id, &plugin).await?;
        // An uninstall that came in between has taken the plugin's rights away before this one was there.
        if let Err(error @ RegistryError::NotFound(_)) = registry.get(plugin.as_str()).await {
            vault.unshare(id, &plugin).await?;
            return Err(error.into());
        }
        Ok::<_, ApiError>(vault.shared(id).await?)
    };
    let SharedSecret { plugins, .. } = services.tasks.finish(shared).await?;
    Ok(HttpResponse::Ok().json(Plugins { plugins }))
}

/// `DELETE /api/v1/secrets/{id}/plugins/{plugin}`: it may not any more; 204 also when it could not before.
pub async fn unshare(
    services: web::Data<Services>,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let id = secret_id(&path.0)?;
    let plugin = PluginId::new(&path.1).map_err(|_| RegistryError::NotFound(path.1.clone()))?;
    let vault = services.vault.clone();
    services.tasks.finish(async move { vault.unshare(id, &plugin).await }).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// A secret belongs to a workspace that is there.
async fn check_workspace(services: &Services, request: &HttpRequest, of: &SecretScope) -> Result<(), ApiError> {
    if let Some(id) = of.workspace_id() {
        services.platform.workspaces.get(&change::scope(request), id).await?;
    }
    Ok(())
}

async fn fields(services: &Services, request: &HttpRequest, payload: web::Payload) -> Result<Fields, ApiError> {
    let value = services.limits.secret_value_bytes.saturating_mul(ESCAPED);
    let bounds = Bounds::new(services.limits.request_bytes.saturating_add(value), &services.timing);
    body::secret_json(request, payload, bounds).await
}

/// What is no id is the id of no secret.
fn secret_id(text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| SharedError::NotFound.into())
}
