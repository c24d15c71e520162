//! The exchange of one installed version for another, and the way back when the new one does not come up.
//!
//! The note in the record comes first and says what is under way until the end, so that the next host can repair what a
//! killed one left (`unfinished`). The old process is down only from [`Want::Held`] until the new one is healthy: files
//! are in place before, the new record is written while the new process starts, pruning comes after.

use futures_util::future::join;

use super::{Installer, blocking};
use crate::{
    actors::{
        PluginView,
        plugin::Want,
        registry::{Adopt, ClaimGuard, NoteUpgrade, RegistryError, prune, should_run},
    },
    domain::{
        id::PluginId,
        record::PluginRecord,
        upgrade::{ChangeKind, HOST_TROUBLE, LastUpgrade, NOT_PLACED, Outcome},
    },
    failpoint,
    store::packages::BeforeError,
};

/// One change of a plugin's version.
pub(super) struct Change<'a> {
    /// What to go back to.
    pub before: &'a PluginRecord,
    /// The note as it was at the beginning.
    pub note: LastUpgrade,
    /// Keeps others out.
    pub guard: &'a ClaimGuard,
}

impl Change<'_> {
    fn id(&self) -> &PluginId {
        self.before.id()
    }

    /// Whether a package takes the place of the version that is kept.
    fn replaces_kept(&self) -> bool {
        let kept = self.before.state.previous_version.as_ref();
        self.note.kind == ChangeKind::Install && kept == Some(&self.note.version)
    }
}

