//! Going back to the version that is kept. Nobody is asked for consent: it ran here before.

use std::path::PathBuf;

use time::OffsetDateTime;

use super::{Change, Installer, blocking};
use crate::{
    actors::registry::{Claim, Installed, RegistryError},
    domain::{
        clean,
        id::PluginId,
        platform::host_platform,
        record::{PluginRecord, RecordState, Status},
        upgrade::{ChangeKind, LastUpgrade},
        version::check_minimum,
    },
    store::packages::PackageStoreError,
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
        if !start {
            record.state.status = Status::Disabled;
        }
        let note = LastUpgrade::begin(&before, &version, ChangeKind::Rollback, OffsetDateTime::now_utc());
        let change = Change { before: &before, note, guard: &claim.guard };
        self.announce(&change).await?;
        let (plugin, warning) = self.exchange(&change, record, start).await?;
        Ok(Installed { plugin, warning, warnings: Vec::new() })
    }

    /// The record of a version that is on disk, from its own manifest. Its files are compared with their checksums.
    pub(super) async fn kept(&self, id: &PluginId, version: &str) -> Result<PluginRecord, RegistryError> {
        let folder = self.shared.packages.version_folder(id, version);
        let (packages, limits, place) = (self.shared.packages.clone(), self.shared.config.limits.package(), folder.clone());
        let verified = blocking(move || match place.is_dir() {
            true => Ok(Some(packages.verify(&place, &limits, &host_platform()))),
            false => Ok(None),
        });
        let broken = |reason: String| RegistryError::EarlierVersionBroken {
            id: id.clone(),
            version: clean::single_line(version, MAX_VERSION_BYTES),
            reason,
        };
        let manifest = match verified.await? {
            None => return Err(RegistryError::NoEarlierVersion(id.clone())),
            Some(Ok(parsed)) => parsed.manifest,
            Some(Err(PackageStoreError::Package(error))) => return Err(broken(error.to_string())),
            Some(Err(other)) => return Err(other.into()),
        };
        if (manifest.id.as_str(), manifest.version.as_str()) != (id.as_str(), version) {
            return Err(broken("its manifest names another plugin or version".to_owned()));
        }
        check_minimum(&manifest.min_kandev_version, &self.shared.config.compat_version)?;
        let state = RecordState::installed(text(folder), OffsetDateTime::now_utc());
        Ok(PluginRecord::new(id.clone(), manifest, state))
    }
}

/// Longest version in a message, in bytes.
const MAX_VERSION_BYTES: usize = 128;

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}
