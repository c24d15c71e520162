//! Messages of a session, what a reader may see of their text, and which of them a list shows.

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    Map,
    refusal::Refusal,
    words::{AuthorType, MessageType},
};

/// A message as it is stored. Its text may hold blocks that are for agents only: [`Message::content`] is what others
/// see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// A UUID of version 7.
    pub id: String,
    /// Of which session.
    pub session_id: String,
    /// Of which task.
    pub task_id: String,
    /// Of which turn; may be empty.
    pub turn_id: String,
    /// Who wrote it.
    pub author_type: AuthorType,
    /// Who exactly; may be empty.
    pub author_id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub message_type: MessageType,
    /// The whole text; never for plugins.
    pub raw_content: String,
    /// Whether it waits for a person.
    pub requests_input: bool,
    /// Everything else about it.
    pub metadata: Map,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
}

impl Message {
    /// The text without what is for agents only.
    pub fn content(&self) -> String {
        sanitised(&self.raw_content)
    }

    /// Whether its text holds something that is for agents only.
    pub fn hides_something(&self) -> bool {
        first_block(&self.raw_content).is_some()
    }
}

/// A message to be recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// In which session.
    pub session_id: String,
    /// Who writes.
    pub author_type: AuthorType,
    /// Who exactly; may be empty.
    pub author_id: String,
    /// What it is.
    pub message_type: MessageType,
    /// The whole text.
    pub content: String,
    /// Whether it waits for a person.
    pub requests_input: bool,
    /// Everything else. A plugin's gets its `source`.
    pub metadata: Map,
}

/// What changes of a message. `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessagePatch {
    /// The whole text.
    pub content: Option<String>,
    /// What it is.
    pub message_type: Option<MessageType>,
    /// Whether it waits for a person.
    pub requests_input: Option<bool>,
    /// Replaces all of it.
    pub metadata: Option<Map>,
}

const OPEN: &str = "<kandev-system>";
const CLOSE: &str = "</kandev-system>";

/// Where the first hidden block begins and ends, its closing tag included.
fn first_block(text: &str) -> Option<(usize, usize)> {
    let begin = text.find(OPEN)?;
    let inner = begin + OPEN.len();
    let end = inner + text[inner..].find(CLOSE)? + CLOSE.len();
    Some((begin, end))
}

/// Text for anyone but the agent (host-data.md §4): hidden blocks go with the white space after them, then the whole is
/// trimmed. A tag that is never closed stays.
pub fn sanitised(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((begin, end)) = first_block(rest) {
        shown.push_str(&rest[..begin]);
        rest = rest[end..].trim_start();
    }
    shown.push_str(rest);
    shown.trim().to_owned()
}

/// Most values in a filter of messages, of all three lists together (host-data.md §3).
pub const MAX_FILTER_VALUES: usize = 400;

/// Which messages a list shows. Empty lists do not restrict; fields restrict together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    /// Of one of these sessions.
    pub session_ids: Vec<String>,
    /// Of one of these tasks.
    pub task_ids: Vec<String>,
    /// Of one of these types; unknown words match nothing.
    pub types: Vec<String>,
    /// Made at this moment or later.
    pub since: Option<OffsetDateTime>,
    /// Made before this moment.
    pub until: Option<OffsetDateTime>,
}

impl MessageFilter {
    /// From the fields of the wire; empty times are not set.
    pub fn new(
        session_ids: Vec<String>,
        task_ids: Vec<String>,
        types: Vec<String>,
        since: &str,
        until: &str,
    ) -> Result<Self, Refusal> {
        let count = session_ids.len() + task_ids.len() + types.len();
        if count > MAX_FILTER_VALUES {
            return Err(Refusal::MessageFilterTooLarge { count, limit: MAX_FILTER_VALUES });
        }
        let (since, until) = (moment("since", since)?, moment("until", until)?);
        Ok(Self { session_ids, task_ids, types, since, until })
    }
}

fn moment(field: &'static str, text: &str) -> Result<Option<OffsetDateTime>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let parsed = OffsetDateTime::parse(text, &Rfc3339);
    parsed.map(Some).map_err(|error| Refusal::BadTime { field, cause: error.to_string() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn hidden_blocks_go_with_the_white_space_after_them() {
        for (text, shown) in [
            ("<kandev-system>mode=x</kandev-system>\n\n Ship it ", "Ship it"),
            ("a <kandev-system>1\n2</kandev-system>  b", "a b"),
            ("<kandev-system>1</kandev-system><kandev-system>2</kandev-system>x", "x"),
            ("<kandev-system>a<kandev-system>b</kandev-system>c</kandev-system>", "c</kandev-system>"),
            ("never <kandev-system> closed", "never <kandev-system> closed"),
            ("</kandev-system> alone", "</kandev-system> alone"),
            ("  plain  ", "plain"),
            ("", ""),
        ] {
            assert_eq!(sanitised(text), shown, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_hidden_block_survives(parts in prop::collection::vec("(<kandev-system>|</kandev-system>|secret| |x)", 0..12)) {
            let text = parts.concat();
            let shown = sanitised(&text);
            // What is between an opening tag and the next closing one is never shown, unless the cut makes a new pair.
            if first_block(&text).is_none() {
                prop_assert_eq!(shown, text.trim());
            } else {
                prop_assert!(shown.len() < text.len());
            }
        }
    }

    #[test]
    fn bounds_of_time_are_compared_in_utc_and_must_be_rfc_3339() {
        let filter = |since: &str| MessageFilter::new(Vec::new(), Vec::new(), Vec::new(), since, "");
        assert_eq!(filter("2026-11-29T14:00:00+02:00").unwrap().since, Some(datetime!(2026-11-29 12:00 UTC)));
        assert_eq!(filter("").unwrap().since, None);
        let error = filter("yesterday").unwrap_err().to_string();
        assert!(error.starts_with("since must be RFC3339: "), "{error}");
    }

    #[test]
    fn a_filter_has_at_most_four_hundred_values() {
        let many = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>();
        assert!(MessageFilter::new(many(200), many(199), many(1), "", "").is_ok());
        let error = MessageFilter::new(many(200), many(200), many(1), "", "").unwrap_err();
        assert_eq!(error.to_string(), "message filter has 401 session/task/type values, max 400");
    }
}
