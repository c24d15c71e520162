//! The plugin id: the name under which a plugin owns its folder, record, state, subjects and routes.
//!
//! Owns the grammar and the reserved words. Whether a plugin with an id exists is the registry's knowledge.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::clean::quote;

/// Longest accepted id in bytes; keeps `<id>.config.yml` and log fields well inside file-name limits.
pub const MAX_ID_BYTES: usize = 128;

/// The grammar of ids and of several other manifest names (contract/manifest.md §2), as shown in messages.
pub const ID_PATTERN: &str = "^[a-z0-9][a-z0-9._-]*$";

/// Words that are REST segments or host subjects beside `{id}`; a plugin of that name would be partly unreachable.
pub const RESERVED_IDS: [&str; 6] = ["install", "sync", "settings", "marketplace", "user-state", "lifecycle"];

/// A validated plugin id. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId(Arc<str>);

/// Why a text is not a plugin id. Contract: manifest.md §2; the length, the reserved words and `.yml` are ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text does not follow [`ID_PATTERN`].
    #[error("invalid plugin id {0}: must match {ID_PATTERN}")]
    Pattern(String),
    /// The record of such an id would be read as the config file of another.
    #[error("invalid plugin id {0}: must not end in \".config\"")]
    ConfigSuffix(String),
    /// The folder of such an id would have the name of another's record.
    #[error("invalid plugin id {0}: must not end in \".yml\"")]
    YmlSuffix(String),
    /// Longer than [`MAX_ID_BYTES`].
    #[error("invalid plugin id {0}: must be at most {MAX_ID_BYTES} bytes")]
    TooLong(String),
    /// One of [`RESERVED_IDS`].
    #[error("invalid plugin id {0}: the word is reserved by the host, choose another id")]
    Reserved(String),
}

impl PluginId {
    /// Checks `text` against the grammar, the length and the reserved words.
    pub fn new(text: &str) -> Result<Self, IdError> {
        if !is_identifier(text) {
            return Err(IdError::Pattern(quote(text)));
        }
        if text.ends_with(".config") {
            return Err(IdError::ConfigSuffix(quote(text)));
        }
        if text.ends_with(".yml") {
            return Err(IdError::YmlSuffix(quote(text)));
        }
        if text.len() > MAX_ID_BYTES {
            return Err(IdError::TooLong(quote(text)));
        }
        if RESERVED_IDS.contains(&text) {
            return Err(IdError::Reserved(quote(text)));
        }
        Ok(Self(Arc::from(text)))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether `text` matches [`ID_PATTERN`].
pub fn is_identifier(text: &str) -> bool {
    let lower_or_digit = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(lower_or_digit)
        && bytes.iter().all(|b| lower_or_digit(b) || matches!(b, b'.' | b'_' | b'-'))
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for PluginId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PluginId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl Serialize for PluginId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for PluginId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lawful_ids_are_kept_as_they_are() {
        for text in ["a", "0", "acme-chat", "my.plugin_2", "no", "config", &"a".repeat(128)] {
            assert_eq!(PluginId::new(text).map(|id| id.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn each_unlawful_id_names_its_rule() {
        for text in ["", "A", "-a", ".a", "a b", "a/b", "ä", "a\n"] {
            assert_eq!(PluginId::new(text), Err(IdError::Pattern(quote(text))), "{text:?}");
        }
        assert_eq!(
            PluginId::new("x.config").map_err(|e| e.to_string()),
            Err("invalid plugin id \"x.config\": must not end in \".config\"".to_owned())
        );
        assert_eq!(
            PluginId::new("Acme").map_err(|e| e.to_string()),
            Err("invalid plugin id \"Acme\": must match ^[a-z0-9][a-z0-9._-]*$".to_owned())
        );
        assert_eq!(PluginId::new("foo.yml"), Err(IdError::YmlSuffix(quote("foo.yml"))));
        assert!(matches!(PluginId::new(&"a".repeat(129)), Err(IdError::TooLong(_))));
        for word in RESERVED_IDS {
            assert_eq!(PluginId::new(word), Err(IdError::Reserved(quote(word))));
        }
    }
}
