//! The one table of routes. A handler is reachable through it only, and an entry has an action: a route without an
//! action cannot exist. The entries stand with their handlers.

use std::collections::BTreeMap;

use actix_web::{
    HttpMessage, HttpRequest, Route,
    dev::ServiceRequest,
    middleware::{Next, from_fn},
    web::{self, ServiceConfig},
};

use super::{
    ApiError, actions, auto_update, boot, branches, document, endpoint::Endpoint, events, gate, git_credentials,
    health, inbox, install, logs, marketplace, mcp, metrics, platform, plugins, references, secrets, settings, tools,
    trust, ui, upgrade, user_state, vault, webhooks, ws,
};

/// The routes of the host and its plugins, in the order in which paths are tried: what is asked for most comes first,
/// and fixed words before `{id}`.
static HOST: &[&[Endpoint]] = &[
    webhooks::ROUTES,
    actions::ROUTES,
    ui::ROUTES,
    user_state::ROUTES,
    boot::ROUTES,
    health::ROUTES,
    document::ROUTES,
    metrics::ROUTES,
    install::ROUTES,
    marketplace::ROUTES,
    auto_update::ROUTES,
    plugins::ROUTES,
    settings::ROUTES,
    upgrade::ROUTES,
    logs::ROUTES,
    events::ROUTES,
    secrets::ROUTES,
    vault::ROUTES,
    trust::ROUTES,
    inbox::ROUTES,
    ws::ROUTES,
    tools::ROUTES,
    mcp::ROUTES,
    references::ROUTES,
    git_credentials::ROUTES,
    branches::ROUTES,
];

/// Every route, in the order in which paths are tried.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    HOST.iter().chain(platform::ROUTES).copied().flatten()
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
