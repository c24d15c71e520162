//! What secrets are called: the ids of vault entries, the keys of a plugin's own secrets, the references it may reveal.
//!
//! Owns names, bounds and the marker that stands for a secret in a config file. No secret value passes here; encryption
//! and storage are `vault`'s part, who may reveal what is the operator's word, kept in `vault::shared`.

use std::fmt;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{clean::quote, id::PluginId};

/// Longest key of a plugin's own secret, in bytes (wire.md §4).
pub const MAX_KEY_BYTES: usize = 128;

/// The grammar of such keys, as shown in messages.
pub const KEY_PATTERN: &str = "^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}$";

/// Longest id of a vault entry, in bytes. Only the name of a config field can make an id longer.
pub const MAX_VAULT_ID_BYTES: usize = 1024;

/// What kind of secret an entry holds; also the word in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SecretKind {
    /// A secret field of a plugin's config.
    Config,
    /// What a plugin stored by SetSecret.
    Own,
    /// What the operator keeps and shares with plugins.
    Shared,
}

impl SecretKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Config, Self::Own, Self::Shared];

    /// The stable word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Own => "own",
            Self::Shared => "shared",
        }
    }
}

/// The name of one vault entry. No text of a plugin or a client becomes one unchecked: the prefix is always the host's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VaultId {
    text: String,
    kind: SecretKind,
    owner: Option<PluginId>,
}

/// A key that no secret of a plugin can have. Text and pattern: wire.md §4.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid secret key {0}")]
pub struct SecretKeyError(String);

impl VaultId {
    /// The entry of a secret config field: `plugin:<id>:config:<field>` (rest.md §4). Any field name makes an id; one
    /// that is longer than [`MAX_VAULT_ID_BYTES`] or holds a zero byte cannot be stored, see [`Self::is_storable`].
    pub fn config(plugin: &PluginId, field: &str) -> Self {
        let text = format!("plugin:{plugin}:config:{field}");
        Self { text, kind: SecretKind::Config, owner: Some(plugin.clone()) }
    }

    /// The entry that holds the revision of a config's last save (`actors::settings`): the one of the field without a
    /// name, which no schema can make a secret (`domain::config_schema`). It is the host's own and no secret.
    pub fn revision(plugin: &PluginId) -> Self {
        Self::config(plugin, "")
    }

    /// The entry of a plugin's own secret: `plugin:<id>:secret:<key>` (host-data.md §7).
    ///
    /// # Errors
    /// [`SecretKeyError`] when `key` does not match [`KEY_PATTERN`].
    pub fn own(plugin: &PluginId, key: &str) -> Result<Self, SecretKeyError> {
        if !is_key(key) {
            return Err(SecretKeyError(quote(key)));
        }
        Ok(Self { text: format!("plugin:{plugin}:secret:{key}"), kind: SecretKind::Own, owner: Some(plugin.clone()) })
    }

    /// The entry of a secret that the operator shares.
    pub fn shared(id: Uuid) -> Self {
        Self { text: id.hyphenated().to_string(), kind: SecretKind::Shared, owner: None }
    }

    /// What a plugin gives to RevealSecret. Only the id of a shared secret, written as the host writes it, is a
    /// reference: entries of plugins have none, whatever the case or encoding (lifecycle.md §10, row 27).
    pub fn reference(text: &str) -> Option<Self> {
        let id = Self::shared(Uuid::try_parse(text).ok()?);
        (id.text == text).then_some(id)
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What kind of secret it is.
    pub const fn kind(&self) -> SecretKind {
        self.kind
    }

    /// The plugin with which the entry goes; `None` for shared secrets.
    pub const fn owner(&self) -> Option<&PluginId> {
        self.owner.as_ref()
    }

    /// What stands for the secret in a config file: `vault:<id>` (rest.md §4). Only this exact text counts.
    pub fn marker(&self) -> String {
        format!("vault:{}", self.text)
    }

    /// The fields of a config that hold their own secret's marker, with the entries that they refer to.
    pub fn referred(plugin: &PluginId, config: &Map<String, Value>) -> impl Iterator<Item = (String, Self)> {
        config.iter().filter_map(|(field, value)| {
            let id = Self::config(plugin, field);
            (value.as_str()? == id.marker()).then(|| (field.clone(), id))
        })
    }

    /// Whether a database can hold the id. PostgreSQL stores no zero byte.
    pub fn is_storable(&self) -> bool {
        self.text.len() <= MAX_VAULT_ID_BYTES && !self.text.contains('\0')
    }
}

impl fmt::Display for VaultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether `text` matches [`KEY_PATTERN`].
fn is_key(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= MAX_KEY_BYTES
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    #[test]
    fn ids_are_made_as_the_contract_says() {
        let config = VaultId::config(&acme(), "api key");
        assert_eq!((config.as_str(), config.kind()), ("plugin:acme:config:api key", SecretKind::Config));
        assert_eq!(config.marker(), "vault:plugin:acme:config:api key");
        let own = VaultId::own(&acme(), "Token-1.x_y").unwrap();
        assert_eq!((own.as_str(), own.owner()), ("plugin:acme:secret:Token-1.x_y", Some(&acme())));
        let shared = VaultId::shared(Uuid::nil());
        assert_eq!((shared.as_str(), shared.owner()), ("00000000-0000-0000-0000-000000000000", None));
    }

    #[test]
    fn each_unlawful_key_is_told_in_quotes() {
        for key in ["", "-a", ".a", "_a", "a b", "a:b", "a/b", "ä", "a\n", "a\0", &"a".repeat(129)] {
            let error = VaultId::own(&acme(), key).unwrap_err().to_string();
            assert_eq!(error, format!("invalid secret key {}", quote(key)));
        }
        assert!(VaultId::own(&acme(), &"a".repeat(128)).is_ok());
    }

    #[test]
    fn only_the_plain_id_of_a_shared_secret_is_a_reference() {
        let plain = "67e55044-10b1-426f-9247-bb680e5fe0c8";
        assert_eq!(VaultId::reference(plain).unwrap().as_str(), plain);
        for text in [
            "",
            "plugin:acme:secret:k",
            "PLUGIN:acme:secret:k",
            "plugin%3Aacme%3Asecret%3Ak",
            "vault:67e55044-10b1-426f-9247-bb680e5fe0c8",
            "67E55044-10B1-426F-9247-BB680E5FE0C8",
            "67e5504410b1426f9247bb680e5fe0c8",
            "{67e55044-10b1-426f-9247-bb680e5fe0c8}",
            "urn:uuid:67e55044-10b1-426f-9247-bb680e5fe0c8",
            " 67e55044-10b1-426f-9247-bb680e5fe0c8",
        ] {
            assert_eq!(VaultId::reference(text), None, "{text}");
        }
    }

    #[test]
    fn what_no_database_holds_is_not_storable() {
        assert!(!VaultId::config(&acme(), "a\0b").is_storable());
        assert!(!VaultId::config(&acme(), &"x".repeat(1024)).is_storable());
        assert!(VaultId::config(&acme(), "é").is_storable());
    }

    proptest! {
        #[test]
        fn no_key_and_no_reference_leaves_its_plugins_namespace(text in "\\PC{0,40}|[a-z:.%_-]{0,40}") {
            if let Ok(id) = VaultId::own(&acme(), &text) {
                prop_assert!(id.as_str().starts_with("plugin:acme:secret:"));
                prop_assert_eq!(id.as_str().matches(':').count(), 3);
            }
            if let Some(id) = VaultId::reference(&text) {
                prop_assert_eq!(id.kind(), SecretKind::Shared);
            }
        }
    }
}
