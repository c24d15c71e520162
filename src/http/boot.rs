//! What the browser application asks for first (contract/rest.md §10): `GET /api/v1/app-state` and
//! `GET /api/v1/features`. Open to everyone: who is not logged in learns what he needs for that.

use actix_web::{HttpMessage, HttpRequest, HttpResponse, http::header, web};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    ApiError, Services,
    endpoint::{Endpoint, get},
    query::Query,
};
use crate::domain::{
    action::Action,
    boot::{self, Auth, BootPayload, Features, InitialState, PluginEntry, Route, Runtime},
    principal::Principal,
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/app-state", Action::BootRead, || web::to(app_state))
        .about("What the browser application begins with: features, login, plugins")
        .query::<AppStateQuery>()
        .gives::<BootPayload>(200),
    get("/api/v1/features", Action::BootRead, || web::to(features))
        .about("What the host offers")
        .gives::<Features>(200),
];

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
struct AppStateQuery {
    /// The page that is to be shown, with a leading slash.
    #[param(max_length = 2048)]
    path: String,
}

impl Default for AppStateQuery {
    fn default() -> Self {
        Self { path: "/".to_owned() }
    }
}

/// `GET /api/v1/app-state`.
async fn app_state(
    services: web::Data<Services>,
    request: HttpRequest,
    Query(query): Query<AppStateQuery>,
) -> Result<HttpResponse, ApiError> {
    let route = Route::at(&query.path).map_err(|fault| ApiError::Query(format!("invalid query: {fault}")))?;
    let principal = request.extensions().get::<Principal>().copied().unwrap_or(Principal::Anonymous);
    let active = services.registry.active();
    let providers = active.iter().flat_map(|plugin| boot::sso_providers(plugin.id(), plugin.manifest())).collect();
    let features = services.browser.features;
    let entry = |plugin: &crate::actors::PluginHandle| PluginEntry::of(plugin.id(), plugin.manifest());
    let payload = BootPayload {
        version: boot::VERSION,
        route,
        runtime: Runtime::default(),
        initial_state: InitialState { features, auth: Auth::of(principal, providers) },
        plugins: if features.plugins { active.iter().filter_map(entry).collect() } else { Vec::new() },
    };
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(payload))
}

/// `GET /api/v1/features`.
async fn features(services: web::Data<Services>) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-cache")).json(services.browser.features)
}
