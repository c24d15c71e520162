//! The secrets that a plugin was told, to take them out of what it prints and answers with.
//!
//! `redaction` knows what secrets look like; this knows what they are: every value that went to the plugin or came from
//! it by GetConfig, GetSecret, SetSecret and RevealSecret since the host's start. A value is found in the forms of
//! `forms`, line by line, and also the beginning of one in front of a cut mark `…`. It is not found in other encodings
//! (base64, hexadecimal), and values shorter than [`MIN_BYTES`] are not looked for: they are in too many words.

mod forms;

use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

use super::{clean::ELLIPSIS, redaction::REDACTED};

/// Shortest value, or line of one, that is looked for, in bytes.
pub const MIN_BYTES: usize = 6;

/// Values remembered, and their bytes together; at either bound the oldest go.
const MAX_VALUES: usize = 1000;
const MAX_BYTES: usize = 256 * 1024;

/// Bytes of the forms beyond the usual ones, of all values together; the newest values have theirs first.
const MAX_OTHER_BYTES: usize = 512 * 1024;

/// A longer text is looked for piece by piece, in bytes.
const PIECE_BYTES: usize = 256;

/// Values that must not be seen. Starts empty; grows while the plugin is installed. Printing it shows none.
#[derive(Default)]
pub struct KnownSecrets {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    values: VecDeque<SecretString>,
    bytes: usize,
    /// Made at the first text after a change.
    matcher: Option<Arc<Matcher>>,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownSecrets").finish_non_exhaustive()
    }
}

impl KnownSecrets {
    /// Remembers a value; one that is too short, or known, changes nothing.
    pub fn learn(&self, value: &SecretString) {
        let text = value.expose_secret();
        if text.len() < MIN_BYTES {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.values.iter().any(|known| known.expose_secret() == text) {
            return;
        }
        state.bytes += text.len();
        state.values.push_back(value.clone());
        state.matcher = None;
        while state.values.len() > 1 && (state.values.len() > MAX_VALUES || state.bytes > MAX_BYTES) {
            let Some(oldest) = state.values.pop_front() else { break };
            state.bytes -= oldest.expose_secret().len();
        }
    }

    /// The text with `[REDACTED]` in the place of each known value.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let matcher = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.values.is_empty() {
                return Cow::Borrowed(text);
            }
            match &state.matcher {
                Some(matcher) => Arc::clone(matcher),
                None => {
                    let matcher = Arc::new(Matcher::new(&state.values));
                    state.matcher = Some(Arc::clone(&matcher));
                    matcher
                }
            }
        };
        matcher.redact(text)
    }
}

/// Finds all pieces in one pass, however many there are.
struct Matcher {
    /// Sorted, for finding beginnings.
    pieces: Vec<Zeroizing<String>>,
    /// `None` when the pieces cannot be compiled, which their bounds exclude.
    automaton: Option<AhoCorasick>,
}

