//! What a check found: verdicts with texts, as a table and as JSON (docs/cli.md, "Checking"). The names of checks and
//! keys are a promise.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    cli::{
        error::CliError,
        output::{Output, table},
    },
    domain::clean,
};

/// Version of the JSON's form; keys may be added without a new one.
const FORMAT: u32 = 1;

/// Longest text of a finding, in bytes.
const MAX_TEXT_BYTES: usize = 1000;

/// Longest name of what a finding is about, in bytes.
const MAX_SUBJECT_BYTES: usize = 128;

/// What is looked at, in the order in which it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// The file: compression, names, checksums, signature.
    Archive,
    /// `manifest.yaml`.
    Manifest,
    /// A binary for this machine.
    Platform,
    /// What the plugin asks for.
    Capabilities,
    /// The operator's settings.
    Settings,
    /// The program starts and says the line by which it is known.
    Handshake,
    /// It answers pings.
    Health,
    /// What it prints.
    Log,
    /// What it has in memory.
    Memory,
    /// Events are acknowledged.
    Events,
    /// Declared webhooks answer.
    Webhooks,
    /// Declared files for the browser are served.
    Ui,
    /// Tools for agents.
    Tools,
    /// It ends when it is asked to.
    Stop,
    /// Nothing of it is left.
    Leftovers,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Archive,
        Self::Manifest,
        Self::Platform,
        Self::Capabilities,
        Self::Settings,
        Self::Handshake,
        Self::Health,
        Self::Log,
        Self::Memory,
        Self::Events,
        Self::Webhooks,
        Self::Ui,
        Self::Tools,
        Self::Stop,
        Self::Leftovers,
    ];

    /// The name in both forms.
    fn name(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Manifest => "manifest",
            Self::Platform => "platform",
            Self::Capabilities => "capabilities",
            Self::Settings => "settings",
            Self::Handshake => "handshake",
            Self::Health => "health",
            Self::Log => "log",
            Self::Memory => "memory",
            Self::Events => "events",
            Self::Webhooks => "webhooks",
            Self::Ui => "ui",
            Self::Tools => "tools",
            Self::Stop => "stop",
            Self::Leftovers => "leftovers",
        }
    }
}

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It was not looked at; the text says why.
    Skipped,
    /// As it should be.
    Pass,
    /// Lawful, and worth a look.
    Warn,
    /// Not as a host needs it.
    Fail,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    check: Topic,
    /// Which webhook, pattern, file or tool; `null` when the check is about one thing.
    subject: Option<String>,
    verdict: Verdict,
    text: String,
    /// What to do about it.
    advice: Option<String>,
    /// Numbers and lists behind the text.
    #[serde(skip_serializing_if = "Map::is_empty")]
    facts: Map<String, Value>,
}

impl Finding {
    fn new(check: Topic, verdict: Verdict, text: &str, advice: Option<&str>) -> Self {
        let text = clean::single_line(text, MAX_TEXT_BYTES);
        Self { check, subject: None, verdict, text, advice: advice.map(str::to_owned), facts: Map::new() }
    }

    /// As it should be.
    pub fn pass(check: Topic, text: impl AsRef<str>) -> Self {
        Self::new(check, Verdict::Pass, text.as_ref(), None)
    }

    /// Worth a look.
    pub fn warn(check: Topic, text: impl AsRef<str>, advice: &str) -> Self {
        Self::new(check, Verdict::Warn, text.as_ref(), Some(advice))
    }

    /// Not as a host needs it.
    pub fn fail(check: Topic, text: impl AsRef<str>, advice: &str) -> Self {
        Self::new(check, Verdict::Fail, text.as_ref(), Some(advice))
    }

    /// Not looked at.
    pub fn skipped(check: Topic, why: impl AsRef<str>) -> Self {
        Self::new(check, Verdict::Skipped, why.as_ref(), None)
    }

    /// Says which one it is about.
    pub fn of(mut self, subject: &str) -> Self {
        self.subject = Some(clean::single_line(subject, MAX_SUBJECT_BYTES));
        self
    }

    /// Adds what is behind the text.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Id and version, once the manifest was read.
    pub plugin: Option<(String, String)>,
    findings: Vec<Finding>,
}

/// How many findings of each kind.
#[derive(Debug, Default, Serialize, PartialEq, Eq)]
struct Counts {
    pass: usize,
    warn: usize,
    fail: usize,
    skipped: usize,
}

