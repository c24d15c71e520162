//! Tokens with which git asks for credentials: what one is good for, and when it is good for nothing any more.

use std::time::Duration;

use secrecy::ExposeSecret;
use time::OffsetDateTime;

use super::*;
use crate::{
    domain::platform::{
        git_token::{GitToken, MAX_TOKENS, TokenHash},
        refusal::{Class, Kind},
        repository::{Repository, RepositoryFields},
        session::{NewSession, Session, SessionPatch},
        task::{RepositoryDraft, RepositoryRef},
        words::SessionState,
    },
    platform::git_tokens::{MintError, Minted},
    store::db::tests::on_both_databases,
};

const DAY: Duration = Duration::from_secs(86_400);

/// A session that works on the first of a task's two repositories, and a repository that is none of the task's.
struct Place {
    world: World,
    session: Session,
    own: Repository,
    other: Repository,
    foreign: Repository,
}

impl Place {
    async fn new(db: Db) -> Self {
        let world = World::new(db);
        let workspace = world.workspace("one").await;
        let mut made = Vec::new();
        for name in ["own", "other", "foreign"] {
            let fields = RepositoryFields { name: name.to_owned(), ..RepositoryFields::default() };
            made.push(world.platform.repositories.create(&By::operator(), &workspace.id, fields).await.unwrap());
        }
        let [own, other, foreign]: [Repository; 3] = made.try_into().unwrap();
        let draft = |repository: &Repository| RepositoryDraft {
            repository: RepositoryRef::Known(repository.id.clone()),
            base_branch: String::new(),
            checkout_branch: String::new(),
            pull_request_number: None,
        };
        let new = NewTask { repositories: vec![draft(&own), draft(&other)], ..titled("x") };
        let task = world.made(&By::operator(), &new).await;
        let new = NewSession { task_id: task.id, repository_id: own.id.clone(), ..NewSession::default() };
        let session = world.platform.sessions.create(&By::operator(), &new).await.unwrap();
        Self { world, session, own, other, foreign }
    }

    async fn mint(&self, repository: Option<&str>) -> Result<Minted, MintError> {
        self.world.platform.git_tokens.mint(&Scope::All, &self.session.id, repository, DAY).await
    }

    async fn minted(&self) -> Minted {
        self.mint(None).await.unwrap()
    }

    /// The repository that a token is good for now.
    async fn redeemed(&self, minted: &Minted) -> Option<String> {
        let place = self.world.platform.git_tokens.redeem(minted.secret.expose_secret()).await.unwrap();
        place.map(|place| place.repository.id)
    }

    async fn is_good(&self, minted: &Minted) -> bool {
        self.world.platform.git_tokens.is_good(minted.secret.expose_secret()).await.unwrap()
    }

    async fn listed(&self) -> Vec<GitToken> {
        self.world.platform.git_tokens.list(&Scope::All, &self.session.id).await.unwrap()
    }

    async fn enter(&self, state: SessionState) {
        let patch = SessionPatch { state: Some(state), ..SessionPatch::default() };
        self.world.platform.sessions.update(&By::operator(), &self.session.id, &patch, None).await.unwrap();
    }
}

async fn a_token_is_good_for_a_repository_of_its_sessions_task(db: Db) {
    let place = Place::new(db).await;
    let (own, other) = (place.minted().await, place.mint(Some(&place.other.id)).await.unwrap());
    assert_eq!(place.redeemed(&own).await, Some(place.own.id.clone()));
    assert_eq!(place.redeemed(&other).await, Some(place.other.id.clone()));
    for id in [place.foreign.id.as_str(), "absent", "a\0b"] {
        match place.mint(Some(id)).await {
            Err(MintError::Platform(PlatformError::Refused(Refusal::NotFound { kind, .. }))) => {
                assert_eq!(kind, Kind::Repository);
            }
            other => panic!("{other:?}"),
        }
    }
    place.world.platform.repositories.delete(&By::operator(), &place.other.id, None).await.unwrap();
    assert_eq!(place.redeemed(&other).await, None, "its repository is gone");
    assert!(matches!(place.mint(Some(&place.other.id)).await, Err(MintError::Platform(_))));
}

