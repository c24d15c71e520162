//! The guest half under the real Go host.

mod common;

use std::process::Command;

use common::{go_program, rust_guest};

#[test]
fn a_go_host_starts_pings_serves_and_stops_the_guest() {
    let Some(host) = go_program("host") else { return };
    let run = Command::new(host).arg(rust_guest()).output().expect("the host runs");
    let text = String::from_utf8_lossy(&run.stdout);
    assert_eq!(text, "started\npinged\ndispensed\ncalled back\nstopped\n");
    assert!(run.status.success());
}
