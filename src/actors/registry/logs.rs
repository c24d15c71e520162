//! The plugins' logs as the registry keeps them: made with the entry, given to whoever asks.

use std::sync::Arc;

use actix::{Context, Handler};

use super::{Registry, RegistryError, messages::Logs};
use crate::{actors::PluginLog, domain::id::PluginId};

impl Registry {
    /// A log that begins with what an earlier host wrote of this plugin.
    pub(super) fn new_log(&mut self, id: &PluginId) -> Arc<PluginLog> {
        let earlier = self.earlier.remove(id).unwrap_or_default();
        let log_files = self.surroundings.log_files.clone();
        Arc::new(PluginLog::new(id.clone(), &self.config.limits, earlier, log_files))
    }
}

impl Handler<Logs> for Registry {
    type Result = Result<Arc<PluginLog>, RegistryError>;

    fn handle(&mut self, Logs(id): Logs, _: &mut Context<Self>) -> Self::Result {
        self.entry(&id).map(|entry| Arc::clone(&entry.log))
    }
}
