//! Connecting to a gRPC server over mutual TLS on a unix socket: the plugin's main socket, and a broker socket.
//!
//! Owns the connector. Which socket and which certificate are the caller's to decide.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::owned::Owner;
use crate::text::error_chain;
use crate::tls::SERVER_NAME;

/// Why no connection came about.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The socket, TLS or HTTP/2 did not answer in time.
    #[error("no connection within {} ms", .after.as_millis())]
    TimedOut {
        /// The limit that passed.
        after: Duration,
    },
    /// The socket or TLS refused.
    #[error("{cause}")]
    Refused {
        /// The chain of causes, cleaned.
        cause: String,
    },
}

/// A channel to the server on `socket`, connected once within `limit`. It connects anew, by the same rules, when its
/// connection was lost, and for the last time before `owner` ends.
pub(crate) async fn dial(
    socket: PathBuf,
    tls: Arc<ClientConfig>,
    owner: Owner,
    limit: Duration,
) -> Result<Channel, ConnectError> {
    let connector = tower::service_fn(move |_: Uri| {
        let (socket, tls, owner) = (socket.clone(), tls.clone(), owner.clone());
        async move {
            let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
            let stream = UnixStream::connect(socket).await?;
            let stream = TlsConnector::from(tls).connect(name, stream).await?;
            Ok::<_, io::Error>(TokioIo::new(owner.connection(stream, ())))
        }
    });
    // The scheme is http since tonic would otherwise want its own TLS; Go servers look at neither scheme nor name.
    let endpoint = Endpoint::from_static("http://localhost").connect_timeout(limit);
    match timeout(limit, endpoint.connect_with_connector(connector)).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(error)) => Err(ConnectError::Refused { cause: error_chain(&error) }),
        Err(_) => Err(ConnectError::TimedOut { after: limit }),
    }
}
