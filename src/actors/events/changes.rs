//! Lifecycle events on their way to the event log: a bounded line between actors, which never wait, and the one who
//! writes the log.
//!
//! At its bound the oldest goes: what comes last says how a plugin stands. What goes is counted; the writer tells.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;

use super::Relayed;

/// The bus's end.
pub struct Line {
    shared: Arc<Shared>,
}

/// The writer's end.
pub struct Changes {
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<VecDeque<Relayed>>,
    room: usize,
    dropped: AtomicU64,
    news: Notify,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Relayed>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn new(room: usize) -> (Line, Changes) {
    let (waiting, dropped, news) = (Mutex::default(), AtomicU64::new(0), Notify::new());
    let shared = Arc::new(Shared { waiting, room: room.max(1), dropped, news });
    (Line { shared: Arc::clone(&shared) }, Changes { shared })
}

impl Line {
    /// Takes an event; the oldest goes when there is no room.
    pub(super) fn put(&self, event: Relayed) {
        let mut waiting = self.shared.waiting();
        if waiting.len() >= self.shared.room {
            waiting.pop_front();
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
        waiting.push_back(event);
        drop(waiting);
        self.shared.news.notify_one();
    }
}

impl Changes {
    /// Waits until there may be an event to take. Dropping the future loses nothing.
    pub async fn arrived(&self) {
        self.shared.news.notified().await;
    }

    /// The oldest event that waits.
    pub fn take(&self) -> Option<Relayed> {
        self.shared.waiting().pop_front()
    }

    /// How many went since this was asked last.
    pub fn take_dropped(&self) -> u64 {
        self.shared.dropped.swap(0, Ordering::Relaxed)
    }
}
