//! Which versions of a plugin are kept on disk (contract/manifest.md §11), and the removal of the others. When, is the
//! caller's. Both functions block, one at a time for one id.

use super::PackageStore;
use crate::domain::{id::PluginId, version};
use crate::failpoint;
use crate::store::fs::FileError;

/// What of a plugin is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// Whose.
    pub id: PluginId,
    /// The installed version.
    pub version: String,
    /// The one that it replaced, if any did.
    pub previous: Option<String>,
}

impl PackageStore {
    /// The versions beyond the installed one and one before: the one that it replaced or, when that is not known or not
    /// there, the newest other one. The data folder, links and folders that hold no package of the plugin are none.
    pub fn surplus(&self, keep: &Keep) -> Result<Vec<String>, FileError> {
        let mut others = self.versions(&keep.id)?;
        others.retain(|version| *version != keep.version && self.is_package(&keep.id, version));
        let known = others.iter().position(|version| Some(version) == keep.previous.as_ref());
        if let Some(kept) = known.or_else(|| version::greatest(others.iter().map(String::as_str))) {
            others.remove(kept);
        }
        Ok(others)
    }

    /// Removes the surplus.
    pub fn prune(&self, keep: &Keep) -> Result<(), FileError> {
        let surplus = self.surplus(keep)?;
        if !surplus.is_empty() {
            failpoint::hit("upgrade.pruning");
        }
        surplus.iter().try_for_each(|version| self.remove_version(&keep.id, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::package::{MANIFEST_NAME, sample};

    fn store(versions: &[&str]) -> (tempfile::TempDir, PackageStore) {
        let root = tempfile::tempdir().unwrap();
        let store = PackageStore::new(root.path());
        let id = id();
        for version in versions {
            let folder = store.version_folder(&id, version);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(MANIFEST_NAME), sample::manifest(version)).unwrap();
        }
        // Neither is a version of the plugin.
        let elsewhere = store.version_folder(&id, "9.0");
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::fs::write(elsewhere.join(MANIFEST_NAME), sample::manifest("8.0")).unwrap();
        std::fs::create_dir_all(store.data_folder(&id)).unwrap();
        (root, store)
    }

    fn id() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    #[test]
    fn the_installed_version_and_one_before_stay() {
        let all = ["1.0", "1.2", "1.10", "2.0"];
        for (installed, previous, stay) in [
            ("2.0", Some("1.0"), &["1.0", "2.0"][..]),
            ("1.0", Some("1.2"), &["1.0", "1.2"]),
            // Not known, or not there.
            ("2.0", None, &["1.10", "2.0"]),
            ("1.2", None, &["1.2", "2.0"]),
            ("1.2", Some("0.9"), &["1.2", "2.0"]),
        ] {
            let (_root, store) = store(&all);
            let keep = Keep { id: id(), version: installed.into(), previous: previous.map(str::to_owned) };
            store.prune(&keep).unwrap();
            let left = store.versions(&id()).unwrap();
            assert_eq!(left, [stay, &["9.0"]].concat(), "{installed} after {previous:?}");
            assert!(store.data_folder(&id()).is_dir());
            assert_eq!(store.surplus(&keep).unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn nothing_is_removed_where_there_are_not_more_than_two() {
        for (versions, previous) in
            [(&["1.0", "1.1"][..], None), (&["1.1"], Some("1.0".to_owned())), (&["1.0", "1.1"], Some("0.1".into()))]
        {
            let (_root, store) = store(versions);
            let keep = Keep { id: id(), version: "1.1".into(), previous };
            store.prune(&keep).unwrap();
            assert_eq!(store.versions(&id()).unwrap().len(), versions.len() + 1);
        }
    }
}
