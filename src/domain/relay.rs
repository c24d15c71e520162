//! Rules of the webhook relay: which part of an address, which headers and which answers pass between a client and a
//! plugin (contract/rest.md §6). Bytes in, bytes out; no HTTP library.
//!
//! Towards the plugin, credentials for the host and claims of an identity of the host are removed, so that a plugin can
//! neither reuse the first nor be fooled by the second. Towards the client, what would break the connection or act
//! on the host's own origin is removed, and an answer that cannot be sent as it is becomes an error.

use std::{cmp::Ordering, collections::HashMap};

/// Headers of one connection, not of the message (RFC 9110 §7.6.1 and common practice).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Request headers that are the host's business: its credentials and its name.
const NOT_FOR_PLUGINS: [&str; 3] = ["authorization", "cookie", "host"];

/// Names beginning so speak for the host; a client must not.
const HOST_IDENTITY_PREFIX: &str = "x-kandev-";

/// Answer headers that would act on the host's origin or contradict the body really sent.
const NOT_FOR_CLIENTS: [&str; 3] = ["content-length", "set-cookie", "x-kandev-auth-login"];

/// Answer headers of which a second line would leave the choice to the client.
const ONLY_ONCE: [&str; 2] = ["content-type", "location"];

/// All answer headers together, names and values; common clients refuse more.
pub const MAX_ANSWER_HEADER_BYTES: usize = 64 * 1024;

/// The parts of a webhook address after `/api/plugins/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookPath<'a> {
    /// The plugin's id, percent-encoded as it came.
    pub id: &'a str,
    /// The webhook's key, percent-encoded as it came.
    pub key: &'a str,
    /// What follows the key, raw with its leading slash; empty when nothing follows.
    pub remainder: &'a str,
}

/// Splits the raw path `/api/plugins/{id}/webhooks/{key}[/…]`; `None` for any other form.
pub fn split_path(raw: &str) -> Option<WebhookPath<'_>> {
    let mut segments = raw.strip_prefix('/')?.splitn(5, '/');
    let (_api, _plugins) = (segments.next()?, segments.next()?);
    let (id, _webhooks, rest) = (segments.next()?, segments.next()?, segments.next()?);
    let end = rest.find('/').unwrap_or(rest.len());
    Some(WebhookPath { id, key: &rest[..end], remainder: &rest[end..] })
}

/// A request header whose value is not text. The contract's headers are text, so the request is refused (400).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the value of the header {0} is not valid UTF-8")]
pub struct HeaderNotText(pub String);

/// The headers a plugin gets: canonical names, the values of one name joined by `", "` in the order they came.
pub fn request_headers<'a>(
    headers: impl ExactSizeIterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Result<HashMap<String, String>, HeaderNotText> {
    let connection: Vec<String> = headers
        .clone()
        .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
        .flat_map(|(_, value)| listed_names(&String::from_utf8_lossy(value)))
        .collect();
    let mut kept: HashMap<String, String> = HashMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !passes_to_plugin(name) || is_one_of(name, &connection) {
            continue;
        }
        let canonical = canonical_name(name);
        let value = std::str::from_utf8(value).map_err(|_| HeaderNotText(canonical.clone()))?;
        kept.entry(canonical)
            .and_modify(|joined| {
                joined.push_str(", ");
                joined.push_str(value);
            })
            .or_insert_with(|| value.to_owned());
    }
    Ok(kept)
}

/// Underscores count as hyphens for the host's own names: many programs cannot tell them apart.
fn passes_to_plugin(name: &str) -> bool {
    let begin = name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() });
    let speaks_for_host = begin.take(HOST_IDENTITY_PREFIX.len()).eq(HOST_IDENTITY_PREFIX.bytes());
    !is_one_of(name, &HOP_BY_HOP) && !is_one_of(name, &NOT_FOR_PLUGINS) && !speaks_for_host
}

fn is_one_of(name: &str, list: &[impl AsRef<str>]) -> bool {
    list.iter().any(|listed| name.eq_ignore_ascii_case(listed.as_ref()))
}

/// Go's canonical spelling: capital at the start and after each hyphen, small elsewhere.
fn canonical_name(name: &str) -> String {
    let mut capital = true;
    let mut spelled = String::with_capacity(name.len());
    for c in name.chars() {
        spelled.push(if capital { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() });
        capital = c == '-';
    }
    spelled
}

/// The names in a `Connection` header, lower case.
fn listed_names(value: &str) -> Vec<String> {
    value.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty()).collect()
}

/// A plugin's answer that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// 200 to 599.
    pub status: u16,
    /// Names as the plugin spelled them, in order of their lower-case form; a name may occur twice.
    pub headers: Vec<(String, String)>,
    /// Whether the status allows a body; if not, the plugin's is left out.
    pub with_body: bool,
}

