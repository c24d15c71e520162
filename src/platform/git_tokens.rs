//! Tokens with which git asks for credentials: the operator makes one for one session and one repository of its task,
//! and it is good until it expires, is revoked, or the session is over or gone.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use time::OffsetDateTime;

use super::{PlatformError, new_id, sessions::with_task};
use crate::{
    domain::{
        calls::place::attached,
        platform::{
            Scope,
            git_token::{GitToken, MAX_TOKENS, PREFIX, TokenHash},
            refusal::{Kind, Refusal},
            repository::Repository,
            session::Session,
            whole_micros,
            words::SessionState,
        },
    },
    store::{
        admin_token::random_text,
        platform::{PlatformStore, Work},
    },
};

/// The service.
#[derive(Debug, Clone)]
pub struct GitTokens {
    store: PlatformStore,
}

/// A token that was made just now. Nobody sees it again.
#[derive(Debug)]
pub struct Minted {
    /// What is known of it later.
    pub token: GitToken,
    /// The token itself.
    pub secret: SecretString,
}

/// What a token is good for, verified now.
#[derive(Debug, Clone)]
pub struct GitPlace {
    /// Of the session.
    pub workspace: String,
    /// Of the session.
    pub task: String,
    /// The session; it is not over.
    pub session: String,
    /// The repository; it is attached to the task.
    pub repository: Repository,
}

/// Why no token was made.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// A token would be dead from the beginning.
    #[error("the session is {0}: a token is good for a session that goes on")]
    Over(SessionState),
    /// A rule or the database is against it.
    #[error(transparent)]
    Platform(PlatformError),
    /// Nothing to make it of.
    #[error("the system gives no random bytes")]
    Random,
}

impl GitTokens {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// Makes a token for a session that is not over and a repository of its task, the session's own when none is named;
    /// good for `age`. A session has at most 32 good ones.
    pub async fn mint(
        &self,
        scope: &Scope,
        session_id: &str,
        repository_id: Option<&str>,
        age: Duration,
    ) -> Result<Minted, MintError> {
        let random = random_text().ok_or(MintError::Random)?;
        let secret = SecretString::from(format!("{PREFIX}{}", random.expose_secret()));
        let hash = TokenHash::of(secret.expose_secret());
        let hash = hash.as_ref().ok_or(MintError::Random)?;
        let id = &new_id();
        let work = |work: Work| async move {
            let (task, session) = with_task(&work, session_id).await?;
            if session.state.is_final() {
                return Err(Refusal::SessionOver(session.state).into());
            }
            let repository_id = repository_id.unwrap_or(&session.repository_id);
            if repository_id.is_empty() {
                return Err(Refusal::Required("repository_id").into());
            }
            let repository: Option<Repository> = work.peek(repository_id).await?;
            let there = repository.is_some_and(|repository| repository.deleted_at.is_none());
            if !there || attached(&task.repositories, repository_id).is_err() {
                return Err(Refusal::not_found(Kind::Repository, repository_id).into());
            }
            let now = work.now();
            let token = GitToken {
                id: id.clone(),
                session_id: session.id,
                repository_id: repository_id.to_owned(),
                created_at: now,
                expires_at: whole_micros(now + age),
                last_used_at: None,
            };
            if work.add_git_token(&token, hash).await? {
                return Ok(token);
            }
            Err(Refusal::TooMany { field: "git-credentials", count: MAX_TOKENS + 1, limit: MAX_TOKENS }.into())
        };
        let token = self.store.write(scope, None, work).await.map_err(|error| match error {
            PlatformError::Refused(Refusal::SessionOver(state)) => MintError::Over(state),
            error => MintError::Platform(error),
        })?;
        Ok(Minted { token, secret })
    }

    /// The good tokens of a session, the oldest first.
    pub async fn list(&self, scope: &Scope, session_id: &str) -> Result<Vec<GitToken>, PlatformError> {
        let session: Session = self.store.find(scope, session_id).await?;
        self.store.git_tokens(&session.id, OffsetDateTime::now_utc()).await
    }

    /// Makes a token good for nothing; it may be gone already.
    pub async fn revoke(&self, scope: &Scope, session_id: &str, id: &str) -> Result<(), PlatformError> {
        let session: Session = self.store.find(scope, session_id).await?;
        self.store.revoke_git_token(&session.id, id).await
    }

    /// What a presented token is good for now; `None` when it is good for nothing, whatever the reason. Notes the use.
    pub async fn redeem(&self, presented: &str) -> Result<Option<GitPlace>, PlatformError> {
        let now = OffsetDateTime::now_utc();
        let Some((token, place)) = self.look(presented, now).await? else { return Ok(None) };
        self.store.git_token_used(&token.id, now).await?;
        Ok(Some(place))
    }

    /// Whether a token that was redeemed is still good. Notes nothing.
    pub async fn is_good(&self, presented: &str) -> Result<bool, PlatformError> {
        Ok(self.look(presented, OffsetDateTime::now_utc()).await?.is_some())
    }

    async fn look(&self, presented: &str, now: OffsetDateTime) -> Result<Option<(GitToken, GitPlace)>, PlatformError> {
        let Some(hash) = TokenHash::of(presented) else { return Ok(None) };
        let Some(token) = self.store.git_token(&hash, now).await? else { return Ok(None) };
        Ok(gone(self.place(&token).await)?.map(|place| (token, place)))
    }

    async fn place(&self, token: &GitToken) -> Result<GitPlace, PlatformError> {
        let scope = &Scope::All;
        let session: Session = self.store.find(scope, &token.session_id).await?;
        if session.state.is_final() {
            return Err(Refusal::SessionOver(session.state).into());
        }
        let task = self.store.task(scope, &session.task_id).await?;
        let not_found = || Refusal::not_found(Kind::Repository, &token.repository_id);
        attached(&task.repositories, &token.repository_id).map_err(|_| not_found())?;
        let repository: Repository = self.store.find(scope, &token.repository_id).await?;
        if repository.deleted_at.is_some() {
            return Err(not_found().into());
        }
        Ok(GitPlace { workspace: task.workspace_id, task: task.id, session: session.id, repository })
    }
}

/// What is refused is not there for whoever holds a token.
fn gone<T>(found: Result<T, PlatformError>) -> Result<Option<T>, PlatformError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(PlatformError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
