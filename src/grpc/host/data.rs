//! The platform as one plugin meets it: which part of it the plugin sees, and under which name it writes.
//!
//! Every handler of the Host data API reads in [`Data::scope`] and writes as [`Data::by`]: what a plugin sees is
//! decided here and nowhere else (host-data.md §11 row 14). The handlers are in a file for each resource beside this
//! one.

use std::collections::BTreeSet;

use crate::{
    domain::{id::PluginId, platform::Scope},
    platform::{By, Platform},
};

/// What the handlers of one plugin work on.
pub struct Data {
    /// The services.
    pub platform: Platform,
    /// Whose calls these are.
    pub plugin: PluginId,
    /// Repository providers that the plugin owns.
    pub providers: BTreeSet<String>,
    /// Most bytes of an answer that has no pages.
    pub answer_bytes: u64,
}

impl Data {
    /// What the plugin sees: everything, since Host calls carry no user (host-data.md §1).
    pub fn scope(&self) -> Scope {
        Scope::All
    }

    /// The writer of what the plugin makes and changes; its tag is stamped from this, never from what the plugin says.
    pub fn by(&self) -> By {
        By::plugin(&self.plugin).within(self.scope())
    }
}
