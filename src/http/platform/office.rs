//! The inbox as the contract's clients know it: below a workspace (platform-rest.md §10). A plugin's incident concerns
//! the whole instance, so every workspace shows the same items; `http::inbox` is the host's own view of them.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::parts::flag;
use crate::{
    domain::{
        action::Action,
        clean,
        inbox::{Item, ItemStatus, PLUGIN_UNREACHABLE, PLUGIN_UPDATE},
    },
    http::{
        ApiError, Services,
        change::{Change, scope},
        endpoint::{Endpoint, get, post},
        query::Query,
    },
    store::inbox::{Filter, InboxError},
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/office/workspaces/{id}/inbox", Action::InboxRead, || web::to(list))
        .about("What waits for the operator: the newest 200 open items, or with `count` how many there are")
        .query::<InboxQuery>()
        .gives::<OfficeInbox>(200),
    post("/api/v1/office/inbox/dismiss", Action::InboxDismiss, || web::to(dismiss))
        .about("Take an item out of sight")
        .body::<Dismissal>()
        .gives::<Dismissed>(200)
        .refuses(&[404]),
];

/// Most items of an answer.
const MAX_ITEMS: u64 = 200;

/// What is asked of the inbox.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
struct InboxQuery {
    /// Only how many there are.
    #[param(value_type = Option<bool>)]
    count: Option<String>,
}

/// Items, or how many.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum OfficeInbox {
    Items { items: Vec<OfficeItem>, total_count: u64 },
    Count { count: u64 },
}

/// An item.
#[derive(Debug, Serialize, ToSchema)]
struct OfficeItem {
    id: Uuid,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[schema(value_type = String)]
    status: ItemStatus,
    entity_id: String,
    entity_type: String,
    #[schema(value_type = Object)]
    payload: Value,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
}

impl From<Item> for OfficeItem {
    fn from(item: Item) -> Self {
        Self {
            id: item.id,
            kind: item.kind,
            title: item.title,
            description: item.description,
            status: item.status,
            entity_id: item.entity_id,
            entity_type: item.entity_type,
            payload: item.payload,
            created_at: item.created_at,
        }
    }
}

/// Which item.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Dismissal {
    /// The item's `type`.
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    #[schema(required)]
    kind: String,
    #[serde(default, deserialize_with = "crate::http::body::or_default")]
    #[schema(required)]
    item_id: String,
}

/// It is out of sight.
#[derive(Debug, Serialize, ToSchema)]
struct Dismissed {
    ok: bool,
}

async fn list(
    services: web::Data<Services>,
    request: HttpRequest,
    id: web::Path<String>,
    Query(query): Query<InboxQuery>,
) -> Result<HttpResponse, ApiError> {
    let only_count = flag("count", query.count.as_deref())?;
    services.platform.workspaces.get(&scope(&request), &id).await?;
    let limit = if only_count { 1 } else { MAX_ITEMS };
    let page = services.inbox.list(Filter::Of(ItemStatus::Open), None, limit).await?;
    Ok(HttpResponse::Ok().json(match only_count {
        true => OfficeInbox::Count { count: page.total_count },
        false => OfficeInbox::Items {
            items: page.items.into_iter().map(OfficeItem::from).collect(),
            total_count: page.total_count,
        },
    }))
}

async fn dismiss(services: web::Data<Services>, change: Change<Dismissal>) -> Result<HttpResponse, ApiError> {
    let Dismissal { kind, item_id } = change.body;
    if kind.is_empty() || item_id.is_empty() {
        return Err(ApiError::Invalid("kind and item_id are required".to_owned()));
    }
    match kind.as_str() {
        PLUGIN_UNREACHABLE | PLUGIN_UPDATE => {
            let id = Uuid::parse_str(&item_id).map_err(|_| InboxError::NotFound)?;
            let inbox = services.inbox.clone();
            services.tasks.finish(async move { inbox.dismiss(id).await }).await?;
            Ok(HttpResponse::Ok().json(Dismissed { ok: true }))
        }
        // Kinds of agents' runs: there are none of them here.
        "agent_run_failed" | "agent_paused_after_failures" => Err(InboxError::NotFound.into()),
        other => Err(ApiError::Invalid(format!("unsupported kind: {}", clean::single_line(other, 64)))),
    }
}
