//! Bringing the registry in line with the plugins folder (contract/manifest.md §12): folders that were put there become
//! plugins that are off, dropped packages are installed, plugins whose folder is gone are in error.
//!
//! What to do is `domain::sync`'s decision; this runs the steps. Each claims its plugin id, as an install does, and one
//! that fails is told and does not stop the others. A package takes the way of an upload, with every rule of it.

use std::{future::Future, path::PathBuf, sync::Arc, time::Duration};

use time::OffsetDateTime;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::{
    installer::Installer,
    plugin::Want,
    registry::{Adopt, Claim, Claimed, Departed, Forget, Operate, RegistryError, RegistryHandle, Shared},
    spawn::{ask, post},
};
use crate::{
    domain::{
        consent::Terms,
        id::PluginId,
        manifest::Manifest,
        record::{self, PluginRecord, RecordState, Status},
        redaction,
        sync::{ItemError, Plan, Step, SyncReport, plan},
    },
    failpoint,
    store::packages::{FileMark, StageError, Staged, SurveyLimits},
};

/// Text of a failure that is the host's own; its reason is in the log.
const INTERNAL: &str = "internal error, the host's log has the reason";

/// Told of a plugin that another command has claimed.
const BUSY: &str = "another command for the plugin is under way; sync again when it is done";

/// Lets one sync run at a time and bounds those that wait.
pub struct SyncDesk {
    turn: Semaphore,
    room: Semaphore,
    patience: Duration,
}

/// The right to sync.
struct Turn<'a> {
    _turn: SemaphorePermit<'a>,
    _room: Option<SemaphorePermit<'a>>,
}

impl SyncDesk {
    /// So many syncs run or wait, and one waits at most for `patience`.
    pub fn new(syncs: usize, patience: Duration) -> Self {
        Self { turn: Semaphore::new(1), room: Semaphore::new(syncs), patience }
    }

    async fn turn(&self) -> Result<Turn<'_>, RegistryError> {
        let room = self.room.try_acquire().map_err(|_| RegistryError::TooManySyncs)?;
        let turn = timeout(self.patience, self.turn.acquire()).await.map_err(|_| RegistryError::SyncUnderWay)?;
        Ok(Turn { _turn: turn.map_err(|_| RegistryError::Stopping)?, _room: Some(room) })
    }

    /// The host's own start waits for nobody's place, and until a sync that was faster has ended.
    async fn turn_of_boot(&self) -> Result<Turn<'_>, RegistryError> {
        let turn = self.turn.acquire().await.map_err(|_| RegistryError::Stopping)?;
        Ok(Turn { _turn: turn, _room: None })
    }
}

/// Runs syncs.
pub struct Syncer {
    shared: Arc<Shared>,
}

impl Syncer {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// See [`RegistryHandle::sync`].
    pub async fn sync(&self) -> Result<SyncReport, RegistryError> {
        let _turn = self.shared.sync.turn().await?;
        let Plan { steps, errors } = self.look(true).await?;
        let mut report = SyncReport { errors, ..SyncReport::default() };
        for step in steps {
            self.run(step, &mut report).await?;
        }
        tracing::info!(
            added = report.added.len(),
            installed = report.installed.len(),
            missing = report.missing.len(),
            errors = report.errors.len(),
            "plugins folder synced"
        );
        Ok(report)
    }

    /// The host's start: plugins whose folder is gone are marked before the others are started by `start`; what else is
    /// to be done is done beside the starts. Failures are for the log.
    pub async fn boot(&self, start: impl Future<Output = Result<(), RegistryError>>) -> Result<(), RegistryError> {
        let turn = self.shared.sync.turn_of_boot().await?;
        let Plan { steps, errors } = self.look(false).await.unwrap_or_else(|error| {
            tracing::error!(%error, "the plugins folder could not be looked at");
            Plan::default()
        });
        let (missing, others): (Vec<_>, Vec<_>) = steps.into_iter().partition(|step| matches!(step, Step::Missing(_)));
        let mut report = SyncReport { errors, ..SyncReport::default() };
        for step in missing {
            self.run(step, &mut report).await?;
        }
        let rest = async {
            let mut done = Ok(());
            for step in others {
                done = done.and(self.run(step, &mut report).await);
            }
            drop(turn);
            for ItemError { path, reason } in &report.errors {
                tracing::warn!(path, reason, "not taken over from the plugins folder");
            }
            done
        };
        let (started, rest) = tokio::join!(start, rest);
        started.and(rest)
    }

