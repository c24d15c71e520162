//! Files of keys, for the commands that sign and verify without a host.
//!
//! A private key's text is never in a message. The trusted keys of a home are read as its host reads them.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    cli::error::CliError,
    config::{self, ClientFlags, Limits, Lookup},
    domain::{
        key::{KeyError, PrivateKey},
        signature::Trust,
        trust::{KeyFile, KeyFileError, KeyName, KeyNameError, KeyRing, Scope, TrustedKey},
    },
    store::{
        fs::{FileError, read_bounded},
        trust::TrustStore,
    },
};

/// Largest file of a key, in bytes; a bigger one is the wrong file.
const MAX_KEY_BYTES: u64 = 16 * 1024;

/// Why a file gives no key, or could not be made.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileFault {
    /// Reading failed.
    #[error("{0}; name a key file")]
    Read(#[from] FileError),
    /// Not a public key.
    #[error("{path} holds no public key: {error}", path = .path.display())]
    Public {
        /// The file.
        path: PathBuf,
        /// Why.
        error: KeyFileError,
    },
    /// A file whose name cannot stand for its key.
    #[error("{path}: {error}; rename the file, its name is shown as the signer's", path = .path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// Why.
        error: KeyNameError,
    },
    /// Not a private key.
    #[error("{path} holds no private key: {error}", path = .path.display())]
    Private {
        /// The file.
        path: PathBuf,
        /// Why.
        error: KeyError,
    },
    /// Others may read a private key.
    #[error(
        "the private key {path} is open to other users (mode {mode:03o}): run chmod 600 on it, and make a new key if someone may have read it",
        path = .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Making a file failed.
    #[error("cannot write {path}: {source}; {next}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
        /// What to do.
        next: &'static str,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for a key; make one with `openssl genpkey -algorithm ed25519`")]
    Random,
}

/// A new key from the system's random bytes.
pub fn generate() -> Result<PrivateKey, KeyFileFault> {
    let mut seed = [0; crate::domain::key::KEY_BYTES];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random.fill(&mut seed).map_err(|_| KeyFileFault::Random)?;
    Ok(PrivateKey::from_seed(&seed))
}

/// Writes a file that must not exist yet.
pub fn write_new(path: &Path, content: &str, mode: u32) -> Result<(), KeyFileFault> {
    let failed = |source: std::io::Error| {
        let next = match source.kind() {
            ErrorKind::AlreadyExists => "an existing key is never replaced: choose another name",
            ErrorKind::NotFound => "make its folder first, or choose another one",
            _ => "choose a folder that this user may write to",
        };
        KeyFileFault::Write { path: path.to_owned(), source, next }
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads a private key that nobody else can read.
pub fn private(path: &Path) -> Result<PrivateKey, KeyFileFault> {
    let failed = |error| KeyFileFault::Private { path: path.to_owned(), error };
    let bytes = read_bounded(path, MAX_KEY_BYTES)?;
    if KeyFile::parse(&bytes).is_ok() {
        return Err(failed(KeyError::Public));
    }
    let text = SecretString::from(String::from_utf8(bytes).map_err(|_| failed(KeyError::NotPrivate))?);
    let key = PrivateKey::parse(text.expose_secret()).map_err(failed)?;
    // Only of a file that is a private key: what others may read of another one is no matter.
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.mode() & 0o777);
    match mode & 0o077 {
        0 => Ok(key),
        _ => Err(KeyFileFault::Open { path: path.to_owned(), mode }),
    }
}

/// Reads a public key, as its author publishes it or as a host trusts it.
pub fn public(path: &Path) -> Result<KeyFile, KeyFileFault> {
    let bytes = read_bounded(path, MAX_KEY_BYTES)?;
    KeyFile::parse(&bytes).map_err(|error| KeyFileFault::Public { path: path.to_owned(), error })
}

/// Whose signatures count for a command: these keys, for every plugin; without any, the trusted keys of the home. The
/// names of the home's files that are skipped are told too.
pub fn trust(keys: &[PathBuf], home: Option<String>, env: Lookup<'_>) -> Result<(Trust, Vec<String>), CliError> {
    if keys.is_empty() {
        let home = config::load_client(ClientFlags { home, ..ClientFlags::default() }, env)?.home;
        let loaded = TrustStore::new(home.join("trust"), &Limits::default()).load().map_err(KeyFileFault::Read)?;
        let skipped = loaded.skipped.iter().map(|skipped| format!("{} is skipped: {}", skipped.file, skipped.error));
        return Ok((Trust { keys: loaded.keys, required: false }, skipped.collect()));
    }
    let read = keys.iter().map(|path| {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let name = KeyName::new(&stem).map_err(|error| KeyFileFault::Name { path: path.clone(), error })?;
        Ok(TrustedKey { name, key: public(path)?.key, plugins: Scope::Every })
    });
    let keys = KeyRing::new(read.collect::<Result<_, KeyFileFault>>()?);
    Ok((Trust { keys, required: false }, Vec::new()))
}
