//! One line of a plugin's output as the host keeps it, and the numbered ring of the newest ones.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

/// A line: already cut, cleaned of control characters and rate-limited by goplugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When the host read it, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub time: OffsetDateTime,
    /// How serious the plugin says it is.
    pub level: Level,
    /// Where it came from.
    pub stream: Stream,
    /// The text.
    pub message: String,
}

/// Severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LogLevel)]
pub enum Level {
    /// Finest.
    Trace,
    /// For debugging; also the level of lines that name none.
    Debug,
    /// Ordinary news.
    Info,
    /// Something looks wrong.
    Warn,
    /// Something is wrong; also panics.
    Error,
}

/// Source of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = LogStream)]
pub enum Stream {
    /// The plugin's standard output.
    Stdout,
    /// The plugin's standard error.
    Stderr,
    /// The host's own note about the plugin.
    Host,
}

impl Level {
    /// The level of this name, as JSON has it.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "trace" => Some(Self::Trace),
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "warn" => Some(Self::Warn),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

/// The newest lines of one plugin, oldest first. Every line has a number that counts from 0 and is never used again, so
/// that a reader can go on where it was and learns how many it missed.
#[derive(Debug)]
pub struct LogBuffer {
    max_lines: usize,
    max_bytes: usize,
    bytes: usize,
    lines: VecDeque<LogLine>,
    next: u64,
}

/// What a reader gets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Lines that were gone before they were read.
    pub skipped: u64,
    /// The lines with their numbers, oldest first.
    pub lines: Vec<(u64, LogLine)>,
    /// The number to go on with.
    pub next: u64,
}

impl LogBuffer {
    /// An empty buffer of at most so many lines, whose texts have at most so many bytes together.
    pub fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self { max_lines, max_bytes, bytes: 0, lines: VecDeque::new(), next: 0 }
    }

    /// Adds a line; at either bound the oldest go. The newest line always stays, unless no line is to be kept.
    pub fn push(&mut self, line: LogLine) {
        self.next += 1;
        self.bytes += line.message.len();
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || (self.bytes > self.max_bytes && self.lines.len() > 1) {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.message.len();
        }
    }

    /// The number that the next line will have.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A copy of the lines from this number on, at most `limit` of them.
    pub fn read(&self, from: u64, limit: usize) -> Batch {
        let oldest = self.next - self.lines.len() as u64;
        let begin = from.clamp(oldest, self.next);
        let lines = (begin..).zip(self.lines.iter().skip((begin - oldest) as usize)).take(limit);
        let lines: Vec<_> = lines.map(|(number, line)| (number, line.clone())).collect();
        Batch { skipped: begin.saturating_sub(from), next: begin + lines.len() as u64, lines }
    }

    /// The number behind the line of this moment or, when that is gone, of the first later one; `None` when nothing is
    /// later.
    pub fn number_behind(&self, time: OffsetDateTime) -> Option<u64> {
        let oldest = self.next - self.lines.len() as u64;
        let same = self.lines.iter().rposition(|line| line.time == time).map(|at| at + 1);
        same.or_else(|| self.lines.iter().position(|line| line.time > time)).map(|at| oldest + at as u64)
    }

    /// A copy of the newest lines that `wanted` accepts, at most `limit`, oldest first.
    pub fn newest(&self, limit: usize, wanted: impl Fn(&LogLine) -> bool) -> Vec<LogLine> {
        let mut lines: Vec<_> = self.lines.iter().rev().filter(|line| wanted(line)).take(limit).cloned().collect();
        lines.reverse();
        lines
    }

    /// The number of the oldest of the newest `count` lines that `wanted` accepts; the next number when there is none.
    pub fn number_of_newest(&self, count: usize, wanted: impl Fn(&LogLine) -> bool) -> u64 {
        let numbered = self.lines.iter().rev().zip((0..self.next).rev());
        let found = numbered.filter(|(line, _)| wanted(line)).take(count).last();
        found.map_or(self.next, |(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(message: impl Into<String>) -> LogLine {
        LogLine {
            time: OffsetDateTime::UNIX_EPOCH,
            level: Level::Info,
            stream: Stream::Stderr,
            message: message.into(),
        }
    }

    fn buffer(max_lines: usize, max_bytes: usize, messages: &[&str]) -> LogBuffer {
        let mut buffer = LogBuffer::new(max_lines, max_bytes);
        messages.iter().for_each(|message| buffer.push(line(*message)));
        buffer
    }

    #[test]
    fn a_line_is_read_back_from_its_json() {
        let line = LogLine { level: Level::Warn, ..line("a\"b") };
        let json = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<LogLine>(&json).unwrap(), line);
        assert_eq!(Level::named("warn"), Some(Level::Warn));
        assert_eq!(Level::named("WARN"), None);
    }

    #[test]
    fn the_newest_lines_stay_within_both_bounds() {
        let messages = |buffer: &LogBuffer| -> Vec<String> {
            buffer.newest(10, |_| true).into_iter().map(|line| line.message).collect()
        };
        assert_eq!(messages(&buffer(2, 100, &["a", "b", "c"])), ["b", "c"]);
        assert_eq!(messages(&buffer(9, 4, &["aa", "bb", "cc"])), ["bb", "cc"]);
        assert_eq!(messages(&buffer(9, 1, &["aa", "bb"])), ["bb"]);
        assert_eq!(messages(&buffer(0, 9, &["aa"])), [""; 0]);
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_learns_what_it_missed() {
        let buffer = buffer(3, 100, &["0", "1", "2", "3", "4"]);
        let read = buffer.read(1, 2);
        assert_eq!(read, Batch { skipped: 1, lines: vec![(2, line("2")), (3, line("3"))], next: 4 });
        assert_eq!(buffer.read(4, 9), Batch { skipped: 0, lines: vec![(4, line("4"))], next: 5 });
        assert_eq!(buffer.read(5, 9), Batch { skipped: 0, lines: Vec::new(), next: 5 });
        assert_eq!(buffer.read(77, 9).next, 5, "a number of the future is the end");
    }

    #[test]
    fn the_newest_lines_of_a_kind_have_a_first_number() {
        let buffer = buffer(9, 100, &["a", "b", "a", "c", "a"]);
        assert_eq!(buffer.number_of_newest(2, |line| line.message == "a"), 2);
        assert_eq!(buffer.number_of_newest(9, |line| line.message == "a"), 0);
        assert_eq!(buffer.number_of_newest(9, |line| line.message == "x"), 5);
        assert_eq!(buffer.number_of_newest(0, |_| true), 5);
    }

    proptest! {
        #[test]
        fn every_line_is_read_once_or_counted_as_skipped(
            max in 1usize..6, steps in proptest::collection::vec((0usize..5, 1usize..4), 0..30)
        ) {
            let mut buffer = LogBuffer::new(max, 1000);
            let (mut cursor, mut seen, mut pushed) = (0, 0, 0);
            for (push, limit) in steps {
                for _ in 0..push {
                    buffer.push(line(pushed.to_string()));
                    pushed += 1;
                }
                let batch = buffer.read(cursor, limit);
                for (number, line) in &batch.lines {
                    prop_assert_eq!(&line.message, &number.to_string());
                }
                seen += batch.skipped + batch.lines.len() as u64;
                cursor = batch.next;
                prop_assert_eq!(cursor, seen);
            }
        }
    }
}
