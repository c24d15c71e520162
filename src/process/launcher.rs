//! [`Launcher`] over goplugin: real processes.

use std::{fs::DirBuilder, io, os::unix::fs::DirBuilderExt, path::Path, sync::Arc, time::Duration};

use async_trait::async_trait;
use goplugin::host::{self, Forker, LaunchSpec, Plugin, StopLadder};
use time::OffsetDateTime;

use super::executable::{Executables, Identity, Verified};
use super::{Environment, LaunchFailure, LaunchRequest, Launched, Launcher, LogSink, PluginProcess, SocketRoot};
use crate::{
    config::{Limits, Timing},
    domain::log_line::{Level, LogLine, Stream},
    grpc::client::ChannelClient,
};

/// The magic cookie and protocol version of `kandev.plugin.v1` (wire.md §1.1).
const COOKIE: (&str, &str) = ("KANDEV_PLUGIN", "kandev-plugin-v1");
const PROTOCOL_VERSION: u32 = 1;

/// Starts plugins as subprocesses; clones share the thread that forks.
#[derive(Clone)]
pub struct GoPluginLauncher {
    forker: Forker,
    environment: Environment,
    sockets: SocketRoot,
    timing: host::Timing,
    ladder: StopLadder,
    message_bytes: u64,
    executables: Executables,
}

impl GoPluginLauncher {
    /// A launcher with the host's timing and limits.
    pub fn new(
        forker: Forker,
        environment: Environment,
        sockets: SocketRoot,
        timing: &Timing,
        limits: &Limits,
    ) -> Self {
        let ladder = StopLadder { stop_grace: timing.stop_grace, term_grace: timing.term_grace };
        let timing = host::Timing {
            start_timeout: timing.start_timeout,
            dial_timeout: timing.dial_timeout,
            ping_timeout: timing.ping_timeout,
            accept_timeout: timing.accept_timeout,
            pipe_grace: timing.pipe_grace,
        };
        let executables = Executables::default();
        Self { forker, environment, sockets, timing, ladder, message_bytes: limits.message_bytes, executables }
    }

    /// Verifies the executable, spawns it, shakes hands and pings once: the plugin as goplugin knows it, and the digest
    /// of its program.
    ///
    /// # Errors
    /// [`LaunchFailure`]; nothing of the process is left then.
    pub async fn start(&self, request: LaunchRequest) -> Result<(Plugin, String), LaunchFailure> {
        let (spec, verified) = tokio::select! {
            prepared = self.prepare(&request) => prepared?,
            () = request.abort.cancelled() => return Err(LaunchFailure::Passing("the start was aborted".to_owned())),
        };
        let sink = sink(request.log);
        let abort = request.abort.cancelled_owned();
        let launched = host::launch_unless(abort, &self.forker, spec, self.timing, request.host_service, sink).await;
        let plugin = launched.map_err(failure)?;
        // What was verified is what the kernel took: it was executed by its descriptor. Left are a file that was
        // written to in place before the kernel forbade it, and a script, which its interpreter opened by the path.
        let executed = tokio::fs::metadata(&request.executable).await;
        if !executed.is_ok_and(|metadata| Identity::of(&metadata) == verified.identity) {
            plugin.kill();
            plugin.exited().await;
            let path = request.executable.display();
            let text = format!("the program {path} was changed while it was being started; try again");
            return Err(LaunchFailure::Passing(text));
        }
        Ok((plugin, verified.sha256))
    }

    /// A started plugin as the actors know it.
    pub fn adopt(&self, plugin: Plugin, executable_sha256: String) -> Launched {
        let client = ChannelClient::new(plugin.channel(), self.message_bytes);
        Launched {
            client: Arc::new(client),
            process: Arc::new(Process { plugin, ladder: self.ladder }),
            executable_sha256: Some(executable_sha256),
        }
    }

