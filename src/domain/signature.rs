//! The signature file of a package, `checksums.txt.sig`: an Ed25519 signature over the exact bytes of `checksums.txt`.
//!
//! Owns the accepted encodings and the verdict (contract/manifest.md §4.2, docs/decisions/0018-who-signed.md):
//!
//! ```text
//! ed25519 <base64 of the public key> <base64 of the signature>      names its key; `plugin pack --sign` writes it
//! <base64 of the signature>                                         bare
//! 64 raw bytes                                                      bare
//! ```
//! A signature that names its key is right or wrong by itself, and the key is trusted, or not known. A bare one is
//! tried with the trusted keys: without one that may sign the plugin nobody can tell, else one of them has to fit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{SIGNATURE_LENGTH, Signature};

use super::key::{KeyError, PublicKey};
use super::package::PackageError;
use super::trust::{KeyName, KeyRing, TrustedKey};

/// First word of a signature that names its key.
const KIND: &str = "ed25519";

/// Why the package must not be installed: its signature is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// None of the encodings.
    #[error(
        "checksums.txt.sig is not a signature: expected `{KIND} KEY SIGNATURE` in one line, 64 raw bytes, or standard base64 of them"
    )]
    Encoding,
    /// Base64 of something else.
    #[error("checksums.txt.sig is not a signature: expected {SIGNATURE_LENGTH} bytes after decoding, found {0}")]
    Length(usize),
    /// The key it names is none.
    #[error("the key that checksums.txt.sig names is none: {0}")]
    Key(KeyError),
    /// Not over these bytes, or not by the key it names.
    #[error(
        "the signature is not the one that the key {0} makes over checksums.txt: the package was changed after it was signed, or signed wrongly"
    )]
    Wrong(PublicKey),
    /// Bare, and no key that may sign the plugin made it.
    #[error(
        "no trusted key that may sign this plugin made the signature: the package was changed after it was signed, or is another's"
    )]
    NoneFits,
}

/// What a signature file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureFile {
    /// The key it names; a bare signature names none.
    pub key: Option<PublicKey>,
    /// The signature, unchecked.
    pub signature: Signature,
}

impl SignatureFile {
    /// Reads the file; a text has at most one final line end.
    ///
    /// # Errors
    /// [`SignatureError::Encoding`], [`SignatureError::Length`], [`SignatureError::Key`].
    pub fn parse(bytes: &[u8]) -> Result<Self, SignatureError> {
        if let Ok(raw) = <&[u8; SIGNATURE_LENGTH]>::try_from(bytes) {
            return Ok(Self { key: None, signature: Signature::from_bytes(raw) });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| SignatureError::Encoding)?;
        let line = text.strip_suffix('\n').unwrap_or(text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (key, signature) = match line.split(' ').collect::<Vec<_>>()[..] {
            [signature] => (None, signature),
            [KIND, key, signature] => (Some(PublicKey::parse(key).map_err(SignatureError::Key)?), signature),
            _ => return Err(SignatureError::Encoding),
        };
        let decoded = STANDARD.decode(signature).map_err(|_| SignatureError::Encoding)?;
        let raw = <&[u8; SIGNATURE_LENGTH]>::try_from(decoded.as_slice());
        let signature = raw.map(Signature::from_bytes).map_err(|_| SignatureError::Length(decoded.len()))?;
        Ok(Self { key, signature })
    }

    /// The file's content.
    pub fn to_text(&self) -> String {
        let signature = STANDARD.encode(self.signature.to_bytes());
        match self.key {
            Some(key) => format!("{KIND} {key} {signature}\n"),
            None => format!("{signature}\n"),
        }
    }
}

/// The trusted key that made a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// What the key is called now.
    pub name: KeyName,
    /// Who it is: names of keys come and go.
    pub key: PublicKey,
}

impl From<&TrustedKey> for Signer {
    fn from(trusted: &TrustedKey) -> Self {
        Self { name: trusted.name.clone(), key: trusted.key }
    }
}

/// Who signed a package, as far as the host can tell. A wrong signature is a [`SignatureError`] instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageSignature {
    /// No signature file.
    Absent,
    /// It names its key and is right, and the host does not know the key.
    UnknownKey(PublicKey),
    /// It is right, of a trusted key that may not sign this plugin.
    OtherPlugins(Signer),
    /// It is bare, and no trusted key may sign this plugin: there is nothing to check it with.
    NothingToCheck,
    /// It is right, of this key, which may sign this plugin.
    Trusted(Signer),
}

