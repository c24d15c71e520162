//! The caller's handle on a started plugin, and the ladder by which it is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::transport::Channel;

use super::error::PingError;
use super::exit::ExitReport;
use super::ping;
use super::spec::StopLadder;
use super::supervise::{Control, Running};
use crate::proto::Empty;
use crate::proto::grpc_controller_client::GrpcControllerClient;

/// A started plugin. When the last clone is dropped without a stop, the process group is killed.
#[derive(Clone)]
pub struct Plugin {
    inner: Arc<Inner>,
}

struct Inner {
    running: Running,
    channel: Channel,
    stopping: AtomicBool,
}

impl Plugin {
    pub(crate) fn new(running: Running, channel: Channel) -> Plugin {
        Plugin { inner: Arc::new(Inner { running, channel, stopping: AtomicBool::new(false) }) }
    }

    /// The process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.inner.running.pid
    }

    /// The connection to the plugin's services. Set message limits on the clients made from it. A clone may outlive the
    /// plugin: its calls then fail as unavailable.
    pub fn channel(&self) -> Channel {
        self.inner.channel.clone()
    }

    /// Asks once whether the plugin serves; anything but SERVING within `deadline` is an error.
    pub async fn ping(&self, deadline: Duration) -> Result<(), PingError> {
        ping::ping(&self.inner.channel, deadline).await
    }

    /// Waits until the process is reaped, its output read and all that ran for it gone, its socket folder too. Any
    /// number may wait, also after the end.
    pub async fn exited(&self) -> ExitReport {
        self.inner.running.control().exited().await
    }

    /// Stops the plugin: the controller's Shutdown, then TERM, then KILL to the process group, each after the ladder's
    /// grace time. Concurrent calls share the first one's stop, which goes on when its caller goes away.
    ///
    /// Calls in flight are cut by the Shutdown: let them end first. After the KILL only the kernel is waited for.
    pub async fn stop(&self, ladder: StopLadder) -> ExitReport {
        let Inner { running, channel, stopping } = &*self.inner;
        if !stopping.swap(true, Ordering::AcqRel) {
            running.control().ask();
            running.tasks.spawn(climb(running.control().clone(), channel.clone(), ladder));
        }
        self.exited().await
    }

    /// Kills the process group at once.
    pub fn kill(&self) {
        self.inner.running.kill();
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

/// The rungs. The task is cancelled when the process has ended, so none is taken too many.
async fn climb(process: Control, channel: Channel, ladder: StopLadder) {
    let deadline = Instant::now() + ladder.stop_grace;
    // go-plugin cuts the connection before its reply is out, so every result means that it was asked.
    let _ = timeout_at(deadline, GrpcControllerClient::new(channel).shutdown(Empty {})).await;
    if timeout_at(deadline, process.exited()).await.is_ok() {
        return;
    }
    process.signal(Signal::TERM);
    if timeout(ladder.term_grace, process.exited()).await.is_err() {
        process.signal(Signal::KILL);
    }
}
