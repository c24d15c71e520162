//! Why the host cannot start. Each text names the cause and the next step; most come from the part that failed.

use std::{io, path::PathBuf};

use crate::{
    actors::{RegistryError, SettingsError},
    fetch::FetchError,
    process::SocketRootError,
    store::{
        admin_token::AdminTokenError, db::ConnectError, fs::FileError, marketplace::SourceStoreError,
        run_folder::RunFolderError,
    },
    vault::{VaultError, VaultOpenError},
};

/// Why the host could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// No asynchronous runtime.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    /// The home cannot be made.
    #[error("cannot make the folder {}; give the host's user write permission on its parent, or choose another --home", .path.display())]
    Home {
        /// Which folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another host, or no permission.
    #[error(transparent)]
    RunFolder(#[from] RunFolderError),
    /// The operator's token.
    #[error(transparent)]
    AdminToken(#[from] AdminTokenError),
    /// The database.
    #[error(transparent)]
    Database(#[from] ConnectError),
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultOpenError),
    /// No short folder for sockets.
    #[error(transparent)]
    Sockets(#[from] SocketRootError),
    /// The plugins' files.
    #[error(transparent)]
    Files(#[from] FileError),
    /// The registry of the plugins.
    #[error("the plugins found at the start were not taken up in time")]
    Registry(#[from] RegistryError),
    /// Saves of settings that an earlier host began.
    #[error("cannot look for unfinished saves of plugin settings")]
    Settings(#[from] SettingsError),
    /// Finishing an uninstall that an earlier host began.
    #[error("cannot finish an earlier uninstall")]
    Removal(#[from] VaultError),
    /// The marketplace's built-in source.
    #[error("cannot write where the marketplace's built-in source is")]
    Marketplace(#[from] SourceStoreError),
    /// The thread that starts processes.
    #[error("cannot start the thread that starts plugin processes")]
    Forker(#[source] io::Error),
    /// The thread that writes plugins' log lines.
    #[error("cannot start the thread that writes log files")]
    LogFiles(#[source] io::Error),
    /// The downloader's TLS.
    #[error(transparent)]
    Downloads(#[from] FetchError),
    /// The address is taken or not allowed.
    #[error("cannot listen on {address}; choose another with --listen or KANDEV_LISTEN")]
    Listen {
        /// Which address.
        address: std::net::SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The server cannot be started, or failed.
    #[error("the web server failed")]
    Server(#[source] io::Error),
}
