//! The sequences of install, upgrade and uninstall (contract/manifest.md §6 and §13, architecture.md §4). Each claims
//! its plugin id at the registry and holds the claim until the plugin starts, or is gone.
//!
//! Every step that can be lost in a crash is named in docs/runtime-semantics.md with what the next start makes of it.

use std::sync::Arc;

use time::OffsetDateTime;

use super::{
    PluginView,
    plugin::Want,
    registry::{Adopt, Claim, Forget, Installed, Operate, RegistryError, Restore, Shared, should_run},
    spawn::{ask, post},
};
use crate::{
    domain::{
        id::PluginId,
        platform::host_platform,
        record::{PluginRecord, RecordState, Status},
        version::check_minimum,
    },
    failpoint,
    store::packages::{Staged, Unpacked},
};

/// Runs the sequences.
pub struct Installer {
    shared: Arc<Shared>,
}

impl Installer {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// See [`super::RegistryHandle::install`].
    pub async fn install(&self, staged: Staged) -> Result<Installed, RegistryError> {
        failpoint::hit("install.staged");
        let unpacked =
            self.shared.packages.unpack(staged, self.shared.config.limits.package(), &host_platform()).await?;
        failpoint::hit("install.unpacked");
        let id = PluginId::new(&unpacked.manifest.id).map_err(|error| RegistryError::Storage(error.to_string()))?;
        let claim = self.ask_registry(Claim(id.clone())).await??;
        let mut warnings = unpacked.warnings.clone();
        warnings.push(unpacked.signature.warning());
        self.place(&id, unpacked, claim.present.as_ref()).await?;
        // From here on an operator may overrule the start; the package is installed whatever becomes of it.
        let start =
            Operate { id: id.as_str().to_owned(), want: Want::Started, claimed: false, release: Some(claim.guard) };
        let started = ask(&self.shared.addr, start, self.shared.command_timeout()).await.map_err(RegistryError::from);
        let installed = match started.flatten() {
            Ok(plugin) => Installed { plugin, warning: None, warnings },
            Err(error) => {
                let warning = match error {
                    RegistryError::StartFailed { reason, .. } | RegistryError::Overtaken { reason, .. } => reason,
                    other => other.to_string(),
                };
                let plugin = self.view(&id).await.map_err(|_| RegistryError::Overtaken {
                    id: id.clone(),
                    reason: format!("the plugin was uninstalled while it was being started: {warning}"),
                })?;
                Installed { plugin, warning: Some(warning), warnings }
            }
        };
        self.prune(&installed.plugin).await;
        Ok(installed)
    }

    /// Everything between the verified package and the start: nothing may be left half done for a caller to see.
    async fn place(
        &self,
        id: &PluginId,
        unpacked: Unpacked,
        present: Option<&PluginView>,
    ) -> Result<(), RegistryError> {
        let manifest = &unpacked.manifest;
        check_minimum(&manifest.min_kandev_version, &self.shared.config.compat_version)?;
        if let Some(present) = present {
            if present.record.manifest.version == manifest.version {
                return Err(RegistryError::AlreadyInstalled(present.record.state.install_path.clone().into()));
            }
            if let Err(error) = self.operate(id, Want::Held, true).await {
                self.put_back(present).await;
                return Err(error);
            }
            failpoint::hit("upgrade.held");
        }
        let version = manifest.version.clone();
        let placed = self.place_and_record(id, unpacked, present).await;
        if placed.is_err() {
            self.take_out(id, version, present).await;
        }
        placed
    }

    async fn place_and_record(
        &self,
        id: &PluginId,
        unpacked: Unpacked,
        present: Option<&PluginView>,
    ) -> Result<(), RegistryError> {
        let record = self.place_files(id, unpacked, present).await?;
        failpoint::hit("install.placed");
        self.ask_registry(Adopt(record)).await??;
        failpoint::hit("install.recorded");
        Ok(())
    }

    /// Moves the package to its place. A folder of that version that no record owns (an earlier version that was kept,
    /// what a crash left) makes room for it.
    async fn place_files(
        &self,
        id: &PluginId,
        unpacked: Unpacked,
        present: Option<&PluginView>,
    ) -> Result<PluginRecord, RegistryError> {
        let manifest = unpacked.manifest.clone();
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let install_path = blocking(move || {
            packages.remove_version(&owner, &unpacked.manifest.version)?;
            Ok(packages.promote(&owner, unpacked)?)
        })
        .await?;
        let state = RecordState {
            status: Status::Registered,
            install_path: install_path.to_string_lossy().into_owned(),
            signed: false,
            auto_update: present.and_then(|present| present.record.state.auto_update),
            installed_at: OffsetDateTime::now_utc(),
            restart_count: 0,
            restarting: false,
            last_error: None,
            last_error_at: None,
            previous_version: present.map(|present| present.record.manifest.version.clone()),
        };
        Ok(PluginRecord::new(id.clone(), manifest, state))
    }

