//! A plugin's life, on both guests: calls back and forth, output, the ways to end.

mod common;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Host, LADDER, freeze, go_program, gone, guests, report, runs, rust_guest, until, write_program};
use goplugin::host::{LaunchSpec, Level, LogLine, PingError, StopLadder, Stream, launch};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

fn send(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("not zero");
    kill_process(pid, signal).expect("the process is there");
}

#[tokio::test]
async fn a_plugin_is_pinged_calls_the_host_back_and_stops_at_once() {
    let patient = StopLadder { stop_grace: Duration::from_secs(30), ..LADDER };
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "").await;
        plugin.ping(Duration::from_secs(5)).await.expect("it serves");
        assert_eq!(host.logged("callback: ").await, "SERVING", "{name}");
        let begin = Instant::now();
        let ended = plugin.stop(patient).await;
        assert!(begin.elapsed() < patient.stop_grace, "{name}: {:?}", begin.elapsed());
        assert_eq!((ended.code, ended.signal, ended.stopped), (Some(0), None, true), "{name}: {ended}");
        assert_eq!(host.sockets().len(), 0, "{name}");
        assert_eq!(plugin.exited().await, ended, "{name}: the report stays");
    }
}

/// The name, the arguments and the program of a process, as lists of processes and the process itself see them.
fn seen(pid: u32) -> (String, String, PathBuf) {
    let text = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it runs");
    let exe = std::fs::read_link(format!("/proc/{pid}/exe")).expect("it runs");
    (text("comm"), text("cmdline"), exe)
}

#[tokio::test]
async fn an_open_program_is_executed_although_its_path_leads_elsewhere_by_now() {
    for (name, guest) in guests() {
        let host = Host::new();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("echo-plugin");
        std::fs::copy(&guest, &path).expect("copied");
        let plain = host.launch(&path, "").await;
        let (comm, arguments, exe) = seen(plain.pid());
        assert_eq!((comm.as_str(), &exe), ("echo-plugin\n", &path), "{name}");
        plain.stop(LADDER).await;

        let program = Some(Arc::new(File::open(&path).expect("opened")));
        let moved = folder.path().join("moved");
        std::fs::rename(&path, &moved).expect("moved");
        write_program(&path, b"#!/bin/sh\nexit 9\n", 0o755);
        let spec = LaunchSpec { program, ..host.spec(&path, "") };
        let plugin = host.launch_spec(spec.clone()).await.expect("the open one starts");
        assert_eq!(seen(plugin.pid()), (comm, arguments, moved), "{name}: only the program's place differs");
        assert_eq!(host.logged("callback: ").await, "SERVING", "{name}");
        let folders = host.sockets();
        assert!(!folders.iter().any(|path| path.ends_with("echo-plugin")), "the link is gone: {folders:?}");
        plugin.stop(LADDER).await;
        let again = host.launch_spec(spec).await.expect("as often as it is wanted");
        again.stop(LADDER).await;
    }
}

#[tokio::test]
async fn an_open_script_runs_by_its_path_and_finds_what_lies_beside_it() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plugin.sh");
    std::fs::copy(rust_guest(), folder.path().join("real")).expect("copied");
    write_program(&path, b"#!/bin/sh\nexec \"$(dirname \"$0\")/real\"\n", 0o755);
    let program = Some(Arc::new(File::open(&path).expect("opened")));
    let plugin = host.launch_spec(LaunchSpec { program, ..host.spec(&path, "") }).await.expect("it starts");
    plugin.stop(LADDER).await;
}

#[tokio::test]
async fn output_after_the_start_comes_by_the_stdio_stream() {
    let host = Host::new();
    let plugin = host.launch(&rust_guest(), "").await;
    host.logged("callback: ").await;
    plugin.stop(LADDER).await;
    let wanted = LogLine { level: Level::Info, stream: Stream::Stdout, message: "callback: SERVING".to_owned() };
    assert!(host.lines().contains(&wanted), "{:?}", host.lines());
}

#[tokio::test]
async fn go_log_lines_keep_their_level() {
    let Some(go) = go_program("plugin") else { return };
    let host = Host::new();
    let plugin = host.launch(&go, "log").await;
    host.logged("careful").await;
    plugin.stop(LADDER).await;
    let wanted = LogLine { level: Level::Warn, stream: Stream::Stderr, message: "careful".to_owned() };
    assert!(host.lines().contains(&wanted), "{:?}", host.lines());
}

