//! The plugin manifest: what a package says about itself and asks for (contract/manifest.md §1 and §2).
//!
//! `model` and `contributions` are the typed shape and its JSON, `yaml` reads untrusted bytes into it, `validate` and
//! its neighbours hold the rules. All violations are reported together. Whether the files it names exist is the
//! package's business.

mod contributions;
mod error;
mod keybinding;
mod model;
mod providers;
mod schema;
mod tools;
mod ui;
mod validate;
pub(crate) mod yaml;

pub use contributions::{
    Action, ActionScope, AgentTool, AuthProvider, Keybinding, ReferenceSource, ToolAnnotations, Ui, UiPage, Webhook,
    WebhookAccess,
};
pub use error::ManifestError;
pub(in crate::domain) use error::shorten;
pub use model::{Capabilities, Endpoints, Manifest, Runtime, Schema};
pub use providers::RepositoryProviders;
pub use yaml::MAX_MANIFEST_BYTES;

/// A manifest that follows every rule, with what is lawful but worth telling the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The manifest; legacy spellings are already in their current form.
    pub manifest: Manifest,
    /// One line each, lower case.
    pub warnings: Vec<String>,
}

/// The keys that `capabilities` has in this contract (contract/manifest.md §2).
const CAPABILITY_KEYS: [&str; 8] =
    ["events", "api_read", "api_write", "state", "secrets", "agent_invoke", "auth", "user_state"];

/// The part of a manifest whose unknown keys are told.
#[derive(serde::Deserialize)]
struct Keys {
    #[serde(default)]
    capabilities: Option<std::collections::BTreeMap<String, serde::de::IgnoredAny>>,
}

/// Reads and validates the bytes of `manifest.yaml`. Takes bounded time and memory whatever the bytes are.
///
/// # Errors
/// [`ManifestError::Yaml`] when the bytes are not one YAML document of the expected shape, else
/// [`ManifestError::Invalid`] with every broken rule.
pub fn parse(bytes: &[u8]) -> Result<Parsed, ManifestError> {
    let mut manifest: Manifest = yaml::read(bytes, yaml::MANIFEST)?;
    let mut report = error::Report::default();
    // Unknown keys are ignored everywhere; here one may be a power that the author counts on.
    let Keys { capabilities } = yaml::read(bytes, yaml::MANIFEST)?;
    for key in capabilities.unwrap_or_default().into_keys().filter(|key| !CAPABILITY_KEYS.contains(&key.as_str())) {
        report.warning(format!("unknown capability {} grants nothing on this host", crate::domain::clean::quote(&key)));
    }
    validate::manifest(&mut manifest, &mut report);
    report.into_result().map(|warnings| Parsed { manifest, warnings })
}

#[cfg(test)]
mod tests;
