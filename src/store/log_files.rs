//! The plugins' log lines on disk: `<home>/logs/<id>/plugin.log`, JSON a line, rotated by size to `plugin.1.log` and so
//! on, so that a plugin has at most `limits.log_files` files of `limits.log_file_bytes`.
//!
//! Lines wait in one bounded queue for one thread that writes. A full queue drops the oldest line; a disk that fails
//! loses lines. Both are counted, and the file says how many are missing; neither ever holds up a plugin or the host.
//! What is followed and asked for over REST is kept in memory elsewhere.

mod folder;
mod writer;

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use self::{folder::LogFolder, writer::Writer};
use crate::{
    config::Limits,
    domain::{id::PluginId, log_line::LogLine},
};

/// The writer's handle; clones share it.
#[derive(Clone, Debug)]
pub struct LogFiles {
    shared: Arc<Shared>,
}

/// Lines that are not on disk although they should be, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LostLines {
    /// The queue was full.
    pub overflowed: u64,
    /// The disk was full or failed.
    pub failed: u64,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    max_queue: usize,
    file_bytes: u64,
    files: usize,
    queue: Mutex<Queue>,
    filled: Condvar,
    overflowed: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    lines: usize,
    /// Dropped for want of room and not told of in the file yet.
    overflowed: BTreeMap<PluginId, u64>,
    closed: bool,
}

impl Queue {
    fn forget(&mut self, id: &PluginId, done: mpsc::Sender<()>) {
        let before = self.jobs.len();
        self.jobs.retain(|job| !matches!(job, Job::Line(owner, _) if owner == id));
        self.lines -= before - self.jobs.len();
        self.overflowed.remove(id);
        self.jobs.push_back(Job::Remove(id.clone(), done));
    }
}

#[derive(Debug)]
enum Job {
    Line(PluginId, LogLine),
    /// Delete everything of a plugin, then answer.
    Remove(PluginId, mpsc::Sender<()>),
    /// Answer when everything before is written.
    Flush(mpsc::Sender<()>),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogFiles {
    /// Starts the writing thread. Folders are made when a plugin's first line comes.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(root: PathBuf, limits: &Limits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            root,
            max_queue: limits.log_queue,
            file_bytes: limits.log_file_bytes,
            files: limits.log_files,
            queue: Mutex::default(),
            filled: Condvar::new(),
            overflowed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        });
        let writer = Writer::new(Arc::clone(&shared));
        thread::Builder::new().name("log-files".to_owned()).spawn(move || writer.run())?;
        Ok(Self { shared })
    }

    /// Has a line written; never blocks on the disk. At the queue's bound the oldest line of all is dropped.
    pub fn append(&self, id: &PluginId, line: LogLine) {
        let mut queue = self.shared.lock();
        if queue.closed {
            return;
        }
        if queue.lines >= self.shared.max_queue
            && let Some(oldest) = queue.jobs.iter().position(|job| matches!(job, Job::Line(..)))
            && let Some(Job::Line(owner, _)) = queue.jobs.remove(oldest)
        {
            queue.lines -= 1;
            *queue.overflowed.entry(owner).or_default() += 1;
            self.shared.overflowed.fetch_add(1, Ordering::Relaxed);
        }
        queue.jobs.push_back(Job::Line(id.clone(), line));
        queue.lines += 1;
        drop(queue);
        self.shared.filled.notify_one();
    }

    /// Deletes the plugin's files and what still waits for them. Returns when that is done, or after `deadline`.
    pub async fn remove(&self, id: &PluginId, deadline: Duration) {
        let (done, answer) = mpsc::channel();
        self.shared.lock().forget(id, done);
        self.wait(answer, deadline).await;
    }

    /// Waits until everything so far is on disk, at most `deadline`.
    pub async fn flush(&self, deadline: Duration) {
        let (done, answer) = mpsc::channel();
        self.shared.lock().jobs.push_back(Job::Flush(done));
        self.wait(answer, deadline).await;
    }

    /// Takes no more lines, writes what waits and ends the thread, within `deadline`.
    pub async fn close(&self, deadline: Duration) {
        self.shared.lock().closed = true;
        self.flush(deadline).await;
    }

    async fn wait(&self, answer: mpsc::Receiver<()>, deadline: Duration) {
        self.shared.filled.notify_one();
        let answered = tokio::task::spawn_blocking(move || answer.recv_timeout(deadline)).await;
        if !matches!(answered, Ok(Ok(()))) {
            tracing::warn!("the plugins' log files are not written in time; the disk may be slow");
        }
    }

    /// The newest lines of a plugin that an earlier host wrote, at most `limit`, oldest first. Lines that cannot be
    /// read are left out: this is a help for people, not a record. Blocks.
    pub fn newest(&self, id: &PluginId, limit: usize) -> Vec<LogLine> {
        LogFolder::new(&self.shared.root, id).newest(limit, self.shared.file_bytes)
    }

    /// What was lost so far.
    pub fn lost(&self) -> LostLines {
        LostLines {
            overflowed: self.shared.overflowed.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests;
