//! Writing a config: at once when only the file changes, or in two steps when the vault changes with it.
//!
//! The second way is for a crash between file and database. The new file is *staged* beside the old one under a
//! revision of its own; the vault's transaction, which holds the same revision, is the moment at which the save counts;
//! then the staged file takes the old one's place. Whoever finds a staged file later looks the revision up in the vault
//! and finishes the save or drops it (`actors::settings`). The order and its crash points: docs/runtime-semantics.md.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{ConfigError, PluginConfigs, parse};
use crate::{
    domain::id::PluginId,
    failpoint,
    store::fs::{self, At as _, FileError},
};

/// Start of the names of staged configs. No plugin id begins with a dot, and the sweep at start leaves them.
const STAGED_PREFIX: &str = ".staged-";

/// End of the names of configs.
const ENDING: &str = ".config.yml";

/// Start of a written file's first line; the revision follows.
const HEADER: &str = "# written by kandev-host, revision ";

/// What a config file will hold, proven to be read back as it was meant.
#[derive(Debug, Clone)]
pub struct ConfigText {
    text: String,
    revision: Uuid,
}

impl ConfigText {
    /// The text of a config under a new revision, in the order of `config`. Blocks: call it on a blocking thread.
    ///
    /// # Errors
    /// [`ConfigError::TooLarge`], or [`ConfigError::Unwritable`] when no text of it is read back as it is.
    pub fn render(config: &Map<String, Value>, max_bytes: u64) -> Result<Self, ConfigError> {
        let revision = Uuid::new_v4();
        let header = format!("{HEADER}{revision}\n");
        let yaml = serde_saphyr::to_string(config).map_err(|error| error.to_string());
        // JSON is YAML too: less pleasant, and a second chance for values that the first form does not carry.
        let json = serde_json::to_string_pretty(config).map_err(|error| error.to_string());
        let mut too_large = false;
        for text in [yaml, json].into_iter().flatten() {
            let text = header.clone() + &text + if text.ends_with('\n') { "" } else { "\n" };
            let fits = text.len() as u64 <= max_bytes;
            too_large |= !fits;
            // Compared as text, which tells the order of keys and `1` from `1.0`.
            if fits && parse(&text).is_ok_and(|read| serde_json::to_vec(&read).ok() == serde_json::to_vec(config).ok())
            {
                return Ok(Self { text, revision });
            }
        }
        if too_large { Err(ConfigError::TooLarge { limit: max_bytes }) } else { Err(ConfigError::Unwritable) }
    }

    /// Names this save; also in the file's first line, so that every save gives another file.
    pub fn revision(&self) -> Uuid {
        self.revision
    }

    /// The bytes of the file.
    pub fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// All functions block: call them on a blocking thread.
impl PluginConfigs {
    /// Replaces the config; old or new after a crash.
    ///
    /// # Errors
    /// [`FileError`]; the old config is then still in place.
    pub fn replace(&self, plugin: &PluginId, text: &ConfigText) -> Result<(), FileError> {
        failpoint::hit("config.writing");
        fs::write_atomic(&self.path(plugin), text.as_bytes())?;
        failpoint::hit("config.saved");
        Ok(())
    }

    /// First step of a save with secrets: the new config beside the old one.
    ///
    /// # Errors
    /// [`FileError`]; the config in place is untouched.
    pub fn stage(&self, plugin: &PluginId, text: &ConfigText) -> Result<(), FileError> {
        failpoint::hit("config.writing");
        fs::write_atomic(&self.staged_path(plugin), text.as_bytes())?;
        failpoint::hit("config.staged");
        Ok(())
    }

    /// Last step: the staged config becomes the config.
    ///
    /// # Errors
    /// [`FileError`]; the staged one is then still there.
    pub fn promote(&self, plugin: &PluginId) -> Result<(), FileError> {
        let staged = self.staged_path(plugin);
        std::fs::rename(&staged, self.path(plugin)).at("replace", &staged)?;
        // The save counts already and is in place; only a power loss could bring the staged file back, to be moved
        // again.
        if let Err(error) = fs::sync_folder(&self.folder) {
            tracing::warn!(plugin.id = %plugin, %error, "a saved config may have to be put in place again after a power loss");
        }
        failpoint::hit("config.saved");
        Ok(())
    }

    /// Drops a staged config; none is dropped already.
    pub fn discard(&self, plugin: &PluginId) -> Result<(), FileError> {
        fs::remove_any(&self.staged_path(plugin))
    }

