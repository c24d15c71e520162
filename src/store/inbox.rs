//! The operator's inbox in the database: one item for each incident, found by what it is about while it lasts.
//!
//! What an item is and becomes is `domain::inbox`'s decision. Every call leaves the same rows when it is done twice, so
//! all of them are repeated when their connection is lost (`Db::repeat`). `updates` has the items about newer versions.

mod updates;

use sea_orm::{
    ActiveModelTrait, ColumnTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Select,
};
use time::OffsetDateTime;
use uuid::Uuid;

use super::db::{Db, DbFault, MayBeFault};
use crate::{
    config::Limits,
    domain::{
        id::PluginId,
        inbox::{Item, ItemStatus, News, PLUGIN_UNREACHABLE},
    },
    entities::inbox_item,
};

/// Reads and writes the inbox; clones share the database.
#[derive(Clone, Debug)]
pub struct InboxStore {
    db: Db,
    resolved: u64,
}

/// Which items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// All.
    All,
    /// All but the dismissed ones.
    Shown,
    /// Those of one status.
    Of(ItemStatus),
}

/// A part of the inbox, the newest item first.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The items.
    pub items: Vec<Item>,
    /// Items that the filter lets through, on all pages.
    pub total_count: u64,
    /// Whether more follow.
    pub has_more: bool,
}

/// Why a call about the inbox failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// No such item.
    #[error("no such inbox item")]
    NotFound,
    /// The database failed, or holds a row that is no item.
    #[error(transparent)]
    Database(#[from] DbFault),
}

impl From<sea_orm::DbErr> for InboxError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl MayBeFault for InboxError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Database(fault) => Some(fault),
            Self::NotFound => None,
        }
    }
}

impl InboxStore {
    /// A store with the host's limits.
    pub fn new(db: Db, limits: &Limits) -> Self {
        Self { db, resolved: limits.inbox_resolved as u64 }
    }

    /// Writes news about a plugin: its incident gets an item, which `id` names if it is new, or the item it has is
    /// changed. The end of no incident changes nothing.
    pub async fn apply(&self, plugin: &PluginId, news: &News, id: Uuid) -> Result<(), InboxError> {
        self.db.repeat(|| self.write(plugin, news, id)).await
    }

    async fn write(&self, plugin: &PluginId, news: &News, id: Uuid) -> Result<(), InboxError> {
        let transaction = self.db.begin_write().await?;
        let key = incident_key(plugin);
        let row = inbox_item::Entity::find().filter(inbox_item::Column::Lasting.eq(&key)).lock_exclusive();
        let item = row.one(&transaction).await?.map(item).transpose()?;
        match (news, item) {
            (News::Failed(incident), None) => {
                let new = row_of(&Item::new(id, plugin, incident), Some(key));
                inbox_item::Entity::insert(new.into_active_model()).exec_without_returning(&transaction).await?;
            }
            (News::Failed(incident), Some(mut item)) => {
                item.note(incident);
                update(&item, Some(key), &transaction).await?;
            }
            (News::Over(..), None) => {}
            (News::Over(end, at), Some(mut item)) => {
                item.end(*end, *at);
                update(&item, None, &transaction).await?;
                self.prune(&transaction).await?;
            }
        }
        Ok(transaction.commit().await?)
    }

    /// Deletes the oldest of the items whose incident is over, beyond the bound.
    async fn prune(&self, transaction: &DatabaseTransaction) -> Result<(), InboxError> {
        let over = inbox_item::Column::Lasting.is_null();
        let newest_first = inbox_item::Entity::find().filter(over.clone()).order_by_desc(inbox_item::Column::Id);
        let beyond: Option<String> = newest_first
            .select_only()
            .column(inbox_item::Column::Id)
            .offset(self.resolved)
            .limit(1)
            .into_tuple()
            .one(transaction)
            .await?;
        if let Some(id) = beyond {
            let old = inbox_item::Column::Id.lte(id);
            inbox_item::Entity::delete_many().filter(over).filter(old).exec(transaction).await?;
        }
        Ok(())
    }

    /// The plugins whose incident lasts.
    pub async fn lasting(&self) -> Result<Vec<PluginId>, InboxError> {
        let query = inbox_item::Entity::find()
            .select_only()
            .column(inbox_item::Column::EntityId)
            .filter(inbox_item::Column::Lasting.is_not_null())
            .filter(inbox_item::Column::Kind.eq(PLUGIN_UNREACHABLE));
        let work = async || Ok::<Vec<String>, InboxError>(query.clone().into_tuple().all(self.db.reader()).await?);
        Ok(self.db.repeat(work).await?.iter().filter_map(|id| PluginId::new(id).ok()).collect())
    }

