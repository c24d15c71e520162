//! Agent tools (contract/wire.md §2.1, manifest.md §2): what arguments and results may be. Whether they fit the tool's
//! schemas is `config_schema`'s knowledge.

use serde_json::{Map, Value};

use crate::domain::{
    config_schema::{FullSchema, Violation},
    platform::text::deeper_than,
};

/// Largest arguments as JSON, in bytes; the same as of a result.
pub const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// Largest text and structured content together, in bytes.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024;

/// Levels of objects and lists in arguments: what every plugin's library can read, as in events.
const MAX_DEPTH: usize = 32;

/// Integers up to this size survive as the 64-bit floats that the wire has.
const MAX_EXACT: u64 = 1 << 53;

/// At most so many violations are told.
const MAX_VIOLATIONS: usize = 50;

/// Where an agent works; a tool says where it is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// A task on a board.
    KanbanTask,
    /// A task of the office.
    OfficeTask,
}

impl Surface {
    /// The word of manifests and of the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::KanbanTask => "kanban-task",
            Self::OfficeTask => "office-task",
        }
    }

    /// The surface of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::KanbanTask, Self::OfficeTask].into_iter().find(|surface| surface.word() == word)
    }
}

/// What a tool answered, fit to be given to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// For the agent; not blank.
    pub text: String,
    /// Fits the tool's output schema.
    pub structured: Option<Map<String, Value>>,
    /// The tool did not do it, and the text says why.
    pub is_error: bool,
}

/// Why a result is not passed on (502).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultFault {
    /// There is nothing to read.
    #[error("returned a blank text")]
    Blank,
    /// Text and structured content have more than 1 MiB.
    #[error("returned more than {MAX_RESULT_BYTES} bytes")]
    TooLarge,
    /// It declares an output schema, succeeded, and gave no structured content.
    #[error("returned no structured content although it declares an output_schema")]
    Unstructured,
    /// The structured content breaks the tool's own schema.
    #[error("returned structured content that its output_schema refuses")]
    Schema(Vec<Violation>),
}

/// What is wrong with arguments, at most 50: their size and depth, numbers that would arrive as others, and what the
/// schema says.
pub fn check_arguments(arguments: &Map<String, Value>, schema: &FullSchema) -> Vec<Violation> {
    if arguments.values().any(|value| deeper_than(value, MAX_DEPTH - 1)) {
        return vec![Violation::at("", &format!("arguments must not be nested deeper than {MAX_DEPTH} levels"))];
    }
    let value = Value::Object(arguments.clone());
    if json_bytes(&value) > MAX_ARGUMENTS_BYTES {
        return vec![Violation::at("", &format!("arguments must have at most {MAX_ARGUMENTS_BYTES} bytes as JSON"))];
    }
    let mut found = Vec::new();
    inexact(&value, "", &mut found);
    found.extend(schema.check(&value));
    found.truncate(MAX_VIOLATIONS);
    found
}

