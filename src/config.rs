//! Every duration, bound and setting of the host, in one validated place (architecture.md §8).
//!
//! Owns the shapes, their defaults and their rules. Reading the file, the environment and the flags is
//! [`load()`]'s part; nobody else names a duration or a bound.

mod check;
mod client;
mod duration;
mod environment;
mod file;
mod limits;
mod load;
mod observing;
mod plugins;
mod rest;
mod rules;
mod show;
#[cfg(test)]
mod tests;
mod timing;
mod variables;

use std::{net::SocketAddr, path::PathBuf};

pub use check::CheckTiming;
pub use client::{ClientFlags, ClientSettings, ClientTiming, load_client};
pub use duration::parse as parse_duration;
pub use environment::Lookup;
pub use limits::Limits;
pub use load::{ConfigError, DEFAULT_COMPAT_VERSION, Loaded, Overrides, Source, load, load_explained};
pub use observing::{Metrics, Telemetry};
pub use plugins::{Features, Install, Plugins, SignaturePolicy};
pub use rest::Http;
use secrecy::SecretString;
pub use show::{Row, rows};
pub use timing::Timing;
pub use variables::{Holds, VARIABLES, Variable};

/// The whole configuration of one host process.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the REST interface listens; port 0 takes a free one. Default `127.0.0.1:38429`.
    pub listen: SocketAddr,
    /// Root of everything the host keeps on disk. Default `~/.kandev`.
    pub home: PathBuf,
    /// Database address; default a SQLite file below `home`. May hold a password, hence a secret.
    pub database_url: SecretString,
    /// The operator's token, when it was given; otherwise `<home>/admin-token` is made or read.
    pub admin_token: Option<SecretString>,
    /// Keys of the vault with the variable that gave them; otherwise `<home>/vault.key` is made or read.
    pub vault_key: Option<(SecretString, &'static str)>,
    /// Log filter in `tracing` syntax. Default `info`.
    pub log: String,
    /// What `min_kandev_version` of a manifest is compared with. Default `0.91.0`.
    pub compat_version: String,
    /// Every wait on another party.
    pub timing: Timing,
    /// Every bound.
    pub limits: Limits,
    /// Whose pages may ask.
    pub http: Http,
    /// Where packages may come from.
    pub install: Install,
    /// What plugin processes get.
    pub plugins: Plugins,
    /// What the browser application offers.
    pub features: Features,
    /// Who may read the metrics.
    pub metrics: Metrics,
    /// Where traces go.
    pub telemetry: Telemetry,
}

impl Config {
    /// Folder of the plugins' log files.
    pub fn logs_dir(&self) -> PathBuf {
        self.home.join("logs")
    }

    /// Folder of records and packages.
    pub fn plugins_dir(&self) -> PathBuf {
        self.home.join("plugins")
    }

    /// Folder of the trusted keys.
    pub fn trust_dir(&self) -> PathBuf {
        self.home.join("trust")
    }

    /// Folder of `host.json` and the lock.
    pub fn run_dir(&self) -> PathBuf {
        self.home.join("run")
    }
}
