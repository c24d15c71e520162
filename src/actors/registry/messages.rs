//! What the registry is told and asked.

use std::sync::Arc;

use actix::{Addr, Message};

use super::{Registry, RegistryError};
use crate::{
    actors::{PluginHandle, PluginLog, PluginView, plugin::Want, spawn::post},
    domain::{id::PluginId, record::PluginRecord},
};

/// All plugins, by id.
#[derive(Message)]
#[rtype(result = "Vec<PluginView>")]
pub struct List;

/// One plugin.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct Get(pub String);

/// A handle to one plugin.
#[derive(Message)]
#[rtype(result = "Result<PluginHandle, RegistryError>")]
pub struct Lookup(pub String);

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
    /// A claim that ends when this command begins: nothing of the same id comes in between.
    pub release: Option<ClaimGuard>,
}

/// Reserves an id for an install or uninstall. While it is held every other command about the id answers `Busy`.
#[derive(Message)]
#[rtype(result = "Result<Claimed, RegistryError>")]
pub struct Claim(pub PluginId);

/// A granted claim.
pub struct Claimed {
    /// Ends the claim when it is dropped.
    pub guard: ClaimGuard,
    /// The plugin as it is installed now.
    pub present: Option<PluginView>,
}

/// Ends a claim when it is dropped.
pub struct ClaimGuard {
    pub(super) addr: Addr<Registry>,
    pub(super) id: PluginId,
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        post(&self.addr, Release(self.id.clone()));
    }
}

/// Ends a claim.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Release(pub PluginId);

/// Takes a new or replaced plugin in; answered when its record is on disk. It is not started.
#[derive(Message)]
#[rtype(result = "Result<(), RegistryError>")]
pub struct Adopt(pub PluginRecord);

/// Forgets a plugin whose files are set aside: its actor is stopped, its record is not written any more.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Forget(pub PluginId);

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
