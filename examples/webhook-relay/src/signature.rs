//! The signature over a webhook's raw body: `sha256=<hex of HMAC-SHA-256>`, as many git servers send it. Pure.
//!
//! It says who sent the body, not when: a request that somebody recorded can be sent again. Receivers that must act
//! once need an id in the body.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The header that carries it.
pub const HEADER: &str = "X-Hub-Signature-256";

/// Whether `header` is the signature of `body`. The comparison takes the same time whatever differs; hex may be in
/// either case, and anything that is no signature is a wrong one.
pub fn is_valid(secret: &str, body: &[u8], header: &str) -> bool {
    let Some(tag) = header.strip_prefix("sha256=").and_then(decode_hex) else { return false };
    // A key of any length is accepted.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(body);
    mac.verify_slice(&tag).is_ok()
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect::<Option<Vec<u8>>>()?;
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    const SECRET: &str = "Jefe";
    const BODY: &[u8] = b"what do ya want for nothing?";
    const TAG: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    #[test]
    fn the_right_signature_is_valid_in_either_case_and_no_other() {
        assert!(is_valid(SECRET, BODY, &format!("sha256={TAG}")));
        assert!(is_valid(SECRET, BODY, &format!("sha256={}", TAG.to_uppercase())));
        assert!(!is_valid("other", BODY, &format!("sha256={TAG}")));
        assert!(!is_valid(SECRET, b"another body", &format!("sha256={TAG}")));
    }

    #[test]
    fn what_is_no_signature_is_a_wrong_one() {
        for header in ["", "sha256=", "sha1=00", TAG, "sha256=5bd", "sha256=äöü0", &format!("sha256={TAG}00")] {
            assert!(!is_valid(SECRET, BODY, header), "{header:?}");
        }
    }
}
