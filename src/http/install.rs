//! `POST /api/plugins/install`: a package as multipart field `package`, or JSON `{"url"}` (contract/rest.md §3).
//!
//! The package goes to disk as it comes and is never whole in memory. From the moment the host has it, or has its
//! address, the install finishes even when the client hangs up; an upload that breaks off leaves nothing. What comes
//! from an address is held against the digest that the request or a source of the marketplace says, before anything of
//! it is read.

use std::time::Duration;

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::{HttpRequest, HttpResponse, http::header, web};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, BodyError, Bounds},
    endpoint::{Content, Endpoint, post, shape},
    query::Query,
    upgrade::{self, Asked, PreviewAnswer},
};
use crate::{
    actors::{Installed, Preview},
    domain::{
        action::Action,
        clean,
        marketplace::{self, ListedAs},
        package::{Digest, Limits, PackageError, digest},
        record::PluginRecord,
    },
    marketplace::MarketError,
    store::packages::{PackageStore, StageError, Staged},
};

pub static ROUTES: &[Endpoint] = &[post("/api/plugins/install", Action::PluginInstall, || web::to(install))
    .about("Install a package, or upgrade to it: uploaded, or fetched from an address; or only look at it")
    .query::<upgrade::Parameters>()
    .body_of(Content::Form(FIELD, shape::<Address>))
    .gives::<InstallAnswer>(201)
    .gives::<PreviewAnswer>(200)
    .refuses(&[404, 409, 422, 429, 502, 504, 507])];

/// Name of the multipart field.
const FIELD: &str = "package";

/// Longest part of another library's text in a message, in bytes.
const SHOWN_BYTES: usize = 200;

/// Text for a JSON body that is not understood (contract/rest.md §3).
const NO_ADDRESS: &str = "invalid payload: url required (or a multipart \"package\" upload)";

/// Why an upload is no package upload. Its texts are for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UploadError {
    /// Not multipart as RFC 7578 has it.
    #[error("invalid multipart body: {0}")]
    Malformed(String),
    /// No field of the name.
    #[error("missing multipart field \"{FIELD}\"")]
    MissingField,
    /// The other fields are too large together (`limits.request_bytes`).
    #[error("too many bytes in fields other than \"{FIELD}\"")]
    TooMuchBeside,
    /// Two fields of the name: nobody can tell which one is meant.
    #[error("more than one multipart field \"{FIELD}\": upload one package")]
    TwoPackages,
}

/// Where to fetch a package from. An unknown field is refused: a misspelt `package_sha256` would hold nothing against
/// it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PackageAddress)]
struct Address {
    /// http or https, of a public address unless the settings say otherwise.
    #[schema(pattern = "^https?://")]
    url: String,
    /// The SHA-256 that the package must have; any when it is left out or empty and no source of the marketplace says
    /// one.
    #[schema(pattern = "^([0-9a-fA-F]{64})?$")]
    package_sha256: Option<String>,
}

/// Of that, what the contract's text is about.
#[derive(Deserialize)]
struct Named {
    url: String,
}

impl Named {
    /// Whether an address is said, whatever else is.
    fn is_in(bytes: &[u8]) -> bool {
        body::parse::<Self>(bytes).is_ok_and(|Self { url }| !url.trim().is_empty())
    }
}

/// A package to be fetched.
struct Wanted {
    url: String,
    sha256: Option<Digest>,
}

/// What was installed.
#[derive(Serialize, ToSchema)]
struct InstallAnswer {
    plugin: PluginRecord,
    /// Installed, but it did not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// What the operator should know about the package.
    warnings: Vec<String>,
}

/// The handler.
pub async fn install(
    services: web::Data<Services>,
    Query(query): Query<upgrade::Parameters>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let mut asked = upgrade::asked(query)?;
    let slot = services.install_slots.clone().try_acquire_owned().map_err(|_| ApiError::TooManyInstalls)?;
    let host = services.clone().into_inner();
    let source = match is_multipart(&request) {
        true => Source::Staged(upload(&services, &request, payload).await?),
        false => Source::Address(address(&services, &request, payload).await?),
    };
    let work = async move {
        let _slot = slot;
        let staged = match source {
            Source::Staged(staged) => staged,
            Source::Address(wanted) => {
                let (staged, listed_as) = fetch(&host, &wanted).await?;
                asked.terms.listed_as = listed_as;
                staged
            }
        };
        work_on(&host, staged, asked).await
    };
    match services.tasks.finish(work).await? {
        Done::Looked(preview) => Ok(upgrade::preview(*preview)),
        Done::Installed(installed) => {
            let Installed { plugin, warning, warnings } = *installed;
            Ok(HttpResponse::Created().json(InstallAnswer { plugin: plugin.record, warning, warnings }))
        }
    }
}

/// Where the package comes from.
enum Source {
    /// It is here.
    Staged(Staged),
    /// It is to be fetched.
    Address(Wanted),
}

/// What became of it.
enum Done {
    Looked(Box<Preview>),
    Installed(Box<Installed>),
}