impl Installer {
    /// Writes the note: from here on the next host repairs what this one leaves. A change that cannot be noted has not
    /// begun, and the record says nothing of it.
    pub(super) async fn announce(&self, change: &Change<'_>) -> Result<(), RegistryError> {
        let announced = match self.keep_before(change.before).await {
            Ok(()) => self.note(change, change.note.clone()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = announced {
            self.retract(change).await;
            return Err(error);
        }
        failpoint::hit("upgrade.announced");
        Ok(())
    }

    async fn keep_before(&self, before: &PluginRecord) -> Result<(), RegistryError> {
        let (packages, before) = (self.shared.packages.clone(), before.clone());
        let failed = |error: BeforeError| match error {
            // The disk may be full, and the operator is told.
            BeforeError::File(error) => RegistryError::from(error),
            other => RegistryError::Storage(other.to_string()),
        };
        blocking(move || packages.keep_before(&before).map_err(failed)).await
    }

    /// The registry goes on trying to write what it holds, so it must not hold the note of a change that does not come.
    async fn retract(&self, change: &Change<'_>) {
        let note = change.before.state.last_upgrade.clone();
        let retracted = self.ask_registry(NoteUpgrade { id: change.id().clone(), note }).await;
        if let Err(error) = retracted.map_err(RegistryError::from).flatten() {
            tracing::warn!(plugin.id = %change.id(), %error, "the record without the change that did not begin is written later");
        }
        self.clear(change.before).await;
    }

    /// Puts the kept version aside when a package of the same number is to take its place: it is the way back until the
    /// package has come up.
    pub(super) async fn make_room(&self, change: &Change<'_>) -> Result<(), RegistryError> {
        if !change.replaces_kept() {
            return Ok(());
        }
        let (packages, owner, version) =
            (self.shared.packages.clone(), change.id().clone(), change.note.version.clone());
        blocking(move || Ok(packages.put_aside(&owner, &version)?)).await?;
        failpoint::hit("upgrade.set_aside");
        Ok(())
    }

    /// Ends a change before anything but files was touched.
    pub(super) async fn abandon(&self, change: &Change<'_>) {
        self.remove_failed(change).await;
        let note = change.note.ended(Outcome::RolledBack, Some(NOT_PLACED.into()));
        if let Err(error) = self.note(change, note).await {
            tracing::warn!(plugin.id = %change.id(), %error, "the end of a failed upgrade was not noted");
        }
    }

    /// Makes `record`, whose files are in place, the installed version and starts it when `start` says so. A version
    /// that does not come up is undone: the error says what is there then. The text beside the plugin says why it does
    /// not run although the change stands: an operator overruled the start.
    pub(super) async fn exchange(
        &self,
        change: &Change<'_>,
        record: PluginRecord,
        start: bool,
    ) -> Result<(PluginView, Option<String>), RegistryError> {
        match self.swap(change, record, start).await {
            Ok(plugin) => Ok((self.conclude(change, None).await.unwrap_or(plugin), None)),
            Err(error) => self.failed(change, error).await,
        }
    }

    async fn swap(
        &self,
        change: &Change<'_>,
        mut record: PluginRecord,
        start: bool,
    ) -> Result<PluginView, RegistryError> {
        let id = change.id();
        record.state.last_upgrade = Some(change.note.clone());
        self.operate(id, Want::Held, true).await?;
        failpoint::hit("upgrade.held");
        let adopt = async {
            self.ask_registry(Adopt(record)).await??;
            failpoint::hit("upgrade.recorded");
            Ok::<_, RegistryError>(())
        };
        if !start {
            adopt.await?;
            return self.view_of(id.as_str()).await;
        }
        // Polled in this order, so the registry has the record before it is asked to start.
        let start = async {
            change.guard.open();
            self.operate(id, Want::Started, true).await
        };
        let (adopted, started) = join(adopt, start).await;
        adopted.and(started)
    }

    /// The change stands: notes it and removes what is not kept any more. `None` when the plugin is gone meanwhile.
    pub(super) async fn conclude(&self, change: &Change<'_>, reason: Option<String>) -> Option<PluginView> {
        let id = change.id();
        if let Err(error) = change.guard.close(self.shared.ask_timeout()).await {
            tracing::debug!(plugin.id = %id, %error, "a change of version was taken over at its end");
            return None;
        }
        let plugin = match self.note(change, change.note.ended(Outcome::Done, reason)).await {
            Ok(plugin) => plugin,
            Err(error) => {
                // Written as soon as the disk takes it; or the next start finds the plugin active and notes it then.
                tracing::warn!(plugin.id = %id, %error, "the end of a change of version was not noted");
                return self.view_of(id.as_str()).await.ok();
            }
        };
        failpoint::hit("upgrade.done");
        tracing::info!(plugin.id = %id, from = %change.note.from, version = %change.note.version, "version changed");
        self.drop_before(id).await;
        prune(&self.shared.packages, &plugin.record).await;
        Some(plugin)
    }

    async fn failed(
        &self,
        change: &Change<'_>,
        error: RegistryError,
    ) -> Result<(PluginView, Option<String>), RegistryError> {
        // Taken over by an uninstall, or the host is stopping: the next one goes on from the note.
        let present = change.guard.close(self.shared.ask_timeout()).await?;
        let reason = match &error {
            RegistryError::StartFailed { reason, .. } => reason.clone(),
            // It was taken since the change began.
            RegistryError::Owned(taken) => taken.to_string(),
            RegistryError::Overtaken { reason, .. } if present.record.manifest.version == change.note.version => {
                let plugin = self.conclude(change, Some(reason.clone())).await.unwrap_or(present);
                return Ok((plugin, Some(reason.clone())));
            }
            other => {
                tracing::error!(plugin.id = %change.id(), error = %other, "a change of version failed");
                HOST_TROUBLE.to_owned()
            }
        };
        let back = self.undo(change, &reason).await;
        match error {
            RegistryError::StartFailed { id, .. } => {
                Err(RegistryError::ChangeFailed { id, version: change.note.version.clone(), back, reason })
            }
            other => Err(other),
        }
    }

    /// Brings the version before back, as it was: running, or not. Answers what is there now.
    pub(super) async fn undo(&self, change: &Change<'_>, reason: &str) -> String {
        let id = change.id();
        if let Err(error) = self.operate(id, Want::Held, true).await {
            tracing::warn!(plugin.id = %id, %error, "the failed version was not held");
        }
        failpoint::hit("upgrade.undoing");
        let mut record = change.before.clone();
        let note = change.note.ended(Outcome::RolledBack, Some(reason.to_owned()));
        record.state.last_upgrade = Some(note.clone());
        let adopted = self.ask_registry(Adopt(record.clone())).await.map_err(RegistryError::from).flatten();
        failpoint::hit("upgrade.undone");
        let back = self.come_back(&record).await;
        tracing::warn!(plugin.id = %id, failed = %change.note.version, %back, error = reason, "change of version undone");
        // While the record on disk is the failed version's, the next start needs its files and the way back from it.
        let written = match adopted {
            Ok(()) => Ok(()),
            Err(_) => self.note(change, note).await.map(drop),
        };
        match written {
            Ok(()) => self.remove_failed(change).await,
            Err(error) => {
                tracing::error!(
                    plugin.id = %id, %error,
                    "the record before the failed change is not on disk yet: what is left of the change is cleared by the next start"
                );
            }
        }
        back
    }

    /// Starts the version before when it ran; its automatic restarts go on when it does not come up at once.
    async fn come_back(&self, record: &PluginRecord) -> String {
        let version = &record.manifest.version;
        if !should_run(record) {
            return format!("{version} is installed again, in status {} as before", record.state.status);
        }
        match self.operate(record.id(), Want::Booted, true).await {
            Ok(_) => format!("{version} runs again"),
            Err(RegistryError::StartFailed { reason, .. } | RegistryError::Overtaken { reason, .. }) => {
                format!("{version} is installed again and did not come up either ({reason})")
            }
            // It was started; only what came of it is not on disk.
            Err(RegistryError::Storage(error)) => {
                tracing::error!(plugin.id = %record.id(), %error, "the record of the version before was not written");
                format!("{version} runs again, and its record could not be written yet")
            }
            Err(error) => {
                tracing::error!(plugin.id = %record.id(), %error, "the version before did not come back");
                format!("{version} is installed again and was not started")
            }
        }
    }

    /// A package that failed goes, and the kept version whose place it took comes back; a kept version that failed
    /// stays, it is what was there before.
    pub(super) async fn remove_failed(&self, change: &Change<'_>) {
        if change.note.kind == ChangeKind::Install && !change.replaces_kept() {
            self.remove_version(change.id(), &change.note.version).await;
        }
        let brings_back = change.replaces_kept().then(|| change.note.version.clone());
        let (packages, owner) = (self.shared.packages.clone(), change.id().clone());
        let done = blocking(move || {
            if let Some(version) = brings_back {
                packages.bring_back(&owner, &version)?;
            }
            Ok(packages.drop_before(&owner)?)
        });
        if let Err(error) = done.await {
            tracing::warn!(plugin.id = %change.id(), %error, "what a failed change left was not cleared; the next start does");
        }
    }

    /// The change stands: there is no way back to be kept.
    async fn drop_before(&self, id: &PluginId) {
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        if let Err(error) = blocking(move || Ok(packages.drop_before(&owner)?)).await {
            tracing::warn!(plugin.id = %id, %error, "what was kept of the version before was not removed; the next start does");
        }
    }

    async fn note(&self, change: &Change<'_>, note: LastUpgrade) -> Result<PluginView, RegistryError> {
        self.ask_registry(NoteUpgrade { id: change.id().clone(), note: Some(note) }).await?
    }
}
