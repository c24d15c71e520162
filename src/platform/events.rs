//! The event log, for its readers.

use super::PlatformError;
pub use crate::store::platform::{EventFilter, Logged};
use crate::{
    domain::platform::{
        Scope,
        page::{Page, PageRequest},
    },
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

    /// A page of the log, in the order of the commits.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &EventFilter,
        page: &PageRequest,
    ) -> Result<Page<Logged>, PlatformError> {
        self.store.events(scope, filter, page).await
    }

    /// The cursor after this event, for a reader that has come so far: `GET /events?after=`.
    pub fn cursor_after(&self, event: &Logged) -> String {
        use crate::domain::platform::cursor::{Key, List, encode};
        encode(List::Events, &[Key::Int(event.seq)])
    }
}
