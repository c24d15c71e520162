//! Removing a plugin from the disk, and the sweep that finishes at start what a crash interrupted.
//!
//! The rename of the record is the point of no return: before it the plugin is installed, after it the plugin is gone
//! and every remaining file is only to be deleted. All functions block.

use std::fs as std_fs;
use std::path::Path;

use super::{PackageStore, STAGING};
use crate::domain::id::PluginId;
use crate::failpoint;
use crate::store::fs::{self, At as _, FileError, TMP_PREFIX};

/// Start of the names of what belongs to a plugin that is being removed.
const REMOVING_PREFIX: &str = ".removing-";

/// What the sweep did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Plugins whose removal was not finished: what is left of them is set aside.
    pub removed: Vec<PluginId>,
    /// Unfinished files and folders that were deleted.
    pub leftovers: usize,
}

impl PackageStore {
    /// Renames record, config and folder of a plugin out of the way: from here on the next start finishes the removal.
    /// Its process has ended.
    ///
    /// # Errors
    /// [`FileError`]; when the record was already renamed, the next start finishes the removal.
    pub fn set_aside(&self, id: &PluginId) -> Result<(), FileError> {
        for ending in [".yml", ".config.yml", ""] {
            self.mark(id, ending)?;
        }
        fs::sync_folder(&self.root)
    }

    /// Undoes [`Self::set_aside`]: the removal could not go on.
    pub fn take_back(&self, id: &PluginId) -> Result<(), FileError> {
        for ending in ["", ".config.yml", ".yml"] {
            let from = self.root.join(format!("{REMOVING_PREFIX}{id}{ending}"));
            let to = self.root.join(format!("{id}{ending}"));
            if fs::exists(&from)? && !fs::exists(&to)? {
                std_fs::rename(&from, &to).at("take back", &from)?;
            }
        }
        fs::sync_folder(&self.root)
    }

    /// Deletes what was set aside; the record last: while it is there, the removal is not finished. The plugin's rows
    /// in the database must be gone before.
    pub fn finish_removal(&self, id: &PluginId) -> Result<(), FileError> {
        for ending in ["", ".config.yml", ".yml"] {
            fs::remove_any(&self.root.join(format!("{REMOVING_PREFIX}{id}{ending}")))?;
            failpoint::hit("uninstall.deleting");
        }
        fs::sync_folder(&self.root)
    }

    /// Finds unfinished removals, sets aside what is left of each, and deletes what installs and writes left behind.
    /// Only at start, before anything else runs. The caller removes each plugin's rows, then calls
    /// [`Self::finish_removal`].
    ///
    /// # Errors
    /// [`FileError`] of the first path that resists.
    pub fn sweep(&self) -> Result<Swept, FileError> {
        let mut swept = Swept::default();
        self.find_removals(&mut swept)?;
        let staging = self.root.join(STAGING);
        swept.leftovers += delete_all(&staging, |_| true)?;
        swept.leftovers += delete_all(&self.root, |name| name.starts_with(TMP_PREFIX))?;
        for name in fs::names_in(&self.root)? {
            let folder = self.root.join(&name);
            let real_folder = std_fs::symlink_metadata(&folder).is_ok_and(|meta| meta.is_dir());
            if real_folder && PluginId::new(&name).is_ok() {
                swept.leftovers += delete_all(&folder, |name| name.starts_with(TMP_PREFIX))?;
            }
        }
        Ok(swept)
    }

    fn find_removals(&self, swept: &mut Swept) -> Result<(), FileError> {
        for name in fs::names_in(&self.root)? {
            let Some(rest) = name.strip_prefix(REMOVING_PREFIX) else { continue };
            let stem = rest.strip_suffix(".config.yml").or_else(|| rest.strip_suffix(".yml")).unwrap_or(rest);
            let Ok(id) = PluginId::new(stem) else { continue };
            // A record beside the marks means a later install of the same id: what it owns is not to be touched.
            let reinstalled = fs::exists(&self.root.join(format!("{id}.yml")))?;
            if !reinstalled && rest == format!("{id}.yml") {
                self.mark(&id, ".config.yml")?;
                self.mark(&id, "")?;
            }
            if reinstalled {
                self.finish_removal(&id)?;
            } else if !swept.removed.contains(&id) {
                swept.removed.push(id);
            }
        }
        Ok(())
    }

    /// Renames `<id><ending>` out of the way; nothing there is success.
    fn mark(&self, id: &PluginId, ending: &str) -> Result<(), FileError> {
        let from = self.root.join(format!("{id}{ending}"));
        if !fs::exists(&from)? {
            return Ok(());
        }
        let to = self.root.join(format!("{REMOVING_PREFIX}{id}{ending}"));
        fs::remove_any(&to)?;
        std_fs::rename(&from, &to).at("remove", &from)
    }
}

fn delete_all(folder: &Path, doomed: impl Fn(&str) -> bool) -> Result<usize, FileError> {
    let names = fs::names_in(folder)?.into_iter().filter(|name| doomed(name));
    Ok(names.filter(|name| removed_or_logged(&folder.join(name))).count())
}

/// What cannot be deleted waits for the next start: it must not keep the host from starting.
fn removed_or_logged(path: &Path) -> bool {
    match fs::remove_any(path) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(%error, "unfinished files of an earlier host could not be removed");
            false
        }
    }
}
