//! Which plugins there are, for edges that only want to call one: read in place, without a message to the registry,
//! which alone writes it.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use tokio::sync::watch;

use crate::{actors::PluginHandle, domain::id::PluginId};

/// The installed plugins' handles; clones are the same directory.
#[derive(Clone, Default)]
pub struct Directory(Arc<RwLock<BTreeMap<PluginId, PluginHandle>>>, Changes);

/// Counts what may make a difference to whoever looks at all plugins. A follower that is slow misses numbers, never the
/// last one.
#[derive(Clone)]
struct Changes(Arc<watch::Sender<u64>>);

impl Default for Changes {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl Directory {
    /// The handle of an installed plugin, whatever its status.
    pub fn get(&self, id: &str) -> Option<PluginHandle> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Whether a handle is of the installed version still.
    pub fn has_version_of(&self, plugin: &PluginHandle) -> bool {
        let handles = self.0.read().unwrap_or_else(PoisonError::into_inner);
        handles.get(plugin.id()).is_some_and(|now| Arc::ptr_eq(now.manifest(), plugin.manifest()))
    }

    /// Every installed plugin's handle, by id.
    pub fn all(&self) -> Vec<PluginHandle> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes a new plugin in, or a new version's manifest.
    pub fn put(&self, handle: PluginHandle) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(handle.id().clone(), handle);
        self.has_changed();
    }

    /// The plugin is uninstalled.
    pub fn remove(&self, id: &PluginId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.has_changed();
    }

    /// A plugin has another status.
    pub fn has_changed(&self) {
        self.1.0.send_modify(|count| *count += 1);
    }

    /// Tells of every change from now on, several as one.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.1.0.subscribe()
    }
}
