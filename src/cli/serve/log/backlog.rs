//! Where log lines wait until the log's own thread writes them.
//!
//! Whoever logs appends to one buffer; the thread takes all that waits, writes it in one piece and rests. So a line
//! costs no allocation that another thread frees, no message and mostly no wake-up, which together cost more than the
//! line itself (docs/performance.md). When nobody reads the lines they are dropped at the bound, counted, and the host
//! goes on.

use std::{
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

use crate::config::Timing;

/// Bytes that may wait; a line beyond them is dropped.
const MOST_WAITING: usize = 8 * 1024 * 1024;

/// Capacity that an empty buffer keeps.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Takes lines; clones share the buffer.
#[derive(Clone)]
pub struct Backlog(Arc<Shared>);

struct Shared {
    most: usize,
    waiting: Mutex<Waiting>,
    /// The thread has something to do.
    awaited: Condvar,
    /// The thread is at its end.
    ended: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Since the thread asked last.
    dropped: u64,
    thread: State,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Writes or rests; it looks by itself.
    #[default]
    Busy,
    /// Sleeps until it is woken.
    Asleep,
    /// Must end when all is written.
    Closing,
    /// Has written all.
    Ended,
}

/// Writes what is left when it is dropped, for at most `timing.log_close`.
#[must_use = "the log ends when this is dropped"]
pub struct Written {
    backlog: Backlog,
    within: Duration,
}

/// Starts the thread. `on_dropped` is told how many lines were lost since it was told last.
pub fn start(
    output: impl io::Write + Send + 'static,
    timing: &Timing,
    on_dropped: impl Fn(u64) + Send + 'static,
) -> io::Result<(Backlog, Written)> {
    start_bounded(MOST_WAITING, output, timing, on_dropped)
}

fn start_bounded(
    most: usize,
    output: impl io::Write + Send + 'static,
    timing: &Timing,
    on_dropped: impl Fn(u64) + Send + 'static,
) -> io::Result<(Backlog, Written)> {
    let shared = Shared { most, waiting: Mutex::default(), awaited: Condvar::new(), ended: Condvar::new() };
    let backlog = Backlog(Arc::new(shared));
    let (writer, rest) = (backlog.clone(), timing.log_rest);
    thread::Builder::new().name("log".to_owned()).spawn(move || writer.write(output, rest, on_dropped))?;
    Ok((backlog.clone(), Written { backlog, within: timing.log_close }))
}

impl Backlog {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line, if there is room for it.
    pub fn append(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.thread == State::Ended || waiting.lines.len() + line.len() > self.0.most {
            waiting.dropped += 1;
            return;
        }
        waiting.lines.extend_from_slice(line);
        if waiting.thread == State::Asleep {
            waiting.thread = State::Busy;
            drop(waiting);
            self.0.awaited.notify_all();
        }
    }

    /// The thread's life. An output that fails loses the lines: there is nowhere to tell it.
    fn write(&self, mut output: impl io::Write, rest: Duration, on_dropped: impl Fn(u64)) {
        let mut lines = Vec::new();
        while let Some(dropped) = self.take(&mut lines) {
            let _ = output.write_all(&lines).and_then(|()| output.flush());
            lines.clear();
            lines.shrink_to(KEPT_CAPACITY);
            if dropped > 0 {
                on_dropped(dropped);
            }
            let closing = |waiting: &mut Waiting| waiting.thread != State::Closing;
            drop(self.0.awaited.wait_timeout_while(self.lock(), rest, closing));
        }
    }

    /// Exchanges the empty `lines` for what waits, as soon as something does; `None` at the end.
    fn take(&self, lines: &mut Vec<u8>) -> Option<u64> {
        let mut waiting = self.lock();
        while waiting.lines.is_empty() && waiting.dropped == 0 {
            if waiting.thread == State::Closing {
                waiting.thread = State::Ended;
                self.0.ended.notify_all();
                return None;
            }
            waiting.thread = State::Asleep;
            waiting = self.0.awaited.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        mem::swap(&mut waiting.lines, lines);
        Some(mem::take(&mut waiting.dropped))
    }
}

impl io::Write for &Backlog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Backlog {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let mut waiting = self.backlog.lock();
        waiting.thread = State::Closing;
        self.backlog.0.awaited.notify_all();
        let unfinished = |waiting: &mut Waiting| waiting.thread != State::Ended;
        drop(self.backlog.0.ended.wait_timeout_while(waiting, self.within, unfinished));
    }
}

#[cfg(test)]
mod tests;
