//! Why a command failed, and its exit code. The codes are a promise (docs/cli.md).

use std::io;

use super::{client::ClientError, plugin::new::NewError, plugin::pack::PackError, serve::TelemetryError};
use crate::{
    app::AppError,
    config::ConfigError,
    domain::id::IdError,
    store::{db::ConnectError, packages::PackageStoreError, run_folder::RunFolderError},
};

/// Something could not be done.
const FAILED: u8 = 1;
/// Arguments or settings cannot be used; clap has the same code for arguments.
const USAGE: u8 = 2;
/// No host was reached, or it is not able to answer now.
const NOT_REACHED: u8 = 3;
/// The host said no.
const REFUSED: u8 = 4;
/// The plugin is installed and does not run.
const NOT_RUNNING: u8 = 5;

/// Everything a command can end with, beside success.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Settings.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// A plugin id that no plugin can have.
    #[error(transparent)]
    Id(#[from] IdError),
    /// `serve`.
    #[error(transparent)]
    App(#[from] AppError),
    /// Sending traces.
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    /// No asynchronous runtime.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
    /// `health`.
    #[error(transparent)]
    Probe(#[from] crate::probe::ProbeError),
    /// Speaking to the host.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// An answer of another form than docs/api.md says.
    #[error("the host's answer is not understood: {0}; it may be of another version than this command line")]
    Answer(String),
    /// The file to install or look at.
    #[error("cannot read {path}: {source}; name a package file or an http(s) address", path = .path.display())]
    PackageFile {
        /// Which.
        path: std::path::PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A package that no host would take, or that cannot be read.
    #[error("{0}; `kandev-host plugin pack` makes packages that hosts take")]
    Package(#[from] PackageStoreError),
    /// `plugin pack`.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// `plugin new`.
    #[error(transparent)]
    New(#[from] NewError),
    /// The plugin is there and does not run.
    #[error("plugin \"{id}\" is installed but not running: {reason}; see `kandev-host plugin logs {id}`")]
    NotRunning {
        /// Which.
        id: String,
        /// What the host says.
        reason: String,
    },
    /// The database.
    #[error(transparent)]
    Database(#[from] ConnectError),
    /// The home is in use.
    #[error(transparent)]
    RunFolder(#[from] RunFolderError),
    /// Standard output, or another local file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl CliError {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Id(_) => USAGE,
            Self::New(error) if error.is_usage() => USAGE,
            Self::Client(error) => match error {
                ClientError::Address { .. } | ClientError::NoToken { .. } | ClientError::TokenFile(_) => USAGE,
                ClientError::Announcement(_)
                | ClientError::NoHost { .. }
                | ClientError::NotReached { .. }
                | ClientError::TimedOut { .. }
                | ClientError::NotAHost { .. } => NOT_REACHED,
                ClientError::Token { .. } => REFUSED,
                ClientError::Refused { status, code, .. } => match (code.as_str(), status) {
                    ("start_failed", _) => NOT_RUNNING,
                    ("stopping" | "not_ready", _) => NOT_REACHED,
                    (_, 400..=499) => REFUSED,
                    // The way to the package failed, which the host only tells.
                    ("download_failed" | "download_timeout", _) => REFUSED,
                    _ => FAILED,
                },
                ClientError::Library(_) => FAILED,
            },
            Self::NotRunning { .. } => NOT_RUNNING,
            _ => FAILED,
        }
    }

    /// The host's stable code for a refusal (docs/api.md), for `--json`.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Client(ClientError::Refused { code, .. }) => Some(code),
            Self::Client(ClientError::Token { .. }) => Some("unauthenticated"),
            Self::NotRunning { .. } => Some("not_running"),
            _ => None,
        }
    }
}
