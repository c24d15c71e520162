//! The sequences of install, upgrade, rollback and uninstall (contract/manifest.md §6 and §13, architecture.md §4).
//! Each claims its plugin id at the registry until it is done; while a new version starts, the claim is open.
//!
//! This file has install and uninstall; `change` exchanges one version for another, `rollback` goes back, `unfinished`
//! ends what a killed host left, `preview` looks without touching.
//!
//! Every step that can be lost in a crash is named in docs/runtime-semantics.md with what the next start makes of it.

mod change;
mod preview;
mod rollback;
mod unfinished;

use std::sync::Arc;

use time::OffsetDateTime;

use self::change::Change;
pub use self::preview::Preview;
use super::{
    PluginView,
    plugin::Want,
    registry::{
        Adopt, CheckOwnership, Claim, ClaimGuard, Departed, Forget, ForgetUnreadable, Installed, Operate,
        RegistryError, Restore, Seize, Shared,
    },
    spawn::{ask, post},
};
use crate::{
    config::SignaturePolicy,
    domain::{
        consent::{self, Difference, Direction, Side, Signed, Terms, Unfit},
        id::PluginId,
        manifest::Manifest,
        package::{Digest, hex},
        record::{self, PluginRecord, RecordState, Status},
        signature::{PackageSignature, Trust},
        target::host_platform,
        upgrade::{ChangeKind, LastUpgrade},
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
    pub async fn install(&self, staged: Staged, terms: Terms) -> Result<Installed, RegistryError> {
        failpoint::hit("install.staged");
        let (id, unpacked) = self.unpack(staged, &terms).await?;
        failpoint::hit("install.unpacked");
        let claim = self.ask_registry(Claim(id.clone())).await??;
        self.check_ownership(&id, &unpacked.manifest).await?;
        let warnings = warnings(&unpacked);
        let (plugin, warning) = match &claim.present {
            None if terms.unattended.is_some() => {
                return Err(RegistryError::NotUnattended { id, why: Unfit::NotInstalled });
            }
            None => self.install_first(&id, unpacked, &claim.guard).await?,
            Some(before) => self.upgrade(&before.record, unpacked, &terms, &claim.guard).await?,
        };
        Ok(Installed { plugin, warning, warnings })
    }

    /// Whose signature counts now, and whether one is needed.
    async fn trust(&self) -> Result<Trust, RegistryError> {
        let store = self.shared.trust.clone();
        let loaded = blocking(move || Ok(store.load()?)).await?;
        loaded.log();
        let required = self.shared.config.install.signatures == SignaturePolicy::Require;
        Ok(Trust { keys: loaded.keys, required })
    }

    /// Everything that can be told of a package without looking at what is installed.
    async fn unpack(&self, staged: Staged, terms: &Terms) -> Result<(PluginId, Unpacked), RegistryError> {
        if let Some(wanted) = terms.sha256.filter(|wanted| *wanted != staged.sha256) {
            return Err(RegistryError::OtherPackage { wanted: hex(&wanted), found: hex(&staged.sha256) });
        }
        let limits = self.shared.config.limits.package();
        let unpacked = self.shared.packages.unpack(staged, limits, &host_platform(), self.trust().await?).await?;
        let id = PluginId::new(&unpacked.manifest.id).map_err(|error| RegistryError::Storage(error.to_string()))?;
        if let Some(listed) = &terms.listed_as {
            listed.check(&id).map_err(RegistryError::OtherPlugin)?;
        }
        check_minimum(&unpacked.manifest.min_kandev_version, &self.shared.config.compat_version)?;
        if let Some(announced) = &terms.unattended {
            let checked = announced.check_package(&id, &unpacked.manifest.version);
            checked.map_err(|why| RegistryError::NotUnattended { id: announced.plugin.clone(), why })?;
        }
        Ok((id, unpacked))
    }

    /// A first install stays when it does not start: there is nothing to go back to, and its operator may mend it.
    async fn install_first(
        &self,
        id: &PluginId,
        unpacked: Unpacked,
        guard: &ClaimGuard,
    ) -> Result<(PluginView, Option<String>), RegistryError> {
        let version = unpacked.manifest.version.clone();
        if let Err(error) = self.place_first(id, unpacked).await {
            post(&self.shared.addr, Forget(id.clone()));
            post(&self.shared.addr, Departed(id.clone()));
            self.remove_version(id, &version).await;
            return Err(error);
        }
        // From here on an operator may overrule the start; the package is installed whatever becomes of it.
        guard.open();
        let warning = match self.operate(id, Want::Started, true).await {
            Ok(plugin) => return Ok((plugin, None)),
            Err(RegistryError::StartFailed { reason, .. } | RegistryError::Overtaken { reason, .. }) => reason,
            Err(other) => other.to_string(),
        };
        let plugin = self.view_of(id.as_str()).await.map_err(|_| RegistryError::Overtaken {
            id: id.clone(),
            reason: format!("the plugin was uninstalled while it was being started: {warning}"),
        })?;
        Ok((plugin, Some(warning)))
    }

    async fn place_first(&self, id: &PluginId, unpacked: Unpacked) -> Result<(), RegistryError> {
        let record = self.place_files(id, unpacked).await?;
        failpoint::hit("install.placed");
        self.ask_registry(Adopt(record)).await??;
        failpoint::hit("install.recorded");
        Ok(())
    }

    /// Another version over an installed one. All that can be done while the old one runs is done before it is held.
    async fn upgrade(
        &self,
        before: &PluginRecord,
        unpacked: Unpacked,
        terms: &Terms,
        guard: &ClaimGuard,
    ) -> Result<(PluginView, Option<String>), RegistryError> {
        let difference = self.difference(Some(before), &unpacked);
        if difference.direction == Direction::Same {
            return Err(RegistryError::AlreadyInstalled(before.state.install_path.clone().into()));
        }
        if let Some(announced) = &terms.unattended {
            let checked = announced.check_record(before).and_then(|()| consent::check_unattended(&difference));
            checked.map_err(|why| RegistryError::NotUnattended { id: before.id().clone(), why })?;
        }
        if !terms.accept.holds(&difference.needs) {
            let (id, sha256) = (before.id().clone(), hex(&unpacked.facts.sha256));
            return Err(RegistryError::ConsentNeeded { id, difference: Box::new(difference), sha256 });
        }
        let now = OffsetDateTime::now_utc();
        let note = LastUpgrade::begin(before, &unpacked.manifest.version, ChangeKind::Install, now);
        let change = Change { before, note, guard };
        self.announce(&change).await?;
        let placed = match self.make_room(&change).await {
            Ok(()) => self.place_files(before.id(), unpacked).await,
            Err(error) => Err(error),
        };
        let mut record = match placed {
            Ok(record) => record,
            Err(error) => {
                self.abandon(&change).await;
                return Err(error);
            }
        };
        failpoint::hit("install.placed");
        record.state.auto_update = before.state.auto_update;
        record.state.previous_version = Some(before.manifest.version.clone());
        self.exchange(&change, record, true).await
    }

    fn difference(&self, before: Option<&PluginRecord>, unpacked: &Unpacked) -> Difference {
        let installed =
            before.map(|before| Side { manifest: &before.manifest, signed: Signed::on_record(&before.state) });
        let offered = Side { manifest: &unpacked.manifest, signed: Signed::of(&unpacked.signature) };
        consent::compare(installed, offered, self.shared.config.install.capability_consent)
    }

    /// Moves the package to its place. A folder of that version that no record knows (what a crash left) makes room for
    /// it.
    async fn place_files(&self, id: &PluginId, unpacked: Unpacked) -> Result<PluginRecord, RegistryError> {
        let manifest = unpacked.manifest.clone();
        let (warnings, signature, executable) = (warnings(&unpacked), unpacked.signature.clone(), unpacked.executable);
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let install_path = blocking(move || {
            packages.remove_version(&owner, &unpacked.manifest.version)?;
            Ok(packages.promote(&owner, unpacked)?)
        })
        .await?;
        let place = install_path.to_string_lossy().into_owned();
        let state = installed(place, &signature, &executable, &warnings);
        Ok(PluginRecord::new(id.clone(), manifest, state))
    }

    /// Removes a version that came to nothing, and the plugin's folder when it is empty then.
    async fn remove_version(&self, id: &PluginId, version: &str) {
        let (packages, owner, version) = (self.shared.packages.clone(), id.clone(), version.to_owned());
        let removed = blocking(move || {
            packages.remove_version(&owner, &version)?;
            Ok(packages.remove_empty(&owner)?)
        });
        if let Err(error) = removed.await {
            tracing::warn!(plugin.id = %id, %error, "files of a failed install were not removed");
        }
    }

    /// See [`super::RegistryHandle::uninstall`].
    pub async fn uninstall(&self, id: &str) -> Result<(), RegistryError> {
        let id = match self.view_of(id).await {
            Err(RegistryError::RecordUnreadable(id)) => return self.uninstall_unreadable(id).await,
            present => present?.record.id().clone(),
        };
        let claim = self.ask_registry(Seize(id.clone())).await??;
        let Some(present) = claim.present else {
            return Err(RegistryError::NotFound(id.as_str().to_owned()));
        };
        match self.operate(&id, Want::Removed, true).await {
            // A record that could not be written is about to go anyway.
            Ok(_) | Err(RegistryError::Storage(_)) => {}
            Err(error) => return Err(error),
        }
        failpoint::hit("uninstall.stopped");
        // Answered, not only told: from then on nothing is written for the plugin.
        self.ask_registry(Forget(id.clone())).await?;
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
        post(&self.shared.addr, Departed(id));
        Ok(())
    }

    /// The same for a plugin whose record cannot be read: it has no process, and its files stay as they are when they
    /// cannot be removed.
    async fn uninstall_unreadable(&self, id: PluginId) -> Result<(), RegistryError> {
        let claim = self.ask_registry(Claim(id.clone())).await??;
        if claim.present.is_some() {
            // Installed again a moment ago.
            return Err(RegistryError::Busy(id));
        }
        self.remove(&id).await?;
        post(&self.shared.addr, ForgetUnreadable(id.clone()));
        post(&self.shared.addr, Departed(id));
        Ok(())
    }

    /// Sets the files aside, which is the point of no return for a crash, removes the rows, then the files. An error
    /// leaves the files where they were.
    async fn remove(&self, id: &PluginId) -> Result<(), RegistryError> {
        let (packages, owner) = (self.shared.packages.clone(), id.clone());
        let set_aside = blocking(move || Ok(packages.set_aside(&owner)?)).await;
        failpoint::hit("uninstall.set_aside");
        let rows_removed = match set_aside {
            Ok(()) => self.shared.vault.delete_plugin(id).await.map_err(RegistryError::from),
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
        let operate = Operate { id: id.as_str().to_owned(), want, claimed };
        ask(&self.shared.addr, operate, self.shared.command_timeout()).await?
    }

    async fn check_ownership(&self, id: &PluginId, manifest: &Manifest) -> Result<(), RegistryError> {
        let check = CheckOwnership { id: id.clone(), manifest: manifest.clone() };
        Ok(self.ask_registry(check).await??)
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

/// What an operator should know of a package.
fn warnings(unpacked: &Unpacked) -> Vec<String> {
    unpacked.warnings.iter().cloned().chain(unpacked.signature.warning()).collect()
}

/// What the record of a package says that was put in place, or found there, with this signature.
fn installed(place: String, signature: &PackageSignature, executable: &Digest, warnings: &[String]) -> RecordState {
    RecordState {
        signed: signature.signer().is_some(),
        signer: signature.signer().map(|signer| signer.name.to_string()),
        signer_key: signature.signer().map(|signer| signer.key.to_string()),
        warnings: record::keep_warnings(warnings),
        executable_sha256: Some(hex(executable)),
        ..RecordState::installed(place, OffsetDateTime::now_utc())
    }
}

/// Runs file work on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(RegistryError::Storage(error.to_string())))
}
