//! Lists of messages.

use sea_orm::{
    ColumnTrait, DbBackend, EntityTrait, Order, QueryFilter, QuerySelect, QueryTrait,
    sea_query::{Expr, ExprTrait as _},
};
use time::OffsetDateTime;

use super::{PlatformError, PlatformStore, listing::Listing, search::contains};
use crate::{
    domain::platform::{
        Scope,
        cursor::List,
        message::{Message, MessageFilter},
        page::{self, Page, PageRequest},
        words::MessageType,
    },
    entities::{session_message, task_session},
};

/// Messages by the time of their making, ids in order; the oldest or the newest first.
pub(super) fn listing(scope: &Scope, filter: &MessageFilter, newest_first: bool) -> Listing<session_message::Entity> {
    use session_message::Column;
    let (sessions, tasks) = (page::ids(&filter.session_ids), page::ids(&filter.task_ids));
    let mut select = session_message::Entity::find();
    let leading = match (sessions, tasks) {
        (None, None) => None,
        (None, Some(tasks)) => Some((Column::TaskId, tasks)),
        (Some(sessions), None) => Some((Column::SessionId, sessions)),
        (Some(sessions), Some(tasks)) => {
            select = select.filter(Column::TaskId.is_in(tasks));
            Some((Column::SessionId, sessions))
        }
    };
    if !filter.types.is_empty() {
        let known = page::known(&filter.types, MessageType::of, MessageType::as_str);
        select = select.filter(Column::Kind.is_in(known));
    }
    if let Some(since) = filter.since {
        select = select.filter(Column::CreatedAt.gte(first_micros(since)));
    }
    if let Some(until) = filter.until {
        select = select.filter(Column::CreatedAt.lt(first_micros(until)));
    }
    if let Scope::Workspaces(seen) = scope {
        let of_session = task_session::Entity::find()
            .select_only()
            .expr(Expr::value(1))
            .filter(
                Expr::col((task_session::Entity, task_session::Column::Id))
                    .equals((session_message::Entity, Column::SessionId)),
            )
            .filter(task_session::Column::WorkspaceId.is_in(page::ids(seen).unwrap_or_default()));
        select = select.filter(Expr::exists(of_session.into_query()));
    }
    let (list, order) = match newest_first {
        false => (List::Messages, Order::Asc),
        true => (List::MessagesNewestFirst, Order::Desc),
    };
    Listing {
        list,
        select,
        order: vec![(Column::CreatedAt, order.clone()), (Column::Id, order)],
        leading,
        long: vec![Column::RawContent, Column::Metadata],
    }
}

/// Messages of a session whose whole text contains another one, the newest first.
pub(super) fn hits(
    backend: DbBackend,
    scope: &Scope,
    session_id: &str,
    text: &str,
) -> Listing<session_message::Entity> {
    let filter = MessageFilter { session_ids: vec![session_id.to_owned()], ..MessageFilter::default() };
    let listing = listing(scope, &filter, true);
    let found = contains::<session_message::Entity>(backend, &[session_message::Column::RawContent], text);
    Listing { select: listing.select.filter(found), ..listing }
}

/// The first microsecond that is not before the moment.
fn first_micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos().saturating_add(999).div_euclid(1000)).unwrap_or(i64::MAX)
}

impl PlatformStore {
    /// How many messages the list has.
    pub async fn count_messages(&self, scope: &Scope, filter: &MessageFilter) -> Result<u64, PlatformError> {
        self.count(&listing(scope, filter, false)).await
    }

    /// A page of messages.
    pub async fn messages(
        &self,
        scope: &Scope,
        filter: &MessageFilter,
        newest_first: bool,
        page: &PageRequest,
    ) -> Result<Page<Message>, PlatformError> {
        self.records(&listing(scope, filter, newest_first), page).await
    }

    /// A page of a session's messages that contain the text, and how many there are: both look at all that the session
    /// has.
    pub async fn search_messages(
        &self,
        scope: &Scope,
        session_id: &str,
        text: &str,
        page: &PageRequest,
    ) -> Result<(Page<Message>, u64), PlatformError> {
        let hits = hits(self.db.reader().get_database_backend(), scope, session_id, text);
        Ok((self.records(&hits, page).await?, self.count(&hits).await?))
    }
}
