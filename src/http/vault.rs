//! `/api/v1/vault`: the vault's key, as the operator sees and changes it. No key ever goes out.

use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ApiError, Services,
    body::{self, Bounds},
};
use crate::vault::{Rotation, VaultStatus};

/// The body of a rotation; `{}` has a key made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rotate {
    key: Option<SecretString>,
}

#[derive(Serialize)]
struct Status {
    key_from: String,
    key_id: String,
    secrets: Map<String, Value>,
    pending: u64,
}

#[derive(Serialize)]
struct Rotated {
    key_id: String,
    resealed: u64,
}

/// `GET /api/v1/vault`.
pub async fn status(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let VaultStatus { key_from, key_id, secrets, pending } = services.vault.status().await?;
    let secrets = secrets.into_iter().map(|(kind, count)| (kind.name().to_owned(), count.into())).collect();
    Ok(HttpResponse::Ok().json(Status { key_from, key_id, secrets, pending }))
}

/// `POST /api/v1/vault/rotate`: answers when every secret is sealed with the new key.
pub async fn rotate(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let Rotate { key } = body::secret_json(&request, payload, bounds).await?;
    let vault = services.vault.clone();
    let Rotation { key_id, resealed } = services.tasks.finish(async move { vault.rotate(key).await }).await?;
    Ok(HttpResponse::Ok().json(Rotated { key_id, resealed }))
}
