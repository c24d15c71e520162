//! Sessions and their turns (platform-rest.md §6). Messages are `messages`' part, commits and snapshots `code`'s.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::{
    DONE, Done, Nothing, filled, given,
    parts::{Listed, Part},
};
use crate::{
    domain::{
        action::Action,
        platform::{
            Map,
            refusal::Refusal,
            session::{NewSession, Session, SessionFilter, SessionPatch, Turn},
            words::{ReviewStatus, SessionState},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, delete, get, patch, post},
        query::Query,
    },
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/tasks/{id}/sessions", Action::SessionRead, || web::to(list))
        .about("Sessions of a task, the newest first")
        .query::<Part>()
        .gives::<SessionList>(200),
    post("/api/v1/tasks/{id}/sessions/ensure", Action::SessionWrite, || web::to(ensure))
        .about("The primary session of a task, made when there is none")
        .body::<NewSessionBody>()
        .gives::<EnsuredSession>(200)
        .versioned()
        .once(),
    get("/api/v1/task-sessions/{id}", Action::SessionRead, || web::to(read))
        .about("One session")
        .gives::<SessionAnswer>(200)
        .versioned(),
    patch("/api/v1/task-sessions/{id}", Action::SessionWrite, || web::to(update))
        .about("Change a session: its name, state, review, or whether it is the primary one")
        .body::<SessionBody>()
        .gives::<SessionAnswer>(200)
        .versioned()
        .once(),
    delete("/api/v1/task-sessions/{id}", Action::SessionWrite, || web::to(remove))
        .about("Delete a session with its turns and messages")
        .gives::<Done>(200)
        .versioned()
        .once(),
    get("/api/v1/task-sessions/{id}/turns", Action::SessionRead, || web::to(turns))
        .about("Turns of a session, the oldest first")
        .query::<Part>()
        .gives::<TurnList>(200),
    post("/api/v1/task-sessions/{id}/turns/complete", Action::SessionWrite, || web::to(complete_turn))
        .about("Close the open turn of a session, when there is one")
        .gives::<TurnAnswer>(200)
        .once(),
    post("/api/v1/task-sessions/{id}/mark-read", Action::SessionWrite, || web::to(mark_read))
        .about("Note the last message that a person has read")
        .body::<ReadMark>()
        .gives::<ReadMarkAnswer>(200)
        .once(),
    post("/api/v1/sessions/{id}/approve", Action::SessionWrite, || web::to(approve))
        .about("Approve what a session did")
        .gives::<Approval>(200)
        .versioned()
        .conditional()
        .once(),
];

/// What a new session begins with; a session that is there is answered as it is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewSessionBody {
    name: Option<String>,
    agent_profile_id: Option<String>,
    executor_profile_id: Option<String>,
    /// Left out: the task's repository, when it has exactly one.
    repository_id: Option<String>,
    /// Left out: the base branch that the task names for the repository.
    base_branch: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// What changes of a session; what is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SessionBody {
    name: Option<String>,
    state: Option<SessionState>,
    error_message: Option<String>,
    /// True takes it from the session that has it.
    is_primary: Option<bool>,
    /// `pending`, `approved`, or empty for none.
    #[schema(value_type = Option<ReviewStatus>)]
    review_status: Option<String>,
    /// Merged into what is there; `null` takes a key away.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

impl SessionBody {
    fn patch(self) -> Result<SessionPatch, Refusal> {
        let review = |word: String| match word.as_str() {
            "" => Ok(None),
            word => {
                let unknown = || Refusal::BadWord { field: "review_status", accepted: ReviewStatus::accepted() };
                ReviewStatus::of(word).map(Some).ok_or_else(unknown)
            }
        };
        Ok(SessionPatch {
            name: self.name,
            state: self.state,
            error_message: self.error_message,
            is_primary: self.is_primary,
            review_status: self.review_status.map(review).transpose()?,
            metadata: self.metadata,
        })
    }
}

/// What was read.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ReadMark {
    message_id: String,
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
struct SessionView {
    id: String,
    task_id: String,
    workspace_id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_profile_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executor_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    executor_profile_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_branch: Option<String>,
    state: SessionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// What the agent profile was when the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    agent_profile_snapshot: Option<Map>,
    /// What the executor was when the session began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    executor_snapshot: Option<Map>,
    #[serde(with = "time::serde::rfc3339")]
    started_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    completed_at: Option<OffsetDateTime>,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    is_primary: bool,
    is_passthrough: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    review_status: Option<ReviewStatus>,
    /// None: no agent runs that could ask for something.
    pending_action: Option<String>,
    cancellation_pending: bool,
    cancellation_revision: i64,
    active_subagent_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_read_message_id: Option<String>,
    version: i64,
}

impl From<Session> for SessionView {
    fn from(session: Session) -> Self {
        Self {
            agent_profile_id: given(&session.agent_profile_id),
            executor_id: given(&session.executor_id),
            executor_profile_id: given(&session.executor_profile_id),
            repository_id: given(&session.repository_id),
            base_branch: given(&session.base_branch),
            error_message: given(&session.error_message),
            metadata: filled(&session.metadata),
            agent_profile_snapshot: filled(&session.agent_profile_snapshot),
            executor_snapshot: filled(&session.executor_snapshot),
            id: session.id,
            task_id: session.task_id,
            workspace_id: session.workspace_id,
            name: session.name,
            state: session.state,
            started_at: session.started_at,
            completed_at: session.completed_at,
            updated_at: session.updated_at,
            is_primary: session.is_primary,
            is_passthrough: false,
            review_status: session.review_status,
            pending_action: None,
            cancellation_pending: false,
            cancellation_revision: 0,
            active_subagent_count: 0,
            last_read_message_id: session.last_read_message_id,
            version: session.version,
        }
    }
}

