//! The REST interface: parse, authorize, ask a handle, map the reply (contract/rest.md).
//!
//! `routes` is the one table of routes, each with its action; `gate` stands before every handler; `error` is the
//! one map from errors to answers. One file a resource. Nothing here decides about plugins or touches the database.

mod actions;
mod auto_update;
mod body;
mod boot;
mod branches;
mod browser;
mod change;
mod document;
mod endpoint;
mod error;
mod events;
mod gate;
mod git_credentials;
mod health;
mod inbox;
mod install;
mod linger;
mod logs;
mod marketplace;
mod mcp;
mod measure;
mod metrics;
mod platform;
mod plugins;
mod query;
mod references;
mod routes;
mod secrets;
mod server;
mod settings;
mod stop;
mod tasks;
mod token;
mod tools;
mod trace;
mod trace_context;
mod trust;
mod ui;
mod upgrade;
mod user_state;
mod vault;
mod webhooks;
mod ws;

use std::sync::Arc;

pub use body::Room;
pub use browser::Browser;
pub use error::ApiError;
pub use mcp::Mcp;
pub use measure::RequestFigures;
pub use server::{Running, Stopped, listen, start};
pub use stop::Stop;
pub use tasks::Tasks;
use time::OffsetDateTime;
pub use token::OperatorToken;
use tokio::sync::Semaphore;
pub use ws::Hub;

use crate::{
    actors::{RegistryHandle, SettingsHandle},
    config::{Limits, Timing},
    domain::package,
    fetch::Downloader,
    marketplace::Market,
    platform::{Platform, event_writer::EventWriter, inbox::Inbox},
    process::usage::UsageSampler,
    store::{packages::PackageStore, trust::TrustStore},
    vault::Vault,
};

/// What the handlers work with; one for the whole server.
pub struct Services {
    /// Plugins.
    pub registry: RegistryHandle,
    /// The plugins' settings.
    pub settings: SettingsHandle,
    /// The way of the operator's events into the log.
    pub events: EventWriter,
    /// What plugins live in.
    pub platform: Platform,
    /// The operator's secrets.
    pub vault: Vault,
    /// What browsers get of plugins.
    pub browser: Browser,
    /// The operator's inbox.
    pub inbox: Inbox,
    /// Fetches packages by address.
    pub downloader: Downloader,
    /// The marketplace.
    pub market: Market,
    /// Takes packages in before the registry sees them.
    pub packages: PackageStore,
    /// The keys whose signatures count.
    pub trust: TrustStore,
    /// Bounds of a package.
    pub package_limits: package::Limits,
    /// Waits.
    pub timing: Timing,
    /// Bounds.
    pub limits: Limits,
    /// Work that outlives its request.
    pub tasks: Tasks,
    /// How far the host's stop is.
    pub stop: Stop,
    /// Room for webhook bodies of all plugins.
    pub webhook_room: Room,
    /// Packages being taken in or installed; its permits are `limits.installs`.
    pub install_slots: Arc<Semaphore>,
    /// Clients that follow a log; its permits are `limits.log_followers`.
    pub follow_slots: Arc<Semaphore>,
    /// The live connections of user interfaces.
    pub hub: Hub,
    /// Clients of the Model Context Protocol.
    pub mcp: Mcp,
    /// What processes use.
    pub usage: UsageSampler,
    /// Origins whose pages may ask as if they were the host's own.
    pub allowed_origins: Vec<String>,
    /// Requests answered so far.
    pub requests: RequestFigures,
    /// Whether `GET /metrics` needs no token.
    pub public_metrics: bool,
    /// Whether spans are exported.
    pub traced: bool,
    /// When the host started.
    pub started_at: OffsetDateTime,
}
