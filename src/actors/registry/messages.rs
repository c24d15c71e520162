//! What the registry is told and asked.

use std::sync::Arc;

use actix::Message;

use super::RegistryError;
use crate::{
    actors::{PluginLog, PluginView, plugin::Want},
    domain::{id::PluginId, record::PluginRecord},
};

/// All plugins, by id, those with an unreadable record too.
#[derive(Message)]
#[rtype(result = "Vec<PluginView>")]
pub struct List;

/// The records of the known plugins, by id, as they were found or last changed.
#[derive(Message)]
#[rtype(result = "Vec<PluginRecord>")]
pub struct Records;

/// One plugin, for work with it.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct Get(pub String);

/// One plugin, to be shown: that its record is unreadable, too.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct Show(pub String);

/// The log of one plugin.
#[derive(Message)]
#[rtype(result = "Result<Arc<PluginLog>, RegistryError>")]
pub struct Logs(pub String);

/// An operator's command; answered when its result is on disk.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct Operate {
    /// Which plugin.
    pub id: String,
    /// What should become true.
    pub want: Want,
    /// Whether the sender holds the id's claim.
    pub claimed: bool,
}

/// Takes a new or replaced plugin in; answered when its record is on disk. It is not started.
#[derive(Message)]
#[rtype(result = "Result<(), RegistryError>")]
pub struct Adopt(pub PluginRecord);

/// Forgets a plugin whose files are set aside: its actor is stopped, its record is not written any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Forget(pub PluginId);

/// A plugin that was forgotten is gone for good: nothing of it is left, and the world is told.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Departed(pub PluginId);

/// Takes a plugin back whose uninstall failed: stopped, in `error`, with this reason.
#[derive(Message)]
#[rtype(result = "Result<(), RegistryError>")]
pub struct Restore(pub PluginRecord);

/// Starts what should run; answered when every start has ended.
#[derive(Message)]
#[rtype(result = "()")]
pub struct BootAll;

/// Stops everything; answered with the ids that did not stop in time.
#[derive(Message)]
#[rtype(result = "Vec<PluginId>")]
pub struct StopAll;