#[derive(Serialize)]
struct Shown<'a> {
    format: u32,
    package: &'a Path,
    id: Option<&'a str>,
    version: Option<&'a str>,
    verdict: Verdict,
    counts: Counts,
    checks: &'a [Finding],
    duration_ms: u64,
    home: Option<&'a Path>,
}

impl Report {
    /// Takes a finding.
    pub fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Says of everything that nothing was found of why it was not looked at, and puts all into order.
    pub fn finish(&mut self, why: &str) {
        for topic in Topic::ALL {
            if !self.findings.iter().any(|finding| finding.check == topic) {
                self.add(Finding::skipped(topic, why));
            }
        }
        self.findings.sort_by_key(|finding| finding.check);
    }

    fn counts(&self) -> Counts {
        let count = |verdict| self.findings.iter().filter(|finding| finding.verdict == verdict).count();
        Counts {
            pass: count(Verdict::Pass),
            warn: count(Verdict::Warn),
            fail: count(Verdict::Fail),
            skipped: count(Verdict::Skipped),
        }
    }

    /// How many checks failed.
    pub fn failed(&self) -> usize {
        self.counts().fail
    }

    /// Prints it.
    pub fn show(&self, package: &Path, duration_ms: u64, home: Option<&Path>, output: &Output) -> Result<(), CliError> {
        // What was skipped is neither good nor bad.
        let worst = self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Pass);
        let shown = Shown {
            format: FORMAT,
            package,
            id: self.plugin.as_ref().map(|(id, _)| id.as_str()),
            version: self.plugin.as_ref().map(|(_, version)| version.as_str()),
            verdict: worst.max(Verdict::Pass),
            counts: self.counts(),
            checks: &self.findings,
            duration_ms,
            home,
        };
        output.result(&shown, || self.text(package, shown.verdict))
    }

    fn text(&self, package: &Path, verdict: Verdict) -> String {
        let rows = self.findings.iter().flat_map(|finding| {
            let name = match &finding.subject {
                Some(subject) => format!("{} {subject}", finding.check.name()),
                None => finding.check.name().to_owned(),
            };
            let line = [name, finding.verdict.word().to_owned(), finding.text.clone()];
            let advice = finding.advice.as_ref().map(|advice| [String::new(), String::new(), format!("-> {advice}")]);
            std::iter::once(line).chain(advice)
        });
        let table = table(["CHECK", "VERDICT", "TEXT"], rows);
        let Counts { pass, warn, fail, skipped } = self.counts();
        let plugin = match &self.plugin {
            Some((id, version)) => format!("{id} {version}"),
            None => package.display().to_string(),
        };
        format!("{table}\n\n{plugin}: {} ({pass} pass, {warn} warn, {fail} fail, {skipped} skipped)", verdict.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_was_found_of_is_skipped_and_the_order_is_the_topics() {
        let mut report = Report::default();
        report.add(Finding::fail(Topic::Stop, "it hangs", "end"));
        report.add(Finding::pass(Topic::Archive, "fine\u{1b}[2J").fact("files", 3));
        report.finish("no time");
        let order: Vec<_> = report.findings.iter().map(|finding| finding.check).collect();
        assert_eq!(order, Topic::ALL);
        assert_eq!(report.counts(), Counts { pass: 1, warn: 0, fail: 1, skipped: 13 });
        assert_eq!(report.failed(), 1);
        assert_eq!(report.findings[0].text, "fine [2J", "what a plugin says cannot steer a terminal");
        let json = serde_json::to_value(&report.findings[0]).unwrap();
        let expected = serde_json::json!({"check": "archive", "subject": null, "verdict": "pass", "text": "fine [2J",
            "advice": null, "facts": {"files": 3}});
        assert_eq!(json, expected);
    }

    #[test]
    fn the_table_has_a_line_for_each_finding_its_advice_below_and_a_sum() {
        let mut report = Report { plugin: Some(("demo".to_owned(), "1.0.0".to_owned())), ..Report::default() };
        report.add(Finding::warn(Topic::Webhooks, "answers 500", "mend it").of("in"));
        let text = report.text(Path::new("x.tar.gz"), Verdict::Warn);
        let expected = "CHECK        VERDICT  TEXT\nwebhooks in  warn     answers 500\n                      -> mend it\n\n\
                        demo 1.0.0: warn (0 pass, 1 warn, 0 fail, 0 skipped)";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_are_the_same_in_json_and_in_the_table() {
        for topic in Topic::ALL {
            assert_eq!(serde_json::to_value(topic).unwrap(), topic.name());
        }
        for verdict in [Verdict::Skipped, Verdict::Pass, Verdict::Warn, Verdict::Fail] {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.word());
        }
    }
}
