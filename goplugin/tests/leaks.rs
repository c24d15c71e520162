//! Nothing is left of a plugin: alone in its file, since it counts what the whole process holds.

mod common;

use std::fs;

use common::{Host, LADDER, rust_guest, until};
use tokio::runtime::Handle;

/// Open descriptors, running tasks and socket files.
fn held(host: &Host) -> (usize, usize, usize) {
    let descriptors = fs::read_dir("/proc/self/fd").expect("proc is mounted").count();
    (descriptors, Handle::current().metrics().num_alive_tasks(), host.sockets().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_starts_and_ends_leave_what_the_first_left() {
    let host = Host::new();
    let mut after_first = None;
    for round in 0..200 {
        let plugin = host.launch(&rust_guest(), "").await;
        match round % 4 {
            0 | 1 => drop(plugin.stop(LADDER).await),
            2 => {
                plugin.kill();
                plugin.exited().await;
            }
            // Whatever runs for it ends by itself.
            _ => {
                let watcher = plugin.clone();
                let exit = tokio::spawn(async move { watcher.exited().await });
                plugin.kill();
                drop(plugin);
                exit.await.expect("no panic");
            }
        }
        if round % 4 == 3 {
            let before = *after_first.get_or_insert_with(|| held(&host));
            until(&format!("{before:?} after round {round}"), || (held(&host) <= before).then_some(())).await;
        }
    }
    let failed = host.launch_spec(host.spec(&rust_guest(), "not_serving")).await;
    assert!(failed.is_err());
    until(&format!("{after_first:?} after a failed start"), || (Some(held(&host)) <= after_first).then_some(())).await;
}
