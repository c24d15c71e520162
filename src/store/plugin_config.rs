//! The operator's config of a plugin, `<plugins>/<id>.config.yml`: reading it for the plugin and for the operator;
//! [`write`](self) has the writing.
//!
//! It neither knows the schema nor the vault: a secret field holds its marker here (`domain::secret`), and
//! `grpc::host` puts the secret in its place.

mod write;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::PathBuf,
    sync::Arc,
};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tokio::{
    fs::File,
    io::AsyncReadExt,
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard},
};

pub use write::ConfigText;

use crate::{config::Limits, domain::id::PluginId};

/// Locks for all plugins; two that share one only wait for each other's last step of a save.
const LOCKS: usize = 64;

/// Reads and writes plugin configs below one folder. Clones share the locks.
#[derive(Clone, Debug)]
pub struct PluginConfigs {
    folder: PathBuf,
    max_bytes: u64,
    locks: Arc<[RwLock<()>]>,
}

/// A config as it is on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredConfig {
    /// The fields in the file's order, markers in place of secrets.
    pub values: Map<String, Value>,
    /// Of the file's bytes; those of no file are none.
    pub digest: [u8; 32],
}

/// Why a config could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is there and cannot be read.
    #[error("plugin config cannot be read: {0}; check its permissions")]
    Io(#[from] io::Error),
    /// Larger than `limits.manifest_bytes`.
    #[error("plugin config is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Not YAML, or not a mapping.
    #[error("plugin config is not a YAML mapping: {0}; correct the file")]
    Malformed(String),
    /// No text holds this config so that it is read back as it is.
    #[error("the config cannot be written to a file; look for very deep nesting or odd field names")]
    Unwritable,
}

impl ConfigError {
    /// Whether a file is there that holds no config: another one may take its place.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::TooLarge { .. })
    }
}

impl PluginConfigs {
    /// Configs beside the records in `folder`.
    pub fn new(folder: PathBuf, limits: &Limits) -> Self {
        let locks = std::iter::repeat_with(RwLock::default).take(LOCKS).collect();
        Self { folder, max_bytes: limits.manifest_bytes, locks }
    }

    /// Largest file, in bytes.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Holds off the moment in which file and vault change together: who reads both takes this first.
    pub async fn reading(&self, plugin: &PluginId) -> RwLockReadGuard<'_, ()> {
        self.lock(plugin).read().await
    }

    /// Holds off those who read file and vault together.
    pub async fn changing(&self, plugin: &PluginId) -> RwLockWriteGuard<'_, ()> {
        self.lock(plugin).write().await
    }

    fn lock(&self, plugin: &PluginId) -> &RwLock<()> {
        let mut hasher = DefaultHasher::new();
        plugin.hash(&mut hasher);
        &self.locks[(hasher.finish() % LOCKS as u64) as usize]
    }

    fn path(&self, plugin: &PluginId) -> PathBuf {
        self.folder.join(format!("{plugin}.config.yml"))
    }

    /// The config as it is on disk; empty when there is none.
    ///
    /// # Errors
    /// [`ConfigError`] when the file is there and cannot be used.
    pub async fn load(&self, plugin: &PluginId) -> Result<StoredConfig, ConfigError> {
        let text = self.text(plugin).await?;
        let digest = Sha256::digest(text.as_bytes()).into();
        let values = tokio::task::spawn_blocking(move || parse(&text)).await.map_err(io::Error::other)??;
        Ok(StoredConfig { values, digest })
    }

    async fn text(&self, plugin: &PluginId) -> Result<String, ConfigError> {
        let file = match File::open(self.path(plugin)).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error.into()),
        };
        let mut bytes = Vec::new();
        file.take(self.max_bytes + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > self.max_bytes {
            return Err(ConfigError::TooLarge { limit: self.max_bytes });
        }
        String::from_utf8(bytes)
            .map_err(|error| ConfigError::Malformed(format!("it is no text: {}", error.utf8_error())))
    }
}

fn parse(text: &str) -> Result<Map<String, Value>, ConfigError> {
    let config: Option<Map<String, Value>> =
        serde_saphyr::from_str_with_options(text, serde_saphyr::options! { with_snippet: false })
            .map_err(|error| ConfigError::Malformed(error.to_string()))?;
    Ok(config.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    async fn read(text: Option<&str>) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = text {
            std::fs::write(folder.path().join("a.config.yml"), text).unwrap();
        }
        let limits = Limits { manifest_bytes: 100, ..Limits::default() };
        let configs = PluginConfigs::new(folder.path().to_owned(), &limits);
        let config = configs.load(&PluginId::new("a").unwrap()).await.map(|stored| stored.values);
        config.map(Value::Object).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn no_file_and_an_empty_file_are_an_empty_object() {
        assert_eq!(read(None).await, Ok(json!({})));
        assert_eq!(read(Some("")).await, Ok(json!({})));
    }

    #[tokio::test]
    async fn values_keep_their_types() {
        let text = "url: https://example.org\nport: 8080\non: true\nlist: [a, 1]\nother: vault:plugin:a:config:other\n";
        let expected = json!({"url": "https://example.org", "port": 8080, "on": true, "list": ["a", 1],
                              "other": "vault:plugin:a:config:other"});
        assert_eq!(read(Some(text)).await, Ok(expected));
    }

    #[tokio::test]
    async fn what_is_not_usable_names_its_cause() {
        assert_eq!(read(Some(&"x".repeat(101))).await.unwrap_err(), "plugin config is larger than 100 bytes");
        let malformed = read(Some("- a\n- b\n")).await.unwrap_err();
        assert!(malformed.starts_with("plugin config is not a YAML mapping: "), "{malformed}");
    }
}
