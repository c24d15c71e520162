//! Which plugins there are, for edges that only want to call one: read in place, without a message to the registry,
//! which alone writes it.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use crate::{actors::PluginHandle, domain::id::PluginId};

/// The installed plugins' handles; clones are the same directory.
#[derive(Clone, Default)]
pub struct Directory(Arc<RwLock<BTreeMap<PluginId, PluginHandle>>>);

impl Directory {
    /// The handle of an installed plugin, whatever its status.
    pub fn get(&self, id: &str) -> Option<PluginHandle> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Every installed plugin's handle, by id.
    pub fn all(&self) -> Vec<PluginHandle> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes a new plugin in, or a new version's manifest.
    pub fn put(&self, handle: PluginHandle) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(handle.id().clone(), handle);
    }

    /// The plugin is uninstalled.
    pub fn remove(&self, id: &PluginId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
