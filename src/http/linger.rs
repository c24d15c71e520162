//! Keeps a request's unread body alive until the answer is sent.
//!
//! When a handler answers early (401, 413 …) and drops the body, actix-http goes on reading a chunked body for as long
//! as the client sends. While somebody holds the body it closes instead: answer, then a bounded time of reading and
//! throwing away (`timing.linger`), then the end of the connection. So the client sees the answer and not a reset
//! (field case 47), and cannot keep the host reading for ever. This middleware is that somebody.

use std::{
    cell::RefCell,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use actix_web::{
    Error, HttpMessage,
    body::{BodySize, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    error::PayloadError,
    http::{
        ConnectionType, StatusCode,
        header::{self, HeaderMap},
    },
    middleware::Next,
    web::Bytes,
};
use futures_util::{Stream, StreamExt, stream};

use super::ws;

/// The middleware.
pub async fn hold_unread_body(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let upgrade = request.headers().contains_key(header::UPGRADE);
    if upgrade && request.path() == ws::PATH {
        let mut answer = next.call(request).await?.map_into_boxed_body();
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            answer.response_mut().head_mut().set_connection_type(ConnectionType::Close);
        }
        return Ok(answer);
    }
    let payload = request.take_payload();
    if matches!(payload, Payload::None) {
        return Ok(next.call(request).await?.map_into_boxed_body());
    }
    let payload = if upgrade { declared_part(request.headers(), payload) } else { payload };
    let shared = Shared(Rc::new(RefCell::new(Unread { payload, ended: false })));
    request.set_payload(Payload::Stream { payload: Box::pin(shared.clone()) });
    let mut answer = next.call(request).await?;
    if upgrade {
        // What follows the request is not read as another one.
        answer.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    if shared.0.borrow().ended {
        return Ok(answer.map_into_boxed_body());
    }
    Ok(answer.map_body(|_, body| Holding { body: body.boxed(), _unread: shared }.boxed()))
}

/// Elsewhere the host offers no upgrade, so a request that asks for one is answered as if it did not. actix would take
/// everything that follows such a request for its body: only as much is as it declares.
fn declared_part(headers: &HeaderMap, payload: Payload) -> Payload {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let rest = stream::unfold((payload, declared.unwrap_or(0)), |(mut payload, left)| async move {
        if left == 0 {
            return None;
        }
        let piece = payload.next().await?.map(|mut piece| piece.split_to(left.min(piece.len())));
        let left = piece.as_ref().map_or(0, |piece| left - piece.len());
        Some((piece, (payload, left)))
    });
    Payload::Stream { payload: Box::pin(rest) }
}

/// One body with two owners: the handler reads it, the answer holds it.
#[derive(Clone)]
struct Shared(Rc<RefCell<Unread>>);

struct Unread {
    payload: Payload,
    /// Everything was read; nothing is left to hold.
    ended: bool,
}

impl Stream for Shared {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut unread = self.0.borrow_mut();
        let piece = Pin::new(&mut unread.payload).poll_next(cx);
        unread.ended |= matches!(piece, Poll::Ready(None));
        piece
    }
}

/// An answer's body that keeps the request's.
struct Holding {
    body: BoxBody,
    _unread: Shared,
}

impl MessageBody for Holding {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, time::Duration};

    use actix_web::{App, HttpResponse, HttpServer, dev::ServerHandle, middleware::from_fn, web};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
        time::{Instant, timeout},
    };

    use super::*;

    /// The server's clock has half a second's steps, so that up to that much is missing.
    const LINGER: Duration = Duration::from_millis(1200);
    const SHORTEST: Duration = Duration::from_millis(500);

    /// A server whose handler answers 413 without reading.
    fn refusing_server() -> (SocketAddr, ServerHandle) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let refuse = || async { HttpResponse::PayloadTooLarge().body("too large") };
        let server =
            HttpServer::new(move || App::new().default_service(web::to(refuse)).wrap(from_fn(hold_unread_body)))
                .workers(1)
                .client_disconnect_timeout(LINGER)
                .disable_signals()
                .listen(listener)
                .unwrap()
                .run();
        let handle = server.handle();
        tokio::spawn(server);
        (address, handle)
    }

    #[actix_web::test]
    async fn a_client_that_sends_on_sees_the_answer_and_then_the_end_of_the_connection() {
        let (address, server) = refusing_server();
        for head in ["Transfer-Encoding: chunked", "Content-Length: 1000000000"] {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut reader, mut writer) = stream.into_split();
            writer.write_all(format!("POST / HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n").as_bytes()).await.unwrap();
            // 64 KiB pieces for as long as the host takes them.
            let sender = tokio::spawn(async move {
                let piece = [b"10000\r\n".as_slice(), &[b'a'; 65536], b"\r\n"].concat();
                while writer.write_all(&piece).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            });
            let begin = Instant::now();
            let mut answer = Vec::new();
            let end = timeout(Duration::from_secs(10), reader.read_to_end(&mut answer)).await.unwrap();
            let text = String::from_utf8_lossy(&answer);
            assert!(text.starts_with("HTTP/1.1 413 ") && text.ends_with("too large"), "{head}: {text}");
            assert!(text.to_ascii_lowercase().contains("connection: close"), "{head}: {text}");
            // An orderly end, or a reset after the answer was read; the host stops taking after the linger time.
            drop(end);
            timeout(Duration::from_secs(10), sender).await.unwrap().unwrap();
            assert!(begin.elapsed() >= SHORTEST, "{head}: closed at once");
        }
        server.stop(false).await;
    }

    #[actix_web::test]
    async fn a_body_that_was_read_keeps_the_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let echo = |body: web::Bytes| async move { body };
        let server = HttpServer::new(move || App::new().default_service(web::to(echo)).wrap(from_fn(hold_unread_body)))
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run();
        let handle = server.handle();
        tokio::spawn(server);
        let mut stream = TcpStream::connect(address).await.unwrap();
        for _ in 0..2 {
            let request = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\nhi") {
                let read = timeout(Duration::from_secs(10), stream.read_buf(&mut answer)).await.unwrap().unwrap();
                assert_ne!(read, 0, "closed: {}", String::from_utf8_lossy(&answer));
            }
        }
        handle.stop(false).await;
    }
}
