//! Plugins: list, read, sync, enable, disable, uninstall (contract/rest.md §2).
//!
//! Commands that change something are finished even when the client hangs up.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    endpoint::{Endpoint, delete, get, post},
};
use crate::{
    actors::{Figures, PluginView},
    domain::{action::Action, record::PluginRecord, sync::SyncReport},
    process::usage::Usage,
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/plugins", Action::PluginRead, || web::to(list))
        .about("Every plugin, by id")
        .gives::<PluginList>(200)
        .refuses(&[504]),
    post("/api/plugins/sync", Action::PluginSync, || web::to(sync))
        .about("Take in what was put into the plugins folder by hand")
        .gives::<SyncReport>(200)
        .refuses(&[409, 429, 504]),
    get("/api/plugins/{id}", Action::PluginRead, || web::to(read))
        .about("One plugin, and its process now")
        .gives::<PluginDetail>(200)
        .refuses(&[504]),
    delete("/api/plugins/{id}", Action::PluginUninstall, || web::to(uninstall))
        .about("Stop a plugin and remove everything of it")
        .gives::<Uninstalled>(200)
        .refuses(&[409, 504]),
    post("/api/plugins/{id}/enable", Action::PluginEnable, || web::to(enable))
        .about("Start a plugin; it may run already")
        .gives::<Enabled>(200)
        .refuses(&[409, 504]),
    post("/api/plugins/{id}/disable", Action::PluginDisable, || web::to(disable))
        .about("Stop a plugin and leave it off; it may be off already")
        .gives::<Disabled>(200)
        .refuses(&[409, 504]),
];

/// `{"plugins":[…]}`.
#[derive(Serialize, ToSchema)]
struct PluginList {
    plugins: Vec<PluginRecord>,
}

/// A record and how the plugin is now.
#[derive(Serialize, ToSchema)]
struct PluginDetail {
    #[serde(flatten)]
    record: PluginRecord,
    process: ProcessDetail,
}

/// `runtime` is the manifest's, hence the name. Times are `null` while there is nothing to tell; counts are since the
/// host's start.
#[derive(Serialize, ToSchema)]
struct ProcessDetail {
    pid: Option<u32>,
    #[serde(with = "time::serde::rfc3339::option")]
    started_at: Option<OffsetDateTime>,
    uptime_seconds: Option<f64>,
    /// Anonymous memory of the process and its group that is in RAM.
    memory_bytes: Option<u64>,
    /// User and system time of the process and its group.
    cpu_seconds: Option<f64>,
    /// Processes of the group.
    processes: Option<u64>,
    calls_in_flight: usize,
    restarts: u64,
    #[serde(with = "time::serde::rfc3339::option")]
    next_restart_at: Option<OffsetDateTime>,
    queue_depth: usize,
    buffer_depth: usize,
    delivered: u64,
    failed: u64,
    dropped: u64,
    expired: u64,
    #[serde(with = "time::serde::rfc3339::option")]
    last_delivery_at: Option<OffsetDateTime>,
}

impl ProcessDetail {
    fn new(figures: Figures, usage: Option<Usage>) -> Self {
        let Figures { process, restarts, next_restart_at, waiting, healthy, counters, last_delivery_at } = figures;
        let process = process.as_ref();
        Self {
            pid: process.map(|process| process.pid),
            started_at: process.map(|process| process.started_at),
            uptime_seconds: process.map(|process| milliseconds(process.uptime_seconds())),
            memory_bytes: usage.map(|usage| usage.memory_bytes),
            cpu_seconds: usage.map(|usage| milliseconds(usage.cpu_seconds)),
            processes: usage.map(|usage| usage.processes),
            calls_in_flight: process.map_or(0, |process| process.calls_in_flight()),
            restarts,
            next_restart_at,
            queue_depth: if healthy { waiting } else { 0 },
            buffer_depth: if healthy { 0 } else { waiting },
            delivered: counters.delivered,
            failed: counters.failed,
            dropped: counters.overflowed,
            expired: counters.expired,
            last_delivery_at,
        }
    }
}

/// Seconds with three digits behind the point.
fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// It runs.
#[derive(Serialize, ToSchema)]
struct Enabled {
    enabled: bool,
}

/// It is off.
#[derive(Serialize, ToSchema)]
struct Disabled {
    disabled: bool,
}

/// It is gone.
#[derive(Serialize, ToSchema)]
struct Uninstalled {
    deleted: bool,
}

/// `GET /api/plugins`: every plugin, sorted by id.
pub async fn list(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let plugins = services.registry.list().await?.into_iter().map(|PluginView { record, .. }| record).collect();
    Ok(HttpResponse::Ok().json(PluginList { plugins }))
}

/// `GET /api/plugins/{id}`: the record with the live status, and the process.
pub async fn read(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let PluginView { record, vitals } = services.registry.show(&id).await?;
    let figures = vitals.figures();
    let usage = match &figures.process {
        Some(process) => services.usage.sample(Some(process.pid)).await.of_group(process.pid),
        None => None,
    };
    Ok(HttpResponse::Ok().json(PluginDetail { record, process: ProcessDetail::new(figures, usage) }))
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
    Ok(HttpResponse::Ok().json(Uninstalled { deleted: true }))
}
