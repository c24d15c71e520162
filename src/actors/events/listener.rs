//! Following the bus from outside of the actors: a bounded line of events, and the news that some did not fit.
//!
//! The bus never waits for a listener. What did not fit is counted; a listener that must not lose anything then looks
//! at the state that the events were about.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::mpsc;

use super::Event;
use crate::domain::subject::Pattern;

/// The bus's end.
pub struct Ear {
    pattern: Pattern,
    sender: mpsc::Sender<Arc<Event>>,
    missed: Arc<AtomicU64>,
}

/// The follower's end. Dropped, it is forgotten by the bus.
pub struct Listener {
    receiver: mpsc::Receiver<Arc<Event>>,
    missed: Arc<AtomicU64>,
}

/// What a listener hears.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// The next event.
    Event(Arc<Event>),
    /// So many events did not fit.
    Missed(u64),
}

pub(super) fn new(pattern: Pattern, room: usize) -> (Ear, Listener) {
    let (sender, receiver) = mpsc::channel(room.max(1));
    let missed = Arc::new(AtomicU64::new(0));
    (Ear { pattern, sender, missed: Arc::clone(&missed) }, Listener { receiver, missed })
}

impl Ear {
    /// Takes an event that matches; false when nobody listens any more.
    pub(super) fn hear(&self, event: &Arc<Event>) -> bool {
        if !crate::domain::subject::matches(self.pattern.as_str(), &event.subject) {
            return !self.sender.is_closed();
        }
        match self.sender.try_send(Arc::clone(event)) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
        }
    }
}

impl Listener {
    /// Waits for the next news; `None` when the bus is gone. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.take_missed() {
            Some(missed) => Some(missed),
            None => self.receiver.recv().await.map(Heard::Event),
        }
    }

    /// What waits already; `None` when nothing does.
    pub fn waiting(&mut self) -> Option<Heard> {
        self.take_missed().or_else(|| self.receiver.try_recv().ok().map(Heard::Event))
    }

    /// A full line has events in it, so whoever waits in [`Self::next`] comes by here soon.
    fn take_missed(&self) -> Option<Heard> {
        match self.missed.swap(0, Ordering::Relaxed) {
            0 => None,
            missed => Some(Heard::Missed(missed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(subject: &str) -> Arc<Event> {
        Arc::new(Event {
            id: uuid::Uuid::nil(),
            subject: subject.to_owned(),
            occurred_at: String::new(),
            workspace_id: String::new(),
            payload: None,
            published: tokio::time::Instant::now().into_std(),
        })
    }

    #[tokio::test]
    async fn a_listener_hears_what_matches_in_order_and_how_much_did_not_fit() {
        let (ear, mut listener) = new(Pattern::new("a.*"), 2);
        for subject in ["a.1", "b.1", "a.2", "a.3", "a.4"] {
            assert!(ear.hear(&event(subject)));
        }
        assert_eq!(listener.next().await, Some(Heard::Missed(2)));
        for subject in ["a.1", "a.2"] {
            let Some(Heard::Event(heard)) = listener.next().await else { panic!("an event") };
            assert_eq!(heard.subject, subject);
        }
        assert_eq!(listener.waiting(), None);
        drop(ear);
        assert_eq!(listener.next().await, None);
    }

    #[test]
    fn a_listener_that_is_gone_is_noticed() {
        let (ear, listener) = new(Pattern::new("a.*"), 1);
        drop(listener);
        assert!(!ear.hear(&event("a.1")) && !ear.hear(&event("b.1")));
    }
}
