//! Trusted keys: list, add, remove (docs/api.md, "Trusted keys").
//!
//! What counts is in `<home>/trust`; an install reads it anew. Nothing here touches plugins.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};

use super::{
    ApiError, Services,
    body::{self, Bounds},
};
use crate::{
    domain::{
        key::PublicKey,
        trust::{KeyName, Scope, TrustedKey},
    },
    store::trust::{Loaded, Skipped, TrustError},
};

/// JSON body of a new key.
#[derive(Deserialize)]
struct NewKey {
    name: String,
    /// Base64 of the 32 bytes, or PEM.
    key: String,
    /// Ids, or `*`.
    plugins: Vec<String>,
}

/// `{"keys":[…],"skipped":[…]}`, by name.
#[derive(Serialize)]
struct Keys<'a> {
    keys: &'a [TrustedKey],
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
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
