//! Whether an executable is still the one that was installed.
//!
//! Owns the digest of the file that is about to be executed, and the memory of verdicts: hashing tens of megabytes
//! costs as much as starting the process. A verdict holds for a file with the same device, inode, size and times of
//! content and inode; nobody can set the latter back. What follows for an operator: docs/operations.md, "Who signed
//! this".

use std::{
    collections::HashMap,
    fs::{File, Metadata},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

use crate::domain::package::hex;

/// Most verdicts that are kept; then they are all forgotten, which costs a hash each.
const MAX_KNOWN: usize = 1000;

/// How old the last change of a file must be, in nanoseconds, for its times to tell the next change apart: file systems
/// stamp with the clock of the kernel's ticks.
const SETTLED_NANOS: i128 = 100_000_000;

const BUFFER_BYTES: usize = 64 * 1024;

/// What tells a file from every other and from itself after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    /// Of the file that this was asked of.
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether a change after `now` gets other times than these.
    fn is_settled(&self, now: OffsetDateTime) -> bool {
        let (seconds, nanos) = self.changed;
        let changed = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        now.unix_timestamp_nanos() - changed > SETTLED_NANOS
    }
}

/// A file that may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// Which file it is.
    pub identity: Identity,
}

/// Why a file must not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutableError {
    /// It cannot be opened or read.
    #[error("cannot read the program {}: {source}; install the package again", .path.display())]
    Read {
        /// The program.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no such file.
    #[error("the program {} does not exist; install the package again", .0.display())]
    Missing(PathBuf),
    /// A folder or a device.
    #[error("{} is not a regular file; the package must name its program there", .0.display())]
    NotAFile(PathBuf),
    /// Not the file that was installed.
    #[error(
        "the program {} is not the one that was installed (its SHA-256 is {found}, on record is {expected}): it was changed or \
         is damaged; find out by whom, then install another version of the package, roll back, or uninstall the plugin and \
         install it again",
        .path.display()
    )]
    Changed {
        /// The program.
        path: PathBuf,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
}

impl ExecutableError {
    /// Whether the next attempt would find the same: what is missing or not readable may come back by itself (a file
    /// system that is mounted late), another file is not exchanged by waiting.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Changed { .. } => true,
            Self::Read { .. } | Self::Missing(_) | Self::NotAFile(_) => false,
        }
    }
}

/// Verifies executables; clones share what they remember.
#[derive(Clone, Default)]
pub struct Executables {
    known: Arc<Mutex<HashMap<PathBuf, Verified>>>,
}

impl Executables {
    /// Compares the file with the digest on record; without one, any file will do. What comes back is open: whoever
    /// executes the descriptor executes what was verified. Blocks: reads the whole file, unless it is the one that was
    /// read before.
    ///
    /// # Errors
    /// [`ExecutableError`]
    pub fn verify(&self, path: &Path, expected: Option<&str>) -> Result<(Verified, File), ExecutableError> {
        let (verified, file) = self.digest(path)?;
        match expected {
            Some(expected) if !expected.eq_ignore_ascii_case(&verified.sha256) => Err(ExecutableError::Changed {
                path: path.to_owned(),
                expected: expected.to_owned(),
                found: verified.sha256,
            }),
            Some(_) | None => Ok((verified, file)),
        }
    }

    fn digest(&self, path: &Path) -> Result<(Verified, File), ExecutableError> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => ExecutableError::Missing(path.to_owned()),
            _ => ExecutableError::Read { path: path.to_owned(), source },
        };
        // Without NONBLOCK, opening a named pipe would wait for its other end.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from);
        let mut file = opened.map(File::from).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(ExecutableError::NotAFile(path.to_owned()));
        }
        let identity = Identity::of(&metadata);
        if let Some(known) = self.known().get(path).filter(|known| known.identity == identity) {
            return Ok((known.clone(), file));
        }
        // Taken before reading: a change while it is read makes other times, and what is remembered useless.
        let settled = identity.is_settled(OffsetDateTime::now_utc());
        let verified = Verified { sha256: hash(&mut file).map_err(failed)?, identity };
        if settled {
            self.remember(path, verified.clone());
        }
        Ok((verified, file))
    }

    fn remember(&self, path: &Path, verified: Verified) {
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(path.to_owned(), verified);
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Verified>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(file: &mut File) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize().into())),
            count => hash.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn program(content: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, content).unwrap();
        (folder, path)
    }

    /// As if the file had been written long ago, which cannot be made so.
    fn remember(executables: &Executables, path: &Path) -> Verified {
        let (verified, _) = executables.verify(path, None).unwrap();
        executables.remember(path, verified.clone());
        verified
    }

    #[test]
    fn the_digest_on_record_must_be_the_files() {
        let (_folder, path) = program("abc");
        let executables = Executables::default();
        assert_eq!(executables.verify(&path, Some(&ABC.to_uppercase())).unwrap().0.sha256, ABC);
        let other = "00".repeat(32);
        let error = executables.verify(&path, Some(&other)).unwrap_err().to_string();
        assert!(error.contains(&format!("its SHA-256 is {ABC}, on record is {other}")), "{error}");
    }

    #[test]
    fn a_file_that_is_unchanged_is_not_read_again() {
        let (_folder, path) = program("abc");
        let executables = Executables::default();
        let mut told = remember(&executables, &path);
        told.sha256 = "told".to_owned();
        executables.remember(&path, told.clone());
        assert_eq!(executables.verify(&path, None).unwrap().0, told);
    }

    #[test]
    fn a_file_that_was_changed_replaced_or_given_its_old_times_is_read_again() {
        let (folder, path) = program("abc");
        let executables = Executables::default();
        remember(&executables, &path);
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let spoiled = |what: &str| {
            let error = executables.verify(&path, Some(ABC)).unwrap_err();
            assert!(matches!(error, ExecutableError::Changed { .. }), "{what}");
        };
        // The kernel's clock has to go on for a change to show; what was just written is never remembered by itself.
        std::thread::park_timeout(std::time::Duration::from_millis(20));
        fs::write(&path, "abd").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        spoiled("changed in place, with its old time of change");
        let other = folder.path().join("other");
        fs::write(&other, "abe").unwrap();
        fs::rename(&other, &path).unwrap();
        spoiled("replaced");
    }

    #[test]
    fn what_was_changed_just_now_is_not_remembered() {
        let (_folder, path) = program("abc");
        let executables = Executables::default();
        executables.verify(&path, None).unwrap();
        assert!(executables.known().is_empty());
        let identity = Identity::of(&fs::metadata(&path).unwrap());
        let changed = OffsetDateTime::from_unix_timestamp(identity.changed.0).unwrap();
        assert!(!identity.is_settled(changed) && identity.is_settled(changed + time::Duration::seconds(2)));
    }

    #[test]
    fn what_is_no_program_is_told_apart() {
        let executables = Executables::default();
        let missing = executables.verify(Path::new("/nowhere/program"), None).unwrap_err().to_string();
        assert_eq!(missing, "the program /nowhere/program does not exist; install the package again");
        let folder = executables.verify(Path::new("/"), None).unwrap_err().to_string();
        assert_eq!(folder, "/ is not a regular file; the package must name its program there");
    }
}
