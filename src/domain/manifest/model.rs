//! The typed manifest and its JSON.
//!
//! Owns the shape: names, defaults, order and omission of keys as contract/rest.md §2 shows them for a record. The
//! lists of what a plugin brings are in `contributions`. Neither holds a rule; a value of these types is not yet valid.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::contributions::{Action, AgentTool, AuthProvider, ReferenceSource, Ui, Webhook, is_false};
use super::providers::RepositoryProviders;
use super::yaml::{flag, list, nullable};
use crate::domain::capability::{Capability, CapabilitySet};

/// A free JSON-Schema object; keeps the order of its keys.
pub type Schema = serde_json::Map<String, Value>;

/// What a package says about itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Manifest {
    /// Plugin id.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Manifest format; 1.
    #[serde(deserialize_with = "nullable")]
    pub api_version: i64,
    /// Version of the package; a single path segment.
    #[serde(deserialize_with = "nullable")]
    pub version: String,
    /// Name for people.
    #[serde(deserialize_with = "nullable")]
    pub display_name: String,
    /// What it does, for people.
    #[serde(deserialize_with = "nullable")]
    pub description: String,
    /// Who made it.
    #[serde(deserialize_with = "nullable")]
    pub author: String,
    /// Words of a closed vocabulary; `null` in JSON when the manifest has none.
    #[serde(deserialize_with = "nullable_categories")]
    pub categories: Option<Vec<String>>,
    /// Package-relative path of a picture; unchecked.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// Web address of the sources.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub repo_url: String,
    /// Legacy; empty.
    #[serde(deserialize_with = "nullable")]
    pub base_url: String,
    /// Legacy; empty.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Object)]
    pub endpoints: Endpoints,
    /// What the plugin asks for.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Object)]
    pub capabilities: Capabilities,
    /// Endpoints for external systems.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub webhooks: Vec<Webhook>,
    /// Operations for the signed-in browser.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub actions: Vec<Action>,
    /// Repository providers this plugin owns.
    #[serde(skip_serializing_if = "RepositoryProviders::is_undeclared")]
    #[schema(value_type = Vec<String>)]
    pub repository_providers: RepositoryProviders,
    /// Entity-reference sources this plugin owns.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub reference_sources: Vec<ReferenceSource>,
    /// Login options; one whose `initiate` is no webhook key has no effect.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub auth_providers: Vec<AuthProvider>,
    /// Schema of the operator's settings.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Schema::is_empty")]
    #[schema(value_type = Object)]
    pub config_schema: Schema,
    /// Tools offered to agents.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    pub agent_tools: Vec<AgentTool>,
    /// What the plugin brings to the browser.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Object)]
    pub ui: Ui,
    /// How the plugin is run.
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Object)]
    pub runtime: Runtime,
    /// Oldest host contract the plugin works with.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub min_kandev_version: String,
}

fn nullable_categories<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let elements = Option::<Vec<Option<String>>>::deserialize(deserializer)?;
    Ok(elements.map(|list| list.into_iter().flatten().collect()))
}

/// Legacy addresses of a remote plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    /// Legacy.
    #[serde(deserialize_with = "nullable")]
    pub health: String,
    /// Legacy.
    #[serde(deserialize_with = "nullable")]
    pub events: String,
    /// Legacy.
    #[serde(deserialize_with = "nullable")]
    pub webhooks: String,
}

/// What the plugin asks for, as written; [`Capabilities::granted`] is what counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Subject patterns of wanted events.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Data it reads.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub api_read: Vec<String>,
    /// Data it writes.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub api_write: Vec<String>,
    /// Own key-value state.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub state: bool,
    /// Own secrets.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub secrets: bool,
    /// One-shot runs of the utility agent.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub agent_invoke: bool,
    /// Login directives.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub auth: bool,
    /// Per-user storage.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub user_state: bool,
}

impl Capabilities {
    /// The rights that follow from the known words; unknown ones grant nothing.
    pub fn granted(&self) -> CapabilitySet {
        let flags = [
            (self.state, Capability::State),
            (self.secrets, Capability::Secrets),
            (self.agent_invoke, Capability::AgentInvoke),
            (self.auth, Capability::Auth),
            (self.user_state, Capability::UserState),
        ];
        let flags = flags.into_iter().filter_map(|(on, capability)| on.then_some(capability));
        flags.chain(self.data_words().filter_map(|word| Capability::from_name(&word))).collect()
    }

    /// The data words in the form `api_read:<word>` and `api_write:<word>`.
    pub(super) fn data_words(&self) -> impl Iterator<Item = String> {
        let read = self.api_read.iter().map(|word| format!("api_read:{word}"));
        read.chain(self.api_write.iter().map(|word| format!("api_write:{word}")))
    }
}

/// How the plugin is run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Runtime {
    /// `binary`.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    /// Platform key (`linux-amd64`) to package-relative path.
    #[serde(deserialize_with = "executables")]
    pub executables: BTreeMap<String, String>,
}

fn executables<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map = Option::<BTreeMap<String, Option<String>>>::deserialize(deserializer)?.unwrap_or_default();
    Ok(map.into_iter().filter_map(|(key, path)| Some((key, path?))).collect())
}
