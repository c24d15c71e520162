//! Messages of sessions (platform-rest.md §6). Their text is shown without what is for agents only.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};

use super::{
    filled, given,
    parts::{self, Part},
};
use crate::{
    domain::{
        action::Action,
        platform::{
            Map, Scope,
            message::{Message, MessageFilter, NewMessage},
            refusal::{Kind, Refusal},
            words::{AuthorType, MessageType},
        },
    },
    http::{
        ApiError, Services,
        change::{Change, scope, versioned},
        endpoint::{Endpoint, get, post},
        query::Query,
    },
    platform::messages::Side,
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/task-sessions/{id}/messages", Action::MessageRead, || web::to(list))
        .about("Messages of a session: all, or a part of them")
        .query::<MessageQuery>()
        .gives::<MessageList>(200),
    post("/api/v1/task-sessions/{id}/messages", Action::MessageWrite, || web::to(create))
        .about("Record a message in the open turn of a session, or in a new one")
        .body::<NewMessageBody>()
        .gives::<MessageView>(201)
        .versioned()
        .once(),
    get("/api/v1/task-sessions/{id}/messages/search", Action::MessageRead, || web::to(search))
        .about("Messages of a session that contain a text, the newest first")
        .query::<SearchQuery>()
        .gives::<MessageHits>(200),
    get("/api/v1/agent-sessions/{id}/messages", Action::MessageRead, || web::to(list))
        .about("The same as of a task session")
        .query::<MessageQuery>()
        .gives::<MessageList>(200),
];

/// Rows of a part unless the caller says.
const DEFAULT_LIMIT: u32 = 10;

/// Most rows of a part.
const MAX_LIMIT: u32 = 100;

/// Which messages. Without any of these: all, as far as 1000.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
struct MessageQuery {
    /// Rows; left out beside another parameter: 10.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
    /// Those before the message with this id.
    before: Option<String>,
    /// Those after the message with this id.
    after: Option<String>,
    /// The oldest first (`asc`), or the newest.
    #[param(inline)]
    sort: Option<Sort>,
}

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct SearchQuery {
    /// At most 2048 bytes; a to z are found whatever their case.
    #[param(min_length = 1, max_length = 2048)]
    query: String,
    /// Rows; left out: 10.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next_cursor` of an answer to the same question: what comes after it.
    cursor: Option<String>,
}

/// Which comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    Asc,
    Desc,
}

/// A message to be recorded.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewMessageBody {
    #[schema(max_length = 524288)]
    content: String,
    /// Left out: `user`.
    author_type: Option<AuthorType>,
    author_id: Option<String>,
    /// Left out: `message`.
    #[serde(rename = "type")]
    message_type: Option<MessageType>,
    requests_input: Option<bool>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
struct MessageView {
    id: String,
    session_id: String,
    task_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_id: Option<String>,
    author_type: AuthorType,
    #[serde(rename = "type")]
    message_type: MessageType,
    #[serde(skip_serializing_if = "Option::is_none")]
    author_id: Option<String>,
    content: String,
    /// The whole text, when `content` leaves something out of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_content: Option<String>,
    requests_input: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    version: i64,
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            content: message.content(),
            raw_content: message.hides_something().then(|| message.raw_content.clone()),
            turn_id: given(&message.turn_id),
            author_id: given(&message.author_id),
            metadata: filled(&message.metadata),
            id: message.id,
            session_id: message.session_id,
            task_id: message.task_id,
            author_type: message.author_type,
            message_type: message.message_type,
            requests_input: message.requests_input,
            created_at: message.created_at,
            updated_at: message.updated_at,
            version: message.version,
        }
    }
}

/// Messages of a session.
#[derive(Debug, Serialize, ToSchema)]
struct MessageList {
    messages: Vec<MessageView>,
    /// How many the session has.
    total: u64,
    /// Whether there are more in this direction.
    has_more: bool,
    /// Id of the last message shown: to go on, it is `after` (`asc`) or `before` (`desc`). Empty when nothing is shown.
    cursor: String,
}

/// Messages that contain what was looked for.
#[derive(Debug, Serialize, ToSchema)]
struct MessageHits {
    hits: Vec<MessageView>,
    /// How many there are.
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<MessageQuery>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.messages, scope(&request));
    let session = services.platform.sessions.get(&scope, &id).await?;
    let filter = MessageFilter { session_ids: vec![session.id.clone()], ..MessageFilter::default() };
    let newest_first = query.sort == Some(Sort::Desc);
    let is_whole = query.limit.is_none() && query.before.is_none() && query.after.is_none() && query.sort.is_none();
    let count = async || service.count(&scope, &filter).await;
    let (items, has_more, total) = if is_whole {
        let page = async |page| service.list(&scope, &filter, false, &page).await;
        let listed = Part::default().read(page, count).await?;
        (listed.items, listed.next_cursor.is_some(), listed.total)
    } else {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ApiError::Query(format!("limit must be a number from 1 to {MAX_LIMIT}")));
        }
        let before = of_session(&services, &scope, &session.id, query.before.as_deref()).await?;
        let after = of_session(&services, &scope, &session.id, query.after.as_deref()).await?;
        let sides: Vec<_> = before.map(Side::Before).into_iter().chain(after.map(Side::After)).collect();
        let page = service.around(&scope, &session.id, &sides, newest_first, limit).await?;
        let has_more = page.has_more();
        (page.items, has_more, count().await?)
    };
    let cursor = items.last().map(|message| message.id.clone()).unwrap_or_default();
    let messages = items.into_iter().map(MessageView::from).collect();
    Ok(HttpResponse::Ok().json(MessageList { messages, total, has_more, cursor }))
}

async fn search(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<SearchQuery>,
) -> Result<HttpResponse, ApiError> {
    let scope = scope(&request);
    let session = services.platform.sessions.get(&scope, &id).await?;
    let page = parts::request(query.limit.unwrap_or(DEFAULT_LIMIT), query.cursor.as_deref().unwrap_or_default())?;
    let (found, total) = services.platform.messages.search(&scope, &session.id, &query.query, &page).await?;
    let hits = found.items.into_iter().map(MessageView::from).collect();
    Ok(HttpResponse::Ok().json(MessageHits { hits, total, next_cursor: found.next_cursor }))
}

/// The message of this session that a part begins or ends at.
async fn of_session(
    services: &Services,
    scope: &Scope,
    session: &str,
    id: Option<&str>,
) -> Result<Option<Message>, ApiError> {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(None) };
    let message = services.platform.messages.get(scope, id).await?;
    if message.session_id != session {
        return Err(Refusal::not_found(Kind::Message, id).into());
    }
    Ok(Some(message))
}

async fn create(
    services: web::Data<Services>,
    id: web::Path<String>,
    change: Change<NewMessageBody>,
) -> Result<HttpResponse, ApiError> {
    let service = services.platform.messages.clone();
    let body = change.body;
    let new = NewMessage {
        session_id: id.into_inner(),
        author_type: body.author_type.unwrap_or(AuthorType::User),
        author_id: body.author_id.unwrap_or_default(),
        message_type: body.message_type.unwrap_or(MessageType::Message),
        content: body.content,
        requests_input: body.requests_input.unwrap_or_default(),
        metadata: body.metadata.unwrap_or_default(),
    };
    let message = services.tasks.finish(async move { service.add(&change.by, &new).await }).await?;
    let version = message.version;
    Ok(versioned(StatusCode::CREATED, version, &MessageView::from(message)))
}
