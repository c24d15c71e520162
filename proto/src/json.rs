//! JSON to `google.protobuf.Struct` and back. Numbers become doubles, as the contract says (wire.md §2.1).

use prost_types::{ListValue, Struct, Value, value::Kind};
use serde_json::{Map, Number, Value as Json};

/// A JSON object as a `Struct`.
pub fn struct_from_json(object: Map<String, Json>) -> Struct {
    Struct { fields: object.into_iter().map(|(key, value)| (key, value_from_json(value))).collect() }
}

/// Any JSON value as a protobuf `Value`. An integer beyond 2^53 loses precision: the wire has doubles only.
pub fn value_from_json(value: Json) -> Value {
    let kind = match value {
        Json::Null => Kind::NullValue(0),
        Json::Bool(flag) => Kind::BoolValue(flag),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Kind::StringValue(text),
        Json::Array(items) => Kind::ListValue(ListValue { values: items.into_iter().map(value_from_json).collect() }),
        Json::Object(object) => Kind::StructValue(struct_from_json(object)),
    };
    Value { kind: Some(kind) }
}

/// A `Struct` as a JSON object, keys in order of their text.
pub fn json_from_struct(value: Struct) -> Map<String, Json> {
    value.fields.into_iter().map(|(key, value)| (key, json_from_value(value))).collect()
}

/// A protobuf `Value` as JSON. A whole number that fits is written as an integer (`3`, not `3.0`); a number that is
/// not finite has no JSON form and becomes null.
pub fn json_from_value(value: Value) -> Json {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Json::Null,
        Some(Kind::BoolValue(flag)) => Json::Bool(flag),
        Some(Kind::NumberValue(number)) => json_number(number),
        Some(Kind::StringValue(text)) => Json::String(text),
        Some(Kind::ListValue(list)) => Json::Array(list.values.into_iter().map(json_from_value).collect()),
        Some(Kind::StructValue(inner)) => Json::Object(json_from_struct(inner)),
    }
}

fn json_number(number: f64) -> Json {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    if number.fract() == 0.0 && number.abs() <= EXACT && !(number == 0.0 && number.is_sign_negative()) {
        return Json::from(number as i64);
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_survives_the_round_trip() {
        let value = json!({"a": 1, "b": [true, null, "x", 2.5], "c": {"d": {}}});
        let Json::Object(object) = value.clone() else { unreachable!() };
        assert_eq!(Json::Object(json_from_struct(struct_from_json(object))), value);
    }

    #[test]
    fn a_number_that_is_not_finite_becomes_null() {
        let value = Value { kind: Some(Kind::NumberValue(f64::INFINITY)) };
        assert_eq!(json_from_value(value), Json::Null);
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            (-(1i64 << 53)..=(1i64 << 53)).prop_map(Json::from),
            ".*".prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
                prop::collection::btree_map(".*", inner, 0..8).prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_json_value_survives_the_round_trip(value in any_json()) {
            prop_assert_eq!(json_from_value(value_from_json(value.clone())), value);
        }
    }
}
