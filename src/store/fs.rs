//! Small file operations that name what failed, and the atomic write.
//!
//! All functions block: call them on a blocking thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::failpoint;

/// Start of the names of files that are not yet complete; the sweep at start deletes them.
pub const TMP_PREFIX: &str = ".tmp-";

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {path}: {source}", path = .path.display())]
pub struct FileError {
    /// What was tried, such as `write`.
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl FileError {
    /// Whether the disk is full, or what the host may use of it.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// Adds the action and the path to an I/O result.
pub(super) trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { action, path: path.to_owned(), source })
    }
}

/// Replaces `path` with `bytes`, mode 0600: after a crash the old or the new content is there, never a part.
///
/// # Errors
/// [`FileError`]; the old content is then still in place, except when only the last sync of the folder failed.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = folder.join(format!("{TMP_PREFIX}{}", uuid::Uuid::new_v4().simple()));
    let written = write_new(&temporary, bytes).and_then(|()| {
        failpoint::hit("file.replacing");
        fs::rename(&temporary, path).at("replace", path)
    });
    if written.is_err() {
        // The write has failed already; a leftover is found by the sweep at start.
        let _ = fs::remove_file(&temporary);
    }
    written.and_then(|()| sync_folder(folder))
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).at("create", path)?;
    file.write_all(bytes).at("write", path)?;
    file.sync_all().at("sync", path)
}

/// Makes renames and deletions inside `folder` durable.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    File::open(folder).and_then(|file| file.sync_all()).at("sync", folder)
}

/// Creates a folder that only this user can enter, and missing ones above it.
pub fn create_private_folder(folder: &Path) -> Result<(), FileError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).at("create", folder)
}

/// Reads a regular file of at most `limit` bytes; a link is not followed.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = rustix::fs::open(path, flags, Mode::empty()).map(File::from).map_err(|error| match error {
        // The system's own words, "too many levels of symbolic links", would send the reader looking for a circle.
        Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "it is a link; put the file itself there"),
        error => error.into(),
    });
    let file = opened.at("open", path)?;
    let regular = file.metadata().at("read", path)?.is_file();
    if !regular {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")).at("read", path);
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).at("read", path)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} bytes"))).at("read", path);
    }
    Ok(bytes)
}

/// Deletes a file or a whole folder; nothing there is success. A link is deleted, not followed. A plugin may have taken
/// the permissions off folders of its own: they are given back.
pub fn remove_any(path: &Path) -> Result<(), FileError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).or_else(|_| {
            open_up(path);
            fs::remove_dir_all(path)
        }),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.at("delete", path),
    }
}

/// Gives the owner all permissions on a folder and the folders in it; what fails shows when they are deleted.
fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Has everything that was written below `folder` brought to disk, with its whole file system.
pub fn sync_all_below(folder: &Path) -> Result<(), FileError> {
    let file = File::open(folder).at("open", folder)?;
    rustix::fs::syncfs(&file).map_err(io::Error::from).at("sync", folder)
}

/// Whether something has this name; a link is not followed.
pub fn exists(path: &Path) -> Result<bool, FileError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).at("look at", path),
    }
}

/// The names in a folder, sorted; none when the folder is absent. A name that is not UTF-8, which the host never makes,
/// appears with replacement characters, so that it is noticed and cannot be opened.
pub fn names_in(folder: &Path) -> Result<Vec<String>, FileError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.at("list", folder)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.at("list", folder)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atomic_write_replaces_the_content_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yml");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names_in(folder.path()).unwrap(), ["a.yml"]);
    }

    #[test]
    fn a_failed_write_names_the_path_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = write_atomic(&path, b"x").unwrap_err();
        assert_eq!((error.action, &error.path), ("replace", &path));
        assert_eq!(names_in(folder.path()).unwrap(), ["taken"]);
    }

    #[test]
    fn a_full_disk_is_told_from_other_faults() {
        let full = Path::new("/dev/full");
        let error = OpenOptions::new().write(true).open(full).unwrap().write_all(b"x").at("write", full).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert!(!File::open("/nowhere").at("open", Path::new("/nowhere")).unwrap_err().is_full());
    }

    #[test]
    fn bounded_reading_refuses_links_folders_and_large_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, b"12345").unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("l")).unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        assert!(read_bounded(&path, 4).is_err());
        let link = read_bounded(&folder.path().join("l"), 5).unwrap_err();
        assert_eq!(link.source.to_string(), "it is a link; put the file itself there");
        assert!(read_bounded(folder.path(), 5).is_err());
    }

    #[test]
    fn removing_takes_links_but_not_what_they_point_to() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, gone) = (folder.path().join("kept"), folder.path().join("gone"));
        fs::create_dir(&kept).unwrap();
        fs::create_dir(&gone).unwrap();
        std::os::unix::fs::symlink(&kept, gone.join("l")).unwrap();
        remove_any(&gone).unwrap();
        remove_any(&gone).unwrap();
        assert_eq!(names_in(folder.path()).unwrap(), ["kept"]);
    }
}
