//! The host's side of go-plugin's broker: its services on id 1, on a socket of their own.
//!
//! Owns announcing and keeping the broker stream open; the socket's server is `crate::serve`. Not here: dialling
//! services that the plugin announces, and the multiplexed broker; what the plugin sends on the stream is read and
//! ignored.

use std::path::PathBuf;

use tokio_stream::StreamExt;
use tonic::transport::Channel;

use crate::proto::ConnInfo;
use crate::proto::grpc_broker_client::GrpcBrokerClient;

/// The id under which a plugin finds the host's services; a constant of the contract (wire.md §1.1).
const HOST_SERVICE_ID: u32 = 1;

/// Announces the socket at `path` once and keeps the broker stream open, for as long as this is polled: when the stream
/// ends, the plugin can dial nothing any more.
///
/// A plugin keeps an announcement that nobody waits for 5 s, so announce right after the first ping, with the server
/// running.
pub(crate) async fn announce(channel: Channel, path: PathBuf, max_message_bytes: usize) {
    let announcement = ConnInfo {
        service_id: HOST_SERVICE_ID,
        network: "unix".to_owned(),
        address: path.to_string_lossy().into_owned(),
        knock: None,
    };
    // Never ends by itself: the end of the outgoing half would end the plugin's broker.
    let outgoing = tokio_stream::once(announcement).chain(tokio_stream::pending());
    let mut client = GrpcBrokerClient::new(channel).max_decoding_message_size(max_message_bytes);
    // grpc-go sends its headers with its first message, which may never come; so this is a task of its own.
    match client.start_stream(outgoing).await {
        Ok(response) => {
            let mut incoming = response.into_inner();
            while let Ok(Some(_)) = incoming.message().await {}
        }
        Err(status) => {
            tracing::debug!(code = ?status.code(), "the broker stream ended; the plugin cannot dial the host");
        }
    }
}
