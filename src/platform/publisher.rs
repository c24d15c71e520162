//! The one reader of the event log that feeds the bus, in the order of the commits.
//!
//! It is woken by each change of this host and looks by itself now and then. How far it has come is saved at most once
//! a `timing.event_poll` and at the stop: after a crash the events of that time are published again, with their ids,
//! and none is lost.

use std::{sync::Arc, time::Duration};

use kandev_proto::struct_from_json;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{PlatformError, events::Logged};
use crate::{
    actors::events::{EventBusHandle, Relayed},
    store::platform::PlatformStore,
};

/// The publisher's own row among the cursors of the log.
pub(super) const CURSOR: &str = "bus";

/// Most events that are read and published at once: with the largest payloads they are some ten MiB.
const BATCH: u64 = 32;

/// Reads the log and feeds the bus.
pub struct Publisher {
    store: PlatformStore,
    bus: EventBusHandle,
    committed: Arc<Notify>,
    poll: Duration,
    stop: CancellationToken,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    published: i64,
    saved: i64,
}

impl Publisher {
    /// `poll` is the pause between two looks, and between two attempts while the database is not available;
    /// `stop` has it save its place and end, also while it waits for the database; what is in the log then is published
    /// at the next start.
    pub fn new(store: PlatformStore, bus: EventBusHandle, poll: Duration, stop: CancellationToken) -> Self {
        let committed = store.committed();
        Self { store, bus, committed, poll, stop }
    }

    /// Runs until it is stopped. Whoever is to get the events must have subscribed before.
    pub async fn run(self) {
        let Some(begun) = self.begin().await else { return };
        let mut progress = Progress { published: begun, saved: begun };
        let mut save_at = Instant::now() + self.poll;
        let mut told = false;
        let publishing = async {
            loop {
                let more = match self.publish(&mut progress).await {
                    Ok(more) => {
                        told = false;
                        more
                    }
                    Err(error) => {
                        if !std::mem::replace(&mut told, true) {
                            tracing::warn!(%error, "events wait in the log");
                        }
                        false
                    }
                };
                if Instant::now() >= save_at {
                    self.save(&mut progress).await;
                    save_at = Instant::now() + self.poll;
                }
                if more {
                    continue;
                }
                tokio::select! {
                    () = self.committed.notified(), if !told => {}
                    () = tokio::time::sleep(self.poll) => {}
                }
            }
        };
        tokio::select! {
            () = publishing => {}
            () = self.stop.cancelled() => {}
        }
        self.save(&mut progress).await;
    }

    async fn begin(&self) -> Option<i64> {
        let begin = async {
            loop {
                match self.store.event_cursor(CURSOR).await {
                    Ok(seq) => return seq,
                    Err(error) => tracing::warn!(%error, "the event log cannot be read"),
                }
                tokio::time::sleep(self.poll).await;
            }
        };
        tokio::select! {
            seq = begin => Some(seq),
            () = self.stop.cancelled() => None,
        }
    }

    /// Publishes what is next; whether there was anything.
    async fn publish(&self, progress: &mut Progress) -> Result<bool, PlatformError> {
        let (events, last) = self.store.events_after(progress.published, BATCH).await?;
        let Some(last) = last else { return Ok(false) };
        for event in events {
            self.bus.relay(relayed(event));
        }
        progress.published = last;
        Ok(true)
    }

    async fn save(&self, progress: &mut Progress) {
        if progress.saved == progress.published {
            return;
        }
        match self.store.move_event_cursor(CURSOR, progress.published).await {
            Ok(()) => progress.saved = progress.published,
            Err(error) => tracing::warn!(%error, "the place in the event log was not saved; events may come twice"),
        }
    }
}

fn relayed(event: Logged) -> Relayed {
    Relayed {
        id: event.id,
        subject: event.subject,
        workspace_id: event.workspace_id,
        payload: Some(struct_from_json(event.payload)),
        at: event.created_at,
        about: event.about,
    }
}
