//! Starting a plugin, all or nothing: whatever fails after the fork, the group is killed, the process reaped, its
//! output read and its folder removed before the error is returned.
//!
//! Owns the environment and the command. What follows the fork is `meet` and `supervise`.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use tokio::net::unix::pipe;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tonic::service::Routes;

use super::error::{LaunchError, StartFailure};
use super::executable::{self, Kind};
use super::folder::PrivateFolder;
use super::forker::Forker;
use super::log_line::{LogSink, Stream};
use super::meet::{FirstLine, Meeting};
use super::opened::Opened;
use super::output::{self, Journal};
use super::plugin::Plugin;
use super::process::Process;
use super::spec::{LaunchSpec, Timing};
use super::supervise::{Running, supervise};
use crate::owned::Owner;
use crate::tls::Identity;

/// Starts `spec.executable` as a plugin: spawn, handshake line, mutual TLS, first ping. Then `host_service` is served
/// to it on broker id 1, and every line that it prints goes to `log`.
///
/// Dropping the future gives the start up and kills the process, without waiting for its end: see [`launch_unless`].
/// Message limits of `host_service` are its own.
pub async fn launch(
    forker: &Forker,
    spec: LaunchSpec,
    timing: Timing,
    host_service: Routes,
    log: LogSink,
) -> Result<Plugin, LaunchError> {
    launch_unless(std::future::pending(), forker, spec, timing, host_service, log).await
}

/// [`launch()`] that is given up when `abort` resolves first. The error is then [`StartFailure::Aborted`], and comes
/// when nothing of the process is left, like every other.
pub async fn launch_unless(
    abort: impl Future<Output = ()> + Send,
    forker: &Forker,
    spec: LaunchSpec,
    timing: Timing,
    host_service: Routes,
    log: LogSink,
) -> Result<Plugin, LaunchError> {
    let (protocol_version, max_message_bytes) = (spec.protocol_version, spec.max_message_bytes);
    let mut abort = std::pin::pin!(abort);
    let aborted = || LaunchError::Failed { cause: StartFailure::Aborted, last_stderr: Vec::new() };
    let Prepared { command, opened, folder, identity, spec } = tokio::select! {
        prepared = prepare(spec) => prepared?,
        () = &mut abort => return Err(aborted()),
    };
    let place = folder.place().clone();
    // Given up here, a child that was forked meanwhile is killed on its way.
    let spawned = tokio::select! {
        spawned = timeout(timing.start_timeout, forker.spawn(command, opened)) => spawned,
        () = &mut abort => return Err(aborted()),
    };
    let child = spawned
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(|source| spawn_error(&spec.executable, source))?;
    let (running, line) =
        take_over(child, folder, timing, forker, log).map_err(|source| LaunchError::Watch { source })?;
    let meeting = Meeting { running: &running, place, identity, timing, protocol_version, max_message_bytes };
    let met = tokio::select! {
        met = meeting.run(line, host_service) => met,
        () = &mut abort => Err(StartFailure::Aborted),
    };
    match met {
        Ok(channel) => Ok(Plugin::new(running, channel)),
        Err(cause) => Err(fail(running, cause).await),
    }
}

/// What is made before the fork.
struct Prepared {
    command: Command,
    opened: Option<Opened>,
    folder: PrivateFolder,
    identity: Identity,
    spec: LaunchSpec,
}

async fn prepare(spec: LaunchSpec) -> Result<Prepared, LaunchError> {
    let ending = |_| LaunchError::Watch { source: io::Error::other("the host is ending") };
    spawn_blocking(move || {
        let kind = executable::check(&spec.executable, spec.program.as_deref())?;
        check_working_dir(&spec.working_dir)?;
        let folder = PrivateFolder::make(&spec.socket_root)?;
        let identity = Identity::generate()?;
        let file = spec.program.clone().filter(|_| kind == Kind::Program);
        let opened = file.map(|file| Opened::new(file, &spec.executable, folder.place().path())).transpose();
        let opened = opened.map_err(|source| spawn_error(&spec.executable, source))?;
        let program = opened.as_ref().map_or(&*spec.executable, Opened::path);
        let command = command(program, &spec, folder.place().path(), identity.pem());
        Ok(Prepared { command, opened, folder, identity, spec })
    })
    .await
    .map_err(ending)?
}

fn check_working_dir(path: &Path) -> Result<(), LaunchError> {
    let error = |source| LaunchError::WorkingFolder { path: path.into(), source };
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(error(io::ErrorKind::NotADirectory.into())),
        Err(source) => Err(error(source)),
    }
}

