//! Rules for JSON-Schema objects inside a manifest: shape and size, not the full meta-schema.
//!
//! The schemas of agent tools are handed to agents and used to check arguments, so their keywords must at least have
//! lawful types. `config_schema` is free (contract/rest.md §4 says which of its words count).

use serde_json::Value;

use super::model::Schema;

/// Largest schema of an agent tool as JSON, in bytes.
const MAX_TOOL_SCHEMA_BYTES: usize = 64 * 1024;

/// The type words of JSON Schema draft-7.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// Checks a schema of an agent tool: non-empty, root type object, at most 64 KiB, keywords of lawful types.
pub(super) fn check_object_schema(schema: &Schema) -> Result<(), String> {
    if schema.is_empty() {
        return Err("must be a non-empty JSON Schema object".to_owned());
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("must have root type \"object\"".to_owned());
    }
    let size = serde_json::to_vec(schema).map_or(usize::MAX, |json| json.len());
    if size > MAX_TOOL_SCHEMA_BYTES {
        return Err(format!("must be at most {MAX_TOOL_SCHEMA_BYTES} bytes of JSON"));
    }
    check_keywords(schema).map_err(|keyword| format!("is not a valid JSON Schema: bad value of \"{keyword}\""))
}

/// The first keyword whose value has an unlawful type. The depth is bounded by the YAML reader.
fn check_keywords(schema: &Schema) -> Result<(), &'static str> {
    let require = |lawful: bool, keyword| if lawful { Ok(()) } else { Err(keyword) };
    if let Some(kind) = schema.get("type") {
        let known = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
        let list = |values: &Vec<Value>| !values.is_empty() && values.iter().all(known);
        require(known(kind) || kind.as_array().is_some_and(list), "type")?;
    }
    for keyword in ["title", "description", "format", "pattern", "$ref", "$schema", "$id"] {
        require(schema.get(keyword).is_none_or(Value::is_string), keyword)?;
    }
    for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        require(schema.get(keyword).is_none_or(Value::is_u64), keyword)?;
    }
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        require(schema.get(keyword).is_none_or(Value::is_number), keyword)?;
    }
    let texts = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    require(schema.get("required").is_none_or(texts), "required")?;
    require(schema.get("enum").is_none_or(|value| value.as_array().is_some_and(|list| !list.is_empty())), "enum")?;
    check_children(schema)
}

fn check_children(schema: &Schema) -> Result<(), &'static str> {
    for keyword in ["properties", "patternProperties", "definitions", "$defs"] {
        match schema.get(keyword) {
            None => {}
            Some(Value::Object(children)) => children.values().try_for_each(|child| check_child(child, keyword))?,
            Some(_) => return Err(keyword),
        }
    }
    for keyword in ["additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"] {
        schema.get(keyword).map_or(Ok(()), |child| check_child(child, keyword))?;
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        match schema.get(keyword) {
            None => {}
            Some(Value::Array(children)) if !children.is_empty() => {
                children.iter().try_for_each(|child| check_child(child, keyword))?;
            }
            Some(_) => return Err(keyword),
        }
    }
    match schema.get("items") {
        Some(Value::Array(children)) => children.iter().try_for_each(|child| check_child(child, "items")),
        Some(child) => check_child(child, "items"),
        None => Ok(()),
    }
}

/// A sub-schema is an object or, since draft-6, a boolean.
fn check_child(child: &Value, keyword: &'static str) -> Result<(), &'static str> {
    match child {
        Value::Bool(_) => Ok(()),
        Value::Object(schema) => check_keywords(schema),
        _ => Err(keyword),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: Value) -> Result<(), String> {
        match value {
            Value::Object(schema) => check_object_schema(&schema),
            other => panic!("not an object: {other}"),
        }
    }

    #[test]
    fn ordinary_object_schemas_pass() {
        let schema = json!({"type": "object", "required": ["q"], "additionalProperties": false, "properties": {
            "q": {"type": "string", "minLength": 1}, "n": {"type": ["integer", "null"], "minimum": 0},
            "l": {"type": "array", "items": {"enum": [1, "a"]}}, "any": true}});
        assert_eq!(check(schema), Ok(()));
    }

    #[test]
    fn shape_size_and_keyword_faults_are_named() {
        assert_eq!(check(json!({})), Err("must be a non-empty JSON Schema object".to_owned()));
        assert_eq!(check(json!({"type": "string"})), Err("must have root type \"object\"".to_owned()));
        assert_eq!(
            check(json!({"type": "object", "description": "x".repeat(65_536)})),
            Err("must be at most 65536 bytes of JSON".to_owned())
        );
        for (schema, keyword) in [
            (json!({"type": "object", "properties": {"a": {"type": "text"}}}), "type"),
            (json!({"type": "object", "properties": []}), "properties"),
            (json!({"type": "object", "properties": {"a": 1}}), "properties"),
            (json!({"type": "object", "required": "a"}), "required"),
            (json!({"type": "object", "anyOf": []}), "anyOf"),
            (json!({"type": "object", "items": 3}), "items"),
            (json!({"type": "object", "minProperties": -1}), "minProperties"),
        ] {
            assert_eq!(check(schema), Err(format!("is not a valid JSON Schema: bad value of \"{keyword}\"")));
        }
    }
}
