//! Whose signature one side of a comparison carries.
//!
//! The signer is its key, not the name of the key's file: an operator may rename a file, and give its name to another
//! key (docs/decisions/0018-who-signed.md).

use crate::domain::{record::RecordState, signature::PackageSignature};

/// Whose signature it is, as far as the host can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// [`PackageSignature::word`].
    pub word: &'static str,
    /// The name of the key, when it is trusted for the plugin.
    pub name: Option<String>,
    /// The key as base64, trusted or not; `None` when there is no signature, when it does not name its key, and on
    /// records of before keys were noted.
    pub key: Option<String>,
}

impl Signed {
    /// Of a package at hand.
    pub fn of(signature: &PackageSignature) -> Self {
        Self {
            word: signature.word(),
            name: signature.signer().map(|signer| signer.name.to_string()),
            key: signature.key().map(|key| key.to_string()),
        }
    }

    /// Of what is installed. Only a trusted signer is on record.
    pub fn on_record(state: &RecordState) -> Self {
        let word = if state.signer.is_some() { "trusted" } else { PackageSignature::Absent.word() };
        Self { word, name: state.signer.clone(), key: state.signer_key.clone() }
    }

    /// Whether both are known to be of one trusted key. A record without a key is of nobody known: its name may be
    /// another key's by now.
    pub fn is_of_the_same_key(&self, other: &Self) -> bool {
        self.key.is_some() && self.key == other.key
    }
}

/// How a sentence goes on after "signed by", from the word of the signature, the name of a trusted key, and the key.
pub fn signed_by(word: &str, name: Option<&str>, key: Option<&str>) -> String {
    match (name, key) {
        (Some(name), Some(key)) => format!("\"{name}\" (key {key})"),
        (Some(name), None) => format!("\"{name}\" (its key is not on record)"),
        (None, Some(key)) => format!("the key {key}, which is not trusted for this plugin"),
        (None, None) if word == PackageSignature::NothingToCheck.word() => {
            "a key that its signature does not name".into()
        }
        (None, None) => "nobody".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_untrusted_key_is_somebody() {
        for (word, name, key, text) in [
            ("absent", None, None, "nobody"),
            ("unknown_key", None, None, "a key that its signature does not name"),
            ("unknown_key", None, Some("K="), "the key K=, which is not trusted for this plugin"),
            ("trusted", Some("acme"), Some("K="), "\"acme\" (key K=)"),
            ("trusted", Some("acme"), None, "\"acme\" (its key is not on record)"),
        ] {
            assert_eq!(signed_by(word, name, key), text);
        }
    }
}