#[tokio::test]
async fn a_plugin_sees_only_the_environment_it_was_given() {
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "environment").await;
        host.logged("env TMPDIR").await;
        plugin.stop(LADDER).await;
        let mut found: Vec<String> =
            host.messages().iter().filter_map(|line| line.strip_prefix("env ").map(str::to_owned)).collect();
        found.sort();
        let wanted = [
            "GOPLUGIN_TEST",
            "GUEST_MODE",
            "PATH",
            "PLUGIN_CLIENT_CERT",
            "PLUGIN_MAX_PORT",
            "PLUGIN_MIN_PORT",
            "PLUGIN_PROTOCOL_VERSIONS",
            "PLUGIN_UNIX_SOCKET_DIR",
            "TMPDIR",
        ];
        assert_eq!(found, wanted, "{name}");
    }
}

#[tokio::test]
async fn a_broker_id_that_was_never_announced_fails_in_the_guest_after_5_seconds() {
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "dial99").await;
        let after = host.logged("dial 99 after ").await;
        let (milliseconds, error) = after.split_once(" ms: ").expect("a time");
        let milliseconds: u64 = milliseconds.parse().expect("a number");
        assert!(milliseconds >= 4900 && error != "connected", "{name}: {after}");
        plugin.ping(Duration::from_secs(5)).await.expect("it serves on");
        plugin.stop(LADDER).await;
        assert_eq!(host.sockets().len(), 0, "{name}");
    }
}

#[tokio::test]
async fn a_crash_is_reported_with_its_code_and_last_output() {
    let host = Host::new();
    let plugin = host.launch(&rust_guest(), "crash").await;
    assert_eq!(plugin.exited().await, report(Some(7), None, false, &["about to crash"]));
    assert!(matches!(plugin.ping(Duration::from_secs(1)).await, Err(PingError::Transport(_))));
    assert_eq!(host.sockets().len(), 0);
    assert_eq!(plugin.stop(LADDER).await, report(Some(7), None, false, &["about to crash"]));
}

#[tokio::test]
async fn a_go_panic_is_reported_with_its_message() {
    let Some(go) = go_program("plugin") else { return };
    let host = Host::new();
    let ended = host.launch(&go, "crash").await.exited().await;
    assert_eq!((ended.code, ended.stopped), (Some(2), false));
    assert!(ended.last_stderr.iter().any(|line| line == "panic: about to crash"), "{ended}");
    let lines = host.lines();
    let start = lines.iter().position(|line| line.message == "panic: about to crash").expect("the panic is logged");
    assert!(lines[start..].iter().filter(|line| line.stream == Stream::Stderr).all(|line| line.level == Level::Error));
}

#[tokio::test]
async fn a_killed_plugin_is_reported_at_once() {
    for (name, guest) in guests() {
        let mut host = Host::new();
        // Nothing holds the pipes open, so the grace time plays no part.
        host.timing.pipe_grace = Duration::from_secs(30);
        let plugin = host.launch(&guest, "").await;
        host.logged("callback: ").await;
        let begin = Instant::now();
        send(plugin.pid(), Signal::KILL);
        let ended = plugin.exited().await;
        assert!(begin.elapsed() < host.timing.pipe_grace, "{name}: {:?}", begin.elapsed());
        assert_eq!((ended.code, ended.signal, ended.stopped), (None, Some(9), false), "{name}: {ended}");
    }
}

#[tokio::test]
async fn children_in_the_group_end_with_the_plugin() {
    for (name, guest) in guests() {
        for how in ["stop", "crash"] {
            let host = Host::new();
            let plugin = host.launch(&guest, "child").await;
            let child: u32 = host.logged("child ").await.parse().expect("a pid");
            assert!(runs(child), "{name}");
            if how == "stop" {
                plugin.stop(LADDER).await;
            } else {
                send(plugin.pid(), Signal::KILL);
                plugin.exited().await;
            }
            gone(child).await;
        }
    }
}

#[tokio::test]
async fn a_daemon_that_left_the_group_holds_the_exit_up_for_the_grace_time_only() {
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "daemon").await;
        let daemon: u32 = host.logged("child ").await.parse().expect("a pid");
        let begin = Instant::now();
        plugin.stop(LADDER).await;
        assert!(begin.elapsed() < Duration::from_secs(60), "{name}: not for the daemon's 600 s");
        assert_eq!(host.sockets().len(), 0, "{name}");
        // setsid forks when it leads a group, so this is setsid itself or sleep.
        if runs(daemon) {
            send(daemon, Signal::KILL);
        }
    }
}

