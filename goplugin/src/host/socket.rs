//! Checking the socket that a handshake line names against the private folder of that start.
//!
//! Owns the check only. A plugin that could make the host connect elsewhere could make it talk to any socket the host's
//! user can reach.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::folder::Place;

/// Why the named socket is refused.
#[derive(Debug, Error)]
pub enum SocketError {
    /// There is nothing at that path.
    #[error("the plugin's socket {address} cannot be reached: {source}; did the plugin remove it?")]
    Unreachable {
        /// What the plugin announced, cut and cleaned.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It lies elsewhere.
    #[error(
        "the plugin's socket {address} lies outside the private folder {}; build it with go-plugin 1.5.1 or newer, which \
         obeys PLUGIN_UNIX_SOCKET_DIR",
        .folder.display()
    )]
    Outside {
        /// What the plugin announced, cut and cleaned.
        address: String,
        /// The folder of this start.
        folder: PathBuf,
    },
    /// It is something else than a socket.
    #[error("{address}, named by the plugin as its socket, is not a socket")]
    NotASocket {
        /// What the plugin announced, cut and cleaned.
        address: String,
    },
}

/// The path of `announced` inside `folder`, if it is a socket directly in it. Blocks on the file system.
pub(crate) fn check(announced: &Path, folder: &Place) -> Result<PathBuf, SocketError> {
    const QUOTE_BYTES: usize = 200;
    let address = || crate::text::clean(announced.as_os_str().as_encoded_bytes(), QUOTE_BYTES);
    let unreachable = |source| SocketError::Unreachable { address: address(), source };
    let real = fs::canonicalize(announced).map_err(unreachable)?;
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(SocketError::NotASocket { address: address() });
    };
    // The identity, not the name: the folder's own path may lead through links.
    if !folder.is(parent).map_err(unreachable)? {
        return Err(SocketError::Outside { address: address(), folder: folder.path().into() });
    }
    // Under the folder's given path, which is known to be short enough to connect to.
    let path = folder.path().join(name);
    if !fs::symlink_metadata(&path).map_err(unreachable)?.file_type().is_socket() {
        return Err(SocketError::NotASocket { address: address() });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::host::folder::PrivateFolder;

    #[test]
    fn only_a_socket_directly_in_the_folder_is_accepted() {
        let root = tempfile::tempdir().expect("a folder");
        let private = PrivateFolder::make(root.path()).expect("made");
        let folder = private.place();
        let inside = folder.path().join("plugin1");
        let _listener = UnixListener::bind(&inside).expect("bound");
        assert_eq!(check(&inside, folder).expect("inside"), inside);

        let by_link = root.path().join("link");
        symlink(folder.path(), &by_link).expect("linked");
        assert_eq!(check(&by_link.join("plugin1"), folder).expect("the same folder"), inside);

        let elsewhere = root.path().join("elsewhere");
        let _other = UnixListener::bind(&elsewhere).expect("bound");
        let disguised = folder.path().join("disguised");
        symlink(&elsewhere, &disguised).expect("linked");
        for outside in [elsewhere, disguised, folder.path().join("../elsewhere")] {
            let error = check(&outside, folder).expect_err("outside");
            assert!(matches!(error, SocketError::Outside { .. }), "{error}");
        }

        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        assert!(matches!(check(&file, folder), Err(SocketError::NotASocket { .. })));
        assert!(matches!(check(Path::new("/"), folder), Err(SocketError::NotASocket { .. })));
        let missing = check(&folder.path().join("missing"), folder);
        assert!(matches!(missing, Err(SocketError::Unreachable { .. })));
    }
}
