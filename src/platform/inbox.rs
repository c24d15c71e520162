//! The operator's inbox: [`Inbox`] is for reading it, [`Keeper`] follows the lifecycle events of plugins and keeps one
//! item for each incident.
//!
//! The keeper loses no incident: news wait in a bounded line while the database is down and are written in order when
//! it is back. News beyond the bound are replaced by a look at how the plugins stand. The same look, at the start,
//! finds what began and ended while no host ran.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use kandev_proto::json_from_struct;
use serde_json::Value;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    actors::events::{Event, Heard, Listener},
    domain::{
        id::PluginId,
        inbox::{Item, News},
        lifecycle_event::{Change, Standing},
    },
    store::{
        db::DbFault,
        inbox::{Filter, InboxError, InboxStore, Page},
    },
};

/// How every installed plugin stands.
pub type Standings = BTreeMap<PluginId, Standing>;

/// Tells how the plugins stand now; the registry, seen from here.
#[async_trait]
pub trait Plugins: Send + Sync + 'static {
    /// `None` when there is no answer now.
    async fn standings(&self) -> Option<Standings>;
}

/// The inbox for its reader. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Inbox {
    store: InboxStore,
}

impl Inbox {
    /// Over these rows.
    pub fn new(store: InboxStore) -> Self {
        Self { store }
    }

    /// At most `limit` items, the newest first, that were made before the item `after`.
    pub async fn list(&self, filter: Filter, after: Option<Uuid>, limit: u64) -> Result<Page, InboxError> {
        self.store.list(filter, after, limit).await
    }

    /// Marks an item as read.
    pub async fn mark_read(&self, id: Uuid) -> Result<Item, InboxError> {
        self.store.mark_read(id).await
    }

    /// Takes an item out of sight, whatever becomes of its incident.
    pub async fn dismiss(&self, id: Uuid) -> Result<Item, InboxError> {
        self.store.dismiss(id, OffsetDateTime::now_utc()).await
    }
}

/// Writes the inbox.
pub struct Keeper {
    store: InboxStore,
    listener: Listener,
    plugins: Arc<dyn Plugins>,
    retry: Duration,
    stop: CancellationToken,
}

impl Keeper {
    /// Follows `listener`, which hears `plugin.lifecycle.*`. `stop` has it write what waits and end; `retry` is the
    /// pause between two attempts while the database is down.
    pub fn new(
        store: InboxStore,
        listener: Listener,
        plugins: Arc<dyn Plugins>,
        retry: Duration,
        stop: CancellationToken,
    ) -> Self {
        Self { store, listener, plugins, retry, stop }
    }

    /// Runs until it is stopped. `found` is how the plugins stood when this host began, before any was started.
    pub async fn run(mut self, found: Standings) {
        self.reconcile(&found, true).await;
        // What was published before this moment was seen in a look at the plugins already.
        let mut seen: Option<Instant> = None;
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.listener.next() => heard,
                () = self.stop.cancelled() => self.listener.waiting(),
            };
            match heard {
                None => return,
                Some(Heard::Missed(count)) => {
                    tracing::warn!(count, "changes of plugins did not fit into the inbox's queue (limits.inbox_queue)");
                    seen = self.catch_up().await.or(seen);
                }
                Some(Heard::Event(event)) if seen.is_none_or(|seen| event.published >= seen) => {
                    self.note(&event).await;
                }
                Some(Heard::Event(_)) => {}
            }
        }
    }

    /// Brings the inbox up to date with how the plugins stand; the moment at which they were asked.
    async fn catch_up(&self) -> Option<Instant> {
        loop {
            let asked = tokio::time::Instant::now().into_std();
            if let Some(standings) = self.plugins.standings().await {
                self.reconcile(&standings, false).await;
                return Some(asked);
            }
            if !self.pause().await {
                return None;
            }
        }
    }

    async fn reconcile(&self, standings: &Standings, booting: bool) {
        let Some(lasting) = self.persist(|| self.store.lasting()).await else { return };
        let lasting: BTreeSet<_> = lasting.into_iter().collect();
        let now = OffsetDateTime::now_utc();
        for plugin in standings.keys().chain(lasting.iter().filter(|id| !standings.contains_key(*id))) {
            match News::of_standing(standings.get(plugin), booting, now) {
                Some(News::Over(..)) if !lasting.contains(plugin) => {}
                Some(news) => self.apply(plugin, &news, Uuid::now_v7()).await,
                None => {}
            }
        }
    }

    async fn note(&self, event: &Event) {
        let payload = event.payload.clone().map(json_from_struct).unwrap_or_default();
        match serde_json::from_value::<Change>(Value::Object(payload)) {
            Ok(change) => {
                if let Some(news) = News::of_change(&change) {
                    self.apply(&change.plugin_id, &news, event.id).await;
                }
            }
            Err(error) => tracing::error!(subject = event.subject, %error, "a lifecycle event is not understood"),
        }
    }

    async fn apply(&self, plugin: &PluginId, news: &News, id: Uuid) {
        self.persist(|| self.store.apply(plugin, news, id)).await;
    }

    /// Does database work until the database takes it. A statement that fails for other reasons will fail again: it is
    /// told and left. So is what cannot be written while the host stops; the next start finds it by its look.
    async fn persist<T, F>(&self, work: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, InboxError>>,
    {
        let mut told = false;
        loop {
            let error = match work().await {
                Ok(done) => return Some(done),
                Err(error) => error,
            };
            if !matches!(&error, InboxError::Database(DbFault::Lost(_) | DbFault::Unavailable(_))) {
                tracing::error!(%error, "the inbox cannot take a change");
                return None;
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(%error, "the inbox waits for the database");
            }
            if !self.pause().await {
                return None;
            }
        }
    }

    /// Waits before another attempt; false when there is to be none.
    async fn pause(&self) -> bool {
        tokio::select! {
            () = tokio::time::sleep(self.retry) => true,
            () = self.stop.cancelled() => false,
        }
    }
}

#[cfg(test)]
mod tests;
