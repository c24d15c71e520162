//! The document of the API, OpenAPI 3.1, written from the table of routes; and the page that shows it.
//!
//! Both are open to everyone: they say nothing that the source does not.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use actix_web::{HttpResponse, http::header, web};
use utoipa::openapi::{
    Components, HttpMethod, Info, License, OpenApi, OpenApiBuilder, PathItem, Paths, RefOr, Required, Schema,
    content::ContentBuilder,
    header::Header,
    path::{Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
    request_body::{RequestBody, RequestBodyBuilder},
    response::{Response, ResponseBuilder},
    schema::{AllOfBuilder, ObjectBuilder, Type},
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};
use utoipa_swagger_ui::Config;

use super::{
    ApiError,
    endpoint::{Content, Doc, Endpoint, Shapes, get, shape},
    error::ErrorBody,
    query::Takes,
    routes,
};
use crate::domain::{
    action::{Action, Group},
    authorize::{Decision, authorize, takes_own_token},
    principal::Principal,
};

pub static ROUTES: &[Endpoint] = &[
    get(ADDRESS, Action::DocsRead, || web::to(read))
        .about("This document")
        .gives_of(200, Content::Media("application/json")),
    get("/api/docs", Action::DocsRead, || web::to(page))
        .about("To the page that shows this document")
        .gives_of(308, Content::Empty),
    get("/api/docs/{file:.*}", Action::DocsRead, || web::to(page_file))
        .shown_as("/api/docs/{file}")
        .about("The page that shows this document, and what the page loads")
        .gives_of(200, Content::Media("*/*")),
];

/// Where the document is.
const ADDRESS: &str = "/api/openapi.json";

/// The name of the way to log in.
const BEARER: &str = "bearer";

/// The name of the way git gets in.
const GIT_TOKEN: &str = "git_token";

/// The page loads its own files and this document, and nothing else.
const PAGE_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                           frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

static DOCUMENT: LazyLock<Result<web::Bytes, String>> =
    LazyLock::new(|| document().to_json().map(Into::into).map_err(|error| error.to_string()));

/// `GET /api/openapi.json`.
pub async fn read() -> Result<HttpResponse, ApiError> {
    let document = DOCUMENT.as_ref().map_err(|error| ApiError::Internal(error.clone().into()))?;
    Ok(HttpResponse::Ok().content_type("application/json").body(document.clone()))
}

/// `GET /api/docs`: the page's folder.
pub async fn page() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((header::LOCATION, "/api/docs/")).finish()
}

/// `GET /api/docs/{file}`: the page and what it loads.
pub async fn page_file(file: web::Path<String>) -> Result<HttpResponse, ApiError> {
    // Without its validator, which is a service of somebody else.
    let config = Config::from(ADDRESS).try_it_out_enabled(true).persist_authorization(false).validator_url("none");
    let found = utoipa_swagger_ui::serve(&file, Arc::new(config))
        .map_err(|error| ApiError::Internal(error.to_string().into()))?;
    let found = found.ok_or(ApiError::NoRoute)?;
    let mut answer = HttpResponse::Ok();
    answer
        .content_type(found.content_type)
        .insert_header((header::CONTENT_SECURITY_POLICY, PAGE_POLICY))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    Ok(match found.bytes {
        std::borrow::Cow::Borrowed(bytes) => answer.body(bytes),
        std::borrow::Cow::Owned(bytes) => answer.body(bytes),
    })
}

/// Every route of the host.
pub fn document() -> OpenApi {
    let mut shapes = Shapes::new();
    let error = shape::<ErrorBody<'_>>(&mut shapes);
    let mut paths = Paths::new();
    for endpoint in routes::all() {
        let operation = operation(endpoint, &error, &mut shapes);
        let item = PathItem::new(method(endpoint), operation);
        match paths.paths.get_mut(endpoint.shown) {
            Some(found) => found.merge_operations(item),
            None => {
                paths.paths.insert(endpoint.shown.to_owned(), item);
            }
        }
    }
    let mut components = Components::new();
    components.schemas.extend(shapes);
    for (name, about) in [
        (BEARER, "The operator's token."),
        (GIT_TOKEN, "A token that the operator made for git, for one session and one repository."),
    ] {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about));
        components.add_security_scheme(name, SecurityScheme::Http(bearer.build()));
    }
    let mut info = Info::new("kandev-host", env!("CARGO_PKG_VERSION"));
    info.description = Some("Installs, supervises and serves plugins, and the platform they live in.".to_owned());
    info.license = Some(License::new("Apache-2.0"));
    let tags = Group::ALL
        .iter()
        .map(|group| TagBuilder::new().name(group.name()).description(Some(group.description())).build());
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).tags(Some(tags)).build()
}

