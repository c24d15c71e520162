//! What plugins keep in the browser for a user (contract/rest.md §8): `/api/plugins/{id}/user-state/…`.
//!
//! Order of checks: login, place, plugin, capability, body. The user is who asks; a plugin's process is never asked and
//! never sees a value.

use actix_web::{HttpMessage, HttpRequest, HttpResponse, http::header, web};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::{
    ApiError, Services,
    body::{self, Bounds},
    endpoint::{Endpoint, delete, get, put},
    query::Query,
};
use crate::{
    actors::PluginHandle,
    domain::{
        action::Action,
        clean,
        id::PluginId,
        principal::Principal,
        user_state::{MAX_DEPTH, MAX_WRITER_BYTES, Place, PlaceError, Scope, Stamp, compact},
    },
    platform::user_state::Put,
    store::user_state::{Owner, UserEntry, UserStateError},
};

const LIST: &str = "/api/plugins/{id}/user-state/{scope}/{scopeId}";
const ENTRY: &str = "/api/plugins/{id}/user-state/{scope}/{scopeId}/{key}";

pub static ROUTES: &[Endpoint] = &[
    get(LIST, Action::UserStateRead, || web::to(list))
        .about("What a plugin keeps for the user in a scope, by key")
        .gives::<Entries>(200),
    get(ENTRY, Action::UserStateRead, || web::to(read))
        .about("One value that a plugin keeps for the user")
        .gives::<Kept>(200),
    put(ENTRY, Action::UserStateWrite, || web::to(write))
        .about("Keep a value for the user; with `ifUnmodifiedSince` only if nobody wrote it after that")
        .body::<NewValue>()
        .gives::<Written>(200)
        .refuses(&[409]),
    delete(ENTRY, Action::UserStateWrite, || web::to(remove))
        .about("Forget a value of the user; it may be forgotten already")
        .query::<Removal>()
        .gives::<Removed>(200),
];

/// Why nothing is kept or shown.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The address names no place.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The plugin does not run.
    #[error("plugin \"{0}\" is not active")]
    NotActive(PluginId),
    /// Its manifest does not ask for it.
    #[error("plugin \"{0}\" does not declare the user_state capability")]
    NotDeclared(PluginId),
    /// There is no such entry.
    #[error("not found")]
    NoEntry,
    /// The store refuses or fails.
    #[error(transparent)]
    Store(#[from] UserStateError),
}

impl From<PlaceError> for ApiError {
    fn from(error: PlaceError) -> Self {
        Self::UserState(error.into())
    }
}

impl From<UserStateError> for ApiError {
    fn from(error: UserStateError) -> Self {
        Self::UserState(error.into())
    }
}

/// Entries by key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserStateEntries)]
struct Entries {
    entries: Vec<Entry>,
}

/// An entry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserStateEntry)]
struct Entry {
    key: String,
    /// Any JSON.
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
    /// RFC 3339 with nine digits behind the point.
    updated_at: String,
}

/// A value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserStateValue)]
struct Kept {
    /// Any JSON.
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
    /// RFC 3339 with nine digits behind the point.
    updated_at: String,
}

/// A value to be kept. Fields that are not known are left alone, as existing hosts do: bundles of plugins write it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewUserStateValue)]
struct NewValue {
    /// Any JSON; it must be there, and may be `null`.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = serde_json::Value, required = true)]
    value: Option<Box<RawValue>>,
    /// What the writer calls himself; whoever is told of the change is told this too.
    #[serde(default, deserialize_with = "body::or_default")]
    #[schema(max_length = 256)]
    writer_id: String,
    /// The `updatedAt` that was seen; empty is as left out.
    #[serde(default, deserialize_with = "body::or_default")]
    if_unmodified_since: String,
}

/// It is kept.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserStateWritten)]
struct Written {
    /// RFC 3339 with nine digits behind the point.
    updated_at: String,
}

/// Who forgets.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Removal {
    /// What the writer calls himself.
    #[param(max_length = 256)]
    writer_id: Option<String>,
}

/// It is forgotten.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UserStateRemoved)]
struct Removed {
    deleted: bool,
}

/// `null` is a value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// `GET …/{scope}/{scopeId}`.
async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (id, kind, scope_id) = path.into_inner();
    let user = user(&request)?;
    let scope = Scope::new(&kind, &scope_id)?;
    let plugin = plugin(&services, &id)?;
    let entries = services.browser.user_states.list(owner(&plugin, user), &scope).await?;
    let shown = |UserEntry { key, value, updated_at }| {
        Ok::<_, ApiError>(Entry { key, value: stored(value)?, updated_at: updated_at.text() })
    };
    Ok(fresh().json(Entries { entries: entries.into_iter().map(shown).collect::<Result<_, _>>()? }))
}

