//! A file that gets its name when it is whole: until then it has another one beside, and goes when it is given up.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::BackupError;
use crate::store::fs::{At as _, FileError, TMP_PREFIX, sync_folder};

/// A file on its way to its name. Dropped before, it is removed.
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
    name: PathBuf,
    placed: bool,
}

impl Pending {
    /// An empty file, mode 0600, in the folder of `name`, which must be free unless it may be overwritten.
    ///
    /// # Errors
    /// [`BackupError::Exists`], [`BackupError::NotAFile`], or the file cannot be made.
    pub fn beside(name: &Path, overwrite: bool) -> Result<Self, BackupError> {
        if !overwrite && fs::symlink_metadata(name).is_ok() {
            return Err(BackupError::Exists(name.to_owned()));
        }
        // A device or a folder is no old copy, and of a link the other end is meant: none of them is replaced.
        if fs::symlink_metadata(name).is_ok_and(|found| !found.is_file()) {
            return Err(BackupError::NotAFile(name.to_owned()));
        }
        let path = folder(name).join(format!("{TMP_PREFIX}{}", uuid::Uuid::new_v4().simple()));
        Ok(Self::new(path, name)?)
    }

    /// The same at a path that is the caller's alone, in place of what a crash may have left there.
    pub(super) fn at(path: PathBuf, name: &Path) -> Result<Self, FileError> {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("delete", &path),
            _ => Self::new(path, name),
        }
    }

    fn new(path: PathBuf, name: &Path) -> Result<Self, FileError> {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).at("create", &path)?;
        Ok(Self { path, name: name.to_owned(), placed: false })
    }

    /// Where the file is now.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings it to disk and gives it its name.
    ///
    /// # Errors
    /// [`BackupError::Exists`] when the name was taken meanwhile and must not be.
    pub fn place(mut self, overwrite: bool) -> Result<(), BackupError> {
        fs::File::open(&self.path).and_then(|file| file.sync_all()).at("sync", &self.path)?;
        rename(&self.path, &self.name, overwrite)?;
        self.placed = true;
        Ok(sync_folder(folder(&self.name))?)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.placed {
            // It failed already; a leftover begins with a dot and is named in the documentation.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn rename(from: &Path, to: &Path, overwrite: bool) -> Result<(), BackupError> {
    let replace = || fs::rename(from, to).at("rename", to);
    if overwrite {
        return Ok(replace()?);
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::EXIST) => Err(BackupError::Exists(to.to_owned())),
        // The file system cannot; it was free a moment ago.
        Err(Errno::INVAL | Errno::NOSYS) => Ok(replace()?),
        Err(error) => Err(FileError { action: "rename", path: to.to_owned(), source: io::Error::from(error) }.into()),
    }
}

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
