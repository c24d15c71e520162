//! The plugin's side of the broker: dialling what the host announces.
//!
//! Owns the announcements that nobody took yet. An announcement is taken once, by one dial, as in go-plugin.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

use super::Health;
use crate::dial::{ConnectError, dial};
use crate::owned::Owner;
use crate::proto::ConnInfo;
use crate::proto::grpc_broker_server::GrpcBroker;
use crate::text::clean;
use crate::tls::{Identity, TlsError};

/// How long a dial waits for its announcement, an announcement for its dial, and a connection for its server.
const PATIENCE: Duration = Duration::from_secs(5);

/// Announcements that may wait; at the bound the oldest is dropped.
const MAX_WAITING: usize = 64;

/// Why a service of the host cannot be called.
#[derive(Debug, Error)]
pub enum DialError {
    /// The host did not announce it in time.
    #[error("the host announced no service {service_id} within {} s", PATIENCE.as_secs())]
    NotAnnounced {
        /// The broker id that was asked for.
        service_id: u32,
    },
    /// The host announced something else than a unix socket.
    #[error("the host serves {service_id} on {network:?}, only unix sockets are dialled")]
    Network {
        /// The broker id that was asked for.
        service_id: u32,
        /// The network it names, cut and cleaned.
        network: String,
    },
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The host's socket does not answer, or is not the host's.
    #[error("cannot connect to the host: {0}")]
    Connect(#[from] ConnectError),
}

/// A plugin's way to its host.
#[derive(Clone)]
pub struct Broker {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Arc<Identity>,
    host_certificate: Vec<u8>,
    health: Health,
    owner: Owner,
    waiting: Mutex<Vec<Announcement>>,
    arrived: Notify,
}

struct Announcement {
    info: ConnInfo,
    until: Instant,
}

impl Broker {
    pub(crate) fn new(identity: Arc<Identity>, host_certificate: Vec<u8>, health: Health, owner: Owner) -> Broker {
        let inner =
            Inner { identity, host_certificate, health, owner, waiting: Mutex::default(), arrived: Notify::new() };
        Broker { inner: Arc::new(inner) }
    }

    /// Connects to the host's service `service_id`. Waits up to 5 s for its announcement, which is used up by this: a
    /// second dial of the same id waits for a second one. The channel connects anew by itself when it must, and works
    /// on after [`serve`](super::serve) has returned, until the host's grace time for the plugin ends.
    pub async fn dial(&self, service_id: u32) -> Result<Channel, DialError> {
        let info = self.announced(service_id).await?;
        if info.network != "unix" {
            const QUOTE_BYTES: usize = 32;
            return Err(DialError::Network { service_id, network: clean(info.network.as_bytes(), QUOTE_BYTES) });
        }
        let tls = self.inner.identity.client_config(&self.inner.host_certificate)?;
        // Not owned by the server: what a plugin still has to tell its host after the Shutdown must get through, as it
        // does with go-plugin. The connection ends with its channel.
        Ok(dial(PathBuf::from(info.address), tls, Owner::default(), PATIENCE).await?)
    }

    /// What the plugin answers to its host's pings.
    pub fn health(&self) -> Health {
        self.inner.health.clone()
    }

    pub(crate) fn certificate(&self) -> &[u8] {
        self.inner.identity.der()
    }

    pub(crate) fn service(&self, stop: CancellationToken) -> BrokerService {
        BrokerService { broker: self.clone(), stop }
    }

    async fn announced(&self, service_id: u32) -> Result<ConnInfo, DialError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Made before looking, so that what arrives in between wakes it.
            let arrived = self.inner.arrived.notified();
            if let Some(info) = self.take(service_id) {
                return Ok(info);
            }
            timeout_at(deadline, arrived).await.map_err(|_| DialError::NotAnnounced { service_id })?;
        }
    }

    fn take(&self, service_id: u32) -> Option<ConnInfo> {
        let now = Instant::now();
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|announcement| announcement.until > now);
        let position = waiting.iter().position(|announcement| announcement.info.service_id == service_id)?;
        Some(waiting.remove(position).info)
    }

    fn arrive(&self, info: ConnInfo) {
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() == MAX_WAITING {
            waiting.remove(0);
        }
        waiting.push(Announcement { info, until: Instant::now() + PATIENCE });
        drop(waiting);
        self.inner.arrived.notify_waiters();
    }
}

/// The service by which announcements come.
pub(crate) struct BrokerService {
    broker: Broker,
    stop: CancellationToken,
}

#[tonic::async_trait]
impl GrpcBroker for BrokerService {
    type StartStreamStream = ReceiverStream<Result<ConnInfo, Status>>;

    async fn start_stream(
        &self,
        request: Request<Streaming<ConnInfo>>,
    ) -> Result<Response<Self::StartStreamStream>, Status> {
        let (broker, stop) = (self.broker.clone(), self.stop.clone());
        let mut announcements = request.into_inner();
        // The stream back lasts as long as this half of it; nothing is ever announced on it.
        let (open, back) = mpsc::channel(1);
        self.broker.inner.owner.spawn(async move {
            let reading = async {
                while let Ok(Some(info)) = announcements.message().await {
                    broker.arrive(info);
                }
            };
            stop.run_until_cancelled(reading).await;
            drop(open);
        });
        Ok(Response::new(ReceiverStream::new(back)))
    }
}
