//! The event log, for its readers.

use super::PlatformError;
pub use crate::store::platform::{EventFilter, EventPage, Logged};
use crate::{
    domain::platform::{Scope, page::PageRequest, text::check_filter},
    store::platform::PlatformStore,
};

/// The service.
#[derive(Debug, Clone)]
pub struct Events {
    store: PlatformStore,
}

impl Events {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A part of the log, in the order of the commits.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &EventFilter,
        page: &PageRequest,
    ) -> Result<EventPage, PlatformError> {
        check_filter("subject", &filter.subjects)?;
        check_filter("workspace_id", &filter.workspace_ids)?;
        self.store.events(scope, filter, page).await
    }

    /// The cursor after this event, for a reader that has come so far: `GET /events?after=`.
    pub fn cursor_after(&self, event: &Logged) -> String {
        use crate::domain::platform::cursor::{Key, List, encode};
        encode(List::Events, &[Key::Int(event.seq)])
    }
}
