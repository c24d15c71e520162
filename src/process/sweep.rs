//! Ends processes that an earlier host of the same home left behind: children of a plugin that took a group of their
//! own, or whatever else the parent-death signal did not reach.
//!
//! They are found by the home's mark in their environment (`process::environment`). A process that cleared its
//! environment *and* left its group is out of reach.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, geteuid, getpgrp, getpid, kill_process_group, pidfd_open, pidfd_send_signal},
};
use tokio::{task::spawn_blocking, time::Instant};
use tracing::{info, warn};

use super::environment::HOME_MARK;
use crate::domain::home_id::HomeId;

/// Most of a process's environment that is looked at, in bytes; the kernel's own bound is of this order.
const ENVIRONMENT_BYTES: u64 = 4 << 20;

/// Longest chain of parents that is followed.
const GENERATIONS: usize = 64;

/// What a sweep has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were killed.
    pub killed: BTreeSet<i32>,
    /// Those of them, and others, that were still there at the deadline.
    pub left: BTreeSet<i32>,
}

/// Kills every process with the mark of `home` and its group, and waits until they are gone, at most `deadline`. The
/// caller holds the home's lock, so no other host owns them; its own descendants are spared.
pub async fn sweep(home: &HomeId, deadline: Duration) -> Swept {
    let mark = format!("{HOME_MARK}={home}");
    spawn_blocking(move || sweep_marked(mark.as_bytes(), Instant::now() + deadline)).await.unwrap_or_default()
}

fn sweep_marked(mark: &[u8], end: Instant) -> Swept {
    let mut swept = Swept::default();
    loop {
        let found = kill_marked(mark);
        if found.is_empty() {
            return swept;
        }
        for pid in found.keys().filter(|pid| !swept.killed.contains(pid)) {
            info!(pid, "killed a process that an earlier host left behind");
        }
        swept.killed.extend(found.keys());
        // One that forked in the last instant is found by the next round.
        swept.left = wait(found, end);
        if !swept.left.is_empty() {
            warn!(pids = ?swept.left, "processes of an earlier host do not end");
            return swept;
        }
    }
}

/// Gives those that have not ended at `end`. A pidfd becomes readable when its process has ended.
fn wait(mut running: BTreeMap<i32, OwnedFd>, end: Instant) -> BTreeSet<i32> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut fds: Vec<PollFd<'_>> = running.values().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let answered =
            Timespec::try_from(left).ok().and_then(|left| retry_on_intr(|| poll(&mut fds, Some(&left))).ok());
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        running.retain(|_, _| !ended.next().unwrap_or(false));
        if running.is_empty() || left.is_zero() || answered.is_none() {
            return running.into_keys().collect();
        }
    }
}

fn kill_marked(mark: &[u8]) -> BTreeMap<i32, OwnedFd> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, kill_if_marked(pid, mark)?))).collect()
}

