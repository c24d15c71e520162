//! A running plugin process from its fork to its last trace: the handle on it, and the order in which it ends.
//!
//! Owns that order: exit, rest of the group killed, reaped, output drained, tasks and connections ended, folder
//! removed, and only then reported. When to stop it is for `plugin` and `launch` to say.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::exit::ExitReport;
use super::folder::PrivateFolder;
use super::forker::Forker;
use super::output::Journal;
use super::process::{Group, Process};
use crate::owned::Owner;

/// A running process and what runs for it. Dropping it kills the process group; the rest then follows by itself.
pub(crate) struct Running {
    pub(crate) pid: u32,
    /// What is cancelled when the process has ended.
    pub(crate) tasks: Owner,
    /// What may go on for a grace time after that: reading the output to its end.
    pub(crate) drains: Owner,
    pub(crate) journal: Arc<Journal>,
    control: Control,
}

/// Signals and the exit of a process, without keeping it alive.
#[derive(Clone)]
pub(crate) struct Control {
    group: Arc<Group>,
    asked: Arc<AtomicBool>,
    exit: watch::Receiver<Option<ExitReport>>,
}

impl Control {
    /// Remembers that the end is wanted, so that the report does not call it a crash.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Sends `signal` to the process group, if the process has not ended.
    pub(crate) fn signal(&self, signal: Signal) {
        self.group.signal(signal);
    }

    /// Waits until the process is reaped and everything that ran for it is gone.
    pub(crate) async fn exited(&self) -> ExitReport {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(report)) => report.clone(),
            // The runtime that supervised it has ended, which killed the process.
            _ => ExitReport::new(None, true, Vec::new()),
        }
    }
}

impl Running {
    pub(crate) fn control(&self) -> &Control {
        &self.control
    }

    /// Kills the process group and says that this was wanted.
    pub(crate) fn kill(&self) {
        self.control.ask();
        self.control.signal(Signal::KILL);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Takes a process over: from here on it is watched, and cleaned up after whenever it ends. `drains` read its output
/// already; `grace` is [`Timing::pipe_grace`](super::Timing::pipe_grace).
pub(crate) fn supervise(
    pid: u32,
    process: Process,
    folder: PrivateFolder,
    journal: Arc<Journal>,
    drains: Owner,
    grace: Duration,
    forker: Forker,
) -> Running {
    let (exit_sender, exit) = watch::channel(None);
    let control = Control { group: process.group(), asked: Arc::default(), exit };
    let running = Running { pid, tasks: Owner::default(), drains, journal: journal.clone(), control };
    let (tasks, drains, asked) = (running.tasks.clone(), running.drains.clone(), running.control.asked.clone());
    tokio::spawn(async move {
        process.exited().await;
        let stopped = asked.load(Ordering::Acquire);
        let status = process.reap();
        drains.finished(grace).await;
        let all_ended = tasks.end(grace).await & drains.end(grace).await;
        if !all_ended {
            tracing::warn!(pid, "a call from an ended plugin is still running; it is left to itself");
        }
        journal.finish();
        // It logs its own failure.
        let _ = spawn_blocking(move || drop(folder)).await;
        // Until here the thread that forked the plugin had to live, or the kernel would have killed it.
        drop(forker);
        exit_sender.send_replace(Some(ExitReport::new(status.ok(), stopped, journal.last_stderr())));
    });
    running
}
