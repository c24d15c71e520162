//! Whom the host believes: public keys with a name and the plugins they may sign (docs/operations.md, "Who signed
//! this").
//!
//! Owns the file format of `<home>/trust/<name>.pub` and the question which key speaks for which plugin. Reading the
//! folder is `store::trust`; checking a signature is [`super::signature`].
//!
//! ```text
//! # comments and blank lines are skipped
//! plugins: acme-chat, acme-mail
//! Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
//! ```
//! The key may also be a PEM block. `plugins:` may stand several times; `*` is every plugin.

use std::{collections::BTreeSet, fmt};

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{
    clean::quote,
    id::{IdError, PluginId},
    key::{KeyError, PublicKey},
};

/// Longest name of a key, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The grammar of names, as shown in messages.
const NAME_PATTERN: &str = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 64";

/// Stands for every plugin.
const EVERY: &str = "*";

/// The name of a trusted key: a part of a file name, and what a record calls the signer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KeyName(String);

/// A text that cannot name a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid key name {0}: use {NAME_PATTERN}")]
pub struct KeyNameError(String);

impl KeyName {
    /// Checks the grammar: what it accepts is one harmless part of a path.
    ///
    /// # Errors
    /// [`KeyNameError`]
    pub fn new(text: &str) -> Result<Self, KeyNameError> {
        let lawful = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        match begins && text.len() <= MAX_NAME_BYTES && text.bytes().all(lawful) {
            true => Ok(Self(text.to_owned())),
            false => Err(KeyNameError(quote(text))),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which plugins a key may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// `*`.
    Every,
    /// Exactly these; never empty.
    Only(BTreeSet<PluginId>),
}

/// Why words are no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// No word at all.
    #[error("it names no plugin: write the ids that the key may sign, or * for every plugin")]
    Empty,
    /// A word that is neither `*` nor an id.
    #[error(transparent)]
    Id(#[from] IdError),
}

impl Scope {
    /// Reads ids, or `*`, which covers whatever stands beside it.
    ///
    /// # Errors
    /// [`ScopeError`]
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ScopeError> {
        let (mut ids, mut every) = (BTreeSet::new(), false);
        for word in words.into_iter().map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                EVERY => every = true,
                id => drop(ids.insert(PluginId::new(id)?)),
            }
        }
        match (every, ids.is_empty()) {
            (true, _) => Ok(Self::Every),
            (false, false) => Ok(Self::Only(ids)),
            (false, true) => Err(ScopeError::Empty),
        }
    }

    /// Whether the key may sign this plugin.
    pub fn covers(&self, plugin: &str) -> bool {
        match self {
            Self::Every => true,
            Self::Only(ids) => ids.contains(plugin),
        }
    }

    /// The words it was made of, `*` alone for every plugin.
    pub fn words(&self) -> Vec<&str> {
        match self {
            Self::Every => vec![EVERY],
            Self::Only(ids) => ids.iter().map(PluginId::as_str).collect(),
        }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.words())
    }
}

/// A key the host believes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TrustedKey {
    /// Its name.
    #[schema(value_type = String)]
    pub name: KeyName,
    /// The key.
    #[schema(value_type = String)]
    pub key: PublicKey,
    /// What it may sign.
    #[schema(value_type = Vec<String>)]
    pub plugins: Scope,
}

/// Why a file is no trusted key. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileError {
    /// Not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// A key that is none.
    #[error("line {line}: {error}")]
    Key {
        /// Where it begins.
        line: usize,
        /// Why.
        error: KeyError,
    },
    /// A PEM block without an end.
    #[error("line {0}: the PEM block has no end")]
    OpenBlock(usize),
    /// More than one key.
    #[error("line {0}: a second key; a file holds one")]
    TwoKeys(usize),
    /// No key.
    #[error("it holds no key: write the base64 of the 32 bytes of an Ed25519 key, or its PEM")]
    NoKey,
    /// A `plugins:` line with something else.
    #[error("plugins: {0}")]
    Scope(#[from] ScopeError),
    /// No `plugins:` line: trust is given to somebody for something.
    #[error(
        "it does not say which plugins the key may sign: add a line `plugins: ID, …`, or `plugins: *` for every one"
    )]
    NoScope,
}

impl TrustedKey {
    /// Reads `<name>.pub`.
    ///
    /// # Errors
    /// [`KeyFileError`]
    pub fn parse(name: KeyName, bytes: &[u8]) -> Result<Self, KeyFileError> {
        let KeyFile { key, plugins } = KeyFile::parse(bytes)?;
        Ok(Self { name, key, plugins: plugins.ok_or(KeyFileError::NoScope)? })
    }

    /// The content of `<name>.pub`.
    pub fn to_text(&self) -> String {
        format!("plugins: {}\n{}\n", self.plugins.words().join(", "), self.key)
    }
}

/// A public key as a file holds it: what an author publishes names no plugins, what a host trusts does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// The key.
    pub key: PublicKey,
    /// What its `plugins:` lines say together.
    pub plugins: Option<Scope>,
}

