//! The part of a start in which host and plugin meet: line, socket, TLS, first ping, broker, stdio.
//!
//! Owns the order, and which failure is told when several follow from one cause. What happens to the process after a
//! failure is `launch`'s part.

use std::future::pending;
use std::path::PathBuf;

use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tonic::service::Routes;
use tonic::transport::Channel;

use super::error::{PingError, StartFailure};
use super::folder::Place;
use super::ping::ping;
use super::socket::{self, SocketError};
use super::spec::Timing;
use super::supervise::Running;
use super::{broker, stdio};
use crate::dial::{ConnectError, dial};
use crate::handshake::{self, Handshake};
use crate::serve::serve;
use crate::tls::Identity;

/// The host's broker socket in the private folder.
const BROKER_SOCKET: &str = "host";

/// The first line on stdout, or `None` when there was none.
pub(crate) type FirstLine = oneshot::Receiver<Option<Vec<u8>>>;

/// What both sides of a meeting bring.
pub(crate) struct Meeting<'a> {
    pub(crate) running: &'a Running,
    pub(crate) place: Place,
    pub(crate) identity: Identity,
    pub(crate) timing: Timing,
    pub(crate) protocol_version: u32,
    pub(crate) max_message_bytes: usize,
}

impl Meeting<'_> {
    /// From the line to a plugin that was pinged, can print and can call the host. Gives the channel to it.
    pub(crate) async fn run(self, line: FirstLine, host_service: Routes) -> Result<Channel, StartFailure> {
        let line = self.first_line(line).await?;
        let handshake = handshake::parse(&line, self.protocol_version)?;
        match self.connect(handshake, host_service).await {
            Err(failure) if may_follow_from_death(&failure) => Err(self.unless_ended(failure).await),
            met => met,
        }
    }

    async fn first_line(&self, mut line: FirstLine) -> Result<Vec<u8>, StartFailure> {
        let limit = self.timing.start_timeout;
        let found = tokio::select! {
            biased;
            found = &mut line => found.ok().flatten(),
            // A process that left the group may hold stdout open, so that its end never comes.
            report = self.running.control().exited() => match line.try_recv() {
                Ok(Some(found)) => Some(found),
                _ => return Err(StartFailure::EndedBeforeLine(report)),
            },
            () = tokio::time::sleep(limit) => return Err(StartFailure::TimedOut { after: limit }),
        };
        match found {
            Some(line) => Ok(line),
            None => Err(match self.ended().await {
                Some(report) => StartFailure::EndedBeforeLine(report),
                None => StartFailure::ClosedStdout,
            }),
        }
    }

    async fn connect(&self, handshake: Handshake, host_service: Routes) -> Result<Channel, StartFailure> {
        let Timing { dial_timeout, ping_timeout, accept_timeout, .. } = self.timing;
        let Running { tasks, drains, journal, .. } = self.running;
        let max_message_bytes = self.max_message_bytes;

        let socket = self.check_socket(handshake.socket).await?;
        let tls = self.identity.client_config(&handshake.certificate)?;
        let channel = dial(socket, tls, tasks.clone(), dial_timeout).await?;
        // Before anything else: until it is read, the plugin may block in a print.
        let (stdio_channel, journal) = (channel.clone(), journal.clone());
        drains.spawn(async move { stdio::drain(stdio_channel, max_message_bytes, &journal).await });
        ping(&channel, ping_timeout).await?;

        // Bound and served before it is announced, announced before the plugin's first patience (5 s) is over.
        let path = self.place.path().join(BROKER_SOCKET);
        let listener = UnixListener::bind(&path).map_err(StartFailure::BrokerSocket)?;
        let tls = self.identity.server_config(&handshake.certificate)?;
        tasks.spawn(serve(listener, tls, host_service, accept_timeout, tasks, pending()));
        tasks.spawn(broker::announce(channel.clone(), path, max_message_bytes));
        Ok(channel)
    }

    async fn check_socket(&self, announced: PathBuf) -> Result<PathBuf, StartFailure> {
        let place = self.place.clone();
        let checked = spawn_blocking(move || socket::check(&announced, &place)).await;
        // The check cannot panic, so the task can only be missing when the runtime is ending.
        Ok(checked
            .map_err(|_| StartFailure::Connect(ConnectError::Refused { cause: "the host is ending".to_owned() }))??)
    }

    /// The report, if the process ends within what an end takes: reading the output and ending the tasks, each under
    /// the grace time.
    async fn ended(&self) -> Option<super::ExitReport> {
        timeout(self.timing.pipe_grace * 3, self.running.control().exited()).await.ok()
    }

    async fn unless_ended(&self, failure: StartFailure) -> StartFailure {
        self.ended().await.map_or(failure, StartFailure::EndedAfterLine)
    }
}

/// Whether a process that just died would look like this.
fn may_follow_from_death(failure: &StartFailure) -> bool {
    matches!(
        failure,
        StartFailure::Socket(SocketError::Unreachable { .. })
            | StartFailure::Connect(ConnectError::Refused { .. })
            | StartFailure::Ping(PingError::Transport(_))
    )
}
