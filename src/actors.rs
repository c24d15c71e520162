//! Everything with own behaviour and order: the registry, one actor a plugin, the event bus. Beside `app`, the only
//! place that names actix.
//!
//! The edges (`http`, `grpc::host`) use the handles exported here: typed async methods that send one message and wait
//! for the answer under a deadline. Decisions live in `domain`; an actor keeps state and runs effects.

pub mod events;
mod git_credentials;
mod installer;
mod log;
mod plugin;
mod references;
mod registry;
mod settings;
mod spawn;
mod sync;
mod tools;

use std::sync::Arc;

pub use events::{EventBusHandle, NewEvent, PublishError, Relayed};
pub use git_credentials::{ProviderError, Wanted as WantedCredential};
pub use installer::Preview;
pub use log::{LogEnd, LogFollower, PluginLog};
pub use plugin::{
    Alive, CallFigures, CallKind, CallOutcome, CallPermit, CallRefused, Figures, PluginHandle, Surroundings, Vitals,
};
pub use references::{Found, OfferedSource, ReferenceError, Verdict};
pub use registry::{Installed, Parts, RegistryError, RegistryHandle};
pub use settings::{Expected, SettingsError, SettingsHandle, ShownConfig};
pub use tools::{Called, OfferedTool, ToolChanges, ToolError};

use crate::domain::record::PluginRecord;

/// A plugin as the registry sees it now: the record with the live status.
#[derive(Debug, Clone)]
pub struct PluginView {
    /// The record; its `status` and `restarting` are the actor's, not the file's.
    pub record: PluginRecord,
    /// How it is: process, queue, counters.
    pub vitals: Arc<Vitals>,
}

/// Why an ask to an actor gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The actor does not exist any more, or the host is stopping.
    #[error("the host is stopping")]
    NotDelivered,
    /// The actor was lost while it worked on the message.
    #[error("the actor was lost while processing the request")]
    Died,
    /// No answer within the deadline; the command may still take effect.
    #[error("no answer within the deadline; the command may still take effect")]
    TimedOut,
}
