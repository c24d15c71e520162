//! What plugins keep in the browser for a person: where an entry lies, when it was written, and what others are told of
//! a change (contract/rest.md §8, frontend.md §3.2).
//!
//! Pure. Rows and the conflict between two writers are `store::user_state`'s.

use serde::Serialize;
use serde_json::value::RawValue;
use time::{
    OffsetDateTime, UtcOffset,
    format_description::{BorrowedFormatItem, well_known::Rfc3339},
    macros::format_description,
};

use super::clean::quote;

/// The subject of a change on the bus. Nobody else publishes it: no plugin may be called `user-state`, and the operator
/// publishes nothing below `plugin.`.
pub const SUBJECT: &str = "plugin.user-state.updated";

/// The key of a change's moment in its event ([`Change::updated_at`]).
pub const STAMP: &str = "updatedAt";

/// Longest id of a scope or key, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Longest name that a writer gives himself, in bytes.
pub const MAX_WRITER_BYTES: usize = 256;

/// How deep a value may be nested: as deep as a reader like the host, which opens 127 levels, can read in the list of a
/// scope, which puts three around it.
pub const MAX_DEPTH: usize = 124;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScopeKind {
    /// The plugin as a whole.
    Instance,
    /// A workspace.
    Workspace,
    /// A task.
    Task,
    /// A session.
    Session,
    /// A repository.
    Repository,
}

impl ScopeKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Instance, Self::Workspace, Self::Task, Self::Session, Self::Repository];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Workspace => "workspace",
            Self::Task => "task",
            Self::Session => "session",
            Self::Repository => "repository",
        }
    }
}

/// Entries that are listed together. What the id names is the plugin's business; nothing need exist by that id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// What it is about.
    pub kind: ScopeKind,
    /// Which one; also of an instance.
    pub id: String,
}

/// The place of one entry of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where.
    pub scope: Scope,
    /// Name within the scope.
    pub key: String,
}

/// A part of an address that names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Not one of the words.
    #[error("invalid scope {0}")]
    Scope(String),
    /// Not 1 to 128 letters, digits, dots, underscores, colons or hyphens, beginning with a letter or digit.
    #[error("invalid scopeId")]
    ScopeId,
    /// The same of a key.
    #[error("invalid key")]
    Key,
}

impl Scope {
    /// From the parts of an address.
    pub fn new(kind: &str, id: &str) -> Result<Self, PlaceError> {
        let known = ScopeKind::ALL.into_iter().find(|known| known.as_str() == kind);
        let kind = known.ok_or_else(|| PlaceError::Scope(quote(kind)))?;
        if !is_name(id) {
            return Err(PlaceError::ScopeId);
        }
        Ok(Self { kind, id: id.to_owned() })
    }
}

impl Place {
    /// From the parts of an address.
    pub fn new(kind: &str, id: &str, key: &str) -> Result<Self, PlaceError> {
        let scope = Scope::new(kind, id)?;
        if !is_name(key) {
            return Err(PlaceError::Key);
        }
        Ok(Self { scope, key: key.to_owned() })
    }

    /// Bytes that the place counts for a quota.
    pub fn size(&self) -> usize {
        self.scope.kind.as_str().len() + self.scope.id.len() + self.key.len()
    }
}

/// `^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-');
    text.len() <= MAX_NAME_BYTES
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(inner)
}

/// When an entry was written: nanoseconds since 1970 UTC, so that no two writes of one entry look alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub i64);

const SHOWN: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:9]Z");

impl Stamp {
    /// Of a moment. What lies beyond the years 1677 and 2262 is taken for their edge.
    pub fn of(at: OffsetDateTime) -> Self {
        let nanos = at.unix_timestamp_nanos();
        Self(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX }))
    }

    /// From RFC 3339; `None` when it is not that.
    pub fn parse(text: &str) -> Option<Self> {
        OffsetDateTime::parse(text, &Rfc3339).ok().map(Self::of)
    }

    /// RFC 3339, UTC, always nine digits behind the point: texts of equal length compare as the moments do.
    pub fn text(self) -> String {
        let at = OffsetDateTime::from_unix_timestamp_nanos(self.0.into()).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        at.to_offset(UtcOffset::UTC).format(SHOWN).unwrap_or_default()
    }
}

/// The text of a value without the white space between its parts, as existing hosts keep it. Numbers, keys and escapes
/// stay as they were sent: whoever made a number of any length of digits gets them all back. `None` when it is nested
/// deeper than [`MAX_DEPTH`].
pub fn compact(value: &RawValue) -> Option<String> {
    let mut text = String::with_capacity(value.get().len());
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for c in value.get().chars() {
        match c {
            '\\' if in_text => escaped = !escaped,
            '"' if !escaped => in_text = !in_text,
            _ if in_text => escaped = false,
            '[' | '{' if depth == MAX_DEPTH => return None,
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ' ' | '\t' | '\n' | '\r' => continue,
            _ => {}
        }
        text.push(c);
    }
    Some(text)
}

