//! Probes: alive and ready. Open to everyone, and telling nothing else.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    endpoint::{Endpoint, get},
};
use crate::domain::action::Action;

pub static ROUTES: &[Endpoint] = &[
    get("/health", Action::HealthRead, || web::to(alive)).about("Whether the process answers").gives::<Health>(200),
    get("/ready", Action::HealthRead, || web::to(ready))
        .about("Whether the database and the registry answer")
        .gives::<Health>(200),
];

/// It answers.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok` or `ready`.
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
