//! Why a start or a ping failed. Texts name the cause and the next step.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use super::executable::ExecutableError;
use super::exit::{ExitReport, LastOutput};
use super::folder::FolderError;
use super::socket::SocketError;
use crate::dial::ConnectError;
use crate::handshake::HandshakeError;
use crate::tls::TlsError;

/// Why a plugin did not start. Whatever it is, no process, socket or task of that start is left.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The program cannot be run on this machine.
    #[error(transparent)]
    Executable(#[from] ExecutableError),
    /// The working folder is missing or not a folder.
    #[error("the working folder {} cannot be entered: {source}", .path.display())]
    WorkingFolder {
        /// The folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The private folder for the sockets could not be made.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The host's one-time certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] TlsError),
    /// The program exists, but the interpreter or loader that it names does not.
    #[error(
        "the program {} names an interpreter or loader that does not exist here; link it statically or install that one",
        .path.display()
    )]
    MissingInterpreter {
        /// The program.
        path: PathBuf,
    },
    /// The system refused to start the program.
    #[error("cannot start {}: {source}; check its permissions and that its file system is not mounted noexec", .path.display())]
    Spawn {
        /// The program.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The system had no resources to watch the process with.
    #[error("cannot watch the plugin's process: {source}; the host may be out of file descriptors")]
    Watch {
        /// The system's reason.
        source: io::Error,
    },
    /// The process ran, but the two did not get to understand each other. It was killed and reaped.
    #[error("{cause}{}", LastOutput(.last_stderr))]
    Failed {
        /// What went wrong.
        cause: StartFailure,
        /// Its last lines on stderr, as in [`ExitReport`].
        last_stderr: Vec<String>,
    },
}

/// What went wrong between the fork and the first ping.
#[derive(Debug, Error)]
pub enum StartFailure {
    /// The process ended without having printed a line.
    #[error("the plugin ended before its handshake line: {}", without_output(.0))]
    EndedBeforeLine(ExitReport),
    /// The process ended after its handshake line, before the first ping was answered.
    #[error("the plugin ended while it was starting: {}", without_output(.0))]
    EndedAfterLine(ExitReport),
    /// The caller gave the start up.
    #[error("the start was aborted")]
    Aborted,
    /// The process closed its stdout without having printed a line, and ran on.
    #[error("the plugin closed its stdout without a handshake line and ran on; it was killed")]
    ClosedStdout,
    /// No line came in time.
    #[error("the plugin printed no handshake line within {} ms; it was killed", .after.as_millis())]
    TimedOut {
        /// The limit that passed.
        after: Duration,
    },
    /// The line is wrong.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The socket is refused.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The certificate in the line cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Connecting to the plugin's socket failed.
    #[error("cannot connect to the plugin: {0}")]
    Connect(#[from] ConnectError),
    /// The first ping failed.
    #[error("the plugin's first health check failed: {0}")]
    Ping(#[from] PingError),
    /// The host's own broker socket could not be bound.
    #[error("cannot serve the plugin's calls to the host: {0}")]
    BrokerSocket(#[source] io::Error),
}

/// The report's first half: the last output stands at the end of [`LaunchError::Failed`] for every cause alike.
fn without_output(report: &ExitReport) -> ExitReport {
    ExitReport { last_stderr: Vec::new(), ..report.clone() }
}

/// Why a health check was not answered with SERVING.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PingError {
    /// No answer in time.
    #[error("no answer to the health check within {} ms", .after.as_millis())]
    TimedOut {
        /// The deadline that passed.
        after: Duration,
    },
    /// The plugin says that it is not ready.
    #[error("the plugin answered the health check with {status}")]
    NotServing {
        /// Its status, by name.
        status: &'static str,
    },
    /// The plugin answered with an error of its own.
    #[error("the plugin refused the health check: {status}")]
    Refused {
        /// Status code and message, cleaned.
        status: String,
    },
    /// The connection failed.
    #[error("the connection to the plugin failed: {0}")]
    Transport(
        /// The chain of causes, cleaned.
        String,
    ),
}
