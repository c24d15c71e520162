//! One install of a plugin, from its record to its uninstall, as its Host service sees it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::known_secrets::KnownSecrets;

/// Shared by the plugin's log, its Host services and what they write with. A new install of the id is another tenancy.
#[derive(Debug, Clone, Default)]
pub struct Tenancy {
    over: Arc<AtomicBool>,
    secrets: Arc<KnownSecrets>,
}

impl Tenancy {
    /// The plugin is being uninstalled: whoever writes for it looks at [`Self::is_over`] once nothing can come in
    /// between any more, and leaves nothing behind.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// What the plugin was told in confidence.
    pub fn secrets(&self) -> &KnownSecrets {
        &self.secrets
    }
}
