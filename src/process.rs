//! What the host adds around goplugin's spawn: a plugin's environment and folders, the launcher the actors use, the
//! sweep of processes that outlived an earlier host, what processes use, and how many files may be open.
//!
//! Talks to the operating system; decides nothing about restarts.

mod environment;
mod executable;
mod launcher;
pub mod open_files;
mod socket_root;
pub mod sweep;
pub mod usage;

use std::{collections::BTreeSet, fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
pub use environment::Environment;
pub use launcher::GoPluginLauncher;
pub use socket_root::{SocketRoot, SocketRootError};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::{
    domain::{
        capability::CapabilitySet, config_schema::Fields, id::PluginId, log_line::LogLine, manifest::Manifest,
        tenancy::Tenancy,
    },
    grpc::client::PluginClient,
};

/// Everything needed to start one generation of a plugin's process.
#[derive(Clone)]
pub struct LaunchRequest {
    /// Whose process it is.
    pub id: PluginId,
    /// Counts the starts of this plugin in this host; log lines carry it.
    pub generation: u64,
    /// Absolute path of the host platform's executable.
    pub executable: PathBuf,
    /// The SHA-256 that the executable must have, in hexadecimal; `None` when no earlier start has noted one.
    pub executable_sha256: Option<String>,
    /// The package's folder: the process's working folder.
    pub install_path: PathBuf,
    /// The plugin's own folder; made when it is missing.
    pub data_dir: PathBuf,
    /// The services offered to the plugin on broker id 1.
    pub host_service: Routes,
    /// Takes the process's output; must not block.
    pub log: LogSink,
    /// Cancelled when the start is not wanted any more.
    pub abort: CancellationToken,
}

/// Takes a plugin's log lines; must not block.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// Starts plugin processes.
#[async_trait]
pub trait Launcher: Send + Sync + 'static {
    /// Spawns, shakes hands and pings once. On any failure, an abort included, nothing of the process is left.
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, LaunchFailure>;
}

/// A process that answered its first health check.
pub struct Launched {
    /// Calls into the plugin.
    pub client: Arc<dyn PluginClient>,
    /// The process itself.
    pub process: Arc<dyn PluginProcess>,
    /// The SHA-256 of what was executed, in lower-case hexadecimal.
    pub executable_sha256: Option<String>,
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("pid", &self.process.pid()).finish_non_exhaustive()
    }
}

/// A running plugin process.
#[async_trait]
pub trait PluginProcess: Send + Sync + 'static {
    /// Operating system process id.
    fn pid(&self) -> u32;
    /// One health check. The error text says why it failed.
    async fn ping(&self, deadline: Duration) -> Result<(), String>;
    /// Resolves when the process has ended and was reaped; may be awaited any number of times. The text says how it
    /// ended.
    async fn exited(&self) -> String;
    /// Shutdown, TERM, KILL, reaped. Concurrent calls share one stop.
    async fn stop(&self);
    /// KILL to the whole group, at once.
    fn kill(&self);
}

/// Why a start failed: one text with cause and next step, not yet redacted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchFailure {
    /// Another attempt may go well.
    #[error("{0}")]
    Passing(String),
    /// No attempt goes well until an operator changes what is installed.
    #[error("{0}")]
    Lasting(String),
}

/// What a manifest gives its plugin to do with the host.
#[derive(Debug, Clone, Default)]
pub struct Granted {
    /// What it may ask for.
    pub capabilities: CapabilitySet,
    /// Fields of its config whose values are secrets, wherever they are kept.
    pub secret_fields: BTreeSet<String>,
    /// Repository providers that it owns.
    pub providers: BTreeSet<String>,
}

impl From<&Manifest> for Granted {
    fn from(manifest: &Manifest) -> Self {
        let fields = Fields::of(&manifest.config_schema);
        let secret = fields.declared().map(|(field, _)| field).filter(|field| fields.is_secret(field));
        Self {
            capabilities: manifest.capabilities.granted(),
            secret_fields: secret.map(str::to_owned).collect(),
            providers: manifest.repository_providers.iter().cloned().collect(),
        }
    }
}

/// Makes the Host service for one plugin; implemented by `grpc::host`, injected by `app` (architecture.md §2).
pub trait HostServiceFactory: Send + Sync + 'static {
    /// A service instance bound to this plugin and this install of it: the plugin never says who it is.
    fn routes(&self, id: &PluginId, granted: &Granted, tenancy: &Tenancy) -> Routes;
}
