//! What is kept for the way back while one version is exchanged for another: the record of the version before, and the
//! kept version whose place a package of the same number takes.
//!
//! Both lie in the plugin's folder under hidden names that no sweep deletes, and are dropped when the change has come
//! to its end. When that is, is `actors::installer`'s decision. All functions block, one at a time for one id.

use std::fs::{self as std_fs, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::PackageStore;
use crate::domain::id::PluginId;
use crate::domain::package::hex;
use crate::domain::record::{MAX_RECORD_BYTES, PluginRecord, RecordError};
use crate::store::fs::{self, At as _, FileError};

/// Name of the file with the record of the version before.
const BEFORE: &str = ".before.yml";

/// Start of the name of a kept version that was put aside; the version follows.
const ASIDE_PREFIX: &str = ".aside-";

const BUFFER_BYTES: usize = 64 * 1024;

/// Why there is no way back to the version before.
#[derive(Debug, thiserror::Error)]
pub enum BeforeError {
    /// It was not kept.
    #[error("its record was not kept")]
    Absent,
    /// The record cannot be written or read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The program is another one by now.
    #[error("its program {} is not the one that ran", .0.display())]
    Changed(PathBuf),
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
}

impl PackageStore {
    /// Keeps the record of what is installed now; on success it survives a crash.
    ///
    /// # Errors
    /// [`BeforeError::Record`], [`BeforeError::File`].
    pub fn keep_before(&self, record: &PluginRecord) -> Result<(), BeforeError> {
        let folder = self.plugin_folder(record.id());
        std_fs::create_dir_all(&folder).at("create", &folder)?;
        Ok(fs::write_atomic(&folder.join(BEFORE), record.to_yaml()?.as_bytes())?)
    }

    /// The record that was kept of this version, provided that the program for `platform` is still the one on it.
    /// Nothing else is asked: the version ran here, so it was accepted once.
    ///
    /// # Errors
    /// [`BeforeError`]
    pub fn before(&self, id: &PluginId, version: &str, platform: &str) -> Result<PluginRecord, BeforeError> {
        let path = self.plugin_folder(id).join(BEFORE);
        if !fs::exists(&path)? {
            return Err(BeforeError::Absent);
        }
        let record = PluginRecord::from_yaml(id.clone(), &fs::read_bounded(&path, MAX_RECORD_BYTES as u64)?)?;
        if record.manifest.version != version {
            return Err(BeforeError::Absent);
        }
        if let Some(program) = record.manifest.runtime.executables.get(platform) {
            let program = Path::new(&record.state.install_path).join(program);
            let found = digest(&program)?;
            if record.state.executable_sha256.as_ref().is_some_and(|expected| !expected.eq_ignore_ascii_case(&found)) {
                return Err(BeforeError::Changed(program));
            }
        }
        Ok(record)
    }

    /// Drops what was kept: the change has come to its end, and a version that was put aside is not wanted any more.
    pub fn drop_before(&self, id: &PluginId) -> Result<(), FileError> {
        let folder = self.plugin_folder(id);
        for version in self.aside(id)? {
            fs::remove_any(&folder.join(format!("{ASIDE_PREFIX}{version}")))?;
        }
        fs::remove_any(&folder.join(BEFORE))
    }

    /// The versions that are put aside.
    pub fn aside(&self, id: &PluginId) -> Result<Vec<String>, FileError> {
        let names = fs::names_in(&self.plugin_folder(id))?;
        Ok(names.iter().filter_map(|name| name.strip_prefix(ASIDE_PREFIX)).map(str::to_owned).collect())
    }

    /// Makes room for a package of a version that is kept, and keeps it.
    pub fn put_aside(&self, id: &PluginId, version: &str) -> Result<(), FileError> {
        let (folder, place, aside) = self.places(id, version);
        // One that is aside already is the kept one; what has its place is of a change that failed.
        if fs::exists(&aside)? {
            return self.remove_version(id, version);
        }
        if fs::exists(&place)? {
            std_fs::rename(&place, &aside).at("put aside", &place)?;
            fs::sync_folder(&folder)?;
        }
        Ok(())
    }

    /// Brings a version back that was put aside, in place of the package that took its place; without effect when none
    /// is aside.
    pub fn bring_back(&self, id: &PluginId, version: &str) -> Result<(), FileError> {
        let (folder, place, aside) = self.places(id, version);
        if !fs::exists(&aside)? {
            return Ok(());
        }
        self.remove_version(id, version)?;
        std_fs::rename(&aside, &place).at("bring back", &place)?;
        fs::sync_folder(&folder)
    }

    fn places(&self, id: &PluginId, version: &str) -> (PathBuf, PathBuf, PathBuf) {
        let folder = self.plugin_folder(id);
        let aside = folder.join(format!("{ASIDE_PREFIX}{version}"));
        (folder, self.version_folder(id, version), aside)
    }
}

fn digest(path: &Path) -> Result<String, FileError> {
    let mut file = File::open(path).at("open", path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer).at("read", path)? {
            0 => return Ok(hex(&hash.finalize().into())),
            count => hash.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{manifest, package::sample, record::RecordState, target::host_platform};

    struct World {
        _root: tempfile::TempDir,
        store: PackageStore,
        id: PluginId,
    }

    fn world() -> World {
        let root = tempfile::tempdir().unwrap();
        World { store: PackageStore::new(root.path()), _root: root, id: PluginId::new("acme").unwrap() }
    }

    impl World {
        fn version(&self, version: &str, text: &str) {
            let folder = self.store.version_folder(&self.id, version);
            std_fs::create_dir_all(&folder).unwrap();
            std_fs::write(folder.join("p"), text).unwrap();
        }

        fn content(&self, version: &str) -> Option<String> {
            std_fs::read_to_string(self.store.version_folder(&self.id, version).join("p")).ok()
        }

        fn record(&self, sha256: Option<String>) -> PluginRecord {
            let mut manifest = manifest::parse(sample::manifest("1.0").as_bytes()).unwrap().manifest;
            manifest.runtime.executables.insert(host_platform(), "p".into());
            let place = self.store.version_folder(&self.id, "1.0").to_string_lossy().into_owned();
            let state = RecordState {
                executable_sha256: sha256,
                sideloaded: true,
                ..RecordState::installed(place, time::OffsetDateTime::UNIX_EPOCH)
            };
            PluginRecord::new(self.id.clone(), manifest, state)
        }

        fn before(&self, version: &str) -> Result<PluginRecord, String> {
            self.store.before(&self.id, version, &host_platform()).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn the_record_before_comes_back_as_it_was_while_its_program_is_the_one_that_ran() {
        let world = world();
        world.version("1.0", "abc");
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned();
        assert_eq!(world.before("1.0"), Err("its record was not kept".to_owned()));
        for kept in [Some(sha256.to_uppercase()), None] {
            let record = world.record(kept);
            world.store.keep_before(&record).unwrap();
            assert_eq!(world.before("1.0"), Ok(record));
        }
        assert_eq!(world.before("0.9"), Err("its record was not kept".to_owned()));
        // Files of the plugin's own making beside it are no matter; another program is.
        world.store.keep_before(&world.record(Some(sha256))).unwrap();
        std_fs::write(world.store.version_folder(&world.id, "1.0").join("cache"), "x").unwrap();
        assert!(world.before("1.0").is_ok());
        world.version("1.0", "abd");
        assert!(world.before("1.0").unwrap_err().ends_with("acme/1.0/p is not the one that ran"));
        world.store.drop_before(&world.id).unwrap();
        assert_eq!(world.before("1.0"), Err("its record was not kept".to_owned()));
    }

    #[test]
    fn a_kept_version_is_never_gone_while_a_package_takes_its_place() {
        let world = world();
        let (store, id) = (&world.store, &world.id);
        world.version("1.0", "kept");
        store.put_aside(id, "1.0").unwrap();
        assert_eq!((world.content("1.0"), store.aside(id).unwrap()), (None, vec!["1.0".to_owned()]));
        assert_eq!(store.versions(id).unwrap(), Vec::<String>::new(), "what is aside is no version");
        // The package fails, and what failed is not cleared before the next one comes.
        world.version("1.0", "failed");
        store.put_aside(id, "1.0").unwrap();
        assert_eq!(world.content("1.0"), None);
        world.version("1.0", "failed again");
        store.bring_back(id, "1.0").unwrap();
        store.bring_back(id, "1.0").unwrap();
        assert_eq!((world.content("1.0").as_deref(), store.aside(id).unwrap()), (Some("kept"), vec![]));
        // The next one succeeds.
        store.put_aside(id, "1.0").unwrap();
        world.version("1.0", "new");
        store.drop_before(id).unwrap();
        assert_eq!((world.content("1.0").as_deref(), store.aside(id).unwrap()), (Some("new"), vec![]));
    }
}