impl KeyFile {
    /// Reads a file with one public key.
    ///
    /// # Errors
    /// [`KeyFileError`]
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyFileError> {
        let text = std::str::from_utf8(bytes).map_err(|_| KeyFileError::NotText)?;
        let (mut key, mut words): (_, Option<Vec<&str>>) = (None, None);
        let mut lines = text.lines().map(str::trim).zip(1..);
        while let Some((line, number)) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(ids) = line.strip_prefix("plugins:") {
                words.get_or_insert_default().extend(ids.split(','));
                continue;
            }
            if key.is_some() {
                return Err(KeyFileError::TwoKeys(number));
            }
            let mut block = line.to_owned();
            while line.starts_with("-----BEGIN") && !block.contains("-----END") {
                let (more, _) = lines.next().ok_or(KeyFileError::OpenBlock(number))?;
                block = format!("{block}\n{more}");
            }
            key = Some(PublicKey::parse(&block).map_err(|error| KeyFileError::Key { line: number, error })?);
        }
        Ok(Self { key: key.ok_or(KeyFileError::NoKey)?, plugins: words.map(Scope::new).transpose()? })
    }
}

/// The trusted keys of a host, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyRing(Vec<TrustedKey>);

impl KeyRing {
    /// These keys. One key may have several names: what it may sign is then what any of them says.
    pub fn new(mut keys: Vec<TrustedKey>) -> Self {
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        Self(keys)
    }

    /// All of them, by name.
    pub fn keys(&self) -> &[TrustedKey] {
        &self.0
    }

    /// Those that may sign this plugin, then the others.
    pub fn for_plugin<'a>(&'a self, plugin: &str) -> (Vec<&'a TrustedKey>, Vec<&'a TrustedKey>) {
        self.0.iter().partition(|key| key.plugins.covers(plugin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::key::PrivateKey;
    use proptest::prelude::*;

    fn key() -> PublicKey {
        PrivateKey::from_seed(&[1; 32]).public()
    }

    fn name(text: &str) -> KeyName {
        KeyName::new(text).unwrap()
    }

    fn read(text: &str) -> Result<TrustedKey, KeyFileError> {
        TrustedKey::parse(name("acme"), text.as_bytes())
    }

    #[test]
    fn both_forms_of_a_key_are_read_with_their_plugins() {
        let only = Scope::new(["a", "b.c"]).unwrap();
        for text in [
            format!("plugins: a, b.c\n{}\n", key()),
            format!("# Acme's\r\n{}\r\n\r\nplugins:b.c\r\nplugins: a,\r\n", key()),
            format!("plugins: a\n  {}plugins: b.c", key().to_pem().replace('\n', "\n  ")),
        ] {
            assert_eq!(read(&text), Ok(TrustedKey { name: name("acme"), key: key(), plugins: only.clone() }), "{text}");
        }
        let every = read(&format!("plugins: a, *\n{}", key())).unwrap();
        assert_eq!((every.plugins.covers("x"), only.covers("a"), only.covers("x")), (true, true, false));
        assert_eq!(KeyFile::parse(key().to_pem().as_bytes()), Ok(KeyFile { key: key(), plugins: None }));
    }

    #[test]
    fn what_is_no_trusted_key_is_told_with_its_line() {
        let key = key();
        for (text, error) in [
            (String::new(), "it holds no key: write the base64 of the 32 bytes of an Ed25519 key, or its PEM"),
            (
                format!("{key}"),
                "it does not say which plugins the key may sign: add a line `plugins: ID, …`, or `plugins: *` for \
                 every one",
            ),
            (
                format!("plugins:\n{key}"),
                "plugins: it names no plugin: write the ids that the key may sign, or * for every plugin",
            ),
            (format!("plugins: A\n{key}"), "plugins: invalid plugin id \"A\": must match ^[a-z0-9][a-z0-9._-]*$"),
            (format!("plugins: a\n{key}\n{key}"), "line 3: a second key; a file holds one"),
            ("\nplugins: *\n-----BEGIN PUBLIC KEY-----\nMCow".to_owned(), "line 3: the PEM block has no end"),
            (
                "ssh-ed25519 AAAA".to_owned(),
                "line 1: it is no public key: write the base64 of its 32 bytes, or the PEM of `openssl pkey -pubout`",
            ),
        ] {
            assert_eq!(read(&text).map_err(|error| error.to_string()), Err(error.to_owned()), "{text}");
        }
        assert_eq!(TrustedKey::parse(name("x"), b"\xff"), Err(KeyFileError::NotText));
    }

    #[test]
    fn names_are_harmless_parts_of_a_path() {
        for good in ["a", "Acme-2.x_y", "0", &"n".repeat(64)] {
            assert!(KeyName::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".a", "-a", "a/b", "a b", "a\n", "é", &"n".repeat(65)] {
            assert!(KeyName::new(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_trusted_key_survives_its_file(seed in any::<[u8; 32]>(), ids in proptest::collection::vec("[a-z0-9][a-z0-9._-]{0,9}(\\*)?|\\*", 1..5)) {
            let words: Vec<_> = ids.iter().map(String::as_str).collect();
            if let Ok(plugins) = Scope::new(words) {
                let key = TrustedKey { name: name("k"), key: PrivateKey::from_seed(&seed).public(), plugins };
                prop_assert_eq!(TrustedKey::parse(name("k"), key.to_text().as_bytes()), Ok(key));
            }
        }

        #[test]
        fn any_bytes_get_a_verdict(text in "(plugins:|-----BEGIN PUBLIC KEY-----|-----END PUBLIC KEY-----|[a-z*,]{0,5}|[A-Za-z0-9+/]{43}=|\n| |#){0,12}", bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            let _ = (KeyFile::parse(text.as_bytes()), KeyFile::parse(&bytes));
        }
    }
}
