//! The one place that writes to the standard streams: results as aligned text or JSON, errors, progress.
//!
//! Foreign text (a plugin's log, a host's answer) is cleaned here, so that it cannot steer a terminal.

use std::{
    cell::Cell,
    io::{self, BufRead as _, IsTerminal, Read as _, Write},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::json;

use super::error::CliError;
use crate::domain::clean;

/// Longest cell of a table, in bytes.
const MAX_CELL_BYTES: usize = 2048;

/// Longest typed answer, in bytes.
const MAX_LINE_BYTES: u64 = 1024;

/// Longest text of an error, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Where a command's words go.
pub struct Output {
    json: bool,
    progress: bool,
    /// Whether a line of progress stands on the terminal.
    line_shown: Cell<bool>,
}

impl Output {
    /// Text, or JSON. Progress is shown only in text, and only to a terminal.
    pub fn new(json: bool) -> Self {
        Self { json, progress: !json && io::stderr().is_terminal(), line_shown: Cell::new(false) }
    }

    /// Prints a result: the value as JSON, or the text, of which an empty one is nothing.
    pub fn result(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), CliError> {
        match self.json {
            true => self.raw(&(serde_json::to_string_pretty(value).map_err(io::Error::from)? + "\n")),
            false => match text() {
                text if text.is_empty() => self.raw(""),
                text => self.raw(&(text + "\n")),
            },
        }
    }

    /// Prints one of many results as soon as it is there: the value as JSON on a line, or the text. False when nobody
    /// reads any more.
    pub fn line(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<bool, CliError> {
        let line = if self.json { serde_json::to_string(value).map_err(io::Error::from)? } else { text() };
        let mut out = io::stdout().lock();
        match writeln!(out, "{line}").and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => Ok(written.map(|()| true)?),
        }
    }

    /// Prints text as it is.
    pub fn raw(&self, text: &str) -> Result<(), CliError> {
        self.clear();
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            // `list | head` is no failure.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Tells something beside the result; JSON results hold it themselves.
    pub fn note(&self, text: &str) {
        if !self.json {
            self.clear();
            // Nobody is left to tell when standard error is gone.
            let _ = writeln!(io::stderr(), "{}", clean::plain_text(text, MAX_ERROR_BYTES));
        }
    }

    /// Shows what is going on, in place of what was shown before.
    pub fn progress(&self, text: &str) {
        if self.progress {
            self.line_shown.set(true);
            let _ = write!(io::stderr(), "\r\x1b[2K{}", clean::single_line(text, MAX_CELL_BYTES));
        }
    }

    /// Shows how far something is that takes long: in place on a terminal; elsewhere as a line of its own at
    /// `milestone`s.
    pub fn step(&self, milestone: bool, text: &str) {
        match self.progress {
            true => self.progress(text),
            false if milestone => self.note(text),
            false => {}
        }
    }

    /// Asks a person who sits at this terminal; nobody does when the answer must be JSON, or input or standard error go
    /// elsewhere. Anything but `y` and `yes` is no.
    pub fn confirms(&self, text: &str, question: &str) -> bool {
        if self.json || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return false;
        }
        self.note(text);
        let _ = write!(io::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut answer);
        read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    /// Takes the line of progress away.
    fn clear(&self) {
        if self.line_shown.replace(false) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }

    /// Prints an error with its causes; returns its exit code.
    pub fn fail(&self, error: &CliError) -> ExitCode {
        self.clear();
        let text = told(error);
        let exit = error.exit_code();
        let line = match self.json {
            true => {
                let mut line = json!({"error": text, "code": error.code(), "exit": exit});
                if let Some(details) = error.details() {
                    line["details"] = details.clone();
                }
                line.to_string()
            }
            false => format!("kandev-host: {text}"),
        };
        let _ = writeln!(io::stderr(), "{line}");
        ExitCode::from(exit)
    }
}

/// An error with its causes, as [`Output::fail`] tells it.
pub fn told(error: &dyn std::error::Error) -> String {
    clean::plain_text(&chain(error), MAX_ERROR_BYTES)
}

/// An error with its causes. Many texts tell their cause themselves, with the next step behind it: what is told already
/// is not told again.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.contains(&told) {
            text.push_str(&format!(": {told}"));
        }
        source = cause.source();
    }
    text
}

/// Columns as wide as their widest cell; the last one is not padded.
pub fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows = rows.into_iter().map(|row| row.map(|cell| clean::single_line(&cell, MAX_CELL_BYTES)));
    let lines: Vec<[String; N]> = std::iter::once(header.map(String::from)).chain(rows).collect();
    align(&lines)
}

/// A name and a value a line, the values below each other; lines of a value stand below its first.
pub fn fields(fields: &[(&str, String)]) -> String {
    let mut lines = Vec::new();
    for (name, value) in fields {
        let value = clean::plain_text(value, MAX_ERROR_BYTES);
        for (n, line) in value.lines().enumerate() {
            let name = if n == 0 { format!("{name}:") } else { String::new() };
            lines.push([name, line.to_owned()]);
        }
    }
    align(&lines)
}

fn align<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let render = |line: &[String; N]| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}", width = *width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// A size for people: `18 bytes`, `1.4 MB`.
pub fn size(bytes: u64) -> String {
    let scaled = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", scaled(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", scaled(1_000_000)),
        _ => format!("{} GB", scaled(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{fs::FileError, packages::PackageStoreError};

    #[test]
    fn a_table_has_a_line_for_each_row_in_columns_and_no_control_characters() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        let text = table(["ID", "STATUS", "NOTE"], [row(["a\x1b[2J", "active", ""]), row(["long-one", "é", "x\ny"])]);
        assert_eq!(text, "ID        STATUS  NOTE\na [2J     active\nlong-one  é       x y");
    }

    #[test]
    fn fields_stand_below_each_other_and_keep_their_lines() {
        let text = fields(&[("id", "demo".to_owned()), ("webhooks", "one\ntwo".to_owned()), ("none", String::new())]);
        assert_eq!(text, "id:        demo\nwebhooks:  one\n           two");
    }

    #[test]
    fn a_cause_is_told_once_whether_the_text_holds_it_or_not() {
        let cause = || io::Error::other("no such file");
        let file = FileError { action: "open", path: "/x".into(), source: cause() };
        let nested = CliError::Package(PackageStoreError::File(file));
        let next = "`kandev-host plugin pack` makes packages that hosts take";
        assert_eq!(chain(&nested), format!("could not open /x: no such file; {next}"));
        assert_eq!(chain(&CliError::Runtime(cause())), "cannot start the runtime: no such file");
    }

    #[test]
    fn sizes_are_for_people() {
        let shown = [0, 999, 1_000, 1_449_999, 95_000_000, 2_000_000_000].map(size);
        assert_eq!(shown, ["0 bytes", "999 bytes", "1.0 kB", "1.4 MB", "95.0 MB", "2.0 GB"]);
    }
}
