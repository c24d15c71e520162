//! Going back to the version that is kept, on request. The request is the consent; today's policy on signatures
//! applies, as to any version that an operator chooses now. (A change that is undone by itself goes back without: see
//! `unfinished`.)

use time::OffsetDateTime;

use super::{Change, Installer, blocking, installed};
use crate::{
    actors::registry::{Claim, Installed, RegistryError},
    domain::{
        clean,
        id::PluginId,
        manifest::Parsed,
        record::{PluginRecord, Status},
        target::host_platform,
        upgrade::{ChangeKind, LastUpgrade},
        version::check_minimum,
    },
    store::packages::{Kept, PackageStoreError},
};

impl Installer {
    /// See [`crate::actors::RegistryHandle::rollback`]. The version that is left becomes the kept one, so that a second
    /// rollback returns to it. A plugin that is disabled stays so.
    pub async fn rollback(&self, id: &str) -> Result<Installed, RegistryError> {
        let id = self.view_of(id).await?.record.id().clone();
        let claim = self.ask_registry(Claim(id.clone())).await??;
        let Some(before) = claim.present.map(|present| present.record) else {
            return Err(RegistryError::NotFound(id.as_str().to_owned()));
        };
        let Some(version) = before.state.previous_version.clone() else {
            return Err(RegistryError::NoEarlierVersion(id));
        };
        let mut record = self.kept(&id, &version).await?;
        record.state.auto_update = before.state.auto_update;
        record.state.previous_version = Some(before.manifest.version.clone());
        let start = before.state.status != Status::Disabled;
        if start {
            self.check_ownership(&id, &record.manifest).await?;
        } else {
            record.state.status = Status::Disabled;
        }
        let note = LastUpgrade::begin(&before, &version, ChangeKind::Rollback, OffsetDateTime::now_utc());
        let change = Change { before: &before, note, guard: &claim.guard };
        self.announce(&change).await?;
        let (plugin, warning) = self.exchange(&change, record, start).await?;
        Ok(Installed { plugin, warning, warnings: Vec::new() })
    }

    /// The record of a version that is on disk, from its own manifest. Its files are compared with their
    /// checksums, and its signature is judged anew: what the policy refuses now is not run.
    async fn kept(&self, id: &PluginId, version: &str) -> Result<PluginRecord, RegistryError> {
        let (packages, limits) = (self.shared.packages.clone(), self.shared.config.limits.package());
        let (folder, trust) = (packages.version_folder(id, version), self.trust().await?);
        let place = folder.clone();
        let verified = blocking(move || match place.is_dir() {
            true => Ok(Some(packages.verify_kept(&place, &limits, &host_platform(), &trust))),
            false => Ok(None),
        });
        let broken = |reason: String| RegistryError::EarlierVersionBroken {
            id: id.clone(),
            version: clean::single_line(version, MAX_VERSION_BYTES),
            reason,
        };
        let Kept { parsed: Parsed { manifest, mut warnings }, executable, signature } = match verified.await? {
            None => return Err(RegistryError::NoEarlierVersion(id.clone())),
            Some(Ok(kept)) => kept,
            Some(Err(PackageStoreError::Package(error))) => return Err(broken(error.to_string())),
            Some(Err(other)) => return Err(other.into()),
        };
        if (manifest.id.as_str(), manifest.version.as_str()) != (id.as_str(), version) {
            return Err(broken("its manifest names another plugin or version".to_owned()));
        }
        check_minimum(&manifest.min_kandev_version, &self.shared.config.compat_version)?;
        warnings.extend(signature.warning());
        let state = installed(folder.to_string_lossy().into_owned(), &signature, &executable, &warnings);
        Ok(PluginRecord::new(id.clone(), manifest, state))
    }
}

/// Longest version in a message, in bytes.
const MAX_VERSION_BYTES: usize = 128;
