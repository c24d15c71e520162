//! What one line of a plugin's output says: level and message, from hclog JSON, a `[LEVEL]` prefix or plain text. Pure.
//!
//! Cutting lines is `lines`' part, limiting their rate is `output`'s.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::lines::MAX_LINE_BYTES;
use crate::text::{CUT_MARK, clean};

/// How important a line says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Finest detail.
    Trace,
    /// Detail for the plugin's developer.
    Debug,
    /// The usual, and what says nothing else.
    Info,
    /// Something to look at.
    Warn,
    /// A failure; also every line of a Go panic.
    Error,
}

/// Where a line came from. The plugin's later output by go-plugin's stdio stream counts the same as its pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output, after the handshake line.
    Stdout,
    /// Standard error.
    Stderr,
}

/// One line of a plugin's output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// How important it is.
    pub level: Level,
    /// Where it came from.
    pub stream: Stream,
    /// The text, cleaned of control characters, with the other fields of an hclog line as ` key=value` behind it. At
    /// most 16 KiB and a mark where it was cut.
    pub message: String,
}

/// Takes a plugin's log lines. It is called from the tasks that keep the plugin's pipes empty, so it must not block: a
/// slow one has to drop lines itself.
pub type LogSink = Arc<dyn Fn(LogLine) + Send + Sync>;

/// Reads the lines of one stream; the start of a Go panic changes what the ones after it mean.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    panicking: bool,
}

/// A line understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Understood {
    pub(crate) level: Level,
    pub(crate) message: String,
    /// The first line of a Go panic or fatal error.
    pub(crate) panic: bool,
}

impl LineReader {
    /// Understands `line`; `cut` says that its end is missing.
    pub(crate) fn read(&mut self, line: &[u8], cut: bool) -> Understood {
        if !cut && let Some((level, message)) = read_hclog(line) {
            return Understood { level, message, panic: false };
        }
        let mut message = clean(line, MAX_LINE_BYTES);
        if cut {
            message.push_str(CUT_MARK);
        }
        if let Some((level, rest)) = read_prefix(&message) {
            return Understood { level, message: rest.to_owned(), panic: false };
        }
        let panic = message.starts_with("panic: ") || message.starts_with("fatal error: ");
        self.panicking |= panic;
        let level = if self.panicking { Level::Error } else { Level::Info };
        Understood { level, message, panic }
    }
}

/// `[WARN] text` or `[WARN]  text`, as hclog and many Go programs write it.
fn read_prefix(line: &str) -> Option<(Level, &str)> {
    let (word, rest) = line.strip_prefix('[')?.split_once(']')?;
    Some((read_level(word)?, rest.trim_start()))
}

fn read_level(word: &str) -> Option<Level> {
    match word.to_ascii_lowercase().as_str() {
        "trace" => Some(Level::Trace),
        "debug" => Some(Level::Debug),
        "info" => Some(Level::Info),
        "warn" | "warning" => Some(Level::Warn),
        "error" | "err" | "fatal" | "panic" => Some(Level::Error),
        _ => None,
    }
}

/// hclog's JSON: `@level` and `@message`, further `@` keys of its own, and the caller's fields.
fn read_hclog(line: &[u8]) -> Option<(Level, String)> {
    if !line.starts_with(b"{") {
        return None;
    }
    let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let message = fields.get("@message").and_then(Value::as_str)?;
    let level = fields.get("@level").and_then(Value::as_str).and_then(read_level).unwrap_or(Level::Info);
    let mut text = message.to_owned();
    for (key, value) in fields.iter().filter(|(key, _)| !key.starts_with('@')) {
        // Writing to a String cannot fail.
        let _ = match value {
            Value::String(word) if is_plain(word) => write!(text, " {key}={word}"),
            other => write!(text, " {key}={other}"),
        };
    }
    Some((level, clean(text.as_bytes(), MAX_LINE_BYTES)))
}

/// Whether a value can be told from what follows it without quotes.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.contains(|char: char| char.is_whitespace() || char == '"' || char == '=')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(line: &str) -> (Level, String) {
        let understood = LineReader::default().read(line.as_bytes(), false);
        (understood.level, understood.message)
    }

    #[test]
    fn hclog_json_gives_level_message_and_fields() {
        let line =
            r#"{"@level":"warn","@message":"low disk","@module":"x","@timestamp":"t","free":3,"dir":"/a b","id":"p1"}"#;
        let (level, message) = read(line);
        assert_eq!(level, Level::Warn);
        assert_eq!(message, r#"low disk free=3 dir="/a b" id=p1"#);
    }

    #[test]
    fn json_that_is_not_hclog_stays_text() {
        assert_eq!(read(r#"{"msg":"x"}"#), (Level::Info, r#"{"msg":"x"}"#.to_owned()));
        assert_eq!(read(r#"{"@message":"#), (Level::Info, r#"{"@message":"#.to_owned()));
    }

    #[test]
    fn an_hclog_line_without_a_known_level_is_info() {
        assert_eq!(read(r#"{"@message":"x","@level":"loud"}"#), (Level::Info, "x".to_owned()));
    }

    #[test]
    fn a_level_in_brackets_is_taken_off() {
        assert_eq!(read("[ERROR] no"), (Level::Error, "no".to_owned()));
        assert_eq!(read("[DEBUG]  plugin: yes"), (Level::Debug, "plugin: yes".to_owned()));
        assert_eq!(read("[note] x"), (Level::Info, "[note] x".to_owned()));
    }

    #[test]
    fn a_go_panic_and_what_follows_it_are_errors() {
        let mut reader = LineReader::default();
        let lines = ["before", "panic: boom", "goroutine 1 [running]:", r#"{"@level":"info","@message":"still"}"#, "x"];
        let levels = lines.map(|line| reader.read(line.as_bytes(), false).level);
        assert_eq!(levels, [Level::Info, Level::Error, Level::Error, Level::Info, Level::Error]);
        assert!(LineReader::default().read(b"fatal error: all goroutines are asleep", false).panic);
    }

    #[test]
    fn a_cut_line_is_text_with_a_mark() {
        let understood = LineReader::default().read(br#"{"@level":"error","@message":"xx"#, true);
        assert_eq!(understood.message, r#"{"@level":"error","@message":"xx… (cut)"#);
    }

    proptest! {
        #[test]
        fn any_line_is_understood_as_bounded_clean_text(line: Vec<u8>, cut: bool) {
            let understood = LineReader::default().read(&line, cut);
            prop_assert!(understood.message.len() <= MAX_LINE_BYTES + 2 * CUT_MARK.len());
            prop_assert!(!understood.message.chars().any(char::is_control));
        }
    }
}
