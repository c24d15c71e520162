//! Files of plugins' user interfaces (contract/rest.md §5): `/api/plugins/{id}/bundle` and
//! `/api/plugins/{id}/ui/{path}`.
//!
//! Which files those are is `domain::ui_file`'s decision; finding and keeping them is `store::ui_files`'s. Here are the
//! order of checks and HTTP's own matters: versions, parts, and what a browser may make of the answer. No plugin
//! process is asked.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder, ResponseError,
    body::SizedStream,
    http::{
        Method, StatusCode,
        header::{self, HeaderValue},
    },
    web,
};
use futures_util::stream;
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    ApiError, Services,
    endpoint::{Content, Endpoint, get, head},
    query::{self, Takes},
    settings::listed,
};
use crate::{
    actors::{Expected, PluginHandle},
    domain::{
        action::Action,
        id::PluginId,
        manifest::Manifest,
        package::EntryPath,
        percent::decoded,
        ui_file::{self, Part},
    },
    store::ui_files::{Place, UiFile, UiFileError},
};

const BUNDLE: &str = "/api/plugins/{id}/bundle";
const FILES: &str = "/api/plugins/{id}/ui/{tail:.*}";
const FILES_SHOWN: &str = "/api/plugins/{id}/ui/{path}";

/// For an address with the installed version in it: another version has another address.
const FOREVER: &str = "private, max-age=31536000, immutable";
/// For any other: asked again each time, and answered 304 while it is the same.
const ASK_AGAIN: &str = "private, no-cache";

pub static ROUTES: &[Endpoint] = &[
    answers(get(BUNDLE, Action::PluginUi, || web::to(bundle)).about("The script of a plugin's user interface"))
        .gives_of(200, Content::Media("text/javascript")),
    answers(head(BUNDLE, Action::PluginUi, || web::to(bundle)).about("The same without the body"))
        .gives_of(200, Content::Empty),
    answers(
        get(FILES, Action::PluginUi, || web::to(file))
            .shown_as(FILES_SHOWN)
            .about("A file of a plugin's user interface: below `ui/` and `assets/`, and what its manifest names"),
    )
    .gives_of(200, Content::Media("*/*")),
    answers(head(FILES, Action::PluginUi, || web::to(file)).shown_as(FILES_SHOWN).about("The same without the body"))
        .gives_of(200, Content::Empty),
];

/// What all of them answer; bundles put what they like behind the question mark of their files.
const fn answers(endpoint: Endpoint) -> Endpoint {
    endpoint
        .query::<Version>()
        .takes(Takes::Anything)
        .gives_of(304, Content::Empty)
        .versioned()
        .refuses(&[404, 416, 504])
}

/// What stands behind the question mark.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
struct Version {
    /// The version that is meant: with the installed one the answer may be kept for ever.
    v: Option<String>,
}

/// Why a plugin shows nothing.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    /// It does not run.
    #[error("plugin is not active")]
    NotActive(PluginId),
    /// It declares none.
    #[error("plugin has no UI bundle")]
    NoBundle,
    /// Bytes are asked for that the file does not have.
    #[error("the file has {0} bytes, none of them in the range that is asked for")]
    Unsatisfiable(u64),
    /// There is no such file.
    #[error(transparent)]
    File(#[from] UiFileError),
}

impl From<UiFileError> for ApiError {
    fn from(error: UiFileError) -> Self {
        Self::Ui(error.into())
    }
}

/// `GET /api/plugins/{id}/bundle`.
pub async fn bundle(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let plugin = services.registry.plugin(&id)?;
    let run = running(&plugin)?;
    if plugin.manifest().ui.bundle.is_empty() {
        return Err(ApiError::Ui(UiError::NoBundle));
    }
    let path = ui_file::bundle(plugin.manifest()).map_err(|_| UiFileError::NotFound)?;
    let file = services.browser.ui_files.find(vec![place(&plugin, run, path)]).await?;
    send(&request, plugin.manifest(), ui_file::BUNDLE_TYPE, &file)
}

