//! Looks for newer versions of what is installed, tells the operator of them, and installs those that may be installed
//! while nobody looks.
//!
//! `domain::marketplace::plan` decides what becomes of an offer, `domain::consent` which package will do. A round comes
//! when the plugins were started, with time, and when somebody asks for it. A package that was refused is judged again
//! by the next round: what was in the way may be gone.

use std::{collections::BTreeMap, time::Duration};

use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Health, Market};
use crate::{
    actors::{AskError, PluginView, RegistryError, RegistryHandle},
    domain::{
        clean,
        consent::{Terms, Unattended, Unfit},
        id::PluginId,
        inbox::{Update, UpdateEnd, UpdateNews},
        marketplace::{DigestFault, Listed, Offer, Plan, Search, Source, plan, verify},
        record::PluginRecord,
        upgrade::HOST_TROUBLE,
    },
    fetch::{Downloader, FetchError},
    store::{
        inbox::{InboxError, InboxStore},
        marketplace::SourceStoreError,
        packages::PackageStore,
    },
};

/// Longest reason in an item, in bytes.
const MAX_REASON_BYTES: usize = 2048;

/// What updates are made with.
pub struct Worksite {
    /// The plugins.
    pub registry: RegistryHandle,
    /// Fetches packages; https only, or this machine.
    pub downloader: Downloader,
    /// Takes packages in.
    pub packages: PackageStore,
    /// Where the operator is told.
    pub inbox: InboxStore,
}

/// Looks for updates.
pub struct Updater {
    market: Market,
    site: Worksite,
    interval: Duration,
    stop: CancellationToken,
}

