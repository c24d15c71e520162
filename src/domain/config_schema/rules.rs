//! The fixed rules of rest.md §4 with their texts, in their order: required, secrets are strings, then for each
//! declared property its type and its enum.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Fields, Rule, Violation};
use crate::domain::manifest::Schema;

/// Every broken rule of `values`. Of `kept` secrets only the presence counts.
pub(super) fn check(fields: Fields<'_>, values: &Map<String, Value>, kept: &BTreeSet<String>) -> Vec<Violation> {
    let mut broken: Vec<Violation> = required(fields.schema)
        .filter(|field| !values.contains_key(*field))
        .map(|field| Violation::of_field(field, Rule::Required, &format!("missing required field \"{field}\"")))
        .collect();
    let mut not_text = BTreeSet::new();
    for (field, _) in fields.declared().filter(|(field, _)| fields.is_secret(field) && !kept.contains(*field)) {
        if values.get(field).is_some_and(|value| !value.is_string() && !value.is_null()) {
            not_text.insert(field);
            broken.push(Violation::of_field(field, Rule::Type, &format!("secret field \"{field}\" must be a string")));
        }
    }
    for (field, rules) in fields.declared() {
        let Some(value) = values.get(field) else { continue };
        let null_secret = value.is_null() && fields.is_secret(field);
        if kept.contains(field) || null_secret || not_text.contains(field) {
            continue;
        }
        if let Some((rule, message)) = against(field, rules, value) {
            broken.push(Violation::of_field(field, rule, &message));
        }
    }
    broken
}

/// The names under `required`.
pub(super) fn required(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn against(field: &str, rules: &Schema, value: &Value) -> Option<(Rule, String)> {
    if let Some(kind) = rules.get("type").and_then(Value::as_str)
        && !is_of_type(value, kind)
    {
        return Some((Rule::Type, format!("field \"{field}\" must be a {kind}")));
    }
    let allowed = rules.get("enum")?.as_array()?;
    let found = allowed.iter().any(|option| equal(option, value));
    (!found).then(|| (Rule::Enum, format!("field \"{field}\" must be one of the declared enum values")))
}

/// Type words beside these four are unchecked here.
fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

/// Equal, numbers by their value: `1` is `1.0`.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}
