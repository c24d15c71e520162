//! `/mcp`: plugins' tools for clients of the Model Context Protocol, over its streamable HTTP transport.
//!
//! The protocol is rmcp's; here are the route, who may ask, and the way between actix-web's types and those of the
//! `http` crate. Bodies are read and bounded as everywhere and handed over whole; answers that are streams are passed
//! on piece by piece. `server` answers, `sessions` bounds. docs/decisions/0024-mcp.md.

mod origin;
mod refused;
mod server;
mod sessions;
mod shapes;

use std::{convert::Infallible, fmt, future::ready, sync::Arc};

use ::http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use actix_web::{
    HttpMessage, HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        Method,
        header::{ACCEPT, HeaderMap},
    },
    web::{self, Bytes, Data},
};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
pub use refused::Refused;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage},
    transport::{StreamableHttpServerConfig, StreamableHttpService},
};
use serde::Deserialize;
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span};
use utoipa::IntoParams;

use self::{
    server::{Caller, Desk, Server},
    sessions::{Fault, Sessions, Turn},
};
use super::{
    ApiError, Services, Stop,
    body::{self, Bounds},
    change::scope,
    endpoint::{Content, Endpoint, delete, get, post},
    gate,
    query::Query,
};
use crate::{
    actors::RegistryHandle,
    config::{Limits, Timing},
    domain::{action::Action, calls::place::Named, clean},
    platform::Platform,
};

/// Where it is.
const PATH: &str = "/mcp";

/// Where the library takes it to be: it refuses a request that names no host, and is not to judge the client's.
const ADDRESS: &str = "http://localhost/mcp";

/// The media type of streams.
const EVENT_STREAM: &str = "text/event-stream";

/// What the library wants to be accepted, by name.
const BOTH: &str = "application/json, text/event-stream";

/// What JSON that is no message is told.
const NO_MESSAGE: &str = "the body is no message of JSON-RPC: a request has \"jsonrpc\":\"2.0\", a method, and as \
                          its id a text or a whole number; a notification has no id; an answer has the id, and a \
                          result or an error";

/// What a list of messages is told.
const NO_BATCH: &str = "batches are not taken: send each message by itself";

/// Names the session.
const SESSION_ID: &str = "mcp-session-id";

/// Longest text of the library in a refusal, in bytes.
const SHOWN_BYTES: usize = 300;

pub static ROUTES: &[Endpoint] = &[
    post(PATH, Action::McpConnect, || web::to(serve))
        .about("A message of a client of the Model Context Protocol, and the answer to it")
        .query::<Parameters>()
        .body_of(Content::Media("application/json"))
        .gives_of(200, Content::Media("*/*"))
        .gives_of(202, Content::Empty)
        .refuses(&[404, 406, 415, 429]),
    get(PATH, Action::McpConnect, || web::to(serve))
        .about("What the host tells a session of the Model Context Protocol, as a stream")
        .query::<Parameters>()
        .gives_of(200, Content::Media(EVENT_STREAM))
        .refuses(&[404, 405, 406]),
    delete(PATH, Action::McpConnect, || web::to(serve))
        .about("End a session of the Model Context Protocol")
        .query::<Parameters>()
        .gives_of(204, Content::Empty)
        .refuses(&[405]),
];

/// Where the client's agent works: at the task, at the session and its task, or nowhere.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The task.
    task_id: Option<String>,
    /// The session; it stands for its task.
    session_id: Option<String>,
}

async fn serve(
    services: Data<Services>,
    request: HttpRequest,
    Query(Parameters { task_id, session_id }): Query<Parameters>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    origin::check(request.headers(), &services.allowed_origins)?;
    let named =
        Named { task: task_id.unwrap_or_default(), session: session_id.unwrap_or_default(), ..Named::default() };
    let caller = Caller::new(&request, named);
    let bounds = Bounds::new(services.limits.mcp_message_bytes, &services.timing);
    let body = body::whole(&request, payload, bounds).await?;
    let needs = if request.method() == Method::POST { needs(&request, &body)? } else { Needs::Nothing };
    if services.stop.has_begun() {
        return Err(ApiError::Stopping);
    }
    if needs == Needs::Session
        && let Some(refusal) = misread_beginning(&body)
    {
        return Ok(HttpResponse::Ok().json(refusal));
    }
    services.mcp.answer(handed_over(&request, caller, body)?, needs).await
}

