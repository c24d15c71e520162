//! What plugin processes and the host itself use: memory and processor time, read from `/proc`.
//!
//! One pass over all processes serves every plugin, and its result is kept for `timing.usage_age`, so that many askers
//! cost one pass. A plugin counts with its whole process group. Nothing here ever fails a request: what cannot be read
//! is left out.

use std::{collections::BTreeMap, fs, io::Read, sync::Arc, time::Duration};

use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

/// Clock ticks of `/proc` a second: fixed at 100 on every Linux architecture this host runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Largest file of `/proc` that is read here, in bytes.
const PROC_FILE_BYTES: u64 = 16 * 1024;

/// What a process group uses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Anonymous memory that is in RAM, in bytes: without files and shared memory.
    pub memory_bytes: u64,
    /// Processor time, user and system, children that ended included.
    pub cpu_seconds: f64,
    /// Processes of the group.
    pub processes: u64,
}

/// What the host's own process uses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnUsage {
    /// Memory in RAM, in bytes.
    pub resident_bytes: u64,
    /// Of it without files and shared memory.
    pub anonymous_bytes: u64,
    /// Processor time, user and system.
    pub cpu_seconds: f64,
    /// Threads.
    pub threads: u64,
    /// Open files and sockets.
    pub open_files: u64,
}

/// One look at `/proc`.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    groups: BTreeMap<i32, Usage>,
    /// The host itself.
    pub own: OwnUsage,
}

impl Sample {
    /// The group that this process leads. `None` when it was not there at the time of the sample.
    pub fn of_group(&self, leader: u32) -> Option<Usage> {
        self.groups.get(&i32::try_from(leader).ok()?).copied()
    }
}

/// Takes samples, at most one in `age`.
#[derive(Debug)]
pub struct UsageSampler {
    age: Duration,
    deadline: Duration,
    last: Mutex<Option<(Instant, Arc<Sample>)>>,
}

impl UsageSampler {
    /// A sampler whose samples are at most `age` old and take at most `deadline`.
    pub fn new(age: Duration, deadline: Duration) -> Self {
        Self { age, deadline, last: Mutex::new(None) }
    }

    /// A sample that is fresh, and knows the group of `leader` when one is named: a process that has just started makes
    /// a new one. Whoever comes while one is taken waits for it. An empty one when `/proc` does not answer in time.
    pub async fn sample(&self, leader: Option<u32>) -> Arc<Sample> {
        let taking = async {
            let mut last = self.last.lock().await;
            let known = |sample: &Sample| leader.is_none_or(|leader| sample.of_group(leader).is_some());
            if let Some((taken, sample)) = &*last
                && taken.elapsed() < self.age
                && known(sample)
            {
                return Arc::clone(sample);
            }
            let sample = Arc::new(spawn_blocking(take).await.unwrap_or_default());
            *last = Some((Instant::now(), Arc::clone(&sample)));
            sample
        };
        tokio::time::timeout(self.deadline, taking).await.unwrap_or_default()
    }
}

/// Groups whose leader is a child of this process.
fn take() -> Sample {
    let own = std::process::id().cast_signed();
    let all: Vec<Stat> = pids().filter_map(Stat::read).collect();
    let mut groups: BTreeMap<i32, Usage> = all
        .iter()
        .filter(|process| process.pid == process.group && process.parent == own)
        .map(|leader| (leader.group, Usage::default()))
        .collect();
    for process in &all {
        let Some(usage) = groups.get_mut(&process.group) else { continue };
        usage.processes += 1;
        usage.cpu_seconds += (process.ticks + process.ticks_of_children) as f64 / TICKS_PER_SECOND;
        usage.memory_bytes += Status::read(process.pid).map_or(0, |status| status.anonymous_bytes);
    }
    let status = Status::read(own).unwrap_or_default();
    let stat = all.iter().find(|process| process.pid == own);
    let own = OwnUsage {
        resident_bytes: status.resident_bytes,
        anonymous_bytes: status.anonymous_bytes,
        cpu_seconds: stat.map_or(0.0, |stat| stat.ticks as f64 / TICKS_PER_SECOND),
        threads: status.threads,
        // The listing itself is one of them.
        open_files: fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count().saturating_sub(1) as u64),
    };
    Sample { groups, own }
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    fs::File::open(path).ok()?.take(PROC_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The numbers of `/proc/<pid>/stat` that matter here.
#[derive(Debug, PartialEq)]
struct Stat {
    pid: i32,
    parent: i32,
    group: i32,
    ticks: u64,
    ticks_of_children: u64,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &read(&format!("/proc/{pid}/stat"))?)
    }

    /// The name in parentheses may hold anything; after the last one come state, parent, group and so on.
    fn parse(pid: i32, line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let ticks = |n: usize| fields.get(n).and_then(|field| field.parse::<u64>().ok());
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            ticks: ticks(11)? + ticks(12)?,
            ticks_of_children: ticks(13)? + ticks(14)?,
        })
    }
}

/// The numbers of `/proc/<pid>/status` that matter here.
#[derive(Debug, Default, PartialEq)]
struct Status {
    resident_bytes: u64,
    anonymous_bytes: u64,
    threads: u64,
}

impl Status {
    fn read(pid: i32) -> Option<Self> {
        Some(Self::parse(&read(&format!("/proc/{pid}/status"))?))
    }

    fn parse(text: &str) -> Self {
        let number = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            value.and_then(|value| value.split_ascii_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
        };
        Self {
            resident_bytes: number("VmRSS") * 1024,
            anonymous_bytes: number("RssAnon") * 1024,
            threads: number("Threads"),
        }
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

    #[tokio::test]
    async fn a_child_counts_with_its_group_and_the_host_with_itself() {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "sleep 600 & sleep 600 & wait"])
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let sampler = UsageSampler::new(Duration::ZERO, DEADLINE);
        let begin = Instant::now();
        let usage = loop {
            let usage = sampler.sample(Some(child.id())).await.of_group(child.id());
            match usage {
                Some(usage) if usage.processes == 3 => break usage,
                _ => assert!(begin.elapsed() < DEADLINE, "{usage:?}"),
            }
        };
        assert!(usage.memory_bytes > 10_000 && usage.cpu_seconds >= 0.0, "{usage:?}");
        let own = sampler.sample(None).await.own;
        assert!(own.resident_bytes > own.anonymous_bytes && own.anonymous_bytes > 100_000, "{own:?}");
        assert!(own.threads >= 1 && own.open_files >= 3, "{own:?}");
        let group = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        assert_eq!(sampler.sample(None).await.of_group(child.id()), None);
    }

    #[tokio::test]
    async fn a_fresh_sample_is_used_again_unless_a_group_is_missing_in_it() {
        let sampler = UsageSampler::new(DEADLINE, DEADLINE);
        let first = sampler.sample(None).await;
        assert!(Arc::ptr_eq(&first, &sampler.sample(None).await));
        assert!(!Arc::ptr_eq(&first, &sampler.sample(Some(1)).await));
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = Stat::parse(7, "7 (a) b) R) S 1 5 3 0 -1 4 0 0 0 0 10 20 3 4 20 0").unwrap();
        assert_eq!(stat, Stat { pid: 7, parent: 1, group: 5, ticks: 30, ticks_of_children: 7 });
    }

    proptest! {
        #[test]
        fn any_text_gets_a_verdict(text in "[ -~\n]{0,300}") {
            let _ = Stat::parse(1, &text);
            Status::parse(&text);
        }
    }
}
