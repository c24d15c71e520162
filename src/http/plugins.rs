//! Plugins: list, read, sync, enable, disable, uninstall, logs (contract/rest.md §2).
//!
//! Commands that change something are finished even when the client hangs up.

use actix_web::{HttpResponse, web};
use serde::Serialize;

use super::{ApiError, Services};
use crate::{
    actors::PluginView,
    domain::{log_line::LogLine, record::PluginRecord},
};

/// `{"plugins":[…]}`.
#[derive(Serialize)]
struct PluginList {
    plugins: Vec<PluginRecord>,
}

/// `{"lines":[…]}`, oldest first.
#[derive(Serialize)]
struct Logs {
    lines: Vec<LogLine>,
}

#[derive(Serialize)]
struct Enabled {
    enabled: bool,
}

#[derive(Serialize)]
struct Disabled {
    disabled: bool,
}

#[derive(Serialize)]
struct Deleted {
    deleted: bool,
}

/// `GET /api/plugins`: every plugin, sorted by id.
pub async fn list(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let plugins = services.registry.list().await?.into_iter().map(|PluginView { record }| record).collect();
    Ok(HttpResponse::Ok().json(PluginList { plugins }))
}

/// `GET /api/plugins/{id}`: the record with the live status.
pub async fn read(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let view = services.registry.get(&id).await?;
    Ok(HttpResponse::Ok().json(view.record))
}

/// `GET /api/plugins/{id}/logs`: the last lines of the plugin's output.
pub async fn logs(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let lines = services.registry.logs(&id).await?;
    Ok(HttpResponse::Ok().json(Logs { lines }))
}

/// `POST /api/plugins/sync`: what was found in the plugins folder and what became of it. One sync at a time.
pub async fn sync(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let registry = services.registry.clone();
    let report = services.tasks.finish(async move { registry.sync().await }).await?;
    Ok(HttpResponse::Ok().json(report))
}

/// `POST /api/plugins/{id}/enable`: 200 when the plugin is active, also when it was already.
pub async fn enable(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (registry, id) = (services.registry.clone(), id.into_inner());
    services.tasks.finish(async move { registry.enable(&id).await }).await?;
    Ok(HttpResponse::Ok().json(Enabled { enabled: true }))
}

/// `POST /api/plugins/{id}/disable`: 200 when the plugin is disabled, also when it was already.
pub async fn disable(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (registry, id) = (services.registry.clone(), id.into_inner());
    services.tasks.finish(async move { registry.disable(&id).await }).await?;
    Ok(HttpResponse::Ok().json(Disabled { disabled: true }))
}

/// `DELETE /api/plugins/{id}`: process, versions, record, data and state are gone when this answers.
pub async fn uninstall(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (registry, id) = (services.registry.clone(), id.into_inner());
    services.tasks.finish(async move { registry.uninstall(&id).await }).await?;
    Ok(HttpResponse::Ok().json(Deleted { deleted: true }))
}
