//! The plugin's state in the host's store: GetState, SetState, DeleteState, ListState. Capability `state`.

use kandev_proto::v1;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::Host;
use crate::{Result, json};

impl Host {
    /// The part of the plugin's state named `scope`. It outlives restarts and upgrades; removing the plugin removes it.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Cursor { page: u32 }
    ///
    /// let state = host.state("sync");
    /// let page = state.get::<Cursor>("cursor").await?.map_or(0, |cursor| cursor.page);
    /// state.set("cursor", &Cursor { page: page + 1 }).await?;
    /// for entry in state.list().await? {
    ///     println!("{} {}", entry.key, entry.value);
    /// }
    /// state.delete("cursor").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn state(&self, scope: impl Into<String>) -> State {
        State { host: self.clone(), scope: scope.into(), id: String::new() }
    }
}

/// Keys and values of one scope. Values are JSON objects; whole numbers beyond 2^53 lose precision.
#[derive(Clone)]
pub struct State {
    host: Host,
    scope: String,
    id: String,
}

impl State {
    /// The same scope for one thing: `host.state("task").of(task_id)`.
    pub fn of(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// The value of a key as a type of yours; `None` when there is none. `GetState`.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let request = v1::GetStateRequest { scope: self.scope.clone(), scope_id: self.id.clone(), key: key.to_owned() };
        let answer = self.host.call(|mut host| async move { host.get_state(request).await }).await?;
        answer.found.then(|| json::parse(&format!("the state {key:?}"), json::to_value(answer.value))).transpose()
    }

    /// Stores a value, which must serialise to an object, or to null. The last write wins. `SetState`.
    pub async fn set(&self, key: &str, value: &impl Serialize) -> Result<()> {
        let value = json::to_struct("a state value", value)?;
        let (scope, scope_id, key) = (self.scope.clone(), self.id.clone(), key.to_owned());
        let request = v1::SetStateRequest { scope, scope_id, key, value };
        self.host.call(|mut host| async move { host.set_state(request).await }).await?;
        Ok(())
    }

    /// Removes a key; no error when there is none. `DeleteState`.
    pub async fn delete(&self, key: &str) -> Result<()> {
        let (scope, scope_id, key) = (self.scope.clone(), self.id.clone(), key.to_owned());
        let request = v1::DeleteStateRequest { scope, scope_id, key };
        self.host.call(|mut host| async move { host.delete_state(request).await }).await?;
        Ok(())
    }

    /// Every key of the scope, with its value. `ListState`.
    pub async fn list(&self) -> Result<Vec<StateEntry>> {
        let request = v1::ListStateRequest { scope: self.scope.clone(), scope_id: self.id.clone() };
        let answer = self.host.call(|mut host| async move { host.list_state(request).await }).await?;
        Ok(answer.entries.into_iter().map(Into::into).collect())
    }
}

/// A key of the state and what it holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StateEntry {
    /// The key.
    pub key: String,
    /// An object, or null.
    pub value: Value,
    /// RFC 3339, UTC, whole seconds.
    pub updated_at: String,
}

impl StateEntry {
    /// The value as a type of yours.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        json::parse(&format!("the state {:?}", self.key), self.value.clone())
    }
}

impl From<v1::StateEntry> for StateEntry {
    fn from(wire: v1::StateEntry) -> Self {
        Self { key: wire.key, value: json::to_value(wire.value), updated_at: wire.updated_at }
    }
}
