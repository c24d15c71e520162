//! The Host service's view of the way into the event log.

use async_trait::async_trait;
use prost_types::Struct;

use crate::{
    domain::id::PluginId,
    platform::event_writer::{EventWriter, WriteError},
};

/// Takes the events that plugins emit.
#[async_trait]
pub trait EventSink: Send + Sync + 'static {
    /// Publishes `plugin.<emitter>.<name>` (host-data.md §10); answered when the event will survive the host. The sink
    /// has its own deadline.
    async fn emit(&self, emitter: &PluginId, name: &str, payload: Option<Struct>) -> Result<(), WriteError>;
}

#[async_trait]
impl EventSink for EventWriter {
    async fn emit(&self, emitter: &PluginId, name: &str, payload: Option<Struct>) -> Result<(), WriteError> {
        Self::emit(self, emitter, name, payload).await.map(|_event_id| ())
    }
}
