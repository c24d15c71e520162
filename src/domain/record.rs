//! The record of an installed plugin: its manifest in line, and what the host knows about it.
//!
//! Owns the shape of the REST JSON (contract/rest.md §2) and of `<id>.yml` (contract/manifest.md §10), which are the
//! same keys. Reading and writing the file is `store::records`; changing a status is the registry's right.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::clean::single_line;
use super::id::PluginId;
use super::manifest::{Manifest, ManifestError, yaml};
use super::upgrade::LastUpgrade;

/// Largest record that is read, in bytes; every record the host writes is smaller.
pub const MAX_RECORD_BYTES: usize = yaml::MAX_RECORD_BYTES;

/// Shown as the version of a plugin whose record cannot be read.
const UNKNOWN_VERSION: &str = "unknown";

/// Where a plugin stands, as stored and shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = PluginStatus)]
pub enum Status {
    /// Installed, not yet started for the first time.
    Registered,
    /// Running and healthy.
    Active,
    /// Crashed, failed to start, or its files are gone.
    Error,
    /// Stopped by an operator.
    Disabled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Registered, Self::Active, Self::Error, Self::Disabled];

    /// The word of the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Active => "active",
            Self::Error => "error",
            Self::Disabled => "disabled",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the host knows about an installed plugin.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PluginRecord {
    /// The id; equal to the manifest's, which is what JSON and YAML show.
    #[serde(skip)]
    id: PluginId,
    /// The manifest of the installed version, in line.
    #[serde(flatten)]
    pub manifest: Manifest,
    /// The rest, in line.
    #[serde(flatten)]
    pub state: RecordState,
}

/// The part of a record that is not the manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordState {
    /// Where the plugin stands.
    pub status: Status,
    /// Absolute path of the installed version.
    pub install_path: String,
    /// Whether a trusted signature was verified.
    #[serde(default)]
    pub signed: bool,
    /// The name of the trusted key that signed it, as it was called then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<String>,
    /// That key, base64: who the signer is. A record of before keys were noted has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer_key: Option<String>,
    /// It was put into the plugins folder by hand, and nothing has vouched for its files yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sideloaded: bool,
    /// What an operator was told of the package when it was installed: few, short, clean.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// SHA-256 of the executable, lower-case hexadecimal. What is started must have it; a record without one gets it at
    /// the first good start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executable_sha256: Option<String>,
    /// The operator's word on automatic updates; `None` follows the host's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_update: Option<bool>,
    /// When this version was installed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub installed_at: OffsetDateTime,
    /// Automatic restarts since this version was installed; best effort.
    #[serde(default)]
    pub restart_count: u64,
    /// The host is about to start it again by itself.
    #[serde(default)]
    pub restarting: bool,
    /// The last failure: one redacted line of at most 2048 bytes; `null` after a good start.
    #[serde(default)]
    pub last_error: Option<String>,
    /// When it happened, UTC.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub last_error_at: Option<OffsetDateTime>,
    /// The version this one replaced, whose folder is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<String>,
    /// How the last change of the version went; none when there was no change yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_upgrade: Option<LastUpgrade>,
}

impl RecordState {
    /// What was put in place and not started yet.
    pub fn installed(install_path: String, installed_at: OffsetDateTime) -> Self {
        Self {
            status: Status::Registered,
            install_path,
            signed: false,
            signer: None,
            signer_key: None,
            sideloaded: false,
            warnings: Vec::new(),
            executable_sha256: None,
            auto_update: None,
            installed_at,
            restart_count: 0,
            restarting: false,
            last_error: None,
            last_error_at: None,
            previous_version: None,
            last_upgrade: None,
        }
    }
}

/// The warning on the record of a plugin that was taken over from the plugins folder: there is nothing to verify it by.
pub const TAKEN_OVER: &str = "taken over from the plugins folder: neither checksums nor a signature were verified";

/// Warnings kept on a record, one more line telling how many were not.
const MAX_WARNINGS: usize = 20;
/// Longest of them, in bytes.
const MAX_WARNING_BYTES: usize = 500;

/// The form in which warnings are kept on a record: few, short, clean.
pub fn keep_warnings(warnings: &[String]) -> Vec<String> {
    let short = |warning: &String| single_line(warning, MAX_WARNING_BYTES);
    let mut kept: Vec<_> = warnings.iter().take(MAX_WARNINGS).map(short).collect();
    if let Some(more @ 1..) = warnings.len().checked_sub(MAX_WARNINGS) {
        kept.push(format!("and {more} more, in the answer to the install only"));
    }
    kept
}

