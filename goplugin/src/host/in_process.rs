//! A gRPC server and a channel to it inside one test, without a socket.

use hyper_util::rt::TokioIo;
use tokio_stream::StreamExt;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint, Server, Uri};

use crate::owned::Owner;

/// A channel to a server of `routes`, which runs until the channel is dropped.
pub(crate) async fn channel_to(routes: Routes) -> Channel {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let owner = Owner::default();
    let incoming =
        tokio_stream::once(Ok::<_, std::io::Error>(owner.connection(far, ()))).chain(tokio_stream::pending());
    tokio::spawn(Server::builder().add_routes(routes).serve_with_incoming(incoming));
    let mut near = Some(near);
    let connector = tower::service_fn(move |_: Uri| {
        let stream = near.take().ok_or(std::io::ErrorKind::ConnectionRefused);
        async move { Ok::<_, std::io::Error>(TokioIo::new(stream?)) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connector).await.expect("connected")
}
