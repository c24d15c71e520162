//! Serving a [`Plugin`]: the constants of every kandev plugin (wire.md §1.1), the search for the host beside it, and
//! the order of start and stop.

use std::{process::ExitCode, sync::Arc, time::Duration};

use goplugin::guest::{ServeConfig, serve_with_goodbye};
use kandev_proto::v1::plugin_server::PluginServer;
use tokio::{sync::OnceCell, time::timeout};
use tonic::service::Routes;
use tracing::warn;

pub use goplugin::guest::ServeError;
pub use tracing_subscriber::filter::LevelFilter;

use crate::{Host, Plugin, log, service};

/// The variable by which the program knows that it was started as a plugin (wire.md §1.1).
const COOKIE: (&str, &str) = ("KANDEV_PLUGIN", "kandev-plugin-v1");

/// A webhook body of 16 MiB, the most a manifest can ask for, and some headroom (wire.md §1.7).
const MAX_MESSAGE_BYTES: usize = 17 << 20;

/// What an author may tune; the defaults suit most plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Log lines below are not written. Default: info.
    pub log_level: LevelFilter,
    /// How long the host is looked for after the start. When it passes, every call of the host fails, for good.
    /// Default: 30 s (wire.md §1.6).
    pub host_search: Duration,
    /// How long a call of the host waits for it to be found; then it fails as unavailable. Default: 5 s, below the
    /// host's own deadline for an event (10 s).
    pub host_wait: Duration,
    /// How long the host may take to answer a call; then it fails with a deadline exceeded. Default: 35 s, longer than
    /// a host takes by itself (`timing.host_call_timeout`, 30 s; an event waits 15 s for the log): whoever gives up
    /// first does not learn what became of the call, and the host's own answer says it.
    pub call_timeout: Duration,
    /// The same for [`Host::ask_agent`]. Default: 10 min.
    pub agent_timeout: Duration,
    /// How long [`Plugin::on_stop`] may take; then the process ends without it. Default: 1.5 s, since a host kills a
    /// plugin 2 s after asking it to stop.
    pub stop_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            log_level: LevelFilter::INFO,
            host_search: Duration::from_secs(30),
            host_wait: Duration::from_secs(5),
            call_timeout: Duration::from_secs(35),
            agent_timeout: Duration::from_secs(600),
            stop_limit: Duration::from_millis(1500),
        }
    }
}

/// Serves the plugin until the host stops it. What `main` returns: failure when the program was not started by a host,
/// or cannot serve; the reason is on stderr then.
///
/// ```no_run
/// struct Mine;
/// impl kandev_plugin_sdk::Plugin for Mine {}
///
/// #[tokio::main]
/// async fn main() -> std::process::ExitCode {
///     kandev_plugin_sdk::serve(Mine).await
/// }
/// ```
pub async fn serve(plugin: impl Plugin) -> ExitCode {
    match serve_with(plugin, Settings::default()).await {
        Ok(()) => ExitCode::SUCCESS,
        // The person at the terminal has a text already.
        Err(ServeError::NotStartedByHost) => ExitCode::FAILURE,
        Err(error) => {
            tracing::error!(cause = %error, "the plugin cannot serve");
            ExitCode::FAILURE
        }
    }
}

/// As [`serve()`], with settings and the reason.
pub async fn serve_with(plugin: impl Plugin, settings: Settings) -> Result<(), ServeError> {
    log::install(settings.log_level);
    let plugin = Arc::new(plugin);
    let found = OnceCell::new();
    let config = ServeConfig {
        cookie: (COOKIE.0.to_owned(), COOKIE.1.to_owned()),
        protocol_version: 1,
        max_message_bytes: MAX_MESSAGE_BYTES,
    };
    let build = |broker| {
        let host = Host::find(broker, settings);
        // Set once: `build` is called once.
        let _ = found.set(host.clone());
        tokio::spawn(start(plugin.clone(), host.clone()));
        let service = service::Service { plugin: plugin.clone(), host };
        Routes::new(PluginServer::new(service).max_decoding_message_size(MAX_MESSAGE_BYTES))
    };
    let goodbye = async {
        if let Some(host) = found.get() {
            stop(&*plugin, host, settings.stop_limit).await;
        }
    };
    serve_with_goodbye(config, build, goodbye).await
}

async fn start(plugin: Arc<impl Plugin>, host: Host) {
    if let Err(error) = host.found().await {
        warn!(cause = %error, "the plugin runs without its host");
        return;
    }
    if let Err(error) = service::guarded("on_start", plugin.on_start(&host)).await {
        warn!(cause = %error, "the plugin's start hook failed");
    }
}

async fn stop(plugin: &impl Plugin, host: &Host, limit: Duration) {
    match timeout(limit, service::guarded("on_stop", plugin.on_stop(host))).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(cause = %error, "the plugin's stop hook failed"),
        Err(_) => warn!(limit_ms = limit.as_millis(), "the plugin's stop hook took too long and was left"),
    }
}