fn method(endpoint: &Endpoint) -> HttpMethod {
    match endpoint.method.as_str() {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "PATCH" => HttpMethod::Patch,
        "DELETE" => HttpMethod::Delete,
        "HEAD" => HttpMethod::Head,
        _ => HttpMethod::Get,
    }
}

fn is_public(action: Action) -> bool {
    authorize(Principal::Anonymous, action) == Decision::Allow
}

fn needs_login(endpoint: &Endpoint) -> bool {
    !is_public(endpoint.action) || endpoint.doc.may_need_login
}

fn operation(endpoint: &Endpoint, error: &RefOr<Schema>, shapes: &mut Shapes) -> Operation {
    let doc = &endpoint.doc;
    let mut operation = OperationBuilder::new()
        .operation_id(Some(operation_id(endpoint)))
        .tag(endpoint.action.group().name())
        .summary(Some(doc.summary))
        .description(Some(format!("Needs `{}`.", endpoint.action)));
    for parameter in parameters(endpoint) {
        operation = operation.parameter(parameter);
    }
    if let Some(body) = doc.body {
        operation = operation.request_body(Some(request_body(doc, body, shapes)));
    }
    if needs_login(endpoint) {
        operation = operation.security(SecurityRequirement::new(BEARER, Vec::<String>::new()));
    }
    if takes_own_token(endpoint.action) {
        operation = operation.security(SecurityRequirement::new(GIT_TOKEN, Vec::<String>::new()));
    }
    if doc.may_need_login {
        operation = operation.security(SecurityRequirement::default());
    }
    let mut answers: BTreeMap<u16, Response> = BTreeMap::new();
    for (status, content) in doc.answers.iter().flatten() {
        let answer = answer(endpoint, *status, *content, shapes);
        match answers.get_mut(status) {
            Some(found) => found.content.extend(answer.content),
            None => drop(answers.insert(*status, answer)),
        }
    }
    for (status, answer) in answers {
        operation = operation.response(status.to_string(), answer);
    }
    for status in refusals(endpoint) {
        let content = ContentBuilder::new().schema(Some(error.clone())).build();
        let refusal = ResponseBuilder::new().description(reason(status)).content("application/json", content);
        operation = operation.response(status.to_string(), refusal.build());
    }
    if doc.relayed {
        operation = operation.response("default", Response::new("Whatever the plugin answers."));
    }
    operation.build()
}

/// `post_tasks_id_move` of `POST /api/v1/tasks/{id}/move`.
fn operation_id(endpoint: &Endpoint) -> String {
    let path = endpoint.shown.trim_start_matches("/api").trim_start_matches("/v1");
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<_> = [endpoint.method.as_str()].into_iter().chain(words).map(str::to_ascii_lowercase).collect();
    words.join("_")
}

/// The names in braces.
pub(super) fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

fn parameters(endpoint: &Endpoint) -> Vec<Parameter> {
    let text = |max: usize| ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(max));
    let parameter = |name: &str, place: ParameterIn, schema: ObjectBuilder| {
        let required = if place == ParameterIn::Path { Required::True } else { Required::False };
        ParameterBuilder::new().name(name).parameter_in(place).required(required).schema(Some(schema.build()))
    };
    let header = |name: &str, about: &str, schema: ObjectBuilder| {
        parameter(name, ParameterIn::Header, schema).description(Some(about)).build()
    };
    let tag = || ObjectBuilder::new().schema_type(Type::String).pattern(Some(TAG));
    let in_path = |name| parameter(name, ParameterIn::Path, text(MAX_PATH_TEXT)).build();
    let mut all: Vec<_> = names(endpoint.shown).map(in_path).collect();
    all.extend(endpoint.doc.query.map(|query| query()).unwrap_or_default());
    if endpoint.takes_if_match() {
        let about = "The `ETag` that was seen; another version of the thing is answered 412.";
        all.push(header("If-Match", about, tag()));
    }
    if endpoint.doc.answers.iter().flatten().any(|(status, _)| *status == 304) {
        let about = "The `ETag` that was seen; the same version of the thing is answered 304.";
        all.push(header("If-None-Match", about, tag()));
    }
    if endpoint.doc.once {
        let about = "The same key with the same request is done once and answered the same, for 24 hours.";
        let key = text(super::change::MAX_KEY_BYTES).pattern(Some("^[!-~]+$"));
        all.push(header("Idempotency-Key", about, key));
    }
    all
}