/// `GET /api/plugins/{id}/ui/{path}`.
pub async fn file(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (id, asked) = path.into_inner();
    let plugin = services.registry.plugin(&id)?;
    let run = running(&plugin)?;
    let segments: Vec<_> = tail(&request, &asked).split('/').map(decoded).collect();
    let paths = ui_file::candidates(plugin.manifest(), &segments);
    let kind = paths.first().map_or("", |path| ui_file::content_type(path.as_str()));
    let places = paths.into_iter().map(|path| place(&plugin, run, path)).collect();
    let file = services.browser.ui_files.find(places).await?;
    send(&request, plugin.manifest(), kind, &file)
}

/// The part of the raw address that names the file. The router has decoded some of what it matched, so that a second
/// decoding would find more than the client wrote.
fn tail<'a>(request: &'a HttpRequest, matched: &'a str) -> &'a str {
    let raw = request.uri().path().splitn(6, '/').nth(5);
    raw.unwrap_or(matched)
}

fn running(plugin: &PluginHandle) -> Result<u64, ApiError> {
    plugin.run().ok_or_else(|| ApiError::Ui(UiError::NotActive(plugin.id().clone())))
}

fn place(plugin: &PluginHandle, run: u64, path: EntryPath) -> Place {
    Place { run, folder: plugin.folder().to_owned(), path }
}

/// Answers with the file, a part of it, or that the client has it already.
fn send(
    request: &HttpRequest,
    manifest: &Manifest,
    kind: &'static str,
    file: &UiFile,
) -> Result<HttpResponse, ApiError> {
    let mut answer = HttpResponse::Ok();
    answer
        .content_type(kind)
        .insert_header((header::ETAG, format!("\"{}\"", file.tag)))
        .insert_header((header::CACHE_CONTROL, freshness(request, manifest)))
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"));
    if is_known(request, &file.tag) {
        answer.status(StatusCode::NOT_MODIFIED);
        return Ok(answer.finish());
    }
    if request.method() == Method::HEAD {
        // The length without the bytes.
        return Ok(answer.body(SizedStream::new(file.size, stream::empty::<Result<web::Bytes, std::io::Error>>())));
    }
    match part(request, file) {
        Part::Whole => Ok(with_body(&mut answer, file, 0, file.size)),
        Part::Range(range) => {
            let place = format!("bytes {}-{}/{}", range.start, range.end - 1, file.size);
            answer.status(StatusCode::PARTIAL_CONTENT).insert_header((header::CONTENT_RANGE, place));
            Ok(with_body(&mut answer, file, range.start, range.end))
        }
        Part::Unsatisfiable => {
            let mut refusal = ApiError::Ui(UiError::Unsatisfiable(file.size)).error_response();
            let size = HeaderValue::from_str(&format!("bytes */{}", file.size)).map_err(ApiError::internal)?;
            refusal.headers_mut().insert(header::CONTENT_RANGE, size);
            Ok(refusal)
        }
    }
}

fn with_body(answer: &mut HttpResponseBuilder, file: &UiFile, start: u64, end: u64) -> HttpResponse {
    match file.bytes() {
        Some(bytes) => answer.body(bytes.slice(start as usize..end as usize)),
        None => answer.body(SizedStream::new(end - start, file.pieces(start, end))),
    }
}

fn freshness(request: &HttpRequest, manifest: &Manifest) -> &'static str {
    let Version { v } = query::read(request.query_string()).unwrap_or_default();
    if v.as_ref() == Some(&manifest.version) { FOREVER } else { ASK_AGAIN }
}

/// Whether the client has this version. A header that cannot be understood is as none: the file is sent.
fn is_known(request: &HttpRequest, tag: &str) -> bool {
    match listed(request, &header::IF_NONE_MATCH) {
        Ok(Some(Expected::Anything)) => true,
        Ok(Some(Expected::Tags(tags))) => tags.iter().any(|known| known == tag),
        Ok(None) | Err(_) => false,
    }
}

/// The part that is asked for. One that continues another version is not to be had (RFC 9110 §13.1.5); weak tags and
/// dates never match.
fn part(request: &HttpRequest, file: &UiFile) -> Part {
    let text = |name: header::HeaderName| {
        request.headers().get(name).map(|value: &HeaderValue| value.to_str().unwrap_or_default())
    };
    let Some(range) = text(header::RANGE) else { return Part::Whole };
    match text(header::IF_RANGE) {
        Some(tag) if tag.trim() != format!("\"{}\"", file.tag) => Part::Whole,
        _ => ui_file::part(range, file.size),
    }
}
