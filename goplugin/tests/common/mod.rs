//! What the real-process tests share: a host around one plugin, the plugins, and waiting on conditions.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use goplugin::host::{
    ExitReport, Forker, LaunchError, LaunchSpec, LogLine, LogSink, Plugin, StopLadder, Timing, launch,
};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;
use tonic::service::Routes;
use tonic_health::ServingStatus;

pub const TIMING: Timing = Timing {
    start_timeout: Duration::from_secs(20),
    dial_timeout: Duration::from_secs(10),
    ping_timeout: Duration::from_secs(10),
    accept_timeout: Duration::from_secs(2),
    pipe_grace: Duration::from_millis(500),
};

pub const LADDER: StopLadder = StopLadder { stop_grace: Duration::from_secs(2), term_grace: Duration::from_secs(1) };

/// How long a test waits for something that should come soon, on a busy machine.
pub const SOON: Duration = Duration::from_secs(20);

/// A host with one socket root and one log, for any number of starts.
pub struct Host {
    pub forker: Forker,
    pub root: TempDir,
    pub timing: Timing,
    lines: Arc<Mutex<Vec<LogLine>>>,
}

impl Host {
    pub fn new() -> Host {
        Host {
            forker: Forker::start().expect("a thread"),
            root: tempfile::Builder::new().prefix("gp").tempdir().expect("a folder"),
            timing: TIMING,
            lines: Arc::default(),
        }
    }

    pub fn spec(&self, executable: &Path, mode: &str) -> LaunchSpec {
        let path = env::var_os("PATH").unwrap_or_default();
        LaunchSpec {
            executable: executable.into(),
            program: None,
            working_dir: "/".into(),
            env: vec![("PATH".into(), path), ("GUEST_MODE".into(), OsString::from(mode))],
            cookie: ("GOPLUGIN_TEST".to_owned(), "crumb".to_owned()),
            protocol_version: 1,
            socket_root: self.root.path().into(),
            max_message_bytes: 1 << 20,
        }
    }

    pub fn sink(&self) -> LogSink {
        let lines = self.lines.clone();
        Arc::new(move |line| lines.lock().expect("no panic").push(line))
    }

    pub async fn launch_spec(&self, spec: LaunchSpec) -> Result<Plugin, LaunchError> {
        launch(&self.forker, spec, self.timing, host_service().await, self.sink()).await
    }

    pub async fn launch(&self, executable: &Path, mode: &str) -> Plugin {
        self.launch_spec(self.spec(executable, mode)).await.expect("the plugin starts")
    }

    /// The error of a start that must fail and leave nothing.
    pub async fn launch_error(&self, executable: &Path, mode: &str) -> LaunchError {
        let error = self.launch_spec(self.spec(executable, mode)).await.expect_err("the start fails");
        assert_eq!(self.sockets(), Vec::<PathBuf>::new(), "files left after: {error}");
        error
    }

    /// Starts a shell script in the plugin's place.
    pub async fn script_error(&self, script: &str) -> LaunchError {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("plugin.sh");
        write_program(&path, format!("#!/bin/sh\n{script}\n").as_bytes(), 0o755);
        self.launch_error(&path, "").await
    }

    pub fn messages(&self) -> Vec<String> {
        self.lines.lock().expect("no panic").iter().map(|line| line.message.clone()).collect()
    }

    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.lock().expect("no panic").clone()
    }

    /// Waits for a log line that starts with `start` and gives its rest.
    pub async fn logged(&self, start: &str) -> String {
        let what = format!("a line that starts with {start:?}");
        until(&what, || self.messages().iter().find_map(|line| line.strip_prefix(start).map(str::to_owned))).await
    }

    /// What is in the socket folders.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let entries = |path: &Path| fs::read_dir(path).map(|all| all.flatten().map(|entry| entry.path()).collect());
        let folders: Vec<PathBuf> = entries(self.root.path()).expect("the root is there");
        let mut all = folders.clone();
        all.extend(folders.iter().filter_map(|folder| entries(folder).ok()).flat_map(|found: Vec<PathBuf>| found));
        all
    }

    /// The one socket of this name (its first letters) in the one folder.
    pub fn socket(&self, name: &str) -> PathBuf {
        let is_it = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
        self.sockets().into_iter().find(is_it).expect("the socket is there")
    }
}

/// The host's own service: health, of which a plugin asks for `host`.
pub async fn host_service() -> Routes {
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status("host", ServingStatus::Serving).await;
    Routes::new(service)
}

pub fn rust_guest() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_goplugin-test-guest"))
}

/// Both guests, as far as they can be built here.
pub fn guests() -> Vec<(&'static str, PathBuf)> {
    let mut guests = vec![("rust", rust_guest())];
    guests.extend(go_program("plugin").map(|path| ("go", path)));
    guests
}

/// Builds `tests/go/<name>`, once for each test process; an unchanged one is not built again. Without Go the test goes
/// on without it, unless this is CI.
pub fn go_program(name: &str) -> Option<PathBuf> {
    static BUILT: OnceLock<bool> = OnceLock::new();
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go");
    let built = *BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/go");
        fs::create_dir_all(&target).expect("a folder in target");
        // Test files may run at once, and a program cannot be written while it runs.
        let lock = File::create(target.join("lock")).expect("a lock file");
        lock.lock().expect("the lock");
        let mut build = Command::new("go");
        build.args(["build", "-buildvcs=false", "-o"]).arg(&target).arg("./...").current_dir(source);
        match build.status() {
            Ok(status) if status.success() => true,
            problem if env::var("CI").is_ok_and(|ci| ci == "true") => {
                panic!("CI needs a current go and its modules: {problem:?}")
            }
            _ => {
                println!("skipped: needs go");
                false
            }
        }
    });
    built.then(|| target.join(name))
}

/// Writes a program file.
pub fn write_program(path: &Path, content: &[u8], mode: u32) {
    fs::write(path, content).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions set");
}

/// Waits until `condition` gives something.
pub async fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begin.elapsed() < SOON, "waited {SOON:?} for {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs; a zombie that waits for its parent does not.
pub fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

/// Stops a process and waits until each of its threads has stopped: one that runs goes on for a moment.
pub async fn freeze(pid: u32) {
    let process = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(process, Signal::STOP).expect("the process is there");
    let stopped = |task: io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(task.expect("a thread").path().join("stat")).expect("its state");
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
    };
    until(&format!("process {pid} to stop"), || {
        fs::read_dir(format!("/proc/{pid}/task")).expect("its threads").all(stopped).then_some(())
    })
    .await;
}

pub async fn gone(pid: u32) {
    until(&format!("the end of process {pid}"), || (!runs(pid)).then_some(())).await;
}

pub fn report(code: Option<i32>, signal: Option<i32>, stopped: bool, last_stderr: &[&str]) -> ExitReport {
    let last_stderr = last_stderr.iter().map(|&line| line.to_owned()).collect();
    ExitReport { code, signal, stopped, last_stderr }
}