/// What is told of a change. The value is never part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Whose entry.
    pub user_id: String,
    /// Which plugin's.
    #[serde(rename = "pluginId")]
    pub plugin_id: String,
    /// Where.
    pub scope: &'static str,
    /// Where.
    #[serde(rename = "scopeId")]
    pub scope_id: String,
    /// Name.
    pub key: String,
    /// When.
    #[serde(rename = "updatedAt")]
    pub updated_at: String,
    /// What the writer calls himself, so that he knows his own changes.
    #[serde(rename = "writerId", skip_serializing_if = "String::is_empty")]
    pub writer_id: String,
    /// It is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn a_place_is_made_of_a_known_word_and_two_names() {
        let place = Place::new("task", "t-1.a:b_c", "9").unwrap();
        assert_eq!(
            (place.scope.kind, place.scope.id.as_str(), place.key.as_str()),
            (ScopeKind::Task, "t-1.a:b_c", "9")
        );
        assert_eq!(place.size(), 14);
        let refused = |kind, id, key| Place::new(kind, id, key).unwrap_err().to_string();
        assert_eq!(refused("Task", "a", "k"), "invalid scope \"Task\"");
        assert_eq!(refused("instance", "", "k"), "invalid scopeId");
        for name in ["", "-a", ".a", "a b", "é", "a/b", &"x".repeat(129)] {
            assert_eq!(refused("instance", name, "k"), "invalid scopeId", "{name}");
            assert_eq!(refused("instance", "a", name), "invalid key", "{name}");
        }
        assert!(Place::new("instance", "a", &"x".repeat(128)).is_ok());
    }

    #[test]
    fn a_stamp_has_nine_digits_and_is_read_in_any_zone() {
        let stamp = Stamp::of(datetime!(2026-11-30 12:00:00.5 UTC));
        assert_eq!(stamp.text(), "2026-11-30T12:00:00.500000000Z");
        for text in ["2026-11-30T12:00:00.500000000Z", "2026-11-30T14:00:00.5+02:00"] {
            assert_eq!(Stamp::parse(text), Some(stamp), "{text}");
        }
        for text in ["", "2026-11-30", "2026-11-30 12:00:00Z ", "yesterday"] {
            assert_eq!(Stamp::parse(text), None, "{text}");
        }
        assert_eq!(Stamp::parse("9999-01-01T00:00:00Z"), Some(Stamp(i64::MAX)));
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_value_keeps_every_digit_and_escape_and_loses_the_white_space_between() {
        for (sent, kept) in [
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("-18446744073709551616.10E+400", "-18446744073709551616.10E+400"),
            ("{ \"b\" : [ 1.0 ,\n\t-0 ],\r\"a\" : { } }", "{\"b\":[1.0,-0],\"a\":{}}"),
            (r#" " a\" [ \\" "#, r#"" a\" [ \\""#),
            (r#"["\u00e9\ud800 \/", "\\\"", null ]"#, r#"["\u00e9\ud800 \/","\\\"",null]"#),
        ] {
            assert_eq!(compact(&raw(sent)).as_deref(), Some(kept), "{sent}");
        }
    }

    #[test]
    fn a_value_is_as_deep_as_a_reader_of_the_host_can_open_it_in_an_answer() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let kept = compact(&raw(&nested(MAX_DEPTH))).unwrap();
        assert_eq!(kept, nested(MAX_DEPTH));
        let list = format!("{{\"entries\":[{{\"value\":{kept}}}]}}");
        assert!(serde_json::from_str::<serde_json::Value>(&list).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&list.replace("]", "]]").replace("[", "[[")).is_err());
        assert_eq!(compact(&raw(&nested(MAX_DEPTH + 1))), None);
        let text = format!("\"{}\"", nested(500));
        assert_eq!(compact(&raw(&text)), Some(text), "brackets of a text are not depth");
    }

    #[test]
    fn a_change_is_told_without_its_value() {
        let mut change = Change {
            user_id: "operator".into(),
            plugin_id: "acme".into(),
            scope: ScopeKind::Task.as_str(),
            scope_id: "t1".into(),
            key: "k".into(),
            updated_at: "2026-11-30T12:00:00.000000000Z".into(),
            writer_id: String::new(),
            deleted: false,
        };
        let bare = json!({"user_id": "operator", "pluginId": "acme", "scope": "task", "scopeId": "t1", "key": "k",
            "updatedAt": "2026-11-30T12:00:00.000000000Z"});
        assert_eq!(serde_json::to_value(&change).unwrap(), bare);
        change.writer_id = "w".into();
        change.deleted = true;
        let full = serde_json::to_value(&change).unwrap();
        assert_eq!((&full["writerId"], &full["deleted"]), (&json!("w"), &json!(true)));
    }

    proptest! {
        #[test]
        fn texts_of_stamps_compare_as_the_stamps_do(a in 0i64.., b in 0i64..) {
            let (a, b) = (Stamp(a), Stamp(b));
            prop_assert_eq!(a.cmp(&b), a.text().cmp(&b.text()));
            prop_assert_eq!(Stamp::parse(&a.text()), Some(a));
        }

        #[test]
        fn any_text_is_kept_as_it_is(text in ".*", other in ".*") {
            let sent = json!([text, {other: [null]}]);
            let kept = compact(&raw(&serde_json::to_string_pretty(&sent).unwrap()));
            prop_assert_eq!(kept, Some(sent.to_string()));
        }

        #[test]
        fn a_name_is_what_the_contract_says(text in "[a._:-]{0,5}|.{0,5}") {
            let lawful = regex::Regex::new("^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}\\z").unwrap();
            prop_assert_eq!(is_name(&text), lawful.is_match(&text));
        }
    }
}
