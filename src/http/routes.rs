//! The one table of routes. A handler is reachable through it only, and an entry has an action: a route without an
//! action cannot exist.

use std::collections::BTreeMap;

use actix_web::{
    Route,
    http::Method,
    middleware::{Next, from_fn},
    web::{self, ServiceConfig},
};

use super::{ApiError, events, gate, health, install, logs, metrics, plugins, webhooks};
use crate::domain::action::Action;

/// One method of one path.
struct Endpoint {
    method: Method,
    path: &'static str,
    action: Action,
    handler: fn() -> Route,
}

const fn get(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint { method: Method::GET, path, action, handler }
}

const fn post(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint { method: Method::POST, path, action, handler }
}

const fn delete(path: &'static str, action: Action, handler: fn() -> Route) -> Endpoint {
    Endpoint { method: Method::DELETE, path, action, handler }
}

/// A webhook's key and what follows it; the handler takes both apart from the raw address.
const WEBHOOK: &str = "/api/plugins/{id}/webhooks/{tail:.*}";

/// Every route of the host.
static TABLE: [Endpoint; 13] = [
    get("/health", Action::HealthRead, || web::to(health::alive)),
    get("/ready", Action::HealthRead, || web::to(health::ready)),
    // The handler asks for `MetricsRead`, unless `metrics.public` is set.
    get("/metrics", Action::HealthRead, || web::to(metrics::read)),
    get("/api/plugins", Action::PluginRead, || web::to(plugins::list)),
    post("/api/plugins/install", Action::PluginInstall, || web::to(install::install)),
    get("/api/plugins/{id}", Action::PluginRead, || web::to(plugins::read)),
    delete("/api/plugins/{id}", Action::PluginUninstall, || web::to(plugins::uninstall)),
    post("/api/plugins/{id}/enable", Action::PluginEnable, || web::to(plugins::enable)),
    post("/api/plugins/{id}/disable", Action::PluginDisable, || web::to(plugins::disable)),
    get("/api/plugins/{id}/logs", Action::PluginLogs, || web::to(logs::read)),
    // Open to everyone; the handler asks for `PluginWebhookAuthenticated` when the manifest wants a login.
    get(WEBHOOK, Action::PluginWebhook, || web::to(webhooks::relay)),
    post(WEBHOOK, Action::PluginWebhook, || web::to(webhooks::relay)),
    post("/api/v1/events", Action::EventPublish, || web::to(events::publish)),
];

/// Registers the table. Paths are matched in the table's order; other methods of a known path get 405 with `Allow`,
/// unknown paths 404.
pub fn configure(config: &mut ServiceConfig) {
    let mut methods: BTreeMap<&str, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in &TABLE {
        methods.entry(endpoint.path).or_default().push(endpoint);
    }
    for endpoint in &TABLE {
        // Taken out with the path's first entry, so that each path is registered once and in order.
        let Some(endpoints) = methods.remove(endpoint.path) else { continue };
        let allow = endpoints.iter().map(|endpoint| endpoint.method.as_str()).collect::<Vec<_>>().join(", ");
        let resource = web::resource(endpoint.path).default_service(web::to(move || {
            let allow = allow.clone();
            async move { Err::<&str, _>(ApiError::Method { allow }) }
        }));
        config.service(endpoints.into_iter().fold(resource, |resource, endpoint| resource.route(route(endpoint))));
    }
    config.app_data(web::PathConfig::default().error_handler(|_, _| ApiError::NoRoute.into()));
    let query = |error: actix_web::error::QueryPayloadError| ApiError::Query(error.to_string());
    config.app_data(web::QueryConfig::default().error_handler(move |error, _| query(error).into()));
    config.default_service(web::to(|| async { Err::<&str, _>(ApiError::NoRoute) }));
}

fn route(endpoint: &Endpoint) -> Route {
    let action = endpoint.action;
    let gate = from_fn(move |request, next: Next<_>| gate::admit(action, request, next));
    (endpoint.handler)().method(endpoint.method.clone()).wrap(gate)
}

#[cfg(test)]
mod tests;
