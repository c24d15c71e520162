//! The operator's token in `<home>/admin-token`: made on the first start, read on later ones.
//!
//! Owns the file and its permissions. Comparing tokens is `http`'s part. The token is never logged; a fresh one is
//! shown once, and only to a terminal.

use std::{
    fs::{File, Metadata},
    io::{self, IsTerminal, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};

/// Name of the file below home.
pub const FILE_NAME: &str = "admin-token";

/// Random bytes of a made token: 256 bits, 43 characters.
const TOKEN_BYTES: usize = 32;

/// A token is one short line; a bigger file is the wrong file.
const MAX_FILE_BYTES: u64 = 4096;

/// The token and whether this start made it.
#[derive(Debug, Clone)]
pub struct AdminToken {
    /// The token.
    pub secret: SecretString,
    /// Made just now, so that nobody has seen it yet.
    pub fresh: bool,
}

/// Why there is no usable token. Each text names the file and the next step.
#[derive(Debug, thiserror::Error)]
pub enum AdminTokenError {
    /// The file exists and cannot be read.
    #[error("cannot read the operator's token {}: {source}; make it readable for this user or remove it", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file cannot be made.
    #[error("cannot write the operator's token {}: {source}; make the folder writable or set KANDEV_ADMIN_TOKEN", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Others may read or change the file.
    #[error("the operator's token {} is open to other users (mode {mode:03o}): run chmod 600 on it, and remove it if someone may have read it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The content is no token.
    #[error("the operator's token {} holds no usable token: it must be one line of visible ASCII; remove the file to have a new one made", path.display())]
    Content {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no random bytes.
    #[error("the system gives no random bytes for the operator's token: set KANDEV_ADMIN_TOKEN")]
    Random,
}

impl AdminToken {
    /// Shows a fresh token, with the place it is kept, when standard error is a terminal; otherwise does nothing.
    pub fn announce(&self, home: &Path) {
        let mut out = io::stderr().lock();
        if self.fresh && out.is_terminal() {
            let path = home.join(FILE_NAME);
            // A terminal that went away is no reason not to serve.
            let _ = writeln!(out, "operator token (kept in {}): {}", path.display(), self.secret.expose_secret());
        }
    }
}

/// Reads `<home>/admin-token`, or makes it with mode 0600. Blocking; `home` must exist.
pub fn read_or_make(home: &Path) -> Result<AdminToken, AdminTokenError> {
    let path = home.join(FILE_NAME);
    match File::open(&path) {
        Ok(file) => read(&path, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(home, &path),
        Err(source) => Err(AdminTokenError::Read { path, source }),
    }
}

/// Reads `<home>/admin-token`; `None` when no host has made it. Blocking.
pub fn read_existing(home: &Path) -> Result<Option<SecretString>, AdminTokenError> {
    let path = home.join(FILE_NAME);
    match File::open(&path) {
        Ok(file) => read(&path, file).map(|token| Some(token.secret)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(AdminTokenError::Read { path, source }),
    }
}

fn read(path: &Path, file: File) -> Result<AdminToken, AdminTokenError> {
    let failed = |source| AdminTokenError::Read { path: path.to_owned(), source };
    let metadata = file.metadata().map_err(failed)?;
    check_mode(path, &metadata)?;
    let unusable = || AdminTokenError::Content { path: path.to_owned() };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| unusable())?;
    let token = text.trim_end_matches(['\r', '\n']);
    if token.is_empty() || text.len() as u64 > MAX_FILE_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(unusable());
    }
    Ok(AdminToken { secret: token.to_owned().into(), fresh: false })
}

fn check_mode(path: &Path, metadata: &Metadata) -> Result<(), AdminTokenError> {
    let mode = metadata.permissions().mode() & 0o777;
    match mode & 0o077 {
        0 => Ok(()),
        _ => Err(AdminTokenError::Open { path: path.to_owned(), mode }),
    }
}

/// Writes to a temporary file (mode 0600 from the start), syncs, and moves it into place: a crash leaves a whole token
/// or none.
fn make(home: &Path, path: &Path) -> Result<AdminToken, AdminTokenError> {
    let secret = random_token()?;
    let failed = |source| AdminTokenError::Write { path: path.to_owned(), source };
    let mut file = tempfile::Builder::new().prefix(".admin-token-").tempfile_in(home).map_err(failed)?;
    writeln!(file, "{}", secret.expose_secret()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    File::open(home).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(AdminToken { secret, fresh: true })
}

fn random_token() -> Result<SecretString, AdminTokenError> {
    random_text().ok_or(AdminTokenError::Random)
}

/// 256 random bits as 43 characters of base64; none when the system gives no random bytes.
pub fn random_text() -> Option<SecretString> {
    let mut bytes = [0; TOKEN_BYTES];
    rustls::crypto::aws_lc_rs::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_first_start_makes_a_private_token_and_later_starts_read_the_same() {
        let home = tempfile::tempdir().unwrap();
        let made = read_or_make(home.path()).unwrap();
        assert!(made.fresh);
        assert_eq!(made.secret.expose_secret().len(), 43);
        assert_eq!(mode(&home.path().join(FILE_NAME)), 0o600);
        let read = read_or_make(home.path()).unwrap();
        assert!(!read.fresh);
        assert_eq!(read.secret.expose_secret(), made.secret.expose_secret());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_homes_get_different_tokens() {
        let token = || {
            let home = tempfile::tempdir().unwrap();
            read_or_make(home.path()).unwrap().secret.expose_secret().to_owned()
        };
        assert_ne!(token(), token());
    }

    #[test]
    fn a_token_that_others_may_read_is_refused_with_the_remedy() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE_NAME);
        fs::write(&path, "t0ken\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read_or_make(home.path()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "the operator's token {} is open to other users (mode 640): run chmod 600 on it, and remove it if \
                 someone may have read it",
                path.display()
            )
        );
    }

    #[test]
    fn a_file_without_a_usable_token_is_an_error_and_stays() {
        for content in ["", "\n", "two words", "tab\there", "a\nb"] {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join(FILE_NAME);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(matches!(read_or_make(home.path()), Err(AdminTokenError::Content { .. })), "{content:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_home_that_is_missing_is_an_error_that_names_the_file() {
        let error = read_or_make(Path::new("/nowhere/at/all")).unwrap_err();
        assert!(error.to_string().starts_with("cannot write the operator's token /nowhere/at/all/admin-token: "));
    }

    #[test]
    fn the_token_does_not_appear_in_debug_output() {
        let token = AdminToken { secret: "hunter2".to_owned().into(), fresh: true };
        assert!(!format!("{token:?}").contains("hunter2"));
    }
}
