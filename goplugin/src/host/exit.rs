//! How a plugin process ended, as a value and as a line of text.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::text::clean;

/// How much of the last output one line of text quotes, in bytes.
const QUOTE_BYTES: usize = 1200;

/// How a plugin process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitReport {
    /// The exit code, unless a signal ended it. A Go panic gives 2.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether this host asked for the end, by [`stop`](super::Plugin::stop), [`kill`](super::Plugin::kill) or by
    /// dropping the plugin.
    pub stopped: bool,
    /// The last lines on stderr, oldest first, cleaned: at most 20 of at most 1 KiB each, and before them the first
    /// line of a Go panic if it is not among them.
    pub last_stderr: Vec<String>,
}

impl ExitReport {
    pub(crate) fn new(status: Option<ExitStatus>, stopped: bool, last_stderr: Vec<String>) -> ExitReport {
        let code = status.and_then(|status| status.code());
        let signal = status.and_then(|status| status.signal());
        ExitReport { code, signal, stopped, last_stderr }
    }
}

impl fmt::Display for ExitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "plugin process exited with code {code}")?,
            (None, Some(signal)) => {
                write!(f, "plugin process was ended by signal {signal}{}", signal_name(signal))?;
            }
            (None, None) => f.write_str("plugin process ended in an unknown way")?,
        }
        if self.stopped {
            f.write_str(" after it was asked to stop")?;
        }
        LastOutput(&self.last_stderr).fmt(f)
    }
}

/// Shows `; last output: …` in one line, or nothing when there was none.
pub(crate) struct LastOutput<'a>(pub(crate) &'a [String]);

impl fmt::Display for LastOutput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        write!(f, "; last output: {}", clean(self.0.join(" | ").as_bytes(), QUOTE_BYTES))
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (HUP)",
        2 => " (INT)",
        3 => " (QUIT)",
        4 => " (ILL)",
        6 => " (ABRT)",
        7 => " (BUS)",
        8 => " (FPE)",
        9 => " (KILL)",
        11 => " (SEGV)",
        13 => " (PIPE)",
        15 => " (TERM)",
        24 => " (XCPU)",
        25 => " (XFSZ)",
        31 => " (SYS)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: Option<i32>, signal: Option<i32>, stopped: bool, lines: &[&str]) -> String {
        let last_stderr = lines.iter().map(|&line| line.to_owned()).collect();
        ExitReport { code, signal, stopped, last_stderr }.to_string()
    }

    #[test]
    fn an_exit_is_one_line_with_its_cause() {
        assert_eq!(
            text(Some(2), None, false, &["panic: boom", "goroutine 1"]),
            "plugin process exited with code 2; last output: panic: boom | goroutine 1"
        );
        assert_eq!(
            text(None, Some(9), true, &[]),
            "plugin process was ended by signal 9 (KILL) after it was asked to stop"
        );
        assert_eq!(text(None, Some(40), false, &[]), "plugin process was ended by signal 40");
        assert_eq!(text(None, None, false, &[]), "plugin process ended in an unknown way");
    }

    #[test]
    fn the_quoted_output_is_bounded() {
        let line = "x".repeat(1024);
        let found = text(Some(1), None, false, &[&line, &line, &line]);
        assert!(found.len() < 1300 && found.ends_with("… (cut)"), "{found}");
    }
}
