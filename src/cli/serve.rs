//! `serve`: sets up what is global to the process (log, TLS provider, panic log) and leaves the rest to `app`.

pub mod log;
mod telemetry;

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

pub use telemetry::TelemetryError;
use telemetry::Traces;
use tracing_appender::non_blocking::WorkerGuard;

use super::error::CliError;
use crate::{
    app,
    config::{self, ConfigError, Lookup, Overrides},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host serve
  kandev-host serve --listen 0.0.0.0:8080 --home /var/lib/kandev
  KANDEV_LOG=debug KANDEV_LOG_FORMAT=json kandev-host serve

The operator's token is taken from KANDEV_ADMIN_TOKEN or KANDEV_ADMIN_TOKEN_FILE, else made on the first start and kept
in <home>/admin-token. Everything else can be set in <home>/host.toml; `kandev-host config show` lists the keys.";

/// Runs the host until it is told to stop.
pub fn run(overrides: Overrides, env: Lookup<'_>) -> Result<(), CliError> {
    let config = config::load(overrides, env)?;
    install_tls();
    let mut traces = match config.telemetry.is_on() {
        true => Some(Traces::start(&config.telemetry, &config.timing, &config.limits)?),
        false => None,
    };
    let _written_at_the_end = start_log(&config.log, config.timing.log_rest, traces.as_ref())?;
    log_panics();
    goplugin::warm_up_crypto();
    let ended = app::run(config);
    if let (Some(traces), Ok(left)) = (&mut traces, &ended) {
        traces.finish_within(*left);
    }
    // Before the log is: what could not be sent is told there.
    drop(traces);
    Ok(ended.map(drop)?)
}

/// Chooses the process's TLS provider.
pub fn install_tls() {
    // Already installed only when two hosts share a process, which then share the provider too.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

/// Log lines go to standard error: as text, in colour on a terminal, or one JSON object a line.
fn start_log(filter: &str, rest: Duration, traces: Option<&Traces>) -> Result<WorkerGuard, ConfigError> {
    let bad = |key: &str, variable, reason: String| ConfigError::BadValue {
        key: key.to_owned(),
        origin: config::Source::Environment(variable),
        reason,
    };
    let form = match std::env::var("KANDEV_LOG_FORMAT").as_deref() {
        Ok("json") => log::Form::Json,
        Ok("" | "text") | Err(std::env::VarError::NotPresent) => {
            log::Form::Text { colours: io::stderr().is_terminal() }
        }
        Ok(_) | Err(std::env::VarError::NotUnicode(_)) => {
            return Err(bad("log format", "KANDEV_LOG_FORMAT", "it must be text or json".to_owned()));
        }
    };
    log::start(filter, form, io::stderr(), rest, traces).map_err(|error| bad("log", "KANDEV_LOG", error.to_string()))
}

/// A panic becomes a line of the log, so that a JSON log stays one.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, message = panic.payload_as_str().unwrap_or("no text"), "panic");
    }));
}
