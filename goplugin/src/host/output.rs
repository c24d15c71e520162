//! A plugin's output, from its pipes to the log sink: always drained, never faster to the sink than it may be.
//!
//! Owns the rate limit, the last lines on stderr and the tasks' read loops. Cutting and understanding lines are `lines`
//! and `log_line`.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::lines::LineSplitter;
use super::log_line::{Level, LineReader, LogLine, LogSink, Stream};
use crate::handshake::MAX_LINE_BYTES as MAX_HANDSHAKE_BYTES;
use crate::text::clean;

/// Lines that may reach the sink at once, and how many more each second.
const BURST_LINES: f64 = 2000.0;
const LINES_PER_SECOND: f64 = 500.0;

/// How long nothing must come until what was left out is told without a line after it.
const QUIET: Duration = Duration::from_secs(1);

/// What is kept of stderr for the exit report.
const TAIL_LINES: usize = 20;
const TAIL_LINE_BYTES: usize = 1024;

const READ_BYTES: usize = 16 * 1024;

/// Takes all lines of one plugin, whichever stream they came by.
pub(crate) struct Journal {
    sink: LogSink,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stdout: LineReader,
    stderr: LineReader,
    bucket: Bucket,
    suppressed: u64,
    tail: VecDeque<String>,
    panic: Option<String>,
}

impl Journal {
    pub(crate) fn new(sink: LogSink, now: Instant) -> Journal {
        let state = State {
            stdout: LineReader::default(),
            stderr: LineReader::default(),
            bucket: Bucket::full(now),
            suppressed: 0,
            tail: VecDeque::with_capacity(TAIL_LINES),
            panic: None,
        };
        Journal { sink, state: Mutex::new(state) }
    }

    /// Takes one line; `cut` says that its end is missing. Empty lines are left out.
    pub(crate) fn line(&self, stream: Stream, line: &[u8], cut: bool, now: Instant) {
        let mut state = self.state();
        let reader = match stream {
            Stream::Stdout => &mut state.stdout,
            Stream::Stderr => &mut state.stderr,
        };
        let understood = reader.read(line, cut);
        if understood.message.is_empty() {
            return;
        }
        if stream == Stream::Stderr {
            state.remember(&understood.message, understood.panic);
        }
        if !state.bucket.take(now) {
            state.suppressed += 1;
            return;
        }
        // Under the lock, so that lines keep their order.
        self.report_suppressed(&mut state);
        (self.sink)(LogLine { level: understood.level, stream, message: understood.message });
    }

    /// Reports what is still suppressed, once no more lines come.
    pub(crate) fn finish(&self) {
        self.report_suppressed(&mut self.state());
    }

    /// Waits for more output. What was left out is reported when none comes for a while: the flood was its last word,
    /// and nobody should wait for the next one to learn of it.
    pub(crate) async fn until<T>(&self, more: impl Future<Output = T>) -> T {
        let mut more = pin!(more);
        if self.state().suppressed > 0 {
            if let Ok(more) = timeout(QUIET, &mut more).await {
                return more;
            }
            self.finish();
        }
        more.await
    }

    /// The last lines on stderr, oldest first, with the first line of a panic before them.
    pub(crate) fn last_stderr(&self) -> Vec<String> {
        let state = self.state();
        let panic = state.panic.iter().filter(|panic| !state.tail.contains(panic));
        panic.chain(&state.tail).cloned().collect()
    }

    fn report_suppressed(&self, state: &mut State) {
        let count = std::mem::take(&mut state.suppressed);
        if count > 0 {
            let message = format!("{count} lines were left out: the plugin logs too fast");
            (self.sink)(LogLine { level: Level::Warn, stream: Stream::Stderr, message });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, message: &str, panic: bool) {
        let line = clean(message.as_bytes(), TAIL_LINE_BYTES);
        if panic && self.panic.is_none() {
            self.panic = Some(line.clone());
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}

/// A token bucket: full at first, refilled steadily.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn full(now: Instant) -> Bucket {
        Bucket { tokens: BURST_LINES, filled: now }
    }

    /// Takes one token, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let passed: Duration = now.saturating_duration_since(self.filled);
        self.filled = now;
        self.tokens = (self.tokens + passed.as_secs_f64() * LINES_PER_SECOND).min(BURST_LINES);
        let granted = self.tokens >= 1.0;
        if granted {
            self.tokens -= 1.0;
        }
        granted
    }
}

/// Reads `pipe` to its end into `journal`.
pub(crate) async fn drain(mut pipe: impl AsyncRead + Unpin, stream: Stream, journal: &Journal) {
    let mut splitter = LineSplitter::default();
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(read @ 1..) = journal.until(pipe.read(&mut buffer)).await {
        let now = Instant::now();
        splitter.push(&buffer[..read], |line, cut| journal.line(stream, line, cut, now));
    }
    splitter.finish(|line, cut| journal.line(stream, line, cut, Instant::now()));
}

