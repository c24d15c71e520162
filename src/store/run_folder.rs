//! `<home>/run`: the lock that keeps a second host off the same home, and `host.json`, which tells where the host is.
//!
//! Everything here blocks; it is called at start and stop only.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::fs::{At as _, FileError, read_bounded, write_atomic};
use crate::domain::home_id::HomeId;

/// Largest `host.json` that is read, in bytes.
const MAX_HOST_JSON_BYTES: u64 = 4096;

/// What a running host says in `host.json`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Announced {
    /// Its process.
    pub pid: u32,
    /// Its address, without a final slash.
    pub url: String,
}

/// Reads `host.json` without claiming anything; `None` when no host announces itself. A killed host leaves it behind.
///
/// # Errors
/// [`FileError`] when it is there and cannot be read, or is not what a host writes.
pub fn announced(folder: &Path) -> Result<Option<Announced>, FileError> {
    let path = folder.join("host.json");
    match read_bounded(&path, MAX_HOST_JSON_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from).at("read", &path),
        Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The claimed folder. The lock lasts as long as this value; the kernel gives it back however the host ends.
#[derive(Debug)]
pub struct RunFolder {
    folder: PathBuf,
    _lock: File,
    home_id: HomeId,
}

/// Why the folder could not be claimed or written.
#[derive(Debug, thiserror::Error)]
pub enum RunFolderError {
    /// Another host lives in this home.
    #[error(
        "another kandev-host (pid {pid}) uses {}; stop it, or start this one with another --home", .folder.display()
    )]
    InUse {
        /// What the lock file says; `unknown` when it says nothing.
        pid: String,
        /// The run folder.
        folder: PathBuf,
    },
    /// The file system refused.
    #[error("{0}; check that the host's user may write there")]
    File(#[from] FileError),
}

impl RunFolder {
    /// Makes the folder (mode 0700), takes the lock without waiting and removes what an earlier host left behind.
    pub fn claim(folder: &Path) -> Result<Self, RunFolderError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.at("create", folder)?;
        let path = folder.join("lock");
        let lock = lock(&path, folder)?;
        let metadata = lock.metadata().at("read", &path)?;
        let home_id = HomeId::derive(&random(&folder.join("home-id"))?, metadata.dev(), metadata.ino());
        let claimed = Self { folder: folder.to_owned(), _lock: lock, home_id };
        claimed.withdraw()?;
        Ok(claimed)
    }

    /// The mark of this home.
    pub fn home_id(&self) -> &HomeId {
        &self.home_id
    }

    /// Writes `host.json` in one step; readers see the old one, the new one or none.
    pub fn announce(&self, url: &str) -> Result<(), RunFolderError> {
        let content = json!({"pid": std::process::id(), "url": url});
        Ok(write_atomic(&self.folder.join("host.json"), format!("{content}\n").as_bytes())?)
    }

    /// Removes `host.json`, for a clean stop; one that is not there is removed already.
    pub fn withdraw(&self) -> Result<(), RunFolderError> {
        let path = self.folder.join("host.json");
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Ok(Err(error).at("remove", &path)?),
            _ => Ok(()),
        }
    }
}

/// The file is never replaced or removed: a lock on a removed file keeps nobody off.
fn lock(path: &Path, folder: &Path) -> Result<File, RunFolderError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .at("open", path)?;
    match file.try_lock() {
        Ok(()) => (),
        Err(TryLockError::WouldBlock) => {
            return Err(RunFolderError::InUse { pid: holder(&mut file), folder: folder.to_owned() });
        }
        Err(TryLockError::Error(error)) => return Ok(Err(error).at("lock", path)?),
    }
    let write = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    write.at("write", path)?;
    Ok(file)
}

/// The pid the holder wrote; it may just be writing it.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(32).read_to_string(&mut text);
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(pid) => pid.to_string(),
        None => "unknown".to_owned(),
    }
}

/// Random text, made once for a home.
fn random(path: &Path) -> Result<Vec<u8>, RunFolderError> {
    match fs::read(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("{}\n", Uuid::new_v4()).into_bytes();
            Ok(write_atomic(path, &text).map(|()| text)?)
        }
        Err(error) => Ok(Err(error).at("read", path)?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_second_host_is_refused_by_the_pid_of_the_first_until_that_one_ends() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        let first = RunFolder::claim(&folder).unwrap();
        let refused = RunFolder::claim(&folder).unwrap_err().to_string();
        let expected = format!(
            "another kandev-host (pid {}) uses {}; stop it, or start this one with another --home",
            std::process::id(),
            folder.display()
        );
        assert_eq!(refused, expected);
        drop(first);
        RunFolder::claim(&folder).unwrap();
    }

    #[test]
    fn the_home_keeps_its_id_and_a_copy_gets_another() {
        let home = tempfile::tempdir().unwrap();
        let (folder, copy) = (home.path().join("run"), home.path().join("copy"));
        let id = RunFolder::claim(&folder).unwrap().home_id().clone();
        assert_eq!(*RunFolder::claim(&folder).unwrap().home_id(), id);
        fs::create_dir(&copy).unwrap();
        for name in ["lock", "home-id"] {
            fs::copy(folder.join(name), copy.join(name)).unwrap();
        }
        assert_ne!(*RunFolder::claim(&copy).unwrap().home_id(), id);
    }

    #[test]
    fn host_json_is_written_whole_replaced_when_stale_and_removed_at_the_end() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("run");
        let path = folder.join("host.json");
        let run = RunFolder::claim(&folder).unwrap();
        run.announce("http://127.0.0.1:1").unwrap();
        run.announce("http://127.0.0.1:38429").unwrap();
        let content: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(content, json!({"pid": std::process::id(), "url": "http://127.0.0.1:38429"}));
        let found = Announced { pid: std::process::id(), url: "http://127.0.0.1:38429".to_owned() };
        assert_eq!(announced(&folder).unwrap(), Some(found));
        assert_eq!((mode(&folder), mode(&path)), (0o700, 0o600));
        drop(run);
        let next = RunFolder::claim(&folder).unwrap();
        assert!(!path.exists(), "the stale file of a killed host is gone before the next one listens");
        next.announce("http://x").unwrap();
        next.withdraw().unwrap();
        next.withdraw().unwrap();
        assert!(!path.exists());
        assert_eq!(announced(&folder).unwrap(), None);
    }

    #[test]
    fn a_folder_that_cannot_be_made_names_its_path() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let folder = home.path().join("file/run");
        let error = RunFolder::claim(&folder).unwrap_err().to_string();
        assert!(error.starts_with(&format!("could not create {}: ", folder.display())), "{error}");
    }
}
