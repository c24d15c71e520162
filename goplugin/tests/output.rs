//! Floods and lines that are too long: the pipes are always drained, and the log stays readable.

mod common;

use std::time::Duration;

use common::{Host, LADDER, guests, until};

#[tokio::test]
async fn a_300_kib_line_is_cut_and_1000_short_ones_behind_it_all_arrive() {
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "long_line").await;
        host.logged("short 999").await;
        let messages = host.messages();
        let short = messages.iter().filter(|line| line.starts_with("short ")).count();
        assert_eq!(short, 1000, "{name}");
        let long = messages.iter().find(|line| line.starts_with("{\"@level\"")).expect("the long line arrived");
        assert!(long.ends_with("… (cut)") && long.len() < 17 * 1024, "{name}: {}", long.len());
        plugin.ping(Duration::from_secs(5)).await.expect("it serves on");
        plugin.stop(LADDER).await;
    }
}

#[tokio::test]
async fn floods_neither_block_the_plugin_nor_fill_the_log() {
    for (name, guest) in guests() {
        for mode in ["flood_stdout", "flood_stderr", "flood_stdout,on_runtime_thread"] {
            let host = Host::new();
            let plugin = host.launch(&guest, mode).await;
            // By the host, which takes no more from it; or by a plugin that did not come to send it.
            until("lines left out", || host.messages().iter().any(|line| line.contains("left out")).then_some(()))
                .await;
            // It is answered only after the flood where both are one thread's work.
            let ping = plugin.ping(Duration::from_secs(20)).await;
            ping.unwrap_or_else(|error| panic!("{name} {mode}: {error}"));
            plugin.stop(LADDER).await;
            let count = host.messages().len();
            assert!(count < 20_000, "{name} {mode}: {count} lines");
        }
    }
}

#[tokio::test]
async fn a_megabyte_without_a_line_end_is_drained() {
    for (name, guest) in guests() {
        let host = Host::new();
        let plugin = host.launch(&guest, "no_line_end").await;
        host.logged("printed 1 MiB").await;
        let longest = host.messages().iter().map(String::len).max();
        assert!(longest < Some(17 * 1024), "{name}: {longest:?}");
        plugin.stop(LADDER).await;
    }
}
