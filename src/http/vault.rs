//! `/api/v1/vault`: the vault's key, as the operator sees and changes it. No key ever goes out.

use actix_web::{HttpRequest, HttpResponse, web};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    endpoint::{Endpoint, get, post},
};
use crate::{
    domain::action::Action,
    vault::{Rotation, VaultStatus},
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/vault", Action::VaultRead, || web::to(status))
        .about("Which key the vault has, and how many secrets")
        .gives::<Status>(200),
    post("/api/v1/vault/rotate", Action::VaultRotate, || web::to(rotate))
        .about("Seal every secret with another key")
        .body::<Rotate>()
        .gives::<Rotated>(200)
        .refuses(&[409]),
];

/// The new key; `{}` has one made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Rotate {
    /// 32 bytes, as 64 hexadecimal digits or in base64.
    #[schema(value_type = Option<String>, format = Password, write_only, pattern = "^([0-9a-fA-F]{64}|[A-Za-z0-9+/]{43}=)$")]
    key: Option<SecretString>,
}

/// The vault.
#[derive(Serialize, ToSchema)]
#[schema(as = VaultStatus)]
struct Status {
    /// The key file, or the variable.
    key_from: String,
    /// Tells keys apart, and nothing about them.
    key_id: String,
    /// How many, by kind.
    #[schema(value_type = Object)]
    secrets: Map<String, Value>,
    /// Those that are not sealed with the present key.
    pending: u64,
}

/// Every secret has the new key.
#[derive(Serialize, ToSchema)]
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
