//! The plugin left alone: whether it stays healthy, what it prints, what it has in memory; and its log once more at the
//! end, for what the other checks made it print.

use std::{collections::BTreeMap, time::Duration};

use time::OffsetDateTime;
use tokio::time::sleep;

use super::{
    CheckError,
    report::{Finding, Topic},
    session::{Session, span},
};
use crate::{
    cli::output::size,
    domain::{
        log_line::{LogLine, Stream},
        redaction::redact,
    },
};

/// Lines in one second above which nobody can follow a log, and above which a plugin at rest is noisy.
const MOST_LINES_IN_A_SECOND: usize = 1000;
const MOST_IDLE_LINES_PER_SECOND: f64 = 100.0;
const FEW_IDLE_LINES_PER_SECOND: f64 = 1.0;

/// Memory that is much for one of many plugins, and growth that is looked at, in bytes.
const MUCH_MEMORY: u64 = 512 * 1024 * 1024;
const MUCH_GROWTH: u64 = 64 * 1024 * 1024;

/// How the host says what it left out of a flood: a number before it.
const LEFT_OUT: &str = " lines were left out: the plugin logs too fast";

/// Stands in the place of a secret in what a plugin prints.
const REDACTED: &str = "[REDACTED]";

/// Most lines that are looked through for what looks like a secret.
const SEARCHED_LINES: usize = 10_000;

const QUIETER: &str = "log what an operator can act on; put the rest at debug and leave it off by default";
const SECRETS: &str = "never print a secret: the host takes out the values that it gave the plugin, as a net only";

/// What the plugin printed.
#[derive(Debug, Default, PartialEq)]
struct Noise {
    /// Lines, those that the host left out included, and their bytes as far as they are kept.
    lines: u64,
    bytes: u64,
    /// Lines that the host left out because they came too fast.
    left_out: u64,
    /// Kept lines of the busiest second.
    busiest_second: usize,
    /// Since the plugin was left alone.
    idle_lines: u64,
    idle_bytes: u64,
    /// Lines with a secret that the host took out, and lines with what looks like one.
    known_secrets: usize,
    likely_secrets: usize,
}

impl Noise {
    /// Of these lines, left alone from `idle` on.
    fn of(lines: &[LogLine], idle: OffsetDateTime) -> Self {
        let mut noise = Self::default();
        let mut seconds: BTreeMap<i64, usize> = BTreeMap::new();
        for (n, line) in lines.iter().filter(|line| line.stream != Stream::Host).enumerate() {
            let left_out = line.message.strip_suffix(LEFT_OUT).and_then(|count| count.parse::<u64>().ok());
            let (count, bytes) = (left_out.unwrap_or(1), line.message.len() as u64);
            noise.left_out += left_out.unwrap_or(0);
            noise.lines += count;
            noise.bytes += bytes;
            if line.time >= idle {
                noise.idle_lines += count;
                noise.idle_bytes += bytes;
            }
            *seconds.entry(line.time.unix_timestamp()).or_default() += 1;
            let shown = line.message.matches(REDACTED).count();
            noise.known_secrets += usize::from(shown > 0);
            if n < SEARCHED_LINES {
                let hidden = redact(&line.message, "").matches(REDACTED).count();
                noise.likely_secrets += usize::from(hidden > shown);
            }
        }
        noise.busiest_second = seconds.into_values().max().unwrap_or(0);
        noise
    }

    /// The verdict on how much it is; `window` is how long the plugin was left alone.
    fn amount(&self, window: Duration) -> Finding {
        let rate = self.idle_lines as f64 / window.as_secs_f64();
        let idle = format!("{} lines and {} in {} at rest", self.idle_lines, size(self.idle_bytes), span(window));
        let finding = if self.left_out > 0 || self.busiest_second > MOST_LINES_IN_A_SECOND {
            let text = format!(
                "it floods its log: {} lines, of which the host left out {}, {} in the busiest second",
                self.lines, self.left_out, self.busiest_second
            );
            Finding::fail(Topic::Log, text, QUIETER)
        } else if rate > MOST_IDLE_LINES_PER_SECOND {
            Finding::fail(Topic::Log, format!("it floods its log: {idle}"), QUIETER)
        } else if rate > FEW_IDLE_LINES_PER_SECOND {
            Finding::warn(Topic::Log, idle, QUIETER)
        } else {
            Finding::pass(Topic::Log, idle)
        };
        finding
            .fact("lines", self.lines)
            .fact("bytes", self.bytes)
            .fact("left_out", self.left_out)
            .fact("busiest_second", self.busiest_second)
            .fact("idle_lines_per_second", rate)
            .fact("idle_bytes", self.idle_bytes)
    }

