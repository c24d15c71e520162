//! The operator's inbox: list, mark read, dismiss (contract/platform-rest.md §10, without workspaces: an incident of a
//! plugin concerns the whole host).

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{
    ApiError, Services,
    endpoint::{Endpoint, get, post},
    query::Query,
};
use crate::{
    domain::{
        action::Action,
        inbox::{Item, ItemStatus},
    },
    store::inbox::{Filter, InboxError, Page},
};

pub static ROUTES: &[Endpoint] = &[
    get("/api/v1/inbox", Action::InboxRead, || web::to(list))
        .about("Incidents of plugins, the newest first")
        .query::<Parameters>()
        .gives::<List>(200),
    post("/api/v1/inbox/{id}/read", Action::InboxMarkRead, || web::to(mark_read))
        .about("Note that an item was read; it may be noted already")
        .gives::<Item>(200),
    post("/api/v1/inbox/{id}/dismiss", Action::InboxDismiss, || web::to(dismiss))
        .about("Take an item out of sight; it may be out of sight already")
        .gives::<Item>(200),
];

/// Items of one answer, unless the caller says otherwise.
const DEFAULT_LIMIT: u64 = 50;

/// Items of one answer at most.
const MAX_LIMIT: u64 = 200;

/// The query of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Left out: what is not dismissed.
    #[param(pattern = "^(open|resolved|dismissed|all)?$")]
    status: Option<String>,
    /// `next_cursor` of an earlier answer.
    #[param(value_type = Option<Uuid>)]
    cursor: Option<String>,
    /// Left out: 50.
    #[param(value_type = Option<u64>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// `{"items":[…],"total_count":0,"next_cursor":null}`.
#[derive(Serialize, ToSchema)]
#[schema(as = InboxPage)]
struct List {
    items: Vec<Item>,
    /// Items that the filter lets through, on all pages.
    total_count: u64,
    /// For the next page; `null` on the last one.
    next_cursor: Option<String>,
}

/// `GET /api/v1/inbox`: a page, the newest item first.
pub async fn list(services: web::Data<Services>, Query(query): Query<Parameters>) -> Result<HttpResponse, ApiError> {
    let (filter, after, limit) = asked(query)?;
    let Page { items, total_count, has_more } = services.inbox.list(filter, after, limit).await?;
    let next_cursor = items.last().filter(|_| has_more).map(|item| item.id.to_string());
    Ok(HttpResponse::Ok().json(List { items, total_count, next_cursor }))
}

/// `POST /api/v1/inbox/{id}/read`: the item as it is then, also when it was read before.
pub async fn mark_read(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (inbox, id) = (services.inbox.clone(), item_id(&id)?);
    let item = services.tasks.finish(async move { inbox.mark_read(id).await }).await?;
    Ok(HttpResponse::Ok().json(item))
}

/// `POST /api/v1/inbox/{id}/dismiss`: the item as it is then, also when it was dismissed before.
pub async fn dismiss(services: web::Data<Services>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let (inbox, id) = (services.inbox.clone(), item_id(&id)?);
    let item = services.tasks.finish(async move { inbox.dismiss(id).await }).await?;
    Ok(HttpResponse::Ok().json(item))
}

/// What is no id names no item.
fn item_id(text: &str) -> Result<Uuid, InboxError> {
    Uuid::parse_str(text).map_err(|_| InboxError::NotFound)
}

fn asked(Parameters { status, cursor, limit }: Parameters) -> Result<(Filter, Option<Uuid>, u64), ApiError> {
    let filter = match status.as_deref() {
        None | Some("") => Filter::Shown,
        Some("all") => Filter::All,
        Some(word) => Filter::Of(ItemStatus::of(word).ok_or_else(|| {
            ApiError::Query("status must be \"open\", \"resolved\", \"dismissed\" or \"all\"".to_owned())
        })?),
    };
    let after = match cursor.as_deref() {
        None | Some("") => None,
        Some(cursor) => Some(
            Uuid::parse_str(cursor)
                .map_err(|_| ApiError::Query("cursor must be the next_cursor of an earlier answer".to_owned()))?,
        ),
    };
    let limit = match limit.as_deref() {
        None | Some("") => DEFAULT_LIMIT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|limit| (1..=MAX_LIMIT).contains(limit))
            .ok_or_else(|| ApiError::Query(format!("limit must be a number from 1 to {MAX_LIMIT}")))?,
    };
    Ok((filter, after, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::query;

    fn asked(query: &str) -> Result<(Filter, Option<Uuid>, u64), ApiError> {
        super::asked(query::read(query)?)
    }

    #[test]
    fn a_query_without_anything_shows_what_is_not_dismissed() {
        for query in ["", "status=&cursor=&limit="] {
            assert_eq!(asked(query).unwrap(), (Filter::Shown, None, 50));
        }
    }

    #[test]
    fn every_part_of_a_query_is_taken() {
        let id = Uuid::from_u128(7);
        let query = format!("status=open&limit=200&cursor={id}");
        assert_eq!(asked(&query).unwrap(), (Filter::Of(ItemStatus::Open), Some(id), 200));
        assert_eq!(asked("status=all").unwrap().0, Filter::All);
        assert_eq!(asked("status=dismissed").unwrap().0, Filter::Of(ItemStatus::Dismissed));
    }

    #[test]
    fn a_wrong_query_is_refused_with_what_is_right() {
        for (query, text) in [
            ("status=closed", "status must be \"open\", \"resolved\", \"dismissed\" or \"all\""),
            ("limit=0", "limit must be a number from 1 to 200"),
            ("limit=201", "limit must be a number from 1 to 200"),
            ("limit=x", "limit must be a number from 1 to 200"),
            ("cursor=x", "cursor must be the next_cursor of an earlier answer"),
        ] {
            assert_eq!(asked(query).unwrap_err().to_string(), text, "{query}");
        }
        let text = asked("page=2").unwrap_err().to_string();
        assert!(text.starts_with("invalid query: ") && text.contains("page"), "{text}");
    }
}
