//! A new config as a client sends it: what is in the body of a PATCH, and which of its numbers cannot be kept.
//!
//! A number that JSON allows may have more digits than a program holds: read, it is another number. And a plugin gets
//! every number as a 64-bit float (wire.md §2, `google.protobuf.Struct`), so an integer must also survive that. Such
//! numbers are found in the text, since the value read does not tell.

use serde_json::{Map, Value};

use super::MAX_VIOLATIONS;

/// The whole new config. Cannot be printed: it holds secrets.
#[derive(Default)]
pub struct Submitted {
    /// The fields in the client's order.
    pub fields: Map<String, Value>,
    /// JSON pointers to numbers that would be changed; at most as many as violations are told.
    pub(super) inexact: Vec<String>,
}

impl Submitted {
    /// Reads a PATCH body: an object whose `config` is an object; left out, the config is empty (rest.md §4). `None`
    /// for anything else. What stands beside it means nothing; in its place it is a mistake that would empty the
    /// config.
    pub fn read(body: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        let mut members: Map<String, Value> = serde_json::from_str(text).ok()?;
        let fields = match members.remove("config") {
            None if members.is_empty() => return Some(Self::default()),
            Some(Value::Object(fields)) => fields,
            None | Some(_) => return None,
        };
        let inexact =
            inexact_numbers(text).into_iter().filter_map(|path| Some(path.strip_prefix("/config")?.to_owned()));
        Some(Self { fields, inexact: inexact.take(MAX_VIOLATIONS).collect() })
    }
}

/// JSON pointers to the numbers of a valid JSON text that are changed when they are read and given to a plugin.
pub fn inexact_numbers(json: &str) -> Vec<String> {
    let mut scan = Scan { json, at: 0, found: Vec::new() };
    scan.value("");
    scan.found
}

/// Walks over a text that a parser has accepted, which also bounds its depth.
struct Scan<'a> {
    json: &'a str,
    at: usize,
    found: Vec<String>,
}

impl<'a> Scan<'a> {
    fn value(&mut self, path: &str) {
        match self.next() {
            Some(b'{') => self.members(path, |scan, _| {
                let key: String = serde_json::from_str(scan.text()).unwrap_or_default();
                scan.expect(b':');
                key.replace('~', "~0").replace('/', "~1")
            }),
            Some(b'[') => self.members(path, |_, n| n.to_string()),
            Some(b'"') => drop(self.text()),
            Some(_) => {
                let word = self.word();
                if word.starts_with(|first: char| first == '-' || first.is_ascii_digit()) && !is_exact(word) {
                    self.found.push(path.to_owned());
                }
            }
            None => {}
        }
    }

    /// The members of the object or list that begins here; `name` reads what stands before a value.
    fn members(&mut self, path: &str, name: impl Fn(&mut Self, usize) -> String) {
        self.at += 1;
        let mut n = 0;
        while !matches!(self.next(), None | Some(b'}' | b']')) {
            let name = name(self, n);
            self.value(&format!("{path}/{name}"));
            self.expect(b',');
            n += 1;
        }
        self.at += 1;
    }

    /// The next byte that is no white space.
    fn next(&mut self) -> Option<u8> {
        let rest = self.json.get(self.at..)?;
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        self.json.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) {
        if self.next() == Some(byte) {
            self.at += 1;
        }
    }

    /// The text in quotes that begins here.
    fn text(&mut self) -> &'a str {
        let begin = self.at;
        let bytes = self.json.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        self.json.get(begin..self.at).unwrap_or_default()
    }

    /// The number, or `true`, `false`, `null`, that begins here.
    fn word(&mut self) -> &'a str {
        let rest = &self.json[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\t', '\n', '\r']).unwrap_or(rest.len());
        // A byte at least, whatever it is, so that the walk comes to an end.
        self.at += end.max(1);
        &rest[..end]
    }
}