async fn only_the_hash_of_a_token_is_kept_and_a_use_is_noted(db: Db) {
    let place = Place::new(db).await;
    let minted = place.minted().await;
    let mut listed = place.listed().await;
    assert_eq!(listed, std::slice::from_ref(&minted.token));
    let hash = TokenHash::of(minted.secret.expose_secret()).unwrap();
    let now = OffsetDateTime::now_utc();
    assert_eq!(place.world.store.git_token(&hash, now).await.unwrap(), Some(minted.token.clone()));
    assert!(!format!("{listed:?}{minted:?}").contains(minted.secret.expose_secret()));
    for wrong in ["", "kgt_x", &minted.secret.expose_secret().replace("kgt_", "kgt-")] {
        assert!(place.world.platform.git_tokens.redeem(wrong).await.unwrap().is_none());
    }
    let again = place.minted().await;
    assert_ne!(again.secret.expose_secret(), minted.secret.expose_secret());
    assert!(place.is_good(&minted).await && place.listed().await[0].last_used_at.is_none(), "a look is no use");
    place.redeemed(&minted).await.unwrap();
    listed = place.listed().await;
    assert!(listed[0].last_used_at.is_some() && listed[1].last_used_at.is_none());
}

async fn a_token_ends_with_its_time_the_operators_word_and_the_session(db: Db) {
    let place = Place::new(db).await;
    let tokens = &place.world.platform.git_tokens;
    let (one, two) = (place.minted().await, place.minted().await);
    for _ in 0..2 {
        tokens.revoke(&Scope::All, &place.session.id, &one.token.id).await.unwrap();
    }
    assert_eq!((place.redeemed(&one).await, place.listed().await), (None, vec![two.token.clone()]));
    tokens.revoke(&Scope::All, &place.session.id, "a\0b").await.unwrap();

    let hash = TokenHash::of(two.secret.expose_secret()).unwrap();
    let (last, over) = (two.token.expires_at - Duration::from_micros(1), two.token.expires_at);
    assert!(place.world.store.git_token(&hash, last).await.unwrap().is_some());
    assert!(place.world.store.git_token(&hash, over).await.unwrap().is_none());
    place.world.store.forget_git_tokens(last).await.unwrap();
    assert_eq!(place.listed().await.len(), 1);
    place.world.store.forget_git_tokens(over).await.unwrap();
    assert_eq!(place.listed().await, []);

    for state in [SessionState::Completed, SessionState::Failed, SessionState::Cancelled] {
        let token = place.minted().await;
        place.enter(state).await;
        assert_eq!((place.redeemed(&token).await, place.is_good(&token).await), (None, false));
        match place.mint(None).await {
            Err(MintError::Over(found)) => assert_eq!(found, state),
            other => panic!("{other:?}"),
        }
        place.enter(SessionState::Running).await;
        assert_eq!((place.redeemed(&token).await, place.listed().await), (None, vec![]), "it does not come back");
    }
    let token = place.minted().await;
    place.world.platform.sessions.delete(&By::operator(), &place.session.id, None).await.unwrap();
    assert_eq!(place.redeemed(&token).await, None);
    assert_eq!(refused(tokens.list(&Scope::All, &place.session.id).await).class(), Class::NotFound);
}

async fn a_session_has_only_so_many_tokens(db: Db) {
    let place = Place::new(db).await;
    let mut last = place.minted().await;
    for _ in 1..MAX_TOKENS {
        last = place.minted().await;
    }
    let full = Refusal::TooMany { field: "git-credentials", count: MAX_TOKENS + 1, limit: MAX_TOKENS };
    match place.mint(None).await {
        Err(MintError::Platform(PlatformError::Refused(refusal))) => assert_eq!(refusal, full),
        other => panic!("{other:?}"),
    }
    place.world.platform.git_tokens.revoke(&Scope::All, &place.session.id, &last.token.id).await.unwrap();
    place.minted().await;
}

async fn a_session_out_of_the_scope_has_no_tokens(db: Db) {
    let place = Place::new(db).await;
    let (tokens, nowhere) = (&place.world.platform.git_tokens, Scope::Workspaces(Vec::new()));
    let minted = place.minted().await;
    assert!(matches!(tokens.mint(&nowhere, &place.session.id, None, DAY).await, Err(MintError::Platform(_))));
    assert_eq!(refused(tokens.list(&nowhere, &place.session.id).await).class(), Class::NotFound);
    let id = &minted.token.id;
    assert_eq!(refused(tokens.revoke(&nowhere, &place.session.id, id).await).class(), Class::NotFound);
    assert_eq!(place.redeemed(&minted).await, Some(place.own.id.clone()));
}

on_both_databases!(
    a_token_is_good_for_a_repository_of_its_sessions_task,
    only_the_hash_of_a_token_is_kept_and_a_use_is_noted,
    a_token_ends_with_its_time_the_operators_word_and_the_session,
    a_session_has_only_so_many_tokens,
    a_session_out_of_the_scope_has_no_tokens,
);
