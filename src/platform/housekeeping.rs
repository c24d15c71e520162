//! Deleting what is kept for a time only: old events of the log and old idempotency keys, a little at a time.
//!
//! A round comes with time, and early when much was written to the log: whoever writes fast must not fill the disk between
//! two rounds.

use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{PlatformError, publisher};
use crate::{
    config::{Limits, Timing},
    store::platform::{PlatformStore, Retention},
};

/// Most rows that one transaction deletes: others write between two of them.
const CHUNK: u64 = 1000;

/// A round comes early when so large a part of the log's bound was written: an eighth.
const EARLY: u64 = 8;

/// Deletes what is too old or too much.
pub struct Housekeeping {
    store: PlatformStore,
    interval: Duration,
    look: Duration,
    event_age: Duration,
    event_bytes: u64,
    key_age: Duration,
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
            stop,
        }
    }

    /// Runs until it is stopped.
    pub async fn run(self) {
        let (mut pause, mut written) = (self.interval, self.store.written_bytes());
        while self.wait(pause, written).await {
            // Before the round: it may miss what is written while it goes on.
            written = self.store.written_bytes();
            pause = match self.round(OffsetDateTime::now_utc()).await {
                Ok(true) => self.look,
                Ok(false) => self.interval,
                Err(error) => {
                    tracing::warn!(%error, "old events and idempotency keys were not deleted");
                    self.interval
                }
            };
        }
    }

    /// Waits for the next round, for `pause` at most; false when there is none. So many bytes were `written` before the
    /// last one.
    async fn wait(&self, pause: Duration, written: u64) -> bool {
        let due = Instant::now() + pause;
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.look) => {}
                () = self.stop.cancelled() => return false,
            }
            if Instant::now() >= due || self.store.written_bytes() - written > self.event_bytes / EARLY {
                return true;
            }
        }
    }

    /// Deletes everything that may go now; whether there are events that should go and are not published yet.
    pub async fn round(&self, now: OffsetDateTime) -> Result<bool, PlatformError> {
        let published = self.store.event_cursor(publisher::CURSOR).await?;
        let keep = Retention { before: now - self.event_age, bytes: self.event_bytes, limit: CHUNK };
        let until = self.store.prunable_until(keep).await?.unwrap_or(0);
        while self.store.delete_events(until.min(published), CHUNK).await? == CHUNK && !self.stop.is_cancelled() {}
        let keys_before = now - self.key_age;
        while self.store.forget_keys(keys_before, CHUNK).await? == CHUNK && !self.stop.is_cancelled() {}
        Ok(until > published)
    }
}
