//! One actor for each installed plugin. It owns the subprocess, the restart row, the delivery queue with its ring
//! buffer, and the live status; it decides by `domain::lifecycle` and `domain::delivery` and runs what they say.
//!
//! It writes no record: it reports every change to the registry. Reading order: this file has the messages, [`handle`]
//! is what everyone else holds, [`supervision`] runs the lifecycle's effects, [`delivery`] sends events, [`door`] lets
//! calls pass, whose kinds are in [`calls`].

mod calls;
mod delivery;
mod door;
mod handle;
mod supervision;
mod verdict;
mod vitals;

use std::{path::PathBuf, sync::Arc};

use actix::{Actor, AsyncContext, Context, Handler, Message, Recipient, ResponseFuture};
use time::OffsetDateTime;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub use self::{
    calls::{CallFigures, CallKind, CallOutcome},
    door::{CallPermit, CallRefused},
    handle::PluginHandle,
    supervision::Pin,
    vitals::{Alive, Figures, Vitals},
};
use self::{delivery::Nudge, door::DoorKeeper, supervision::Running, verdict::verdict};
pub(super) use self::{
    delivery::{Inlet, Line},
    door::Door,
};
use super::{
    log::PluginLog,
    spawn::{Tasks, post_to},
};
use crate::{
    config::{Limits, Timing},
    domain::{
        drop_report::{DropReport, Drops},
        id::PluginId,
        lifecycle::{Input, Lifecycle, Settlement},
        log_line::Level,
        manifest::Manifest,
        record::{PluginRecord, Status},
    },
    process::{HostServiceFactory, Launcher},
    store::log_files::LogFiles,
};

/// What every plugin actor works with.
pub struct Surroundings {
    /// Waits.
    pub timing: Timing,
    /// Bounds.
    pub limits: Limits,
    /// `<home>/plugins`.
    pub plugins_dir: PathBuf,
    /// Home folder of the user the host runs as; hidden in diagnostics.
    pub user_home: String,
    /// Starts processes.
    pub launcher: Arc<dyn Launcher>,
    /// Makes the Host service a process is offered.
    pub host_services: Arc<dyn HostServiceFactory>,
    /// Keeps the plugins' log lines on disk.
    pub log_files: LogFiles,
}

/// The part of a record that changes while a plugin lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveState {
    /// Counts the changes of one actor; a report with a lower one is late.
    pub revision: u64,
    /// Status.
    pub status: Status,
    /// Whether automatic restarts go on.
    pub restarting: bool,
    /// Successful automatic restarts.
    pub restart_count: u64,
    /// One redacted line.
    pub last_error: Option<String>,
    /// When it happened.
    pub last_error_at: Option<OffsetDateTime>,
    /// SHA-256 that the executable must have, once it is known.
    pub executable_sha256: Option<String>,
}

/// A change, reported upward.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Changed {
    /// Whose.
    pub id: PluginId,
    /// Which actor of this plugin reports; an earlier one's reports are late.
    pub incarnation: u64,
    /// The state now.
    pub live: LiveState,
}

/// The actor is gone; posted by a guard, also when it panicked.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ActorGone {
    /// Whose.
    pub id: PluginId,
    /// Which actor of this plugin.
    pub incarnation: u64,
    /// Whether a panic ended it.
    pub panicked: bool,
}

/// What a command wants to become true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// Running and healthy.
    Started,
    /// The same, asked for by the host's own start.
    Booted,
    /// Off.
    Disabled,
    /// Down for an upgrade.
    Held,
    /// With the saved settings, if it runs or is being started.
    Renewed,
    /// Gone for good.
    Removed,
    /// Down because the host ends.
    HostStopped,
}

/// Asks for something and waits until it is so.
#[derive(Message)]
#[rtype(result = "Result<LiveState, NotDone>")]
pub struct Command(pub Want);

/// Why a command came to another end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotDone {
    /// One redacted line.
    pub reason: String,
    /// The state now.
    pub live: LiveState,
    /// Whether a start was tried and failed, as against an order that overtook this one.
    pub start_failed: bool,
}

/// Gives a held plugin the record of its new version.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Replace(pub PluginRecord);

/// What is installed was found broken: it must not run.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Condemn(pub String);

