//! One line of a plugin's output as the host keeps it.

use serde::Serialize;
use time::OffsetDateTime;

/// A line: already cut, cleaned of control characters and rate-limited by goplugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// The plugin's standard output.
    Stdout,
    /// The plugin's standard error.
    Stderr,
    /// The host's own note about the plugin.
    Host,
}

/// The newest lines of one plugin, oldest first.
#[derive(Debug)]
pub struct LogBuffer {
    bound: usize,
    lines: std::collections::VecDeque<LogLine>,
}

impl LogBuffer {
    /// An empty buffer of at most `bound` lines.
    pub fn new(bound: usize) -> Self {
        Self { bound, lines: std::collections::VecDeque::new() }
    }

    /// Adds a line; at the bound the oldest goes.
    pub fn push(&mut self, line: LogLine) {
        if self.lines.len() >= self.bound {
            self.lines.pop_front();
        }
        if self.bound > 0 {
            self.lines.push_back(line);
        }
    }

    /// A copy of all lines.
    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.iter().cloned().collect()
    }
}
