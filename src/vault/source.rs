//! Where the vault's keys come from: `<home>/vault.key`, or a variable of the environment.
//!
//! Owns the file: its mode, its form (the keys one a line, the current one first) and that it is replaced whole. What
//! the keys mean for the database is `open`'s and `rotate`'s part. All functions block.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

use super::key::{KeyRing, KeyTextError, NoRandom};
use crate::failpoint;

/// Name of the file below home.
pub const FILE_NAME: &str = "vault.key";

/// The next content of the file, until it takes the file's place.
const NEXT_NAME: &str = ".vault.key.next";

/// A ring has few keys; a bigger file is the wrong file.
const MAX_FILE_BYTES: u64 = 4096;

/// Where the keys come from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// This file, which the host makes and replaces.
    File(PathBuf),
    /// A variable, or the file that it names: the operator's to change.
    Given {
        /// The variable.
        variable: &'static str,
        /// Keys in text.
        keys: SecretString,
    },
}

/// Why there are no usable keys. Each text names the place and the next step; none quotes a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file exists and cannot be read.
    #[error("cannot read the vault's key {}: {source}; make it readable for the host's user, do not remove it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file cannot be made or replaced.
    #[error("cannot write the vault's key {}: {source}; make its folder writable for the host's user", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may read or change the file.
    #[error("the vault's key {} is open to other users (mode {mode:03o}): run chmod 600 on it, and `kandev-host vault rotate` after the start if someone may have read it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file's content is no key.
    #[error("the vault's key {} cannot be used: {reason}; put your backup of the file back", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: KeyTextError,
    },
    /// The variable's content is no key.
    #[error("{variable} cannot be used: {reason}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What is wrong.
        reason: KeyTextError,
    },
    /// The host is ending.
    #[error("the vault's key was not read or written: {0}")]
    Interrupted(String),
    /// The system gives no random bytes.
    #[error("cannot make a key for the vault")]
    Random(#[from] NoRandom),
}

impl KeySource {
    /// The keys; `None` when the file does not exist.
    ///
    /// # Errors
    /// [`KeyError`]; a file that others may read is refused.
    pub(super) fn read(&self) -> Result<Option<KeyRing>, KeyError> {
        match self {
            Self::Given { variable, keys } => {
                KeyRing::parse(keys.expose_secret()).map(Some).map_err(|reason| KeyError::Variable { variable, reason })
            }
            Self::File(path) => match File::open(path) {
                Ok(file) => read(path, file).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(source) => Err(KeyError::Read { path: path.clone(), source }),
            },
        }
    }

    /// For people: the file's path or the variable's name.
    pub fn place(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Given { variable, .. } => (*variable).to_owned(),
        }
    }
}

fn read(path: &Path, file: File) -> Result<KeyRing, KeyError> {
    let failed = |source| KeyError::Read { path: path.to_owned(), source };
    let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Open { path: path.to_owned(), mode });
    }
    let content = |reason| KeyError::Content { path: path.to_owned(), reason };
    let mut text = Zeroizing::new(String::new());
    match file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= MAX_FILE_BYTES => KeyRing::parse(&text).map_err(content),
        Ok(_) => Err(content(KeyTextError::Form)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(content(KeyTextError::Form)),
        Err(source) => Err(failed(source)),
    }
}

/// Makes or replaces the file, mode 0600: after a crash the old or the new content is there, never a part.
pub(super) fn write(path: &Path, ring: &KeyRing) -> Result<(), KeyError> {
    remove_leftover(path)?;
    replace(path, ring).map_err(|source| KeyError::Write { path: path.to_owned(), source })
}

fn replace(path: &Path, ring: &KeyRing) -> io::Result<()> {
    let next = path.with_file_name(NEXT_NAME);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
    // The umask can only take permissions away, also those that the owner needs.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(ring.text().as_bytes())?;
    file.sync_all()?;
    failpoint::hit("vault.key.replacing");
    std::fs::rename(&next, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes what a crash left while the file was being replaced: it holds keys.
pub(super) fn remove_leftover(path: &Path) -> Result<(), KeyError> {
    let next = path.with_file_name(NEXT_NAME);
    match std::fs::remove_file(&next) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(KeyError::Write { path: next, source }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::key::Key;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE_NAME);
        (home, path)
    }

    #[test]
    fn a_written_file_is_private_and_reads_the_same() {
        let (home, path) = home();
        assert!(KeySource::File(path.clone()).read().unwrap().is_none());
        for _ in 0..2 {
            let ring = KeyRing::of(Key::random().unwrap());
            write(&path, &ring).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(KeySource::File(path.clone()).read().unwrap().unwrap().ids(), ring.ids());
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_leftover_of_a_crash_does_not_hinder_and_goes() {
        let (home, path) = home();
        std::fs::write(home.path().join(NEXT_NAME), "half a k").unwrap();
        write(&path, &KeyRing::of(Key::random().unwrap())).unwrap();
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_the_remedy() {
        let (_home, path) = home();
        write(&path, &KeyRing::of(Key::random().unwrap())).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = KeySource::File(path.clone()).read().unwrap_err().to_string();
        let expected = format!(
            "the vault's key {} is open to other users (mode 640): run chmod 600 on it, and `kandev-host vault rotate` \
             after the start if someone may have read it",
            path.display()
        );
        assert_eq!(error, expected);
    }

    #[test]
    fn a_file_without_a_usable_key_is_an_error_and_stays() {
        for content in [&b""[..], b"hunter2", b"\xff\xfe", &[b'0'; 5000]] {
            let (_home, path) = home();
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
            let error = KeySource::File(path.clone()).read().unwrap_err();
            assert!(matches!(error, KeyError::Content { .. }), "{error}");
            assert!(!error.to_string().contains("hunter2"));
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_variable_without_a_usable_key_is_named_and_its_value_is_not() {
        let source = KeySource::Given { variable: "KANDEV_VAULT_KEY", keys: "hunter2".to_owned().into() };
        let error = source.read().unwrap_err().to_string();
        let expected =
            "KANDEV_VAULT_KEY cannot be used: it must be 32 bytes, written as 64 hexadecimal digits or in base64";
        assert_eq!(error, expected);
        assert!(!format!("{source:?}").contains("hunter2"));
    }
}
