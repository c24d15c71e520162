//! The settings file `<home>/host.toml`: its shape, and errors that name the key and the accepted ones.
//!
//! Every key is read on its own, so that an error names it; no error quotes the file, which may hold a password.

use std::{io::ErrorKind, path::Path};

use secrecy::SecretString;
use serde::{Serialize, de::DeserializeOwned};
use toml::{Table, Value};

use super::{ConfigError, Features, Http, Install, Limits, Metrics, Plugins, Source, Telemetry, Timing};

/// Accepted keys of the top level.
const TOP_LEVEL: [&str; 12] = [
    "listen",
    "database_url",
    "log",
    "compat_version",
    "timing",
    "limits",
    "http",
    "install",
    "plugins",
    "features",
    "metrics",
    "telemetry",
];

/// What the file says, with the defaults for what it leaves out.
#[derive(Debug, Default)]
pub struct FileSettings {
    pub listen: Option<String>,
    pub database_url: Option<SecretString>,
    pub log: Option<String>,
    pub compat_version: Option<String>,
    pub timing: Timing,
    pub limits: Limits,
    pub http: Http,
    pub install: Install,
    pub plugins: Plugins,
    pub features: Features,
    pub metrics: Metrics,
    pub telemetry: Telemetry,
    /// Dotted names of the section keys that the file sets.
    pub set: Vec<String>,
}

/// Reads the file; a missing one gives the defaults.
pub fn read(path: &Path) -> Result<FileSettings, ConfigError> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(FileSettings::default()),
        Err(error) => Err(ConfigError::Unreadable { path: path.to_owned(), reason: error.to_string() }),
    }
}

/// Reads the file's text.
pub fn parse(path: &Path, text: &str) -> Result<FileSettings, ConfigError> {
    let mut table: Table = toml::from_str(text).map_err(|error: toml::de::Error| ConfigError::Syntax {
        path: path.to_owned(),
        line: error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.matches('\n').count() + 1),
        reason: error.message().to_owned(),
    })?;
    refuse_unknown(path, "", &table, &TOP_LEVEL.map(String::from))?;
    let mut set = Vec::new();
    Ok(FileSettings {
        listen: string(&mut table, "listen")?,
        database_url: string(&mut table, "database_url")?.map(SecretString::from),
        log: string(&mut table, "log")?,
        compat_version: string(&mut table, "compat_version")?,
        timing: section(path, &mut table, "timing", &mut set)?,
        limits: section(path, &mut table, "limits", &mut set)?,
        http: section(path, &mut table, "http", &mut set)?,
        install: section(path, &mut table, "install", &mut set)?,
        plugins: section(path, &mut table, "plugins", &mut set)?,
        features: section(path, &mut table, "features", &mut set)?,
        metrics: section(path, &mut table, "metrics", &mut set)?,
        telemetry: section(path, &mut table, "telemetry", &mut set)?,
        set,
    })
}

fn string(table: &mut Table, key: &str) -> Result<Option<String>, ConfigError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(bad_value(key, "it must be text in quotes")),
    }
}

fn section<T>(path: &Path, table: &mut Table, name: &str, set: &mut Vec<String>) -> Result<T, ConfigError>
where
    T: DeserializeOwned + Serialize + Default,
{
    let keys = match table.remove(name) {
        None => return Ok(T::default()),
        Some(Value::Table(keys)) => keys,
        Some(_) => return Err(bad_value(name, &format!("it must be a section, [{name}]"))),
    };
    let accepted: Vec<String> = match Value::try_from(T::default()) {
        Ok(Value::Table(defaults)) => defaults.keys().cloned().collect(),
        _ => Vec::new(),
    };
    refuse_unknown(path, name, &keys, &accepted)?;
    for (key, value) in &keys {
        let dotted = format!("{name}.{key}");
        let alone = Table::from_iter([(key.clone(), value.clone())]);
        Value::Table(alone).try_into::<T>().map_err(|error| bad_value(&dotted, error.message()))?;
        set.push(dotted);
    }
    Value::Table(keys).try_into().map_err(|error| bad_value(name, error.message()))
}

fn refuse_unknown(path: &Path, section: &str, table: &Table, accepted: &[String]) -> Result<(), ConfigError> {
    match table.keys().find(|key| !accepted.contains(key)) {
        None => Ok(()),
        Some(key) => Err(ConfigError::UnknownKey {
            path: path.to_owned(),
            key: if section.is_empty() { key.clone() } else { format!("{section}.{key}") },
            accepted: accepted.join(", "),
        }),
    }
}

fn bad_value(key: &str, reason: &str) -> ConfigError {
    ConfigError::BadValue { key: key.to_owned(), origin: Source::File, reason: reason.to_owned() }
}