/// Why a round came to an early end.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Sources(#[from] SourceStoreError),
    #[error(transparent)]
    Plugins(#[from] RegistryError),
    #[error(transparent)]
    Inbox(#[from] InboxError),
    /// Not to be told.
    #[error("the host is stopping")]
    Stopping,
}

/// Why an update was not installed.
#[derive(Debug, thiserror::Error)]
enum UpdateFault {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Digest(#[from] DigestFault),
    #[error(transparent)]
    Install(#[from] RegistryError),
    #[error(transparent)]
    Setting(#[from] SourceStoreError),
    #[error("the host is stopping")]
    Stopping,
}

impl UpdateFault {
    fn is_stop(&self) -> bool {
        let stops = |error: &RegistryError| {
            matches!(error, RegistryError::Stopping | RegistryError::Ask(AskError::NotDelivered))
        };
        matches!(self, Self::Stopping) || matches!(self, Self::Install(error) if stops(error))
    }

    /// Whether an operator was faster: the version is there already.
    fn is_done(&self) -> bool {
        matches!(self, Self::Install(RegistryError::AlreadyInstalled(_)))
    }

    /// For the operator, nothing when he has turned it off meanwhile; what is the host's own trouble goes to the log.
    fn told(&self, plugin: &PluginId) -> Option<String> {
        let text = match self {
            Self::Install(RegistryError::NotUnattended { why: Unfit::NotWanted, .. }) => return None,
            // The item says the rest.
            Self::Install(RegistryError::NotUnattended { why, .. }) => why.to_string(),
            Self::Fetch(FetchError::DiskFull(cause)) | Self::Install(RegistryError::DiskFull(cause)) => {
                tracing::error!(plugin.id = %plugin, error = cause, "an automatic update found the disk full");
                self.to_string()
            }
            Self::Setting(_)
            | Self::Fetch(FetchError::Staging(_))
            | Self::Install(RegistryError::Storage(_) | RegistryError::Vault(_) | RegistryError::Ask(_)) => {
                tracing::error!(plugin.id = %plugin, error = %self, "an automatic update failed");
                HOST_TROUBLE.to_owned()
            }
            other => other.to_string(),
        };
        Some(clean::single_line(&text, MAX_REASON_BYTES))
    }
}

/// What is offered in one round.
struct Round {
    offers: BTreeMap<PluginId, Offer>,
    /// Whether every enabled source has told what it offers.
    complete: bool,
    /// Whether plugins whose record does not say are updated.
    default: bool,
    /// The plugins that have an item about a newer version, and which version that is.
    awaiting: BTreeMap<PluginId, String>,
}

impl Updater {
    /// With the market's offers, every `interval`, until `stop`.
    pub fn new(market: Market, site: Worksite, interval: Duration, stop: CancellationToken) -> Self {
        Self { market, site, interval, stop }
    }

    /// Runs until it is stopped; an install that has begun is waited for, a download is not. The first round comes when
    /// `started` has ended.
    pub async fn run(self, started: impl Future<Output = ()>) {
        tokio::select! {
            () = started => {}
            () = self.stop.cancelled() => return,
        }
        loop {
            match self.round().await {
                Ok(()) => {}
                Err(RoundError::Stopping) => return,
                Err(error) => tracing::warn!(%error, "the look for newer versions of plugins came to an early end"),
            }
            tokio::select! {
                () = tokio::time::sleep(self.interval) => {}
                () = self.market.wake.notified() => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn round(&self) -> Result<(), RoundError> {
        let plugins = self.site.registry.list().await?;
        let version = |view: &PluginView| (view.record.id().to_string(), view.record.manifest.version.clone());
        let installed: BTreeMap<_, _> = plugins.iter().map(version).collect();
        let round = tokio::select! {
            round = self.look(&installed) => round?,
            () = self.stop.cancelled() => return Err(RoundError::Stopping),
        };
        for view in &plugins {
            self.judge(&view.record, &round).await?;
        }
        for plugin in round.awaiting.keys().filter(|plugin| !installed.contains_key(plugin.as_str())) {
            self.over(plugin, UpdateEnd::Uninstalled, &round).await?;
        }
        Ok(())
    }

    async fn look(&self, installed: &BTreeMap<String, String>) -> Result<Round, RoundError> {
        let listing = self.market.list(installed, &Search::default()).await?;
        let known = |(source, health): &(Source, Health)| !source.enabled || health.index.is_some();
        Ok(Round {
            complete: listing.sources.iter().all(known),
            offers: listing.offers.into_iter().map(|offer| (offer.entry.id.clone(), offer)).collect(),
            default: self.market.auto_update_default().await?,
            awaiting: self.site.inbox.awaiting_update().await?.into_iter().collect(),
        })
    }

    /// What becomes of one plugin. Its record is as it was when the round began: the install looks again.
    async fn judge(&self, record: &PluginRecord, round: &Round) -> Result<(), RoundError> {
        let id = record.id();
        let Some(offer) = round.offers.get(id) else { return self.none_newer(record, round).await };
        let obstacle = match plan(record, offer, round.default) {
            Plan::Nothing => return self.none_newer(record, round).await,
            Plan::Tell => None,
            Plan::Blocked(reason) => Some(reason),
            Plan::Install => match self.install(id, offer).await {
                Ok(()) => return self.over(id, UpdateEnd::Updated, round).await,
                Err(fault) if fault.is_done() => return self.over(id, UpdateEnd::Updated, round).await,
                Err(fault) if fault.is_stop() => return Err(RoundError::Stopping),
                Err(fault) => fault.told(id),
            },
        };
        let update = Update {
            installed: record.manifest.version.clone(),
            offered: offer.entry.version.clone(),
            source: offer.source_name.clone(),
            obstacle,
            at: OffsetDateTime::now_utc(),
        };
        self.tell(id, update).await
    }

    /// Nothing is offered that is newer than what is installed.
    async fn none_newer(&self, record: &PluginRecord, round: &Round) -> Result<(), RoundError> {
        let Some(awaited) = round.awaiting.get(record.id()) else { return Ok(()) };
        match UpdateEnd::of(awaited, &record.manifest.version, round.complete) {
            Some(end) => self.over(record.id(), end, round).await,
            None => Ok(()),
        }
    }

    /// The item about a newer version, if there is one, is over.
    async fn over(&self, id: &PluginId, end: UpdateEnd, round: &Round) -> Result<(), RoundError> {
        if round.awaiting.contains_key(id) {
            let news = UpdateNews::Over(end, OffsetDateTime::now_utc());
            self.site.inbox.apply_update(id, &news, Uuid::now_v7()).await?;
        }
        Ok(())
    }

    async fn install(&self, id: &PluginId, offer: &Offer) -> Result<(), UpdateFault> {
        let entry = &offer.entry;
        tracing::info!(plugin.id = %id, version = entry.version, source.name = offer.source_name, "automatic update begins");
        let staged = tokio::select! {
            staged = self.site.downloader.download(&entry.package_url, &self.site.packages) => staged?,
            () = self.stop.cancelled() => return Err(UpdateFault::Stopping),
        };
        let listed = entry.package_sha256.map(|digest| Listed { digest, source: offer.source_name.clone() });
        verify(&staged.sha256, None, listed.as_ref())?;
        // As it is now: the download may have taken long.
        let default = self.market.auto_update_default().await?;
        let announced = Unattended { plugin: id.clone(), version: entry.version.clone(), default };
        let terms = Terms { unattended: Some(announced), ..Terms::default() };
        let installed = self.site.registry.install(staged, terms).await?;
        tracing::info!(plugin.id = %id, version = installed.plugin.record.manifest.version, "updated automatically");
        Ok(())
    }

    /// Into the inbox, and once into the log.
    async fn tell(&self, id: &PluginId, update: Update) -> Result<(), RoundError> {
        let (version, obstacle) = (update.offered.clone(), update.obstacle.clone());
        if self.site.inbox.apply_update(id, &UpdateNews::Offered(update), Uuid::now_v7()).await? {
            match obstacle {
                None => tracing::info!(plugin.id = %id, version, "a newer version is offered"),
                Some(error) => tracing::warn!(plugin.id = %id, version, error, "an automatic update was not made"),
            }
        }
        Ok(())
    }
}
