//! What is on disk after lines were appended, rotated, lost and removed.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use super::*;
use crate::domain::log_line::{Level, Stream};

const DEADLINE: Duration = Duration::from_secs(10);

fn line(message: impl Into<String>) -> LogLine {
    LogLine {
        time: time::OffsetDateTime::UNIX_EPOCH,
        level: Level::Info,
        stream: Stream::Stderr,
        message: message.into(),
    }
}

fn id(text: &str) -> PluginId {
    PluginId::new(text).unwrap()
}

fn files(root: &Path, limits: &Limits) -> LogFiles {
    LogFiles::start(root.join("logs"), limits).unwrap()
}

fn messages(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.message.as_str()).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}

#[tokio::test]
async fn lines_are_read_back_in_order_by_the_next_host() {
    let home = tempfile::tempdir().unwrap();
    let first = files(home.path(), &Limits::default());
    for n in 0..5 {
        first.append(&id("a"), line(n.to_string()));
        first.append(&id("b"), line("other"));
    }
    first.close(DEADLINE).await;
    first.append(&id("a"), line("too late"));
    let second = files(home.path(), &Limits::default());
    assert_eq!(second.newest(&id("a"), 3), [line("2"), line("3"), line("4")]);
    assert_eq!(second.newest(&id("c"), 3), []);
    let folder = home.path().join("logs/a");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(folder.join("plugin.log")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_plugin_never_has_more_or_larger_files_than_allowed() {
    let home = tempfile::tempdir().unwrap();
    let limits = Limits { log_file_bytes: 1000, log_files: 3, ..Limits::default() };
    let files = files(home.path(), &limits);
    for n in 0..100 {
        files.append(&id("a"), line(format!("{n} {}", "x".repeat(100))));
        if n % 7 == 0 {
            files.flush(DEADLINE).await;
        }
    }
    files.flush(DEADLINE).await;
    let folder = home.path().join("logs/a");
    assert_eq!(names(&folder), ["plugin.1.log", "plugin.2.log", "plugin.log"]);
    let mut kept = Vec::new();
    for name in ["plugin.2.log", "plugin.1.log", "plugin.log"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        assert!(text.len() <= 1000, "{name}: {}", text.len());
        kept.extend(text.lines().map(|line| serde_json::from_str::<LogLine>(line).unwrap()));
    }
    let numbers: Vec<usize> =
        kept.iter().map(|line| line.message.split(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(numbers, (100 - numbers.len()..100).collect::<Vec<_>>(), "the newest lines, none missing");
}

#[tokio::test]
async fn a_lower_bound_is_kept_from_the_next_start_on_and_what_is_no_log_file_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("logs/a");
    fs::create_dir_all(&folder).unwrap();
    let ours = ["plugin.log", "plugin.1.log", "plugin.2.log", "plugin.4.log", "plugin.12.log"];
    let others = ["notes", "plugin.log.gz", "plugin.one.log", "pluginlog"];
    ours.iter().chain(&others).for_each(|name| fs::write(folder.join(name), "").unwrap());
    let limits = Limits { log_files: 2, ..Limits::default() };
    // The plugin writes nothing.
    let started = files(home.path(), &limits);
    started.flush(DEADLINE).await;
    assert_eq!(names(&folder), ["notes", "plugin.1.log", "plugin.log", "plugin.log.gz", "plugin.one.log", "pluginlog"]);
}

#[test]
fn a_rotation_deletes_every_file_beyond_the_bound() {
    let home = tempfile::tempdir().unwrap();
    let folder = LogFolder::new(home.path(), &id("a"));
    for files in [5, 2, 1] {
        let lines: Vec<_> = (0..6).map(|n| format!("{n}\n")).collect();
        let (written, result) = folder.append(&lines, 2, files);
        result.unwrap();
        assert_eq!((written, names(&home.path().join("a")).len()), (6, files), "log_files = {files}");
    }
    assert_eq!(fs::read_to_string(home.path().join("a/plugin.log")).unwrap(), "5\n", "the newest line");
}

#[tokio::test]
async fn removing_a_plugin_deletes_its_files_and_what_waits() {
    let home = tempfile::tempdir().unwrap();
    let files = files(home.path(), &Limits::default());
    files.append(&id("a"), line("1"));
    files.append(&id("b"), line("1"));
    files.flush(DEADLINE).await;
    files.append(&id("a"), line("2"));
    files.remove(&id("a"), DEADLINE).await;
    assert_eq!(names(&home.path().join("logs")), ["b"]);
}

#[tokio::test]
async fn a_full_queue_drops_the_oldest_line_and_the_file_says_so() {
    let home = tempfile::tempdir().unwrap();
    let limits = Limits { log_queue: 3, ..Limits::default() };
    // No thread takes anything here, so the queue is full for certain.
    let files = LogFiles {
        shared: Arc::new(Shared {
            root: home.path().join("logs"),
            max_queue: limits.log_queue,
            file_bytes: limits.log_file_bytes,
            files: limits.log_files,
            queue: Mutex::default(),
            filled: Condvar::new(),
            overflowed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }),
    };
    (0..5).for_each(|n| files.append(&id("a"), line(n.to_string())));
    assert_eq!(files.lost(), LostLines { overflowed: 2, failed: 0 });
    let writer = Writer::new(Arc::clone(&files.shared));
    let thread = thread::spawn(move || writer.run());
    files.close(DEADLINE).await;
    thread.join().unwrap();
    let kept = files.newest(&id("a"), 9);
    assert_eq!(messages(&kept), ["2 lines are missing here: the disk did not take them", "2", "3", "4"]);
}

#[tokio::test]
async fn a_disk_that_fails_loses_lines_with_a_count_and_is_used_again_when_it_recovers() {
    let home = tempfile::tempdir().unwrap();
    // A file where the folder should be: nothing can be written below it.
    fs::create_dir(home.path().join("logs")).unwrap();
    fs::write(home.path().join("logs/a"), "in the way").unwrap();
    let files = files(home.path(), &Limits::default());
    files.append(&id("a"), line("1"));
    files.flush(DEADLINE).await;
    files.append(&id("a"), line("2"));
    files.append(&id("b"), line("unharmed"));
    files.flush(DEADLINE).await;
    assert_eq!(files.lost(), LostLines { overflowed: 0, failed: 2 });
    assert_eq!(messages(&files.newest(&id("b"), 9)), ["unharmed"]);
    fs::remove_file(home.path().join("logs/a")).unwrap();
    files.append(&id("a"), line("3"));
    files.flush(DEADLINE).await;
    let kept = files.newest(&id("a"), 9);
    assert_eq!(messages(&kept), ["2 lines are missing here: the disk did not take them", "3"]);
    assert_eq!(files.lost().failed, 2);
}
