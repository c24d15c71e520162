//! How many files the host and its plugins may have open (docs/operations.md "Open files").

use crate::support::{Guest, Host, Package, Settings, eventually};

/// Soft and hard limit of a process.
fn limits(pid: impl std::fmt::Display) -> (String, String) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("a process");
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files")).expect("the limit");
    let mut words = line.split_whitespace().map(str::to_owned);
    (words.next().expect("a soft limit"), words.next().expect("a hard limit"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_takes_what_the_system_lets_it_have_and_its_plugins_get_what_it_was_started_with() {
    let host = Host::start_with(Settings::default().open_files("-S -n 300")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let (soft, hard) = limits(host.pid());
    assert_eq!(soft, hard);
    let plugin = host.plugin_pid("demo").expect("a process");
    assert_eq!(limits(plugin), ("300".to_owned(), hard.clone()));
    let tells = |line: &str| line.contains("may be open") && line.contains(&hard);
    eventually("the log has the number", || async { host.log().lines().any(tells) }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_below_what_the_connections_need_is_told() {
    let host = Host::start_with(Settings::default().open_files("-n 600")).await;
    let told = "fewer files may be open than limits.http_connections and the plugins need";
    eventually("the host says so", || async { host.log().contains(told) }).await;
}