impl Caller {
    fn new(request: &HttpRequest, named: Named) -> Self {
        Self { principal: gate::principal(request), scope: scope(request), named, span: Span::current() }
    }
}

/// Which seat a message needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// One for the session that begins.
    Session,
    /// One for the stream that is the answer.
    Stream,
}

/// As much of a message as that takes.
#[derive(Deserialize)]
struct Asked {
    method: Option<String>,
}

fn needs(request: &HttpRequest, body: &[u8]) -> Result<Needs, Refused> {
    if !request.content_type().eq_ignore_ascii_case("application/json") {
        return Err(Refused::Media);
    }
    if body::is_list(body) {
        return Err(Refused::Message(NO_BATCH.to_owned()));
    }
    let asked: Asked = serde_json::from_slice(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        Refused::Message(format!("the body is no JSON-RPC message, at line {line} column {column}"))
    })?;
    Ok(match asked.method.as_deref() {
        Some("initialize") if !request.headers().contains_key(SESSION_ID) => Needs::Session,
        Some("subscriptions/listen") => Needs::Stream,
        _ => Needs::Nothing,
    })
}

/// The answer to an `initialize` with params that are not its own. The library takes one for some other request, and
/// asks for the session that it was to begin.
fn misread_beginning(body: &[u8]) -> Option<ServerJsonRpcMessage> {
    let message: ClientJsonRpcMessage = serde_json::from_slice(body).ok()?;
    match message.into_request()? {
        (ClientRequest::InitializeRequest(_), _) => None,
        (_, id) => Some(ServerJsonRpcMessage::error(shapes::misread("initialize"), Some(id))),
    }
}

/// The request as the library takes it. It gets the headers that are its own, and not the operator's token.
fn handed_over(request: &HttpRequest, caller: Caller, body: Bytes) -> Result<Request<Full<Bytes>>, ApiError> {
    let mut message = Request::builder()
        .method(request.method().as_str())
        .uri(ADDRESS)
        .extension(caller)
        .body(Full::new(body))
        .map_err(ApiError::internal)?;
    let own = |name: &str| name.starts_with("mcp-") || matches!(name, "accept" | "content-type" | "last-event-id");
    for (name, value) in request.headers().iter().filter(|(name, _)| own(name.as_str())) {
        let name = HeaderName::from_bytes(name.as_str().as_bytes()).map_err(ApiError::internal)?;
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(ApiError::internal)?;
        message.headers_mut().append(name, value);
    }
    if accepts_all(request.headers()) {
        message.headers_mut().append(::http::header::ACCEPT, HeaderValue::from_static(BOTH));
    }
    Ok(message)
}

/// Whether the client takes whatever comes, as curl says.
fn accepts_all(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let none = |part: &str| part.strip_prefix("q=").is_some_and(|q| q.parse().is_ok_and(|q: f32| q <= 0.0));
        parts.next() == Some("*/*") && !parts.any(none)
    })
}

/// The endpoint; clones are the same one.
#[derive(Clone)]
pub struct Mcp {
    desk: Arc<Desk>,
    sessions: Arc<Sessions>,
    settings: StreamableHttpServerConfig,
    runtime: Handle,
    _sweep: Arc<AbortOnDropHandle<()>>,
}

impl fmt::Debug for Mcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mcp").field("sessions", &self.sessions.count()).finish_non_exhaustive()
    }
}

