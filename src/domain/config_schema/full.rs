//! Checking a config against the whole JSON Schema that the manifest declares: nested objects, patterns, bounds and
//! all.
//!
//! The library fetches nothing, and its expressions are matched by an engine whose time grows with the text alone; one
//! with look-around or back-references does not compile. Without `$schema` the schema is read as draft 2020-12.
//! `format` is a hint for forms (rest.md §4), whatever the draft.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::{Draft, PatternOptions, ValidationError, Validator, error::ValidationErrorKind as Kind};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};

use super::{Fields, MAX_VIOLATIONS, Rule, Violation, pointer, reach};
use crate::domain::{clean::single_line, manifest::Schema};

/// Largest compiled expression, and largest table of its automaton, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Longest text of the library that is passed on, in bytes.
const MAX_REASON_BYTES: usize = 300;

/// Most pairs of a sub-schema and a value of the config that are looked at; each may give a violation.
const MAX_CHECKS: usize = 2_000_000;

/// Why a `config_schema` is not used beyond the fixed rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It would take too much time or memory.
    #[error(
        "it has more than {nodes} sub-schemas, {patterns} patterns or {depth} levels when its references are followed"
    )]
    TooLarge {
        /// The bound on sub-schemas.
        nodes: usize,
        /// The bound on regular expressions.
        patterns: usize,
        /// The bound on levels.
        depth: usize,
    },
    /// A reference leads back to where it stands.
    #[error("its references run in a circle: {0}")]
    Circle(String),
    /// Another base for references, inside.
    #[error("it has an $id inside; write references as \"#/…\" without one")]
    Base,
    /// A reference to nothing.
    #[error("its $ref {0} leads nowhere; write it as a path like \"#/$defs/name\"")]
    Target(String),
    /// Not a JSON Schema.
    #[error("it is not a valid JSON Schema: {0}")]
    Invalid(String),
}

/// A schema ready for checking. Making one takes a while for a large schema: keep it.
#[derive(Debug)]
pub struct FullSchema {
    validator: Validator,
    /// Sub-schemas, references followed.
    nodes: usize,
}

impl FullSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// [`Unusable`]: only the fixed rules apply then (rest.md §4).
    pub fn compile(schema: &Schema) -> Result<Self, Unusable> {
        Self::compile_as(schema, None)
    }

    /// The same, read as draft-7 without `$schema` (contract/manifest.md §2, schemas of agent tools).
    ///
    /// # Errors
    /// [`Unusable`].
    pub fn compile_draft7(schema: &Schema) -> Result<Self, Unusable> {
        Self::compile_as(schema, Some(Draft::Draft7).filter(|_| !schema.contains_key("$schema")))
    }

    fn compile_as(schema: &Schema, draft: Option<Draft>) -> Result<Self, Unusable> {
        let nodes = reach::measure(schema)?;
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        let options = jsonschema::options().offline().should_validate_formats(false).with_pattern_options(patterns);
        let options = match draft {
            Some(draft) => options.with_draft(draft),
            None => options,
        };
        let built = options.build(&Value::Object(schema.clone()));
        let validator = built.map_err(|error| Unusable::Invalid(single_line(&error.to_string(), MAX_REASON_BYTES)))?;
        Ok(Self { validator, nodes })
    }

    /// What a whole value breaks; at most 50.
    pub fn check(&self, value: &Value) -> Vec<Violation> {
        if self.nodes.saturating_mul(count(value)) > MAX_CHECKS {
            return vec![Violation::new("", Rule::Other, "it is too large to be checked against the schema")];
        }
        self.validator.iter_errors(value).take(MAX_VIOLATIONS).map(|error| tell(&error)).collect()
    }

    /// What `values` breaks beyond the `told` violations of the fixed rules, which are not told twice; at most 50. Kept
    /// secrets and null secrets count as set to anything that the schema likes. What it makes depend on a kept secret
    /// is judged by its value when that is among `secrets`, else as if the field were not there.
    pub(super) fn violations(
        &self,
        fields: Fields<'_>,
        values: &Map<String, Value>,
        kept: &BTreeSet<String>,
        secrets: &BTreeMap<String, SecretString>,
        told: &[Violation],
    ) -> Vec<Violation> {
        let mut values = values.clone();
        for (field, secret) in secrets.iter().filter(|(field, _)| kept.contains(*field)) {
            values.insert(field.clone(), secret.expose_secret().into());
        }
        let config = Value::Object(values.clone());
        if self.nodes.saturating_mul(count(&config)) > MAX_CHECKS {
            return vec![Violation::new("", Rule::Other, "the config is too large for this plugin's config_schema")];
        }
        let excused: BTreeSet<&str> = values
            .iter()
            .filter(|(field, value)| kept.contains(*field) || (value.is_null() && fields.is_secret(field)))
            .map(|(field, _)| field.as_str())
            .collect();
        let mut found = self.found(&config, &excused);
        if !found.is_empty() && excused.iter().any(|field| !secrets.contains_key(*field)) {
            // It may be due to the stand-in of a secret: then it passes without one.
            let mut bare = values.clone();
            bare.retain(|field, _| !excused.contains(field.as_str()) || secrets.contains_key(field));
            let without = self.found(&Value::Object(bare), &excused);
            found.retain(|violation| without.contains(violation));
        }
        found.retain(|violation| !told.iter().any(|fixed| fixed.says_the_same(violation)));
        found.truncate(MAX_VIOLATIONS);
        found
    }

    /// Violations, without those at or below excused fields.
    fn found(&self, config: &Value, excused: &BTreeSet<&str>) -> Vec<Violation> {
        let errors = self.validator.iter_errors(config);
        let counted = errors.filter(|error| top(error).is_none_or(|field| !excused.contains(field.as_str())));
        counted.map(|error| tell(&error)).collect()
    }
}

/// The field of the config that a violation is about.
fn top(error: &ValidationError<'_>) -> Option<String> {
    let field = error.instance_path().as_str().split('/').nth(1)?;
    Some(field.replace("~1", "/").replace("~0", "~"))
}

/// The value itself is never told: it may be a secret.
fn tell(error: &ValidationError<'_>) -> Violation {
    let path = error.instance_path().as_str();
    if let Kind::Required { property: Value::String(missing) } = error.kind() {
        let message = format!("missing required property \"{missing}\"");
        return Violation::new(&format!("{path}{}", pointer(missing)), Rule::Required, &message);
    }
    let message = error.masked_with("the value").to_string();
    let message = match message.strip_prefix("Additional") {
        Some(rest) => format!("additional{rest}"),
        None => message,
    };
    let rule = match error.kind() {
        Kind::Type { .. } => Rule::Type,
        Kind::Enum { .. } => Rule::Enum,
        _ => Rule::Other,
    };
    Violation::new(path, rule, &message)
}

/// The values in a config, lists and objects included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
