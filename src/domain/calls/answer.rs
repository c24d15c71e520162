//! What of a plugin's answer to an action passes to the browser (contract/rest.md §7): few headers, a lawful status, a
//! bounded body.

use std::{borrow::Cow, collections::HashMap};

use crate::domain::relay::{self, MAX_ANSWER_HEADER_BYTES};

/// Largest body of an answer, in bytes.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Headers that pass; of every other one the host alone is the author.
const RELAYED: [&str; 4] = ["cache-control", "content-type", "etag", "retry-after"];

/// What an answer without a type is.
const DEFAULT_TYPE: &str = "application/json; charset=utf-8";

/// An answer as it is sent, but for its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 599.
    pub status: u16,
    /// Lower-case names with values that can be written, one of each.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// Whether the status allows a body; if not, the plugin's is left out.
    pub with_body: bool,
}

/// Why an answer is not passed on (502).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// Neither a status nor a header nor a body.
    #[error("plugin returned an empty action response")]
    Empty,
    /// A body of more than 1 MiB, or relayed headers of more than 64 KiB.
    #[error("plugin action response exceeds maximum size")]
    TooLarge,
    /// Neither 0 nor 200 to 599.
    #[error("plugin returned an invalid action status")]
    Status,
}

/// Checks and filters, in the contract's order: empty, size, status. A header whose value could not be written, or
/// would write another one, is left out, and so is an empty type; of two spellings of a name the first in the order of
/// their texts counts.
pub fn check(status: i32, headers: HashMap<String, String>, body_bytes: usize) -> Result<Answer, AnswerFault> {
    if status == 0 && headers.is_empty() && body_bytes == 0 {
        return Err(AnswerFault::Empty);
    }
    let relayed = headers.into_iter().filter_map(|(spelling, value)| {
        let name = RELAYED.into_iter().find(|name| spelling.eq_ignore_ascii_case(name))?;
        let says_nothing = name == "content-type" && value.trim().is_empty();
        (relay::is_field_value(&value) && !says_nothing).then_some((name, spelling, value))
    });
    let mut relayed: Vec<_> = relayed.collect();
    relayed.sort_unstable();
    relayed.dedup_by_key(|(name, ..)| *name);
    let mut headers: Vec<(_, Cow<'static, str>)> =
        relayed.into_iter().map(|(name, _, value)| (name, value.into())).collect();
    let header_bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if body_bytes > MAX_BODY_BYTES || header_bytes > MAX_ANSWER_HEADER_BYTES {
        return Err(AnswerFault::TooLarge);
    }
    let status = match u16::try_from(status) {
        Ok(0) => 200,
        Ok(status @ 200..=599) => status,
        Ok(_) | Err(_) => return Err(AnswerFault::Status),
    };
    let with_body = !matches!(status, 204 | 205 | 304);
    if with_body && headers.iter().all(|(name, _)| *name != "content-type") {
        headers.push(("content-type", Cow::Borrowed(DEFAULT_TYPE)));
    }
    Ok(Answer { status, headers, with_body })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn sent(headers: &[(&str, &str)]) -> Vec<(&'static str, String)> {
        let sent = check(200, map(headers), 1).unwrap().headers;
        sent.into_iter().map(|(name, value)| (name, value.into_owned())).collect()
    }

    #[test]
    fn no_status_is_200_and_lawful_ones_stay() {
        let json = vec![("content-type", DEFAULT_TYPE.into())];
        for (given, status) in [(0, 200), (200, 200), (201, 201), (299, 299), (404, 404), (599, 599)] {
            let headers = json.clone();
            assert_eq!(check(given, HashMap::new(), 2), Ok(Answer { status, headers, with_body: true }));
        }
        for status in [204, 205, 304] {
            let bare = Answer { status, headers: Vec::new(), with_body: false };
            assert_eq!(check(status.into(), HashMap::new(), 2), Ok(bare));
        }
        for status in [i32::MIN, -1, 1, 42, 100, 199, 600, 65_736, i32::MAX] {
            assert_eq!(check(status, HashMap::new(), 2), Err(AnswerFault::Status), "{status}");
        }
    }

    #[test]
    fn four_headers_pass_in_any_spelling_and_no_other() {
        let headers = sent(&[
            ("Cache-Control", "no-store"),
            ("content-TYPE", "text/plain"),
            ("ETag", "\"1\""),
            ("retry-after", "3"),
            ("Set-Cookie", "a=b"),
            ("Location", "/x"),
            ("X-Kandev-Auth-Login", "eve"),
            ("Access-Control-Allow-Origin", "*"),
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
        ]);
        let expected =
            [("cache-control", "no-store"), ("content-type", "text/plain"), ("etag", "\"1\""), ("retry-after", "3")];
        assert_eq!(headers, expected.map(|(name, value)| (name, value.to_owned())));
    }

    #[test]
    fn a_value_that_would_write_another_line_is_left_out() {
        let json = [("content-type", DEFAULT_TYPE.to_owned())];
        for value in ["a\r\nSet-Cookie: b", "a\nb", "a\rb", "a\0b", "\u{7f}"] {
            assert_eq!(sent(&[("ETag", value), ("Content-Type", value)]), json, "{value:?}");
        }
        assert_eq!(sent(&[("etag", "b"), ("ETag", "a"), ("eTaG", "\n")]), [("etag", "a".to_owned()), json[0].clone()]);
    }

    #[test]
    fn an_empty_type_is_none() {
        let json = [("content-type", DEFAULT_TYPE.to_owned())];
        for value in ["", " ", "\t "] {
            assert_eq!(sent(&[("Content-Type", value)]), json, "{value:?}");
        }
        let text = [("content-type", "text/plain".to_owned())];
        assert_eq!(sent(&[("Content-Type", ""), ("content-type", "text/plain")]), text, "of two spellings");
        let bare = Answer { status: 204, headers: Vec::new(), with_body: false };
        assert_eq!(check(204, map(&[("Content-Type", "")]), 0), Ok(bare));
    }

    #[test]
    fn an_answer_of_nothing_and_one_of_too_much_are_faults_before_the_status_is_looked_at() {
        assert_eq!(check(0, HashMap::new(), 0), Err(AnswerFault::Empty));
        assert!(check(0, map(&[("X", "y")]), 0).is_ok() && check(204, HashMap::new(), 0).is_ok());
        assert_eq!(check(42, HashMap::new(), MAX_BODY_BYTES + 1), Err(AnswerFault::TooLarge));
        assert!(check(200, HashMap::new(), MAX_BODY_BYTES).is_ok());
        let long = "x".repeat(MAX_ANSWER_HEADER_BYTES);
        assert_eq!(check(200, map(&[("ETag", &long)]), 0), Err(AnswerFault::TooLarge));
        assert!(check(200, map(&[("X-Dropped", &long)]), 0).is_ok());
    }

    proptest! {
        #[test]
        fn every_answer_gets_a_verdict_and_what_passes_can_be_written(status in any::<i32>(), size in 0usize..4,
            headers in prop::collection::hash_map("(?i:etag|content-type|retry-after|x)", "(?s:.{0,6})", 0..4)) {
            if let Ok(answer) = check(status, headers, size) {
                prop_assert!((200..=599).contains(&answer.status));
                for (name, value) in answer.headers {
                    prop_assert!(RELAYED.contains(&name) && relay::is_field_value(&value));
                }
            }
        }
    }
}
