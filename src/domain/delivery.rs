//! The ordered delivery queue of one plugin and its ring buffer (contract/lifecycle.md §7 and §10 rows 7–13), pure.
//!
//! One line of events, oldest first, in two modes. *Live*: the plugin is healthy, one event at a time is in flight, the
//! line is bounded by `queue_events`. *Buffered*: it is not; the event in flight went back to the front, the newest
//! `buffer_events` stay and only for `buffer_ttl` since their publishing. Because it is one line, what was buffered is
//! delivered before what came later, always.
//!
//! Time is an argument. The queue keeps and orders; sending is the plugin actor's part.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Bounds and waits; from `config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Events kept while the plugin is healthy but slow.
    pub queue_events: usize,
    /// Events kept while it is not healthy.
    pub buffer_events: usize,
    /// Life of a buffered event since its publishing.
    pub buffer_ttl: Duration,
    /// Waits before the repeated attempts; their count plus one is the number of attempts.
    pub retries: Vec<Duration>,
}

/// What became of events, since the queue was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Acknowledged by the plugin.
    pub delivered: u64,
    /// Given up after the last attempt.
    pub failed: u64,
    /// Dropped, oldest first, because a bound was reached.
    pub overflowed: u64,
    /// Dropped because they were buffered longer than their life.
    pub expired: u64,
}

impl std::ops::Add for Counters {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            delivered: self.delivered + more.delivered,
            failed: self.failed + more.failed,
            overflowed: self.overflowed + more.overflowed,
            expired: self.expired + more.expired,
        }
    }
}

#[derive(Debug)]
struct Waiting<E> {
    event: E,
    published: Instant,
    attempts: usize,
}

/// An attempt to make: the event and a ticket that its outcome must name.
#[derive(Debug, PartialEq, Eq)]
pub struct Attempt<E> {
    /// What to send.
    pub event: E,
    /// Names this attempt; an outcome with another ticket is late and ignored.
    pub ticket: u64,
    /// 1 for the first attempt of this event.
    pub number: usize,
}

/// What follows from a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum AfterFailure<E> {
    /// The outcome was late: the plugin's state changed meanwhile.
    Stale,
    /// Call [`DeliveryQueue::retry_due`] with the ticket after this wait.
    RetryAfter(Duration, u64),
    /// That was the last attempt.
    GaveUp(E),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// Nothing of the line's first event is under way.
    Free,
    /// The first event is being sent under this ticket.
    InFlight(u64),
    /// The first event waits for its retry under this ticket.
    Resting(u64),
}

/// The queue. `E` is cheap to clone (an `Arc`).
#[derive(Debug)]
pub struct DeliveryQueue<E> {
    policy: Policy,
    line: VecDeque<Waiting<E>>,
    head: Head,
    live: bool,
    next_ticket: u64,
    counters: Counters,
}

impl<E: Clone> DeliveryQueue<E> {
    /// An empty queue in buffered mode.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            line: VecDeque::new(),
            head: Head::Free,
            live: false,
            next_ticket: 0,
            counters: Counters::default(),
        }
    }

    /// Adds an event at the end. At the bound the oldest that is not in flight is dropped and counted.
    pub fn push(&mut self, event: E, now: Instant) {
        self.line.push_back(Waiting { event, published: now, attempts: 0 });
        if !self.live {
            self.expire(now);
        }
        self.trim();
    }

    /// The next attempt to make, if the plugin is healthy and nothing is in flight or resting.
    pub fn next_attempt(&mut self) -> Option<Attempt<E>> {
        if !self.live || self.head != Head::Free {
            return None;
        }
        let first = self.line.front()?;
        let attempt = Attempt { event: first.event.clone(), ticket: self.next_ticket, number: first.attempts + 1 };
        self.head = Head::InFlight(self.next_ticket);
        self.next_ticket += 1;
        Some(attempt)
    }

    /// Whether [`Self::next_attempt`] would give one.
    pub fn is_due(&self) -> bool {
        self.live && self.head == Head::Free && !self.line.is_empty()
    }

    /// The plugin acknowledged. False when the outcome is late.
    pub fn acknowledged(&mut self, ticket: u64) -> bool {
        if self.head != Head::InFlight(ticket) {
            return false;
        }
        self.line.pop_front();
        self.head = Head::Free;
        self.counters.delivered += 1;
        true
    }

    /// The attempt failed.
    pub fn failed(&mut self, ticket: u64) -> AfterFailure<E> {
        if self.head != Head::InFlight(ticket) {
            return AfterFailure::Stale;
        }
        match self.count_attempt() {
            Some(event) => AfterFailure::GaveUp(event),
            None => {
                let attempts = self.line.front().map_or(1, |first| first.attempts);
                self.head = Head::Resting(ticket);
                AfterFailure::RetryAfter(self.policy.retries[attempts - 1], ticket)
            }
        }
    }

    /// The wait before a retry is over.
    pub fn retry_due(&mut self, ticket: u64) {
        if self.head == Head::Resting(ticket) {
            self.head = Head::Free;
        }
    }

    /// The plugin became healthy: what is buffered goes first, without waiting for a retry delay.
    pub fn resume(&mut self, now: Instant) {
        if self.live {
            return;
        }
        self.expire(now);
        self.live = true;
        self.head = Head::Free;
    }

    /// The plugin is not healthy any more. An event in flight goes back to the front; when the plugin *crashed* under
    /// it, that was an attempt, and after the last one the event is returned as given up.
    pub fn suspend(&mut self, crashed: bool, now: Instant) -> Option<E> {
        let in_flight = matches!(self.head, Head::InFlight(_));
        let given_up = if in_flight && crashed { self.count_attempt() } else { None };
        self.head = Head::Free;
        self.live = false;
        self.expire(now);
        self.trim();
        given_up
    }

    /// Forgets every waiting event: the plugin was disabled or removed. Returns how many there were.
    pub fn clear(&mut self) -> usize {
        let forgotten = self.line.len();
        self.line.clear();
        self.head = Head::Free;
        self.live = false;
        forgotten
    }

    /// Events that wait, the one in flight included.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether nothing waits and nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Whether the first event is being sent now.
    pub fn is_in_flight(&self) -> bool {
        matches!(self.head, Head::InFlight(_))
    }

    /// Whether the plugin is healthy; otherwise what waits is buffered.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// What became of events so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Counts an attempt of the first event; when it was the last, removes and returns the event.
    fn count_attempt(&mut self) -> Option<E> {
        let first = self.line.front_mut()?;
        first.attempts += 1;
        if first.attempts <= self.policy.retries.len() {
            return None;
        }
        self.head = Head::Free;
        self.counters.failed += 1;
        self.line.pop_front().map(|given_up| given_up.event)
    }

    fn expire(&mut self, now: Instant) {
        let ttl = self.policy.buffer_ttl;
        let before = self.line.len();
        self.line.retain(|waiting| now.saturating_duration_since(waiting.published) < ttl);
        self.counters.expired += (before - self.line.len()) as u64;
    }

    fn trim(&mut self) {
        let bound = if self.live { self.policy.queue_events } else { self.policy.buffer_events };
        // An event that is in flight or resting keeps its place: removing it would not un-send it.
        let kept_heads = usize::from(self.head != Head::Free);
        while self.line.len() > bound.max(kept_heads) {
            self.line.remove(kept_heads);
            self.counters.overflowed += 1;
        }
    }
}

#[cfg(test)]
mod tests;