/// An input that a task of the actor reports.
#[derive(Message)]
#[rtype(result = "()")]
struct Report(supervision::Happened);

#[derive(Message)]
#[rtype(result = "()")]
struct Delivered(delivery::Outcome);

struct Waiter {
    want: Want,
    done: oneshot::Sender<Result<LiveState, NotDone>>,
}

/// The actor.
pub struct PluginActor {
    id: PluginId,
    incarnation: u64,
    surroundings: Arc<Surroundings>,
    registry: Recipient<Changed>,
    record: PluginRecord,
    manifest: Arc<Manifest>,
    lifecycle: Lifecycle,
    live: LiveState,
    /// The revision that the registry knows.
    reported: Option<u64>,
    running: Option<Running>,
    abort: Option<CancellationToken>,
    line: Line,
    drop_report: DropReport,
    /// What the report was told of so far.
    counted_drops: Drops,
    door: DoorKeeper,
    waiters: Vec<Waiter>,
    log: Arc<PluginLog>,
    vitals: Arc<Vitals>,
    tasks: Tasks,
    _gone: GoneGuard,
}

/// What a new actor is made of.
pub struct Birth {
    /// The record; its status and `restarting` are where the lifecycle begins.
    pub record: PluginRecord,
    /// Counts the actors of this plugin.
    pub incarnation: u64,
    /// Takes changes.
    pub registry: Recipient<Changed>,
    /// Learns of the actor's end.
    pub gone: Recipient<ActorGone>,
    /// Kept by the registry, so that it outlives the actor.
    pub log: Arc<PluginLog>,
    /// The same.
    pub vitals: Arc<Vitals>,
}

impl PluginActor {
    /// A plugin without a process.
    pub fn new(birth: Birth, surroundings: Arc<Surroundings>) -> Self {
        let Birth { record, incarnation, registry, gone, log, vitals } = birth;
        let id = record.id().clone();
        let (timing, limits) = (&surroundings.timing, &surroundings.limits);
        let actor = Self {
            _gone: GoneGuard { recipient: gone, id: id.clone(), incarnation },
            incarnation,
            registry,
            manifest: Arc::new(record.manifest.clone()),
            lifecycle: Lifecycle::new(
                record.state.status,
                record.state.restarting,
                crate::domain::lifecycle::Policy {
                    restart_delays: timing.restart_delays.clone(),
                    ping_failures: timing.ping_failures,
                },
            ),
            live: LiveState {
                revision: 0,
                status: record.state.status,
                restarting: record.state.restarting,
                restart_count: record.state.restart_count,
                last_error: record.state.last_error.clone(),
                last_error_at: record.state.last_error_at,
                executable_sha256: record.state.executable_sha256.clone(),
            },
            reported: None,
            running: None,
            abort: None,
            line: Line::new(
                crate::domain::delivery::Policy {
                    queue_events: limits.queue_events,
                    buffer_events: limits.buffer_events,
                    buffer_ttl: timing.buffer_ttl,
                    retries: timing.delivery_retries.clone(),
                },
                record.state.status != Status::Disabled,
            ),
            drop_report: DropReport::new(timing.warning_interval),
            counted_drops: Drops::default(),
            door: DoorKeeper(Door::new(CallKind::ALL.map(|kind| kind.bound(limits)))),
            waiters: Vec::new(),
            log,
            vitals,
            tasks: Tasks::default(),
            id,
            record,
            surroundings,
        };
        actor.vitals.follow(&actor.line);
        // An earlier actor may have left a process to be seen that is gone.
        actor.show_vitals();
        actor
    }

    /// Where calls into the plugin pass.
    pub(super) fn door(&self) -> Door {
        self.door.0.clone()
    }

    /// Where its events wait.
    pub(super) fn line(&self) -> Line {
        self.line.clone()
    }

    /// Notes something about the plugin where its operator looks first: among its own lines.
    fn note(&self, level: Level, message: String) {
        self.log.note(level, message);
    }

