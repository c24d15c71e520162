//! The host's own launcher with a tap: the same process and the same connection serve the host and the baseline.
//!
//! It hands out the bare channel, counts the deliveries that were answered, and serves a bare handler beside the Host
//! service on the same broker socket. Everything else passes through.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use goplugin::host::Plugin;
use kandev_host::{
    domain::{id::PluginId, tenancy::Tenancy},
    grpc::client::{CallError, PluginClient},
    process::{GoPluginLauncher, Granted, HostServiceFactory, LaunchFailure, LaunchRequest, Launched, Launcher},
};
use kandev_proto::v1;
use tokio::sync::Notify;
use tonic::service::Routes;

use crate::bare_state::BareState;

/// Launches as the host does and remembers what it launched.
pub struct Tap {
    inner: GoPluginLauncher,
    plugins: Mutex<HashMap<PluginId, (Plugin, Arc<Answered>)>>,
}

/// Deliveries of one plugin that were answered.
#[derive(Default)]
pub struct Answered {
    count: AtomicUsize,
    wanted: AtomicUsize,
    reached: Notify,
}

impl Answered {
    /// Forgets the count and waits, from now on, for `wanted` answers.
    pub fn expect(&self, wanted: usize) {
        self.count.store(0, Ordering::SeqCst);
        self.wanted.store(wanted, Ordering::SeqCst);
    }

    /// Resolves when the expected number is reached.
    pub async fn reached(&self) {
        loop {
            let notified = self.reached.notified();
            if self.count.load(Ordering::SeqCst) >= self.wanted.load(Ordering::SeqCst) {
                return;
            }
            notified.await;
        }
    }

    fn add(&self) {
        if self.count.fetch_add(1, Ordering::SeqCst) + 1 == self.wanted.load(Ordering::SeqCst) {
            self.reached.notify_one();
        }
    }
}

impl Tap {
    pub fn new(inner: GoPluginLauncher) -> Self {
        Self { inner, plugins: Mutex::default() }
    }

    /// The running process of a plugin, and its answered deliveries.
    pub fn plugin(&self, id: &PluginId) -> Option<(Plugin, Arc<Answered>)> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }
}

#[async_trait]
impl Launcher for Tap {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, LaunchFailure> {
        let id = request.id.clone();
        let (plugin, sha256) = self.inner.start(request).await?;
        let answered = Arc::new(Answered::default());
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner).insert(id, (plugin.clone(), answered.clone()));
        let Launched { client, process, executable_sha256 } = self.inner.adopt(plugin, sha256);
        Ok(Launched { client: Arc::new(Counting { client, answered }), process, executable_sha256 })
    }
}

struct Counting {
    client: Arc<dyn PluginClient>,
    answered: Arc<Answered>,
}

#[async_trait]
impl PluginClient for Counting {
    async fn deliver_event(&self, event: v1::Event, deadline: Duration) -> Result<(), CallError> {
        let answer = self.client.deliver_event(event, deadline).await;
        if answer.is_ok() {
            self.answered.add();
        }
        answer
    }

    // Passed on as it is: nothing is counted, so nothing of ours is measured.
    fn handle_webhook<'client, 'call>(
        &'client self,
        request: v1::WebhookRequest,
        deadline: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<v1::WebhookResponse, CallError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        self.client.handle_webhook(request, deadline)
    }

    fn handle_action<'client, 'call>(
        &'client self,
        request: v1::PluginActionRequest,
        deadline: Duration,
    ) -> Pin<Box<dyn Future<Output = Result<v1::PluginActionResponse, CallError>> + Send + 'call>>
    where
        'client: 'call,
        Self: 'call,
    {
        self.client.handle_action(request, deadline)
    }

    async fn invoke_agent_tool(
        &self,
        request: v1::AgentToolRequest,
        deadline: Duration,
    ) -> Result<v1::AgentToolResponse, CallError> {
        self.client.invoke_agent_tool(request, deadline).await
    }
}

/// The Host service with the bare handler beside it.
pub struct Beside {
    pub inner: Arc<dyn HostServiceFactory>,
    pub bare: BareState,
}

impl HostServiceFactory for Beside {
    fn routes(&self, id: &PluginId, granted: &Granted, tenancy: &Tenancy) -> Routes {
        self.inner.routes(id, granted, tenancy).add_service(self.bare.clone().service(id))
    }
}