impl Mcp {
    /// Serves the tools of these plugins until the host stops. Must be called on a tokio runtime, which must outlive
    /// the server: sessions are worked on there.
    pub fn start(
        registry: &RegistryHandle,
        platform: &Platform,
        stop: &Stop,
        timing: &Timing,
        limits: &Limits,
    ) -> Self {
        let runtime = Handle::current();
        let desk = Desk { registry: registry.clone(), platform: platform.clone(), stop: stop.clone() };
        let sessions = Arc::new(Sessions::new(timing, limits, runtime.clone()));
        let sweep = runtime.spawn(Arc::clone(&sessions).sweep(timing.mcp_idle));
        let settings = StreamableHttpServerConfig::default()
            .with_sse_keep_alive(Some(timing.mcp_keep_alive))
            .with_sse_retry(None)
            .with_json_response(true)
            .with_max_request_body_bytes(usize::try_from(limits.mcp_message_bytes).unwrap_or(usize::MAX))
            // The gate and `origin` judge both, and every request has the operator's token.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let sweep = Arc::new(AbortOnDropHandle::new(sweep));
        Self { desk: Arc::new(desk), sessions, settings, runtime, _sweep: sweep }
    }

    /// Sessions and subscriptions.
    pub fn count(&self) -> usize {
        self.sessions.count()
    }

    /// Ends whatever the host's stop has left.
    pub fn end(&self) {
        self.settings.cancellation_token.cancel();
    }

    /// The call belongs to its client's connection: dropped, it is cancelled.
    async fn answer(&self, message: Request<Full<Bytes>>, needs: Needs) -> Result<HttpResponse, ApiError> {
        let (listens, ends) = (message.method() == ::http::Method::GET, message.method() == ::http::Method::DELETE);
        let seat = if needs == Needs::Nothing { None } else { Some(self.sessions.sit()?) };
        let (for_session, for_stream) = if needs == Needs::Session { (seat, None) } else { (None, seat) };
        let turn = Arc::new(Turn::new(&self.sessions, for_session));
        let (desk, ended) = (Arc::clone(&self.desk), turn.ended());
        let service = StreamableHttpService::new(
            move || Ok(Server::new(Arc::clone(&desk), ended.clone())),
            Arc::clone(&turn),
            self.settings.clone(),
        );
        // On the host's runtime: the tasks of a session outlive the worker's request, and its span.
        let span = if needs == Needs::Session { Span::none() } else { Span::current() };
        let work = async move { service.handle(message).await }.instrument(span);
        let answer = AbortOnDropHandle::new(self.runtime.spawn(work)).await.map_err(|_| ApiError::Lost)?;
        match answer.status().as_u16() {
            500.. => Err(self.trouble(&turn, text(answer.into_body()).await)),
            _ if listens => self.stream(answer).await,
            // The library's 202 makes the official client warn that the session was not ended.
            202 if ends => Ok(HttpResponse::NoContent().finish()),
            _ => taken_back(answer, for_stream).await,
        }
    }

    /// What the host tells a session; it ends when the host stops.
    async fn stream(&self, answer: Response<BoxBody<Bytes, Infallible>>) -> Result<HttpResponse, ApiError> {
        if !is(&answer, EVENT_STREAM) {
            return taken_back(answer, None).await;
        }
        let (parts, body) = answer.into_parts();
        // At once: the client sees that it is connected.
        let hello = stream::once(ready(Ok::<_, Infallible>(Bytes::from_static(b": connected\n\n"))));
        let stopping = self.desk.stop.begun();
        Ok(begun(&parts)?.streaming(hello.chain(body.into_data_stream()).take_until(stopping)))
    }

    /// The library answers everything that it cannot do with a 500.
    fn trouble(&self, turn: &Turn, text: String) -> ApiError {
        match turn.fault() {
            Some(Fault::Gone) => Refused::NoSession.into(),
            Some(Fault::Busy) => Refused::Busy.into(),
            Some(Fault::NoSeat) => Refused::TooMany.into(),
            _ if self.desk.stop.has_begun() => ApiError::Stopping,
            Some(Fault::Broken(_)) | None => ApiError::Internal(text.into()),
        }
    }
}

