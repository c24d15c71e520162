//! Work that must finish although its client hangs up: it runs on the host's runtime, not in the connection, and a
//! stop waits for it.

use std::{future::Future, time::Duration};

use tokio::{runtime::Handle, time::timeout};
use tokio_util::task::TaskTracker;

use super::ApiError;

/// The tracked tasks of one server. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Tasks {
    runtime: Handle,
    tracker: TaskTracker,
}

impl Tasks {
    /// Tasks will run on `runtime`, which must outlive the server.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, tracker: TaskTracker::new() }
    }

    /// Runs `work` to its end whatever becomes of the caller, and waits for it.
    ///
    /// # Errors
    /// [`ApiError::Stopping`] when the host takes no more work, [`ApiError::Lost`] when `work` panicked.
    pub async fn finish<T, E>(&self, work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, ApiError>
    where
        T: Send + 'static,
        E: Send + 'static,
        ApiError: From<E>,
    {
        if self.tracker.is_closed() {
            return Err(ApiError::Stopping);
        }
        let span = tracing::Span::current();
        let work = tracing::Instrument::instrument(work, span);
        match self.tracker.spawn_on(work, &self.runtime).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ApiError::Lost),
        }
    }

    /// Takes no more work and waits for what is under way, at most `deadline`. Gives the number of unfinished tasks.
    pub async fn close(&self, deadline: Duration) -> usize {
        self.tracker.close();
        match timeout(deadline, self.tracker.wait()).await {
            Ok(()) => 0,
            Err(_) => self.tracker.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_its_caller_is_gone_and_a_close_waits_for_it() {
        let tasks = Tasks::new(Handle::current());
        let (go, gone) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        let mut caller = Box::pin(tasks.finish(async move {
            gone.await.ok();
            done.send(()).ok();
            Ok::<_, ApiError>(())
        }));
        assert!(futures_util::poll!(&mut caller).is_pending());
        drop(caller);
        assert_eq!(tasks.close(Duration::from_millis(10)).await, 1);
        go.send(()).unwrap();
        assert_eq!(tasks.close(Duration::from_secs(5)).await, 0);
        assert_eq!(finished.await, Ok(()));
    }

    #[tokio::test]
    async fn work_is_refused_after_the_close() {
        let tasks = Tasks::new(Handle::current());
        tasks.close(Duration::ZERO).await;
        let refused = tasks.finish(async { Ok::<_, ApiError>(()) }).await;
        assert!(matches!(refused, Err(ApiError::Stopping)));
    }

    #[tokio::test]
    async fn work_that_panics_is_lost_and_nothing_else() {
        let tasks = Tasks::new(Handle::current());
        let lost = tasks.finish(async { std::panic::panic_any(()) as Result<(), ApiError> }).await;
        assert!(matches!(lost, Err(ApiError::Lost)));
        assert_eq!(tasks.finish(async { Ok::<_, ApiError>(7) }).await.unwrap(), 7);
    }
}
