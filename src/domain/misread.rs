//! What serde says of JSON that does not fit, as its author is told: kinds of JSON in the place of names from this
//! program's text.

use std::fmt::Display;

/// Stands before what was wanted, in serde's words.
const EXPECTED: &str = ", expected ";

/// An error of serde_json in words that need no knowledge of Rust.
pub fn told(error: &impl Display) -> String {
    let text = error.to_string();
    let Some((found, expected)) = text.rsplit_once(EXPECTED) else { return text };
    let (wanted, place) = expected.split_at(expected.find(" at line ").unwrap_or(expected.len()));
    match kind(wanted) {
        Some(kind) => format!("{found}{EXPECTED}{kind}{place}"),
        None => text,
    }
}

/// The kind of JSON that serde calls this; `None` when the words are plain enough.
fn kind(wanted: &str) -> Option<&'static str> {
    match wanted {
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" | "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => {
            Some("a whole number")
        }
        "f32" | "f64" => Some("a number"),
        "a map" => Some("an object"),
        "a sequence" => Some("a list"),
        _ if ["struct ", "internally tagged enum ", "adjacently tagged enum "]
            .iter()
            .any(|begin| wanted.starts_with(begin)) =>
        {
            Some("an object")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, de::DeserializeOwned};
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Shelf {
        books: u32,
    }

    fn of<T: DeserializeOwned + std::fmt::Debug>(value: Value) -> String {
        told(&serde_json::from_value::<T>(value).unwrap_err())
    }

    #[test]
    fn what_was_wanted_is_told_as_a_kind_of_json() {
        assert_eq!(of::<Shelf>(json!(7)), "invalid type: integer `7`, expected an object");
        assert_eq!(of::<Shelf>(json!({"books": "x"})), "invalid type: string \"x\", expected a whole number");
        assert_eq!(of::<Shelf>(json!({"books": -1})), "invalid value: integer `-1`, expected a whole number");
        assert_eq!(of::<f64>(json!("x")), "invalid type: string \"x\", expected a number");
        assert_eq!(of::<BTreeMap<String, u8>>(json!(true)), "invalid type: boolean `true`, expected an object");
        assert_eq!(of::<Vec<u8>>(json!(null)), "invalid type: null, expected a list");
    }

    #[test]
    fn the_place_stays_and_so_do_words_that_are_plain() {
        let read = |text: &str| told(&serde_json::from_str::<Shelf>(text).unwrap_err());
        let place = "invalid type: string \"x\", expected a whole number at line 1 column 12";
        assert_eq!(read(r#"{"books":"x"}"#), place);
        assert_eq!(read("{}"), "missing field `books` at line 1 column 2");
        assert_eq!(of::<String>(json!(1)), "invalid type: integer `1`, expected a string");
        assert_eq!(
            of::<bool>(json!("a, expected u32")),
            "invalid type: string \"a, expected u32\", expected a boolean"
        );
    }
}