/// Why a plugin's answer cannot be sent (502).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Outside 200–599. An interim status (1xx) cannot end an exchange.
    #[error("plugin returned invalid webhook status {0}")]
    Status(i32),
    /// A name that is no HTTP token, or a value with a control character.
    #[error("plugin returned an invalid webhook header")]
    Header,
    /// A header of which there can be one only came in two spellings.
    #[error("plugin returned the webhook header {0} twice")]
    Twice(&'static str),
    /// More than 64 KiB of headers.
    #[error("plugin returned webhook headers of more than {MAX_ANSWER_HEADER_BYTES} bytes")]
    TooLarge,
}

/// Checks and filters a plugin's answer. The status is looked at first (contract/rest.md §6, order).
pub fn answer(status: i32, headers: HashMap<String, String>) -> Result<Answer, AnswerError> {
    let status =
        u16::try_from(status).ok().filter(|code| (200..=599).contains(code)).ok_or(AnswerError::Status(status))?;
    if headers.iter().any(|(name, value)| !is_token(name) || !is_field_value(value)) {
        return Err(AnswerError::Header);
    }
    if headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_ANSWER_HEADER_BYTES {
        return Err(AnswerError::TooLarge);
    }
    let mut headers: Vec<(String, String)> = headers.into_iter().collect();
    for once in ONLY_ONCE {
        if headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(once)).count() > 1 {
            return Err(AnswerError::Twice(once));
        }
    }
    let connection: Vec<String> = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("connection"))
        .flat_map(|(_, value)| listed_names(value))
        .collect();
    headers.retain(|(name, _)| {
        !is_one_of(name, &HOP_BY_HOP) && !is_one_of(name, &NOT_FOR_CLIENTS) && !is_one_of(name, &connection)
    });
    // The same answer gives the same lines every time.
    headers.sort_unstable_by(|(a, _), (b, _)| in_any_spelling(a, b).then_with(|| a.cmp(b)));
    Ok(Answer { status, headers, with_body: !matches!(status, 204 | 205 | 304) })
}

/// The order of the names' lower-case forms.
fn in_any_spelling(a: &str, b: &str) -> Ordering {
    let lower = |byte: u8| byte.to_ascii_lowercase();
    a.bytes().map(lower).cmp(b.bytes().map(lower))
}