fn inexact(value: &Value, path: &str, found: &mut Vec<Violation>) {
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            if size.is_some_and(|size| size > MAX_EXACT) {
                let text = "the number has more digits than a plugin gets; the tool should take it as text";
                found.push(Violation::at(path, text));
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, item)| inexact(item, &format!("{path}/{n}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            inexact(field, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Checks a result. `output` is the tool's output schema, when it declares one; what failed need not fit it.
pub fn check_result(
    text: String,
    structured: Option<Map<String, Value>>,
    is_error: bool,
    output: Option<&FullSchema>,
) -> Result<ToolResult, ResultFault> {
    if text.trim().is_empty() {
        return Err(ResultFault::Blank);
    }
    let structured = structured.map(Value::Object);
    if text.len() + structured.as_ref().map_or(0, json_bytes) > MAX_RESULT_BYTES {
        return Err(ResultFault::TooLarge);
    }
    if let Some(output) = output.filter(|_| !is_error) {
        let structured = structured.as_ref().ok_or(ResultFault::Unstructured)?;
        let violations = output.check(structured);
        if !violations.is_empty() {
            return Err(ResultFault::Schema(violations));
        }
    }
    let structured = match structured {
        Some(Value::Object(structured)) => Some(structured),
        _ => None,
    };
    Ok(ToolResult { text, structured, is_error })
}

fn json_bytes(value: &Value) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn schema(value: Value) -> FullSchema {
        FullSchema::compile_draft7(&object(value)).unwrap()
    }

    fn told(arguments: Value, schema: &FullSchema) -> Vec<(String, String)> {
        let found = check_arguments(&object(arguments), schema);
        found.into_iter().map(|violation| (violation.path, violation.message)).collect()
    }

    #[test]
    fn every_violation_of_arguments_has_its_path() {
        let schema = schema(json!({"type": "object", "required": ["q"], "additionalProperties": false, "properties": {
            "q": {"type": "string", "minLength": 1}, "list": {"items": [{"type": "integer"}, {"type": "string"}]}}}));
        assert_eq!(told(json!({"q": "x", "list": [3.0, "y"]}), &schema), []);
        let found = told(json!({"list": [1.5, 2], "w/x": 1}), &schema);
        let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        for path in ["/q", "/list/0", "/list/1", ""] {
            assert!(paths.contains(&path), "{path}: {found:?}");
        }
        assert!(found.iter().all(|(_, message)| !message.contains("1.5")), "no value is told: {found:?}");
    }

    #[test]
    fn numbers_that_would_arrive_as_others_are_refused() {
        let any = schema(json!({"type": "object"}));
        assert_eq!(told(json!({"n": [9_007_199_254_740_992_u64, -9_007_199_254_740_992_i64, 0.1]}), &any), []);
        let found = told(json!({"a/b": [9_007_199_254_740_993_u64, i64::MIN]}), &any);
        assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), ["/a~1b/0", "/a~1b/1"]);
    }

    #[test]
    fn large_and_deep_arguments_are_refused_before_the_schema_is_asked() {
        let any = schema(json!({"type": "object", "required": ["x"]}));
        let deep = (0..MAX_DEPTH).fold(json!(1), |inner, _| json!([inner]));
        let found = told(json!({"a": deep}), &any);
        assert!(found.len() == 1 && found[0].1.contains("32 levels"), "{found:?}");
        let found = told(json!({"a": "x".repeat(MAX_ARGUMENTS_BYTES)}), &any);
        assert!(found.len() == 1 && found[0].1.contains("1048576 bytes"), "{found:?}");
    }

    #[test]
    fn a_result_needs_text_within_the_bound() {
        let check = |text: &str, structured| check_result(text.to_owned(), structured, false, None);
        for blank in ["", " \n\t", "\u{a0}"] {
            assert_eq!(check(blank, Some(object(json!({"a": 1})))), Err(ResultFault::Blank));
        }
        let text = "x".repeat(MAX_RESULT_BYTES - 7);
        assert!(check(&text, Some(object(json!({"a": 1})))).is_ok());
        assert_eq!(check(&text, Some(object(json!({"a": 12})))), Err(ResultFault::TooLarge));
        assert_eq!(check(&"x".repeat(MAX_RESULT_BYTES + 1), None), Err(ResultFault::TooLarge));
    }

    #[test]
    fn a_declared_output_schema_binds_success_and_not_failure() {
        let output = schema(json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}));
        let check = |structured: Option<Value>, is_error| {
            check_result("x".to_owned(), structured.map(object), is_error, Some(&output))
        };
        assert_eq!(check(Some(json!({"n": 1})), false).unwrap().structured, Some(object(json!({"n": 1}))));
        assert_eq!(check(None, false), Err(ResultFault::Unstructured));
        let Err(ResultFault::Schema(violations)) = check(Some(json!({"n": "x"})), false) else { panic!("accepted") };
        assert_eq!(violations[0].path, "/n");
        assert!(check(None, true).unwrap().is_error && check(Some(json!({})), true).is_ok());
    }

    #[test]
    fn surfaces_are_known_by_their_words() {
        for surface in [Surface::KanbanTask, Surface::OfficeTask] {
            assert_eq!(Surface::from_word(surface.word()), Some(surface));
        }
        assert_eq!(Surface::from_word("moon"), None);
    }

    proptest! {
        #[test]
        fn any_arguments_get_a_verdict(text in "[{}\\[\\]\":, a-z0-9.e-]{0,30}", n in any::<i64>()) {
            let any = schema(json!({"type": "object"}));
            let mut arguments = serde_json::from_str::<Map<String, Value>>(&text).unwrap_or_default();
            arguments.insert("n".to_owned(), n.into());
            let exact = (n as f64) as i128 == i128::from(n);
            prop_assert!(exact || !check_arguments(&arguments, &any).is_empty());
        }
    }
}
