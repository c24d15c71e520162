//! Reading untrusted YAML into typed values, close to how the Go host reads it.
//!
//! Owns the budgets and the scalar rules: `null` counts as absent at every typed level, text keeps its source spelling
//! (`version: 1.0`, `id: no`), `yes`/`no`/`on`/`off` are booleans only where a boolean is expected. Duplicate keys, a
//! second document and unknown tags are refused; merge keys (`<<`) and a leading byte-order mark are understood.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Visitor};
use serde::{Deserialize, de};

use super::error::ManifestError;
use crate::domain::clean::single_line;

/// Largest accepted `manifest.yaml`, in bytes.
pub const MAX_MANIFEST_BYTES: usize = 2 * 1024 * 1024;

/// Largest record that is read, in bytes.
pub(crate) const MAX_RECORD_BYTES: usize = 64 * 1024 * 1024;

/// Longest parser message that is passed on, in bytes.
const MAX_MESSAGE_BYTES: usize = 500;

/// What a document may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Bytes of the document; also of its scalars times two, aliases expanded.
    bytes: usize,
    /// Scalars, lists and maps, aliases expanded.
    nodes: usize,
    /// Aliases in the text, and anchors.
    aliases: usize,
    /// Parser events that all aliases together may repeat.
    replayed: usize,
}

/// For `manifest.yaml`: honest ones stay below a tenth of each number; an alias bomb meets one after milliseconds.
pub(crate) const MANIFEST: Budget = Budget { bytes: MAX_MANIFEST_BYTES, nodes: 50_000, aliases: 200, replayed: 20_000 };

/// For a record, which the host wrote itself: holds every accepted manifest, however its text had to be escaped and
/// indented, so that what was installed can be read again.
pub(crate) const RECORD: Budget = Budget { bytes: MAX_RECORD_BYTES, nodes: 200_000, aliases: 200, replayed: 20_000 };

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 64;

/// Most merge keys (`<<`).
const MAX_MERGE_KEYS: usize = 100;

/// Reads one YAML document.
///
/// # Errors
/// [`ManifestError::Yaml`] with a bounded single-line text that names the place.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8], budget: Budget) -> Result<T, ManifestError> {
    if bytes.len() > budget.bytes {
        return Err(ManifestError::Yaml(format!("the document exceeds {} bytes", budget.bytes)));
    }
    let document: Option<T> = serde_saphyr::from_slice_with_options(bytes, options(budget))
        .map_err(|e| ManifestError::Yaml(single_line(&e.to_string(), MAX_MESSAGE_BYTES)))?;
    document.ok_or_else(|| ManifestError::Yaml("the document is empty".to_owned()))
}

fn options(budget: Budget) -> serde_saphyr::Options {
    let mut options = serde_saphyr::options! {
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::Merge,
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    options.alias_limits.max_total_replayed_events = budget.replayed;
    if let Some(limits) = options.budget.as_mut() {
        limits.max_depth = MAX_DEPTH;
        limits.flow_nesting_limit = MAX_DEPTH;
        limits.max_nodes = budget.nodes;
        limits.max_events = 4 * budget.nodes;
        limits.max_aliases = budget.aliases;
        limits.max_anchors = budget.aliases;
        limits.max_merge_keys = MAX_MERGE_KEYS;
        limits.max_recorded_anchor_events = budget.replayed;
        limits.max_recorded_anchor_bytes = budget.bytes;
        limits.max_total_scalar_bytes = 2 * budget.bytes;
        limits.max_documents = 2;
    }
    options
}

/// For `deserialize_with`: `null` gives the default.
pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// For `deserialize_with`: a list where `null` gives the empty list and `null` elements are left out.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let elements = Option::<Vec<Option<T>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(elements.into_iter().flatten().collect())
}

/// For `deserialize_with`: a boolean that also takes the plain words Go takes, `y yes on n no off`.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    deserializer.deserialize_any(FlagVisitor)
}

struct FlagVisitor;

impl Visitor<'_> for FlagVisitor {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<bool, E> {
        Ok(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<bool, E> {
        match word.to_ascii_lowercase().as_str() {
            "y" | "yes" | "on" => Ok(true),
            "n" | "no" | "off" => Ok(false),
            _ => Err(E::invalid_value(de::Unexpected::Str(&single_line(word, 40)), &self)),
        }
    }
}
