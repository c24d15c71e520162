//! The one table of routes. A handler is reachable through it only, and an entry has an action: a route without an
//! action cannot exist.

use std::collections::BTreeMap;

use actix_web::{
    HttpMessage, HttpRequest, Route,
    dev::ServiceRequest,
    middleware::{Next, from_fn},
    web::{self, ServiceConfig},
};

use super::{
    ApiError, document,
    endpoint::{Endpoint, delete, get, patch, post, put},
    events, gate, health, inbox, install, logs, metrics, platform, plugins,
    query::Takes,
    secrets, settings, trust, upgrade, vault, webhooks,
};
use crate::domain::action::Action;

/// A webhook's key and what follows it; the handler takes both apart from the raw address.
const WEBHOOK: &str = "/api/plugins/{id}/webhooks/{tail:.*}";

/// The same for people.
const WEBHOOK_SHOWN: &str = "/api/plugins/{id}/webhooks/{key}";

/// Routes of the host and its plugins. Those of the platform stand with their handlers.
static HOST: &[Endpoint] = &[
    // First, because paths are tried in order and this one is asked for most. Open to everyone; the handler asks for
    // `PluginWebhookAuthenticated` when the manifest wants a login.
    get(WEBHOOK, Action::PluginWebhook, || web::to(webhooks::relay)).takes(Takes::Anything).shown_as(WEBHOOK_SHOWN),
    post(WEBHOOK, Action::PluginWebhook, || web::to(webhooks::relay)).takes(Takes::Anything).shown_as(WEBHOOK_SHOWN),
    get("/health", Action::HealthRead, || web::to(health::alive)),
    get("/ready", Action::HealthRead, || web::to(health::ready)),
    // The handler asks for `MetricsRead`, unless `metrics.public` is set.
    get("/api/openapi.json", Action::DocsRead, || web::to(document::read)),
    get("/api/docs", Action::DocsRead, || web::to(document::page)),
    get("/api/docs/{file:.*}", Action::DocsRead, || web::to(document::page_file)).shown_as("/api/docs/{file}"),
    get("/metrics", Action::HealthRead, || web::to(metrics::read)),
    get("/api/plugins", Action::PluginRead, || web::to(plugins::list)),
    post("/api/plugins/install", Action::PluginInstall, || web::to(install::install)).takes(Takes::Parameters),
    post("/api/plugins/sync", Action::PluginSync, || web::to(plugins::sync)),
    get("/api/plugins/{id}", Action::PluginRead, || web::to(plugins::read)),
    patch("/api/plugins/{id}", Action::PluginConfigWrite, || web::to(settings::update)),
    delete("/api/plugins/{id}", Action::PluginUninstall, || web::to(plugins::uninstall)),
    post("/api/plugins/{id}/enable", Action::PluginEnable, || web::to(plugins::enable)),
    post("/api/plugins/{id}/disable", Action::PluginDisable, || web::to(plugins::disable)),
    get("/api/plugins/{id}/config", Action::PluginConfigRead, || web::to(settings::read)),
    post("/api/plugins/{id}/rollback", Action::PluginRollback, || web::to(upgrade::rollback)),
    get("/api/plugins/{id}/logs", Action::PluginLogs, || web::to(logs::read)).takes(Takes::Parameters),
    post("/api/v1/events", Action::EventPublish, || web::to(events::publish)),
    get("/api/v1/secrets", Action::SecretRead, || web::to(secrets::list)).takes(Takes::Parameters),
    post("/api/v1/secrets", Action::SecretWrite, || web::to(secrets::create)),
    get("/api/v1/secrets/{id}", Action::SecretRead, || web::to(secrets::read)),
    put("/api/v1/secrets/{id}", Action::SecretWrite, || web::to(secrets::change)),
    delete("/api/v1/secrets/{id}", Action::SecretWrite, || web::to(secrets::remove)),
    get("/api/v1/secrets/{id}/plugins", Action::SecretRead, || web::to(secrets::plugins)),
    put("/api/v1/secrets/{id}/plugins/{plugin}", Action::SecretShare, || web::to(secrets::share)),
    delete("/api/v1/secrets/{id}/plugins/{plugin}", Action::SecretShare, || web::to(secrets::unshare)),
    get("/api/v1/vault", Action::VaultRead, || web::to(vault::status)),
    post("/api/v1/vault/rotate", Action::VaultRotate, || web::to(vault::rotate)),
    get("/api/v1/trust/keys", Action::TrustRead, || web::to(trust::list)),
    post("/api/v1/trust/keys", Action::TrustWrite, || web::to(trust::add)),
    delete("/api/v1/trust/keys/{name}", Action::TrustWrite, || web::to(trust::remove)),
    get("/api/v1/inbox", Action::InboxRead, || web::to(inbox::list)).takes(Takes::Parameters),
    post("/api/v1/inbox/{id}/read", Action::InboxMarkRead, || web::to(inbox::mark_read)),
    post("/api/v1/inbox/{id}/dismiss", Action::InboxDismiss, || web::to(inbox::dismiss)),
];

/// Every route, in the order in which paths are tried.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    [HOST].into_iter().chain(platform::ROUTES.iter().copied()).flatten()
}

/// The path of the route that took a request, as it is shown in figures, spans and log lines. Asking actix for it would
/// match the address against every pattern again.
#[derive(Clone, Copy)]
pub struct Pattern(pub &'static str);

/// Registers the table. Paths are matched in the table's order; other methods of a known path get 405 with `Allow`,
/// unknown paths 404.
pub fn configure(config: &mut ServiceConfig) {
    let mut methods: BTreeMap<&str, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in all() {
        methods.entry(endpoint.path).or_default().push(endpoint);
    }
    for endpoint in all() {
        // Taken out with the path's first entry, so that each path is registered once and in order.
        let Some(endpoints) = methods.remove(endpoint.path) else { continue };
        let allow = endpoints.iter().map(|endpoint| endpoint.method.as_str()).collect::<Vec<_>>().join(", ");
        let shown = endpoint.shown;
        let resource = web::resource(endpoint.path).default_service(web::to(move |request: HttpRequest| {
            let allow = allow.clone();
            request.extensions_mut().insert(Pattern(shown));
            async move { Err::<&str, _>(ApiError::Method { allow }) }
        }));
        config.service(endpoints.into_iter().fold(resource, |resource, endpoint| resource.route(route(endpoint))));
    }
    config.app_data(web::PathConfig::default().error_handler(|_, _| ApiError::NoRoute.into()));
    config.default_service(web::to(|| async { Err::<&str, _>(ApiError::NoRoute) }));
}

fn route(endpoint: &Endpoint) -> Route {
    let (action, takes, shown) = (endpoint.action, endpoint.takes, endpoint.shown);
    let gate = from_fn(move |request: ServiceRequest, next: Next<_>| {
        request.extensions_mut().insert(Pattern(shown));
        gate::admit(action, takes, request, next)
    });
    (endpoint.handler)().method(endpoint.method.clone()).wrap(gate)
}

#[cfg(test)]
mod tests;
