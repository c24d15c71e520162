//! What a value looks like when a program has written it: as it is, between quotes of many languages, percent-encoded,
//! and each of them as a log line shows it.

use secrecy::zeroize::Zeroizing;

use crate::domain::{clean::single_line, percent::encoded};

/// The forms that are always looked for; the same several times, mostly.
pub fn usual(value: &str) -> Vec<Zeroizing<String>> {
    let mut forms = Vec::new();
    let mut add = |form: String| forms.push(Zeroizing::new(form));
    add(JSON.write(value));
    add(format!("{value:?}").trim_matches('"').to_owned());
    add(encoded(value));
    add(single_line(value, usize::MAX));
    add(without_controls(value));
    for line in value.split(['\n', '\r']) {
        add(single_line(line, usize::MAX));
        add(line.to_owned());
    }
    add(value.to_owned());
    forms
}

/// The forms that other programs write by default, those among them that differ from the [`usual`] ones of most values.
pub fn others(value: &str) -> Vec<Zeroizing<String>> {
    let written = QUOTINGS.iter().map(|quoting| quoting.write(value));
    let twice = QUOTINGS.iter().filter(|quoting| quoting.is_json).map(|quoting| JSON.write(&quoting.write(value)));
    let mut forms: Vec<_> = written.chain(twice).map(Zeroizing::new).collect();
    let shown = forms.iter().flat_map(|form| [single_line(form, usize::MAX), without_controls(form)]);
    forms.extend(shown.map(Zeroizing::new).collect::<Vec<_>>());
    forms.sort_unstable_by(|one, other| one.as_str().cmp(other));
    forms.dedup();
    forms
}

/// How a language writes a text between quotes.
#[derive(Clone, Copy)]
struct Quoting {
    is_json: bool,
    /// Quotes that get a backslash.
    quotes: &'static [char],
    /// `<`, `>` and `&` as `\u003c` …
    html: bool,
    /// `/` as `\/`.
    slash: bool,
    /// What is not ASCII as `\u00e4`.
    ascii: bool,
    /// Hexadecimal digits in capitals.
    capitals: bool,
    /// Control characters without a letter as `\x1b`, not `\u001b`.
    short: bool,
}

/// RFC 8259, as most libraries write it.
const JSON: Quoting =
    Quoting { is_json: true, quotes: &['"'], html: false, slash: false, ascii: false, capitals: false, short: false };

const QUOTINGS: [Quoting; 10] = [
    // Go, encoding/json.
    Quoting { html: true, ..JSON },
    // Python, json.dumps; Ruby and Java libraries with capitals.
    Quoting { ascii: true, ..JSON },
    Quoting { ascii: true, capitals: true, ..JSON },
    Quoting { ascii: true, html: true, ..JSON },
    // PHP, json_encode, with and without JSON_UNESCAPED_UNICODE.
    Quoting { slash: true, ascii: true, ..JSON },
    Quoting { slash: true, ..JSON },
    // Go, %q and %+q.
    Quoting { is_json: false, short: true, ..JSON },
    Quoting { is_json: false, short: true, ascii: true, ..JSON },
    // Python, repr, with the quotes that the text leaves it.
    Quoting { is_json: false, short: true, quotes: &['\''], ..JSON },
    Quoting { is_json: false, short: true, quotes: &[], ..JSON },
];

impl Quoting {
    /// The text without the quotes around it.
    fn write(self, value: &str) -> String {
        let mut text = String::with_capacity(value.len());
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\u{8}' if self.is_json => text.push_str("\\b"),
                '\u{c}' if self.is_json => text.push_str("\\f"),
                '<' | '>' | '&' if self.html => self.unit(c as u16, &mut text),
                '\u{2028}' | '\u{2029}' if self.html => self.unit(c as u16, &mut text),
                '/' if self.slash => text.push_str("\\/"),
                '\0'..='\u{1f}' | '\u{7f}' if self.short => self.digits("\\x", 2, c as u16, &mut text),
                '\0'..='\u{1f}' => self.unit(c as u16, &mut text),
                c if !c.is_ascii() && self.ascii => {
                    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| self.unit(*unit, &mut text));
                }
                c => {
                    if self.quotes.contains(&c) {
                        text.push('\\');
                    }
                    text.push(c);
                }
            }
        }
        text
    }

    fn unit(self, unit: u16, text: &mut String) {
        self.digits("\\u", 4, unit, text);
    }

    fn digits(self, begin: &str, count: usize, number: u16, text: &mut String) {
        let digits = format!("{number:0count$x}");
        text.push_str(begin);
        text.push_str(&if self.capitals { digits.to_ascii_uppercase() } else { digits });
    }
}

fn without_controls(text: &str) -> String {
    text.replace('\t', " ").chars().filter(|char| !char.is_control()).collect()
}
