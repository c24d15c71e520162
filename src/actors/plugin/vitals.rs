//! The figures of one plugin, for whoever asks how it is: written by its actor and by the edges that call it, read at
//! any time without asking the actor. They outlive the actor and count from the host's start.
//!
//! The record with status and last error is not here: the registry has it.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use prometheus_client::metrics::histogram::Histogram;
use time::OffsetDateTime;
use tokio::time::Instant;

use super::{
    PluginActor,
    calls::{CallFigures, CallKind, CallWatch, LATENCY_BUCKETS, UnderWay},
    delivery::Line,
};
use crate::domain::{delivery::Counters, lifecycle::State};

/// The process of the present generation.
#[derive(Debug, Clone)]
pub struct Alive {
    /// Of the operating system.
    pub pid: u32,
    /// Wall time of its first good health check.
    pub started_at: OffsetDateTime,
    since: Instant,
    calls: UnderWay,
}

impl Alive {
    /// A process that has just come up; `calls` counts what is under way in it.
    pub(super) fn new(pid: u32, calls: UnderWay) -> Self {
        Self { pid, started_at: OffsetDateTime::now_utc(), since: Instant::now(), calls }
    }

    /// Seconds since it came up.
    pub fn uptime_seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// Calls of every kind and the event that are being worked on.
    pub fn calls_in_flight(&self) -> usize {
        self.calls.len()
    }
}

/// A moment's figures.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// `None` while no process runs.
    pub process: Option<Alive>,
    /// Successful automatic restarts since the host's start.
    pub restarts: u64,
    /// When the host tries again by itself.
    pub next_restart_at: Option<OffsetDateTime>,
    /// Events that wait, the one in flight included.
    pub waiting: usize,
    /// Whether they wait for a healthy plugin; otherwise they are buffered for one that is not.
    pub healthy: bool,
    /// What became of events.
    pub counters: Counters,
    /// The last acknowledged event.
    pub last_delivery_at: Option<OffsetDateTime>,
}

/// The shared figures.
pub struct Vitals {
    kept: Mutex<Kept>,
    /// Latency of delivery attempts that the plugin acknowledged.
    pub acknowledged: Histogram,
    /// Latency of those that failed.
    pub unacknowledged: Histogram,
    calls: [CallFigures; CallKind::ALL.len()],
}

/// What the actor wrote down, and what is read where it changes: a message or a lock for each delivery would slow it.
#[derive(Default)]
struct Kept {
    /// Those of events are of earlier actors of the plugin.
    figures: Figures,
    /// Where the present actor's events wait.
    line: Option<Line>,
}

impl Kept {
    fn now(&self) -> Figures {
        let mut figures = self.figures.clone();
        if let Some(line) = &self.line {
            let line = line.lock();
            figures.waiting = line.len();
            figures.healthy = line.is_live();
            figures.counters = figures.counters + line.counters();
            figures.last_delivery_at = line.delivered_at().or(figures.last_delivery_at);
        }
        figures
    }
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vitals").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

impl Default for Vitals {
    fn default() -> Self {
        let histogram = || Histogram::new(LATENCY_BUCKETS);
        Self {
            kept: Mutex::default(),
            acknowledged: histogram(),
            unacknowledged: histogram(),
            calls: Default::default(),
        }
    }
}

impl Vitals {
    /// A copy of the present figures.
    pub fn figures(&self) -> Figures {
        self.lock().now()
    }

    /// From now on the events of this line are counted too; those of the line before it stay counted.
    pub(super) fn follow(&self, line: &Line) {
        let mut kept = self.lock();
        kept.figures = kept.now();
        kept.line = Some(line.clone());
    }

    /// The figures of calls of this kind.
    pub fn calls(&self, kind: CallKind) -> &CallFigures {
        &self.calls[kind as usize]
    }

    /// Begins to measure a call.
    pub fn begin(&self, kind: CallKind) -> CallWatch<'_> {
        self.calls(kind).begin()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginActor {
    /// Shows what changed; called at the end of everything that changes it.
    pub(super) fn show_vitals(&self) {
        let figures = &mut self.vitals.lock().figures;
        figures.process = self.running.as_ref().map(|running| running.alive.clone());
        if *self.lifecycle.state() != State::Waiting {
            figures.next_restart_at = None;
        }
    }

    pub(super) fn show_restart_at(&self, next: OffsetDateTime) {
        self.vitals.lock().figures.next_restart_at = Some(next);
    }

    pub(super) fn show_restarted(&self) {
        self.vitals.lock().figures.restarts += 1;
    }
}
