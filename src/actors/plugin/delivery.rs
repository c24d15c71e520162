//! Sends the queue's events to the process, one at a time, and reports drops without flooding the log.
//!
//! The actor begins a run; the run then takes event after event from the [`Line`] for as long as the plugin
//! acknowledges, without a message to the actor in between (docs/performance.md). What else becomes of an attempt is
//! the actor's to decide.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use actix::{Message, Recipient, WeakAddr};
use kandev_proto::v1;
use time::OffsetDateTime;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::{Delivered, PluginActor, supervision::now, vitals::Vitals};
use crate::{
    actors::{
        events::Event,
        spawn::{post_back, post_to},
    },
    domain::{
        delivery::{AfterFailure, Attempt, Counters, DeliveryQueue, Policy},
        drop_report::{Drops, Verdict},
        id::PluginId,
        lifecycle::State,
        log_line::Level,
        record::Status,
    },
    grpc::client::{CallError, PluginClient},
};

/// The plugin's queue, shared by the actor, the bus and the run under way. The lock is held for single steps of the
/// queue and never while anything is waited for.
#[derive(Clone)]
pub struct Line(Arc<Mutex<Waiting>>);

/// What waits, and who must hear of it.
pub struct Waiting {
    queue: DeliveryQueue<Arc<Event>>,
    /// Whether the plugin wants what is published now.
    wanted: bool,
    /// A word to the actor is under way: one at a time is enough.
    nudged: bool,
    /// Of the last acknowledgement.
    delivered_at: Option<OffsetDateTime>,
}

impl Waiting {
    /// When the last event was acknowledged.
    pub fn delivered_at(&self) -> Option<OffsetDateTime> {
        self.delivered_at
    }
}

impl Deref for Waiting {
    type Target = DeliveryQueue<Arc<Event>>;

    fn deref(&self) -> &Self::Target {
        &self.queue
    }
}

impl DerefMut for Waiting {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.queue
    }
}

impl Line {
    /// An empty line.
    pub fn new(policy: Policy, wanted: bool) -> Self {
        let queue = DeliveryQueue::new(policy);
        Self(Arc::new(Mutex::new(Waiting { queue, wanted, nudged: false, delivered_at: None })))
    }

    pub fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what is published from now on waits here.
    pub fn want(&self, wanted: bool) {
        self.lock().wanted = wanted;
    }

    /// Takes a published event. True when the actor must be told, because a run can begin or an event was dropped.
    fn put(&self, event: Arc<Event>) -> bool {
        let mut line = self.lock();
        if !line.wanted {
            return false;
        }
        let (dropped, published) = (line.counters(), event.published);
        line.push(event, published);
        let matters = line.is_due() || line.counters() != dropped;
        matters && !std::mem::replace(&mut line.nudged, true)
    }

    /// Notes an acknowledgement and gives what comes next. Nothing does when the outcome is late (the plugin's state
    /// changed meanwhile), or when a stop waits for the calls under way.
    fn next_after(&self, ticket: u64, calls: &TaskTracker) -> Option<Attempt<Arc<Event>>> {
        let mut line = self.lock();
        if !line.acknowledged(ticket) {
            return None;
        }
        line.delivered_at = Some(OffsetDateTime::now_utc());
        if calls.is_closed() { None } else { line.next_attempt() }
    }
}

/// Where the bus puts a plugin's events. No message to the actor while a run is under way, which takes them.
#[derive(Clone)]
pub struct Inlet {
    line: Line,
    actor: Recipient<Nudge>,
}

impl Inlet {
    /// Into the line of this actor.
    pub fn new(line: Line, actor: Recipient<Nudge>) -> Self {
        Self { line, actor }
    }

    /// Takes an event, unless the plugin wants none.
    pub fn put(&self, event: Arc<Event>) {
        if self.line.put(event) {
            post_to(&self.actor, Nudge);
        }
    }
}

/// Something happened in the line that the actor must act upon.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Nudge;

/// What became of an attempt, or of a wait.
pub enum Outcome {
    /// The plugin did not acknowledge.
    Failed(u64, CallError),
    /// A retry's wait is over.
    RetryDue(u64),
    /// It is time to report drops again.
    ReportDue,
}

impl PluginActor {
    /// Lets events in, or keeps them out. A disabled plugin that is being enabled wants what is published from now on.
    pub(super) fn tend_line(&self) {
        let starting = matches!(self.lifecycle.state(), State::Starting { .. });
        self.line.want(self.lifecycle.status() != Status::Disabled || starting);
    }

    pub(super) fn nudged(&mut self, addr: &WeakAddr<Self>) {
        self.line.lock().nudged = false;
        self.report_drops(addr);
        self.pump(addr);
    }

    /// Begins a run if the plugin accepts calls, an event waits and none is in flight.
    pub(super) fn pump(&mut self, addr: &WeakAddr<Self>) {
        let Some(running) = self.accepting() else { return };
        let Some(first) = self.line.lock().next_attempt() else { return };
        let timing = &self.surroundings.timing;
        let (exit_grace, ended) = (timing.pipe_grace, running.ended.clone());
        let run = Run {
            plugin: self.id.clone(),
            generation: self.lifecycle.generation(),
            client: Arc::clone(&running.client),
            line: self.line.clone(),
            calls: running.calls.passing.clone(),
            vitals: Arc::clone(&self.vitals),
            deadline: timing.delivery_timeout,
        };
        let (in_flight, addr) = (running.calls.passing.token(), addr.clone());
        self.tasks.spawn(async move {
            let (ticket, error) = match run.from(first).await {
                Ok(()) => return,
                Err(failed) => failed,
            };
            drop(in_flight);
            if error == CallError::Disconnected {
                // Most often the process has just ended. Its exit, which is reported as soon as its pipes are read,
                // goes first: otherwise the next event would be sent to a dead process and charged with its crash.
                let _ = tokio::time::timeout(exit_grace, ended.cancelled()).await;
            }
            post_back(&addr, Delivered(Outcome::Failed(ticket, error)));
        });
    }

