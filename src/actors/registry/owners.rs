//! The ownership lock (contract/lifecycle.md §9): a repository provider or reference source has one active owner, the
//! first that came.
//!
//! A plugin owns what its manifest names from the moment its start begins until it neither runs nor is restarted; an
//! upgrade or a save of settings in between keeps it. The registry handles one message at a time, so looking and taking
//! are one step, and no start waits for another one. What collides is `domain::ownership`'s decision.

use std::sync::{Arc, Mutex, PoisonError};

use actix::{ActorFutureExt, Context, Handler, Message, ResponseActFuture, fut};

use super::{Registry, RegistryError, RegistryHandle};
use crate::{
    actors::{
        PluginHandle, PluginView,
        plugin::{Condemn, Want},
        spawn::post,
    },
    domain::{
        id::PluginId,
        manifest::Manifest,
        ownership::{Collision, collision},
        record::Status,
    },
};

/// The plugins whose start or restart goes on; one that several commands start is there as often.
#[derive(Default)]
pub(super) struct Starting(Arc<Mutex<Vec<PluginId>>>);

/// Refuses a manifest that claims what another plugin owns, one whose restart is due too. Asked before anything of a
/// version is installed or the one before is stopped; the start looks again.
#[derive(Message)]
#[rtype(result = "Result<(), Collision>")]
pub struct CheckOwnership {
    /// Whose manifest it is.
    pub id: PluginId,
    /// The manifest.
    pub manifest: Manifest,
}

/// Ends with the start.
struct Hold {
    starting: Arc<Mutex<Vec<PluginId>>>,
    id: PluginId,
}

impl Starting {
    fn hold(&self, id: &PluginId) -> Hold {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
        Hold { starting: Arc::clone(&self.0), id: id.clone() }
    }

    fn has(&self, id: &PluginId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(id)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut starting = self.starting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = starting.iter().position(|id| *id == self.id) {
            starting.swap_remove(at);
        }
    }
}

impl Registry {
    /// Has a plugin's actor do something, then waits until the result is on disk. A start must own what it claims; one
    /// that does not leaves the plugin down, in `error` unless it is disabled.
    pub(super) fn operate(
        &mut self,
        id: PluginId,
        want: Want,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        let starts = matches!(want, Want::Started | Want::Booted);
        if starts && let Some(taken) = self.taken(&id) {
            if let Some(entry) = self.entries.get(&id) {
                post(&entry.addr, Condemn(taken.to_string()));
            }
            return Box::pin(fut::ready(Err(taken.into())));
        }
        let keeps = starts || (want == Want::Renewed && self.owns(&id));
        let hold = keeps.then(|| self.starting.hold(&id));
        Box::pin(self.perform(id, want).map(move |done, _, _| {
            drop(hold);
            done
        }))
    }

    /// What of the plugin's another one owns.
    fn taken(&self, id: &PluginId) -> Option<Collision> {
        self.collides(id, &self.entries.get(id)?.record.manifest)
    }

    /// What of a manifest of the plugin `id` another one owns.
    fn collides(&self, id: &PluginId, manifest: &Manifest) -> Option<Collision> {
        let mut others = self.entries.iter().filter(|(other, _)| *other != id && self.owns(other));
        others.find_map(|(other, entry)| collision(manifest, other, &entry.record.manifest))
    }

    fn owns(&self, id: &PluginId) -> bool {
        let runs = || self.directory.get(id.as_str()).is_some_and(|plugin| plugin.run().is_some());
        if self.starting.has(id) || runs() {
            return true;
        }
        let Some(entry) = self.entries.get(id) else { return false };
        let state = &entry.record.state;
        // What an earlier host wrote says who ran under it. A crash is here later than the process's end.
        let lives = !entry.is_unheard() && (state.status == Status::Active || state.restarting);
        // Down for another version, which is about to come up.
        let changes = self.claims.is_held(id) && matches!(state.status, Status::Active | Status::Registered);
        lives || changes
    }
}

impl Handler<CheckOwnership> for Registry {
    type Result = Result<(), Collision>;

    fn handle(&mut self, CheckOwnership { id, manifest }: CheckOwnership, _: &mut Context<Self>) -> Self::Result {
        self.collides(&id, &manifest).map_or(Ok(()), Err)
    }
}

impl RegistryHandle {
    /// The active plugin that owns this repository provider.
    pub(in crate::actors) fn provider_owner(&self, provider: &str) -> Option<PluginHandle> {
        let owns = |plugin: &PluginHandle| plugin.manifest().repository_providers.iter().any(|own| own == provider);
        self.active().into_iter().find(owns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_starting_until_the_last_of_its_starts_ends() {
        let (starting, id) = (Starting::default(), PluginId::new("acme").unwrap());
        let (first, second) = (starting.hold(&id), starting.hold(&id));
        drop(first);
        assert!(starting.has(&id) && !starting.has(&PluginId::new("other").unwrap()));
        drop(second);
        assert!(!starting.has(&id));
    }
}