/// RFC 9110 §5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// RFC 9110 §5.5: no control character but the tab.
pub(super) fn is_field_value(value: &str) -> bool {
    value.bytes().all(|b| b == b'\t' || (b >= 0x20 && b != 0x7f))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to_plugin(headers: &[(&str, &[u8])]) -> Result<HashMap<String, String>, HeaderNotText> {
        request_headers(headers.iter().copied())
    }

    fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_remainder_keeps_its_slash_and_its_encoding() {
        let split = |raw| split_path(raw).map(|path| (path.id, path.key, path.remainder));
        assert_eq!(split("/api/plugins/a/webhooks/in"), Some(("a", "in", "")));
        assert_eq!(split("/api/plugins/a/webhooks/in/"), Some(("a", "in", "/")));
        assert_eq!(split("/api/plugins/a/webhooks/in/x%2Fy//z%20"), Some(("a", "in", "/x%2Fy//z%20")));
        assert_eq!(split("/api/plugins/a/webhooks/%69n/.."), Some(("a", "%69n", "/..")));
        assert_eq!(split("/api/plugins/a/webhooks/"), Some(("a", "", "")));
        assert_eq!(split("/api/plugins/a/webhooks"), None);
    }

    #[test]
    fn credentials_hop_by_hop_headers_and_claims_of_identity_never_reach_the_plugin() {
        let kept = to_plugin(&[
            ("authorization", b"Bearer x"),
            ("Cookie", b"a=b"),
            ("PROXY-AUTHORIZATION", b"x"),
            ("host", b"example.test"),
            ("connection", b"close, X-Named"),
            ("x-named", b"1"),
            ("keep-alive", b"1"),
            ("te", b"trailers"),
            ("trailer", b"x"),
            ("transfer-encoding", b"chunked"),
            ("upgrade", b"h2c"),
            ("x-kandev-user", b"admin"),
            ("X_Kandev_User", b"admin"),
            ("x-forwarded-for", b"192.0.2.1"),
            ("content-type", b"text/plain"),
        ]);
        assert_eq!(kept, Ok(map(&[("X-Forwarded-For", "192.0.2.1"), ("Content-Type", "text/plain")])));
    }

    #[test]
    fn several_values_of_a_name_are_joined_in_order() {
        let kept = to_plugin(&[("x-a", b"1"), ("x-hub-signature-256", b"s"), ("X-A", b"2"), ("x-a", b"")]);
        assert_eq!(kept, Ok(map(&[("X-A", "1, 2, "), ("X-Hub-Signature-256", "s")])));
    }

    #[test]
    fn bytes_above_127_pass_as_text_or_are_refused() {
        assert_eq!(to_plugin(&[("x-a", "é".as_bytes())]), Ok(map(&[("X-A", "é")])));
        assert_eq!(to_plugin(&[("x-a", b"\xe9")]), Err(HeaderNotText("X-A".to_owned())));
    }

    #[test]
    fn only_a_status_from_200_to_599_is_sent() {
        for status in [i32::MIN, -1, 0, 42, 99, 100, 101, 199, 600, 65_736, i32::MAX] {
            assert_eq!(answer(status, HashMap::new()), Err(AnswerError::Status(status)));
        }
        for status in [200u16, 204, 205, 299, 304, 418, 500, 599] {
            let with_body = !matches!(status, 204 | 205 | 304);
            assert_eq!(
                answer(i32::from(status), HashMap::new()),
                Ok(Answer { status, headers: Vec::new(), with_body })
            );
        }
    }

    #[test]
    fn framing_cookies_and_the_login_directive_are_dropped_from_an_answer_in_any_spelling() {
        let sent = answer(
            200,
            map(&[
                ("content-LENGTH", "5"),
                ("Transfer-Encoding", "chunked"),
                ("Connection", "close, x-named"),
                ("X-Named", "1"),
                ("Keep-Alive", "1"),
                ("set-cookie", "a=b"),
                ("X-KANDEV-Auth-Login", "eve"),
                ("X-Kept", "é\tv"),
            ]),
        );
        assert_eq!(sent.unwrap().headers, [("X-Kept".to_owned(), "é\tv".to_owned())]);
    }

    #[test]
    fn a_header_that_cannot_be_written_makes_the_answer_invalid() {
        for (name, value) in
            [("x\r\ny", "1"), ("x", "1\r\nset-cookie: a"), ("", "1"), ("x y", "1"), ("é", "1"), ("x", "\0")]
        {
            assert_eq!(answer(200, map(&[(name, value)])), Err(AnswerError::Header), "{name:?}: {value:?}");
        }
        let long = "x".repeat(MAX_ANSWER_HEADER_BYTES);
        assert_eq!(answer(200, map(&[("x", &long)])), Err(AnswerError::TooLarge));
    }

    #[test]
    fn a_name_in_two_spellings_gives_two_lines_unless_there_can_be_one_only() {
        let lines = answer(200, map(&[("x-a", "2"), ("X-A", "1")])).unwrap().headers;
        assert_eq!(lines, [("X-A".to_owned(), "1".to_owned()), ("x-a".to_owned(), "2".to_owned())]);
        let twice = answer(200, map(&[("content-type", "a/b"), ("Content-Type", "c/d")]));
        assert_eq!(twice, Err(AnswerError::Twice("content-type")));
    }

    proptest! {
        #[test]
        fn splitting_loses_no_byte_of_the_address(id in "[^/]{0,9}", key in "[^/]{0,9}", rest in "(/[^?#]{0,20})?") {
            let raw = format!("/api/plugins/{id}/webhooks/{key}{rest}");
            prop_assert_eq!(split_path(&raw), Some(WebhookPath { id: &id, key: &key, remainder: &rest }));
        }

        #[test]
        fn no_denied_name_survives_in_any_spelling(
            lower in prop::sample::select(vec!["authorization", "cookie", "proxy-authorization", "host", "connection",
                "transfer-encoding", "x-kandev-actor"]),
            upper in prop::collection::vec(any::<bool>(), 32),
            value in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let name: String = lower.chars().zip(upper)
                .map(|(c, up)| if up { c.to_ascii_uppercase() } else { c }).collect();
            prop_assert_eq!(to_plugin(&[(&name, &value)]), Ok(HashMap::new()));
        }

        #[test]
        fn any_request_header_gets_a_verdict(pairs in prop::collection::vec(("[A-Za-z_-]{1,8}",
            prop::collection::vec(any::<u8>(), 0..8)), 0..8)) {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
            let _ = to_plugin(&pairs);
        }

        #[test]
        fn every_answer_that_passes_can_be_written(status in any::<i32>(),
            headers in prop::collection::hash_map(".{0,6}", ".{0,6}", 0..4)) {
            if let Ok(sent) = answer(status, headers) {
                prop_assert!((200..=599).contains(&sent.status));
                for (name, value) in sent.headers {
                    prop_assert!(is_token(&name) && is_field_value(&value));
                    let lower = name.to_ascii_lowercase();
                    prop_assert!(!HOP_BY_HOP.contains(&lower.as_str()) && !NOT_FOR_CLIENTS.contains(&lower.as_str()));
                }
            }
        }
    }
}
