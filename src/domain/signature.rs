//! The signature file of a package, `checksums.txt.sig`: an Ed25519 signature over the exact bytes of `checksums.txt`.
//!
//! Owns the accepted encodings and what the operator is told. There is no list of trusted keys yet: until then every
//! package counts as unsigned, and the text says whether a readable signature was there (contract/manifest.md §4.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature};

/// Why the bytes are no signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Neither 64 raw bytes nor base64 text.
    #[error("expected 64 raw bytes, or standard base64 of them in one line")]
    Encoding,
    /// Base64 of something else.
    #[error("expected {SIGNATURE_LENGTH} bytes after decoding, found {0}")]
    Length(usize),
}

/// Reads a signature: 64 raw bytes, or padded standard base64 of them with at most one final line end.
pub fn parse(bytes: &[u8]) -> Result<Signature, SignatureError> {
    if let Ok(raw) = <&[u8; SIGNATURE_LENGTH]>::try_from(bytes) {
        return Ok(Signature::from_bytes(raw));
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let decoded = STANDARD.decode(line).map_err(|_| SignatureError::Encoding)?;
    let raw = <&[u8; SIGNATURE_LENGTH]>::try_from(decoded.as_slice());
    raw.map(Signature::from_bytes).map_err(|_| SignatureError::Length(decoded.len()))
}

/// What a package brought as its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSignature {
    /// No signature file.
    Absent,
    /// A file that is no signature.
    Malformed(SignatureError),
    /// A signature that nobody checked.
    Unchecked(Signature),
}

impl PackageSignature {
    /// Reads the optional file.
    pub fn of_file(bytes: Option<&[u8]>) -> Self {
        match bytes.map(parse) {
            None => Self::Absent,
            Some(Ok(signature)) => Self::Unchecked(signature),
            Some(Err(error)) => Self::Malformed(error),
        }
    }

    /// The word of the case, for JSON.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Malformed(_) => "malformed",
            Self::Unchecked(_) => "unchecked",
        }
    }

    /// What the operator is told while no signature can be checked.
    pub fn warning(&self) -> String {
        match self {
            Self::Absent => "the package is unsigned: only its checksums were verified".to_owned(),
            Self::Malformed(error) => {
                format!("the package counts as unsigned: its checksums.txt.sig is not a signature: {error}")
            }
            Self::Unchecked(_) => "the package counts as unsigned: its signature is well-formed and was not checked, \
                                   because this host has no trusted keys"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_encodings_give_the_same_signature() {
        let raw: [u8; 64] = std::array::from_fn(|i| i as u8);
        let expected = Ok(Signature::from_bytes(&raw));
        let text = STANDARD.encode(raw);
        for bytes in [raw.to_vec(), text.clone().into_bytes(), format!("{text}\n").into(), format!("{text}\r\n").into()]
        {
            assert_eq!(parse(&bytes), expected);
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        let text = STANDARD.encode([7; 64]);
        for bytes in [
            format!("{text}\n\n").into_bytes(),
            format!(" {text}").into(),
            text.trim_end_matches('=').as_bytes().to_vec(),
            b"untrusted comment: minisign".to_vec(),
            vec![0xff; 65],
        ] {
            assert_eq!(parse(&bytes), Err(SignatureError::Encoding));
        }
        assert_eq!(parse(STANDARD.encode([7; 63]).as_bytes()), Err(SignatureError::Length(63)));
        assert_eq!(parse(b""), Err(SignatureError::Length(0)));
    }

    #[test]
    fn the_warning_tells_the_three_cases_apart() {
        assert_eq!(
            PackageSignature::of_file(None).warning(),
            "the package is unsigned: only its checksums were verified"
        );
        assert_eq!(
            PackageSignature::of_file(Some(b"x")).warning(),
            "the package counts as unsigned: its checksums.txt.sig is not a signature: expected 64 raw bytes, or \
             standard base64 of them in one line"
        );
        assert_eq!(
            PackageSignature::of_file(Some(&[1; 64])).warning(),
            "the package counts as unsigned: its signature is well-formed and was not checked, because this host has \
             no trusted keys"
        );
    }

    proptest! {
        #[test]
        fn random_bytes_get_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(&bytes);
        }
    }
}
