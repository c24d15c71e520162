//! The one map from errors to HTTP answers: status, stable code, text. Exhaustive on purpose: a new error does not
//! compile before it has its answer.
//!
//! What is the host's own trouble is answered with a fixed text; its own text is logged here, once.

mod calls;
mod events;
mod keys;
mod market;
mod mcp;
mod platform;
mod plugins;
mod providers;
mod ui;

use std::{fmt, time::Duration};

use actix_web::{
    HttpResponse, ResponseError,
    http::{StatusCode, header},
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{actions::ActionError, body::BodyError, git_credentials::GitError, install::UploadError};
use crate::{
    actors::{CallRefused, ProviderError, ReferenceError, RegistryError, SettingsError, ToolError},
    domain::{
        config_schema::Violation,
        id::PluginId,
        package::PackageError,
        platform::refusal::Refusal,
        relay::{AnswerError, HeaderNotText},
        shared_secret::SharedSecretError,
        subject::SubjectError,
    },
    fetch::FetchError,
    grpc::client::CallError,
    marketplace::MarketError,
    platform::{PlatformError, context::PlaceError, event_writer::WriteError},
    store::{db::DbFault, inbox::InboxError, marketplace::SourceStoreError, trust::TrustError},
    vault::{RotateError, SharedError, VaultError},
};

/// How soon a caller may try again after what will pass soon; seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Everything a request can end with, beside success.
#[derive(Debug)]
pub enum ApiError {
    /// No such route.
    NoRoute,
    /// The route exists, not with this method.
    Method {
        /// The `Allow` header.
        allow: String,
    },
    /// Credentials are missing or wrong.
    Unauthenticated,
    /// The caller may not.
    Forbidden,
    /// A page of another origin sent this.
    ForeignOrigin,
    /// Enough clients are connected live.
    TooManyConnections,
    /// What asks for a live connection does not speak WebSocket.
    NoUpgrade(String),
    /// The request says something that cannot be taken. The text is for the caller.
    Invalid(String),
    /// The request's body cannot be had.
    Body(BodyError),
    /// A package cannot be taken in.
    Upload(UploadError),
    /// A package cannot be fetched.
    Fetch(FetchError),
    /// A package that breaks a rule before the registry saw it.
    Package(PackageError),
    /// The marketplace refuses or fails.
    Market(MarketError),
    /// A trusted key that cannot be added or removed.
    Trust(TrustError),
    /// The registry refuses or fails.
    Registry(RegistryError),
    /// Settings cannot be shown or saved.
    Settings(SettingsError),
    /// An event that may not be published, or is not known to be in the log.
    Publish(WriteError),
    /// A subject that nobody can publish.
    Subject(SubjectError),
    /// A subject that only the host and plugins publish.
    ReservedSubject,
    /// The manifest does not declare the webhook.
    NoWebhook {
        /// The plugin.
        id: PluginId,
        /// The key, cleaned.
        key: String,
    },
    /// A webhook's body has more bytes than this.
    WebhookTooLarge(u64),
    /// A header that the contract cannot carry.
    HeaderNotText(HeaderNotText),
    /// The plugin takes no webhook now; or it takes no more calls of another kind.
    CallRefused(PluginId, CallRefused),
    /// A webhook call came to nothing.
    Call(PluginId, CallError),
    /// A plugin's answer cannot be sent.
    Answer(PluginId, AnswerError),
    /// A plugin's action was not done.
    Action(ActionError),
    /// Where an agent works was not verified.
    Place(PlaceError),
    /// A tool was not called, or its answer cannot be passed on.
    Tool(ToolError),
    /// A source was not searched.
    Reference(ReferenceError),
    /// The owner of a provider was not asked, or its answer cannot be passed on.
    Provider(ProviderError),
    /// Git gets nothing here.
    Git(GitError),
    /// Something asked about secrets that cannot be taken.
    Secret(SharedSecretError),
    /// A secret of the operator is not there, or the vault fails.
    Shared(SharedError),
    /// The vault's key was not changed, or not yet for all.
    Rotate(RotateError),
    /// All room for webhook bodies is taken.
    NoRoom,
    /// Too many packages at once.
    TooManyInstalls,
    /// The inbox does not know the item, or its database fails.
    Inbox(InboxError),
    /// The platform refuses or its database fails.
    Platform(PlatformError),
    /// A query that cannot be taken. The text is for the caller.
    Query(String),
    /// Too many clients follow logs.
    TooManyFollowers,
    /// Not everything the host needs is up.
    NotReady,
    /// The host ends.
    Stopping,
    /// A plugin shows nothing there.
    Ui(super::ui::UiError),
    /// A plugin keeps nothing for the user there.
    UserState(super::user_state::Refused),
    /// What a client of the Model Context Protocol asks for cannot be had.
    Mcp(super::mcp::Refused),
    /// The host's own trouble.
    Internal(Box<dyn std::error::Error + Send + Sync>),
    /// A handler panicked; the reason is in the log already.
    Lost,
}

/// The answer's parts, and what is for the log only.
struct Described {
    status: StatusCode,
    code: &'static str,
    text: String,
    note: Option<String>,
    /// For a program that wants to act on the error; `null` leaves it out.
    details: Value,
}

impl Described {
    fn with_note(self, note: String) -> Self {
        Self { note: Some(note), ..self }
    }

    fn with_details(self, details: Value) -> Self {
        Self { details, ..self }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The body of every error answer.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct ErrorBody<'a> {
    /// For people; it may change.
    error: &'a str,
    /// For programs; it is stable.
    code: &'static str,
    /// Every broken rule of a config, of a tool's arguments or of its result.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    violations: &'a [Violation],
    /// More about the error, for programs.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object, required = false)]
    details: Value,
}

impl ApiError {
    /// An error that is the host's own trouble: its text is for the log only.
    pub(super) fn internal(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Internal(Box::new(error))
    }

    /// Status, code and text, for a protocol that has answers of its own. What is for the log only is written there.
    pub(super) fn told(&self) -> (StatusCode, &'static str, String) {
        let Described { status, code, text, .. } = self.logged();
        (status, code, text)
    }

    fn logged(&self) -> Described {
        let described = self.describe();
        let Described { status, code, text, note, .. } = &described;
        match note.as_deref() {
            Some(note) if *status == StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(code, note, "request failed"),
            Some(note) => tracing::warn!(code, note, error = text, "request failed"),
            None => {}
        }
        described
    }

    fn describe(&self) -> Described {
        match self {
            Self::NoRoute => plain(StatusCode::NOT_FOUND, "route_not_found", "no such route"),
            Self::Method { .. } => plain(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "method not allowed"),
            Self::Unauthenticated => plain(StatusCode::UNAUTHORIZED, "unauthenticated", "authentication required"),
            Self::Forbidden => plain(StatusCode::FORBIDDEN, "forbidden", "not allowed for this caller"),
            Self::ForeignOrigin => plain(
                StatusCode::FORBIDDEN,
                "foreign_origin",
                "sent by a page of another origin: open the host's own address, and let a proxy pass its Host on (else see \
                 http.allowed_origins)",
            ),
            Self::Invalid(text) => plain(StatusCode::BAD_REQUEST, "invalid_payload", text),
            Self::Body(error) => describe_body(error),
            Self::Upload(error) => describe_upload(error),
            Self::Fetch(error) => describe_fetch(error),
            Self::Package(error) => plugins::package(error),
            Self::Market(error) => market::market(error),
            Self::Trust(error) => keys::trust(error),
            Self::Registry(error) => plugins::registry(error),
            Self::Settings(error) => plugins::settings(error),
            Self::Publish(error) => events::write(error),
            Self::Subject(error) => plain(StatusCode::BAD_REQUEST, "invalid_subject", error),
            Self::ReservedSubject => plain(
                StatusCode::BAD_REQUEST,
                "reserved_subject",
                "subjects that begin with \"plugin.\" are published by plugins and the host only",
            ),
            Self::NoWebhook { id, key } => {
                plain(StatusCode::NOT_FOUND, "webhook_not_found", format!("plugin \"{id}\" has no webhook \"{key}\""))
            }
            Self::WebhookTooLarge(limit) => too_large(format!("webhook body exceeds max size of {limit} bytes")),
            Self::HeaderNotText(error) => plain(StatusCode::BAD_REQUEST, "invalid_header", error),
            Self::CallRefused(id, refused) => plugins::webhook_refusal(id, refused),
            Self::Call(id, error) => plugins::call(id, error),
            Self::Answer(id, error) => plain(StatusCode::BAD_GATEWAY, "invalid_webhook_answer", error)
                .with_note(format!("from plugin \"{id}\"")),
            Self::Action(error) => calls::action(error),
            Self::Place(error) => calls::place("call", error),
            Self::Tool(error) => calls::tool(error),
            Self::Reference(error) => providers::reference(error),
            Self::Provider(error) => providers::provider(error),
            Self::Git(error) => providers::git(error),
            Self::Secret(error) => plain(StatusCode::BAD_REQUEST, "invalid_secret", error),
            Self::Shared(SharedError::NotFound) => {
                plain(StatusCode::NOT_FOUND, "secret_not_found", "secret not found; GET /api/v1/secrets lists them")
            }
            Self::Shared(SharedError::Vault(error)) => keys::vault(error),
            Self::Rotate(error) => keys::rotation(error),
            Self::NoRoom => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "no_room",
                "the host holds too many webhook bodies now, try again (limits.webhook_room_bytes)",
            ),
            Self::TooManyInstalls => too_many_installs(),
            Self::Inbox(error) => describe_inbox(error),
            Self::Platform(error) => platform::describe(error),
            Self::Query(text) => plain(StatusCode::BAD_REQUEST, "invalid_query", text),
            Self::TooManyFollowers => plain(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_followers",
                "too many clients follow logs, try again later (limits.log_followers)",
            ),
            Self::TooManyConnections => plain(
                StatusCode::TOO_MANY_REQUESTS,
                "too_many_connections",
                "too many live connections, try again later (limits.ws_connections)",
            ),
            Self::NoUpgrade(text) => {
                plain(StatusCode::UPGRADE_REQUIRED, "no_upgrade", format!("this is a WebSocket: {text}"))
            }
            Self::Ui(error) => ui::file(error),
            Self::UserState(error) => ui::user_state(error),
            Self::Mcp(error) => mcp::refused(error),
            Self::NotReady => plain(StatusCode::SERVICE_UNAVAILABLE, "not_ready", "the host is not ready"),
            Self::Stopping => stopping(),
            Self::Internal(error) => trouble(&**error),
            Self::Lost => internal(),
        }
    }
}

fn plain(status: StatusCode, code: &'static str, text: impl fmt::Display) -> Described {
    Described { status, code, text: text.to_string(), note: None, details: Value::Null }
}

fn internal() -> Described {
    plain(StatusCode::INTERNAL_SERVER_ERROR, "internal", "internal error, the host's log has the reason")
}

fn trouble(error: &dyn std::error::Error) -> Described {
    internal().with_note(chain(error))
}

fn stopping() -> Described {
    plain(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the host is stopping")
}

fn too_many_installs() -> Described {
    plain(StatusCode::TOO_MANY_REQUESTS, "too_many_installs", "too many installs at once, try again (limits.installs)")
}

fn too_large(text: String) -> Described {
    plain(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", text)
}

fn describe_body(error: &BodyError) -> Described {
    match error {
        BodyError::TooLarge { limit } => too_large(format!("request body exceeds max size of {limit} bytes")),
        BodyError::Broken => plain(StatusCode::BAD_REQUEST, "body_unreadable", "failed to read request body"),
        BodyError::Silent(idle) => silent(*idle),
        BodyError::TooSlow(_) => plain(
            StatusCode::REQUEST_TIMEOUT,
            "body_timeout",
            format!("the request body was {error} (timing.body_timeout)"),
        ),
    }
}

fn silent(idle: Duration) -> Described {
    plain(StatusCode::REQUEST_TIMEOUT, "body_timeout", format!("no byte of the body for {} ms", idle.as_millis()))
}

fn describe_upload(error: &UploadError) -> Described {
    match error {
        UploadError::Malformed(_) => plain(StatusCode::BAD_REQUEST, "invalid_multipart", error),
        UploadError::MissingField => plain(StatusCode::BAD_REQUEST, "missing_package", error),
        UploadError::TooMuchBeside => plain(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", error),
        UploadError::TwoPackages => plain(StatusCode::BAD_REQUEST, "two_packages", error),
    }
}

fn describe_fetch(error: &FetchError) -> Described {
    match error {
        FetchError::Malformed(_) | FetchError::Scheme(_) | FetchError::MissingHost => {
            plain(StatusCode::BAD_REQUEST, "invalid_url", error)
        }
        FetchError::NotPublic(_) => plain(StatusCode::BAD_REQUEST, "address_refused", error),
        FetchError::TooManyRedirects(_)
        | FetchError::BadRedirect(_)
        | FetchError::Status(_)
        | FetchError::Connection(_) => plain(StatusCode::BAD_GATEWAY, "download_failed", error),
        FetchError::TooLarge(_) => plain(StatusCode::PAYLOAD_TOO_LARGE, "package_too_large", error),
        FetchError::TimedOut(_) => plain(StatusCode::GATEWAY_TIMEOUT, "download_timeout", error),
        FetchError::DiskFull(cause) => {
            plain(StatusCode::INSUFFICIENT_STORAGE, "disk_full", error).with_note(cause.clone())
        }
        FetchError::Staging(_) => trouble(error),
    }
}

fn describe_inbox(error: &InboxError) -> Described {
    match error {
        InboxError::NotFound => plain(StatusCode::NOT_FOUND, "inbox_item_not_found", error),
        InboxError::Database(fault) => describe_fault(fault),
    }
}

fn describe_fault(fault: &DbFault) -> Described {
    match fault {
        DbFault::Lost(_) | DbFault::Unavailable(_) => plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "database_unavailable",
            "the database does not answer, try again; the host's log has the reason",
        )
        .with_note(chain(fault)),
        DbFault::Conflict(_) => {
            plain(StatusCode::CONFLICT, "conflict", "another change is in the way: read what is there, and try again")
                .with_note(chain(fault))
        }
        DbFault::Statement(_) => trouble(fault),
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe().text)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.describe().status
    }

    fn error_response(&self) -> HttpResponse {
        let Described { status, code, text, details, .. } = self.logged();
        let mut answer = HttpResponse::build(status);
        if let Self::Method { allow } = self {
            answer.insert_header((header::ALLOW, allow.as_str()));
        }
        if status == StatusCode::UNAUTHORIZED {
            answer.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        // A host that stops is often one that starts again.
        let again = matches!(self, Self::NoRoom | Self::Publish(WriteError::Full))
            || status == StatusCode::TOO_MANY_REQUESTS
            || code == stopping().code;
        if again {
            answer.insert_header((header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string()));
        }
        let violations = match self {
            Self::Settings(SettingsError::Invalid(refusal)) => refusal.violations.as_slice(),
            Self::Tool(error) => calls::violations(error),
            _ => &[],
        };
        answer.json(ErrorBody { error: &text, code, violations, details })
    }
}

/// `?` from the layers below.
macro_rules! from {
    ($($variant:ident($error:ty)),* $(,)?) => {$(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

from!(
    Body(BodyError),
    Upload(UploadError),
    Fetch(FetchError),
    Package(PackageError),
    Market(MarketError),
    Trust(TrustError),
    Registry(RegistryError),
    Settings(SettingsError),
    Action(ActionError),
    Tool(ToolError),
    Reference(ReferenceError),
    Provider(ProviderError),
    Git(GitError),
    Inbox(InboxError),
    Platform(PlatformError),
    Publish(WriteError),
    Subject(SubjectError),
    HeaderNotText(HeaderNotText),
    Secret(SharedSecretError),
    Shared(SharedError),
    Rotate(RotateError),
    Mcp(super::mcp::Refused),
);

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Platform(refusal.into())
    }
}

impl From<SourceStoreError> for ApiError {
    fn from(error: SourceStoreError) -> Self {
        Self::Market(error.into())
    }
}

impl From<VaultError> for ApiError {
    fn from(error: VaultError) -> Self {
        Self::Shared(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::{AskError, CallKind};
    use actix_web::body::to_bytes;
    use serde_json::json;

    async fn shown(error: ApiError) -> (u16, Value) {
        let answer = error.error_response();
        let status = answer.status().as_u16();
        (status, serde_json::from_slice(&to_bytes(answer.into_body()).await.unwrap()).unwrap())
    }

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    #[tokio::test]
    async fn the_hosts_own_trouble_is_500_without_its_text() {
        let internal = json!({"error": "internal error, the host's log has the reason", "code": "internal"});
        let storage = || std::io::Error::other("/secret/path: disk on fire");
        for error in [
            ApiError::internal(storage()),
            ApiError::Registry(RegistryError::Storage("disk on fire".into())),
            ApiError::Registry(RegistryError::Ask(AskError::Died)),
            ApiError::Lost,
        ] {
            assert_eq!(shown(error).await, (500, internal.clone()));
        }
    }

    #[tokio::test]
    async fn a_plugins_grpc_error_is_503_without_its_text() {
        let refused = CallError::Refused { code: tonic::Code::Internal, message: "stack trace".to_owned() };
        for error in [refused, CallError::Disconnected] {
            let expected = json!({"error": "plugin \"acme\" failed to handle the webhook", "code": "webhook_failed"});
            assert_eq!(shown(ApiError::Call(acme(), error)).await, (503, expected));
        }
    }

    #[test]
    fn a_secret_in_a_plugins_grpc_error_does_not_reach_the_log() {
        let message = "login failed: password=hunter2hunter2".to_owned();
        let error = ApiError::Call(acme(), CallError::Refused { code: tonic::Code::Unknown, message });
        let note = error.describe().note.unwrap();
        assert!(note.contains("login failed") && !note.contains("hunter2"), "{note}");
    }

    #[tokio::test]
    async fn a_webhook_that_takes_too_long_is_504() {
        let error = ApiError::Call(acme(), CallError::TimedOut(Duration::from_secs(30)));
        let expected =
            json!({"error": "plugin \"acme\" did not answer the webhook in time", "code": "webhook_timeout"});
        assert_eq!(shown(error).await, (504, expected));
    }

    #[tokio::test]
    async fn a_webhooks_answer_that_is_too_large_to_read_is_502() {
        let error = ApiError::Call(acme(), CallError::TooLarge(7));
        let expected =
            json!({"error": "plugin returned a webhook answer of more than 7 bytes", "code": "invalid_webhook_answer"});
        assert_eq!(shown(error).await, (502, expected));
    }

    #[tokio::test]
    async fn too_many_is_429_and_says_when_to_try_again() {
        for error in [ApiError::CallRefused(acme(), CallRefused::TooMany(CallKind::Webhook)), ApiError::TooManyInstalls]
        {
            let answer = error.error_response();
            assert_eq!(answer.status(), 429);
            assert_eq!(answer.headers().get(header::RETRY_AFTER).unwrap(), "1");
        }
    }

    #[tokio::test]
    async fn a_host_that_stops_says_when_to_try_again() {
        for error in [ApiError::Stopping, ApiError::Registry(RegistryError::Stopping)] {
            let answer = error.error_response();
            assert_eq!(answer.headers().get(header::RETRY_AFTER).unwrap(), "1");
            let expected = json!({"error": "the host is stopping", "code": "stopping"});
            assert_eq!(shown(error).await, (503, expected));
        }
    }

    #[tokio::test]
    async fn a_body_over_its_limit_is_413_with_the_limit() {
        let expected = json!({"error": "request body exceeds max size of 4194304 bytes", "code": "body_too_large"});
        assert_eq!(shown(BodyError::TooLarge { limit: 4_194_304 }.into()).await, (413, expected));
        let webhook = json!({"error": "webhook body exceeds max size of 7 bytes", "code": "body_too_large"});
        assert_eq!(shown(ApiError::WebhookTooLarge(7)).await, (413, webhook));
        let package = ApiError::Package(PackageError::CompressedTooLarge(7));
        let expected =
            json!({"error": "pkgtar: package exceeds max compressed size of 7 bytes", "code": "package_too_large"});
        assert_eq!(shown(package).await, (413, expected));
    }

    #[tokio::test]
    async fn what_the_caller_did_wrong_is_4xx() {
        let cases = [
            (ApiError::Registry(RegistryError::NotFound("x".to_owned())), 404, "plugin_not_found"),
            (ApiError::Registry(RegistryError::Busy(acme())), 409, "plugin_busy"),
            (ApiError::Package(PackageError::MissingChecksums), 400, "missing_checksums"),
            (ApiError::Upload(UploadError::MissingField), 400, "missing_package"),
            (ApiError::Body(BodyError::Broken), 400, "body_unreadable"),
            (ApiError::Body(BodyError::Silent(Duration::from_secs(1))), 408, "body_timeout"),
            (ApiError::HeaderNotText(HeaderNotText("X-A".to_owned())), 400, "invalid_header"),
            (ApiError::NoWebhook { id: acme(), key: "k".to_owned() }, 404, "webhook_not_found"),
            (ApiError::Forbidden, 403, "forbidden"),
            (ApiError::from(SourceStoreError::NotFound), 404, "source_not_found"),
            (ApiError::from(SourceStoreError::Full(3)), 409, "too_many_sources"),
        ];
        for (error, status, code) in cases {
            let (shown_status, body) = shown(error).await;
            assert_eq!((shown_status, &body["code"]), (status, &json!(code)));
        }
    }

    #[tokio::test]
    async fn what_will_pass_is_503() {
        for error in [
            ApiError::CallRefused(acme(), CallRefused::NotRunning),
            ApiError::Registry(RegistryError::Ask(AskError::NotDelivered)),
            ApiError::NoRoom,
            ApiError::NotReady,
            ApiError::Stopping,
        ] {
            assert_eq!(shown(error).await.0, 503);
        }
    }
}
