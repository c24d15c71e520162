//! References to entities of other systems over REST: the sources, a search, and whether references may be used. The
//! service is `actors::RegistryHandle`'s; the workspace is verified as an action's.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    change::scope,
    endpoint::{Endpoint, get, post},
};
use crate::{
    actors::{Found, OfferedSource, Verdict},
    domain::{
        action::Action,
        calls::{
            place::Wanted,
            reference::{DEFAULT_LIMIT, MAX_LIMIT, MAX_QUERY_BYTES, Reference},
        },
    },
};

/// What the host itself answers in the plugin's place.
const REFUSALS: &[u16] = &[400, 404, 408, 413, 429, 502, 503, 504];

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/references/sources", Action::ReferenceRead, || web::to(sources))
        .about("The reference sources of active plugins")
        .gives::<SourceList>(200),
    post("/api/v1/references/search", Action::ReferenceRead, || web::to(search))
        .about("Search a source for entities that may be referred to")
        .body::<Search>()
        .gives::<References>(200)
        .refuses(REFUSALS),
    post("/api/v1/references/authorize", Action::ReferenceUse, || web::to(authorize))
        .about("Whether references may be used in a workspace")
        .body::<Submission>()
        .gives::<Verdicts>(200)
        .refuses(&[404]),
];

/// Sources.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReferenceSources)]
struct SourceList {
    sources: Vec<SourceView>,
}

/// A source of an active plugin.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReferenceSource)]
struct SourceView {
    plugin: String,
    source: String,
    provider: String,
    kind: String,
    display_name: String,
    kind_label: String,
    /// Place in lists.
    order: i64,
}

impl From<OfferedSource> for SourceView {
    fn from(OfferedSource { plugin, source }: OfferedSource) -> Self {
        Self {
            plugin: plugin.to_string(),
            source: source.source,
            provider: source.provider,
            kind: source.kind,
            display_name: source.display_name,
            kind_label: source.kind_label,
            order: source.order,
        }
    }
}

/// A search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReferenceSearch)]
struct Search {
    /// From which workspace.
    workspace_id: String,
    /// In which source.
    source: String,
    /// What the user typed; at most 256 bytes.
    #[serde(default, deserialize_with = "body::or_default")]
    query: String,
    /// Most references to answer; left out: 10.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 50)]
    limit: Option<u32>,
}

/// What may be used, in the plugin's order.
#[derive(Debug, Serialize, ToSchema)]
struct References {
    references: Vec<Reference>,
    /// References that the plugin denies to this workspace.
    denied: usize,
    /// Candidates that were left out, because they are nothing that could be referred to.
    malformed: usize,
}

impl From<Found> for References {
    fn from(Found { references, malformed, denied }: Found) -> Self {
        Self { references, denied, malformed }
    }
}

/// References that somebody wants to use.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReferenceSubmission)]
struct Submission {
    /// In which workspace.
    workspace_id: String,
    /// As a search answered them.
    #[schema(max_items = 50)]
    references: Vec<Reference>,
}

/// A verdict for each reference, in their order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReferenceVerdicts)]
struct Verdicts {
    results: Vec<VerdictView>,
}

/// Whether a reference may be used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReferenceVerdict)]
struct VerdictView {
    #[serde(rename = "ref")]
    name: String,
    allowed: bool,
    /// Why not, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    reason: String,
}

impl From<Verdict> for VerdictView {
    fn from(Verdict { name, allowed, reason }: Verdict) -> Self {
        Self { name, allowed, reason }
    }
}

async fn sources(services: web::Data<Services>) -> Result<HttpResponse, ApiError> {
    let sources = services.registry.reference_sources().into_iter().map(SourceView::from).collect();
    Ok(HttpResponse::Ok().json(SourceList { sources }))
}

/// The search belongs to its client's connection: it is cancelled when that ends.
async fn search(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let Search { workspace_id, source, query, limit } = body::json(&request, payload, bounds).await?;
    if query.len() > MAX_QUERY_BYTES {
        return Err(ApiError::Invalid(format!("query must have at most {MAX_QUERY_BYTES} bytes")));
    }
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::Invalid(format!("limit must be between 1 and {MAX_LIMIT}")));
    }
    let workspace = workspace(&services, &request, workspace_id).await?;
    let found = services.registry.search_references(&source, &workspace, &query, limit).await?;
    Ok(HttpResponse::Ok().json(References::from(found)))
}

async fn authorize(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let bounds = Bounds::new(services.limits.platform_bytes, &services.timing);
    let Submission { workspace_id, references } = body::json(&request, payload, bounds).await?;
    if references.len() > MAX_LIMIT as usize {
        return Err(ApiError::Invalid(format!("references must be at most {MAX_LIMIT}")));
    }
    let workspace = workspace(&services, &request, workspace_id).await?;
    let verdicts = services.registry.authorize_references(&workspace, references).await;
    Ok(HttpResponse::Ok().json(Verdicts { results: verdicts.into_iter().map(VerdictView::from).collect() }))
}

/// The workspace, if the caller sees it.
async fn workspace(services: &Services, request: &HttpRequest, id: String) -> Result<String, ApiError> {
    let place = services.platform.place(&scope(request), &Wanted::Workspace(id)).await;
    Ok(place.map_err(ApiError::Place)?.workspace)
}
