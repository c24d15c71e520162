//! Event subjects, the patterns plugins subscribe with, and the names plugins may publish under.
//!
//! Owns the matching rule (contract/manifest.md §9). Which subjects exist is the business of their publishers.
//!
//! The rule: a pattern has as many segments as the subject; `*` stands for exactly one segment; a final `>` stands for
//! one or more; everything else is literal, and equality always matches. "Any subject prefix" in the first description
//! of the contract means just this: `task.*` matches `task.created` and not `task.status_summary.updated`; who wants
//! the whole prefix writes `task.>`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::clean::quote;
use super::id::PluginId;

/// Longest subject in bytes. A plugin's own events need `plugin.` + 128 (id) + `.` + 128 (name).
pub const MAX_SUBJECT_BYTES: usize = 512;

/// A subject that may be published: non-empty segments of visible characters without wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Subject(String);

/// Why a text cannot be published as a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// Empty, or longer than [`MAX_SUBJECT_BYTES`].
    #[error("subject must be 1 to {MAX_SUBJECT_BYTES} bytes long")]
    Length,
    /// Two dots in a row, or a dot at an end.
    #[error("subject {0} has an empty segment: write segments separated by single dots")]
    EmptySegment(String),
    /// White space, control characters or a wildcard.
    #[error("subject {0} holds white space, a control character or a wildcard (* or >)")]
    Character(String),
}

impl Subject {
    /// Validates `text` for publishing.
    pub fn new(text: impl Into<String>) -> Result<Self, SubjectError> {
        let text = text.into();
        if text.is_empty() || text.len() > MAX_SUBJECT_BYTES {
            return Err(SubjectError::Length);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '*' || c == '>') {
            return Err(SubjectError::Character(quote(&text)));
        }
        if text.split('.').any(str::is_empty) {
            return Err(SubjectError::EmptySegment(quote(&text)));
        }
        Ok(Self(text))
    }

    /// The subject `plugin.<id>.<name>` of a plugin's own event; `None` when the name breaks [`plugin_event_name`].
    ///
    /// That rule lets a name end in a dot or hold two in a row; such a segment is empty text and matched literally.
    pub fn of_plugin(id: &PluginId, name: &str) -> Option<Self> {
        plugin_event_name(name).then(|| Self(format!("plugin.{id}.{name}")))
    }

    /// The subject as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A subscription of a plugin. Any text is accepted, as in the contract; one that can match nothing never does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Takes the pattern as written in the manifest.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether some subject exists that the pattern matches: no part of it is empty, `>` stands at the end alone, and
    /// it has no white space or control character. A plugin's own events may have empty segments, so a pattern that
    /// begins with `plugin.` and its id may hold some.
    pub fn can_match(&self) -> bool {
        let segments: Vec<&str> = self.0.split('.').collect();
        let own = segments.len() > 2 && segments[0] == "plugin";
        let last = segments.len() - 1;
        !self.0.chars().any(|c| c.is_whitespace() || c.is_control())
            && segments.iter().enumerate().all(|(place, segment)| match *segment {
                "" => own && place > 1,
                ">" => place == last,
                "*" => true,
                word => !word.contains(['*', '>']),
            })
    }

    /// Whether the pattern matches a published subject. Linear in the length of both; never fails.
    pub fn matches(&self, subject: &Subject) -> bool {
        matches(&self.0, &subject.0)
    }
}

/// Whether `pattern` matches `subject` by the module's rule.
pub fn matches(pattern: &str, subject: &str) -> bool {
    if pattern == subject {
        return true;
    }
    let mut segments = subject.split('.');
    let mut tokens = pattern.split('.').peekable();
    while let Some(token) = tokens.next() {
        let Some(segment) = segments.next() else {
            return false;
        };
        if token == ">" && tokens.peek().is_none() {
            return true;
        }
        if token != "*" && token != segment {
            return false;
        }
    }
    segments.next().is_none()
}

/// Whether every subject that `narrow` matches is matched by `wide`.
pub fn covers(wide: &str, narrow: &str) -> bool {
    if wide == narrow {
        return true;
    }
    let (mut wide, mut narrow) = (wide.split('.').peekable(), narrow.split('.').peekable());
    while let Some(token) = wide.next() {
        let Some(other) = narrow.next() else { return false };
        if token == ">" && wide.peek().is_none() {
            return true;
        }
        let endless = other == ">" && narrow.peek().is_none();
        // A wildcard of `narrow` matches more than one text; only a wildcard of `wide` matches them all.
        if endless || (token != "*" && token != other) {
            return false;
        }
    }
    narrow.next().is_none()
}

