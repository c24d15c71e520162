//! The host half: [`launch()`] spawns a plugin process, meets it and returns a [`Plugin`], which is watched until it is
//! reaped.
//!
//! Owns the process, its group, its two pipes, its socket folder and everything that runs for it. Not here: what is
//! served to the plugin and called on it (the caller's `Routes` and generated clients on [`Plugin::channel`]), when to
//! ping, when to restart.
//!
//! | file | owns |
//! | --- | --- |
//! | `spec` | what the caller chooses: [`LaunchSpec`], [`Timing`], [`StopLadder`] |
//! | `forker` | the thread that forks |
//! | `executable` | telling why a file cannot be run on this machine |
//! | `opened` | executing a file that is open already |
//! | `folder`, `socket` | the private folder of one start, and checking the plugin's socket against it |
//! | `process` | the process group and the pidfd: signals, exit, reaping |
//! | `output`, `log_line`, `lines` | both pipes and the stdio stream, from bytes to [`LogLine`]s |
//! | `launch`, `meet` | the start: all or nothing |
//! | `broker`, `stdio` | the two streams that are open for the plugin's whole life |
//! | `ping` | the health check |
//! | `supervise` | the handle on the process, and the order of its end |
//! | `plugin` | the caller's handle, and the stop ladder |

mod broker;
mod error;
mod executable;
mod exit;
mod folder;
mod forker;
#[cfg(test)]
mod in_process;
mod launch;
mod lines;
mod log_line;
mod meet;
mod opened;
mod output;
mod ping;
mod plugin;
mod process;
mod socket;
mod spec;
mod stdio;
mod supervise;

pub use crate::dial::ConnectError;
pub use crate::handshake::HandshakeError;
pub use crate::tls::TlsError;
pub use error::{LaunchError, PingError, StartFailure};
pub use executable::ExecutableError;
pub use exit::ExitReport;
pub use folder::{FolderError, socket_path_fits};
pub use forker::Forker;
pub use launch::{launch, launch_unless};
pub use log_line::{Level, LogLine, LogSink, Stream};
pub use plugin::Plugin;
pub use socket::SocketError;
pub use spec::{LaunchSpec, StopLadder, Timing};