    /// At most `limit` items, the newest first, that were made before the item `after`.
    pub async fn list(&self, filter: Filter, after: Option<Uuid>, limit: u64) -> Result<Page, InboxError> {
        self.db.repeat(|| self.page(filter, after, limit)).await
    }

    async fn page(&self, filter: Filter, after: Option<Uuid>, limit: u64) -> Result<Page, InboxError> {
        let all = filtered(filter);
        let total_count = all.clone().count(self.db.reader()).await?;
        let rest = match after {
            Some(after) => all.filter(inbox_item::Column::Id.lt(after.to_string())),
            None => all,
        };
        let rest = rest.order_by_desc(inbox_item::Column::Id).limit(limit.saturating_add(1));
        let mut rows = rest.all(self.db.reader()).await?;
        let has_more = rows.len() as u64 > limit;
        rows.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let items = rows.into_iter().map(item).collect::<Result<_, _>>()?;
        Ok(Page { items, total_count, has_more })
    }

    /// Marks an item as read; gives it as it is then.
    pub async fn mark_read(&self, id: Uuid) -> Result<Item, InboxError> {
        self.change(id, Item::mark_read).await
    }

    /// Dismisses an item; gives it as it is then.
    pub async fn dismiss(&self, id: Uuid, now: OffsetDateTime) -> Result<Item, InboxError> {
        self.change(id, |item| item.dismiss(now)).await
    }

    async fn change(&self, id: Uuid, change: impl Fn(&mut Item)) -> Result<Item, InboxError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let row = inbox_item::Entity::find_by_id(id.to_string()).lock_exclusive().one(&transaction).await?;
            let row = row.ok_or(InboxError::NotFound)?;
            let lasting = row.lasting.clone();
            let mut item = item(row)?;
            change(&mut item);
            update(&item, lasting, &transaction).await?;
            transaction.commit().await?;
            Ok(item)
        };
        self.db.repeat(work).await
    }
}

/// What makes two failures the same incident.
fn incident_key(plugin: &PluginId) -> String {
    format!("{PLUGIN_UNREACHABLE}:{plugin}")
}

fn filtered(filter: Filter) -> Select<inbox_item::Entity> {
    let all = inbox_item::Entity::find();
    match filter {
        Filter::All => all,
        Filter::Shown => all.filter(inbox_item::Column::Status.ne(ItemStatus::Dismissed.as_str())),
        Filter::Of(status) => all.filter(inbox_item::Column::Status.eq(status.as_str())),
    }
}

async fn update(item: &Item, lasting: Option<String>, transaction: &DatabaseTransaction) -> Result<(), InboxError> {
    let row = row_of(item, lasting).into_active_model().reset_all();
    row.update(transaction).await?;
    Ok(())
}

fn row_of(item: &Item, lasting: Option<String>) -> inbox_item::Model {
    inbox_item::Model {
        id: item.id.to_string(),
        kind: item.kind.clone(),
        title: item.title.clone(),
        description: item.description.clone(),
        status: item.status.as_str().to_owned(),
        read: item.read,
        entity_id: item.entity_id.clone(),
        entity_type: item.entity_type.clone(),
        payload: item.payload.to_string(),
        lasting,
        created_at: item.created_at,
        updated_at: item.updated_at,
        resolved_at: item.resolved_at,
    }
}

fn item(row: inbox_item::Model) -> Result<Item, InboxError> {
    let broken = |what: &str| DbFault::Statement(format!("inbox item {}: {what} cannot be read", row.id));
    Ok(Item {
        id: Uuid::parse_str(&row.id).map_err(|_| broken("id"))?,
        status: ItemStatus::of(&row.status).ok_or_else(|| broken("status"))?,
        payload: serde_json::from_str(&row.payload).map_err(|_| broken("payload"))?,
        kind: row.kind,
        title: row.title,
        description: row.description,
        read: row.read,
        entity_id: row.entity_id,
        entity_type: row.entity_type,
        created_at: row.created_at,
        updated_at: row.updated_at,
        resolved_at: row.resolved_at,
    })
}

#[cfg(test)]
mod tests;
