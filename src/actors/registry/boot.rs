//! The starts that no operator asks for: those of the host's own start, and of plugins whose actor was lost.
//!
//! Such a start that finds its plugin claimed by a command is owed: it is made up for when the claim ends, if the
//! plugin should still run then.

use std::collections::BTreeSet;

use actix::{ActorFutureExt, AsyncContext, Context, Handler, ResponseFuture};
use futures_util::{StreamExt, stream};

use super::{
    RegistryError,
    actor::Registry,
    messages::{BootAll, Operate},
    should_run,
};
use crate::{
    actors::{plugin::Want, spawn::ask},
    domain::id::PluginId,
};

/// Plugins whose start a claim was in the way of.
pub(super) type Owed = BTreeSet<PluginId>;

impl Registry {
    /// The plugin is claimed; a start of the host's own comes later.
    pub(super) fn busy(&mut self, id: PluginId, want: Want) -> RegistryError {
        if want == Want::Booted {
            self.owed.insert(id.clone());
        }
        RegistryError::Busy(id)
    }

    /// A claim of the plugin has ended.
    pub(super) fn make_up(&mut self, id: &PluginId, ctx: &mut Context<Self>) {
        if self.claims.is_held(id) || !self.owed.remove(id) {
            return;
        }
        if self.entries.get(id).is_some_and(|entry| should_run(&entry.record)) {
            tracing::debug!(plugin.id = %id, "started now that the command that held it is done");
            self.boot_one(id.clone(), ctx);
        }
    }

    /// Starts a plugin that should run. A failure is the plugin's: its actor has noted it.
    pub(super) fn boot_one(&mut self, id: PluginId, ctx: &mut Context<Self>) {
        let start = self.command(id.as_str(), Want::Booted, false);
        ctx.spawn(start.map(|_, _, _| ()));
    }
}

impl Handler<BootAll> for Registry {
    type Result = ResponseFuture<()>;

    /// The commands go through the registry: when its turn comes, an upgrade may hold a plugin, or the host be
    /// stopping.
    fn handle(&mut self, _: BootAll, ctx: &mut Context<Self>) -> Self::Result {
        let registry = ctx.address();
        let deadline = self.config.timing.command_timeout() + self.config.timing.ask_timeout;
        let due = self.entries.values().filter(|entry| should_run(&entry.record));
        let starts: Vec<_> = due
            .map(|entry| {
                let (registry, id) = (registry.clone(), entry.record.id().as_str().to_owned());
                let boot = Operate { id, want: Want::Booted, claimed: false };
                async move { drop(ask(&registry, boot, deadline).await) }
            })
            .collect();
        let parallel = self.config.limits.boot_parallelism;
        Box::pin(async move { stream::iter(starts).buffer_unordered(parallel).collect::<()>().await })
    }
}