#[tokio::test]
async fn a_plugin_that_ignores_shutdown_gets_term_and_one_that_ignores_term_gets_kill() {
    let ladder = StopLadder { stop_grace: Duration::from_millis(1500), term_grace: Duration::from_millis(1500) };
    for (name, guest) in guests() {
        for (mode, signal, least) in [("ignore_shutdown", 15, 1500), ("ignore_shutdown,ignore_term", 9, 3000)] {
            let host = Host::new();
            let plugin = host.launch(&guest, mode).await;
            host.logged("callback: ").await;
            let begin = Instant::now();
            let ended = plugin.stop(ladder).await;
            let took = begin.elapsed();
            assert_eq!((ended.signal, ended.stopped), (Some(signal), true), "{name} {mode}: {ended}");
            assert!(took >= Duration::from_millis(least), "{name} {mode}: {took:?}");
            assert!(ended.last_stderr.contains(&"served".to_owned()), "{name} was asked first: {ended}");
        }
    }
}

#[tokio::test]
async fn a_frozen_plugin_is_stopped_within_the_ladder() {
    let ladder = StopLadder { stop_grace: Duration::from_millis(300), term_grace: Duration::from_millis(300) };
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "").await;
        freeze(plugin.pid()).await;
        let ping = plugin.ping(Duration::from_millis(200)).await;
        assert_eq!(ping, Err(PingError::TimedOut { after: Duration::from_millis(200) }), "{name}");
        let ended = plugin.stop(ladder).await;
        assert_eq!((ended.signal, ended.stopped), (Some(9), true), "{name}: {ended}");
    }
}

#[tokio::test]
async fn concurrent_stops_share_one_and_outlive_their_callers() {
    let host = Host::new();
    let plugin = host.launch(&rust_guest(), "ignore_shutdown").await;
    let ladder = StopLadder { stop_grace: Duration::from_secs(2), term_grace: Duration::from_secs(2) };
    // The first caller goes away while its stop is under way.
    let first = tokio::time::timeout(Duration::from_millis(50), plugin.stop(ladder)).await;
    assert!(first.is_err());
    let (one, two) = tokio::join!(plugin.stop(LADDER), plugin.stop(LADDER));
    assert_eq!(one, two);
    assert_eq!((one.signal, one.stopped), (Some(15), true));
    assert_eq!(one.last_stderr.iter().filter(|line| *line == "served").count(), 1);
}

/// Never answers, and tells when an asked call is given up.
struct Silent {
    asked: Arc<AtomicUsize>,
    given_up: Arc<AtomicUsize>,
}

struct GivenUp(Arc<AtomicUsize>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tonic::async_trait]
impl Health for Silent {
    type WatchStream = tokio_stream::Empty<Result<HealthCheckResponse, Status>>;

    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let _given_up = GivenUp(self.given_up.clone());
        std::future::pending().await
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("not asked for"))
    }
}

#[tokio::test]
async fn a_call_from_a_plugin_ends_with_the_plugin() {
    for (name, guest) in guests() {
        let host = Host::new();
        let (asked, given_up) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let silent = Routes::new(HealthServer::new(Silent { asked: asked.clone(), given_up: given_up.clone() }));
        let launched = launch(&host.forker, host.spec(&guest, ""), host.timing, silent, host.sink()).await;
        let plugin = launched.expect("the plugin starts");
        until("the plugin's call", || (asked.load(Ordering::SeqCst) == 1).then_some(())).await;
        plugin.kill();
        plugin.exited().await;
        until("the end of the call", || (given_up.load(Ordering::SeqCst) == 1).then_some(())).await;
        assert_eq!(host.sockets().len(), 0, "{name}");
    }
}

#[tokio::test]
async fn kill_ends_the_plugin_as_asked() {
    let host = Host::new();
    let plugin = host.launch(&rust_guest(), "").await;
    plugin.kill();
    let ended = plugin.exited().await;
    assert_eq!((ended.signal, ended.stopped), (Some(9), true));
}

#[tokio::test]
async fn dropping_the_last_handle_kills_the_plugin_and_removes_its_folder() {
    let host = Host::new();
    let plugin = host.launch(&rust_guest(), "").await;
    let pid = plugin.pid();
    let clone = plugin.clone();
    drop(plugin);
    clone.ping(Duration::from_secs(5)).await.expect("one handle is enough");
    drop(clone);
    gone(pid).await;
    until("an empty socket root", || host.sockets().is_empty().then_some(())).await;
}

#[test]
fn the_end_of_the_runtime_kills_the_plugin() {
    let host = Host::new();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let plugin = runtime.block_on(host.launch(&rust_guest(), ""));
    let pid = plugin.pid();
    drop(runtime);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        gone(pid).await;
        assert!(plugin.exited().await.stopped);
        assert_eq!(host.sockets().len(), 0);
    });
}
