//! Deleting what is kept for a time only: old events of the log, old idempotency keys and tokens of git; and what is
//! left of workspaces, tasks and sessions whose deletion was cut off.
//!
//! A round comes with time, and early when much was written to the log or for idempotency keys: whoever writes fast
//! must not fill the disk between two rounds.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{PlatformError, publisher, sessions::Sessions, tasks::Tasks, workspaces::Workspaces};
use crate::{
    config::{Limits, Timing},
    store::platform::{Holder, PlatformStore, Retention},
};

/// Most rows that one transaction deletes: others write between two of them.
const CHUNK: u64 = 1000;

/// A round comes early when so large a part of a bound was written: an eighth.
const EARLY: u64 = 8;

/// Deletes what is too old or too much.
pub struct Housekeeping {
    store: PlatformStore,
    interval: Duration,
    look: Duration,
    event_age: Duration,
    event_bytes: u64,
    key_age: Duration,
    key_bytes: u64,
    stop: CancellationToken,
}

impl Housekeeping {
    /// With the host's settings, until `stop`.
    pub fn new(store: PlatformStore, timing: &Timing, limits: &Limits, stop: CancellationToken) -> Self {
        Self {
            store,
            interval: timing.housekeeping_interval,
            look: timing.event_poll.min(timing.housekeeping_interval),
            event_age: timing.event_log_age,
            event_bytes: limits.event_log_bytes,
            key_age: timing.idempotency_age,
            key_bytes: limits.idempotency_bytes,
            stop,
        }
    }

    /// Runs until it is stopped, in the middle of a round too: what it has begun is rolled back.
    pub async fn run(self) {
        tokio::select! {
            () = self.rounds() => {}
            () = self.stop.cancelled() => {}
        }
    }

    async fn rounds(&self) {
        let (mut pause, mut written) = (self.interval, self.written());
        loop {
            self.wait(pause, written).await;
            // Before the round: it may miss what is written while it goes on.
            written = self.written();
            pause = match self.round(OffsetDateTime::now_utc()).await {
                Ok(true) => self.look,
                Ok(false) => self.interval,
                Err(error) => {
                    tracing::warn!(%error, "a round of deleting what is old was not finished; the next one goes on");
                    self.interval
                }
            };
        }
    }

    /// Bytes of events and of keys so far.
    fn written(&self) -> [u64; 2] {
        [self.store.written_bytes(), self.store.answered_bytes()]
    }

    /// Waits for the next round, for `pause` at most. So many bytes were `written` before the last one.
    async fn wait(&self, pause: Duration, written: [u64; 2]) {
        let due = Instant::now() + pause;
        loop {
            tokio::time::sleep(self.look).await;
            let [events, keys] = self.written();
            let much = events - written[0] > self.event_bytes / EARLY || keys - written[1] > self.key_bytes / EARLY;
            if much || Instant::now() >= due {
                return;
            }
        }
    }

    /// Deletes everything that may go now; whether there are events that should go and are not published yet.
    pub async fn round(&self, now: OffsetDateTime) -> Result<bool, PlatformError> {
        let published = self.store.event_cursor(publisher::CURSOR).await?;
        let keep = Retention { before: now - self.event_age, bytes: self.event_bytes, limit: CHUNK };
        let until = self.store.prunable_until(keep).await?.unwrap_or(0);
        while self.store.delete_events(until.min(published), CHUNK).await? == CHUNK {}
        let too_old = now - self.key_age;
        while self.store.forget_keys(too_old, CHUNK).await? >= CHUNK {}
        if let Some(too_much) = self.store.excess_keys(self.key_bytes).await? {
            while self.store.forget_keys(too_much, CHUNK).await? >= CHUNK {}
        }
        self.store.forget_git_tokens(now).await?;
        Workspaces::new(self.store.clone()).finish_deletions().await?;
        self.finish_deletions(now).await?;
        Ok(until > published)
    }

    /// Goes on with deletions of tasks and sessions that were begun, by an earlier host or by a request that was cut
    /// off. One in which something was deleted within the interval is left to whoever waits for it. One that fails
    /// keeps no other one waiting.
    async fn finish_deletions(&self, now: OffsetDateTime) -> Result<(), PlatformError> {
        let (tasks, sessions) = (Tasks::new(self.store.clone()), Sessions::new(self.store.clone()));
        for unfinished in self.store.unfinished_deletions(now - self.interval).await? {
            let (task, session, finished) = match unfinished.holder()? {
                holder @ (Holder::Task(id, _) | Holder::Owned(id, _)) => {
                    (Some(id), None, tasks.finish_deletion(holder).await)
                }
                Holder::Session(id) => (None, Some(id), sessions.finish_deletion(id).await),
                // Its mark is in its row.
                Holder::Workspace(_) => continue,
            };
            match finished {
                Ok(()) => tracing::info!(task.id = task, session.id = session, "what was left of a deletion is gone"),
                Err(error) => tracing::error!(
                    task.id = task, session.id = session, %error,
                    "a deletion that was cut off is not finished; it is tried again"
                ),
            }
        }
        Ok(())
    }
}