/// `GET …/{scope}/{scopeId}/{key}`.
async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String, String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (id, kind, scope_id, key) = path.into_inner();
    let user = user(&request)?;
    let place = Place::new(&kind, &scope_id, &key)?;
    let plugin = plugin(&services, &id)?;
    let found = services.browser.user_states.get(owner(&plugin, user), &place).await?;
    let (value, stamp) = found.ok_or(ApiError::UserState(Refused::NoEntry))?;
    Ok(fresh().json(Kept { value: stored(value)?, updated_at: stamp.text() }))
}

/// `PUT …/{scope}/{scopeId}/{key}`: finished even when the client hangs up, so that what is written is told.
async fn write(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String, String, String)>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let (id, kind, scope_id, key) = path.into_inner();
    let user = user(&request)?;
    let place = Place::new(&kind, &scope_id, &key)?;
    let plugin = plugin(&services, &id)?;
    let bounds = Bounds::new(services.limits.user_state_body_bytes, &services.timing);
    let put = wanted(body::json(&request, payload, bounds).await?)?;
    let states = services.browser.user_states.clone();
    let work = async move { states.put(owner(&plugin, user), &place, put, plugin.tenancy()).await };
    let stamp = services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(Written { updated_at: stamp.text() }))
}

/// `DELETE …/{scope}/{scopeId}/{key}`: finished even when the client hangs up.
async fn remove(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String, String, String)>,
    Query(removal): Query<Removal>,
) -> Result<HttpResponse, ApiError> {
    let (id, kind, scope_id, key) = path.into_inner();
    let user = user(&request)?;
    let place = Place::new(&kind, &scope_id, &key)?;
    let plugin = plugin(&services, &id)?;
    let writer = writer(removal.writer_id.unwrap_or_default())?;
    let states = services.browser.user_states.clone();
    let work = async move { states.delete(owner(&plugin, user), &place, writer).await };
    services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(Removed { deleted: true }))
}

/// What is one user's is kept by no cache on the way.
fn fresh() -> actix_web::HttpResponseBuilder {
    let mut answer = HttpResponse::Ok();
    answer.insert_header((header::CACHE_CONTROL, "private, no-cache"));
    answer
}

/// The text from the database goes out as it is: as a number of Rust it would lose digits.
fn stored(value: String) -> Result<Box<RawValue>, ApiError> {
    RawValue::from_string(value).map_err(ApiError::internal)
}

fn wanted(NewValue { value, writer_id, if_unmodified_since }: NewValue) -> Result<Put, ApiError> {
    let invalid = |text: &str| ApiError::Invalid(format!("invalid payload: {text}"));
    let value = value.ok_or_else(|| invalid("value required"))?;
    let too_deep = || invalid(&format!("value must be nested at most {MAX_DEPTH} deep"));
    let value = compact(&value).ok_or_else(too_deep)?;
    let since = match if_unmodified_since.as_str() {
        "" => None,
        text => Some(Stamp::parse(text).ok_or_else(|| invalid("ifUnmodifiedSince must be a time as RFC 3339"))?),
    };
    Ok(Put { value, since, writer: writer(writer_id)? })
}

/// It is shown to others: short, and nothing that could do more than name somebody.
fn writer(id: String) -> Result<String, ApiError> {
    if clean::single_line(&id, MAX_WRITER_BYTES) == id {
        return Ok(id);
    }
    let text = format!("invalid payload: writerId must be one line of at most {MAX_WRITER_BYTES} bytes");
    Err(ApiError::Invalid(text))
}

fn user(request: &HttpRequest) -> Result<&'static str, ApiError> {
    request.extensions().get::<Principal>().copied().and_then(Principal::user_id).ok_or(ApiError::Unauthenticated)
}

/// A plugin that may keep something now.
fn plugin(services: &Services, id: &str) -> Result<PluginHandle, ApiError> {
    let plugin = services.registry.plugin(id)?;
    let id = || plugin.id().clone();
    if plugin.run().is_none() {
        return Err(ApiError::UserState(Refused::NotActive(id())));
    }
    if !plugin.manifest().capabilities.user_state {
        return Err(ApiError::UserState(Refused::NotDeclared(id())));
    }
    Ok(plugin)
}

fn owner<'a>(plugin: &'a PluginHandle, user: &'a str) -> Owner<'a> {
    Owner { plugin: plugin.id(), user }
}
