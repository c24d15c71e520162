//! The log of one plugin: its newest lines in memory, those who follow them, and the way to the file on disk.
//!
//! A follower has no queue of its own: it reads the ring by number, so a slow one holds nothing up, costs nothing, and
//! learns how many lines it missed. The log outlives the plugin's actor; the registry ends it.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use time::OffsetDateTime;
use tokio::sync::watch;
use uuid::Uuid;

use crate::{
    config::Limits,
    domain::{
        id::PluginId,
        log_line::{Batch, Level, LogBuffer, LogLine, Stream},
        tenancy::Tenancy,
    },
    store::log_files::LogFiles,
};

/// Why a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// The plugin was uninstalled.
    Uninstalled,
    /// The host stops.
    HostStopping,
}

/// One plugin's log; shared by its actor, the registry and followers.
pub struct PluginLog {
    id: PluginId,
    /// Tells this log from those of earlier hosts and installs, whose numbers mean nothing here.
    epoch: Uuid,
    /// Lines that an earlier host wrote, which come first.
    earlier: u64,
    buffer: Mutex<LogBuffer>,
    /// Changed at every line; `Some` when no more will come.
    state: watch::Sender<Option<LogEnd>>,
    disk: LogFiles,
    /// Of the plugin's install that the log is of: the log has none of its secrets.
    tenancy: Tenancy,
}

impl fmt::Debug for PluginLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginLog").field("id", &self.id).finish_non_exhaustive()
    }
}

impl PluginLog {
    /// A log that begins with the lines an earlier host wrote.
    pub(super) fn new(id: PluginId, limits: &Limits, earlier: Vec<LogLine>, disk: LogFiles) -> Self {
        let lines = limits.log_buffer_lines.max(limits.log_lines);
        let mut buffer = LogBuffer::new(lines, usize::try_from(limits.log_buffer_bytes).unwrap_or(usize::MAX));
        earlier.into_iter().for_each(|line| buffer.push(line));
        Self {
            id,
            epoch: Uuid::now_v7(),
            earlier: buffer.next(),
            buffer: Mutex::new(buffer),
            state: watch::Sender::new(None),
            disk,
            tenancy: Tenancy::default(),
        }
    }

    /// Whose log it is.
    pub fn id(&self) -> &PluginId {
        &self.id
    }

    /// The plugin's install that the log is of; ends with it.
    pub(super) fn tenancy(&self) -> &Tenancy {
        &self.tenancy
    }

    /// A text of the plugin without the secrets that it was told.
    pub fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.tenancy.secrets().redact(text)
    }

    /// Adds a line that has no secrets, in memory at once and on disk soon; never blocks. Ignored after the end.
    pub(super) fn push(&self, line: LogLine) {
        if self.state.borrow().is_some() {
            return;
        }
        self.disk.append(&self.id, line.clone());
        self.lock().push(line);
        self.state.send_modify(|_| ());
    }

    /// Notes something about the plugin where its operator looks first: among its own lines.
    pub(super) fn note(&self, level: Level, message: String) {
        let message = self.without_secrets(&message).into_owned();
        self.push(LogLine { time: OffsetDateTime::now_utc(), level, stream: Stream::Host, message });
    }

    /// No more lines will come; followers are told.
    pub(super) fn end(&self, why: LogEnd) {
        if why == LogEnd::Uninstalled {
            self.tenancy.end();
        }
        self.state.send_if_modified(|state| {
            let first = state.is_none();
            state.get_or_insert(why);
            first
        });
    }

    /// The newest lines that `wanted` accepts, at most `limit`, oldest first.
    pub fn newest(&self, limit: usize, wanted: impl Fn(&LogLine) -> bool) -> Vec<LogLine> {
        self.lock().newest(limit, wanted)
    }

    /// Follows the log, beginning with the newest `count` lines that `wanted` accepts.
    pub fn follow(self: &Arc<Self>, count: usize, wanted: impl Fn(&LogLine) -> bool) -> LogFollower {
        let next = self.lock().number_of_newest(count, wanted);
        self.follower(next)
    }

    /// Follows the log from behind a line that was seen, as named by [`LogFollower::position`]. One of an earlier host
    /// is found by its time among the lines that it left; any other text gives all of this host's, as far as it is
    /// kept.
    pub fn resume(self: &Arc<Self>, seen: &str) -> LogFollower {
        let Some(Position { epoch, number, time }) = Position::read(seen) else { return self.follower(self.earlier) };
        match epoch == self.epoch {
            true => self.follower(number.saturating_add(1)),
            false => self.follower(self.lock().number_behind(time).unwrap_or(self.earlier)),
        }
    }

    fn follower(self: &Arc<Self>, next: u64) -> LogFollower {
        LogFollower { log: Arc::clone(self), changes: self.state.subscribe(), next, last: None }
    }

    fn lock(&self) -> MutexGuard<'_, LogBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader that waits for more.