/// Why a record cannot be read or written as YAML.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not the YAML of a record.
    #[error("the record is not readable: {0}")]
    Read(#[from] ManifestError),
    /// The record cannot be put into YAML.
    #[error("the record cannot be written as YAML: {0}")]
    Write(#[from] serde_saphyr::SerializeError),
}

impl PluginRecord {
    /// A record of a plugin that was just installed. The manifest takes the given id.
    pub fn new(id: PluginId, mut manifest: Manifest, state: RecordState) -> Self {
        id.as_str().clone_into(&mut manifest.id);
        Self { id, manifest, state }
    }

    /// What is shown of a plugin whose record cannot be read: in `error`, with this diagnostic, and nothing that only
    /// the record knew.
    pub fn unreadable(id: PluginId, diagnostic: String, at: OffsetDateTime) -> Self {
        let manifest = Manifest { version: UNKNOWN_VERSION.to_owned(), ..Manifest::default() };
        let state = RecordState { status: Status::Error, ..RecordState::installed(String::new(), at) };
        let mut record = Self::new(id, manifest, state);
        record.fail(diagnostic, at);
        record
    }

    /// The plugin's id.
    pub fn id(&self) -> &PluginId {
        &self.id
    }

    /// Notes a failure; `diagnostic` has passed [`super::redaction::diagnostic`].
    pub fn fail(&mut self, diagnostic: String, at: OffsetDateTime) {
        self.state.last_error = Some(diagnostic);
        self.state.last_error_at = Some(at);
    }

    /// Forgets the last failure, after a good start.
    pub fn clear_error(&mut self) {
        self.state.last_error = None;
        self.state.last_error_at = None;
    }

    /// Reads the content of `<id>.yml`; the id comes from the file name and wins over the content.
    ///
    /// The manifest is not validated again: a record of an older host stays readable.
    ///
    /// # Errors
    /// [`RecordError::Read`] when the bytes are not one YAML document with the keys of a record.
    pub fn from_yaml(id: PluginId, bytes: &[u8]) -> Result<Self, RecordError> {
        // Two typed passes instead of one flattened one: flattening would lose the source text of scalars.
        Ok(Self::new(id, yaml::read(bytes, yaml::RECORD)?, yaml::read(bytes, yaml::RECORD)?))
    }

    /// The content of `<id>.yml`.
    ///
    /// # Errors
    /// [`RecordError::Write`]; no known value of a record causes it.
    pub fn to_yaml(&self) -> Result<String, RecordError> {
        Ok(serde_saphyr::to_string(self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use time::macros::datetime;

    const MANIFEST: &str = "{id: acme, api_version: 1, version: 1.0, categories: [tools],
        config_schema: {type: object, properties: {z: {default: no}, a: {default: '1'}}},
        runtime: {type: binary, executables: {linux-amd64: server/p}}}";

    fn record() -> PluginRecord {
        let manifest = crate::domain::manifest::parse(MANIFEST.as_bytes()).unwrap().manifest;
        PluginRecord::new(
            PluginId::new("acme").unwrap(),
            manifest,
            RecordState {
                status: Status::Active,
                ..RecordState::installed("/srv/kd/plugins/acme/1.0".to_owned(), datetime!(2026-08-01 09:00:00 UTC))
            },
        )
    }

    #[test]
    fn the_json_has_the_manifest_in_line_and_null_errors() {
        let json = serde_json::to_value(record()).unwrap();
        assert_eq!(
            json,
            json!({"id": "acme", "api_version": 1, "version": "1.0", "display_name": "", "description": "",
                "author": "", "categories": ["tools"], "base_url": "",
                "endpoints": {"health": "", "events": "", "webhooks": ""}, "capabilities": {},
                "config_schema": {"type": "object", "properties": {"z": {"default": "no"}, "a": {"default": "1"}}},
                "ui": {}, "runtime": {"type": "binary", "executables": {"linux-amd64": "server/p"}},
                "status": "active", "install_path": "/srv/kd/plugins/acme/1.0", "signed": false,
                "installed_at": "2026-08-01T09:00:00Z", "restart_count": 0, "restarting": false,
                "last_error": null, "last_error_at": null})
        );
    }

    #[test]
    fn yaml_gives_the_same_record_back() {
        let mut record = record();
        record.fail("exit: \"x\" # no: yes".to_owned(), datetime!(2026-08-02 10:11:12.5 UTC));
        record.state.auto_update = Some(false);
        record.state.previous_version = Some("0.9".to_owned());
        record.state.signer = Some("acme-key".to_owned());
        record.state.signer_key = Some("Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=".to_owned());
        record.state.sideloaded = true;
        record.state.warnings = vec!["unsigned: \"x\"".to_owned(), "yes".to_owned()];
        record.state.executable_sha256 = Some("00".repeat(32));
        let text = record.to_yaml().unwrap();
        assert_eq!(PluginRecord::from_yaml(record.id().clone(), text.as_bytes()).unwrap(), record, "{text}");
        record.clear_error();
        assert_eq!((record.state.last_error, record.state.last_error_at), (None, None));
    }

    #[test]
    fn the_file_name_supplies_the_id() {
        let text = record().to_yaml().unwrap();
        let other = PluginRecord::from_yaml(PluginId::new("other").unwrap(), text.as_bytes()).unwrap();
        assert_eq!((other.id().as_str(), other.manifest.id.as_str()), ("other", "other"));
    }

    #[test]
    fn a_record_of_the_go_host_is_read() {
        let text = "id: acme\napi_version: 1\nversion: \"1.0\"\ncategories: []\nbase_url: \"\"\nendpoints:\n    health: \"\"\n\
            runtime:\n    type: binary\nstatus: disabled\ninstall_path: /x\nsigned: true\nauto_update: true\n\
            installed_at: 2026-08-01T09:00:00.123456789+02:00\nrestart_count: 3\n";
        let read = PluginRecord::from_yaml(PluginId::new("acme").unwrap(), text.as_bytes()).unwrap();
        assert_eq!(read.state.status, Status::Disabled);
        assert_eq!((read.state.restart_count, read.state.auto_update, read.state.last_error), (3, Some(true), None));
        assert_eq!((read.state.signed, read.state.signer, read.state.executable_sha256), (true, None, None));
    }

    #[test]
    fn few_and_short_warnings_are_kept() {
        let many: Vec<_> = (0..25).map(|n| format!("{n}\n{}", "x".repeat(600))).collect();
        let kept = keep_warnings(&many);
        assert_eq!(kept.len(), MAX_WARNINGS + 1);
        assert!(kept[3].starts_with("3 xxx") && kept.iter().all(|warning| warning.len() <= MAX_WARNING_BYTES));
        assert_eq!(kept[MAX_WARNINGS], "and 5 more, in the answer to the install only");
        assert_eq!(keep_warnings(&many[..1]).len(), 1);
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        let id = PluginId::new("acme").unwrap();
        for text in ["", "[]", "id: acme\n", "status: flying\ninstall_path: /\ninstalled_at: 2026-08-01T09:00:00Z\n"] {
            assert!(
                matches!(PluginRecord::from_yaml(id.clone(), text.as_bytes()), Err(RecordError::Read(_))),
                "{text}"
            );
        }
    }

    #[test]
    fn the_largest_manifests_survive_as_records() {
        let base = MANIFEST.strip_suffix('}').unwrap();
        let bells =
            format!("{base}, author: a, agent_tools: null, auth_providers: [{{id: \"{}\"}}]}}", "\\a".repeat(900_000));
        let nodes =
            format!("{base}, repository_providers: null, capabilities: {{events: [{}]}}}}", "'',".repeat(45_000));
        let deep = format!("{base}, x: 1, auth_providers: [{}]}}", "{},".repeat(15_000));
        for text in [bells, nodes, deep] {
            let manifest = crate::domain::manifest::parse(text.as_bytes()).unwrap().manifest;
            let record = PluginRecord { manifest, ..record() };
            let yaml = record.to_yaml().unwrap();
            assert!(PluginRecord::from_yaml(record.id().clone(), yaml.as_bytes()).unwrap() == record, "{}", yaml.len());
        }
    }

    proptest! {
        #[test]
        fn any_text_in_a_record_survives_yaml(text in "(?s:.{0,40})|\\PC{0,40}|[ -~\n\t]{0,40}|no|true|null|~|1e3|0x1f|-|: |.5", key in "(?s:.{1,10})") {
            let mut record = record();
            record.manifest.display_name = text.clone();
            record.manifest.config_schema.insert(key, serde_json::Value::String(text.clone()));
            record.state.last_error = Some(text);
            let yaml = record.to_yaml().unwrap();
            prop_assert_eq!(PluginRecord::from_yaml(record.id().clone(), yaml.as_bytes()).unwrap(), record, "{}", yaml);
        }
    }
}
