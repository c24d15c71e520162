//! Why a command failed, and its exit code. The codes are a promise (docs/cli.md).

use std::io;

use super::{
    client::ClientError, git_credential::GitCredentialError, plugin::SettingError, plugin::check::CheckError,
    plugin::keys::KeyFileFault, plugin::new::NewError, plugin::pack::PackError, serve::TelemetryError,
};
use crate::{
    app::AppError,
    config::ConfigError,
    domain::{id::IdError, trust::KeyNameError},
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
/// The package is sound, and no trusted key signed it.
const NOT_TRUSTED: u8 = 6;
/// Another version did not come up and the one before is there again.
const UNDONE: u8 = 7;
/// `plugin check` found something that a host cannot live with.
const CHECK_FAILED: u8 = 8;

/// Everything a command can end with, beside success.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Arguments, in clap's words.
    #[error("{0}")]
    Usage(String),
    /// Settings.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// A plugin id that no plugin can have.
    #[error(transparent)]
    Id(#[from] IdError),
    /// A name that no key can have.
    #[error(transparent)]
    KeyName(#[from] KeyNameError),
    /// A key's file.
    #[error(transparent)]
    Key(#[from] KeyFileFault),
    /// `plugin verify`; the text says why.
    #[error("{0}")]
    NotTrusted(String),
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
    #[error("cannot read {path}: {source}; name {wanted}", path = .path.display())]
    PackageFile {
        /// Which.
        path: std::path::PathBuf,
        /// What the command takes.
        wanted: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A file or input with a secret's value, a key or a token.
    #[error("cannot read the {what} from {path}: {source}{}", remedy(.source), path = .path.display())]
    SecretFile {
        /// What it should hold.
        what: &'static str,
        /// Which.
        path: std::path::PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file or input without a value.
    #[error("{} holds nothing: there is no {what} in it", .path.display())]
    EmptySecret {
        /// What it should hold.
        what: &'static str,
        /// Which.
        path: std::path::PathBuf,
    },
    /// No secret of that id or name.
    #[error("no secret is called \"{0}\"; `kandev-host secret list` shows what there is")]
    NoSecret(String),
    /// Several of that name.
    #[error("several secrets are called \"{0}\": name one by its id, `kandev-host secret list` shows them")]
    AmbiguousSecret(String),
    /// No source of the marketplace of that id.
    #[error("no source of the marketplace has the id \"{0}\"; `kandev-host marketplace sources` shows their ids")]
    NoSource(String),
    /// No inbox item of that id.
    #[error("no inbox item has the id \"{0}\"; `kandev-host inbox --status all` shows what there is")]
    NoInboxItem(String),
    /// `marketplace install` of what nobody lists.
    #[error("no enabled source of the marketplace lists \"{id}\"; `kandev-host plugin search` shows what there is")]
    NotListed {
        /// What was asked for.
        id: String,
    },
    /// A package that no host would take, or that cannot be read.
    #[error("{0}; `kandev-host plugin pack` makes packages that hosts take")]
    Package(#[from] PackageStoreError),
    /// `plugin pack`.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// `plugin check`.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// `plugin new`.
    #[error(transparent)]
    New(#[from] NewError),
    /// `plugin config set`.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The plugin is there and does not run.
    #[error("plugin \"{id}\" is installed but not running: {reason}; see `kandev-host plugin logs {id}`")]
    NotRunning {
        /// Which.
        id: String,
        /// What the host says.
        reason: String,
    },
    /// `plugin sync` with items that failed; what became of the others was printed.
    #[error("{failed} of the items in the plugins folder failed; the list says why, the others are done")]
    SyncIncomplete {
        /// How many.
        failed: usize,
    },
    /// The database.
    #[error(transparent)]
    Database(#[from] ConnectError),
    /// `db seed`.
    #[error(transparent)]
    Seed(#[from] crate::platform::seed::SeedError),
    /// `db backup` and `db restore`.
    #[error(transparent)]
    Backup(#[from] crate::store::backup::BackupError),
    /// The home is in use.
    #[error(transparent)]
    RunFolder(#[from] RunFolderError),
    /// `git-credential`.
    #[error(transparent)]
    Git(#[from] GitCredentialError),
    /// Standard output, or another local file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The next step after a file that could not be read, where the system's words leave it open.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; name a file that is there",
        io::ErrorKind::InvalidData => "; it must be text",
        _ => "",
    }
}

impl CliError {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Setting(error) if !matches!(error, SettingError::Read { .. }) => USAGE,
            Self::Usage(_) | Self::Settings(_) | Self::Id(_) | Self::KeyName(_) | Self::EmptySecret { .. } => USAGE,
            Self::NotTrusted(_) => NOT_TRUSTED,
            Self::Check(CheckError::Failed { .. }) => CHECK_FAILED,
            Self::New(error) if error.is_usage() => USAGE,
            Self::Git(GitCredentialError::NoToken) => USAGE,
            Self::Git(GitCredentialError::Token) => REFUSED,
            Self::Client(error) => match error {
                ClientError::Address { .. } | ClientError::NoToken { .. } | ClientError::TokenFile(_) => USAGE,
                ClientError::Announcement(_)
                | ClientError::NoHost { .. }
                | ClientError::NotReached { .. }
                | ClientError::TimedOut { .. }
                | ClientError::NotAHost { .. } => NOT_REACHED,
                ClientError::Token { .. } => REFUSED,
                ClientError::Refused { status, code, .. } => match (code.as_str(), status) {
                    ("start_failed" | "restart_failed", _) => NOT_RUNNING,
                    ("upgrade_failed", _) => UNDONE,
                    ("stopping" | "not_ready", _) => NOT_REACHED,
                    (_, 400..=499) => REFUSED,
                    // The way to the package failed, which the host only tells.
                    ("download_failed" | "download_timeout", _) => REFUSED,
                    _ => FAILED,
                },
                ClientError::Library(_) => FAILED,
            },
            Self::NotRunning { .. } => NOT_RUNNING,
            Self::NoSecret(_)
            | Self::AmbiguousSecret(_)
            | Self::NoSource(_)
            | Self::NoInboxItem(_)
            | Self::NotListed { .. } => REFUSED,
            _ => FAILED,
        }
    }

    /// What the host tells programs about a refusal, for `--json`.
    pub fn details(&self) -> Option<&serde_json::Value> {
        match self {
            Self::Client(ClientError::Refused { details, .. }) => Some(&**details).filter(|details| !details.is_null()),
            _ => None,
        }
    }

    /// The host's stable code for a refusal (docs/api.md), or the command line's own (docs/cli.md), for `--json`.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Usage(_) => Some("usage"),
            Self::Probe(error) => Some(error.word()),
            Self::Client(ClientError::Refused { code, .. }) => Some(code),
            Self::Client(ClientError::Token { .. }) => Some("unauthenticated"),
            Self::NotRunning { .. } => Some("not_running"),
            Self::NoSecret(_) => Some("secret_not_found"),
            Self::NoSource(_) => Some("source_not_found"),
            Self::NoInboxItem(_) => Some("inbox_item_not_found"),
            Self::NotListed { .. } => Some("not_listed"),
            Self::NotTrusted(_) => Some("not_trusted"),
            Self::Check(CheckError::Failed { .. }) => Some("check_failed"),
            Self::SyncIncomplete { .. } => Some("sync_incomplete"),
            _ => None,
        }
    }
}