#[derive(Debug)]
pub struct LogFollower {
    log: Arc<PluginLog>,
    changes: watch::Receiver<Option<LogEnd>>,
    next: u64,
    /// The number of the first line that it is not to have.
    last: Option<u64>,
}

impl LogFollower {
    /// Sets its end behind what has been written, since the host stops: however fast lines come, it has an end.
    pub fn end_here(&mut self) {
        self.last.get_or_insert_with(|| self.log.lock().next());
    }

    /// The next lines, at most `limit`, as soon as there are any; the end when all were read.
    pub async fn next(&mut self, limit: usize) -> Result<Batch, LogEnd> {
        loop {
            if self.last.is_some_and(|last| self.next >= last) {
                return Err(LogEnd::HostStopping);
            }
            // Before the lines are looked at: one that comes after is a change to wait for.
            let end = *self.changes.borrow_and_update();
            let batch = self.log.lock().read(self.next, limit);
            self.next = batch.next;
            if !batch.lines.is_empty() || batch.skipped > 0 {
                return Ok(batch);
            }
            if let Some(end) = end {
                return Err(end);
            }
            if self.changes.changed().await.is_err() {
                // The log is held by this follower, so its sender cannot be gone.
                return Err(LogEnd::HostStopping);
            }
        }
    }

    /// Names a line, for [`PluginLog::resume`].
    pub fn position(&self, number: u64, line: &LogLine) -> String {
        format!("{}.{number}.{}", self.log.epoch.simple(), line.time.unix_timestamp_nanos())
    }
}

/// Where a reader was.
struct Position {
    epoch: Uuid,
    number: u64,
    time: OffsetDateTime,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let (epoch, number, nanos) = (parts.next()?, parts.next()?, parts.next()?);
        let time = OffsetDateTime::from_unix_timestamp_nanos(nanos.parse().ok()?).ok()?;
        Some(Self { epoch: Uuid::try_parse(epoch).ok()?, number: number.parse().ok()?, time })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn log(home: &std::path::Path, limits: &Limits, earlier: &[&str]) -> Arc<PluginLog> {
        let disk = LogFiles::start(home.join("logs"), limits).unwrap();
        let line = |message: &&str| LogLine {
            time: OffsetDateTime::UNIX_EPOCH,
            level: Level::Info,
            stream: Stream::Stderr,
            message: (*message).to_owned(),
        };
        let id = PluginId::new("acme").unwrap();
        Arc::new(PluginLog::new(id, limits, earlier.iter().map(line).collect(), disk))
    }

    fn few() -> Limits {
        Limits { log_lines: 3, log_buffer_lines: 3, ..Limits::default() }
    }

    fn texts(batch: &Batch) -> (u64, Vec<&str>) {
        (batch.skipped, batch.lines.iter().map(|(_, line)| line.message.as_str()).collect())
    }

