//! Tasks and connections that belong to one plugin and end with it.
//!
//! Owns their cancellation and the wait for their end, nothing of what they do. tonic spawns its connection tasks
//! unowned; a connection here fails when its owner ends, and that ends the task behind it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::transport::server::Connected;

/// A set of tasks and connections with one end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Owner {
    tracker: TaskTracker,
    ended: CancellationToken,
}

impl Owner {
    /// Runs `task` until it is done or the owner ends, whichever is first.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        self.tracker.spawn(async move {
            ended.run_until_cancelled_owned(task).await;
        });
    }

    /// A connection that fails when the owner ends. `permit` is held for as long as it lives.
    pub(crate) fn connection<S, P>(&self, stream: S, permit: P) -> Connection<S, P> {
        Connection {
            stream,
            ended: Box::pin(self.ended.clone().cancelled_owned()),
            _alive: self.tracker.token(),
            _permit: permit,
        }
    }

    /// Waits until everything ended by itself, at most `limit`. Returns whether it did.
    pub(crate) async fn finished(&self, limit: Duration) -> bool {
        self.tracker.close();
        timeout(limit, self.tracker.wait()).await.is_ok()
    }

    /// Cancels everything and waits for it, at most `limit`: a handler that blocks its thread cannot be cancelled.
    /// Returns whether all of it ended.
    pub(crate) async fn end(&self, limit: Duration) -> bool {
        self.cancel();
        self.finished(limit).await
    }

    /// Cancels everything without waiting.
    pub(crate) fn cancel(&self) {
        self.ended.cancel();
    }
}

/// A byte stream that belongs to an [`Owner`].
pub(crate) struct Connection<S, P = ()> {
    stream: S,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    _alive: TaskTrackerToken,
    _permit: P,
}

impl<S, P> Connection<S, P> {
    /// An error once the owner has ended; registers the task to be woken by that.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.ended.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the plugin has ended")),
            Poll::Pending => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin, P: Unpin> AsyncRead for Connection<S, P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

// Only reading checks for the end: HTTP/2 always reads, and its connection task fails as a whole.
impl<S: AsyncWrite + Unpin, P: Unpin> AsyncWrite for Connection<S, P> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A peer that does not read would hold a tidy TLS goodbye up for ever.
        if self.check(context).is_err() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S, P> Connected for Connection<S, P> {
    type ConnectInfo = ();

    fn connect_info(&self) -> Self::ConnectInfo {}
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn the_end_cancels_tasks_and_fails_connections() {
        let owner = Owner::default();
        owner.spawn(pending());
        let (near, _far) = tokio::io::duplex(16);
        let mut connection = owner.connection(near, ());
        let reader = tokio::spawn(async move { connection.read_u8().await.map_err(|error| error.kind()) });
        assert!(owner.end(Duration::from_secs(5)).await);
        assert_eq!(reader.await.expect("no panic"), Err(io::ErrorKind::ConnectionAborted));
    }

    #[tokio::test]
    async fn a_connection_that_is_still_held_is_reported_as_not_ended() {
        let owner = Owner::default();
        let (near, _far) = tokio::io::duplex(16);
        let _held = owner.connection(near, ());
        assert!(!owner.end(Duration::from_millis(10)).await);
    }
}
