//! Items about newer versions: one lasts for each plugin that has one.

use sea_orm::{ColumnTrait, DatabaseTransaction, EntityTrait, IntoActiveModel, QueryFilter, QuerySelect};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{InboxError, InboxStore, item, row_of, update};
use crate::{
    domain::{
        id::PluginId,
        inbox::{Item, PLUGIN_UPDATE, UpdateEnd, UpdateNews},
    },
    entities::inbox_item,
};

impl InboxStore {
    /// Writes what is known of a plugin's versions: a newer one gets an item, which `id` names if it is new, unless it
    /// has one already; the item of another version is over then. Answers whether something is said that was not said
    /// before.
    pub async fn apply_update(&self, plugin: &PluginId, news: &UpdateNews, id: Uuid) -> Result<bool, InboxError> {
        self.db.repeat(|| self.write_update(plugin, news, id)).await
    }

    async fn write_update(&self, plugin: &PluginId, news: &UpdateNews, id: Uuid) -> Result<bool, InboxError> {
        let transaction = self.db.begin_write().await?;
        let key = format!("{PLUGIN_UPDATE}:{plugin}");
        let row = inbox_item::Entity::find().filter(inbox_item::Column::Lasting.eq(&key)).lock_exclusive();
        let lasting = row.one(&transaction).await?.map(item).transpose()?;
        let said = match (news, lasting) {
            (UpdateNews::Offered(offer), Some(mut item)) if item.offers(&offer.offered) => {
                let changed = item.note_update(offer);
                if changed {
                    update(&item, Some(key), &transaction).await?;
                }
                // After an answer that was lost the item is there and says so already.
                changed || item.id == id
            }
            (UpdateNews::Offered(offer), earlier) => {
                if let Some(item) = earlier {
                    self.end_update(item, UpdateEnd::Superseded, offer.at, &transaction).await?;
                }
                let new = row_of(&Item::of_update(id, plugin, offer), Some(key));
                inbox_item::Entity::insert(new.into_active_model()).exec_without_returning(&transaction).await?;
                true
            }
            (UpdateNews::Over(end, at), Some(item)) => {
                self.end_update(item, *end, *at, &transaction).await?;
                true
            }
            (UpdateNews::Over(..), None) => false,
        };
        transaction.commit().await?;
        Ok(said)
    }

    async fn end_update(
        &self,
        mut item: Item,
        end: UpdateEnd,
        at: OffsetDateTime,
        transaction: &DatabaseTransaction,
    ) -> Result<(), InboxError> {
        item.end_update(end, at);
        update(&item, None, transaction).await?;
        self.prune(transaction).await
    }

    /// The plugins that have an item about a newer version, each with that version.
    pub async fn awaiting_update(&self) -> Result<Vec<(PluginId, String)>, InboxError> {
        let query = inbox_item::Entity::find()
            .filter(inbox_item::Column::Lasting.is_not_null())
            .filter(inbox_item::Column::Kind.eq(PLUGIN_UPDATE));
        let work = async || Ok::<_, InboxError>(query.clone().all(self.db.reader()).await?);
        let items = self.db.repeat(work).await?.into_iter().map(item).collect::<Result<Vec<_>, _>>()?;
        let about = |item: Item| {
            let offered = item.payload["offered"].as_str().unwrap_or_default().to_owned();
            Some((PluginId::new(&item.entity_id).ok()?, offered))
        };
        Ok(items.into_iter().filter_map(about).collect())
    }
}
