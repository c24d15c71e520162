//! The marketplace's parts put together, and the task that looks for updates.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle, sync::Notify, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::AppError;
use crate::{
    config::Config,
    domain::marketplace::{self, HostRules},
    fetch::{IndexFetcher, SystemLookup},
    marketplace::{Catalogue, Market, Updater, Worksite},
    store::{db::Db, marketplace::MarketplaceStore},
};

/// The market, with the built-in source as the settings have it.
pub async fn open(config: &Config, db: &Db) -> Result<Market, AppError> {
    let (timing, limits) = (&config.timing, &config.limits);
    let store = MarketplaceStore::new(db.clone(), limits);
    // The settings were checked; an empty text names none.
    let builtin = marketplace::address(&config.plugins.marketplace_url).ok();
    store.set_builtin(builtin.as_deref(), time::OffsetDateTime::now_utc()).await?;
    let fetcher = IndexFetcher::new(timing, limits, &config.install, Arc::new(SystemLookup))?;
    let catalogue = Catalogue::new(fetcher, timing, limits, Handle::current());
    let (compat_version, private_addresses) = (config.compat_version.clone(), config.install.allow_private_addresses);
    Ok(Market::new(store, catalogue, HostRules { compat_version, private_addresses }))
}

/// The task that looks for updates.
pub struct UpdateTask {
    task: JoinHandle<()>,
    stop: CancellationToken,
    booted: Arc<Notify>,
}

impl UpdateTask {
    /// It waits until [`Self::booted`] is told.
    pub fn start(config: &Config, market: Market, site: Worksite) -> Self {
        let (stop, booted) = (CancellationToken::new(), Arc::new(Notify::new()));
        let updater = Updater::new(market, site, config.timing.update_interval, stop.clone());
        let told = Arc::clone(&booted);
        let task = tokio::spawn(updater.run(async move { told.notified().await }));
        Self { task, stop, booted }
    }

    /// Who is told when the installed plugins were started.
    pub fn booted(&self) -> Arc<Notify> {
        Arc::clone(&self.booted)
    }

    /// Waits for an install that has begun, `limit` at most; the registry's stop ends it.
    pub async fn stop(self, limit: Duration) {
        self.stop.cancel();
        match timeout(limit, self.task).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the task that looks for updates was lost"),
            Err(_) => tracing::warn!("an automatic update was cut off by the host's stop"),
        }
    }
}
