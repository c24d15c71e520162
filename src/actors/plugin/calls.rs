//! Kinds of calls into a plugin, what is counted of each, and what of them a stop waits for.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus_client::metrics::histogram::Histogram;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::config::Limits;

/// Bounds of the latency histograms, in seconds: from what a plugin does at once to the webhook timeout of those with a
/// login.
pub(super) const LATENCY_BUCKETS: [f64; 14] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 150.0];

/// Why the plugin is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// An external system's request.
    Webhook,
    /// A user's action.
    Action,
    /// An agent's tool.
    Tool,
    /// A search for references, or the question whether some may be used.
    Reference,
    /// A git credential.
    Credential,
}

impl CallKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Webhook, Self::Action, Self::Tool, Self::Reference, Self::Credential];

    /// What several of them are called.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Webhook => "webhook calls",
            Self::Action => "actions",
            Self::Tool => "tool calls",
            Self::Reference => "reference calls",
            Self::Credential => "credential calls",
        }
    }

    /// How many may be under way in one plugin.
    pub(super) fn bound(self, limits: &Limits) -> usize {
        match self {
            Self::Webhook => limits.webhook_concurrency,
            Self::Action => limits.action_concurrency,
            Self::Tool => limits.tool_concurrency,
            Self::Reference => limits.reference_concurrency,
            Self::Credential => limits.credential_concurrency,
        }
    }

    /// Whether a person or an agent waits for it, so that a command which stops the plugin gives it the time of a
    /// lease.
    const fn is_leased(self) -> bool {
        match self {
            Self::Webhook => false,
            Self::Action | Self::Tool | Self::Reference | Self::Credential => true,
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The plugin's answer was passed on.
    Answered,
    /// The plugin was not running or had too many calls.
    Refused,
    /// The plugin failed, crashed or answered what cannot be passed on.
    Failed,
    /// The deadline passed.
    TimedOut,
    /// The client hung up, or the grace of the host's stop was over.
    Abandoned,
}

impl CallOutcome {
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

/// The figures of one kind of calls into one plugin.
pub struct CallFigures {
    /// Latency of those that reached the plugin.
    pub latency: Histogram,
    ended: [AtomicU64; CallOutcome::ALL.len()],
}

impl Default for CallFigures {
    fn default() -> Self {
        Self { latency: Histogram::new(LATENCY_BUCKETS), ended: Default::default() }
    }
}

impl CallFigures {
    /// Calls that ended so.
    pub fn ended(&self, outcome: CallOutcome) -> u64 {
        self.ended[outcome as usize].load(Ordering::Relaxed)
    }

    /// Begins to measure a call.
    pub fn begin(&self) -> CallWatch<'_> {
        CallWatch { figures: self, since: Instant::now(), outcome: CallOutcome::Abandoned }
    }
}

/// Measures one call; dropped without an outcome it was abandoned.
pub struct CallWatch<'a> {
    figures: &'a CallFigures,
    since: Instant,
    outcome: CallOutcome,
}

impl CallWatch<'_> {
    /// The call ended.
    pub fn end(mut self, outcome: CallOutcome) {
        self.outcome = outcome;
    }
}

impl Drop for CallWatch<'_> {
    fn drop(&mut self) {
        self.figures.ended[self.outcome as usize].fetch_add(1, Ordering::Relaxed);
        if self.outcome != CallOutcome::Refused {
            self.figures.latency.observe(self.since.elapsed().as_secs_f64());
        }
    }
}

/// What a process works on; clones are the same.
#[derive(Debug, Clone, Default)]
pub struct UnderWay {
    /// Webhooks and the event: a stop gives them `timing.drain_grace`.
    pub passing: TaskTracker,
    /// Leases of people and agents: a stop gives them `timing.lease_grace`.
    leased: TaskTracker,
    /// Cancelled when the host ends: leases get no more than the others then.
    hurry: CancellationToken,
}

impl UnderWay {
    /// Where a call of this kind is counted.
    pub fn of(&self, kind: CallKind) -> &TaskTracker {
        if kind.is_leased() { &self.leased } else { &self.passing }
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.passing.len() + self.leased.len()
    }

    /// The host ends.
    pub fn hurry(&self) {
        self.hurry.cancel();
    }

    /// From here on nothing may begin any more.
    pub fn close(&self) {
        self.passing.close();
        self.leased.close();
    }

    /// Waits until all have ended, or their graces have; closed before.
    pub async fn drain(&self, passing: Duration, leased: Duration) {
        let hurried = async {
            self.hurry.cancelled().await;
            sleep(passing).await;
        };
        let leases = async {
            tokio::select! {
                () = self.leased.wait() => {}
                () = sleep(leased) => {}
                () = hurried => {}
            }
        };
        let _ = tokio::join!(timeout(passing, self.passing.wait()), leases);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAIN: Duration = Duration::from_secs(3);
    const LEASE: Duration = Duration::from_secs(15);

    #[test]
    fn a_call_is_counted_once_by_its_end() {
        let figures = CallFigures::default();
        figures.begin().end(CallOutcome::Answered);
        figures.begin().end(CallOutcome::Refused);
        drop(figures.begin());
        let ended: Vec<_> = CallOutcome::ALL.iter().map(|outcome| figures.ended(*outcome)).collect();
        assert_eq!(ended, [1, 1, 0, 0, 1]);
    }

    async fn drained_after(under_way: &UnderWay) -> f64 {
        let begin = Instant::now();
        under_way.close();
        under_way.drain(DRAIN, LEASE).await;
        begin.elapsed().as_secs_f64().round()
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_waits_for_each_kind_as_long_as_its_grace() {
        for kind in CallKind::ALL {
            let seconds = if kind == CallKind::Webhook { 3.0 } else { 15.0 };
            let under_way = UnderWay::default();
            let _held = under_way.of(kind).token();
            assert_eq!((under_way.len(), drained_after(&under_way).await), (1, seconds), "{kind:?}");
        }
        assert_eq!(drained_after(&UnderWay::default()).await, 0.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_ends_with_the_last_lease() {
        let under_way = UnderWay::default();
        let lease = under_way.of(CallKind::Action).token();
        let drained = drained_after(&under_way);
        let ended = async {
            sleep(Duration::from_secs(7)).await;
            drop(lease);
        };
        assert_eq!(tokio::join!(drained, ended).0, 7.0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_hosts_end_leaves_leases_the_short_grace_from_then_on() {
        let under_way = UnderWay::default();
        let _lease = under_way.of(CallKind::Tool).token();
        let drained = drained_after(&under_way);
        let ends = async {
            sleep(Duration::from_secs(5)).await;
            under_way.hurry();
        };
        assert_eq!(tokio::join!(drained, ends).0, 8.0);
    }
}
