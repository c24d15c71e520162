//! Ed25519 keys and their texts: 32 raw bytes as base64, and PEM as openssl writes it.
//!
//! Owns reading and writing keys, and signing. Whom a key may speak for is [`super::trust`]'s. The two forms of PEM are
//! a fixed header before the key's bytes (RFC 8410), so that no general reader of DER is needed; another kind of key
//! has another header and is refused.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::{Serialize, Serializer};

/// Bytes of a public key, and of the seed that a private key is.
pub const KEY_BYTES: usize = 32;

/// What stands before the 32 bytes of a public key in DER (SubjectPublicKeyInfo).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// What stands before the 32 bytes of a private key in DER (PKCS#8, version 1).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

const PUBLIC_LABEL: &str = "PUBLIC KEY";
const PRIVATE_LABEL: &str = "PRIVATE KEY";

/// Why a text is not the key it should be. No text quotes what was given: it may be a private key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No form of a public key.
    #[error("it is no public key: write the base64 of its 32 bytes, or the PEM of `openssl pkey -pubout`")]
    NotPublic,
    /// No form of a private key.
    #[error("it is no private key: a PEM of `openssl genpkey -algorithm ed25519`, without a password, is needed")]
    NotPrivate,
    /// A private key where a public one belongs.
    #[error("it is a private key: keep it secret, and give the public one (`openssl pkey -pubout`)")]
    Private,
    /// A public key where a private one belongs.
    #[error(
        "it is a public key: packages are signed with the private one, the file of `plugin keygen` that ends in .key"
    )]
    Public,
    /// PEM of another kind of key.
    #[error("it is a key of another kind: only Ed25519 keys sign packages")]
    OtherKind,
    /// 32 bytes that no honest key has: everybody could sign for it.
    #[error("it is not a usable Ed25519 key")]
    Unusable,
}

/// A public key that can be trusted: a point of the curve that is not of small order. Kept as its bytes, since the
/// point takes six times the room and is soon computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// [`KeyError::Unusable`].
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Result<Self, KeyError> {
        match VerifyingKey::from_bytes(bytes) {
            Ok(key) if !key.is_weak() => Ok(Self(*bytes)),
            Ok(_) | Err(_) => Err(KeyError::Unusable),
        }
    }

    /// Reads padded standard base64 of the 32 bytes, on one line, or one PEM block with nothing around it.
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.contains(PRIVATE_LABEL) {
            return Err(KeyError::Private);
        }
        if text.starts_with("-----") {
            let der = unarmour(text, PUBLIC_LABEL).ok_or(KeyError::NotPublic)?;
            return Self::from_bytes(der.strip_prefix(&SPKI).and_then(exact).ok_or(KeyError::OtherKind)?);
        }
        let bytes = STANDARD.decode(text).map_err(|_| KeyError::NotPublic)?;
        Self::from_bytes(exact(&bytes).ok_or(KeyError::NotPublic)?)
    }

    /// PEM, as `openssl pkey -pubout` writes it.
    pub fn to_pem(self) -> String {
        armour(PUBLIC_LABEL, &[&SPKI[..], &self.0].concat())
    }

    /// Whether `signature` is this key's over exactly these bytes. The strict rules of RFC 8032: no two keys and no two
    /// forms of a signature can stand for each other.
    pub fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| key.verify_strict(message, signature).is_ok())
    }
}

/// Base64 of the 32 bytes.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A private key. Not printable; its bytes are wiped when it is dropped.
pub struct PrivateKey(SigningKey);

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(hidden)")
    }
}