/// The library's answer as the server sends it. A stream holds the seat.
async fn taken_back(
    answer: Response<BoxBody<Bytes, Infallible>>,
    seat: Option<OwnedSemaphorePermit>,
) -> Result<HttpResponse, ApiError> {
    let streams = is(&answer, EVENT_STREAM);
    // A refusal of JSON-RPC is as it should be; any other is plain text.
    let refused = answer.status().is_client_error() && !is(&answer, "application/json");
    let (parts, body) = answer.into_parts();
    if refused {
        return Err(refusal(parts.status, &text(body).await));
    }
    let mut begun = begun(&parts)?;
    if streams {
        let held = move |piece: Result<Bytes, Infallible>| {
            let _held = &seat;
            piece
        };
        return Ok(begun.streaming(body.into_data_stream().map(held)));
    }
    Ok(begun.body(whole(body).await))
}

/// Status and headers.
fn begun(parts: &::http::response::Parts) -> Result<HttpResponseBuilder, ApiError> {
    let status = actix_web::http::StatusCode::from_u16(parts.status.as_u16()).map_err(ApiError::internal)?;
    let mut answer = HttpResponse::build(status);
    for (name, value) in &parts.headers {
        answer.append_header((name.as_str(), value.as_bytes()));
    }
    Ok(answer)
}

fn is(answer: &Response<BoxBody<Bytes, Infallible>>, media: &str) -> bool {
    answer.headers().get(::http::header::CONTENT_TYPE).is_some_and(|found| found.as_bytes() == media.as_bytes())
}

async fn whole(body: BoxBody<Bytes, Infallible>) -> Bytes {
    let Ok(collected) = body.collect().await;
    collected.to_bytes()
}

async fn text(body: BoxBody<Bytes, Infallible>) -> String {
    clean::single_line(&String::from_utf8_lossy(&whole(body).await), SHOWN_BYTES)
}

