//! `health`: whether a running host is ready. A container's health check needs no shell for it, and no token.

use std::time::Duration;

use clap::Args;

use super::{error::CliError, runtime, serve::install_tls};
use crate::{
    config::{self, Lookup, Overrides},
    probe::{self, ProbeError},
    store::run_folder,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host health
  kandev-host health --url http://127.0.0.1:38429 --timeout 3

Exits with 0 when the host is ready and with 1 when it is not. Needs no token.";

/// The command's arguments.
#[derive(Args)]
pub struct Health {
    /// Address of the host [default: what run/host.json in the home says]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Folder of the host's files [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Longest wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

/// Asks the host.
pub fn run(Health { url, home, timeout }: Health, env: Lookup<'_>) -> Result<(), CliError> {
    install_tls();
    let url = match url {
        Some(url) => url,
        None => {
            let folder = config::load(Overrides { home, ..Overrides::default() }, env)?.run_dir();
            let found = run_folder::announced(&folder).ok().flatten();
            found.ok_or_else(|| ProbeError::NoAddress(folder.join("host.json").display().to_string()))?.url
        }
    };
    Ok(runtime()?.block_on(probe::ready(&url, Duration::from_secs(timeout)))?)
}
