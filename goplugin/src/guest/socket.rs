//! The plugin's main socket: a name, a listener, and its removal at the end.

use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::ServeError;

/// Names tried before giving up; each has 32 random bits.
const ATTEMPTS: u32 = 8;

/// A bound socket, removed when it is dropped.
pub(crate) struct Socket {
    path: PathBuf,
    listener: StdListener,
}

impl Socket {
    /// Binds a socket in the folder that the host chose, else in the one for temporary files.
    pub(crate) fn bind() -> Result<Socket, ServeError> {
        let folder = env::var_os("PLUGIN_UNIX_SOCKET_DIR").filter(|folder| !folder.is_empty());
        let folder = folder.map_or_else(env::temp_dir, PathBuf::from);
        let mut attempts = ATTEMPTS;
        loop {
            let path = folder.join(format!("plugin{}", RandomState::new().hash_one(()) as u32));
            attempts -= 1;
            match StdListener::bind(&path) {
                Ok(listener) => return Ok(Socket { path, listener }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
                Err(source) => return Err(ServeError::Socket { path, source }),
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The listener, for the current runtime.
    pub(crate) fn listener(&self) -> Result<UnixListener, ServeError> {
        let listener = self.listener.try_clone().and_then(|listener| {
            listener.set_nonblocking(true)?;
            UnixListener::from_std(listener)
        });
        listener.map_err(|source| ServeError::Socket { path: self.path.clone(), source })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The host removes the whole folder anyway.
        let _ = fs::remove_file(&self.path);
    }
}
