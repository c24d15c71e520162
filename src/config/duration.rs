//! Durations as text with a unit, in settings: `"250ms"`, `"30s"`, `"5m"`, `"2h"`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Reads `<whole number><unit>`, unit one of `ms`, `s`, `m`, `h`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("\"{text}\" is not a duration: write a whole number with a unit, ms, s, m or h, like \"250ms\"");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let millis_per_unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or_else(wrong)
}

/// The shortest text that [`parse`] reads back.
pub fn format(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0 => "0s".to_owned(),
        m if m % 3_600_000 == 0 => format!("{}h", m / 3_600_000),
        m if m % 60_000 == 0 => format!("{}m", m / 60_000),
        m if m % 1000 == 0 => format!("{}s", m / 1000),
        m => format!("{m}ms"),
    }
}

/// A single duration as a serde field.
pub mod one {
    use super::{Deserialize, Deserializer, Duration, Error, Serializer};

    /// Writes the text form.
    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::format(*value))
    }

    /// Reads the text form.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        super::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A list of durations as a serde field.
pub mod many {
    use super::{Deserialize, Deserializer, Duration, Error, Serialize, Serializer};

    /// Writes the text forms.
    pub fn serialize<S: Serializer>(values: &[Duration], serializer: S) -> Result<S::Ok, S::Error> {
        values.iter().map(|value| super::format(*value)).collect::<Vec<_>>().serialize(serializer)
    }

    /// Reads the text forms.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| super::parse(text).map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_without_a_unit_is_refused_with_the_accepted_units() {
        let message = parse("30").unwrap_err();
        assert_eq!(
            message,
            "\"30\" is not a duration: write a whole number with a unit, ms, s, m or h, like \"250ms\""
        );
    }

    proptest! {
        #[test]
        fn every_duration_of_whole_milliseconds_is_read_back(millis in 0u64..10_000_000_000) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn any_text_gets_a_verdict(text in ".*") {
            let _ = parse(&text);
        }
    }
}
