//! The registry: knows every installed plugin, is the only writer of their records, gives an operator's command to the
//! plugin's actor and answers when its result is on disk. It makes the plugin actors and makes a lost one anew.
//!
//! This file has the handle that the edges use and the errors; [`actor`] has the actor, [`disk`] the writing of
//! records. Installing and uninstalling are sequences of steps with long waits: they live in `installer`, claim their
//! plugin id here, and never hold up another id.

mod actor;
mod announce;
mod boot;
mod claims;
mod directory;
mod disk;
mod logs;
mod messages;
mod owners;
mod retention;
mod version;
mod views;
mod vouch;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use actix::Addr;

pub(super) use self::{
    actor::Registry,
    claims::{Claim, ClaimGuard, Claimed, Seize},
    messages::{Adopt, Departed, Forget, Operate, Restore},
    owners::CheckOwnership,
    retention::prune,
    version::{NoteUpgrade, SetAutoUpdate},
    views::ForgetUnreadable,
};
use self::{
    actor::{Files, Found},
    directory::Directory,
    messages::{BootAll, Get, List, Logs, Records, Show, StopAll},
};
use super::{
    AskError, CallKind, CallPermit, CallRefused, EventBusHandle, PluginHandle, PluginLog, PluginView,
    installer::{Installer, Preview},
    plugin::{Surroundings, Want},
    spawn::{ask, start},
    sync::{SyncDesk, Syncer},
};
use crate::{
    config::Config,
    domain::{
        consent::{Difference, Terms, Unfit},
        id::PluginId,
        log_line::LogLine,
        marketplace::OtherPlugin,
        ownership::Collision,
        package::PackageError,
        record::{PluginRecord, Status},
        sync::SyncReport,
        version::MinVersionError,
    },
    store::{
        db::{Db, FaultCounts},
        fs::FileError,
        log_files::{LogFiles, LostLines},
        packages::{PackageStore, PackageStoreError, Staged},
        records::RecordStore,
        trust::TrustStore,
    },
    vault::{Vault, VaultError},
};

