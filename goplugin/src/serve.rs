//! Serving gRPC over mutual TLS on a unix socket: the host's broker socket and the guest's main socket are the same.
//!
//! Owns accepting and its bounds. Which services are served, and with which message limits, is the caller's.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::Server;

use crate::owned::{Connection, Owner};

/// Connections that may be open or in their TLS handshake at once. At the bound further ones wait in the kernel's
/// backlog: only the peer itself can reach the socket, so it delays nobody else. A Go peer uses one.
const MAX_CONNECTIONS: usize = 32;

/// Streams that may be open at once on one connection; at the bound the peer waits, as HTTP/2 has it.
const MAX_STREAMS: u32 = 256;

/// Pause after the system refused a connection (out of descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Incoming = Connection<TlsStream<tokio::net::UnixStream>, OwnedSemaphorePermit>;

/// A server of `routes` on `listener`, which runs while the returned future is polled: until `stop` resolved and the
/// open calls are done. Accepting never ends before that: Go drops an idle connection after 30 minutes and dials the
/// same path again. Connections, and the TLS handshakes before them, belong to `owner`.
///
/// A peer that has not finished its TLS handshake after `accept_timeout` is dropped.
pub(crate) fn serve(
    listener: UnixListener,
    tls: Arc<ServerConfig>,
    routes: Routes,
    accept_timeout: Duration,
    owner: &Owner,
    stop: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    // Each queued connection holds one of the permits, so the queue cannot be full.
    let (ready, incoming) = mpsc::channel(MAX_CONNECTIONS);
    owner.spawn(accept(listener, TlsAcceptor::from(tls), ready, accept_timeout, owner.clone()));
    async move {
        let incoming = ReceiverStream::new(incoming);
        let server = Server::builder().max_concurrent_streams(MAX_STREAMS).add_routes(routes);
        if let Err(error) = server.serve_with_incoming_shutdown(incoming, stop).await {
            tracing::warn!(error = %error, "a plugin connection's server ended");
        }
    }
}

async fn accept(
    listener: UnixListener,
    tls: TlsAcceptor,
    ready: mpsc::Sender<io::Result<Incoming>>,
    accept_timeout: Duration,
    owner: Owner,
) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(permit) = permits.clone().acquire_owned().await {
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(error = %error, "cannot accept a plugin's connection");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // In a task of its own: a peer that connects and says nothing must not hold the others up.
        let (tls, ready, own) = (tls.clone(), ready.clone(), owner.clone());
        owner.spawn(async move {
            match timeout(accept_timeout, tls.accept(socket)).await {
                Ok(Ok(stream)) => drop(ready.send(Ok(own.connection(stream, permit))).await),
                Ok(Err(error)) => tracing::debug!(error = %error, "refused a connection to a plugin's broker socket"),
                Err(_) => tracing::debug!("dropped a connection that did not finish its tls handshake"),
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::path::{Path, PathBuf};

    use rustls::pki_types::ServerName;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio_rustls::TlsConnector;
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;

    use super::*;
    use crate::tls::{Identity, SERVER_NAME};

    const LIMIT: Duration = Duration::from_secs(10);

    struct Served {
        folder: tempfile::TempDir,
        owner: Owner,
        client: Identity,
        server: Identity,
    }

    impl Served {
        /// The health service on a socket, for one client.
        fn start() -> Served {
            let folder = tempfile::tempdir().expect("a folder");
            let owner = Owner::default();
            let (client, server) = (Identity::generate().expect("made"), Identity::generate().expect("made"));
            let listener = UnixListener::bind(folder.path().join("s")).expect("bound");
            let tls = server.server_config(client.der()).expect("a configuration");
            let routes = Routes::new(tonic_health::server::health_reporter().1);
            owner.spawn(serve(listener, tls, routes, LIMIT, &owner, pending()));
            Served { folder, owner, client, server }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("s")
        }

        async fn raw(&self, path: &Path) -> tokio_rustls::client::TlsStream<UnixStream> {
            let tls = self.client.client_config(self.server.der()).expect("a configuration");
            let name = ServerName::try_from(SERVER_NAME).expect("a name");
            let stream = UnixStream::connect(path).await.expect("connected");
            TlsConnector::from(tls).connect(name, stream).await.expect("the right client")
        }
    }

    #[tokio::test]
    async fn a_dialled_server_answers_until_its_owner_ends() {
        let served = Served::start();
        let tls = served.client.client_config(served.server.der()).expect("a configuration");
        let owner = Owner::default();
        let channel = crate::dial::dial(served.path(), tls, owner.clone(), LIMIT).await.expect("connected");
        let mut health = HealthClient::new(channel);
        health.check(HealthCheckRequest::default()).await.expect("served");
        assert!(served.owner.end(LIMIT).await, "nothing of the server is left");
        health.check(HealthCheckRequest::default()).await.expect_err("no longer served");
        assert!(owner.end(LIMIT).await, "nothing of the client is left");
    }

    /// One HTTP/2 frame.
    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).expect("a short frame");
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// A header field as HPACK literal without index and Huffman coding.
    fn header(name: &str, value: &str) -> Vec<u8> {
        let length = |text: &str| u8::try_from(text.len()).expect("a short field");
        [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
    }

    #[tokio::test]
    async fn an_odd_authority_is_answered_or_refused_but_never_left_waiting() {
        let served = Served::start();
        for authority in ["/tmp/x.sock", "", "%2Ftmp%2Fx.sock", "localhost", "unused"] {
            let mut stream = served.raw(&served.path()).await;
            let fields = [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", "/grpc.health.v1.Health/Check"),
                (":authority", authority),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
            ];
            let block: Vec<u8> = fields.iter().flat_map(|(name, value)| header(name, value)).collect();
            // Settings, headers (flag: end of headers), and an empty gRPC message (flag: end of stream).
            let request = [frame(4, 0, 0, &[]), frame(1, 4, 1, &block), frame(0, 1, 1, &[0; 5])].concat();
            stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("written");
            stream.write_all(&request).await.expect("written");
            let kind = timeout(LIMIT, answer(&mut stream)).await.expect("no hang");
            // Headers, a reset of the stream, or a goodbye to the connection.
            assert!(matches!(kind, Some(1 | 3 | 7) | None), "{authority}: {kind:?}");
        }
    }

    /// The kind of the first frame that is no setting, ping or window update; `None` when the server hung up.
    async fn answer(stream: &mut tokio_rustls::client::TlsStream<UnixStream>) -> Option<u8> {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.ok()?;
            let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
            stream.read_exact(&mut vec![0; length]).await.ok()?;
            if !matches!(head[3], 4 | 6 | 8) {
                return Some(head[3]);
            }
        }
    }
}