    /// What is to be said of secrets in it, `given` being those of the check; nothing when there are none.
    fn secrets(&self, given: bool) -> Option<Finding> {
        let told = |count: usize, what: &str| format!("{count} lines hold {what}");
        let finding = match (self.known_secrets, self.likely_secrets) {
            (0, 0) => None,
            (0, likely) => Some(Finding::warn(Topic::Log, told(likely, "what looks like a secret"), SECRETS)),
            (known, _) if given => Some(Finding::fail(Topic::Log, told(known, "a secret that it was given"), SECRETS)),
            (known, _) => Some(Finding::warn(Topic::Log, told(known, "a secret, or its place"), SECRETS)),
        };
        finding.map(|finding| finding.of("secrets"))
    }
}

/// Leaves the plugin alone for a while. False when it did not stay healthy.
pub async fn rest(session: &mut Session<'_>) -> Result<bool, CheckError> {
    session.output.progress("the plugin is left alone");
    let begin = OffsetDateTime::now_utc();
    let (window, pid) = (session.timing.idle, session.view().await?.process.pid);
    sleep(window).await;
    let view = session.view().await?;
    let noise = Noise::of(&session.log().await?, begin);
    session.add(noise.amount(window));
    if !view.is_active() || view.process.pid != pid {
        let why = view.last_error.unwrap_or_else(|| format!("it is {}", view.status));
        let advice = "a plugin must live until it is asked to stop, and answer every ping in time";
        session.add(Finding::fail(
            Topic::Health,
            format!("it did not stay up while nothing was asked of it: {why}"),
            advice,
        ));
        return Ok(false);
    }
    session
        .add(Finding::pass(Topic::Health, format!("it stayed healthy for {}, with a ping each second", span(window))));
    memory(session, "start").await?;
    Ok(true)
}

/// What the plugin has in memory at this moment.
pub async fn memory(session: &mut Session<'_>, moment: &str) -> Result<(), CheckError> {
    // A figure of before the work would say nothing: the host may keep one for that long.
    sleep(session.timing.host.usage_age).await;
    session.add(amount(session.view().await?.process.memory_bytes).of(moment));
    Ok(())
}

fn amount(bytes: Option<u64>) -> Finding {
    match bytes {
        None => Finding::skipped(Topic::Memory, "it cannot be read"),
        Some(bytes) if bytes > MUCH_MEMORY => {
            Finding::warn(Topic::Memory, size(bytes), "look what it keeps: many plugins share a host")
                .fact("bytes", bytes)
        }
        Some(bytes) => Finding::pass(Topic::Memory, size(bytes)).fact("bytes", bytes),
    }
}

/// Whether it keeps much of what a few calls took.
fn growth(before: Option<u64>, after: Option<u64>) -> Option<Finding> {
    let (before, after) = (before?, after?);
    let text = || format!("it grew from {} to {} over a few calls", size(before), size(after));
    (after.saturating_sub(before) > MUCH_GROWTH)
        .then(|| Finding::warn(Topic::Memory, text(), "look for what is never given back").of("growth"))
}