/// What the library refuses with plain text, in the host's own words where there is one meaning only.
fn refusal(status: StatusCode, text: &str) -> ApiError {
    match status {
        StatusCode::NOT_FOUND => Refused::NoSession.into(),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::Method { allow: "POST".to_owned() },
        StatusCode::NOT_ACCEPTABLE => Refused::Accept(text.to_owned()).into(),
        // The type was looked at before: it is what the body says.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Refused::Message(NO_MESSAGE.to_owned()).into(),
        _ => Refused::Message(text.to_owned()).into(),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{http::header, test::TestRequest};
    use serde_json::{Value, json};

    use super::*;

    fn judged(body: &str, session: bool) -> Result<Needs, Refused> {
        let request = TestRequest::post().insert_header((header::CONTENT_TYPE, "application/json; charset=utf-8"));
        let request = if session { request.insert_header((SESSION_ID, "s")) } else { request };
        needs(&request.to_http_request(), body.as_bytes())
    }

    #[test]
    fn a_message_that_begins_something_needs_a_seat() {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        assert_eq!(judged(initialize, false), Ok(Needs::Session));
        assert_eq!(judged(initialize, true), Ok(Needs::Nothing));
        assert_eq!(judged(r#"{"method":"subscriptions\/listen"}"#, false), Ok(Needs::Stream));
        for other in [r#"{"method":"tools/list"}"#, r#"{"result":{}}"#, r#"{"method":null}"#] {
            assert_eq!(judged(other, false), Ok(Needs::Nothing), "{other}");
        }
    }

    #[test]
    fn an_initialize_with_params_that_are_not_its_own_is_told_so_by_its_id() {
        let answer = |body: Value| misread_beginning(body.to_string().as_bytes()).map(|told| json!(told));
        let initialize = |id: Value| json!({"jsonrpc": "2.0", "id": id, "method": "initialize"});
        let with = |params: Value| {
            let mut message = initialize(json!(7));
            message["params"] = params;
            message
        };
        let error = json!({"code": -32602, "message": "params are not those of initialize"});
        let refused = |id: Value| Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        for id in [json!(7), json!("seven")] {
            assert_eq!(answer(initialize(id.clone())), refused(id), "without params");
        }
        let whole =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        assert_eq!(answer(with(whole.clone())), None);
        for name in ["protocolVersion", "capabilities", "clientInfo"] {
            let mut params = whole.clone();
            params[name] = json!(1);
            assert_eq!(answer(with(params)), refused(json!(7)), "{name}");
        }
        for params in [json!({}), Value::Null] {
            assert_eq!(answer(with(params.clone())), refused(json!(7)), "{params}");
        }
        let mut notice = with(json!({}));
        notice.as_object_mut().unwrap().remove("id");
        assert_eq!(answer(notice), None, "nobody waits for an answer");
        assert!(misread_beginning(b"{").is_none());
    }

    #[test]
    fn what_is_no_message_is_told_with_its_place_and_without_its_text() {
        for body in ["", "{", "\"s3cret\"", r#"{"method":["s3cret"]}"#] {
            let Err(Refused::Message(text)) = judged(body, false) else { panic!("{body} was taken") };
            assert!(
                text.starts_with("the body is no JSON-RPC message, at line ") && !text.contains("s3cret"),
                "{text}"
            );
        }
        let text = TestRequest::post().insert_header((header::CONTENT_TYPE, "text/plain")).to_http_request();
        assert_eq!(needs(&text, b"{}"), Err(Refused::Media));
    }

    #[test]
    fn the_library_gets_its_own_headers_and_not_the_token() {
        let request = TestRequest::post()
            .insert_header((header::AUTHORIZATION, "Bearer t0ken"))
            .insert_header((header::COOKIE, "a=b"))
            .insert_header((SESSION_ID, "s"))
            .insert_header((header::ACCEPT, "application/json"))
            .append_header((header::ACCEPT, EVENT_STREAM))
            .to_http_request();
        let caller = Caller::new(&request, Named::default());
        let handed = handed_over(&request, caller, Bytes::from_static(b"{}")).unwrap();
        let mut names: Vec<_> = handed.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", SESSION_ID]);
        let address = handed.uri();
        assert_eq!((address.host(), address.path()), (Some("localhost"), PATH), "without a host all are refused");
        assert_eq!(handed.headers().get_all("accept").iter().count(), 2);
        assert!(handed.extensions().get::<Caller>().is_some());
    }

    #[test]
    fn who_accepts_everything_accepts_both_types() {
        let handed = |accept: &str| {
            let request = TestRequest::post().insert_header((header::ACCEPT, accept)).to_http_request();
            let caller = Caller::new(&request, Named::default());
            let handed = handed_over(&request, caller, Bytes::from_static(b"{}")).unwrap();
            handed
                .headers()
                .get_all("accept")
                .iter()
                .map(|value| value.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        for all in ["*/*", "text/html, */*;q=0.8", "application/json,*/*"] {
            assert_eq!(handed(all), [all, BOTH]);
        }
        for few in [BOTH, "application/json", "text/*", "*/*;q=0", "*/*; q=0.000", ""] {
            assert_eq!(handed(few), [few]);
        }
    }

    #[test]
    fn a_batch_is_told_that_batches_are_not_taken() {
        let refused = Err(Refused::Message(NO_BATCH.to_owned()));
        for batch in ["[]", r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, r#"["initialize"]"#] {
            assert_eq!(judged(batch, false), refused, "{batch}");
        }
    }

    #[test]
    fn what_the_library_refuses_in_plain_text_has_an_answer_of_the_host() {
        let code = |status: u16| {
            let (status, code, _) = refusal(StatusCode::from_u16(status).unwrap(), "text").told();
            (status.as_u16(), code)
        };
        assert_eq!(code(400), (400, "invalid_mcp_message"));
        assert_eq!(code(404), (404, "mcp_session_not_found"));
        assert_eq!(code(405), (405, "method_not_allowed"));
        assert_eq!(code(406), (406, "not_acceptable"));
        assert_eq!(code(415), (400, "invalid_mcp_message"));
        assert_eq!(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "raw").to_string(), NO_MESSAGE);
    }
}