    /// The revision of a staged config; `None` when there is none. One that no host wrote has the nil revision.
    pub fn staged(&self, plugin: &PluginId) -> Result<Option<Uuid>, FileError> {
        let path = self.staged_path(plugin);
        if !fs::exists(&path)? {
            return Ok(None);
        }
        let bytes = fs::read_bounded(&path, self.max_bytes)?;
        let line = bytes.split(|byte| *byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok());
        let revision = line.and_then(|line| line.strip_prefix(HEADER)).and_then(|text| Uuid::try_parse(text).ok());
        Ok(Some(revision.unwrap_or_default()))
    }

    /// Every plugin with a staged config.
    pub fn all_staged(&self) -> Result<Vec<PluginId>, FileError> {
        let names = fs::names_in(&self.folder)?;
        let stems = names.iter().filter_map(|name| name.strip_prefix(STAGED_PREFIX)?.strip_suffix(ENDING));
        Ok(stems.filter_map(|stem| PluginId::new(stem).ok()).collect())
    }

    fn staged_path(&self, plugin: &PluginId) -> std::path::PathBuf {
        self.folder.join(format!("{STAGED_PREFIX}{plugin}{ENDING}"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::config::Limits;

    fn configs(folder: &tempfile::TempDir) -> PluginConfigs {
        PluginConfigs::new(folder.path().to_owned(), &Limits::default())
    }

    fn acme() -> PluginId {
        PluginId::new("acme").unwrap()
    }

    fn render(config: Value) -> Result<ConfigText, ConfigError> {
        let Value::Object(config) = config else { panic!("not an object: {config}") };
        ConfigText::render(&config, 1000)
    }

    #[tokio::test]
    async fn a_config_is_read_back_as_it_was_written_in_the_clients_order_by_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let config = json!({"z": 1, "a": "yes", "10": 1.0, "2": null, "on": "off", "t": "12:30", "e": "1e3", "": "~",
            "m": "a\n  b\n", "n": "\u{0}\u{85}\u{feff}", "l": [[], {}, {"x": [true]}], "big": u64::MAX, "low": i64::MIN});
        configs(&folder).replace(&acme(), &render(config.clone()).unwrap()).unwrap();
        let read = configs(&folder).load(&acme()).await.unwrap().values;
        assert_eq!(Value::Object(read).to_string(), config.to_string());
        let mode = std::fs::metadata(folder.path().join("acme.config.yml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn every_text_has_a_revision_of_its_own_and_a_bound() {
        let (one, other) = (render(json!({})).unwrap(), render(json!({})).unwrap());
        assert_ne!(one.as_bytes(), other.as_bytes());
        assert!(matches!(render(json!({"a": "x".repeat(1000)})), Err(ConfigError::TooLarge { limit: 1000 })));
    }

    #[test]
    fn a_staged_config_is_found_by_its_revision_and_takes_its_place_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let configs = configs(&folder);
        let (old, new) = (render(json!({"a": 1})).unwrap(), render(json!({"a": 2})).unwrap());
        configs.replace(&acme(), &old).unwrap();
        assert_eq!(configs.staged(&acme()).unwrap(), None);
        configs.stage(&acme(), &new).unwrap();
        assert_eq!(
            (configs.all_staged().unwrap(), configs.staged(&acme()).unwrap()),
            (vec![acme()], Some(new.revision()))
        );
        assert_eq!(std::fs::read(configs.path(&acme())).unwrap(), old.as_bytes());
        configs.promote(&acme()).unwrap();
        assert_eq!(std::fs::read(configs.path(&acme())).unwrap(), new.as_bytes());
        assert_eq!(configs.all_staged().unwrap(), []);
        configs.stage(&acme(), &old).unwrap();
        configs.discard(&acme()).unwrap();
        configs.discard(&acme()).unwrap();
        assert_eq!(fs::names_in(folder.path()).unwrap(), ["acme.config.yml"]);
        std::fs::write(folder.path().join(".staged-acme.config.yml"), "a: 1\n").unwrap();
        assert_eq!(configs.staged(&acme()).unwrap(), Some(Uuid::nil()));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_filter("JSON has no other", |number| number.is_finite()).prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
            "[ -~\\n\\t]{0,20}".prop_map(Value::from),
            "(true|no|null|~|0x1f|1_000|-|\\?|: |# x|- a|0o7|\\.inf|2001-01-01|<<|=|&a|\\*a|!t)".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[ -~]{0,8}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_json_holds_a_config_file_holds(config in prop::collection::btree_map("\\PC{0,8}", value(), 0..6)) {
            let config: Map<String, Value> = config.into_iter().collect();
            let text = ConfigText::render(&config, 1 << 20);
            prop_assert!(text.is_ok(), "{:?}", config);
        }
    }
}
