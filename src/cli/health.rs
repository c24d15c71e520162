//! `health`: whether a running host is ready. A container's health check needs no shell for it, and no token.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{
    error::CliError,
    output::{self, Output},
    runtime,
    serve::install_tls,
};
use crate::{
    config::{self, ConfigError, Lookup, Overrides},
    probe::{self, ProbeError},
    store::run_folder,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host health
  kandev-host health --host http://127.0.0.1:38429 --timeout 3
  kandev-host health --json

Exits with 0 when the host is ready and with 1 when it is not. Needs no token. Prints nothing when the host is ready,
but with --json.";

/// The command's arguments.
#[derive(Args)]
pub struct Health {
    /// The host's address [default: what run/host.json below home says]
    #[arg(long, visible_alias = "url", value_name = "URL")]
    host: Option<String>,
    /// Folder of the host's files [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Longest wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

/// Asks the host. Programs are told how it is whatever it is; people hear of it only when it is not ready.
pub fn run(Health { host, home, timeout }: Health, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    install_tls();
    let address = match host {
        Some(url) => Ok(url),
        None => announced(home, env)?,
    };
    let (url, ready) = match address {
        Ok(url) => {
            let ready = runtime()?.block_on(probe::ready(&url, Duration::from_secs(timeout)));
            (Some(url), ready)
        }
        Err(unknown) => (None, Err(unknown)),
    };
    let (status, reason) = match &ready {
        Ok(()) => ("ready", None),
        Err(error) => (error.word(), Some(output::told(error))),
    };
    output.result(&json!({"status": status, "url": url, "reason": reason}), String::new)?;
    Ok(ready?)
}

/// What the host of this home says of its address, or that none says anything.
fn announced(home: Option<String>, env: Lookup<'_>) -> Result<Result<String, ProbeError>, ConfigError> {
    let folder = config::load(Overrides { home, ..Overrides::default() }, env)?.run_dir();
    let found = run_folder::announced(&folder).ok().flatten();
    Ok(found.map(|host| host.url).ok_or_else(|| ProbeError::NoAddress(folder.join("host.json").display().to_string())))
}