    pub(super) fn outcome(&mut self, outcome: Outcome, addr: &WeakAddr<Self>) {
        match outcome {
            Outcome::Failed(ticket, error) => self.attempt_failed(ticket, &error, addr),
            Outcome::RetryDue(ticket) => self.line.lock().retry_due(ticket),
            Outcome::ReportDue => self.report_drops_due(addr),
        }
        self.pump(addr);
    }

    /// The plugin is not healthy: its events are kept, as many and as long as the ring buffer allows.
    pub(super) fn suspend(&mut self, crashed: bool, addr: &WeakAddr<Self>) {
        let given_up = self.line.lock().suspend(crashed, now());
        if let Some(event) = given_up {
            self.gave_up(&event, "the plugin crashed or froze under it");
        }
        self.report_drops(addr);
    }

    fn attempt_failed(&mut self, ticket: u64, error: &CallError, addr: &WeakAddr<Self>) {
        let after = self.line.lock().failed(ticket);
        match after {
            AfterFailure::Stale => {}
            AfterFailure::GaveUp(event) => self.gave_up(&event, &error.to_string()),
            AfterFailure::RetryAfter(delay, ticket) => {
                let error = self.diagnostic(&error.to_string());
                tracing::debug!(plugin.id = %self.id, error, retry_ms = delay.as_millis(), "delivery failed");
                self.note(
                    Level::Warn,
                    self.diagnostic(&format!(
                        "an event was not accepted, tried again after {} s: {error}",
                        delay.as_secs()
                    )),
                );
                let addr = addr.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(delay).await;
                    post_back(&addr, Delivered(Outcome::RetryDue(ticket)));
                });
            }
        }
    }

    fn gave_up(&self, event: &Event, why: &str) {
        let why = self.diagnostic(why);
        tracing::error!(
            plugin.id = %self.id, event.id = %event.id, event.subject = %event.subject, error = why,
            "event given up after its last delivery attempt"
        );
        self.note(
            Level::Error,
            self.diagnostic(&format!("event {} ({}) failed and was dropped: {why}", event.id, event.subject)),
        );
    }

    /// Tells about new drops: at once, or together with later ones when `timing.warning_interval` is over.
    pub(super) fn report_drops(&mut self, addr: &WeakAddr<Self>) {
        let Counters { overflowed, expired, .. } = self.line.lock().counters();
        let before = std::mem::replace(&mut self.counted_drops, Drops { overflowed, expired });
        let more = Drops { overflowed: overflowed - before.overflowed, expired: expired - before.expired };
        let verdict = self.drop_report.add(more, now());
        self.tell(verdict, addr);
    }

    fn report_drops_due(&mut self, addr: &WeakAddr<Self>) {
        let verdict = self.drop_report.due(now());
        self.tell(verdict, addr);
    }

    fn tell(&self, verdict: Verdict, addr: &WeakAddr<Self>) {
        match verdict {
            Verdict::Quiet => {}
            Verdict::Warn(drops) => {
                tracing::warn!(
                    plugin.id = %self.id, overflowed = drops.overflowed, expired = drops.expired, "events dropped"
                );
                self.note(Level::Warn, drops.to_string());
            }
            Verdict::Later(wait) => {
                let addr = addr.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(wait).await;
                    post_back(&addr, Delivered(Outcome::ReportDue));
                });
            }
        }
    }
}

/// What sends events for as long as the plugin acknowledges.
struct Run {
    plugin: PluginId,
    generation: u64,
    client: Arc<dyn PluginClient>,
    line: Line,
    calls: TaskTracker,
    vitals: Arc<Vitals>,
    deadline: Duration,
}

impl Run {
    /// Sends the first event and those after it; ends when the line gives no more, or with an attempt that failed.
    async fn from(&self, first: Attempt<Arc<Event>>) -> Result<(), (u64, CallError)> {
        let mut next = Some(first);
        while let Some(attempt) = next {
            let ticket = attempt.ticket;
            self.send(&attempt).await.map_err(|error| (ticket, error))?;
            next = self.line.next_after(ticket, &self.calls);
        }
        Ok(())
    }

    /// One attempt, in a span of its own, with how long it took and how it ended.
    async fn send(&self, Attempt { event, number, .. }: &Attempt<Arc<Event>>) -> Result<(), CallError> {
        let span = tracing::debug_span!(
            "deliver_event", plugin.id = %self.plugin, event.id = %event.id, event.subject = %event.subject,
            attempt = number, generation = self.generation, outcome = tracing::field::Empty,
        );
        async {
            let begin = tokio::time::Instant::now();
            let result = self.client.deliver_event(wire_event(event), self.deadline).await;
            let (histogram, outcome) = match &result {
                Ok(()) => (&self.vitals.acknowledged, "acknowledged"),
                Err(_) => (&self.vitals.unacknowledged, "failed"),
            };
            let took = begin.elapsed();
            histogram.observe(took.as_secs_f64());
            tracing::Span::current().record("outcome", outcome);
            tracing::debug!(outcome, duration_ms = took.as_millis() as u64, "delivery attempt ended");
            result
        }
        .instrument(span)
        .await
    }
}

fn wire_event(event: &Event) -> v1::Event {
    v1::Event {
        event_id: event.id.to_string(),
        event_type: event.subject.clone(),
        occurred_at: event.occurred_at.clone(),
        workspace_id: event.workspace_id.clone(),
        payload: event.payload.clone(),
    }
}
