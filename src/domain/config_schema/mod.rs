//! The operator's settings of a plugin: what the manifest's `config_schema` makes of them (contract/rest.md §4).
//!
//! Owns which fields are secret, the mask, what a PATCH makes of each value (`draft`), the fixed rules with their texts
//! (`rules`), which numbers can be kept (`submitted`), the whole JSON Schema with its bounds (`full`, `reach`). It
//! reads no file and no vault: secret values pass through it and are never in a text it makes.

mod draft;
mod full;
mod reach;
mod rules;
mod submitted;

use serde::Serialize;
use serde_json::{Map, Value};

pub use draft::{Change, Draft};
pub use full::{FullSchema, Unusable};
pub use reach::foreign_reference;
pub use submitted::{Submitted, inexact_numbers};

use super::clean::single_line;
use super::manifest::Schema;

/// What stands for a secret that is set, in answers and in what clients send back.
pub const MASK: &str = "********";

/// Start of every refusal of a config.
const PREFIX: &str = "plugin config invalid: ";

/// At most this many violations are told.
const MAX_VIOLATIONS: usize = 50;

/// At most this many of them are in the text.
const MAX_IN_TEXT: usize = 5;

/// Longest path or message of a violation, in bytes.
const MAX_TEXT_BYTES: usize = 300;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON pointer to the value in the config; empty for the config as a whole.
    pub path: String,
    /// For people; holds no value of the config.
    pub message: String,
    #[serde(skip)]
    rule: Rule,
}

/// What kind of rule is broken. The fixed rules and the schema say the first three in words of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Required,
    Type,
    Enum,
    Other,
}

impl Violation {
    /// One that no schema told of.
    pub fn at(path: &str, message: &str) -> Self {
        Self::new(path, Rule::Other, message)
    }

    fn new(path: &str, rule: Rule, message: &str) -> Self {
        Self { path: single_line(path, MAX_TEXT_BYTES), message: single_line(message, MAX_TEXT_BYTES), rule }
    }

    fn of_field(field: &str, rule: Rule, message: &str) -> Self {
        Self::new(&pointer(field), rule, message)
    }

    /// Whether both say the same of the same value.
    fn says_the_same(&self, other: &Self) -> bool {
        self.path == other.path && self.rule == other.rule && self.rule != Rule::Other
    }
}

/// The JSON pointer to a field of the config.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace('~', "~0").replace('/', "~1"))
}

/// A config that breaks rules of the plugin's schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    text: String,
    /// All of them, the fixed rules first; at most 50.
    pub violations: Vec<Violation>,
}

impl Refusal {
    /// The text is the first fixed rule's, word for word, when one is broken (rest.md §4); else it names what the
    /// schema says.
    fn new(fixed: Vec<Violation>, schema: Vec<Violation>) -> Self {
        let told = match fixed.first() {
            Some(first) => first.message.clone(),
            None => {
                let lines =
                    schema.iter().take(MAX_IN_TEXT).map(|Violation { path, message, .. }| match path.as_str() {
                        "" => message.clone(),
                        path => format!("{path}: {message}"),
                    });
                let more = schema.len().saturating_sub(MAX_IN_TEXT);
                lines.chain((more > 0).then(|| format!("… and {more} more"))).collect::<Vec<_>>().join("; ")
            }
        };
        let mut violations = fixed;
        violations.extend(schema);
        violations.truncate(MAX_VIOLATIONS);
        Self { text: format!("{PREFIX}{told}"), violations }
    }
}

/// The top-level properties of a `config_schema`, as rest.md §4 reads them.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    schema: &'a Schema,
}

impl<'a> Fields<'a> {
    /// The fields of a schema; one without `properties` has none.
    pub fn of(schema: &'a Schema) -> Self {
        Self { schema }
    }

    /// The declared properties in the manifest's order; those that are no objects declare nothing.
    pub fn declared(self) -> impl Iterator<Item = (&'a str, &'a Schema)> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().filter_map(|(name, rules)| Some((name.as_str(), rules.as_object()?)))
    }

    /// Whether a field is declared with `secret: true` or `format: "password"`. The field with the empty name never is:
    /// its place in the vault belongs to the host (`store::plugin_config`).
    pub fn is_secret(self, field: &str) -> bool {
        let rules = self.schema.get("properties").and_then(|properties| properties.get(field));
        let says = |key: &str, value: Value| rules.and_then(|rules| rules.get(key)) == Some(&value);
        !field.is_empty() && (says("secret", Value::Bool(true)) || says("format", "password".into()))
    }

    /// A stored config as clients see it: secrets that are set are masked, everything else is as it is.
    pub fn mask(self, stored: &Map<String, Value>) -> Map<String, Value> {
        let shown = |(field, value): (&String, &Value)| {
            let hidden = self.is_secret(field) && is_set(value);
            (field.clone(), if hidden { MASK.into() } else { value.clone() })
        };
        stored.iter().map(shown).collect()
    }
}

/// Neither null nor `""`, `false` or a zero.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests;