impl PrivateKey {
    /// The key that this seed, 32 random bytes, is.
    pub fn from_seed(seed: &[u8; KEY_BYTES]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads one PEM block, as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn parse(pem: &str) -> Result<Self, KeyError> {
        if pem.contains(PUBLIC_LABEL) {
            return Err(KeyError::Public);
        }
        let der = unarmour(pem.trim(), PRIVATE_LABEL).ok_or(KeyError::NotPrivate)?;
        der.strip_prefix(&PKCS8).and_then(exact).map(Self::from_seed).ok_or(KeyError::OtherKind)
    }

    /// PEM that openssl reads. A secret: for the key's own file and nothing else.
    pub fn to_pem(&self) -> secrecy::SecretString {
        armour(PRIVATE_LABEL, &[&PKCS8[..], self.0.as_bytes()].concat()).into()
    }

    /// Its public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// The signature over exactly these bytes; the same bytes give the same signature.
    pub fn sign(&self, message: &[u8]) -> Signature {
        self.0.sign(message)
    }
}

fn exact(bytes: &[u8]) -> Option<&[u8; KEY_BYTES]> {
    bytes.try_into().ok()
}

fn armour(label: &str, der: &[u8]) -> String {
    // A key is shorter than the 64 characters after which PEM breaks its lines.
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

/// The bytes of a text that is one PEM block of this label.
fn unarmour(text: &str, label: &str) -> Option<Vec<u8>> {
    let body =
        text.strip_prefix(&format!("-----BEGIN {label}-----"))?.strip_suffix(&format!("-----END {label}-----"))?;
    let joined: String = body.lines().map(str::trim).collect();
    STANDARD.decode(joined).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use secrecy::ExposeSecret as _;

    /// RFC 8410 §10.1 and §10.3: the same pair.
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";

    #[test]
    fn the_pair_of_the_standard_is_read_and_written_again() {
        let (public, private) = (PublicKey::parse(PUBLIC).unwrap(), PrivateKey::parse(PRIVATE).unwrap());
        assert_eq!(private.public(), public);
        assert_eq!((public.to_pem().as_str(), private.to_pem().expose_secret()), (PUBLIC, PRIVATE));
        assert_eq!(public.to_string(), "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
        assert_eq!(PublicKey::parse(&format!("{public}\r\n")), Ok(public));
    }

    #[test]
    fn a_signature_holds_for_its_bytes_and_key_alone() {
        let private = PrivateKey::from_seed(&[7; 32]);
        let signature = private.sign(b"abc");
        assert!(private.public().verifies(b"abc", &signature));
        assert!(!private.public().verifies(b"abd", &signature));
        assert!(!PrivateKey::from_seed(&[8; 32]).public().verifies(b"abc", &signature));
    }

    #[test]
    fn what_is_no_public_key_is_told_apart() {
        let x25519 = PUBLIC.replace("K2VwA", "K2VuA");
        let weak = STANDARD.encode([0; 32]);
        for (text, error) in [
            ("", KeyError::NotPublic),
            ("c2hvcnQ=", KeyError::NotPublic),
            ("-----BEGIN PUBLIC KEY-----\n", KeyError::NotPublic),
            (PRIVATE, KeyError::Private),
            (&x25519, KeyError::OtherKind),
            (&weak, KeyError::Unusable),
        ] {
            assert_eq!(PublicKey::parse(text), Err(error), "{text}");
        }
        assert_eq!(PrivateKey::parse(PUBLIC).err(), Some(KeyError::Public));
        assert_eq!(PrivateKey::parse("nonsense").err(), Some(KeyError::NotPrivate));
    }

    #[test]
    fn a_private_key_does_not_appear_in_debug_output() {
        assert_eq!(format!("{:?}", PrivateKey::from_seed(&[7; 32])), "PrivateKey(hidden)");
    }

    proptest! {
        #[test]
        fn every_key_survives_its_texts(seed in any::<[u8; 32]>()) {
            let private = PrivateKey::from_seed(&seed);
            let public = private.public();
            prop_assert_eq!(PublicKey::parse(&public.to_string()), Ok(public));
            prop_assert_eq!(PublicKey::parse(&public.to_pem()), Ok(public));
            prop_assert_eq!(PrivateKey::parse(private.to_pem().expose_secret()).unwrap().public(), public);
        }

        #[test]
        fn any_text_gets_a_verdict(text in "(-----BEGIN (PUBLIC|PRIVATE) KEY-----\n)?[A-Za-z0-9+/=\n]{0,80}(-----END (PUBLIC|PRIVATE) KEY-----)?|\\PC{0,60}") {
            let _ = (PublicKey::parse(&text), PrivateKey::parse(&text));
        }
    }
}