/// Installs, or only looks.
async fn work_on(host: &Services, staged: Staged, Asked { dry_run, terms }: Asked) -> Result<Done, ApiError> {
    Ok(match dry_run {
        true => Done::Looked(Box::new(host.registry.preview(staged, terms).await?)),
        false => Done::Installed(Box::new(host.registry.install(staged, terms).await?)),
    })
}

/// Fetches a package and holds it against what is said of it: nothing of another one is looked at. Whose it is said to
/// be is for whoever reads its manifest.
async fn fetch(host: &Services, Wanted { url, sha256 }: &Wanted) -> Result<(Staged, Option<ListedAs>), ApiError> {
    let download = async { Ok::<_, ApiError>(host.downloader.download(url, &host.packages).await?) };
    let look = async { Ok::<_, ApiError>(host.market.listed(url).await?) };
    // An address that cannot be had is told at once, however long an index takes.
    let (staged, (listed, listed_as)) = tokio::try_join!(download, look)?;
    marketplace::verify(&staged.sha256, sha256.as_ref(), listed.as_ref()).map_err(MarketError::from)?;
    Ok((staged, listed_as))
}

fn is_multipart(request: &HttpRequest) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    kind.and_then(|kind| kind.get(..10)).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
}

async fn address(services: &Services, request: &HttpRequest, payload: web::Payload) -> Result<Wanted, ApiError> {
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let understood = |text: String| {
        digest(&text).ok_or_else(|| ApiError::Invalid("package_sha256 must be 64 hexadecimal digits".to_owned()))
    };
    let bytes = body::whole(request, payload, bounds).await?;
    if !Named::is_in(&bytes) {
        return Err(ApiError::Invalid(NO_ADDRESS.to_owned()));
    }
    let Address { url, package_sha256 } = body::parse(&bytes)?;
    let sha256 = package_sha256.filter(|text| !text.is_empty()).map(understood).transpose()?;
    Ok(Wanted { url: url.trim().to_owned(), sha256 })
}

/// Stages the field `package` of a multipart body, with a bound on the whole body from its declared length.
async fn upload(services: &Services, request: &HttpRequest, payload: web::Payload) -> Result<Staged, ApiError> {
    let desk = Desk {
        packages: &services.packages,
        limits: &services.package_limits,
        idle: services.timing.body_idle_timeout,
    };
    let spare = services.limits.request_bytes;
    body::check_declared_length(request, services.package_limits.compressed.saturating_add(spare))
        .map_err(|_| PackageError::CompressedTooLarge(services.package_limits.compressed))?;
    let total = services.timing.body_timeout;
    timeout(total, desk.take(Multipart::new(request.headers(), payload), spare))
        .await
        .unwrap_or_else(|_| Err(BodyError::TooSlow(total).into()))
}

/// Where packages are handed in.
struct Desk<'a> {
    packages: &'a PackageStore,
    limits: &'a Limits,
    idle: Duration,
}

impl Desk<'_> {
    /// Reads the whole form. Fields of other names are read over, `spare` bytes together at most.
    async fn take(&self, mut form: Multipart, mut spare: u64) -> Result<Staged, ApiError> {
        let mut staged = None;
        while let Some(field) = next(&mut form, self.idle).await? {
            match (field.name() == Some(FIELD), &staged) {
                (true, None) => staged = Some(self.stage(field).await?),
                (true, Some(_)) => return Err(UploadError::TwoPackages.into()),
                (false, _) => spare = self.skip(field, spare).await?,
            }
        }
        staged.ok_or_else(|| UploadError::MissingField.into())
    }

    async fn stage(&self, field: Field) -> Result<Staged, ApiError> {
        let pieces = stream::try_unfold(field, |mut field| async move {
            Ok::<_, ApiError>(next(&mut field, self.idle).await?.map(|piece| (piece, field)))
        });
        self.packages.stage(pieces, self.limits).await.map_err(|error| match error {
            StageError::Source(error) => error,
            StageError::TooLarge(error) => error.into(),
            StageError::File(error) => ApiError::Registry(error.into()),
            StageError::Interrupted(error) => ApiError::internal(error),
        })
    }

    async fn skip(&self, mut field: Field, mut spare: u64) -> Result<u64, ApiError> {
        while let Some(piece) = next(&mut field, self.idle).await? {
            spare = spare.checked_sub(piece.len() as u64).ok_or(UploadError::TooMuchBeside)?;
        }
        Ok(spare)
    }
}

/// The next item of a multipart stream; `None` at its end.
async fn next<T>(
    stream: &mut (impl Stream<Item = Result<T, MultipartError>> + Unpin),
    idle: Duration,
) -> Result<Option<T>, ApiError> {
    match timeout(idle, stream.next()).await {
        Err(_) => Err(BodyError::Silent(idle).into()),
        Ok(item) => item.transpose().map_err(broken),
    }
}

/// A body that ended early is told from one that is not multipart.
fn broken(error: MultipartError) -> ApiError {
    match error {
        MultipartError::Incomplete | MultipartError::Payload(_) => BodyError::Broken.into(),
        other => UploadError::Malformed(clean::single_line(&other.to_string(), SHOWN_BYTES)).into(),
    }
}

#[cfg(test)]
mod tests;
