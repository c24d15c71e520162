//! Processes by their id: signals, and whether they live.

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// Sends a signal to a process that is there.
#[track_caller]
pub fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("the process is there");
}

/// Whether the process runs.
pub fn alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie still has an entry; its state follows the name's closing bracket.
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}