    /// An install failed before its record was on disk: what was there before is there again.
    async fn take_out(&self, id: &PluginId, version: String, present: Option<&PluginView>) {
        match present {
            Some(present) => self.put_back(present).await,
            None => post(&self.shared.addr, Forget(id.clone())),
        }
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let removed = blocking(move || {
            packages.remove_version(&owner, &version)?;
            Ok(packages.remove_empty(&owner)?)
        });
        if let Err(error) = removed.await {
            tracing::warn!(plugin.id = %id, %error, "files of a failed install were not removed");
        }
    }

    /// An upgrade failed before its record was on disk: the old version is as it was before.
    async fn put_back(&self, present: &PluginView) {
        let id = present.record.id().clone();
        if let Err(error) =
            self.ask_registry(Adopt(present.record.clone())).await.map_err(RegistryError::from).flatten()
        {
            tracing::warn!(plugin.id = %id, %error, "the record before the failed upgrade was not written again");
        }
        if !should_run(&present.record) {
            return;
        }
        if let Err(error) = self.operate(&id, Want::Started, true).await {
            tracing::warn!(plugin.id = %id, %error, "the version before the failed upgrade did not come back");
        }
    }

    /// Keeps the present version and the one before it (contract/manifest.md §11). Only when the new one runs.
    async fn prune(&self, installed: &PluginView) {
        let id = installed.record.id().clone();
        // An install that is under way keeps its folder: it prunes when it is done.
        let Ok(Ok(claim)) = self.ask_registry(Claim(id.clone())).await else { return };
        let Some(present) = claim.present.filter(|present| present.record.state.status == Status::Active) else {
            return;
        };
        let Some(before) = present.record.state.previous_version else { return };
        failpoint::hit("upgrade.pruning");
        let keep = [present.record.manifest.version, before];
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let pruned = blocking(move || {
            let mut old = packages.versions(&owner)?.into_iter().filter(|version| !keep.contains(version));
            Ok(old.try_for_each(|version| packages.remove_version(&owner, &version))?)
        });
        if let Err(error) = pruned.await {
            tracing::warn!(plugin.id = %id, %error, "old versions could not be removed");
        }
    }

    /// See [`super::RegistryHandle::uninstall`].
    pub async fn uninstall(&self, id: &str) -> Result<(), RegistryError> {
        let present = self.view_of(id).await?;
        let id = present.record.id().clone();
        let claim = self.ask_registry(Claim(id.clone())).await??;
        let Some(present) = claim.present else {
            return Err(RegistryError::NotFound(id.as_str().to_owned()));
        };
        match self.operate(&id, Want::Removed, true).await {
            // A record that could not be written is about to go anyway.
            Ok(_) | Err(RegistryError::Storage(_)) => {}
            Err(error) => return Err(error),
        }
        failpoint::hit("uninstall.stopped");
        post(&self.shared.addr, Forget(id.clone()));
        if let Err(error) = self.remove(&id).await {
            let mut record = present.record;
            record.state.status = Status::Error;
            record.state.restarting = false;
            record.fail(
                "the plugin could not be uninstalled; see the host's log, then try again".into(),
                OffsetDateTime::now_utc(),
            );
            self.ask_registry(Restore(record)).await??;
            return Err(error);
        }
        Ok(())
    }

    /// Sets the files aside, which is the point of no return for a crash, removes the rows, then the files. An error
    /// leaves the files where they were.
    async fn remove(&self, id: &PluginId) -> Result<(), RegistryError> {
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let set_aside = blocking(move || Ok(packages.set_aside(&owner)?)).await;
        failpoint::hit("uninstall.set_aside");
        let rows_removed = match set_aside {
            Ok(()) => self.shared.state.delete_all(id).await.map_err(RegistryError::from),
            Err(error) => Err(error),
        };
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        if let Err(error) = rows_removed {
            blocking(move || Ok(packages.take_back(&owner)?)).await?;
            return Err(error);
        }
        failpoint::hit("uninstall.rows_removed");
        // Before the record, which tells the next start that something is left.
        self.shared.log_files.remove(id, self.shared.ask_timeout()).await;
        if let Err(error) = blocking(move || Ok(packages.finish_removal(&owner)?)).await {
            tracing::warn!(plugin.id = %id, %error, "files of an uninstalled plugin remain; the next start removes them");
        }
        Ok(())
    }

    async fn operate(&self, id: &PluginId, want: Want, claimed: bool) -> Result<PluginView, RegistryError> {
        let operate = Operate { id: id.as_str().to_owned(), want, claimed, release: None };
        ask(&self.shared.addr, operate, self.shared.command_timeout()).await?
    }

    async fn view(&self, id: &PluginId) -> Result<PluginView, RegistryError> {
        self.view_of(id.as_str()).await
    }

    async fn view_of(&self, id: &str) -> Result<PluginView, RegistryError> {
        super::RegistryHandle { shared: Arc::clone(&self.shared) }.get(id).await
    }

    async fn ask_registry<M>(&self, message: M) -> Result<M::Result, super::AskError>
    where
        M: actix::Message + Send + 'static,
        M::Result: Send,
        super::registry::Registry: actix::Handler<M>,
    {
        ask(&self.shared.addr, message, self.shared.ask_timeout()).await
    }
}

/// Runs file work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(RegistryError::Storage(error.to_string())))
}
