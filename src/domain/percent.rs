//! Percent-encoding of one part of an address, between two slashes.

use std::borrow::Cow;

/// A part without its percent-encoding, decoded once. What is not UTF-8 becomes U+FFFD; `%` without two digits stays.
pub fn decoded(part: &str) -> Cow<'_, str> {
    match part.contains('%') {
        true => String::from_utf8_lossy(&decoded_bytes(part.as_bytes())).into_owned().into(),
        false => part.into(),
    }
}

/// Bytes without their percent-encoding, decoded once; `%` without two digits stays.
pub fn decoded_bytes(raw: &[u8]) -> Vec<u8> {
    let hex = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let [first, tail @ ..] = rest {
        let pair = match tail {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match pair {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

/// A part in which only letters, digits and `-._~` stand for themselves.
pub fn encoded(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    for byte in part.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_part_is_decoded_once() {
        assert_eq!(decoded("a%2Fb%20c%2525"), "a/b c%25");
        assert_eq!(decoded("%zz%4"), "%zz%4");
        assert_eq!(decoded("%ff"), "\u{fffd}");
    }

    proptest! {
        #[test]
        fn any_part_can_be_decoded(part in ".*") {
            decoded(&part);
        }

        #[test]
        fn what_was_encoded_comes_back(part in ".*") {
            let there = encoded(&part);
            prop_assert_eq!(decoded(&there), part);
        }
    }
}
