//! The thread that writes: takes everything that waits at once, groups it by plugin and appends it.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, PoisonError, atomic::Ordering, mpsc},
};

use time::OffsetDateTime;

use super::{Job, LogFolder, Shared};
use crate::{
    domain::{
        id::PluginId,
        log_line::{Level, LogLine, Stream},
    },
    store::fs,
};

/// Lines of one plugin that wait, and how many before them were dropped.
#[derive(Default)]
struct Pending {
    overflowed: u64,
    lines: Vec<LogLine>,
}

/// What the thread knows.
pub struct Writer {
    shared: Arc<Shared>,
    /// Plugins whose last write failed, with the lines lost since. Told of in the file when it can be written again.
    failing: BTreeMap<PluginId, u64>,
}

impl Writer {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, failing: BTreeMap::new() }
    }

    /// Ends when the files are closed and nothing waits.
    pub fn run(mut self) {
        self.trim();
        loop {
            let (jobs, overflowed, closed) = self.take();
            self.work(jobs, overflowed);
            if closed && self.shared.lock().jobs.is_empty() {
                return;
            }
        }
    }

    /// Has the bound hold for plugins too that write little or nothing from now on.
    fn trim(&self) {
        let names = fs::names_in(&self.shared.root).unwrap_or_default();
        for id in names.iter().filter_map(|name| PluginId::new(name).ok()) {
            if let Err(error) = LogFolder::new(&self.shared.root, &id).trim(self.shared.files) {
                tracing::warn!(plugin.id = %id, %error, "log files beyond limits.log_files remain; the next rotation removes them");
            }
        }
    }

    /// Waits for work and takes all of it.
    fn take(&self) -> (VecDeque<Job>, BTreeMap<PluginId, u64>, bool) {
        let mut queue = self.shared.lock();
        while queue.jobs.is_empty() && !queue.closed {
            queue = self.shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.lines = 0;
        (std::mem::take(&mut queue.jobs), std::mem::take(&mut queue.overflowed), queue.closed)
    }

    fn work(&mut self, jobs: VecDeque<Job>, overflowed: BTreeMap<PluginId, u64>) {
        let mut pending: BTreeMap<PluginId, Pending> = BTreeMap::new();
        for (id, overflowed) in overflowed {
            pending.entry(id).or_default().overflowed = overflowed;
        }
        let mut flushes: Vec<mpsc::Sender<()>> = Vec::new();
        for job in jobs {
            match job {
                Job::Line(id, line) => pending.entry(id).or_default().lines.push(line),
                Job::Remove(id, done) => {
                    pending.remove(&id);
                    self.remove(&id);
                    // The asker may have given up waiting.
                    let _ = done.send(());
                }
                Job::Flush(done) => flushes.push(done),
            }
        }
        for (id, pending) in pending {
            self.write(&id, pending);
        }
        for done in flushes {
            let _ = done.send(());
        }
    }

    fn remove(&mut self, id: &PluginId) {
        self.failing.remove(id);
        if let Err(error) = LogFolder::new(&self.shared.root, id).remove() {
            tracing::warn!(plugin.id = %id, %error, "log files of an uninstalled plugin remain; delete its folder below logs");
        }
    }

    fn write(&mut self, id: &PluginId, Pending { overflowed, lines }: Pending) {
        let lost = overflowed + self.failing.get(id).copied().unwrap_or(0);
        let note = (lost > 0).then(|| gap(lost));
        let notes = usize::from(note.is_some());
        let texts: Vec<_> = note.iter().chain(&lines).filter_map(json_line).collect();
        let folder = LogFolder::new(&self.shared.root, id);
        let (written, result) = folder.append(&texts, self.shared.file_bytes, self.shared.files);
        let missing = (texts.len() - written.max(notes).min(texts.len())) as u64;
        self.shared.failed.fetch_add(missing, Ordering::Relaxed);
        match result {
            Ok(()) => {
                if let Some(lost) = self.failing.remove(id) {
                    tracing::info!(plugin.id = %id, count = lost, "log files can be written again; lines are missing");
                }
            }
            Err(error) => self.failed(id, &error, if written == 0 { lost + missing } else { missing }),
        }
    }

    /// One warning for each plugin and row of failures.
    fn failed(&mut self, id: &PluginId, error: &io::Error, lost: u64) {
        if self.failing.insert(id.clone(), lost).is_none() {
            tracing::warn!(
                plugin.id = %id, %error,
                "log lines cannot be written to disk and are lost; check space and permissions of the folder logs in home"
            );
        }
    }
}

/// Says in the file that lines are missing.
fn gap(count: u64) -> LogLine {
    LogLine {
        time: OffsetDateTime::now_utc(),
        level: Level::Warn,
        stream: Stream::Host,
        message: format!("{count} lines are missing here: the disk did not take them"),
    }
}

fn json_line(line: &LogLine) -> Option<String> {
    serde_json::to_string(line).ok().map(|text| text + "\n")
}