/// `program` is the path to execute; the process sees the one of `spec`.
fn command(program: &Path, spec: &LaunchSpec, folder: &Path, certificate: &str) -> Command {
    let mut command = Command::new(program);
    command
        .arg0(&spec.executable)
        .env_clear()
        .envs(spec.env.iter().filter(|(name, _)| !changes_protocol(name)).map(|(name, value)| (name, value)))
        .env(&spec.cookie.0, &spec.cookie.1)
        .env("PLUGIN_PROTOCOL_VERSIONS", spec.protocol_version.to_string())
        // Only used on other systems, but go-plugin's own host always sets them.
        .env("PLUGIN_MIN_PORT", "10000")
        .env("PLUGIN_MAX_PORT", "25000")
        // Its presence is what turns mutual TLS on.
        .env("PLUGIN_CLIENT_CERT", certificate)
        .env("PLUGIN_UNIX_SOCKET_DIR", folder)
        // Where go-plugin before 1.5.0 makes its socket; and so temporary files go when the plugin goes.
        .env("TMPDIR", folder)
        .current_dir(&spec.working_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The multiplexed broker is not spoken here, and a socket for a group would open the private folder.
fn changes_protocol(name: &OsString) -> bool {
    name == "PLUGIN_MULTIPLEX_GRPC" || name == "PLUGIN_UNIX_SOCKET_GROUP"
}

fn spawn_error(executable: &Path, source: io::Error) -> LaunchError {
    let path = executable.into();
    match source.kind() {
        // The program and the working folder were there a moment ago.
        io::ErrorKind::NotFound => LaunchError::MissingInterpreter { path },
        _ => LaunchError::Spawn { path, source },
    }
}

/// From the first instant both pipes are drained and the process is watched.
fn take_over(
    mut child: Child,
    folder: PrivateFolder,
    timing: Timing,
    forker: &Forker,
    log: LogSink,
) -> io::Result<(Running, FirstLine)> {
    let pid = child.id();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let process = Process::new(child)?;
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        return Err(io::Error::other("the process has no pipes"));
    };
    let stdout = pipe::Receiver::from_owned_fd(OwnedFd::from(stdout))?;
    let stderr = pipe::Receiver::from_owned_fd(OwnedFd::from(stderr))?;

    let journal = Arc::new(Journal::new(log, Instant::now()));
    let (first, line) = oneshot::channel();
    // Before the process is watched: one that ends at once would be reported without its last words.
    let (drains, of_stdout, of_stderr) = (Owner::default(), journal.clone(), journal.clone());
    drains.spawn(async move { output::drain_stdout(stdout, first, &of_stdout).await });
    drains.spawn(async move { output::drain(stderr, Stream::Stderr, &of_stderr).await });
    Ok((supervise(pid, process, folder, journal, drains, timing.pipe_grace, forker.clone()), line))
}

/// Ends what was started and tells `cause` with the last output.
async fn fail(running: Running, cause: StartFailure) -> LaunchError {
    running.kill();
    let last_stderr = running.control().exited().await.last_stderr;
    LaunchError::Failed { cause, last_stderr }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_the_given_one_with_the_protocols_variables_winning() {
        let spec = LaunchSpec {
            executable: "/bin/true".into(),
            program: None,
            working_dir: "/".into(),
            env: [("A", "1"), ("TMPDIR", "/tmp"), ("PLUGIN_CLIENT_CERT", "x"), ("PLUGIN_MULTIPLEX_GRPC", "true")]
                .map(|(name, value)| (name.into(), value.into()))
                .to_vec(),
            cookie: ("COOKIE".to_owned(), "crumb".to_owned()),
            protocol_version: 1,
            socket_root: "/run".into(),
            max_message_bytes: 1,
        };
        let command = command(&spec.executable, &spec, Path::new("/run/x"), "PEM");
        let found: Vec<(&str, &str)> =
            command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?))).collect();
        let wanted = [
            ("A", "1"),
            ("COOKIE", "crumb"),
            ("PLUGIN_CLIENT_CERT", "PEM"),
            ("PLUGIN_MAX_PORT", "25000"),
            ("PLUGIN_MIN_PORT", "10000"),
            ("PLUGIN_PROTOCOL_VERSIONS", "1"),
            ("PLUGIN_UNIX_SOCKET_DIR", "/run/x"),
            ("TMPDIR", "/run/x"),
        ];
        assert_eq!(found, wanted);
    }
}