impl PackageSignature {
    /// Judges the optional signature file of the package of this plugin.
    ///
    /// # Errors
    /// [`SignatureError`]: the signature is wrong, the package must not be installed.
    pub fn judge(file: Option<&[u8]>, checksums: &[u8], plugin: &str, keys: &KeyRing) -> Result<Self, SignatureError> {
        let Some(file) = file else { return Ok(Self::Absent) };
        let SignatureFile { key, signature } = SignatureFile::parse(file)?;
        if let Some(key) = key.filter(|key| !key.verifies(checksums, &signature)) {
            return Err(SignatureError::Wrong(key));
        }
        let (may, may_not) = keys.for_plugin(plugin);
        let made_it = |trusted: PublicKey| match key {
            Some(named) => named == trusted,
            None => trusted.verifies(checksums, &signature),
        };
        if let Some(found) = may.iter().find(|trusted| made_it(trusted.key)) {
            return Ok(Self::Trusted((*found).into()));
        }
        if let Some(found) = may_not.iter().find(|trusted| made_it(trusted.key)) {
            return Ok(Self::OtherPlugins((*found).into()));
        }
        match key {
            Some(key) => Ok(Self::UnknownKey(key)),
            None if may.is_empty() => Ok(Self::NothingToCheck),
            None => Err(SignatureError::NoneFits),
        }
    }

    /// Who signed, when the key is trusted for this plugin.
    pub fn signer(&self) -> Option<&Signer> {
        match self {
            Self::Trusted(signer) => Some(signer),
            Self::Absent | Self::UnknownKey(_) | Self::OtherPlugins(_) | Self::NothingToCheck => None,
        }
    }

    /// The key that made it, trusted or not, as far as it is known.
    pub fn key(&self) -> Option<PublicKey> {
        match self {
            Self::Trusted(signer) | Self::OtherPlugins(signer) => Some(signer.key),
            Self::UnknownKey(key) => Some(*key),
            Self::Absent | Self::NothingToCheck => None,
        }
    }

    /// One stable word for programs: `absent`, `unknown_key` or `trusted`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::UnknownKey(_) | Self::OtherPlugins(_) | Self::NothingToCheck => "unknown_key",
            Self::Trusted(_) => "trusted",
        }
    }

    /// What the operator is told unless it is trusted.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Absent => Some("the package is unsigned: only its checksums were verified".to_owned()),
            Self::UnknownKey(key) => Some(format!(
                "the package counts as unsigned: its signature is right, of the key {key}, which is not trusted here"
            )),
            Self::OtherPlugins(signer) => Some(format!(
                "the package counts as unsigned: its signature is right, of the trusted key \"{}\", which may not \
                 sign this plugin",
                signer.name
            )),
            Self::NothingToCheck => Some(
                "the package counts as unsigned: its signature does not say whose it is, and no trusted key may sign \
                 this plugin"
                    .to_owned(),
            ),
            Self::Trusted(_) => None,
        }
    }
}

/// What an installation demands of signatures.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// The keys the host believes.
    pub keys: KeyRing,
    /// Whether only packages signed by one of them are taken (`install.signatures = "require"`).
    pub required: bool,
}