/// Any version, or one as an answer gave it.
const TAG: &str = "^(\\*|\"[0-9A-Za-z_+/=.-]{1,100}\")$";

/// Longest text in a path that the document speaks of; longer ones name nothing.
const MAX_PATH_TEXT: usize = 512;

fn request_body(doc: &Doc, content: Content, shapes: &mut Shapes) -> RequestBody {
    let json = |shape: RefOr<Schema>| ContentBuilder::new().schema(Some(shape)).build();
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    match content {
        Content::Empty => body.required(Some(Required::False)).build(),
        Content::Json(shape) => {
            let shape = shape(shapes);
            let needed =
                !doc.once || !doc.needs.is_empty() || shapes.last().is_some_and(|(_, shape)| needs_fields(shape));
            let required = if needed { Required::True } else { Required::False };
            body.required(Some(required)).content("application/json", json(with(doc.needs, shape))).build()
        }
        // Whatever it is, it may be nothing.
        Content::Media(media) => {
            body.required(Some(Required::False)).content(media, ContentBuilder::new().build()).build()
        }
        Content::Form(field, shape) => {
            let file = ObjectBuilder::new().schema_type(Type::String).content_media_type("application/octet-stream");
            let form = ObjectBuilder::new().property(field, file).required(field).build();
            body.content("multipart/form-data", json(Schema::from(form).into()))
                .content("application/json", json(shape(shapes)))
                .build()
        }
    }
}

/// No body of a change is `{}` (`change`): it must be there only when something in it must.
fn needs_fields(shape: &RefOr<Schema>) -> bool {
    matches!(shape, RefOr::T(Schema::Object(object)) if !object.required.is_empty())
}

/// The same with these texts in it.
fn with(needs: &[&str], shape: RefOr<Schema>) -> RefOr<Schema> {
    if needs.is_empty() {
        return shape;
    }
    let text = || ObjectBuilder::new().schema_type(Type::String).pattern(Some("\\S"));
    let needed = needs.iter().fold(ObjectBuilder::new(), |object, name| object.property(*name, text()).required(*name));
    Schema::from(AllOfBuilder::new().item(shape).item(needed).build()).into()
}

fn answer(endpoint: &Endpoint, status: u16, content: Content, shapes: &mut Shapes) -> Response {
    let answer = ResponseBuilder::new().description(reason(status));
    let mut answer = match content {
        Content::Empty => answer.build(),
        Content::Media(media) => answer.content(media, ContentBuilder::new().build()).build(),
        Content::Json(shape) | Content::Form(_, shape) => {
            let content = ContentBuilder::new().schema(Some(shape(shapes))).build();
            answer.content("application/json", content).build()
        }
    };
    if endpoint.doc.versioned && !matches!(content, Content::Empty) {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        let mut header = Header::new(Schema::from(text));
        header.description = Some("The thing's version, in quotes.".to_owned());
        answer.headers.insert("ETag".to_owned(), header.into());
    }
    answer
}

/// What a request can be refused with: what follows from where it goes and what it carries, and the route's own.
fn refusals(endpoint: &Endpoint) -> Vec<u16> {
    let doc = &endpoint.doc;
    let mut statuses = vec![500, 503];
    if endpoint.takes != Takes::Anything || doc.once {
        statuses.push(400);
    }
    if needs_login(endpoint) {
        statuses.extend([401, 403]);
    }
    if doc.body.is_some() || doc.once {
        statuses.extend([408, 413]);
    }
    if names(endpoint.shown).next().is_some() {
        statuses.push(404);
    }
    if doc.once {
        statuses.extend([404, 409]);
    }
    if endpoint.takes_if_match() {
        statuses.push(412);
    }
    statuses.extend(doc.refusals);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

fn reason(status: u16) -> &'static str {
    actix_web::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Answer")
}

#[cfg(test)]
mod tests;
