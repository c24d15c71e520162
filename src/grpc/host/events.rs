//! The Host service's view of the event bus.

use async_trait::async_trait;
use prost_types::Struct;

use crate::{
    actors::{EventBusHandle, PublishError},
    domain::id::PluginId,
};

/// Takes the events that plugins emit.
#[async_trait]
pub trait EventSink: Send + Sync + 'static {
    /// Publishes `plugin.<emitter>.<name>` (host-data.md §10). The sink has its own deadline.
    async fn emit(&self, emitter: &PluginId, name: &str, payload: Option<Struct>) -> Result<(), PublishError>;
}

#[async_trait]
impl EventSink for EventBusHandle {
    async fn emit(&self, emitter: &PluginId, name: &str, payload: Option<Struct>) -> Result<(), PublishError> {
        Self::emit(self, emitter, name, payload).map(|_event_id| ())
    }
}