/// Whether a JSON number is the same for whoever reads it: as a 64-bit integer and as the float that a plugin gets, or
/// with the digits that the float is written with.
fn is_exact(number: &str) -> bool {
    if let Ok(integer) = number.parse::<i128>()
        && (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&integer)
    {
        return (integer as f64) as i128 == integer;
    }
    // As the host reads it, which may differ in the last digit from the nearest float.
    let read = serde_json::from_str::<f64>(number);
    read.is_ok_and(|float| decimal(&format!("{float:e}")) == decimal(number))
}

/// Digits without zeros at the ends, and the power of ten of the last one; `None` when that is beyond all reason.
fn decimal(number: &str) -> Option<(String, i64)> {
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let kept = digits.trim_end_matches('0');
    let zeros = (digits.len() - kept.len()) as i64;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some((String::new(), 0));
    }
    let power: i64 = power.trim_start_matches('+').parse().ok()?;
    Some((kept.to_owned(), power.checked_sub(fraction.len() as i64)?.checked_add(zeros)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_an_object_whose_config_is_an_object_or_left_out() {
        let read = |body: &str| Submitted::read(body.as_bytes()).map(|submitted| Value::Object(submitted.fields));
        assert_eq!(read(r#"{"config":{"a":1},"other":2}"#), Some(json!({"a": 1})));
        assert_eq!((read("{}"), read(r#"{"config":{}}"#)), (Some(json!({})), Some(json!({}))));
        for body in
            ["", "null", "[]", r#"{"config":null}"#, r#"{"config":[]}"#, r#"{"config":{}"#, r#"{"confg":{}}"#, "{} {}"]
        {
            assert_eq!(read(body), None, "{body}");
        }
        assert!(Submitted::read(b"{\"config\":{\"a\":\"\xff\"}}").is_none());
    }

    #[test]
    fn numbers_that_would_be_changed_are_found_with_their_place() {
        for exact in [
            "0",
            "-0",
            "-0.0",
            "1",
            "1.0",
            "-12",
            "9007199254740992",
            "9223372036854775808",
            "0.1",
            "1e5",
            "1.50E+2",
            "100000000000000000000",
            "3.141592653589793",
            "1e308",
            "5e-324",
            "0e9",
        ] {
            assert_eq!(inexact_numbers(exact), [""; 0], "{exact}");
        }
        for inexact in [
            "9007199254740993",
            "-9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "123456789012345678901234567890",
            "3.14159265358979323846",
            "1e-400",
            "0.1000000000000000055511151231257827",
        ] {
            assert_eq!(inexact_numbers(inexact), [""], "{inexact}");
        }
        let body = r#"{"config": {"a/b~" : [1, {"\u0063": 9007199254740993} ], "s": "9007199254740993, \"",
            "e": {}, "l": [], "t": true, "n": null, "last":18446744073709551616}, "x": 9007199254740993}"#;
        assert_eq!(inexact_numbers(body), ["/config/a~1b~0/1/c", "/config/last", "/x"]);
        assert_eq!(Submitted::read(body.as_bytes()).unwrap().inexact, ["/a~1b~0/1/c", "/last"]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn ordinary_values_have_nothing_inexact(value in any_json()) {
            prop_assert_eq!(inexact_numbers(&value.to_string()), [""; 0]);
            prop_assert_eq!(inexact_numbers(&serde_json::to_string_pretty(&value).unwrap()), [""; 0]);
        }

        #[test]
        fn any_text_comes_to_an_end(text in "[\\[\\]{}\",:0-9eE.+ \\\\a-c-]{0,40}") {
            drop(inexact_numbers(&text));
        }

        #[test]
        fn an_exact_number_reads_as_what_it_says(number in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?") {
            if is_exact(&number) {
                let read = serde_json::from_str::<Value>(&number).unwrap().as_f64().unwrap();
                // A large integer may be exact and be written with fewer digits.
                let same = number.parse::<i128>().is_ok_and(|integer| read as i128 == integer);
                prop_assert!(same || decimal(&number) == decimal(&format!("{read:e}")), "{}", read);
            }
        }
    }
}
