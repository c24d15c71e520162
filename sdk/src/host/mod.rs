//! The host, as the plugin sees it: one method for every RPC of the Host service (wire.md §3).
//!
//! This file owns the handle, waiting for the host to be found, and the deadline of each call. The calls themselves are
//! in the files beside it.

mod items;
mod read;
mod search;
mod secrets;
mod state;
mod write;

use std::{future::Future, sync::Arc, time::Duration};

use goplugin::guest::Broker;
use kandev_proto::v1::{self, host_client::HostClient};
use serde::Serialize;
use tokio::{sync::watch, time::timeout};
use tonic::{Response, Status, transport::Channel};

pub use items::Items;
pub use state::{State, StateEntry};
pub use write::TreeError;

use crate::{Config, Result, Settings, json};
use search::Search;

/// The host's services, for this plugin. Cheap to clone; calls of it run concurrently.
///
/// Each call needs the capability that its documentation names, declared in the plugin's manifest; without it the call
/// fails with [`Code::PermissionDenied`](crate::Code::PermissionDenied). A call that the host does not serve fails with
/// [`Code::Unimplemented`](crate::Code::Unimplemented).
#[derive(Clone)]
pub struct Host {
    inner: Arc<Inner>,
}

struct Inner {
    search: watch::Receiver<Search>,
    settings: Settings,
}

impl Host {
    /// Looks for the host in the background.
    pub(crate) fn find(broker: Broker, settings: Settings) -> Self {
        Self { inner: Arc::new(Inner { search: search::begin(broker, settings.host_search), settings }) }
    }

    /// A host behind a channel of your own: for a test of a plugin that serves
    /// `kandev_proto::v1::host_server::HostServer` itself.
    ///
    /// ```no_run
    /// # async fn test() -> Result<(), Box<dyn std::error::Error>> {
    /// use kandev_plugin_sdk::{Host, Settings};
    ///
    /// let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:50051").connect_lazy();
    /// let host = Host::from_channel(channel, Settings::default());
    /// assert!(host.config().await?.get::<String>("token")?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_channel(channel: Channel, settings: Settings) -> Self {
        let (_, search) = watch::channel(Search::Found(search::client(channel)));
        Self { inner: Arc::new(Inner { search, settings }) }
    }

    /// The operator's settings of this plugin, its secrets in clear. `GetConfig`; every plugin may call it.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let config = host.config().await?;
    /// let token = config.secret("token")?;
    /// let interval_s: u64 = config.get("interval_s")?.unwrap_or(60);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn config(&self) -> Result<Config> {
        let answer = self.call(|mut host| async move { host.get_config(v1::GetConfigRequest {}).await }).await?;
        Ok(Config::new(json::to_object(answer.config)))
    }

    /// Publishes the event `plugin.<this plugin's id>.<name>`; `payload` must serialise to an object, or to null for
    /// none. `EmitEvent`; every plugin may call it. When this returns the event is in the host's log.
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// host.emit("board.synced", &serde_json::json!({"cards": 12})).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn emit(&self, name: &str, payload: &impl Serialize) -> Result<()> {
        let payload = json::to_struct("the event's payload", payload)?;
        let request = v1::EmitEventRequest { event_name: name.to_owned(), payload };
        self.call(|mut host| async move { host.emit_event(request).await }).await?;
        Ok(())
    }

    /// Has the operator's utility agent answer a prompt. `InvokeUtilityAgent`; capability `agent_invoke`. It may take
    /// minutes: its deadline is [`Settings::agent_timeout`].
    ///
    /// ```no_run
    /// # async fn example(host: &kandev_plugin_sdk::Host) -> kandev_plugin_sdk::Result<()> {
    /// let title = host.ask_agent("A title of five words for: the door does not close").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ask_agent(&self, prompt: &str) -> Result<String> {
        let request = v1::InvokeUtilityAgentRequest { prompt: prompt.to_owned() };
        let limit = self.inner.settings.agent_timeout;
        let answer = self.call_within(limit, |mut host| async move { host.invoke_utility_agent(request).await }).await;
        Ok(answer?.text)
    }

    /// Returns when the host is there; fails when the search was given up.
    pub(crate) async fn found(&self) -> Result<HostClient<Channel>, Status> {
        let given_up = || Status::unavailable("the host did not announce its service after the plugin's start");
        let mut search = self.inner.search.clone();
        let result = search.wait_for(|search| !matches!(search, Search::Looking)).await;
        match result.as_deref() {
            Ok(Search::Found(client)) => Ok(client.clone()),
            Ok(Search::Looking | Search::GivenUp) | Err(_) => Err(given_up()),
        }
    }

    async fn call<A, F>(&self, rpc: impl FnOnce(HostClient<Channel>) -> F) -> Result<A>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        Ok(self.call_within(self.inner.settings.call_timeout, rpc).await?)
    }

    async fn call_within<A, F>(&self, limit: Duration, rpc: impl FnOnce(HostClient<Channel>) -> F) -> Result<A, Status>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let client = timeout(self.inner.settings.host_wait, self.found())
            .await
            .map_err(|_| Status::unavailable("the host has not announced its service yet; try again"))??;
        let answer = timeout(limit, rpc(client))
            .await
            .map_err(|_| Status::deadline_exceeded(format!("the host did not answer within {limit:?}")))?;
        Ok(answer?.into_inner())
    }
}
