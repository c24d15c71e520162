//! What the caller of the host half chooses: the program and its surroundings, and every duration. Shapes only.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// One program to start as a plugin. Not printable: the environment may hold secrets.
#[derive(Clone)]
pub struct LaunchSpec {
    /// The program, an absolute path. It gets no arguments.
    pub executable: PathBuf,
    /// The program, open for reading: this very file is executed, even if the path leads to another one by then, and
    /// its `argv[0]` is the path. A `#!` script is executed by its path all the same, since its interpreter opens it
    /// anew and it finds what lies beside it by its own name. `None` executes what the path leads to.
    pub program: Option<Arc<File>>,
    /// The folder the program starts in.
    pub working_dir: PathBuf,
    /// The complete environment: nothing is inherited. go-plugin's own variables, the cookie and `TMPDIR` are added
    /// last and win; other `PLUGIN_*` variables that would change the protocol are left out.
    pub env: Vec<(OsString, OsString)>,
    /// The magic cookie: name and value of the variable by which the program knows that it was started as a plugin.
    pub cookie: (String, String),
    /// The application protocol version to offer.
    pub protocol_version: u32,
    /// A short folder (see [`socket_path_fits`](super::socket_path_fits)) that only this user can enter. A folder for
    /// each start, mode 0700, is made below it and removed after the exit, with whatever the plugin left in it.
    pub socket_root: PathBuf,
    /// The largest message, in bytes, that the crate's own clients take from the plugin. The limits of other services
    /// are set on their generated clients and servers.
    pub max_message_bytes: usize,
}

/// How long a host waits for a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// For the fork, and then again from it to the handshake line. After it: killed,
    /// [`StartFailure::TimedOut`](super::StartFailure::TimedOut).
    pub start_timeout: Duration,
    /// For connecting: socket, TLS and HTTP/2 together. After it: killed, the launch fails.
    pub dial_timeout: Duration,
    /// For the first ping. After it: killed, the launch fails.
    pub ping_timeout: Duration,
    /// For a TLS handshake on the broker socket. After it that connection is dropped, nothing else.
    pub accept_timeout: Duration,
    /// How long after the exit the output may still be drained, and then how long the plugin's tasks may take to end.
    /// After it what is held open (by a process that left the plugin's group) is given up.
    pub pipe_grace: Duration,
}

/// How long each step of a stop waits before the next one is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopLadder {
    /// From the controller's Shutdown call, its reply included, to TERM for the process group.
    pub stop_grace: Duration,
    /// From TERM to KILL.
    pub term_grace: Duration,
}
