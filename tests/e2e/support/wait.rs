//! Waiting on a condition with a deadline; never a bare sleep.

use std::{future::Future, time::Duration};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How long a condition may take unless a case says otherwise. Generous: the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until `look` finds something, at most [`PATIENCE`].
#[track_caller]
pub fn eventually_some<T, F: Future<Output = Option<T>>>(
    what: &str,
    look: impl FnMut() -> F,
) -> impl Future<Output = T> {
    within(PATIENCE, what, look)
}

/// Waits until `look` is true, at most [`PATIENCE`].
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut look: impl FnMut() -> F) {
    within(PATIENCE, what, || {
        let looked = look();
        async move { looked.await.then_some(()) }
    })
    .await
}

/// Waits until `look` finds something, at most `limit`.
pub async fn within<T, F: Future<Output = Option<T>>>(limit: Duration, what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what}: not within {limit:?}");
        tokio::time::sleep(LOOK).await;
    }
}