/// What the checks made of memory and log, with `before` as it was at the start.
pub async fn afterwards(session: &mut Session<'_>, before: Option<u64>, secrets: bool) -> Result<(), CheckError> {
    memory(session, "after the calls").await?;
    let after = session.view().await?.process.memory_bytes;
    if let Some(finding) = growth(before, after) {
        session.add(finding);
    }
    let noise = Noise::of(&session.log().await?, OffsetDateTime::now_utc());
    if let Some(finding) = noise.secrets(secrets) {
        session.add(finding);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use time::Duration as Span;

    use super::*;
    use crate::domain::log_line::Level;

    fn line(second: i64, message: &str) -> LogLine {
        let time = OffsetDateTime::UNIX_EPOCH + Span::seconds(second);
        LogLine { time, level: Level::Info, stream: Stream::Stderr, message: message.to_owned() }
    }

    fn at(second: i64) -> OffsetDateTime {
        OffsetDateTime::UNIX_EPOCH + Span::seconds(second)
    }

    fn verdict(noise: &Noise) -> String {
        let finding = serde_json::to_value(noise.amount(Duration::from_secs(2))).unwrap();
        format!("{}: {}", finding["verdict"].as_str().unwrap(), finding["text"].as_str().unwrap())
    }

    #[test]
    fn much_memory_and_much_growth_are_warnings_and_what_is_just_below_is_none() {
        let told = |finding: Finding| {
            let finding = serde_json::to_value(finding).unwrap();
            (finding["verdict"].as_str().unwrap().to_owned(), finding["facts"]["bytes"].as_u64())
        };
        for (bytes, verdict) in [(MUCH_MEMORY, "pass"), (MUCH_MEMORY + 1, "warn")] {
            assert_eq!(told(amount(Some(bytes))), (verdict.to_owned(), Some(bytes)));
        }
        assert_eq!(told(amount(None)), ("skipped".to_owned(), None));
        for (before, after, warns) in [
            (Some(10), Some(10 + MUCH_GROWTH), false),
            (Some(10), Some(11 + MUCH_GROWTH), true),
            (Some(11 + MUCH_GROWTH), Some(10), false),
            (None, Some(MUCH_GROWTH * 2), false),
            (Some(1), None, false),
        ] {
            let found = growth(before, after);
            assert_eq!(found.is_some(), warns, "{before:?} {after:?}");
            assert!(found.is_none_or(|found| told(found).0 == "warn"));
        }
    }

    #[test]
    fn lines_are_counted_from_the_moment_on_and_by_their_second() {
        let host = LogLine { stream: Stream::Host, ..line(1, "a note of the host") };
        let noise = Noise::of(&[line(1, "one"), line(1, "two"), host, line(5, "four")], at(3));
        let expected =
            Noise { lines: 3, bytes: 10, busiest_second: 2, idle_lines: 1, idle_bytes: 4, ..Noise::default() };
        assert_eq!(noise, expected);
        assert_eq!(verdict(&noise), "pass: 1 lines and 4 bytes in 2.0 s at rest");
    }

    #[test]
    fn what_the_host_left_out_is_a_flood_and_so_is_a_busy_second() {
        let told = Noise::of(&[line(1, "17 lines were left out: the plugin logs too fast")], at(0));
        assert_eq!((told.lines, told.left_out), (17, 17));
        assert!(verdict(&told).starts_with("fail: it floods its log: 17 lines, of which the host left out 17"));
        let busy = Noise::of(&vec![line(1, "x"); 1001], at(9));
        assert!(verdict(&busy).contains("1001 in the busiest second"), "{}", verdict(&busy));
        let chatty = Noise::of(&[line(1, "x"), line(2, "x"), line(3, "x")], at(0));
        assert!(verdict(&chatty).starts_with("warn: 3 lines"), "{}", verdict(&chatty));
    }

    #[test]
    fn a_given_secret_in_the_log_fails_and_what_looks_like_one_is_a_warning() {
        let of = |message: &str, given: bool| {
            let finding = Noise::of(&[line(1, message)], at(0)).secrets(given)?;
            Some(serde_json::to_value(finding).unwrap()["verdict"].as_str().unwrap().to_owned())
        };
        assert_eq!(of("logged in", true), None);
        assert_eq!(of("token [REDACTED] taken", true).as_deref(), Some("fail"));
        assert_eq!(of("token [REDACTED] taken", false).as_deref(), Some("warn"));
        assert_eq!(of("password=hunter2", false).as_deref(), Some("warn"));
    }
}