/// The pidfd is opened first: when the signal through it arrives, the process existed all the while, so what was read
/// under its pid in between was its own.
fn kill_if_marked(pid: i32, mark: &[u8]) -> Option<OwnedFd> {
    let id = Pid::from_raw(pid)?;
    let fd = pidfd_open(id, PidfdFlags::empty()).ok()?;
    let own = id == getpid() || fs::metadata(format!("/proc/{pid}")).ok()?.uid() != geteuid().as_raw();
    if own || !has_mark(pid, mark).ok()? || is_descendant(pid) {
        return None;
    }
    let group = Stat::read(pid)?.group;
    // Stopped, it cannot end by itself and free the number of its group before the group is killed.
    pidfd_send_signal(&fd, Signal::STOP).ok()?;
    if let Some(group) = Pid::from_raw(group).filter(|group| *group != getpgrp() && !group.is_init()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    pidfd_send_signal(&fd, Signal::KILL).ok().map(|()| fd)
}

fn has_mark(pid: i32, mark: &[u8]) -> io::Result<bool> {
    let mut environment = Vec::new();
    File::open(format!("/proc/{pid}/environ"))?.take(ENVIRONMENT_BYTES).read_to_end(&mut environment)?;
    Ok(environment.split(|byte| *byte == 0).any(|variable| variable == mark))
}

fn is_descendant(pid: i32) -> bool {
    let parents = std::iter::successors(Some(pid), |pid| Stat::read(*pid).map(|stat| stat.parent));
    parents.skip(1).take(GENERATIONS).any(|parent| Pid::from_raw(parent) == Some(getpid()))
}

/// The two numbers of `/proc/<pid>/stat` that matter here.
struct Stat {
    parent: i32,
    group: i32,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name in parentheses may hold anything, further parentheses included; after the last one come state, parent
    /// and group.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace().skip(1);
        Some(Self { parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::CommandExt,
        process::{Command, Stdio},
    };

    use proptest::prelude::*;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    /// Starts `script` under a shell that ends at once, so that what it started is nobody's child; gives the pids
    /// that it printed.
    fn orphans(home: &HomeId, script: &str) -> Vec<i32> {
        let output = Command::new("/bin/sh")
            .args(["-c", script])
            .env(HOME_MARK, home.as_str())
            .stdin(Stdio::null())
            .process_group(0)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Running; a zombie that its new parent does not reap is not.
    fn runs(pid: i32) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    }

    #[tokio::test]
    async fn marked_processes_and_their_groups_are_killed_and_others_stay() {
        let (home, other) = (HomeId::derive(b"swept", 0, 0), HomeId::derive(b"other", 0, 0));
        let script =
            "sleep 600 >&- 2>&- & echo $!; env -i sleep 600 >&- 2>&- & echo $!; setsid sleep 600 >&- 2>&- & echo $!";
        let marked = orphans(&home, script);
        let stranger = orphans(&other, "sleep 600 >&- 2>&- & echo $!");
        let swept = sweep(&home, DEADLINE).await;
        assert_eq!(swept.left, BTreeSet::new());
        assert!(swept.killed.contains(&marked[0]), "{swept:?} {marked:?}");
        // Those without the mark went with their group, and are on their way.
        let gone = async {
            while marked.iter().any(|pid| runs(*pid)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, gone).await.unwrap_or_else(|_| panic!("{swept:?} {marked:?}"));
        assert!(runs(stranger[0]));
        assert_eq!(sweep(&home, DEADLINE).await, Swept::default());
        assert!(sweep(&other, DEADLINE).await.killed.contains(&stranger[0]));
    }

    #[tokio::test]
    async fn the_hosts_own_children_are_spared() {
        let home = HomeId::derive(b"spared", 0, 0);
        let mut child = Command::new("sleep").arg("600").env(HOME_MARK, home.as_str()).spawn().unwrap();
        assert_eq!(sweep(&home, DEADLINE).await, Swept::default());
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[tokio::test]
    async fn a_stopped_process_is_killed_too() {
        let home = HomeId::derive(b"stopped", 0, 0);
        // Stopped before it has become `sleep`, the child would keep the pipe that `orphans` reads open. In a session
        // of its own, since the kernel ends the stopped processes of a group that loses its shell.
        let script = "setsid sleep 600 >&- 2>&- & echo $!; \
                      until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!";
        let marked = orphans(&home, script);
        let swept = sweep(&home, DEADLINE).await;
        // The shell that started it may still be ending.
        assert!(swept.killed.contains(&marked[0]), "{swept:?} {marked:?}");
        assert_eq!(swept.left, BTreeSet::new());
    }

    proptest! {
        #[test]
        fn no_process_name_shifts_the_fields(name in "[^\\n]{0,15}", parent in 0..i32::MAX, group in 0..i32::MAX) {
            let stat = Stat::parse(&format!("42 ({name}) S {parent} {group} 9 0 -1")).unwrap();
            prop_assert_eq!((stat.parent, stat.group), (parent, group));
        }

        #[test]
        fn any_text_gets_a_verdict(text in ".*") {
            let _ = Stat::parse(&text);
        }
    }
}
