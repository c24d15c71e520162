//! How far the host's stop is, for what is open meanwhile: streams end with its begin, everything else with its grace.
//!
//! [`super::server`] moves it on and knows the times.

use std::future::Future;

use tokio_util::sync::CancellationToken;

/// The stop of one server; clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    begun: CancellationToken,
    over: CancellationToken,
}

impl Stop {
    /// The same stop for one of the server's workers, whose requests then share no lock with those of other workers.
    pub(super) fn of_worker(&self) -> Self {
        Self { begun: self.begun.child_token(), over: self.over.child_token() }
    }

    /// The host stops: streams that would go on for ever are to end.
    pub(super) fn begin(&self) {
        self.begun.cancel();
    }

    /// The grace is over: whatever is open still is to be answered now.
    pub(super) fn end_grace(&self) {
        self.over.cancel();
    }

    /// Whether the host stops.
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Until the host stops.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + use<> {
        self.begun.clone().cancelled_owned()
    }

    /// Until the grace of the host's stop is over.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }

    /// What `work` comes to; `None` when the grace ends before, which drops the work. It costs no allocation.
    ///
    /// The end of the grace counts first: plugins are stopped with it, and what a call into one says then is of no use.
    pub async fn within_grace<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.over() => None,
            done = work => Some(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_ends_by_itself_while_there_is_grace_and_is_dropped_with_its_end() {
        let stop = Stop::default();
        assert_eq!(stop.within_grace(async { 7 }).await, Some(7));
        stop.begin();
        assert_eq!(stop.within_grace(async { 7 }).await, Some(7), "the begin of the stop cuts nothing off");
        let (held, dropped) = oneshot::channel::<()>();
        let mut open = Box::pin(stop.within_grace(async move {
            let _held = held;
            pending::<()>().await;
        }));
        assert_eq!(futures_util::poll!(&mut open), std::task::Poll::Pending);
        stop.end_grace();
        assert_eq!(open.await, None);
        assert!(dropped.await.is_err(), "the work is gone");
        assert_eq!(stop.within_grace(async { 7 }).await, None, "it is too late for more");
    }

    #[tokio::test]
    async fn who_waits_for_the_begin_is_told_by_every_clone() {
        let stop = Stop::default();
        let waiting = stop.clone().begun();
        assert_eq!((stop.has_begun(), stop.begun().now_or_never()), (false, None));
        stop.begin();
        waiting.await;
        assert_eq!((stop.has_begun(), stop.over().now_or_never()), (true, None));
        let worker = stop.of_worker();
        assert_eq!((worker.has_begun(), worker.over().now_or_never()), (true, None));
        stop.end_grace();
        worker.over().await;
    }
}
