//! The way to the host's service. The host announces it shortly after the plugin's start; until then calls wait.

use std::time::Duration;

use goplugin::guest::Broker;
use kandev_proto::v1::host_client::HostClient;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tonic::{Status, transport::Channel};

/// The broker id at which every kandev host serves its service.
const HOST_BROKER_ID: u32 = 1;

/// Pause between attempts; one attempt takes up to 5 s.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a call waits for the host to be found, well below the host's own deadline for an event (10 s).
const WAIT: Duration = Duration::from_secs(5);

/// The host's service, found or not yet.
#[derive(Clone)]
pub struct Host(watch::Receiver<Option<HostClient<Channel>>>);

/// Starts looking for the host in the background, for as long as somebody holds the result.
pub fn find(broker: Broker) -> Host {
    let (found, host) = watch::channel(None);
    tokio::spawn(async move {
        while !found.is_closed() {
            match broker.dial(HOST_BROKER_ID).await {
                Ok(channel) => return drop(found.send(Some(HostClient::new(channel)))),
                Err(_) => sleep(PAUSE).await,
            }
        }
    });
    Host(host)
}

impl Host {
    /// A client, or `Unavailable` when the host was not found in time: the host will then deliver the event again.
    pub async fn client(&self) -> Result<HostClient<Channel>, Status> {
        let mut host = self.0.clone();
        let found = timeout(WAIT, host.wait_for(Option::is_some)).await;
        let client = found.ok().and_then(Result::ok).and_then(|client| client.clone());
        client.ok_or_else(|| Status::unavailable("event-logger: the host has not announced its service"))
    }
}
