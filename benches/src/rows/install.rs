//! Install of a large package of real binaries, first byte of the upload to the answer, without the plugin's own start;
//! against `tar -xzf` and `sha256sum` of the same files. And the memory the host takes for it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::Method;
use tokio::time::{Instant, sleep};

use crate::{
    Options, Outcome, package,
    report::{Bound, Line, Values},
    rounds::{Series, alternate},
    served::{Served, anonymous_kb},
};

const MOST: f64 = 1.2;
const MEMORY_MB: f64 = 24.0;
const ID: &str = "bench-large";

/// Bytes of real binaries that come to about 95 MB: programs shrink to a good third.
const ROOM: u64 = 262_000_000;

/// For start-up work to end before memory is read.
const SETTLE: Duration = Duration::from_millis(500);

/// Between two looks at the memory.
const SAMPLE: Duration = Duration::from_millis(1);

/// What the package must have, compressed, in bytes.
const LARGE: std::ops::RangeInclusive<u64> = 85_000_000..=104_000_000;

pub async fn run(options: Options) -> Outcome<Vec<Line>> {
    let archive = large_package(&options)?;
    let served = Served::start(&options.program("kandev-host")?).await?;
    sleep(SETTLE).await;
    // Of a host that has installed nothing: memory that an allocator keeps for the next install counts too.
    let fresh_kb = anonymous_kb(served.pid())?;
    let mut memory = Series::default();
    let bare = async || unpack_and_hash(&archive);
    let own = async || {
        let (seconds, peak_kb) = install(&served, &archive).await?;
        memory.0.push((peak_kb - fresh_kb).max(0.0) / 1000.0);
        Ok(seconds)
    };
    let pairs = alternate(options.rounds(), bare, own).await?;
    Ok(vec![
        Line {
            row: "install",
            what: "install of a package of about 95 MB",
            unit: "s",
            values: Values::Pairs(pairs),
            bound: Bound::RatioAtMost(MOST),
        },
        Line {
            row: "install-memory",
            what: "anonymous memory beside that install",
            unit: "MB",
            values: Values::Single(memory),
            bound: Bound::AtMost { median: MEMORY_MB, p99: Some(MEMORY_MB) },
        },
    ])
}

/// Installs, then measures a start of the same plugin alone, then uninstalls. Seconds without the start, and the peak
/// of anonymous memory in kB.
async fn install(served: &Served, archive: &Path) -> Outcome<(f64, f64)> {
    let watch = MemoryWatch::start(served.pid());
    let began = Instant::now();
    served.install(archive).await?;
    let whole = began.elapsed();
    let peak_kb = watch.peak_kb()?;
    served.command(Method::POST, &format!("/api/plugins/{ID}/disable")).await?;
    let began = Instant::now();
    served.command(Method::POST, &format!("/api/plugins/{ID}/enable")).await?;
    let start = began.elapsed();
    served.command(Method::DELETE, &format!("/api/plugins/{ID}")).await?;
    Ok((whole.saturating_sub(start).as_secs_f64(), peak_kb))
}

/// The bare way: the two programs one after the other.
fn unpack_and_hash(archive: &Path) -> Outcome<f64> {
    let folder = tempfile::Builder::new().prefix("kb").tempdir()?;
    let script = "tar -xzf \"$1\" && find . -type f -exec sha256sum {} + >/dev/null";
    let archive = fs::canonicalize(archive)?;
    let began = Instant::now();
    let status = Command::new("sh").current_dir(folder.path()).args(["-ec", script, "sh"]).arg(archive).status()?;
    let seconds = began.elapsed().as_secs_f64();
    match status.success() {
        true => Ok(seconds),
        false => Err("tar or sha256sum failed".into()),
    }
}

/// Made once and kept. Its files are the Rust compiler's, which every machine that builds this has.
fn large_package(options: &Options) -> Outcome<PathBuf> {
    let archive = options.output.join("large.tar.gz");
    if !archive.exists() {
        let root = Command::new("rustc").args(["--print", "sysroot"]).output()?.stdout;
        let root = PathBuf::from(String::from_utf8(root)?.trim());
        let mut files: Vec<PathBuf> = fs::read_dir(root.join("lib"))?
            .chain(fs::read_dir(root.join("bin"))?)
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 1_000_000))
            .collect();
        files.sort_by_key(|path| (std::cmp::Reverse(path.metadata().map_or(0, |meta| meta.len())), path.clone()));
        let mut room = ROOM;
        files.retain(|path| match room.checked_sub(path.metadata().map_or(0, |meta| meta.len())) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        });
        package::pack(&archive, ID, &options.program("bench-guest")?, &files, 6)?;
    }
    let size = fs::metadata(&archive)?.len();
    match LARGE.contains(&size) {
        true => Ok(archive),
        false => Err(format!("{} has {size} bytes; put a package of 85 to 104 MB there", archive.display()).into()),
    }
}

/// Looks at a process's anonymous memory again and again, on a thread of its own.
struct MemoryWatch {
    done: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<f64>,
}

impl MemoryWatch {
    fn start(pid: u32) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let until = done.clone();
        let thread = std::thread::spawn(move || {
            let mut peak: f64 = 0.0;
            while !until.load(Ordering::Relaxed) {
                peak = peak.max(anonymous_kb(pid).unwrap_or(0.0));
                std::thread::sleep(SAMPLE);
            }
            peak
        });
        Self { done, thread }
    }

    fn peak_kb(self) -> Outcome<f64> {
        self.done.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the watching thread failed".into())
    }
}
