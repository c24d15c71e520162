//! The marketplace: sources that an operator names, what their indexes offer, and updates of what is installed
//! (contract/rest.md §9, docs/decisions/0026-marketplace.md).
//!
//! [`Market`] is for whoever asks, [`Updater`] looks for newer versions by itself; `catalogue` keeps the indexes. What
//! an index may say and which update may be made is `domain`'s decision; installing is the registry's.

mod catalogue;
mod updates;

use std::{collections::BTreeMap, sync::Arc};

use time::OffsetDateTime;
use tokio::sync::Notify;
use uuid::Uuid;

pub use self::{
    catalogue::{Catalogue, Fetch, Health},
    updates::{Updater, Worksite},
};
use crate::{
    domain::marketplace::{self, DigestFault, HostRules, Listed, ListedAs, Offer, Search, Source, SourceError, Stock},
    store::marketplace::{MarketplaceStore, SourceStoreError},
};

/// The marketplace for its reader. Cheap to clone.
#[derive(Clone)]
pub struct Market {
    store: MarketplaceStore,
    catalogue: Catalogue,
    rules: Arc<HostRules>,
    wake: Arc<Notify>,
}

/// Why something about the marketplace failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarketError {
    /// A source that cannot be.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A source that is not there, or is there already, or the database.
    #[error(transparent)]
    Store(#[from] SourceStoreError),
    /// A package that is not what was said of it.
    #[error(transparent)]
    Digest(#[from] DigestFault),
}

/// What is offered, and how the sources are.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// In the order that was asked for.
    pub offers: Vec<Offer>,
    /// In the order in which they count.
    pub sources: Vec<(Source, Health)>,
}

impl Market {
    /// Over these sources, for a host of these rules.
    pub fn new(store: MarketplaceStore, catalogue: Catalogue, rules: HostRules) -> Self {
        Self { store, catalogue, rules: Arc::new(rules), wake: Arc::default() }
    }

    /// What the sources offer. An index that is not known, or too old, is fetched first; the wait for all of them
    /// together is bounded, and a source that cannot be had shows what it had. `installed` has the versions of the
    /// plugins by id.
    pub async fn list(
        &self,
        installed: &BTreeMap<String, String>,
        search: &Search,
    ) -> Result<Listing, SourceStoreError> {
        let sources = self.stocked(false).await?;
        let offers = marketplace::offers(&stock(&sources), installed, &self.rules, search);
        Ok(Listing { offers, sources })
    }

    /// Fetches every index anew, then looks for updates. One that cannot be had is told by the next list.
    pub async fn refresh(&self) -> Result<(), SourceStoreError> {
        self.stocked(true).await?;
        self.look_for_updates();
        Ok(())
    }

    /// What the sources say of the package at this address: its digest, and whose it is. Fetches as [`Self::list`]
    /// does.
    pub async fn listed(&self, address: &str) -> Result<(Option<Listed>, Option<ListedAs>), SourceStoreError> {
        let sources = self.stocked(false).await?;
        let stock = stock(&sources);
        Ok((marketplace::listed(&stock, address), marketplace::listed_as(&stock, address)))
    }

    /// The sources, in the order in which they count.
    pub async fn sources(&self) -> Result<Vec<Source>, SourceStoreError> {
        self.store.list().await
    }

    /// Adds a source; without a name it is called by its host. Its index is fetched when somebody asks.
    pub async fn add(&self, name: Option<&str>, url: &str) -> Result<Source, MarketError> {
        let url = marketplace::address(url)?;
        let name = marketplace::name(name, &url)?;
        let (id, created_at) = (Uuid::now_v7().to_string(), OffsetDateTime::now_utc());
        let source = self.store.add(&Source { id, name, url, enabled: true, builtin: false, created_at }).await?;
        tracing::info!(source.id = source.id, source.name = source.name, "a marketplace source was added");
        Ok(source)
    }

    /// Gives a source another name, or says whether it is asked.
    pub async fn change(&self, id: &str, name: Option<&str>, enabled: Option<bool>) -> Result<Source, MarketError> {
        // An empty name is none, not the host's: it was not left out.
        let name = name.map(|name| match name {
            "" => Err(SourceError::Nameless),
            name => marketplace::name(Some(name), ""),
        });
        let source = self.store.change(id, name.transpose()?.as_deref(), enabled).await?;
        tracing::info!(source.id = source.id, source.name = source.name, enabled = source.enabled, "source changed");
        Ok(source)
    }

    /// Deletes a source. What was installed from it stays.
    pub async fn remove(&self, id: &str) -> Result<(), MarketError> {
        self.store.remove(id).await?;
        tracing::info!(source.id = id, "a marketplace source was deleted");
        Ok(())
    }

    /// Whether plugins whose record does not say are updated automatically.
    pub async fn auto_update_default(&self) -> Result<bool, SourceStoreError> {
        self.store.auto_update_default().await
    }

    /// Says it; what can be updated by it is updated soon.
    pub async fn set_auto_update_default(&self, on: bool) -> Result<(), SourceStoreError> {
        self.store.set_auto_update_default(on).await?;
        tracing::info!(on, "automatic updates of plugins whose record does not say");
        self.look_for_updates();
        Ok(())
    }

    /// Has the [`Updater`] look soon, not only when its time has come.
    pub fn look_for_updates(&self) {
        self.wake.notify_one();
    }

    async fn stocked(&self, anew: bool) -> Result<Vec<(Source, Health)>, SourceStoreError> {
        let sources = self.store.list().await?;
        let health = self.catalogue.look(&sources, anew).await;
        Ok(sources.into_iter().zip(health).collect())
    }
}

/// What the enabled sources have.
fn stock(sources: &[(Source, Health)]) -> Vec<Stock<'_>> {
    let enabled = sources.iter().filter(|(source, _)| source.enabled);
    enabled.map(|(source, health)| Stock { source, entries: health.entries() }).collect()
}