    #[tokio::test]
    async fn a_follower_gets_old_lines_then_new_ones_then_the_end() {
        let home = tempfile::tempdir().unwrap();
        let log = log(home.path(), &few(), &["a", "b"]);
        let mut follower = log.follow(1, |_| true);
        assert_eq!(texts(&follower.next(9).await.unwrap()), (0, vec!["b"]));
        assert!(follower.next(9).now_or_never().is_none());
        log.note(Level::Warn, "c".to_owned());
        assert_eq!(texts(&follower.next(9).await.unwrap()), (0, vec!["c"]));
        log.note(Level::Warn, "d".to_owned());
        log.end(LogEnd::Uninstalled);
        log.end(LogEnd::HostStopping);
        log.note(Level::Warn, "too late".to_owned());
        assert_eq!(texts(&follower.next(9).await.unwrap()), (0, vec!["d"]));
        assert_eq!(follower.next(9).await, Err(LogEnd::Uninstalled));
    }

    #[tokio::test]
    async fn a_follower_that_is_ended_gets_what_was_written_by_then_and_the_end() {
        let home = tempfile::tempdir().unwrap();
        let log = log(home.path(), &few(), &["a", "b", "c"]);
        let mut follower = log.follow(3, |_| true);
        follower.end_here();
        assert_eq!(texts(&follower.next(2).await.unwrap()), (0, vec!["a", "b"]));
        log.note(Level::Warn, "d".to_owned());
        follower.end_here();
        assert_eq!(texts(&follower.next(1).await.unwrap()), (0, vec!["c"]));
        log.note(Level::Warn, "e".to_owned());
        assert_eq!(follower.next(9).await, Err(LogEnd::HostStopping));
    }

    #[tokio::test]
    async fn a_slow_follower_learns_how_many_lines_it_missed() {
        let home = tempfile::tempdir().unwrap();
        let log = log(home.path(), &few(), &[]);
        let mut follower = log.follow(9, |_| true);
        (0..5).for_each(|n| log.note(Level::Info, n.to_string()));
        assert_eq!(texts(&follower.next(2).await.unwrap()), (2, vec!["2", "3"]));
        assert_eq!(texts(&follower.next(2).await.unwrap()), (0, vec!["4"]));
    }

    #[tokio::test]
    async fn a_follower_goes_on_behind_what_it_saw() {
        let home = tempfile::tempdir().unwrap();
        let log = log(home.path(), &few(), &["old"]);
        log.note(Level::Info, "1".to_owned());
        log.note(Level::Info, "2".to_owned());
        let seen = log.follow(0, |_| true).position(1, &log.newest(2, |_| true)[0]);
        assert_eq!(texts(&log.resume(&seen).next(9).await.unwrap()), (0, vec!["2"]));
        for foreign in ["", "x", "0", "0190a8c0e0007000800000000000abcd.1", "0190a8c0e0007000800000000000abcd.1.x"] {
            assert_eq!(texts(&log.resume(foreign).next(9).await.unwrap()), (0, vec!["1", "2"]), "{foreign}");
        }
    }

    #[tokio::test]
    async fn a_line_of_an_earlier_host_is_found_by_its_time() {
        let home = tempfile::tempdir().unwrap();
        let disk = || LogFiles::start(home.path().join("logs"), &few()).unwrap();
        let line = |second: i64| LogLine {
            time: OffsetDateTime::from_unix_timestamp(second).unwrap(),
            level: Level::Info,
            stream: Stream::Stderr,
            message: second.to_string(),
        };
        let id = PluginId::new("acme").unwrap();
        let before = Arc::new(PluginLog::new(id.clone(), &few(), vec![line(1), line(2), line(4)], disk()));
        let seen = |second| before.follow(0, |_| true).position(0, &line(second));
        let after = Arc::new(PluginLog::new(id, &few(), vec![line(1), line(2), line(4)], disk()));
        for (second, rest) in [(0, vec!["1", "2", "4"]), (1, vec!["2", "4"]), (2, vec!["4"]), (3, vec!["4"])] {
            assert_eq!(texts(&after.resume(&seen(second)).next(9).await.unwrap()), (0, rest), "{second}");
        }
        assert!(after.resume(&seen(4)).next(9).now_or_never().is_none(), "nothing came since");
        assert!(after.resume(&seen(5)).next(9).now_or_never().is_none(), "nothing came since");
    }
}