/// Reads a plugin's stdout: sends its first line, without any other, to `first` (`None` when the pipe ends before it,
/// all there is when it is too long) and drains the rest.
pub(crate) async fn drain_stdout(
    mut pipe: impl AsyncRead + Unpin,
    first: oneshot::Sender<Option<Vec<u8>>>,
    journal: &Journal,
) {
    let mut line = Vec::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut end = None;
    while end.is_none() && line.len() < MAX_HANDSHAKE_BYTES {
        let Ok(read @ 1..) = pipe.read(&mut buffer).await else { break };
        end = buffer[..read].iter().position(|&byte| byte == b'\n').map(|position| line.len() + position + 1);
        line.extend_from_slice(&buffer[..read]);
    }
    let rest = line.split_off(end.unwrap_or(line.len()));
    // Whoever launched it may have given up; then the pipe still has to be drained.
    let _ = first.send((!line.is_empty()).then_some(line));
    drain(rest.as_slice().chain(pipe), Stream::Stdout, journal).await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn journal() -> (Journal, Arc<Mutex<Vec<LogLine>>>, Instant) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        let now = Instant::now();
        let journal = Journal::new(Arc::new(move |line| sink.lock().expect("no panic").push(line)), now);
        (journal, lines, now)
    }

    fn messages(lines: &Mutex<Vec<LogLine>>) -> Vec<String> {
        lines.lock().expect("no panic").iter().map(|line| line.message.clone()).collect()
    }

    #[tokio::test]
    async fn the_first_line_goes_to_the_handshake_and_the_rest_to_the_log() {
        let (journal, lines, _) = journal();
        let (first, line) = oneshot::channel();
        drain_stdout(&b"1|1|unix\r\nmore\nand more"[..], first, &journal).await;
        assert_eq!(line.await, Ok(Some(b"1|1|unix\r\n".to_vec())));
        assert_eq!(messages(&lines), ["more", "and more"]);
    }

    #[tokio::test]
    async fn a_pipe_that_ends_at_once_has_no_first_line() {
        let (journal, _, _) = journal();
        let (first, line) = oneshot::channel();
        drain_stdout(&b""[..], first, &journal).await;
        assert_eq!(line.await, Ok(None));
    }

    #[tokio::test]
    async fn a_first_line_without_an_end_is_taken_up_to_its_limit() {
        let (journal, _, _) = journal();
        let (first, line) = oneshot::channel();
        let endless = vec![b'x'; 200 * 1024];
        drain_stdout(endless.as_slice(), first, &journal).await;
        let length = line.await.expect("sent").expect("some").len();
        assert!((MAX_HANDSHAKE_BYTES..MAX_HANDSHAKE_BYTES + READ_BYTES).contains(&length), "{length}");
    }

    #[test]
    fn lines_over_the_rate_are_counted_in_one_line() {
        let (journal, lines, now) = journal();
        for _ in 0..2500 {
            journal.line(Stream::Stdout, b"x", false, now);
        }
        journal.line(Stream::Stdout, b"later", false, now + Duration::from_millis(100));
        let found = messages(&lines);
        assert_eq!(found.len(), 2002);
        assert_eq!(found[2000..], ["500 lines were left out: the plugin logs too fast", "later"]);
    }

    #[test]
    fn suppressed_lines_at_the_end_are_reported_too() {
        let (journal, lines, now) = journal();
        for _ in 0..2001 {
            journal.line(Stream::Stdout, b"x", false, now);
        }
        journal.finish();
        assert_eq!(messages(&lines)[2000..], ["1 lines were left out: the plugin logs too fast"]);
    }

    #[tokio::test(start_paused = true)]
    async fn lines_left_out_are_reported_when_nothing_comes_after_them() {
        let (journal, lines, _) = journal();
        let (mut plugin, pipe) = tokio::io::duplex(1 << 20);
        let drained = async { drain(pipe, Stream::Stderr, &journal).await };
        let printed = async {
            tokio::io::AsyncWriteExt::write_all(&mut plugin, "x\n".repeat(2500).as_bytes()).await.expect("it is read");
            tokio::time::sleep(QUIET * 2).await;
            let told = messages(&lines);
            drop(plugin);
            told
        };
        let ((), told) = tokio::join!(drained, printed);
        assert_eq!(told[2000..], ["500 lines were left out: the plugin logs too fast"]);
    }

    #[test]
    fn the_last_stderr_lines_are_kept_with_the_panic_before_them() {
        let (journal, _, now) = journal();
        journal.line(Stream::Stdout, b"not this", false, now);
        journal.line(Stream::Stderr, b"panic: boom", false, now);
        for frame in 0..30 {
            journal.line(Stream::Stderr, format!("frame {frame}").as_bytes(), false, now);
        }
        let last = journal.last_stderr();
        assert_eq!(last.len(), 21);
        assert_eq!((last[0].as_str(), last[1].as_str(), last[20].as_str()), ("panic: boom", "frame 10", "frame 29"));
    }
}
