//! Package folders: receiving an archive, unpacking it under every rule, moving it into place, removing it again.
//!
//! The order of an install is `stage` → `unpack` → `promote`; whatever fails before `promote` leaves no trace beyond
//! `.staging`, which the sweep at start clears. What the rules are is `domain::package`'s; records are
//! `store::records`'.

mod archive;
mod exchange;
mod place;
mod remove;
mod retention;
mod stage;
mod survey;
#[cfg(test)]
mod tests;
mod unpack;

use std::path::{Path, PathBuf};

pub use exchange::BeforeError;
pub use remove::Swept;
pub use retention::Keep;
pub use stage::{StageError, Staged, StagingFolder};
pub use survey::{FileMark, SurveyLimits};
pub use unpack::{Examined, Facts, Kept, Unpacked};

use super::fs::FileError;
use crate::domain::id::PluginId;
use crate::domain::package::PackageError;

/// Folder below the plugins root where packages are received and unpacked.
const STAGING: &str = ".staging";

/// The package folders below one plugins root.
#[derive(Debug, Clone)]
pub struct PackageStore {
    root: PathBuf,
}

/// Why a package could not be unpacked, placed or removed.
#[derive(Debug, thiserror::Error)]
pub enum PackageStoreError {
    /// The package breaks a rule; safe to show.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The folder of this version is already there.
    #[error("pkgtar: version already installed: {}", .0.display())]
    AlreadyInstalled(PathBuf),
    /// The file system said no; for the log.
    #[error(transparent)]
    File(#[from] FileError),
    /// The blocking task ended without a result.
    #[error("the package task ended without a result: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl PackageStore {
    /// Package folders below `root`, which is created when missing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The plugins root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that belongs to a plugin: its versions and its `data`.
    pub fn plugin_folder(&self, id: &PluginId) -> PathBuf {
        self.root.join(id.as_str())
    }

    /// The folder of one version. `version` is a validated manifest's, so it is a single path segment.
    pub fn version_folder(&self, id: &PluginId, version: &str) -> PathBuf {
        self.plugin_folder(id).join(version)
    }

    /// The folder a plugin may write to.
    pub fn data_folder(&self, id: &PluginId) -> PathBuf {
        self.plugin_folder(id).join("data")
    }
}
