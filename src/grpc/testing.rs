//! A gRPC connection in memory, for the tests of both halves.

use std::sync::Mutex;

use hyper_util::rt::TokioIo;
use tokio::{
    io::{DuplexStream, copy_bidirectional, duplex},
    task::JoinHandle,
};
use tonic::{
    service::Routes,
    transport::{Channel, Endpoint, Server},
};

const PIPE_BYTES: usize = 64 * 1024;

/// Serves `routes` at the far end of a pipe; the pipe breaks when the returned task is aborted.
pub fn serve(routes: Routes) -> (DuplexStream, JoinHandle<()>) {
    let (near, mut left) = duplex(PIPE_BYTES);
    let (mut right, far) = duplex(PIPE_BYTES);
    let incoming = tokio_stream::once(Ok::<_, std::io::Error>(far));
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming));
    let pipe = tokio::spawn(async move {
        let _ = copy_bidirectional(&mut left, &mut right).await;
    });
    (near, pipe)
}

/// A channel over one pipe; it cannot connect a second time.
pub async fn channel(pipe: DuplexStream, authority: &'static str) -> Channel {
    let pipe = Mutex::new(Some(pipe));
    let connector = tower::service_fn(move |_| {
        let pipe = pipe.lock().unwrap().take().map(TokioIo::new);
        async move { pipe.ok_or_else(|| std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) }
    });
    Endpoint::from_static(authority).connect_with_connector(connector).await.unwrap()
}