impl Trust {
    /// Judges as [`PackageSignature::judge`], then by what is demanded.
    ///
    /// # Errors
    /// [`PackageError::Signature`], [`PackageError::SignatureRequired`].
    pub fn judge(&self, file: Option<&[u8]>, checksums: &[u8], plugin: &str) -> Result<PackageSignature, PackageError> {
        let signature = PackageSignature::judge(file, checksums, plugin, &self.keys)?;
        match signature.warning() {
            Some(warning) if self.required => Err(PackageError::SignatureRequired(warning)),
            Some(_) | None => Ok(signature),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{key::PrivateKey, trust::Scope};
    use proptest::prelude::*;

    const CHECKSUMS: &[u8] = b"00  manifest.yaml\n";

    fn private(seed: u8) -> PrivateKey {
        PrivateKey::from_seed(&[seed; 32])
    }

    /// A ring in which the key of seed 1 may sign `acme`, that of seed 2 `other`.
    fn ring() -> KeyRing {
        let key = |seed, name, plugin| TrustedKey {
            name: KeyName::new(name).unwrap(),
            key: private(seed).public(),
            plugins: Scope::new([plugin]).unwrap(),
        };
        KeyRing::new(vec![key(1, "acme-key", "acme"), key(2, "other-key", "other")])
    }

    fn file(seed: u8, message: &[u8], named: bool) -> Vec<u8> {
        let key = named.then(|| private(seed).public());
        SignatureFile { key, signature: private(seed).sign(message) }.to_text().into_bytes()
    }

    fn signer(name: &str, seed: u8) -> Signer {
        Signer { name: KeyName::new(name).unwrap(), key: private(seed).public() }
    }

    #[test]
    fn all_encodings_give_the_same_signature() {
        let raw: [u8; 64] = std::array::from_fn(|i| i as u8);
        let signature = Signature::from_bytes(&raw);
        let text = STANDARD.encode(raw);
        let key = private(1).public();
        for (bytes, key) in [
            (raw.to_vec(), None),
            (text.clone().into_bytes(), None),
            (format!("{text}\n").into(), None),
            (format!("{text}\r\n").into(), None),
            (format!("ed25519 {key} {text}").into(), Some(key)),
            (format!("ed25519 {key} {text}\r\n").into(), Some(key)),
        ] {
            assert_eq!(SignatureFile::parse(&bytes), Ok(SignatureFile { key, signature }));
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        let text = STANDARD.encode([7; 64]);
        let key = private(1).public();
        for bytes in [
            format!("{text}\n\n").into_bytes(),
            format!(" {text}").into(),
            text.trim_end_matches('=').as_bytes().to_vec(),
            b"untrusted comment: minisign".to_vec(),
            vec![0xff; 65],
            format!("ED25519 {key} {text}").into(),
            format!("ed25519 {key}  {text}").into(),
            format!("ed25519 {key} {text} x").into(),
            format!("{key} {text}").into(),
        ] {
            assert_eq!(SignatureFile::parse(&bytes), Err(SignatureError::Encoding), "{}", bytes.escape_ascii());
        }
        assert_eq!(SignatureFile::parse(STANDARD.encode([7; 63]).as_bytes()), Err(SignatureError::Length(63)));
        assert_eq!(SignatureFile::parse(b""), Err(SignatureError::Length(0)));
        let weak = format!("ed25519 {} {text}", STANDARD.encode([0; 32]));
        assert_eq!(SignatureFile::parse(weak.as_bytes()), Err(SignatureError::Key(KeyError::Unusable)));
    }

    #[test]
    fn every_outcome_by_whose_signature_it_is_and_whether_it_names_its_key() {
        use PackageSignature::{Absent, NothingToCheck, OtherPlugins, Trusted, UnknownKey};
        let (wrong, key) = (|seed| Err(SignatureError::Wrong(private(seed).public())), private(3).public());
        for (plugin, file, expected) in [
            ("acme", None, Ok(Absent)),
            ("acme", Some(file(1, CHECKSUMS, true)), Ok(Trusted(signer("acme-key", 1)))),
            ("acme", Some(file(1, CHECKSUMS, false)), Ok(Trusted(signer("acme-key", 1)))),
            ("acme", Some(file(2, CHECKSUMS, true)), Ok(OtherPlugins(signer("other-key", 2)))),
            ("acme", Some(file(2, CHECKSUMS, false)), Ok(OtherPlugins(signer("other-key", 2)))),
            ("acme", Some(file(3, CHECKSUMS, true)), Ok(UnknownKey(key))),
            ("acme", Some(file(3, CHECKSUMS, false)), Err(SignatureError::NoneFits)),
            ("acme", Some(file(1, b"else", true)), wrong(1)),
            ("acme", Some(file(1, b"else", false)), Err(SignatureError::NoneFits)),
            ("acme", Some(file(3, b"else", true)), wrong(3)),
            ("third", Some(file(1, CHECKSUMS, true)), Ok(OtherPlugins(signer("acme-key", 1)))),
            ("third", Some(file(3, CHECKSUMS, true)), Ok(UnknownKey(key))),
            ("third", Some(file(3, CHECKSUMS, false)), Ok(NothingToCheck)),
            ("third", Some(file(3, b"else", true)), wrong(3)),
            ("third", Some(b"x".to_vec()), Err(SignatureError::Encoding)),
        ] {
            assert_eq!(PackageSignature::judge(file.as_deref(), CHECKSUMS, plugin, &ring()), expected, "{plugin}");
        }
    }

    #[test]
    fn a_key_with_two_names_may_sign_what_either_says() {
        let mut keys = ring().keys().to_vec();
        keys.push(TrustedKey { name: KeyName::new("z").unwrap(), key: private(2).public(), plugins: Scope::Every });
        let judged = PackageSignature::judge(Some(&file(2, CHECKSUMS, true)), CHECKSUMS, "acme", &KeyRing::new(keys));
        assert_eq!(judged, Ok(PackageSignature::Trusted(signer("z", 2))));
    }

    proptest! {
        #[test]
        fn any_file_gets_a_verdict_and_is_never_trusted_by_chance(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                "(ed25519 )?[A-Za-z0-9+/]{42,44}={0,2} [A-Za-z0-9+/]{86,87}={0,2}\n?".prop_map(String::into_bytes),
            ],
        ) {
            let judged = PackageSignature::judge(Some(&bytes), CHECKSUMS, "acme", &ring());
            prop_assert!(!matches!(judged, Ok(PackageSignature::Trusted(_) | PackageSignature::OtherPlugins(_))));
        }

        #[test]
        fn a_signature_file_survives_its_text(raw in any::<[u8; 64]>(), seed in proptest::option::of(any::<u8>())) {
            let key = seed.map(|seed| private(seed).public());
            let file = SignatureFile { key, signature: Signature::from_bytes(&raw) };
            prop_assert_eq!(SignatureFile::parse(file.to_text().as_bytes()), Ok(file));
        }
    }
}
