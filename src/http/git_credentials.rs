//! Git credentials over REST: the operator makes tokens for a session and repository; git's helper asks with such a
//! token for the credential of that repository.
//!
//! The token is proof for one route alone. It is no principal: the gate lets everyone to the route, as to a webhook,
//! and the route takes nothing but a token of its own, not the operator's. Answers with a secret are not to be kept by
//! anybody.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web,
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    ApiError, Services,
    body::{self, Bounds},
    change::{no_key, scope},
    endpoint::{Content, Endpoint, delete, get, post},
    token::bearer_of,
};
use crate::{
    actors::WantedCredential,
    domain::{
        action::Action,
        calls::git::{Credential, Elsewhere, MAX_NAME_BYTES, Remote},
        platform::git_token::GitToken,
    },
    platform::git_tokens::{GitPlace, MintError, Minted},
};

/// Why making a token takes no `Idempotency-Key`.
const TOKEN_IS_NOT_KEPT: &str = "to answer the same token again the host would have to keep it; make another one, and \
                                 delete the one that is not needed";

const TOKENS: &str = "/api/v1/task-sessions/{id}/git-credentials";

pub static ROUTES: &[Endpoint] = &[
    post(TOKENS, Action::GitTokenWrite, || web::to(mint))
        .about("Make a token with which git asks for credentials, for a session and a repository; it is shown once")
        .body::<NewToken>()
        .gives::<MadeToken<'_>>(201)
        .refuses(&[409]),
    get(TOKENS, Action::GitTokenRead, || web::to(list))
        .about("The good tokens of a session, without the tokens")
        .gives::<TokenList>(200),
    delete("/api/v1/task-sessions/{id}/git-credentials/{token}", Action::GitTokenWrite, || web::to(revoke))
        .about("Make a token good for nothing, by its id; it may be gone already")
        .gives_of(204, Content::Empty),
    post("/api/v1/git-credential", Action::GitCredentialResolve, || web::to(resolve))
        .about("User name and password for git, by a token made for this and no other one as the bearer")
        .body::<Asked>()
        .gives::<Answer<'_>>(200)
        .refuses(&[401, 403, 404, 409, 429, 502, 504]),
];

/// Why git gets nothing, or the operator no token.
#[derive(Debug)]
pub enum GitError {
    /// The token is not for what git asks about.
    Elsewhere(Elsewhere),
    /// No token was made.
    Mint(MintError),
}

/// What a token is to be good for.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = NewGitToken)]
struct NewToken {
    /// One of the task's; left out: the session's own.
    repository_id: Option<String>,
    /// Left out: `timing.git_token_age`, which is also the longest.
    #[schema(minimum = 1)]
    expires_in_seconds: Option<u64>,
}

/// A token as it is seen later.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GitToken)]
struct TokenView {
    id: String,
    session_id: String,
    repository_id: String,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option")]
    last_used_at: Option<OffsetDateTime>,
}

impl From<GitToken> for TokenView {
    fn from(token: GitToken) -> Self {
        let GitToken { id, session_id, repository_id, created_at, expires_at, last_used_at } = token;
        Self { id, session_id, repository_id, created_at, expires_at, last_used_at }
    }
}

/// A token that was made just now.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeGitToken)]
struct MadeToken<'a> {
    /// It is shown here and never again.
    token: &'a str,
    #[serde(flatten)]
    about: TokenView,
}

/// Tokens.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GitTokens)]
struct TokenList {
    tokens: Vec<TokenView>,
}

/// What git wants a credential for, in its words.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GitRemote)]
struct Asked {
    /// `https`; others are refused.
    protocol: String,
    /// With a port unless it is the usual one. Upper and lower case count.
    #[schema(max_length = 1024)]
    host: String,
    /// Without a slash before it. Upper and lower case count.
    #[serde(default, deserialize_with = "body::or_default")]
    #[schema(max_length = 1024)]
    path: String,
}

/// A credential.
#[derive(Serialize, ToSchema)]
#[schema(as = GitCredential)]
struct Answer<'a> {
    username: &'a str,
    password: &'a str,
    /// When it ends; left out when the plugin does not say.
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    expires_at: Option<OffsetDateTime>,
}

/// `POST …/git-credentials`. An idempotency key is refused: the token would have to be kept for it.
async fn mint(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    no_key(request.headers(), TOKEN_IS_NOT_KEPT)?;
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let bytes = body::whole(&request, payload, bounds).await?;
    let NewToken { repository_id, expires_in_seconds } =
        body::parse(if bytes.is_empty() { b"{}" } else { &bytes[..] })?;
    let Some(age) = services.timing.git_token_life(expires_in_seconds) else {
        let most = services.timing.git_token_age.as_secs();
        let text = format!("expires_in_seconds must be between 1 and {most} (timing.git_token_age)");
        return Err(ApiError::Invalid(text));
    };
    let minted = services.platform.git_tokens.mint(&scope(&request), &id, repository_id.as_deref(), age).await;
    let Minted { token, secret } = minted.map_err(GitError::Mint)?;
    tracing::info!(session = %token.session_id, repository = %token.repository_id, token.id = %token.id, "a git token was made");
    Ok(secretive(StatusCode::CREATED, &MadeToken { token: secret.expose_secret(), about: token.into() }))
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    let tokens = services.platform.git_tokens.list(&scope(&request), &id).await?;
    Ok(HttpResponse::Ok().json(TokenList { tokens: tokens.into_iter().map(TokenView::from).collect() }))
}

async fn revoke(
    services: web::Data<Services>,
    request: HttpRequest,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, ApiError> {
    let (session, id) = path.into_inner();
    services.platform.git_tokens.revoke(&scope(&request), &session, &id).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// `POST /api/v1/git-credential`. Checks the token before it reads a byte of the body. It belongs to its client's
/// connection: the plugin's call is cancelled when that ends.
async fn resolve(
    services: web::Data<Services>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let presented = bearer_of(request.headers()).and_then(|token| std::str::from_utf8(token).ok());
    let presented = presented.ok_or(ApiError::Unauthenticated)?;
    let redeemed = services.platform.git_tokens.redeem(presented).await?;
    let GitPlace { workspace, task, session, repository } = redeemed.ok_or(ApiError::Unauthenticated)?;
    let bounds = Bounds::new(services.limits.request_bytes, &services.timing);
    let Asked { protocol, host, path } = body::json(&request, payload, bounds).await?;
    let remote = Remote { protocol, host, path };
    if !remote.is_plain() {
        let text = format!("protocol, host and path must be one line each, of at most {MAX_NAME_BYTES} bytes");
        return Err(ApiError::Invalid(text));
    }
    remote.is_at(&repository.fields).map_err(GitError::Elsewhere)?;
    let wanted = WantedCredential {
        workspace: &workspace,
        task: &task,
        session: &session,
        repository: &repository,
        remote: &remote,
    };
    let Credential { username, secret, expires_at } = services.registry.git_credential(wanted).await?;
    // The plugin took its time: the session may be over, or the token revoked.
    if !services.platform.git_tokens.is_good(presented).await? {
        return Err(ApiError::Unauthenticated);
    }
    let answer = Answer { username: &username, password: secret.expose_secret(), expires_at };
    Ok(secretive(StatusCode::OK, &answer))
}

/// An answer that nobody on the way may keep.
fn secretive(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status).insert_header((header::CACHE_CONTROL, "no-store")).json(body)
}
