//! Which plugins are updated automatically: the host's setting, and an operator's word on one plugin (contract/rest.md
//! §2). Making the updates is `marketplace`'s part.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    endpoint::{Endpoint, get, put},
};
use crate::domain::{action::Action, record::PluginRecord};

pub static ROUTES: &[Endpoint] = &[
    get("/api/plugins/settings", Action::PluginRead, || web::to(read))
        .about("What holds for plugins whose record does not say")
        .gives::<PluginSettings>(200),
    put("/api/plugins/settings", Action::PluginAutoUpdate, || web::to(write))
        .about("Say what holds for plugins whose record does not say")
        .body::<PluginSettings>()
        .gives::<PluginSettings>(200),
    put("/api/plugins/{id}/auto-update", Action::PluginAutoUpdate, || web::to(write_one))
        .about("Say whether a plugin is updated automatically, or that it follows the host's setting")
        .body::<AutoUpdate>()
        .gives::<PluginRecord>(200)
        .refuses(&[409, 504]),
];

/// What holds for plugins whose record does not say.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PluginSettings {
    /// Whether they are updated automatically.
    auto_update_default: bool,
}

/// An operator's word on one plugin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct AutoUpdate {
    /// `null`: it follows the host's setting. It must be said: an empty body is a mistake.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required = true)]
    auto_update: Option<bool>,
}

/// `GET /api/plugins/settings`.
async fn read(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let auto_update_default = services.market.auto_update_default().await?;
    Ok(HttpResponse::Ok().json(PluginSettings { auto_update_default }))
}

/// `PUT /api/plugins/settings`: 200 with the same.
async fn write(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let settings: PluginSettings = body::json(&request, payload, bounds).await?;
    let (market, on) = (services.market.clone(), settings.auto_update_default);
    services.tasks.finish(async move { market.set_auto_update_default(on).await }).await?;
    Ok(HttpResponse::Ok().json(settings))
}

/// `PUT /api/plugins/{id}/auto-update`: 200 with the record.
async fn write_one(
    services: web::Data<Services>,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let AutoUpdate { auto_update } = body::json(&request, payload, bounds).await?;
    let (registry, market) = (services.registry.clone(), services.market.clone());
    let work = async move {
        let plugin = registry.set_auto_update(&id, auto_update).await?;
        tracing::info!(plugin.id = %plugin.record.id(), auto_update, "the operator's word on automatic updates");
        market.look_for_updates();
        Ok::<_, crate::actors::RegistryError>(plugin)
    };
    let plugin = services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(plugin.record))
}
