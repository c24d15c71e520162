//! What plugins keep in the browser for each user (contract/rest.md §8): the entries, and telling of their changes.
//!
//! A change is in the event log when it is answered, as `plugin.user-state.updated` with the user and never with the
//! value. Who wants to show it to that user's connections follows the bus ([`EventBusHandle::listen`] with
//! [`user_state::SUBJECT`]); plugins that subscribe to the subject get it as the contract has it (events.md §8).
//!
//! [`EventBusHandle::listen`]: crate::actors::events::EventBusHandle::listen

use kandev_proto::struct_from_json;
use serde_json::Value;

use super::event_writer::EventWriter;
use crate::{
    actors::events::NewEvent,
    domain::{
        subject::Subject,
        tenancy::Tenancy,
        user_state::{self, Change, Place, Scope, Stamp},
    },
    store::user_state::{Owner, UserEntry, UserStateError, UserStateStore},
};

/// The service; clones are the same.
#[derive(Clone)]
pub struct UserStates {
    store: UserStateStore,
    events: EventWriter,
}

/// A value to be stored.
#[derive(Debug)]
pub struct Put {
    /// Any JSON.
    pub value: Value,
    /// Only if nobody wrote after this.
    pub since: Option<Stamp>,
    /// What the writer calls himself; empty when nothing.
    pub writer: String,
}

impl UserStates {
    /// Over these rows; changes are told by this writer.
    pub fn new(store: UserStateStore, events: EventWriter) -> Self {
        Self { store, events }
    }

    /// All entries of a scope, by key.
    pub async fn list(&self, owner: Owner<'_>, scope: &Scope) -> Result<Vec<UserEntry>, UserStateError> {
        self.store.list(owner, scope).await
    }

    /// An entry's value and stamp; `None` when there is none.
    pub async fn get(&self, owner: Owner<'_>, place: &Place) -> Result<Option<(Value, Stamp)>, UserStateError> {
        self.store.get(owner, place).await
    }

    /// Stores a value for this install of the plugin; its new stamp.
    pub async fn put(
        &self,
        owner: Owner<'_>,
        place: &Place,
        put: Put,
        tenancy: &Tenancy,
    ) -> Result<Stamp, UserStateError> {
        let stamp = self.store.put(owner, place, &put.value, put.since, tenancy).await?;
        self.tell(change(owner, place, stamp, put.writer, false)).await;
        Ok(stamp)
    }

    /// Removes an entry; one that is not there is removed already, and told of all the same.
    pub async fn delete(&self, owner: Owner<'_>, place: &Place, writer: String) -> Result<(), UserStateError> {
        let stamp = self.store.delete(owner, place).await?;
        self.tell(change(owner, place, stamp, writer, true)).await;
        Ok(())
    }

    /// The change is made and stays, whatever becomes of its news: who missed them sees it when he reads again.
    async fn tell(&self, change: Change) {
        let told = match (Subject::new(user_state::SUBJECT), serde_json::to_value(&change)) {
            (Ok(subject), Ok(Value::Object(payload))) => {
                let payload = Some(struct_from_json(payload));
                let event = NewEvent { subject, workspace_id: String::new(), payload };
                self.events.publish(event).await.map(drop).map_err(|error| error.to_string())
            }
            (subject, payload) => Err(format!("{subject:?} {payload:?}")),
        };
        if let Err(error) = told {
            tracing::warn!(plugin.id = %change.plugin_id, error, "a change of a user's state is not told");
        }
    }
}

fn change(owner: Owner<'_>, place: &Place, at: Stamp, writer_id: String, deleted: bool) -> Change {
    let Place { scope, key } = place;
    Change {
        user_id: owner.user.to_owned(),
        plugin_id: owner.plugin.to_string(),
        scope: scope.kind.as_str(),
        scope_id: scope.id.clone(),
        key: key.clone(),
        updated_at: at.text(),
        writer_id,
        deleted,
    }
}
