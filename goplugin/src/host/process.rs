//! The plugin's process and its group: signals, exit and reaping, in an order in which no signal can reach a stranger.
//!
//! Owns the pid. A group's number stays reserved while its leader is not reaped, so signals are sent under the same
//! lock as reaping. What follows an exit is `supervise`'s part.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The process group of a plugin: its process and the children that stayed in the group.
#[derive(Debug)]
pub(crate) struct Group {
    /// The leader's pid, until it is reaped.
    leader: Mutex<Option<Pid>>,
}

impl Group {
    /// Sends `signal` to every process of the group; does nothing once the leader is reaped.
    pub(crate) fn signal(&self, signal: Signal) {
        let leader = self.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leader) = *leader {
            send(leader, signal);
        }
    }
}

/// A running plugin process. Dropping it kills the group and reaps the process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Until it is reaped.
    child: Option<Child>,
    pidfd: AsyncFd<OwnedFd>,
    group: Arc<Group>,
}

impl Process {
    /// Takes over `child`, which leads its own process group. On an error it is killed and reaped.
    pub(crate) fn new(child: Child) -> io::Result<Process> {
        let pid = Pid::from_child(&child);
        match watch(pid) {
            Ok(pidfd) => {
                let group = Arc::new(Group { leader: Mutex::new(Some(pid)) });
                Ok(Process { child: Some(child), pidfd, group })
            }
            Err(error) => {
                kill_and_reap(child);
                Err(error)
            }
        }
    }

    /// The group, for sending signals.
    pub(crate) fn group(&self) -> Arc<Group> {
        self.group.clone()
    }

    /// Waits until the process has exited, without reaping it.
    pub(crate) async fn exited(&self) {
        // An error means that the runtime is ending, which drops this future and then kills the process.
        if self.pidfd.readable().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Kills what is left of the group, then reaps the exited process.
    pub(crate) fn reap(mut self) -> io::Result<ExitStatus> {
        let mut leader = self.group.leader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = leader.take() {
            send(pid, Signal::KILL);
        }
        match self.child.take() {
            Some(mut child) => child.wait(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Only when the runtime ends before the process did: there is nobody left who could await it.
        if let Some(child) = self.child.take() {
            *self.group.leader.lock().unwrap_or_else(PoisonError::into_inner) = None;
            kill_and_reap(child);
        }
    }
}

/// A descriptor that becomes readable when the process has exited.
fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    #[expect(unsafe_code, reason = "tokio's safe constructor is deprecated")]
    // SAFETY: an OwnedFd names one open descriptor until it is dropped, and it moves into the AsyncFd.
    let watched = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
    Ok(watched?)
}

/// Kills the group that `child` leads and reaps the child, without holding up the caller.
pub(crate) fn kill_and_reap(mut child: Child) {
    send(Pid::from_child(&child), Signal::KILL);
    // Without a thread the child stays a zombie until this process ends, but dead it is.
    let reaper = thread::Builder::new().name("plugin-reaper".to_owned()).spawn(move || child.wait());
    if let Err(error) = reaper {
        tracing::warn!(error = %error, "cannot reap a killed plugin process");
    }
}

fn send(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // The whole group has exited.
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(pid = group.as_raw_nonzero(), error = %error, "cannot signal a plugin's group"),
    }
}
