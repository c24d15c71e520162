//! The operator's config of a plugin, `<plugins>/<id>.config.yml`: reading it for the plugin.
//!
//! A secret field holds a marker here (`domain::secret`); `grpc::host` puts the secret in its place.

use std::{io, path::PathBuf};

use serde_json::{Map, Value};
use tokio::{fs::File, io::AsyncReadExt};

use crate::{config::Limits, domain::id::PluginId};

/// Reads plugin configs below one folder.
#[derive(Clone, Debug)]
pub struct PluginConfigs {
    folder: PathBuf,
    max_bytes: u64,
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
}

impl PluginConfigs {
    /// Configs beside the records in `folder`.
    pub fn new(folder: PathBuf, limits: &Limits) -> Self {
        Self { folder, max_bytes: limits.manifest_bytes }
    }

    /// The config as it is stored; empty when there is none.
    pub async fn read(&self, plugin: &PluginId) -> Result<Map<String, Value>, ConfigError> {
        let file = match File::open(self.folder.join(format!("{plugin}.config.yml"))).await {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        file.take(self.max_bytes + 1).read_to_string(&mut text).await?;
        if text.len() as u64 > self.max_bytes {
            return Err(ConfigError::TooLarge { limit: self.max_bytes });
        }
        tokio::task::spawn_blocking(move || parse(&text)).await.map_err(io::Error::other)?
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
        let config = configs.read(&PluginId::new("a").unwrap()).await;
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
