//! What plugins keep in the browser for each user (contract/rest.md §8): the entries, and telling of their changes.
//!
//! A change is in the event log when it is answered, as `plugin.user-state.updated` with the user and never with the
//! value. A written value goes into the database in the transaction of its event, together with what others write just
//! then. Who wants to show it to that user's connections follows the bus ([`EventBusHandle::listen`] with
//! [`user_state::SUBJECT`]); plugins that subscribe to the subject get it as the contract has it (events.md §8).
//!
//! [`EventBusHandle::listen`]: crate::actors::events::EventBusHandle::listen

use kandev_proto::struct_from_json;
use serde_json::Value;

use super::event_writer::{EventWriter, WriteError};
use crate::{
    actors::events::NewEvent,
    domain::{
        subject::Subject,
        tenancy::Tenancy,
        user_state::{self, Change, Place, Scope, Stamp},
    },
    store::{
        db::DbFault,
        user_state::{Owner, UserEntry, UserStateError, UserStateStore},
    },
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
    /// Any JSON, as text.
    pub value: String,
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

    /// An entry's value as JSON text and its stamp; `None` when there is none.
    pub async fn get(&self, owner: Owner<'_>, place: &Place) -> Result<Option<(String, Stamp)>, UserStateError> {
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
        let write = self.store.prepare(owner, place, &put.value, put.since);
        let event = event_of(&change(owner, place, write.at(), put.writer, false))?;
        let written = self.events.publish_with(event, write).await?;
        self.store.outcome(owner, place, put.since, written, tenancy).await
    }

    /// Removes an entry; one that is not there is removed already, and told of all the same.
    pub async fn delete(&self, owner: Owner<'_>, place: &Place, writer: String) -> Result<(), UserStateError> {
        let stamp = self.store.delete(owner, place).await?;
        self.tell(change(owner, place, stamp, writer, true)).await;
        Ok(())
    }

    /// The change is made and stays, whatever becomes of its news: who missed them sees it when he reads again.
    async fn tell(&self, change: Change) {
        let told = async { Ok::<_, UserStateError>(self.events.publish(event_of(&change)?).await?) };
        if let Err(error) = told.await {
            tracing::warn!(plugin.id = %change.plugin_id, %error, "a change of a user's state is not told");
        }
    }
}

impl From<WriteError> for UserStateError {
    fn from(error: WriteError) -> Self {
        Self::Database(match error {
            WriteError::Database(fault) => fault,
            WriteError::Full | WriteError::TooLate(_) | WriteError::Stopping => DbFault::Unavailable(error.to_string()),
            WriteError::Refused(_) | WriteError::Key(_) => DbFault::Statement(error.to_string()),
        })
    }
}

fn event_of(change: &Change) -> Result<NewEvent, UserStateError> {
    let bad = |what: &dyn std::fmt::Display| DbFault::Statement(format!("a change cannot be told: {what}"));
    let subject = Subject::new(user_state::SUBJECT).map_err(|error| bad(&error))?;
    let payload = match serde_json::to_value(change).map_err(|error| bad(&error))? {
        Value::Object(payload) => struct_from_json(payload),
        other => return Err(bad(&other).into()),
    };
    Ok(NewEvent { subject, workspace_id: String::new(), payload: Some(payload) })
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
