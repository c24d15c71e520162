//! A host that dies leaves no plugin process.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use common::{Host, gone, runs, rust_guest, until};

const POOL_THREAD: &str = "test-pool";

/// Not a test of its own: the host that the tests below kill. It starts a plugin, waits until the runtime has ended its
/// idle pool threads, which a plugin forked by one of them would follow, tells the plugin's pid and waits.
#[test]
fn host_to_be_killed() {
    if env::var_os("GOPLUGIN_TEST_HOST").is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name(POOL_THREAD)
        .thread_keep_alive(Duration::from_millis(50))
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let host = Host::new();
        tokio::task::spawn_blocking(|| assert!(has_pool_threads())).await.expect("no panic");
        let plugin = host.launch(&rust_guest(), "").await;
        until("the end of the idle threads", || (!has_pool_threads()).then_some(())).await;
        println!("\nplugin {}", plugin.pid());
        std::future::pending::<()>().await;
    });
}

fn has_pool_threads() -> bool {
    let threads = fs::read_dir("/proc/self/task").expect("procfs").flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.into_iter().any(|name| name.trim_end() == POOL_THREAD)
}

fn start_host(mut command: Command) -> (Child, u32) {
    let mut child = command
        .args(["--exact", "host_to_be_killed", "--nocapture"])
        .env("GOPLUGIN_TEST_HOST", "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the host starts");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = stdout.lines().map_while(Result::ok);
    let plugin = lines.find_map(|line| line.strip_prefix("plugin ").map(str::to_owned));
    (child, plugin.expect("a plugin was started").parse().expect("a pid"))
}

#[tokio::test]
async fn a_plugin_outlives_the_runtimes_idle_threads_but_not_the_host() {
    let (mut host, plugin) = start_host(Command::new(env::current_exe().expect("a path")));
    assert!(runs(plugin), "the plugin lives as long as its host");
    host.kill().expect("killed");
    host.wait().expect("reaped");
    gone(plugin).await;
}

#[tokio::test]
async fn a_host_that_is_pid_1_can_start_plugins() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child"]);
    let possible = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
    if !possible.is_ok_and(|run| run.status.success()) {
        println!("skipped: needs unshare and root");
        return;
    }
    unshare.arg(env::current_exe().expect("a path"));
    let (mut host, plugin) = start_host(unshare);
    assert!(plugin > 1, "a pid of the host's own namespace");
    host.kill().expect("killed");
    host.wait().expect("reaped");
}
