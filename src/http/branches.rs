//! `GET /api/v1/repositories/{id}/branches`: what the plugin that owns the repository's provider says (contract/rest.md
//! §7, the reserved action `repositories.branches`).

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    change::scope,
    endpoint::{Endpoint, get},
    gate,
};
use crate::domain::{
    action::Action,
    calls::branches::{Branch, Listed},
};

pub static ROUTES: &[Endpoint] = &[get("/api/v1/repositories/{id}/branches", Action::RepositoryRead, || web::to(list))
    .about("Branches of a repository, as the plugin of its provider knows them")
    .gives::<Branches>(200)
    .refuses(&[404, 429, 502, 503, 504])];

/// Branches.
#[derive(Debug, Serialize, ToSchema)]
struct Branches {
    branches: Vec<BranchView>,
    /// Branches that were left out, because their name or commit cannot be one.
    malformed: usize,
}

/// A branch.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Branch)]
struct BranchView {
    name: String,
    /// The commit at its end, in hexadecimal; left out when the plugin does not say.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    commit: String,
    is_default: bool,
}

impl From<Branch> for BranchView {
    fn from(Branch { name, commit, is_default }: Branch) -> Self {
        Self { name, commit, is_default }
    }
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let actor = gate::principal(&request).user_id().ok_or(ApiError::Unauthenticated)?;
    let repository = services.platform.repositories.get(&scope(&request), &id).await?;
    let Listed { branches, malformed } = services.registry.branches(actor, &repository).await?;
    let branches = branches.into_iter().map(BranchView::from).collect();
    Ok(HttpResponse::Ok().json(Branches { branches, malformed }))
}
