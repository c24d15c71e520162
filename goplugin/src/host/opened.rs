//! Executing a file that is open already, whatever its path leads to by now.
//!
//! Owns the link by which the kernel is led to the descriptor. The kernel names a process after the last part of the
//! path it executes; `/proc/self/fd/<n>` would make it a number in every list of processes, so a link with the
//! program's name stands before it. The link is in the private folder of the start and goes right after the fork.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open program with a path that leads to it in this process and, until it has executed something, in its children.
/// Must live until then: afterwards the descriptor's number may be another file's.
#[derive(Debug)]
pub(crate) struct Opened {
    link: PathBuf,
    _file: Arc<File>,
}

impl Opened {
    /// Makes the link in `folder`, named as the program at `path` is. Blocks on the file system.
    pub(crate) fn new(file: Arc<File>, path: &Path, folder: &Path) -> io::Result<Opened> {
        let link = std::path::absolute(folder)?.join(path.file_name().unwrap_or(OsStr::new("plugin")));
        symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), &link)?;
        Ok(Opened { link, _file: file })
    }

    /// The path to execute.
    pub(crate) fn path(&self) -> &Path {
        &self.link
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // What stays goes with the folder.
        let _ = fs::remove_file(&self.link);
    }
}