impl Matcher {
    fn new(values: &VecDeque<SecretString>) -> Self {
        let mut forms: Vec<Zeroizing<String>> =
            values.iter().flat_map(|value| forms::usual(value.expose_secret())).collect();
        let mut room = MAX_OTHER_BYTES;
        for value in values.iter().rev().map(SecretString::expose_secret) {
            // Most values are written the same in every language.
            for form in forms::others(value).into_iter().filter(|form| form.as_str() != value) {
                let Some(left) = room.checked_sub(form.len()) else { break };
                room = left;
                forms.push(form);
            }
        }
        let mut pieces: Vec<Zeroizing<String>> = forms
            .iter()
            .flat_map(|form| split(form).map(|piece| piece.to_owned().into()).collect::<Vec<_>>())
            .collect();
        pieces.sort_unstable_by(|one, other| one.as_str().cmp(other));
        pieces.dedup();
        // The kind whose size grows with the pieces alone.
        let built = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(pieces.iter().map(|piece| piece.as_bytes()));
        Self { automaton: built.ok(), pieces }
    }

    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(automaton) = &self.automaton else { return Cow::Borrowed(REDACTED) };
        let mut hidden: Vec<Range<usize>> = automaton.find_iter(text).map(|found| found.range()).collect();
        hidden.extend(text.match_indices(ELLIPSIS).filter_map(|(mark, _)| self.beginning(text, mark)));
        if hidden.is_empty() {
            return Cow::Borrowed(text);
        }
        hidden.sort_unstable_by_key(|range| range.start);
        let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
        for (n, range) in hidden.into_iter().enumerate() {
            // Pieces of one value follow each other without a gap.
            if n == 0 || range.start > end {
                shown.push_str(&text[end..range.start]);
                shown.push_str(REDACTED);
            }
            end = end.max(range.end);
        }
        shown.push_str(&text[end..]);
        Cow::Owned(shown)
    }

    /// The longest beginning of a piece that ends at `mark`.
    fn beginning(&self, text: &str, mark: usize) -> Option<Range<usize>> {
        let starts = mark.saturating_sub(PIECE_BYTES + MIN_BYTES)..=mark.checked_sub(MIN_BYTES)?;
        let mut starts = starts.filter(|start| text.is_char_boundary(*start));
        let begins = |start: &usize| {
            let end = &text[*start..mark];
            let next = self.pieces.partition_point(|piece| piece.as_str() < end);
            self.pieces.get(next).is_some_and(|piece| piece.starts_with(end))
        };
        starts.find(begins).map(|start| start..mark)
    }
}