/// Sessions.
#[derive(Debug, Serialize, ToSchema)]
struct SessionList {
    sessions: Vec<SessionView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One session.
#[derive(Debug, Serialize, ToSchema)]
struct SessionAnswer {
    session: SessionView,
}

/// The session that messages to the task go to.
#[derive(Debug, Serialize, ToSchema)]
struct EnsuredSession {
    session: SessionView,
    session_id: String,
    task_id: String,
}

/// A session that was approved.
#[derive(Debug, Serialize, ToSchema)]
struct Approval {
    success: bool,
    session: SessionView,
}

/// A turn: one prompt and what comes of it.
#[derive(Debug, Serialize, ToSchema)]
struct TurnView {
    id: String,
    session_id: String,
    task_id: String,
    #[serde(with = "time::serde::rfc3339")]
    started_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339::option", skip_serializing_if = "Option::is_none")]
    completed_at: Option<OffsetDateTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
}

impl From<Turn> for TurnView {
    fn from(turn: Turn) -> Self {
        Self {
            metadata: filled(&turn.metadata),
            id: turn.id,
            session_id: turn.session_id,
            task_id: turn.task_id,
            started_at: turn.started_at,
            completed_at: turn.completed_at,
            created_at: turn.created_at,
            updated_at: turn.updated_at,
        }
    }
}

/// Turns.
#[derive(Debug, Serialize, ToSchema)]
struct TurnList {
    turns: Vec<TurnView>,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The turn that was closed; `null` when none was open.
#[derive(Debug, Serialize, ToSchema)]
struct TurnAnswer {
    turn: Option<TurnView>,
}

/// What was read.
#[derive(Debug, Serialize, ToSchema)]
struct ReadMarkAnswer {
    session_id: String,
    last_read_message_id: Option<String>,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.sessions, scope(&request));
    let task = services.platform.tasks.get(&scope, &id).await?;
    let filter = SessionFilter { task_ids: vec![task.id], ..SessionFilter::default() };
    let page = async |page| service.list(&scope, &filter, &page).await;
    let listed = part.read(page, async || service.count(&scope, &filter).await).await?;
    let Listed { items: sessions, total, next_cursor } = listed.map(SessionView::from);
    Ok(HttpResponse::Ok().json(SessionList { sessions, total, next_cursor }))
}

async fn read(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    Ok(answer(services.platform.sessions.get(&scope(&request), &id).await?))
}

async fn ensure(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<NewSessionBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.sessions.clone();
    let body = change.body;
    let new = NewSession {
        task_id: id.into_inner(),
        name: body.name.unwrap_or_default(),
        state: None,
        agent_profile_id: body.agent_profile_id.unwrap_or_default(),
        executor_profile_id: body.executor_profile_id.unwrap_or_default(),
        repository_id: body.repository_id.unwrap_or_default(),
        base_branch: body.base_branch.unwrap_or_default(),
        metadata: body.metadata.unwrap_or_default(),
    };
    let session = services.tasks.finish(async move { service.ensure(&change.by, &new).await }).await?;
    let (session_id, task_id, version) = (session.id.clone(), session.task_id.clone(), session.version);
    let body = EnsuredSession { session: session.into(), session_id, task_id };
    Ok(versioned(StatusCode::OK, version, &body))
}

async fn update(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<SessionBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.sessions.clone();
    let patch = change.body.patch()?;
    let work = async move { service.update(&change.by, &id, &patch, change.expected).await };
    Ok(answer(services.tasks.finish(work).await?))
}

async fn approve(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.sessions.clone();
    let patch = SessionPatch { review_status: Some(Some(ReviewStatus::Approved)), ..SessionPatch::default() };
    let work = async move { service.update(&change.by, &id, &patch, change.expected).await };
    let session = services.tasks.finish(work).await?;
    let version = session.version;
    Ok(versioned(StatusCode::OK, version, &Approval { success: true, session: session.into() }))
}

async fn remove(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.sessions.clone();
    services.tasks.finish(async move { service.delete(&change.by, &id, change.expected).await }).await?;
    Ok(HttpResponse::Ok().json(DONE))
}

async fn turns(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(part): Query<Part>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.sessions, scope(&request));
    let page = async |page| service.turns(&scope, &id, &page).await;
    let listed = part.read(page, async || service.count_turns(&scope, &id).await).await?.map(TurnView::from);
    let (turns, total, next_cursor) = (listed.items, listed.total, listed.next_cursor);
    Ok(HttpResponse::Ok().json(TurnList { turns, total, next_cursor }))
}

async fn complete_turn(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<Nothing>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.sessions.clone();
    let turn = services.tasks.finish(async move { service.complete_turn(&change.by, &id).await }).await?;
    Ok(HttpResponse::Ok().json(TurnAnswer { turn: turn.map(TurnView::from) }))
}

async fn mark_read(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<ReadMark>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.sessions.clone();
    let work = async move { service.mark_read(&change.by, &id, &change.body.message_id).await };
    let session = services.tasks.finish(work).await?;
    let body = ReadMarkAnswer { session_id: session.id, last_read_message_id: session.last_read_message_id };
    Ok(HttpResponse::Ok().json(body))
}

fn answer(session: Session) -> HttpResponse {
    let version = session.version;
    versioned(StatusCode::OK, version, &SessionAnswer { session: session.into() })
}