    /// Verifies the executable and makes the folders a start needs; off the async threads, since the disk may be slow.
    async fn prepare(&self, request: &LaunchRequest) -> Result<(LaunchSpec, Verified), LaunchFailure> {
        let (sockets, data_dir) = (self.sockets.clone(), request.data_dir.clone());
        let (executables, executable) = (self.executables.clone(), request.executable.clone());
        let expected = request.executable_sha256.clone();
        let work = move || {
            let verified = executables.verify(&executable, expected.as_deref());
            let (verified, program) = verified.map_err(|error| match error.is_lasting() {
                true => LaunchFailure::Lasting(error.to_string()),
                false => LaunchFailure::Passing(error.to_string()),
            })?;
            make_data_dir(&data_dir)?;
            let socket_root = sockets.ensure().map_err(|error| LaunchFailure::Passing(error.to_string()))?;
            Ok((socket_root.to_owned(), verified, program))
        };
        let joined = tokio::task::spawn_blocking(work).await;
        let stopping = |_| LaunchFailure::Passing("the host is stopping".to_owned());
        let (socket_root, verified, program) = joined.map_err(stopping)??;
        let spec = LaunchSpec {
            executable: request.executable.clone(),
            program: Some(Arc::new(program)),
            working_dir: request.install_path.clone(),
            env: self.environment.for_plugin(&request.data_dir),
            cookie: (COOKIE.0.to_owned(), COOKIE.1.to_owned()),
            protocol_version: PROTOCOL_VERSION,
            socket_root,
            max_message_bytes: usize::try_from(self.message_bytes).unwrap_or(usize::MAX),
        };
        Ok((spec, verified))
    }
}

#[async_trait]
impl Launcher for GoPluginLauncher {
    async fn launch(&self, request: LaunchRequest) -> Result<Launched, LaunchFailure> {
        let (plugin, sha256) = self.start(request).await?;
        Ok(self.adopt(plugin, sha256))
    }
}

/// A program of another machine or kind does not become one by waiting.
fn failure(error: host::LaunchError) -> LaunchFailure {
    use host::ExecutableError::{WrongArchitecture, WrongFormat};
    match &error {
        host::LaunchError::Executable(WrongArchitecture { .. } | WrongFormat { .. }) => {
            LaunchFailure::Lasting(error.to_string())
        }
        _ => LaunchFailure::Passing(error.to_string()),
    }
}

struct Process {
    plugin: Plugin,
    ladder: StopLadder,
}

#[async_trait]
impl PluginProcess for Process {
    fn pid(&self) -> u32 {
        self.plugin.pid()
    }

    async fn ping(&self, deadline: Duration) -> Result<(), String> {
        self.plugin.ping(deadline).await.map_err(|error| error.to_string())
    }

    async fn exited(&self) -> String {
        self.plugin.exited().await.to_string()
    }

    async fn stop(&self) {
        self.plugin.stop(self.ladder).await;
    }

    fn kill(&self) {
        self.plugin.kill();
    }
}

/// Readable by others, as existing plugins find it (lifecycle.md §5); an existing folder keeps its mode. Its parent,
/// the plugin's own folder, is not made: an uninstall that overtook the start has removed it for good.
fn make_data_dir(path: &Path) -> Result<(), LaunchFailure> {
    match DirBuilder::new().mode(0o755).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(LaunchFailure::Passing(format!(
            "cannot make the plugin's data folder {}: {error}; check that the host's user may write there",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn sink(log: LogSink) -> host::LogSink {
    Arc::new(move |line: host::LogLine| log(to_log_line(line)))
}

fn to_log_line(line: host::LogLine) -> LogLine {
    let level = match line.level {
        host::Level::Trace => Level::Trace,
        host::Level::Debug => Level::Debug,
        host::Level::Info => Level::Info,
        host::Level::Warn => Level::Warn,
        host::Level::Error => Level::Error,
    };
    let stream = match line.stream {
        host::Stream::Stdout => Stream::Stdout,
        host::Stream::Stderr => Stream::Stderr,
    };
    LogLine { time: OffsetDateTime::now_utc(), level, stream, message: line.message }
}

#[cfg(test)]
mod tests;