/// Why a command about plugins failed. `http::error` maps it.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No such plugin.
    #[error("plugin not found")]
    NotFound(String),
    /// The plugin's record could not be read when the host started.
    #[error("plugin \"{0}\" has a record that cannot be read: its last_error names the file and what can be done")]
    RecordUnreadable(PluginId),
    /// An install, upgrade, uninstall or a save of the settings of this id is under way.
    #[error("plugin \"{0}\" is being installed, upgraded, configured or uninstalled; try again when that is done")]
    Busy(PluginId),
    /// The same version is installed already.
    #[error("pkgtar: version already installed: {}", .0.display())]
    AlreadyInstalled(PathBuf),
    /// The package breaks a rule.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The package differs from what is installed in a way that needs an operator's word.
    #[error(
        "plugin \"{id}\": version {} {difference}; look at it, and to install it all the same send accept={} with the request",
        difference.offered,
        difference.needs
    )]
    ConsentNeeded {
        /// Which plugin.
        id: PluginId,
        /// What would change.
        difference: Box<Difference>,
        /// SHA-256 of the package in hexadecimal.
        sha256: String,
    },
    /// The package is not the one the request means.
    #[error(
        "the package has the sha256 {found}, the request means {wanted}: look at the new package before you accept it"
    )]
    OtherPackage {
        /// In hexadecimal.
        wanted: String,
        /// In hexadecimal.
        found: String,
    },
    /// The package is not of the plugin that the marketplace lists at its address.
    #[error(transparent)]
    OtherPlugin(OtherPlugin),
    /// An automatic update that somebody must look at first.
    #[error("plugin \"{id}\" is not updated automatically: {why}")]
    NotUnattended {
        /// Which.
        id: PluginId,
        /// What is in the way.
        why: Unfit,
    },
    /// Another version was installed and did not come up; what was there before is there again.
    #[error("plugin \"{id}\": version {version} did not come up, {back}: {reason}")]
    ChangeFailed {
        /// Whose.
        id: PluginId,
        /// The version that failed.
        version: String,
        /// What is there now: `1.0.0 runs again`.
        back: String,
        /// One redacted line.
        reason: String,
    },
    /// Nothing to go back to.
    #[error("plugin \"{0}\" has no earlier version to go back to: only a version that an upgrade replaced is kept")]
    NoEarlierVersion(PluginId),
    /// What was kept is not what was installed.
    #[error("plugin \"{id}\": the kept version {version} cannot be used, install its package again: {reason}")]
    EarlierVersionBroken {
        /// Whose.
        id: PluginId,
        /// Which.
        version: String,
        /// Which rule its files break.
        reason: String,
    },
    /// A folder that was put there by hand, on a host that takes signed plugins only.
    #[error(
        "plugin \"{id}\" was put into the plugins folder by hand and install.signatures is \"require\": {reason}; put \
         checksums.txt and checksums.txt.sig of a package that a trusted key signed beside its files, or set it to \"warn\""
    )]
    NotVouchedFor {
        /// Which.
        id: PluginId,
        /// What is missing.
        reason: String,
    },
    /// The package asks for a newer platform.
    #[error(transparent)]
    TooOld(#[from] MinVersionError),
    /// The plugin was started and did not come up.
    #[error("plugins: start \"{id}\": {reason}")]
    StartFailed {
        /// Whose start.
        id: PluginId,
        /// One redacted line.
        reason: String,
    },
    /// Another active plugin owns what this one claims.
    #[error(transparent)]
    Owned(#[from] Collision),
    /// Another command came in between.
    #[error("plugin \"{id}\": {reason}")]
    Overtaken {
        /// Whose command.
        id: PluginId,
        /// What happened.
        reason: String,
    },
    /// As many syncs run or wait as may.
    #[error("too many syncs at once, try again (limits.syncs)")]
    TooManySyncs,
    /// A dropped package cannot be read.
    #[error("the package cannot be read: {0}; let the user that the host runs as read it")]
    Unreadable(std::io::Error),
    /// The sync under way did not end in `timing.sync_wait`.
    #[error("another sync is under way and takes long; try again when it is done (timing.sync_wait)")]
    SyncUnderWay,
    /// The host ends and takes no commands.
    #[error("the host is stopping")]
    Stopping,
    /// The disk failed; the text is for the log.
    #[error("plugin files: {0}")]
    Storage(String),
    /// The disk is full; which file it was is for the log.
    #[error("no space is left on the disk for the plugin's files; free some below the host's home, and try again")]
    DiskFull(String),
    /// The vault or the database failed; the text is for the log.
    #[error("plugin secrets and state: {0}")]
    Vault(#[from] VaultError),
    /// An actor did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}

impl From<PackageStoreError> for RegistryError {
    fn from(error: PackageStoreError) -> Self {
        match error {
            PackageStoreError::Package(error) => Self::Package(error),
            PackageStoreError::AlreadyInstalled(path) => Self::AlreadyInstalled(path),
            PackageStoreError::File(error) => error.into(),
            PackageStoreError::Interrupted(error) => Self::Storage(error.to_string()),
        }
    }
}

impl From<FileError> for RegistryError {
    fn from(error: FileError) -> Self {
        match error.is_full() {
            true => Self::DiskFull(error.to_string()),
            false => Self::Storage(error.to_string()),
        }
    }
}

/// What an install came to.
#[derive(Debug, Clone)]
pub struct Installed {
    /// The plugin as it is now; `error` when it did not start.
    pub plugin: PluginView,
    /// Why it did not start.
    pub warning: Option<String>,
    /// What an operator should know of the package.
    pub warnings: Vec<String>,
}

/// Everything the registry is made of; built by `app`.
pub struct Parts {
    /// Settings.
    pub config: Arc<Config>,
    /// What plugin actors work with.
    pub surroundings: Arc<Surroundings>,
    /// The records on disk.
    pub records: RecordStore,
    /// The packages on disk.
    pub packages: PackageStore,
    /// The keys whose signatures count.
    pub trust: TrustStore,
    /// The plugins' secrets.
    pub vault: Vault,
    /// The database, for readiness.
    pub db: Db,
    /// The event bus.
    pub bus: EventBusHandle,
    /// The records found at start.
    pub found: Vec<PluginRecord>,
    /// What is shown of the records that cannot be read ([`PluginRecord::unreadable`]).
    pub unreadable: Vec<PluginRecord>,
    /// Log lines that an earlier host wrote, of the plugins found.
    pub earlier_lines: BTreeMap<PluginId, Vec<LogLine>>,
}

/// Typed access to the registry. Cheap to clone.
#[derive(Clone)]
pub struct RegistryHandle {
    pub(super) shared: Arc<Shared>,
}

/// What a handle and the sequences in `installer` share.
pub(super) struct Shared {
    pub addr: Addr<Registry>,
    pub directory: Directory,
    pub config: Arc<Config>,
    pub packages: PackageStore,
    pub trust: TrustStore,
    pub vault: Vault,
    pub db: Db,
    /// Home folder of the user the host runs as; hidden in diagnostics.
    pub user_home: String,
    pub sync: SyncDesk,
    pub log_files: LogFiles,
}

impl Shared {
    /// An answer that waits for a plugin to start or stop.
    pub fn command_timeout(&self) -> Duration {
        // One level above the registry's own wait for the plugin's actor.
        self.config.timing.command_timeout() + self.config.timing.ask_timeout
    }

    /// An answer that only looks something up, or writes a record.
    pub fn ask_timeout(&self) -> Duration {
        self.config.timing.ask_timeout
    }
}

impl RegistryHandle {
    /// Starts the registry on the present arbiter. No plugin is started before [`Self::boot`].
    pub fn start(parts: Parts) -> Self {
        let Parts { config, surroundings, records, packages, trust, vault, db, bus, .. } = parts;
        let found = Found { records: parts.found, unreadable: parts.unreadable, earlier_lines: parts.earlier_lines };
        let (user_home, log_files) = (surroundings.user_home.clone(), surroundings.log_files.clone());
        let sync = SyncDesk::new(config.limits.syncs, config.timing.sync_wait);
        let files = Files { records, packages: packages.clone(), trust: trust.clone() };
        let registry = Registry::new(Arc::clone(&config), surroundings, files, bus, found);
        let directory = registry.directory();
        let addr = start(registry);
        let shared = Shared { addr, directory, config, packages, trust, vault, db, user_home, sync, log_files };
        Self { shared: Arc::new(shared) }
    }

    /// Looks at the plugins folder, then starts what should run, `limits.boot_parallelism` at a time, ends the changes
    /// of version that an earlier host left unfinished, and registers what was put there meanwhile; returns when every
    /// start has ended, but of a plugin that a command holds at its turn: that start comes when the command is done.
    pub async fn boot(&self) -> Result<(), RegistryError> {
        let plugins = self.records().await?;
        let starts = plugins.len() as u32 + 1;
        let installer = self.installer();
        let unfinished = installer.claim_unfinished(plugins).await;
        let boot = async {
            let boot = ask(&self.shared.addr, BootAll, self.shared.command_timeout() * starts);
            let (booted, ()) = tokio::join!(boot, installer.finish(unfinished));
            Ok(booted?)
        };
        Syncer::new(Arc::clone(&self.shared)).boot(boot).await
    }

    /// Registers folders and installs packages that were put into the plugins folder, and finds plugins whose folder is
    /// gone. One sync at a time; `limits.syncs` run or wait.
    pub async fn sync(&self) -> Result<SyncReport, RegistryError> {
        Syncer::new(Arc::clone(&self.shared)).sync().await
    }

    /// The records of all plugins but the unreadable ones.
    pub(super) async fn records(&self) -> Result<Vec<PluginRecord>, RegistryError> {
        Ok(ask(&self.shared.addr, Records, self.shared.ask_timeout()).await?)
    }

    /// All plugins, by id, to be shown: one whose record cannot be read is in `error`.
    pub async fn list(&self) -> Result<Vec<PluginView>, RegistryError> {
        Ok(ask(&self.shared.addr, List, self.shared.ask_timeout()).await?)
    }

    /// One plugin, to be shown.
    pub async fn show(&self, id: &str) -> Result<PluginView, RegistryError> {
        ask(&self.shared.addr, Show(id.to_owned()), self.shared.ask_timeout()).await?
    }

    /// One plugin, to work with; its record can be read.
    pub async fn get(&self, id: &str) -> Result<PluginView, RegistryError> {
        ask(&self.shared.addr, Get(id.to_owned()), self.shared.ask_timeout()).await?
    }

    /// A handle for calls into a plugin, whatever its status.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`].
    pub fn plugin(&self, id: &str) -> Result<PluginHandle, RegistryError> {
        self.shared.directory.get(id).ok_or_else(|| RegistryError::NotFound(id.to_owned()))
    }

    /// Asks to make one call by a handle that was looked up before.
    ///
    /// # Errors
    /// [`CallRefused`]: as [`PluginHandle::begin`], and when the process is of another version than the handle: what
    /// was checked by its manifest need not be lawful there.
    pub fn begin(&self, plugin: &PluginHandle, kind: CallKind) -> Result<CallPermit, CallRefused> {
        let permit = plugin.begin(kind)?;
        if self.shared.directory.has_version_of(plugin) { Ok(permit) } else { Err(CallRefused::NotRunning) }
    }

    /// Handles of all plugins that are active, by id.
    pub fn active(&self) -> Vec<PluginHandle> {
        self.shared.directory.all().into_iter().filter(|plugin| plugin.run().is_some()).collect()
    }

    /// A plugin's log, to be read and followed.
    pub async fn log(&self, id: &str) -> Result<Arc<PluginLog>, RegistryError> {
        ask(&self.shared.addr, Logs(id.to_owned()), self.shared.ask_timeout()).await?
    }

    /// Whether the registry and the database answer.
    pub async fn ready(&self) -> bool {
        self.list().await.is_ok() && self.shared.db.ready().await
    }

    /// Database work that failed since the start.
    pub fn database_faults(&self) -> FaultCounts {
        self.shared.db.fault_counts()
    }

    /// Log lines that are not on disk, since the start.
    pub fn lost_lines(&self) -> LostLines {
        self.shared.log_files.lost()
    }

    /// Verifies, unpacks and installs a staged package, or upgrades to it, and starts it. An upgrade that does not come
    /// up is undone.
    pub async fn install(&self, staged: Staged, terms: Terms) -> Result<Installed, RegistryError> {
        self.installer().install(staged, terms).await
    }

    /// Verifies a staged package as [`Self::install`] does and tells what it would change. Leaves nothing.
    pub async fn preview(&self, staged: Staged, terms: Terms) -> Result<Preview, RegistryError> {
        self.installer().preview(staged, terms).await
    }

    /// Goes back to the version that the present one replaced, after its files were verified.
    pub async fn rollback(&self, id: &str) -> Result<Installed, RegistryError> {
        self.installer().rollback(id).await
    }

    /// Starts a plugin and waits until it is healthy. Without effect on one that runs.
    pub async fn enable(&self, id: &str) -> Result<PluginView, RegistryError> {
        self.operate(id, Want::Started).await
    }

    /// Stops a plugin and leaves it off. Without effect on one that is off.
    pub async fn disable(&self, id: &str) -> Result<PluginView, RegistryError> {
        self.operate(id, Want::Disabled).await
    }

    /// Notes an operator's word on automatic updates of a plugin; `None` has it follow the host's setting.
    pub async fn set_auto_update(&self, id: &str, word: Option<bool>) -> Result<PluginView, RegistryError> {
        ask(&self.shared.addr, SetAutoUpdate { id: id.to_owned(), word }, self.shared.ask_timeout()).await?
    }

    /// Stops a plugin and removes everything of it: process, versions, record, own files, secrets, state.
    pub async fn uninstall(&self, id: &str) -> Result<(), RegistryError> {
        self.installer().uninstall(id).await
    }

    /// Stops every plugin and refuses commands from now on. Returns the ids that did not stop in time.
    pub async fn stop(&self) -> Result<Vec<PluginId>, RegistryError> {
        Ok(ask(&self.shared.addr, StopAll, self.shared.command_timeout()).await?)
    }

    fn installer(&self) -> Installer {
        Installer::new(Arc::clone(&self.shared))
    }

    async fn operate(&self, id: &str, want: Want) -> Result<PluginView, RegistryError> {
        let operate = Operate { id: id.to_owned(), want, claimed: false };
        ask(&self.shared.addr, operate, self.shared.command_timeout()).await?
    }
}

/// Whether a record found at start asks for a process.
pub(super) fn should_run(record: &PluginRecord) -> bool {
    match record.state.status {
        Status::Registered | Status::Active => true,
        Status::Error => record.state.restarting,
        Status::Disabled => false,
    }
}