/// Pieces of [`PIECE_BYTES`] and a rest that is not too short to be looked for.
fn split(form: &str) -> impl Iterator<Item = &str> {
    let mut rest = form;
    std::iter::from_fn(move || {
        let mut end = rest.len();
        if end > PIECE_BYTES + MIN_BYTES {
            end = PIECE_BYTES;
            while !rest.is_char_boundary(end) {
                end += 1;
            }
        }
        let (piece, left) = rest.split_at(end);
        rest = left;
        (piece.len() >= MIN_BYTES).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known(values: &[&str]) -> KnownSecrets {
        let known = KnownSecrets::default();
        values.iter().for_each(|value| known.learn(&(*value).to_owned().into()));
        known
    }

    #[test]
    fn a_value_is_found_as_the_libraries_of_many_languages_quote_it() {
        for (value, quoted) in [
            ("ab<cd>&ef12-tail99", r#"{"t":"ab\u003ccd\u003e\u0026ef12-tail99"}"#),
            ("pässwörd-1234", r#"{"t":"p\u00e4ssw\u00f6rd-1234"}"#),
            ("pässwörd-1234", r#"{"t":"p\u00E4ssw\u00F6rd-1234"}"#),
            ("key🔑key🔑999", r#"{"t":"key\ud83d\udd11key\ud83d\udd11999"}"#),
            ("ab/cd/ef12", r#"{"t":"ab\/cd\/ef12"}"#),
            ("äb/cd/ef12", r#"{"t":"\u00e4b\/cd\/ef12"}"#),
            ("tab\tsep\u{7f}\u{1b}ctl99", r#"{"t":"tab\tsep\u001bctl99"}"#),
            ("tab\tsep\u{7f}\u{1b}ctl99", r#"{"t":"tab\tsep\x7f\x1bctl99"}"#),
            ("it's-a-\"quoted\"-one", r#"{"t":"it\'s-a-"quoted"-one"}"#),
            ("it's-a-\"quoted\"-one", r#"{"t":"it's-a-\\\"quoted\\\"-one"}"#),
            ("ab<cd>&ef12-tail99", r#"{"t":"ab\\u003ccd\\u003e\\u0026ef12-tail99"}"#),
        ] {
            assert_eq!(known(&[value]).redact(quoted), r#"{"t":"[REDACTED]"}"#, "{value:?}");
        }
    }

    #[test]
    fn a_known_value_is_hidden_wherever_it_stands_and_other_text_stays() {
        let known = known(&["hunter2!", "hunter2!longer", "pässword"]);
        for (text, shown) in [
            ("", ""),
            ("nothing to hide, hunter2", "nothing to hide, hunter2"),
            ("hunter2!", "[REDACTED]"),
            ("a hunter2!longer b hunter2!x", "a [REDACTED] b [REDACTED]x"),
            ("é pässwordé", "é [REDACTED]é"),
        ] {
            assert_eq!(known.redact(text), shown);
        }
    }

    #[test]
    fn a_value_is_found_in_the_forms_that_programs_print() {
        let known = known(&["a \"b\"\tc/d", "first line of it\nsecond line"]);
        for text in [
            r#"{"k":"a \"b\"\tc/d"}"#,
            r#"Some("a \"b\"\tc/d")"#,
            "https://h/?k=a%20%22b%22%09c%2Fd",
            "k=a \"b\" c/d",
            "> first line of it",
            "second line <",
            r"first line of it\nsecond line",
            "first line of it second line",
            "first line of itsecond line",
        ] {
            assert!(known.redact(text).contains(REDACTED), "{text}: {}", known.redact(text));
        }
        assert_eq!(known.redact(r#"k="a \"b\"\tc/d""#), r#"k="[REDACTED]""#);
    }

    #[test]
    fn the_beginning_of_a_value_in_front_of_a_cut_is_hidden() {
        let long: String = (0..2000).map(|n| char::from(b'a' + (n * n % 23) as u8)).collect();
        let known = known(&["hunter2!longer", &long]);
        for (text, shown) in [
            ("x hunter2!l… (cut)", "x [REDACTED]… (cut)"),
            ("x hunter… | more hunter2!lon…", "x [REDACTED]… | more [REDACTED]…"),
            ("x hunt…", "x hunt…"),
            ("hunter and…", "hunter and…"),
        ] {
            assert_eq!(known.redact(text), shown);
        }
        for end in [10, 255, 256, 263, 600, 1024, 1999] {
            let shown = known.redact(&format!("x {}…", &long[..end])).into_owned();
            // Less than the shortest that is looked for may be left of the last piece.
            assert!(shown.starts_with("x [REDACTED]") && shown.len() < 22 + MIN_BYTES, "{end}: {shown}");
        }
        assert_eq!(known.redact(&format!("<{long}>")), "<[REDACTED]>");
    }

    #[test]
    fn short_values_are_not_looked_for_and_the_oldest_go_at_the_bound() {
        assert_eq!(known(&["short", ""]).redact("short"), "short");
        let values: Vec<String> = (0..=MAX_VALUES).map(|n| format!("value-{n:05}-")).collect();
        let many = known(&values.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(many.redact(&values[0]), values[0]);
        assert_eq!((many.redact(&values[1]), many.redact(&values[MAX_VALUES])), (REDACTED.into(), REDACTED.into()));
        let huge = "x".repeat(MAX_BYTES + 1);
        assert!(!known(&["hunter2!", &huge]).redact("hunter2!").contains(REDACTED));
    }

    #[test]
    fn printing_the_set_shows_no_value() {
        assert_eq!(format!("{:?}", known(&["hunter2!"])), "KnownSecrets { .. }");
    }

    proptest! {
        #[test]
        fn no_known_value_survives_in_any_text(
            value in "[a-z\"\\\\ %é\n]{6,40}", before in "\\PC{0,20}", after in "\\PC{0,20}",
        ) {
            let known = known(&[&value]);
            let text = format!("{before}{value}{after}");
            let shown = known.redact(&text);
            prop_assert!(!shown.contains(&value), "{}", shown);
            prop_assert_eq!(known.redact(&shown).into_owned(), shown.clone().into_owned());
        }
    }
}
