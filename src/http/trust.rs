//! Trusted keys: list, add, remove (docs/api.md, "Trusted keys").
//!
//! What counts is in `<home>/trust`; an install reads it anew. Nothing here touches plugins.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    endpoint::{Endpoint, delete, get, post},
};
use crate::{
    domain::{
        action::Action,
        key::PublicKey,
        trust::{KeyName, Scope, TrustedKey},
    },
    store::trust::{Loaded, Skipped, TrustError},
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/trust/keys", Action::TrustRead, || web::to(list))
        .about("The keys whose signatures count, and the files that hold none")
        .gives::<Keys<'_>>(200),
    post("/api/v1/trust/keys", Action::TrustWrite, || web::to(add))
        .about("Trust a key from the next install on")
        .body::<NewKey>()
        .gives::<TrustedKey>(201)
        .refuses(&[409]),
    delete("/api/v1/trust/keys/{name}", Action::TrustWrite, || web::to(remove))
        .about("Trust a key no more; what it signed and is installed stays")
        .gives::<Deleted>(200),
];

/// A key to be trusted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTrustedKey)]
struct NewKey {
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    name: String,
    /// Base64 of the 32 bytes, or PEM.
    key: String,
    /// Ids, or `*`.
    #[schema(min_items = 1)]
    plugins: Vec<String>,
}

/// `{"keys":[…],"skipped":[…]}`, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = TrustedKeys)]
struct Keys<'a> {
    keys: &'a [TrustedKey],
    skipped: Vec<Skipped>,
}

/// Its file is gone.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedKey)]
struct Deleted {
    deleted: bool,
    /// Whether it was a key that counted until now.
    trusted: bool,
}

/// `GET /api/v1/trust/keys`: the keys that count now, and the files that do not.
pub async fn list(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let trust = services.trust.clone();
    let Loaded { keys, skipped } = blocking(move || Ok(trust.load()?)).await?;
    Ok(HttpResponse::Ok().json(Keys { keys: keys.keys(), skipped }))
}

/// `POST /api/v1/trust/keys`: 201 with the key; it counts from the next install on.
pub async fn add(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let NewKey { name, key, plugins } = body::json(&request, payload, bounds).await?;
    let invalid = |field: &str, error: &dyn std::error::Error| ApiError::Invalid(format!("{field}: {error}"));
    let key = TrustedKey {
        name: KeyName::new(&name).map_err(|error| invalid("name", &error))?,
        key: PublicKey::parse(&key).map_err(|error| invalid("key", &error))?,
        plugins: Scope::new(plugins.iter().map(String::as_str)).map_err(|error| invalid("plugins", &error))?,
    };
    let trust = services.trust.clone();
    let work = blocking(move || trust.add(&key).map(|()| key));
    let key = services.tasks.finish(work).await?;
    tracing::info!(key.name = %key.name, key = %key.key, plugins = ?key.plugins.words(), "a key is trusted from now on");
    Ok(HttpResponse::Created().json(key))
}

/// `DELETE /api/v1/trust/keys/{name}`: no longer trusted; what it signed and is installed stays as it is.
pub async fn remove(services: web::Data<Services>, name: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let name = KeyName::new(&name).map_err(|error| ApiError::Invalid(error.to_string()))?;
    let (trust, doomed) = (services.trust.clone(), name.clone());
    let trusted = services.tasks.finish(blocking(move || trust.remove(&doomed))).await?;
    tracing::info!(key.name = %name, trusted, "the file of a key was removed, it is no longer trusted");
    Ok(HttpResponse::Ok().json(Deleted { deleted: true, trusted }))
}

/// Runs file work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TrustError> + Send + 'static,
) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(ApiError::internal(error)),
    }
}
