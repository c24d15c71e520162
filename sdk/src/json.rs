//! JSON objects to and from what the author's types serialise to. The wire knows JSON objects and nothing else at the
//! top (`google.protobuf.Struct`), and its numbers are doubles: an integer beyond 2^53 loses precision.

use kandev_proto::{json_from_struct, struct_from_json};
use prost_types::Struct;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Error, Result};

/// A JSON object.
pub type Object = serde_json::Map<String, Value>;

/// What `value` serialises to as an object; `None` when that is null.
pub(crate) fn to_struct(what: &str, value: &impl Serialize) -> Result<Option<Struct>> {
    match serde_json::to_value(value) {
        Ok(Value::Null) => Ok(None),
        Ok(Value::Object(object)) => Ok(Some(struct_from_json(object))),
        Ok(other) => Err(Error::invalid_argument(format!("{what} must be a JSON object, not {}", kind(&other)))),
        Err(error) => Err(Error::invalid_argument(format!("{what} cannot be written as JSON: {error}"))),
    }
}

/// The JSON of an optional object; absent is null.
pub(crate) fn to_value(wire: Option<Struct>) -> Value {
    wire.map_or(Value::Null, |wire| Value::Object(json_from_struct(wire)))
}

/// The JSON of an object; absent is empty.
pub(crate) fn to_object(wire: Option<Struct>) -> Object {
    wire.map(json_from_struct).unwrap_or_default()
}

/// `value` as the author's type.
pub(crate) fn parse<T: DeserializeOwned>(what: &str, value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(|error| Error::invalid_argument(format!("{what}: {error}")))
}

/// `body` as the author's type.
pub(crate) fn parse_bytes<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::invalid_argument(format!("{what}: {error}")))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_objects_and_null_go_over_the_wire() {
        let object = to_struct("the payload", &json!({"n": 1})).unwrap();
        assert_eq!(to_value(object), json!({"n": 1}));
        assert_eq!(to_struct("the payload", &()), Ok(None));
        let error = to_struct("the payload", &[1]).unwrap_err();
        assert_eq!(error, Error::invalid_argument("the payload must be a JSON object, not a list"));
    }
}
