//! Probes: alive and ready. Open to everyone, and telling nothing else.

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{ApiError, Services};

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

/// `GET /health`: 200 as long as the process answers.
pub async fn alive() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "ok" })
}

/// `GET /ready`: 200 when the database and the registry answer, else 503.
pub async fn ready(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    match services.registry.ready().await {
        true => Ok(HttpResponse::Ok().json(Health { status: "ready" })),
        false => Err(ApiError::NotReady),
    }
}
