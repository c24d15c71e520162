//! The marketplace over REST: looking for plugins, and the sources that list them (contract/rest.md §9). Installing one
//! is an install by its `package_url`.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    ApiError, Services,
    body::{self, Bounds},
    endpoint::{Endpoint, delete, get, patch, post},
    query::Query,
};
use crate::{
    domain::{
        action::Action,
        marketplace::{Offer, Search, Skipped, Sort, Source},
    },
    marketplace::{Health, Listing},
};

const SOURCES: &str = "/api/plugins/marketplace/sources";
const SOURCE: &str = "/api/plugins/marketplace/sources/{sid}";

pub static ROUTES: &[Endpoint] = &[
    get("/api/plugins/marketplace", Action::MarketplaceRead, || web::to(list))
        .about("What the sources offer, and how they are")
        .query::<Wanted>()
        .gives::<MarketView>(200)
        .refuses(&[504]),
    post("/api/plugins/marketplace/refresh", Action::MarketplaceRead, || web::to(refresh))
        .about("Fetch every index anew, then look for updates")
        .gives::<Refreshed>(200),
    get(SOURCES, Action::MarketplaceRead, || web::to(sources))
        .about("The sources, in the order in which they count")
        .gives::<Sources>(200),
    post(SOURCES, Action::MarketplaceWrite, || web::to(add))
        .about("Add a source")
        .body::<NewSource>()
        .gives::<Source>(201)
        .refuses(&[409]),
    patch(SOURCE, Action::MarketplaceWrite, || web::to(change))
        .about("Give a source another name, or say whether it is asked")
        .body::<SourceChange>()
        .gives::<Source>(200),
    delete(SOURCE, Action::MarketplaceWrite, || web::to(remove))
        .about("Delete a source; what was installed from it stays")
        .gives::<SourceDeleted>(200)
        .refuses(&[409]),
];

/// Which plugins, and in which order.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    /// Words that must all be in id, name, description, author or categories.
    q: String,
    /// Only those of this category.
    category: String,
    /// Left out: by stars. What has no stars, or no date, comes last.
    #[param(pattern = "^(stars|name|recent)?$")]
    sort: String,
}

/// `{"plugins":[…],"sources":[…]}`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Marketplace)]
struct MarketView {
    plugins: Vec<Offer>,
    sources: Vec<SourceView>,
}

/// A source and how it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketplaceSourceState)]
struct SourceView {
    id: String,
    name: String,
    url: String,
    enabled: bool,
    builtin: bool,
    /// Whether its index came the last time; while it does not, what it had is offered.
    healthy: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Entries of its index that are not offered, the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    skipped: Vec<Skipped>,
    /// How many these are.
    skipped_count: usize,
}

impl From<(Source, Health)> for SourceView {
    fn from((source, health): (Source, Health)) -> Self {
        let Source { id, name, url, enabled, builtin, created_at: _ } = source;
        let (skipped, skipped_count) = health.skipped();
        let (healthy, skipped) = (health.is_healthy(), skipped.to_vec());
        Self { id, name, url, enabled, builtin, healthy, error: health.error, skipped, skipped_count }
    }
}

/// The indexes were fetched, as far as they could be had.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketplaceRefreshed)]
struct Refreshed {
    refreshed: bool,
}

/// `{"sources":[…]}`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketplaceSources)]
struct Sources {
    sources: Vec<Source>,
}

/// A source to be added.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMarketplaceSource)]
struct NewSource {
    /// For people; its host when it is left out.
    name: Option<String>,
    /// Where its index is: https, or this machine.
    url: String,
}

/// What is to be changed of a source.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MarketplaceSourceChange)]
struct SourceChange {
    name: Option<String>,
    enabled: Option<bool>,
}

/// It is gone.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MarketplaceSourceDeleted)]
struct SourceDeleted {
    deleted: bool,
}

/// `GET /api/plugins/marketplace`: what is offered, compared with what is installed.
async fn list(services: web::Data<Services>, Query(wanted): Query<Wanted>) -> Result<HttpResponse, ApiError> {
    let sort = match wanted.sort.as_str() {
        "" => Sort::default(),
        word => Sort::of(word)
            .ok_or_else(|| ApiError::Query("invalid query: sort is one of stars, name, recent".to_owned()))?,
    };
    let search = Search::new(&wanted.q, &wanted.category, sort);
    let plugins = services.registry.list().await?.into_iter();
    let installed: BTreeMap<_, _> =
        plugins.map(|plugin| (plugin.record.id().to_string(), plugin.record.manifest.version)).collect();
    let Listing { offers, sources } = services.market.list(&installed, &search).await?;
    let sources = sources.into_iter().map(SourceView::from).collect();
    Ok(HttpResponse::Ok().json(MarketView { plugins: offers, sources }))
}

/// `POST /api/plugins/marketplace/refresh`.
async fn refresh(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    services.market.refresh().await?;
    Ok(HttpResponse::Ok().json(Refreshed { refreshed: true }))
}

/// `GET /api/plugins/marketplace/sources`.
async fn sources(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let sources = services.market.sources().await?;
    Ok(HttpResponse::Ok().json(Sources { sources }))
}

/// `POST /api/plugins/marketplace/sources`: 201 with the source.
async fn add(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let NewSource { name, url } = body::json(&request, payload, bounds).await?;
    let market = services.market.clone();
    let source = services.tasks.finish(async move { market.add(name.as_deref(), &url).await }).await?;
    Ok(HttpResponse::Created().json(source))
}

/// `PATCH /api/plugins/marketplace/sources/{sid}`: 200 with the source as it is then.
async fn change(
    services: web::Data<Services>,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let SourceChange { name, enabled } = body::json(&request, payload, bounds).await?;
    let market = services.market.clone();
    let work = async move { market.change(&id, name.as_deref(), enabled).await };
    let source = services.tasks.finish(work).await?;
    Ok(HttpResponse::Ok().json(source))
}

/// `DELETE /api/plugins/marketplace/sources/{sid}`.
async fn remove(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let market = services.market.clone();
    services.tasks.finish(async move { market.remove(&id).await }).await?;
    Ok(HttpResponse::Ok().json(SourceDeleted { deleted: true }))
}
