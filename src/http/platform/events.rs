//! The log of events, for readers that keep their place in it. Publishing is `http::events`' part.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::parts::request as request_of;
use crate::{
    domain::{
        action::Action,
        platform::{Map, page::DEFAULT_LIMIT},
    },
    http::{
        ApiError, Services,
        change::scope,
        endpoint::{Endpoint, get},
        query::Query,
    },
    platform::events::{EventFilter, EventPage},
};

pub static ROUTES: &[Endpoint] = &[get("/api/v1/events", Action::EventRead, || web::to(list))
    .about("The log of events, the oldest first: everything that was told, in the order of the commits")
    .query::<EventQuery>()
    .refuses(&[410])
    .gives::<EventList>(200)];

/// Which events.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
struct EventQuery {
    /// `cursor` of an earlier answer, or of one of its events: what comes after it. Left out: from the oldest that is
    /// kept.
    after: Option<String>,
    /// Left out: 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// With one of these subjects, between commas.
    subject: Option<String>,
    /// Of one of these workspaces, between commas.
    workspace_id: Option<String>,
}

/// An event.
#[derive(Debug, Serialize, ToSchema)]
struct EventView {
    /// Where to go on after it.
    cursor: String,
    event_id: Uuid,
    #[serde(rename = "type")]
    subject: String,
    #[serde(with = "time::serde::rfc3339")]
    occurred_at: OffsetDateTime,
    /// Empty when it is nobody's.
    workspace_id: String,
    #[schema(value_type = Object)]
    payload: Map,
}

/// Events.
#[derive(Debug, Serialize, ToSchema)]
struct EventList {
    events: Vec<EventView>,
    /// Where to go on, also when nothing was found.
    cursor: String,
    /// Whether there may be more now; also when nothing was found in the part that was looked at.
    has_more: bool,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    Query(query): Query<EventQuery>,
) -> Result<HttpResponse, ApiError> {
    let (service, scope) = (&services.platform.events, scope(&request));
    let words = |text: Option<String>| {
        let words = text.unwrap_or_default();
        words.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let filter = EventFilter { subjects: words(query.subject), workspace_ids: words(query.workspace_id) };
    let page = request_of(query.limit.unwrap_or(DEFAULT_LIMIT), &query.after.unwrap_or_default())?;
    let EventPage { items, cursor, has_more } = service.list(&scope, &filter, &page).await?;
    let events = items
        .into_iter()
        .map(|event| EventView {
            cursor: service.cursor_after(&event),
            event_id: event.id,
            subject: event.subject,
            occurred_at: event.created_at,
            workspace_id: event.workspace_id,
            payload: event.payload,
        })
        .collect();
    Ok(HttpResponse::Ok().json(EventList { events, cursor: cursor.unwrap_or_default(), has_more }))
}
