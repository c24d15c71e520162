//! The private folder of one start: the plugin's sockets and temporary files, and the host's broker socket.
//!
//! Owns making, measuring and removing it. Whether a socket lies in it is `socket`'s question.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The longest path of a unix socket in bytes: `sun_path` without its final zero.
const MAX_SOCKET_PATH: usize = 107;

/// `/<8 hex digits>/plugin<10 digits>`: what is added to the root, by the host and by a Go plugin.
const ADDED: usize = 1 + 8 + 1 + 6 + 10;

/// Names tried before giving up; each has 32 random bits.
const ATTEMPTS: u32 = 8;

/// Why there is no private folder.
#[derive(Debug, Error)]
pub enum FolderError {
    /// The sockets' paths would be longer than the system allows.
    #[error(
        "the socket folder {} has {length} bytes, at most {limit} are possible; choose a shorter one",
        .root.display()
    )]
    TooLong {
        /// The root chosen by the caller.
        root: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The longest possible length in bytes.
        limit: usize,
    },
    /// The system refused.
    #[error("cannot make a socket folder in {}: {source}; it must exist and be writable", .root.display())]
    Make {
        /// The root chosen by the caller.
        root: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Whether the paths of sockets below `root` stay within the system's limit of 107 bytes.
pub fn socket_path_fits(root: &Path) -> bool {
    root.as_os_str().len() + ADDED <= MAX_SOCKET_PATH
}

/// A folder that is removed with everything in it when it is dropped, which blocks on the file system.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    place: Place,
}

/// Which folder it is, for those who do not own it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl PrivateFolder {
    /// Makes a folder with a new name and mode 0700 in `root`. Blocks on the file system.
    pub(crate) fn make(root: &Path) -> Result<PrivateFolder, FolderError> {
        if !socket_path_fits(root) {
            let length = root.as_os_str().as_bytes().len();
            return Err(FolderError::TooLong { root: root.into(), length, limit: MAX_SOCKET_PATH - ADDED });
        }
        let made = (0..ATTEMPTS).find_map(|_| match make_one(root) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            made => Some(made),
        });
        made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
            .map_err(|source| FolderError::Make { root: root.into(), source })
    }

    /// Which folder it is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

impl Place {
    /// Its path, as short as the root that was given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `path` leads to this very folder, whatever symbolic links are on the way. Blocks on the file system.
    pub(crate) fn is(&self, path: &Path) -> io::Result<bool> {
        let metadata = fs::metadata(path)?;
        Ok(metadata.dev() == self.device && metadata.ino() == self.inode)
    }
}

fn make_one(root: &Path) -> io::Result<PrivateFolder> {
    // Each RandomState has other keys, so this is a cheap random number.
    let name = RandomState::new().hash_one(()) as u32;
    let path = root.join(format!("{name:08x}"));
    DirBuilder::new().mode(0o700).create(&path)?;
    let metadata = fs::symlink_metadata(&path)?;
    Ok(PrivateFolder { place: Place { path, device: metadata.dev(), inode: metadata.ino() } })
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let path = self.place.path();
        if let Err(error) = fs::remove_dir_all(path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), error = %error, "cannot remove a plugin's socket folder");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_is_private_and_goes_with_its_content() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = PrivateFolder::make(root.path()).expect("made");
        let path = folder.place().path().to_path_buf();
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        assert!(folder.place().is(&path).expect("there"));
        assert!(!folder.place().is(root.path()).expect("there"));
        fs::write(path.join("left"), "x").expect("written");
        drop(folder);
        assert_eq!(fs::read_dir(root.path()).expect("there").count(), 0);
    }

    #[test]
    fn a_root_that_is_too_long_is_named_with_length_and_limit() {
        let root = PathBuf::from(format!("/{}", "x".repeat(119)));
        assert!(!socket_path_fits(&root));
        let error = PrivateFolder::make(&root).expect_err("too long").to_string();
        assert_eq!(
            error,
            format!(
                "the socket folder {} has 120 bytes, at most 81 are possible; choose a shorter one",
                root.display()
            )
        );
        assert!(socket_path_fits(Path::new(&format!("/{}", "x".repeat(80)))));
    }
}