    /// Reports the live state upward when it changed.
    fn report(&mut self) {
        let (status, restarting) = (self.lifecycle.status(), self.lifecycle.restarting());
        if (status, restarting) != (self.live.status, self.live.restarting) {
            self.live.status = status;
            self.live.restarting = restarting;
            self.live.revision += 1;
        }
        if self.reported != Some(self.live.revision) {
            self.reported = Some(self.live.revision);
            let changed = Changed { id: self.id.clone(), incarnation: self.incarnation, live: self.live.clone() };
            post_to(&self.registry, changed);
        }
    }

    fn settle(&mut self, settlement: &Settlement) {
        let live = self.live.clone();
        let mut waiting = Vec::new();
        for waiter in std::mem::take(&mut self.waiters) {
            match verdict(waiter.want, settlement) {
                None => waiting.push(waiter),
                Some(Ok(())) => drop(waiter.done.send(Ok(live.clone()))),
                Some(Err(reason)) => {
                    let start_failed = matches!(settlement, Settlement::NotStarted(_));
                    // It is shown to whoever gave the command, and may hold the plugin's last output.
                    let reason = self.diagnostic(&reason);
                    drop(waiter.done.send(Err(NotDone { reason, live: live.clone(), start_failed })));
                }
            }
        }
        self.waiters = waiting;
    }
}

impl Actor for PluginActor {
    type Context = Context<Self>;
}

impl Handler<Command> for PluginActor {
    type Result = ResponseFuture<Result<LiveState, NotDone>>;

    fn handle(&mut self, Command(want): Command, ctx: &mut Context<Self>) -> Self::Result {
        let (done, answer) = oneshot::channel();
        self.waiters.push(Waiter { want, done });
        if let (Want::HostStopped, Some(running)) = (want, &self.running) {
            running.calls.hurry();
        }
        let input = match want {
            Want::Started => Input::Enable,
            Want::Booted => Input::Boot,
            Want::Disabled => Input::Disable,
            Want::Held => Input::Hold,
            Want::Renewed => Input::Renew,
            Want::Removed => Input::Remove,
            Want::HostStopped => Input::HostStopping,
        };
        self.step(input, ctx);
        let live = self.live.clone();
        Box::pin(async move {
            answer.await.unwrap_or_else(|_| {
                Err(NotDone { reason: "the plugin's actor ended before it was done".into(), live, start_failed: false })
            })
        })
    }
}

impl Handler<Replace> for PluginActor {
    type Result = ();

    fn handle(&mut self, Replace(record): Replace, _: &mut Context<Self>) {
        self.manifest = Arc::new(record.manifest.clone());
        self.lifecycle.replaced(record.state.status, record.state.restarting);
        self.live.status = self.lifecycle.status();
        self.live.restarting = self.lifecycle.restarting();
        self.live.restart_count = record.state.restart_count;
        self.live.last_error = record.state.last_error.clone();
        self.live.last_error_at = record.state.last_error_at;
        self.live.executable_sha256 = record.state.executable_sha256.clone();
        self.live.revision += 1;
        self.record = record;
        self.tend_line();
    }
}

impl Handler<Condemn> for PluginActor {
    type Result = ();

    fn handle(&mut self, Condemn(why): Condemn, ctx: &mut Context<Self>) {
        self.step(Input::Broken(why), ctx);
    }
}

impl Handler<Nudge> for PluginActor {
    type Result = ();

    fn handle(&mut self, _: Nudge, ctx: &mut Context<Self>) {
        self.nudged(&ctx.address().downgrade());
    }
}

impl Handler<Report> for PluginActor {
    type Result = ();

    fn handle(&mut self, Report(happened): Report, ctx: &mut Context<Self>) {
        self.happened(happened, ctx);
    }
}

impl Handler<Delivered> for PluginActor {
    type Result = ();

    fn handle(&mut self, Delivered(outcome): Delivered, ctx: &mut Context<Self>) {
        self.outcome(outcome, &ctx.address().downgrade());
    }
}

/// Tells the registry that the actor ended, however it ended.
struct GoneGuard {
    recipient: Recipient<ActorGone>,
    id: PluginId,
    incarnation: u64,
}

impl Drop for GoneGuard {
    fn drop(&mut self) {
        let gone = ActorGone { id: self.id.clone(), incarnation: self.incarnation, panicked: std::thread::panicking() };
        post_to(&self.recipient, gone);
    }
}