/// Whether every subject that `pattern` matches is matched by one of `others`: by one alone, or, for a final `>`, by
/// several that share the lengths among them. A pattern longer than any subject matches nothing, so it is covered.
pub fn covered(pattern: &str, others: &[&str]) -> bool {
    if pattern.len() > MAX_SUBJECT_BYTES {
        return true;
    }
    let longest = others.iter().map(|other| other.split('.').count()).max().unwrap_or(0);
    let mut rest = pattern.to_owned();
    loop {
        if others.iter().any(|other| covers(other, &rest)) {
            return true;
        }
        // `a.>` is `a.*` and `a.*.>`.
        let Some(before) = rest.strip_suffix('>').filter(|before| before.is_empty() || before.ends_with('.')) else {
            return false;
        };
        let (one, more) = (format!("{before}*"), format!("{before}*.>"));
        if one.split('.').count() > longest || !others.iter().any(|other| covers(other, &one)) {
            return false;
        }
        rest = more;
    }
}

/// Whether a plugin may give its own event this name: `^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`.
pub fn plugin_event_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    (1..=128).contains(&bytes.len())
        && bytes[0].is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

/// The installed plugin whose subjects `plugin.<emitter>.<name>` would imitate, if there is one.
///
/// Ids may contain dots: `a` emitting `b.x` publishes `plugin.a.b.x`, which belongs to an installed `a.b`.
pub fn owner_conflict<'a>(emitter: &str, name: &str, installed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rest = format!("{emitter}.{name}");
    installed.into_iter().find(|id| {
        id.len() > emitter.len() && rest.strip_prefix(id).is_some_and(|tail| tail.is_empty() || tail.starts_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_is_one_segment_and_a_final_gt_one_or_more() {
        for (pattern, subject, expected) in [
            ("task.created", "task.created", true),
            ("task.*", "task.created", true),
            ("task.*", "task.status_summary.updated", false),
            ("task.*", "task", false),
            ("*.created", "task.created", true),
            ("*", "task.created", false),
            ("task.>", "task.created", true),
            ("task.>", "task.status_summary.updated", true),
            ("task.>", "task", false),
            (">", "anything.at.all", true),
            ("task.>.x", "task.a.x", false),
            ("task", "task.created", false),
            ("task.created.more", "task.created", false),
            ("plugin.my.plugin.*", "plugin.my.plugin.done", true),
            ("plugin.my.*", "plugin.my.plugin.done", false),
            // Field case 72.
            ("shell.output.*", "shell.output.s1", true),
            ("shell.*", "shell.output.s1", false),
            ("shell.output", "shell.output.s1", false),
            ("*", "shell.output.s1", false),
            ("shell.>", "shell.output.s1", true),
            ("shell.output.>", "shell.output.s1", true),
            ("", "task", false),
            ("ta*", "task", false),
            ("Task.*", "task.created", false),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} on {subject}");
        }
    }

    #[test]
    fn only_plain_dotted_text_can_be_published() {
        assert_eq!(Subject::new("task.created").map(|s| s.to_string()), Ok("task.created".to_owned()));
        assert_eq!(Subject::new(""), Err(SubjectError::Length));
        assert_eq!(Subject::new("x".repeat(513)), Err(SubjectError::Length));
        for text in ["a..b", ".a", "a."] {
            assert_eq!(Subject::new(text), Err(SubjectError::EmptySegment(quote(text))));
        }
        for text in ["a b", "a.*", "a.>", "a\n", "a\u{7f}"] {
            assert_eq!(Subject::new(text), Err(SubjectError::Character(quote(text))));
        }
    }

    #[test]
    fn event_names_follow_their_grammar() {
        for name in ["done", "A.b-c_d", &"x".repeat(128)] {
            assert!(plugin_event_name(name), "{name}");
        }
        for name in ["", ".a", "-a", "a b", "a*", "a>", "é", "a\n", &"x".repeat(129)] {
            assert!(!plugin_event_name(name), "{name}");
        }
    }

    #[test]
    fn an_event_under_another_plugins_prefix_is_a_conflict() {
        let installed = ["a", "a.b", "a.bc", "z"];
        assert_eq!(owner_conflict("a", "b.x", installed), Some("a.b"));
        assert_eq!(owner_conflict("a", "b", installed), Some("a.b"));
        assert_eq!(owner_conflict("a", "bcd.x", installed), None);
        assert_eq!(owner_conflict("a.b", "x", installed), None);
        assert_eq!(owner_conflict("a", "z", installed), None);
    }

    #[test]
    fn a_pattern_that_can_match_nothing_is_known() {
        for text in ["", "task.", "task..x", "task.>.x", "ta*", "task.*x", "a b", ">x", "plugin..x", ".plugin.a"] {
            assert!(!Pattern::new(text).can_match(), "{text}");
        }
        for text in ["*", ">", "task.*", "task.>", "*.created", "plugin.a.b..c", "plugin.a.done."] {
            assert!(Pattern::new(text).can_match(), "{text}");
        }
    }

    #[test]
    fn a_pattern_is_covered_when_nothing_new_can_reach_the_plugin() {
        for (pattern, others, expected) in [
            ("task.created", &["task.*"][..], true),
            ("task.created", &["task.>"], true),
            ("task.*", &["task.created"], false),
            ("task.>", &["task.*"], false),
            ("task.*", &["*.*"], true),
            ("task.*.x", &["task.>"], true),
            ("task", &["task.>"], false),
            ("task.>", &[">"], true),
            (">", &["task.>"], false),
            ("task.>", &["task.*", "task.*.>"], true),
            ("task.>", &["task.*", "*.*.*", "task.*.*.>"], true),
            ("task.>", &["task.*.>"], false),
            ("task.>", &["task.*", "task.*.*"], false),
            ("a.*", &[], false),
        ] {
            assert_eq!(covered(pattern, others), expected, "{pattern} by {others:?}");
        }
        assert!(covered(&"x".repeat(MAX_SUBJECT_BYTES + 1), &[]), "no subject is so long");
    }

    proptest! {
        #[test]
        fn what_matches_a_subject_can_match(pattern in "[a*>. ]{0,6}", subject in "[a.]{1,6}") {
            if let Ok(subject) = Subject::new(subject) {
                let pattern = Pattern::new(pattern);
                prop_assert!(!pattern.matches(&subject) || pattern.can_match());
            }
        }

        #[test]
        fn what_is_covered_by_one_pattern_matches_no_subject_beyond_it_and_what_is_not_matches_one(
            wide in "[ab*](\\.[ab*]){0,3}(\\.>)?|>", narrow in "[ab*](\\.[ab*]){0,3}(\\.>)?|>", subject in "[abc](\\.[abc]){0,5}"
        ) {
            if covers(&wide, &narrow) {
                prop_assert!(!matches(&narrow, &subject) || matches(&wide, &subject));
            } else {
                // Segments that no pattern names stand for the wildcards; `>` for one or for more than `wide` is long.
                let witness = |tail: &str| narrow.replace('*', "z").replace('>', tail);
                let witnesses = [witness("z"), witness("z.z.z.z.z.z")];
                prop_assert!(witnesses.iter().any(|subject| matches(&narrow, subject) && !matches(&wide, subject)));
            }
        }

        #[test]
        fn what_is_covered_by_several_patterns_matches_no_subject_beyond_them(
            others in proptest::collection::vec("[ab*](\\.[ab*]){0,2}(\\.>)?|>", 0..5),
            pattern in "[ab*](\\.[ab*]){0,2}(\\.>)?|>",
            subject in "[abc](\\.[abc]){0,5}"
        ) {
            let others: Vec<_> = others.iter().map(String::as_str).collect();
            let beyond = matches(&pattern, &subject) && !others.iter().any(|other| matches(other, &subject));
            prop_assert!(!(beyond && covered(&pattern, &others)));
        }

        #[test]
        fn matching_never_panics_and_equality_always_matches(pattern in ".{0,40}", subject in ".{0,40}") {
            let _ = matches(&pattern, &subject);
            prop_assert!(matches(&subject, &subject));
        }

        #[test]
        fn replacing_one_segment_by_a_star_still_matches(
            segments in proptest::collection::vec("[a-z]{1,4}", 1..6), at in any::<prop::sample::Index>()
        ) {
            let subject = segments.join(".");
            let mut tokens = segments.clone();
            tokens[at.index(segments.len())] = "*".to_owned();
            prop_assert!(matches(&tokens.join("."), &subject));
            tokens.push("*".to_owned());
            prop_assert!(!matches(&tokens.join("."), &subject));
        }
    }
}
