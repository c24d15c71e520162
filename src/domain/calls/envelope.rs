//! The envelope of an action: what the browser names beside the body, and the body as it came (contract/rest.md §7).

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::place::Named;

/// Largest envelope, in bytes: the largest body that a manifest can allow, and room for the names.
pub const MAX_ENVELOPE_BYTES: u64 = 1024 * 1024 + 4096;

/// Why an envelope is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not one JSON object with text for names (400).
    #[error("invalid plugin action payload")]
    Malformed,
    /// The body as it came is longer than the manifest says (413).
    #[error("plugin action body exceeds declared maximum size")]
    BodyTooLarge,
}

/// A read envelope.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Untrusted.
    pub named: Named,
    /// The JSON text of the body, unchanged; empty without one.
    pub body: &'a str,
}

/// Keys that are not known are left alone, as existing hosts do: none of them means anything.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(default)]
    workspace_id: Option<String>,
    #[serde(default)]
    task_id: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    repository_id: Option<String>,
    #[serde(borrow, default, deserialize_with = "present")]
    body: Option<&'a RawValue>,
}

/// A body of `null` is a body.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads an envelope whose body may have `max_body` bytes.
pub fn read(bytes: &[u8], max_body: i64) -> Result<Envelope<'_>, EnvelopeError> {
    // A list would be read as the names in their order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return Err(EnvelopeError::Malformed);
    }
    let wire: Wire<'_> = serde_json::from_slice(bytes).map_err(|_| EnvelopeError::Malformed)?;
    let body = wire.body.map(RawValue::get).unwrap_or_default();
    if usize::try_from(max_body).is_ok_and(|max| body.len() > max) {
        return Err(EnvelopeError::BodyTooLarge);
    }
    let named = Named {
        workspace: wire.workspace_id.unwrap_or_default(),
        task: wire.task_id.unwrap_or_default(),
        session: wire.session_id.unwrap_or_default(),
        repository: wire.repository_id.unwrap_or_default(),
    };
    Ok(Envelope { named, body })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_body_is_taken_as_it_is_written_and_names_are_optional() {
        let text = r#" {"workspaceId":"w","taskId":null, "body" : { "b" : 1.0,"a":[ ] } , "actorId":"eve"} "#;
        let named = Named { workspace: "w".to_owned(), ..Named::default() };
        assert_eq!(read(text.as_bytes(), 100), Ok(Envelope { named, body: r#"{ "b" : 1.0,"a":[ ] }"# }));
        for (text, body) in [("{}", ""), (r#"{"body":null}"#, "null"), (r#"{"body":"x"}"#, "\"x\"")] {
            assert_eq!(read(text.as_bytes(), 100), Ok(Envelope { named: Named::default(), body }));
        }
    }

    #[test]
    fn what_is_not_one_object_is_malformed() {
        for text in [
            "",
            " ",
            "[]",
            "null",
            "[]x",
            "{}{}",
            "{} x",
            "{",
            "3",
            "[1]",
            r#"{"taskId":1}"#,
            r#"{"body":}"#,
            "\u{feff}{}",
        ] {
            assert_eq!(read(text.as_bytes(), 100), Err(EnvelopeError::Malformed), "{text:?}");
        }
        assert_eq!(read(b"{\"body\":\"\xff\"}", 100), Err(EnvelopeError::Malformed));
    }

    #[test]
    fn the_declared_maximum_counts_the_bodys_own_bytes() {
        let text = r#"{"taskId":"0123456789", "body":"abc"}"#;
        assert!(read(text.as_bytes(), 5).is_ok());
        assert_eq!(read(text.as_bytes(), 4), Err(EnvelopeError::BodyTooLarge));
    }

    proptest! {
        #[test]
        fn any_bytes_get_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..60), text in "[{}\\[\\]\":, a-z0-9]{0,40}") {
            let _ = read(&bytes, 10);
            if let Ok(envelope) = read(text.as_bytes(), 10) {
                prop_assert!(envelope.body.len() <= 10 && text.contains(envelope.body));
            }
        }
    }
}
