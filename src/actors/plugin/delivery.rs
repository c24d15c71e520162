//! Sends the queue's events to the process, one at a time, and reports drops without flooding the log.

use std::{future::Future, sync::Arc};

use actix::WeakAddr;
use kandev_proto::v1;
use tracing::Instrument as _;

use super::{Delivered, PluginActor, supervision::now, vitals::Vitals};
use crate::{
    actors::{events::Event, spawn::post_back},
    domain::{
        delivery::{AfterFailure, Counters},
        drop_report::{Drops, Verdict},
        lifecycle::State,
        log_line::Level,
        record::Status,
    },
    grpc::client::CallError,
};

/// What became of an attempt, or of a wait.
pub enum Outcome {
    /// The plugin answered, or did not.
    Attempt(u64, Result<(), CallError>),
    /// A retry's wait is over.
    RetryDue(u64),
    /// It is time to report drops again.
    ReportDue,
}

impl PluginActor {
    pub(super) fn enqueue(&mut self, event: Arc<Event>, addr: &WeakAddr<Self>) {
        // A disabled plugin that is being enabled wants what is published from now on.
        if self.lifecycle.status() == Status::Disabled && !matches!(self.lifecycle.state(), State::Starting { .. }) {
            return;
        }
        let published = event.published;
        self.queue.push(event, published);
        self.report_drops(addr);
        self.pump(addr);
        self.show_vitals();
    }

    /// Sends the next event if the plugin accepts calls and nothing is in flight.
    pub(super) fn pump(&mut self, addr: &WeakAddr<Self>) {
        let Some(running) = self.accepting() else { return };
        let (client, calls, ended) = (Arc::clone(&running.client), running.calls.clone(), running.ended.clone());
        let Some(attempt) = self.queue.next_attempt() else { return };
        let timing = &self.surroundings.timing;
        let (deadline, exit_grace) = (timing.delivery_timeout, timing.pipe_grace);
        let in_flight = calls.token();
        let addr = addr.clone();
        let span = tracing::info_span!(
            "deliver_event", plugin.id = %self.id, event.id = %attempt.event.id, event.subject = %attempt.event.subject,
            attempt = attempt.number, generation = self.lifecycle.generation(), outcome = tracing::field::Empty,
        );
        let vitals = Arc::clone(&self.vitals);
        self.tasks.spawn(async move {
            let result =
                measured(&vitals, client.deliver_event(wire_event(&attempt.event), deadline)).instrument(span).await;
            drop(in_flight);
            if result == Err(CallError::Disconnected) {
                // Most often the process has just ended. Its exit, which is reported as soon as its pipes are read,
                // goes first: otherwise the next event would be sent to a dead process and charged with its crash.
                let _ = tokio::time::timeout(exit_grace, ended.cancelled()).await;
            }
            post_back(&addr, Delivered(Outcome::Attempt(attempt.ticket, result)));
        });
    }

    pub(super) fn outcome(&mut self, outcome: Outcome, addr: &WeakAddr<Self>) {
        match outcome {
            Outcome::Attempt(ticket, Ok(())) => {
                if self.queue.acknowledged(ticket) {
                    self.show_delivered();
                }
            }
            Outcome::Attempt(ticket, Err(error)) => self.attempt_failed(ticket, &error, addr),
            Outcome::RetryDue(ticket) => self.queue.retry_due(ticket),
            Outcome::ReportDue => self.report_drops_due(addr),
        }
        self.pump(addr);
        self.show_vitals();
    }

    /// The plugin is not healthy: its events are kept, as many and as long as the ring buffer allows.
    pub(super) fn suspend(&mut self, crashed: bool, addr: &WeakAddr<Self>) {
        if let Some(event) = self.queue.suspend(crashed, now()) {
            self.gave_up(&event, "the plugin crashed or froze under it");
        }
        self.report_drops(addr);
    }

    fn attempt_failed(&mut self, ticket: u64, error: &CallError, addr: &WeakAddr<Self>) {
        match self.queue.failed(ticket) {
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
        let Counters { overflowed, expired, .. } = self.queue.counters();
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

/// Notes how long an attempt took and how it ended.
async fn measured(vitals: &Vitals, attempt: impl Future<Output = Result<(), CallError>>) -> Result<(), CallError> {
    let begin = tokio::time::Instant::now();
    let result = attempt.await;
    let (histogram, outcome) = match &result {
        Ok(()) => (&vitals.acknowledged, "acknowledged"),
        Err(_) => (&vitals.unacknowledged, "failed"),
    };
    let took = begin.elapsed();
    histogram.observe(took.as_secs_f64());
    tracing::Span::current().record("outcome", outcome);
    tracing::debug!(outcome, duration_ms = took.as_millis() as u64, "delivery attempt ended");
    result
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
