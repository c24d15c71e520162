//! The figures of one plugin, for whoever asks how it is: written by its actor and by the webhook edge, read at any time
//! without asking the actor. They outlive the actor and count from the host's start.
//!
//! The record with status and last error is not here: the registry has it.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use prometheus_client::metrics::histogram::Histogram;
use time::OffsetDateTime;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::{PluginActor, delivery::Line};
use crate::domain::{delivery::Counters, lifecycle::State};

/// Bounds of the latency histograms, in seconds: from what a plugin does at once to the webhook timeout of those with a
/// login.
const LATENCY_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 150.0];

/// The process of the present generation.
#[derive(Debug, Clone)]
pub struct Alive {
    /// Of the operating system.
    pub pid: u32,
    /// Wall time of its first good health check.
    pub started_at: OffsetDateTime,
    since: Instant,
    calls: TaskTracker,
}

impl Alive {
    /// A process that has just come up; `calls` counts what is under way in it.
    pub(super) fn new(pid: u32, calls: TaskTracker) -> Self {
        Self { pid, started_at: OffsetDateTime::now_utc(), since: Instant::now(), calls }
    }

    /// Seconds since it came up.
    pub fn uptime_seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    /// Webhook calls and the event that are being worked on.
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

/// How a webhook call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// The plugin's answer was relayed.
    Answered,
    /// The plugin was not running or had too many calls.
    Refused,
    /// The plugin failed, crashed or answered what cannot be sent.
    Failed,
    /// The deadline passed.
    TimedOut,
    /// The client hung up.
    Abandoned,
}

impl WebhookOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Answered, Self::Refused, Self::Failed, Self::TimedOut, Self::Abandoned];

    /// The label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The shared figures.
pub struct Vitals {
    kept: Mutex<Kept>,
    /// Latency of delivery attempts that the plugin acknowledged.
    pub acknowledged: Histogram,
    /// Latency of those that failed.
    pub unacknowledged: Histogram,
    /// Latency of webhook calls that reached the plugin.
    pub webhooks: Histogram,
    webhook_outcomes: [AtomicU64; WebhookOutcome::ALL.len()],
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
            webhooks: histogram(),
            webhook_outcomes: Default::default(),
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

    /// Webhook calls that ended so.
    pub fn webhooks_ended(&self, outcome: WebhookOutcome) -> u64 {
        self.webhook_outcomes[outcome as usize].load(Ordering::Relaxed)
    }

    /// Begins to measure a webhook call.
    pub fn begin_webhook(&self) -> WebhookWatch<'_> {
        WebhookWatch { vitals: self, since: Instant::now(), outcome: WebhookOutcome::Abandoned }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Measures one webhook call; dropped without an outcome it was abandoned.
pub struct WebhookWatch<'a> {
    vitals: &'a Vitals,
    since: Instant,
    outcome: WebhookOutcome,
}

impl WebhookWatch<'_> {
    /// The call ended.
    pub fn end(mut self, outcome: WebhookOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for WebhookWatch<'_> {
    fn drop(&mut self) {
        self.vitals.webhook_outcomes[self.outcome as usize].fetch_add(1, Ordering::Relaxed);
        if self.outcome != WebhookOutcome::Refused {
            self.vitals.webhooks.observe(self.since.elapsed().as_secs_f64());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_call_is_counted_once_by_its_end() {
        let vitals = Vitals::default();
        vitals.begin_webhook().end(WebhookOutcome::Answered);
        vitals.begin_webhook().end(WebhookOutcome::Refused);
        drop(vitals.begin_webhook());
        let ended: Vec<_> = WebhookOutcome::ALL.iter().map(|outcome| vitals.webhooks_ended(*outcome)).collect();
        assert_eq!(ended, [1, 1, 0, 0, 1]);
    }
}
