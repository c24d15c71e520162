//! Moving an unpacked package into its place, and the versions that are there.
//!
//! All functions block: call them on a blocking thread, one at a time for one id.

use std::fs as std_fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::unpack::Unpacked;
use super::{PackageStore, PackageStoreError};
use crate::domain::id::PluginId;
use crate::domain::manifest::{self, MAX_MANIFEST_BYTES};
use crate::domain::package::MANIFEST_NAME;
use crate::failpoint;
use crate::store::fs::{self, At as _, FileError};

impl PackageStore {
    /// Renames an unpacked package to `<id>/<version>` and makes that durable. From here on the version is installed:
    /// a crash afterwards finds it complete, a crash before finds nothing.
    ///
    /// # Errors
    /// [`PackageStoreError::AlreadyInstalled`] when that folder is there; the unpacked package is deleted then.
    pub fn promote(&self, id: &PluginId, unpacked: Unpacked) -> Result<PathBuf, PackageStoreError> {
        let place = self.version_folder(id, &unpacked.manifest.version);
        let placed = self.rename_into(id, &unpacked, &place);
        unpacked.staging.remove();
        placed.map(|()| place)
    }

    fn rename_into(&self, id: &PluginId, unpacked: &Unpacked, place: &PathBuf) -> Result<(), PackageStoreError> {
        if fs::exists(place)? {
            return Err(PackageStoreError::AlreadyInstalled(place.clone()));
        }
        let folder = self.plugin_folder(id);
        std_fs::create_dir_all(&folder).at("create", &folder)?;
        fs::sync_all_below(&unpacked.folder)?;
        // A folder is never renamed over one with content, so a second install of the version cannot replace it.
        std_fs::rename(&unpacked.folder, place).at("place the package in", place)?;
        fs::sync_folder(&folder)?;
        Ok(fs::sync_folder(&self.root)?)
    }

    /// The versions of a plugin that are on disk, by name. The data folder, hidden names and links are none.
    pub fn versions(&self, id: &PluginId) -> Result<Vec<String>, FileError> {
        let folder = self.plugin_folder(id);
        let mut versions = fs::names_in(&folder)?;
        versions.retain(|name| {
            let real_folder = std_fs::symlink_metadata(folder.join(name)).is_ok_and(|meta| meta.is_dir());
            real_folder && name != "data" && !name.starts_with('.')
        });
        versions.sort_unstable();
        Ok(versions)
    }

    /// Whether the folder of a version holds the package it should by its name: a folder that an operator put beside is
    /// nobody's to remove (contract/manifest.md §11).
    pub fn is_package(&self, id: &PluginId, version: &str) -> bool {
        let path = self.version_folder(id, version).join(MANIFEST_NAME);
        let Ok(bytes) = fs::read_bounded(&path, MAX_MANIFEST_BYTES as u64) else { return false };
        manifest::parse(&bytes)
            .is_ok_and(|parsed| parsed.manifest.id == id.as_str() && parsed.manifest.version == version)
    }

    /// Deletes the plugin's folder when nothing is in it, so that a failed first install leaves no trace.
    pub fn remove_empty(&self, id: &PluginId) -> Result<(), FileError> {
        let folder = self.plugin_folder(id);
        match std_fs::remove_dir(&folder) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                Err(error).at("remove", &folder)
            }
            _ => Ok(()),
        }
    }

    /// Deletes one version: first renamed, so that no half-deleted folder has the name of a version.
    pub fn remove_version(&self, id: &PluginId, version: &str) -> Result<(), FileError> {
        let folder = self.plugin_folder(id);
        let place = folder.join(version);
        if !fs::exists(&place)? {
            return Ok(());
        }
        let doomed = folder.join(format!("{}{}", fs::TMP_PREFIX, uuid::Uuid::new_v4().simple()));
        std_fs::rename(&place, &doomed).at("remove", &place)?;
        fs::sync_folder(&folder)?;
        failpoint::hit("version.deleting");
        fs::remove_any(&doomed)
    }
}
