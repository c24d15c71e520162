//! Bounds of what writers may put into the platform. Together they keep every event below the smallest lawful
//! `limits.event_bytes` of a default host (1 MiB).

use serde_json::Value;

use super::{Map, refusal::Refusal};

/// Longest id, in bytes; the host's own have 36.
pub const MAX_ID_BYTES: usize = 128;
/// Longest title of a task, in characters (host-data.md §6.1).
pub const MAX_TITLE_CHARS: usize = 60;
/// Longest name, branch, address or path, in bytes.
pub const MAX_NAME_BYTES: usize = 2048;
/// Longest name of a thing at its provider, in bytes: several of them together must fit into a row of an index, which
/// PostgreSQL bounds at 2704 bytes.
pub const MAX_FOREIGN_BYTES: usize = 512;
/// Longest description, prompt or script, in bytes.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Longest content of a message, in bytes.
pub const MAX_CONTENT_BYTES: usize = 512 * 1024;
/// Largest JSON object that is kept, in bytes of its text.
pub const MAX_OBJECT_BYTES: usize = 256 * 1024;
/// Deepest nesting of such an object: an event may carry it two levels further in (`actors::events`).
pub const MAX_OBJECT_DEPTH: usize = 28;
/// Most entries of a list in one request: repositories of a task, steps of a workflow.
pub const MAX_ITEMS: usize = 100;
/// Most values of one field of a filter; databases bound the parameters of a statement.
pub const MAX_FILTER_VALUES: usize = 5000;

/// Whether a row may have this id. What may not is asked for in vain, and never reaches the database: PostgreSQL takes
/// no zero byte in text.
pub fn may_be_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= MAX_ID_BYTES && !id.contains('\0')
}

/// A short text: at most [`MAX_NAME_BYTES`].
pub fn check_name(field: &'static str, text: &str) -> Result<(), Refusal> {
    check(field, text, MAX_NAME_BYTES)
}

/// A short text that must not be empty.
pub fn check_required(field: &'static str, text: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::Required(field));
    }
    check_name(field, text)
}

/// A long text: at most [`MAX_TEXT_BYTES`].
pub fn check_text(field: &'static str, text: &str) -> Result<(), Refusal> {
    check(field, text, MAX_TEXT_BYTES)
}

/// Any text with its own bound in bytes.
pub fn check(field: &'static str, text: &str, limit: usize) -> Result<(), Refusal> {
    if text.len() > limit {
        return Err(Refusal::TooLarge { field, size: text.len(), limit });
    }
    if text.contains('\0') {
        return Err(Refusal::ZeroByte(field));
    }
    Ok(())
}

/// A JSON object: bounded in size and depth.
pub fn check_object(field: &'static str, object: &Map) -> Result<(), Refusal> {
    if object.values().any(|value| deeper_than(value, MAX_OBJECT_DEPTH - 1)) {
        return Err(Refusal::TooDeep { field, limit: MAX_OBJECT_DEPTH });
    }
    let size = serde_json::to_string(object).map_or(usize::MAX, |text| text.len());
    if size > MAX_OBJECT_BYTES {
        return Err(Refusal::TooLarge { field, size, limit: MAX_OBJECT_BYTES });
    }
    Ok(())
}

/// The values of one field of a filter.
pub fn check_filter(field: &'static str, values: &[String]) -> Result<(), Refusal> {
    if values.len() > MAX_FILTER_VALUES {
        return Err(Refusal::TooMany { field, count: values.len(), limit: MAX_FILTER_VALUES });
    }
    Ok(())
}

/// A list of a request.
pub fn check_items(field: &'static str, count: usize) -> Result<(), Refusal> {
    if count > MAX_ITEMS {
        return Err(Refusal::TooMany { field, count, limit: MAX_ITEMS });
    }
    Ok(())
}

/// Whether objects and lists are nested deeper than this.
pub fn deeper_than(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(inner) => levels == 0 || inner.values().any(|value| deeper_than(value, levels - 1)),
        Value::Array(inner) => levels == 0 || inner.iter().any(|value| deeper_than(value, levels - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_a_bound_and_no_zero_byte() {
        assert_eq!(check_name("name", &"x".repeat(MAX_NAME_BYTES)), Ok(()));
        let long = check_name("name", &"x".repeat(MAX_NAME_BYTES + 1)).unwrap_err();
        assert_eq!(long.to_string(), "name has 2049 bytes, at most 2048 are allowed");
        assert_eq!(check_text("prompt", "a\0b"), Err(Refusal::ZeroByte("prompt")));
        assert_eq!(check_required("name", " \n"), Err(Refusal::Required("name")));
        assert!(may_be_id("a") && !may_be_id("") && !may_be_id("a\0") && !may_be_id(&"x".repeat(MAX_ID_BYTES + 1)));
    }

    #[test]
    fn objects_have_a_bound_in_size_and_depth() {
        let nested = |levels: usize| {
            let value = (1..levels).fold(Value::Object(Map::new()), |inner, _| serde_json::json!({ "a": inner }));
            value.as_object().cloned().unwrap()
        };
        assert_eq!(check_object("metadata", &nested(MAX_OBJECT_DEPTH)), Ok(()));
        let deep = check_object("metadata", &nested(MAX_OBJECT_DEPTH + 1)).unwrap_err();
        assert_eq!(deep, Refusal::TooDeep { field: "metadata", limit: MAX_OBJECT_DEPTH });
        let large: Map = [("a".to_owned(), "x".repeat(MAX_OBJECT_BYTES).into())].into_iter().collect();
        assert!(matches!(check_object("metadata", &large), Err(Refusal::TooLarge { field: "metadata", .. })));
    }
}