    async fn look(&self, asked: bool) -> Result<Plan, RegistryError> {
        let plugins = RegistryHandle { shared: Arc::clone(&self.shared) }.records().await?;
        let registered = plugins
            .into_iter()
            .map(|record| (record.id().clone(), PathBuf::from(&record.state.install_path)))
            .collect();
        let limits = &self.shared.config.limits;
        let bounds = SurveyLimits { items: limits.sync_items, manifest: limits.manifest_bytes };
        let packages = self.shared.packages.clone();
        let survey = blocking(move || Ok(packages.survey(&registered, bounds)?)).await?;
        failpoint::hit("sync.looked");
        Ok(plan(survey, asked))
    }

    /// Runs one step and notes what came of it. Only the host's stop is an error.
    async fn run(&self, step: Step, report: &mut SyncReport) -> Result<(), RegistryError> {
        let packages = &self.shared.packages;
        let (path, result) = match step {
            Step::Missing(id) => {
                let marked = self.missing(&id).await.map(|marked| report.missing.extend(marked.then(|| id.clone())));
                (packages.plugin_folder(&id), marked)
            }
            Step::Register(id, manifest) => {
                let path = packages.version_folder(&id, &manifest.version);
                (path, self.register(&id, *manifest).await.map(|added| report.added.extend(added.then_some(id))))
            }
            Step::Install(name) => {
                let path = packages.root().join(&name);
                (path, self.install(&name).await.map(|id| report.installed.push(id)))
            }
            Step::Clean(id) => {
                let path = packages.plugin_folder(&id);
                (path, self.clean(&id).await)
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(RegistryError::Stopping) => Err(RegistryError::Stopping),
            Err(error) => {
                let path = path.display().to_string();
                let reason = told(&error, &path);
                report.errors.push(ItemError { path, reason });
                Ok(())
            }
        }
    }

    /// Stops a plugin whose folder is gone and leaves it in error; false when the folder is back, or the plugin is
    /// gone.
    async fn missing(&self, id: &PluginId) -> Result<bool, RegistryError> {
        let Claimed { guard: _claim, present: Some(present) } = self.claim(id).await? else { return Ok(false) };
        let mut record = present.record;
        let (packages, place) = (self.shared.packages.clone(), PathBuf::from(&record.state.install_path));
        if !blocking(move || Ok(packages.is_missing(&place)?)).await? {
            return Ok(false);
        }
        let text = format!("plugin install path \"{}\" is missing", record.state.install_path);
        let text = redaction::diagnostic(text, &self.shared.user_home);
        let state = &record.state;
        if state.status == Status::Error && !state.restarting && state.last_error.as_deref() == Some(&text) {
            return Ok(true);
        }
        let id = id.as_str().to_owned();
        let hold = Operate { id, want: Want::Held, claimed: true };
        ask(&self.shared.addr, hold, self.shared.command_timeout()).await??;
        record.state.status = Status::Error;
        record.state.restarting = false;
        record.fail(text, OffsetDateTime::now_utc());
        self.adopt(record).await?;
        failpoint::hit("sync.marked_missing");
        Ok(true)
    }

    /// Takes over what lies in a version's folder, off. Its files are the operator's word: nothing vouches for them, so
    /// it is never started by itself.
    async fn register(&self, id: &PluginId, manifest: Manifest) -> Result<bool, RegistryError> {
        let Claimed { guard: _claim, present: None } = self.claim(id).await? else { return Ok(false) };
        let place = self.shared.packages.version_folder(id, &manifest.version);
        let (packages, folder) = (self.shared.packages.clone(), place.clone());
        if blocking(move || Ok(packages.is_missing(&folder)?)).await? {
            return Ok(false);
        }
        let state = RecordState {
            status: Status::Disabled,
            sideloaded: true,
            warnings: record::keep_warnings(&[record::TAKEN_OVER.to_owned()]),
            ..RecordState::installed(place.to_string_lossy().into_owned(), OffsetDateTime::now_utc())
        };
        let version = manifest.version.clone();
        if let Err(error) = self.adopt(PluginRecord::new(id.clone(), manifest, state)).await {
            post(&self.shared.addr, Forget(id.clone()));
            post(&self.shared.addr, Departed(id.clone()));
            return Err(error);
        }
        tracing::warn!(
            plugin.id = %id,
            version,
            "a folder was registered as a plugin, disabled: its files were not verified, enable it if they are yours"
        );
        failpoint::hit("sync.registered");
        Ok(true)
    }

    /// Installs a dropped package and deletes the file when a record came of it, started or not.
    async fn install(&self, name: &str) -> Result<PluginId, RegistryError> {
        let limits = self.shared.config.limits.package();
        let (staged, mark) = self.shared.packages.stage_file(name, &limits).await.map_err(staging)?;
        let id = self.install_staged(staged).await?;
        failpoint::hit("sync.installed");
        if let Err(error) = self.remove_dropped(name, mark).await {
            tracing::warn!(plugin.id = %id, %error, "the installed package stays in the plugins folder");
        }
        Ok(id)
    }

    async fn install_staged(&self, staged: Staged) -> Result<PluginId, RegistryError> {
        let installed = Installer::new(Arc::clone(&self.shared)).install(staged, Terms::default()).await?;
        let id = installed.plugin.record.id().clone();
        for warning in installed.warning.iter().chain(&installed.warnings) {
            tracing::warn!(plugin.id = %id, warning, "a dropped package was installed");
        }
        Ok(id)
    }

    async fn remove_dropped(&self, name: &str, mark: FileMark) -> Result<(), RegistryError> {
        let (packages, name) = (self.shared.packages.clone(), name.to_owned());
        blocking(move || Ok(packages.remove_dropped(&name, mark)?)).await
    }

    /// Deletes unfinished files of a plugin about which nothing is under way.
    async fn clean(&self, id: &PluginId) -> Result<(), RegistryError> {
        let Claimed { guard: _claim, .. } = self.claim(id).await?;
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let count = blocking(move || Ok(packages.remove_leftovers(&owner)?)).await?;
        tracing::info!(plugin.id = %id, count, "unfinished files were removed");
        Ok(())
    }

    /// `Busy` when another command has the id: what is under way is not for a sync to judge.
    async fn claim(&self, id: &PluginId) -> Result<Claimed, RegistryError> {
        ask(&self.shared.addr, Claim(id.clone()), self.shared.ask_timeout()).await?
    }

    async fn adopt(&self, record: PluginRecord) -> Result<(), RegistryError> {
        ask(&self.shared.addr, Adopt(record), self.shared.ask_timeout()).await?
    }
}

fn staging(error: StageError<std::io::Error>) -> RegistryError {
    match error {
        StageError::TooLarge(error) => RegistryError::Package(error),
        StageError::Source(error) => RegistryError::Unreadable(error),
        StageError::File(error) => error.into(),
        StageError::Interrupted(error) => RegistryError::Storage(error.to_string()),
    }
}

/// The reason for the operator, with what to do about it by a sync or beside it; what is the host's own trouble goes to
/// the log.
fn told(error: &RegistryError, path: &str) -> String {
    match error {
        RegistryError::Busy(_) => BUSY.to_owned(),
        // A sync has no place for the operator's word.
        RegistryError::ConsentNeeded { id, difference, .. } => {
            let (version, needs) = (&difference.offered, &difference.needs);
            format!(
                "plugin \"{id}\": version {version} {difference}; a sync does not take that upon itself: look at it with \
                 `kandev-host plugin inspect`, and to install it all the same use `kandev-host plugin install --accept \
                 {needs}` with this file, or upload it with accept={needs}"
            )
        }
        RegistryError::DiskFull(cause) => {
            tracing::error!(path, cause, "an item of the plugins folder found no room on the disk");
            error.to_string()
        }
        RegistryError::Storage(_) | RegistryError::Vault(_) => {
            tracing::error!(path, %error, "an item of the plugins folder failed");
            INTERNAL.to_owned()
        }
        other => other.to_string(),
    }
}

/// Runs file work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(RegistryError::Storage(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_sync_waits_for_the_one_under_way_no_longer_than_its_patience() {
        let desk = SyncDesk::new(2, Duration::from_secs(60));
        let first = desk.turn().await.ok().unwrap();
        let mut second = Box::pin(desk.turn());
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(matches!(desk.turn().await.err(), Some(RegistryError::TooManySyncs)));
        let asked = tokio::time::Instant::now();
        assert!(matches!(second.await.err(), Some(RegistryError::SyncUnderWay)));
        assert_eq!(asked.elapsed(), Duration::from_secs(60));
        let mut third = Box::pin(desk.turn());
        assert!(futures_util::poll!(&mut third).is_pending(), "who has given up takes no place");
        drop(first);
        third.await.ok().unwrap();
    }
}
