//! A plugin as the host tells it, and its text for people. The host may be of another version, so every key that is
//! only shown may be missing.

use serde::Deserialize;
use serde_json::Value;

use crate::cli::output::{fields, table};

/// What the texts need of a record (docs/api.md, "Records").
#[derive(Debug, Deserialize)]
pub struct PluginView {
    pub id: String,
    pub status: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub display_name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub author: String,
    #[serde(default)]
    pub capabilities: Value,
    #[serde(default)]
    pub webhooks: Vec<WebhookView>,
    #[serde(default)]
    pub install_path: String,
    #[serde(default)]
    pub installed_at: String,
    #[serde(default)]
    pub signed: bool,
    #[serde(default)]
    pub signer: Option<String>,
    #[serde(default)]
    pub warnings: Vec<String>,
    #[serde(default)]
    pub restart_count: u64,
    #[serde(default)]
    pub restarting: bool,
    #[serde(default)]
    pub last_error: Option<String>,
    #[serde(default)]
    pub last_error_at: Option<String>,
    #[serde(default)]
    pub previous_version: Option<String>,
    #[serde(default)]
    pub last_upgrade: Option<UpgradeView>,
}

/// How the last change of version went.
#[derive(Debug, Deserialize)]
pub struct UpgradeView {
    #[serde(default)]
    pub from: String,
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub at: String,
    #[serde(default)]
    pub outcome: String,
    #[serde(default)]
    pub reason: Option<String>,
}

impl UpgradeView {
    fn text(&self) -> String {
        let Self { from, version, at, outcome, reason } = self;
        let outcome = outcome.replace('_', " ");
        let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        format!("{from} to {version}, {outcome} ({at}){reason}")
    }
}

/// A webhook of a record.
#[derive(Debug, Deserialize)]
pub struct WebhookView {
    #[serde(default)]
    pub key: String,
    #[serde(default)]
    pub access: String,
}

impl PluginView {
    /// The status, and that the host is about to start the plugin again.
    pub fn state(&self) -> String {
        match self.restarting {
            true => format!("{} (restarting)", self.status),
            false => self.status.clone(),
        }
    }

    /// Whether the plugin runs and is healthy.
    pub fn is_active(&self) -> bool {
        self.status == "active"
    }

    fn signed_by(&self) -> String {
        match (&self.signer, self.signed) {
            (Some(signer), true) => format!("yes, by {signer}"),
            (_, true) => "yes".to_owned(),
            (_, false) => "no".to_owned(),
        }
    }

    /// One field a line.
    pub fn text(&self) -> String {
        let error = match (&self.last_error, &self.last_error_at) {
            (Some(error), Some(at)) => format!("{error} ({at})"),
            (Some(error), None) => error.clone(),
            _ => String::new(),
        };
        fields(&[
            ("id", self.id.clone()),
            ("version", self.version.clone()),
            ("status", self.state()),
            ("name", self.display_name.clone()),
            ("description", self.description.clone()),
            ("author", self.author.clone()),
            ("capabilities", capabilities(&self.capabilities)),
            ("webhooks", webhooks(self.webhooks.iter().map(|hook| (hook.key.as_str(), hook.access.as_str())))),
            ("signed", self.signed_by()),
            ("installed", self.installed_at.clone()),
            ("folder", self.install_path.clone()),
            ("previous", self.previous_version.clone().unwrap_or_default()),
            ("last upgrade", self.last_upgrade.as_ref().map(UpgradeView::text).unwrap_or_default()),
            ("restarts", self.restart_count.to_string()),
            ("last error", error),
            ("warnings", self.warnings.join("\n")),
        ])
    }
}

/// One plugin a line.
pub fn list(plugins: &[PluginView]) -> String {
    let rows = plugins.iter().map(|plugin| {
        let error = plugin.last_error.clone().unwrap_or_default();
        [plugin.id.clone(), plugin.version.clone(), plugin.state(), plugin.restart_count.to_string(), error]
    });
    table(["ID", "VERSION", "STATUS", "RESTARTS", "LAST ERROR"], rows)
}

/// What a manifest asks for, one kind a line: `events: demo.*, task.*`.
pub fn capabilities(value: &Value) -> String {
    let Some(object) = value.as_object() else { return String::new() };
    let lines = object.iter().filter_map(|(name, value)| match value {
        Value::Array(words) if words.is_empty() => None,
        Value::Array(words) => {
            let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
            Some(format!("{name}: {}", words.join(", ")))
        }
        Value::Bool(true) => Some(name.clone()),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Key and access, one webhook a line.
pub fn webhooks<'a>(webhooks: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let lines = webhooks.map(|(key, access)| {
        let access = if access.is_empty() { "public" } else { access };
        format!("{key} ({access})")
    });
    lines.collect::<Vec<_>>().join("\n")
}
