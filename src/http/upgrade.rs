//! What goes with a change of version: the terms of an install request, the answer of a dry run, and rollback.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    ApiError, Services,
    endpoint::{Endpoint, post},
};
use crate::{
    actors::{Installed, Preview},
    domain::{
        action::Action,
        consent::{Difference, Kinds, Terms},
        manifest::Manifest,
        package::{digest, hex},
        record::PluginRecord,
    },
};

pub static ROUTES: &[Endpoint] = &[post("/api/plugins/{id}/rollback", Action::PluginRollback, || web::to(rollback))
    .about("Go back to the version that the present one replaced")
    .gives::<RollbackAnswer>(200)
    .refuses(&[409, 422, 504])];

/// Query of `POST /api/plugins/install`.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// Only look: verify the package and tell what it would change.
    #[param(value_type = Option<bool>)]
    dry_run: Option<String>,
    /// What the operator consents to, between commas.
    #[param(pattern = "^((capabilities|signer|downgrade)(,(capabilities|signer|downgrade))*)?$")]
    accept: String,
    /// Take the package only when it has this SHA-256.
    #[param(pattern = "^([0-9a-fA-F]{64})?$")]
    sha256: String,
}

/// What a request asks for beside its package.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// Only look.
    pub dry_run: bool,
    /// What is accepted, and which package is meant.
    pub terms: Terms,
}

/// Understands the query. A misspelt value is refused: it would silently install what was only to be looked at.
pub fn asked(Parameters { dry_run, accept, sha256 }: Parameters) -> Result<Asked, ApiError> {
    let invalid = |text: &str| ApiError::Query(format!("invalid query: {text}"));
    let dry_run = match dry_run.as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(invalid("dry_run is true or false")),
    };
    let accept = Kinds::parse(&accept).map_err(|error| invalid(&error.to_string()))?;
    let sha256 = match sha256.as_str() {
        "" => None,
        text => Some(digest(text).ok_or_else(|| invalid("sha256 must be 64 hexadecimal digits"))?),
    };
    Ok(Asked { dry_run, terms: Terms { accept, sha256, ..Terms::default() } })
}

/// What a package is and would change (docs/api.md, "Dry run").
#[derive(Serialize, ToSchema)]
pub struct PreviewAnswer {
    dry_run: bool,
    manifest: Manifest,
    sha256: String,
    /// Bytes of the package.
    size: u64,
    /// Bytes of all files.
    unpacked_size: u64,
    files: usize,
    platforms: Vec<Platform>,
    /// `absent`, `unknown_key` or `trusted`.
    signature: &'static str,
    difference: Difference,
    warnings: Vec<String>,
}

/// What it runs on.
#[derive(Serialize, ToSchema)]
#[schema(as = PackagePlatform)]
struct Platform {
    platform: String,
    /// Whether its executable is in the package.
    present: bool,
}

/// The answer of a dry run.
pub fn preview(Preview { manifest, signature, facts, difference, warnings }: Preview) -> HttpResponse {
    let platforms = facts.platforms.into_iter().map(|(platform, present)| Platform { platform, present });
    HttpResponse::Ok().json(PreviewAnswer {
        dry_run: true,
        manifest,
        sha256: hex(&facts.sha256),
        size: facts.compressed,
        unpacked_size: facts.size,
        files: facts.files,
        platforms: platforms.collect(),
        signature: signature.word(),
        difference,
        warnings,
    })
}

/// What is installed now.
#[derive(Serialize, ToSchema)]
struct RollbackAnswer {
    plugin: PluginRecord,
    /// The change stands and the plugin does not run: another command came in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// `POST /api/plugins/{id}/rollback`: back to the version that the present one replaced; finished even when the client
/// hangs up.
pub async fn rollback(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (registry, id) = (services.registry.clone(), id.into_inner());
    let Installed { plugin, warning, .. } = services.tasks.finish(async move { registry.rollback(&id).await }).await?;
    Ok(HttpResponse::Ok().json(RollbackAnswer { plugin: plugin.record, warning }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query;

    fn read(query: &str) -> Result<Asked, String> {
        query::read(query.trim_start_matches('?')).and_then(asked).map_err(|error| error.to_string())
    }

    #[test]
    fn the_query_names_what_is_accepted_and_which_package_is_meant() {
        let plain = Asked { dry_run: false, terms: Terms::default() };
        assert_eq!(read("").as_ref(), Ok(&plain));
        assert_eq!(read("?dry_run=false&accept=&sha256=").as_ref(), Ok(&plain));
        let digits = "AB".repeat(32);
        let terms =
            Terms { accept: Kinds::parse("signer,downgrade").unwrap(), sha256: Some([0xab; 32]), ..Terms::default() };
        assert_eq!(
            read(&format!("?accept=downgrade%2Csigner&sha256={digits}&dry_run=true")),
            Ok(Asked { dry_run: true, terms })
        );
    }

    #[test]
    fn a_query_that_is_misspelt_is_refused_with_what_is_right() {
        for (query, text) in [
            ("?dry_run=yes", "dry_run is true or false"),
            ("?dry_run=", "dry_run is true or false"),
            ("?dry_run=true&dry_run=false", "duplicate field `dry_run`"),
            ("?dryrun=true", "unknown field `dryrun`, expected one of `dry_run`, `accept`, `sha256`"),
            ("?accept=all", "capabilities, signer, downgrade"),
            ("?sha256=abc", "64 hexadecimal digits"),
        ] {
            let error = read(query).unwrap_err();
            assert!(error.contains(text), "{query}: {error}");
        }
    }
}
