//! The typed lists of what a plugin brings: webhooks, actions, reference sources, login options, tools, browser parts.
//!
//! Shape only, like `model`; effective values of optional keys are methods.

use serde::{Deserialize, Serialize};

use super::model::Schema;
use super::yaml::{flag, list, nullable};

/// Body limit of a webhook that declares none, in bytes.
const DEFAULT_WEBHOOK_BODY_BYTES: u64 = 4 * 1024 * 1024;

pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// An endpoint that external systems call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Webhook {
    /// Name in the address, unique.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// For people.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// For people; not enforced.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// As written; see [`Webhook::effective_access`].
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub access: String,
    /// As written, in bytes; see [`Webhook::body_limit`].
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub max_body_bytes: i64,
}

/// Who may call a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookAccess {
    /// Anyone.
    Public,
    /// Only callers with a principal.
    Authenticated,
}

impl Webhook {
    /// Who may call it; public when the manifest says nothing.
    pub fn effective_access(&self) -> WebhookAccess {
        if self.access == "authenticated" { WebhookAccess::Authenticated } else { WebhookAccess::Public }
    }

    /// Largest accepted body in bytes; 4 MiB when the manifest says nothing.
    pub fn body_limit(&self) -> u64 {
        u64::try_from(self.max_body_bytes).ok().filter(|n| *n > 0).unwrap_or(DEFAULT_WEBHOOK_BODY_BYTES)
    }
}

/// An operation for the signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Action {
    /// Name in the address, unique.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// As written; see [`Action::parsed_scope`].
    #[serde(deserialize_with = "nullable")]
    pub scope: String,
    /// Old spelling of `scope`, read only; validation moves it.
    #[serde(deserialize_with = "nullable", skip_serializing)]
    pub(super) resource_scope: String,
    /// Largest body in bytes.
    #[serde(deserialize_with = "nullable")]
    pub max_body_bytes: i64,
}

/// The resource an action is authorized against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionScope {
    /// One workspace.
    Workspace,
    /// One task.
    Task,
    /// One repository of a workspace.
    Repository,
}

impl Action {
    /// The scope as a value; `None` for an unknown word.
    pub fn parsed_scope(&self) -> Option<ActionScope> {
        match self.scope.as_str() {
            "workspace" => Some(ActionScope::Workspace),
            "task" => Some(ActionScope::Task),
            "repository" => Some(ActionScope::Repository),
            _ => None,
        }
    }
}

/// A source of entity references.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReferenceSource {
    /// Name, unique.
    #[serde(deserialize_with = "nullable")]
    pub source: String,
    /// Provider; unique together with `kind`.
    #[serde(deserialize_with = "nullable")]
    pub provider: String,
    /// Kind of entity.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// For people.
    #[serde(deserialize_with = "nullable")]
    pub display_name: String,
    /// For people.
    #[serde(deserialize_with = "nullable")]
    pub kind_label: String,
    /// Place in lists.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "is_zero")]
    pub order: i64,
}

/// A login option.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthProvider {
    /// Provider key.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Label of the button.
    #[serde(deserialize_with = "nullable")]
    pub display_name: String,
    /// Webhook key where the login starts.
    #[serde(deserialize_with = "nullable")]
    pub initiate: String,
}

/// A tool offered to agents.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentTool {
    /// Name, unique in the manifest.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// What it does, for the agent.
    #[serde(deserialize_with = "nullable")]
    pub description: String,
    /// Where it is offered.
    #[serde(deserialize_with = "list")]
    pub surfaces: Vec<String>,
    /// Schema of the arguments.
    #[serde(deserialize_with = "nullable")]
    pub input_schema: Schema,
    /// Schema of structured results.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Schema::is_empty")]
    pub output_schema: Schema,
    /// Hints about its effects.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "ToolAnnotations::is_empty")]
    pub annotations: ToolAnnotations,
}

/// Hints about what a tool does; the host passes them on and trusts none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolAnnotations {
    /// It changes nothing.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false", alias = "readOnlyHint", alias = "read_only")]
    pub read_only_hint: bool,
    /// It can destroy something.
    #[serde(
        deserialize_with = "flag",
        skip_serializing_if = "is_false",
        alias = "destructiveHint",
        alias = "destructive"
    )]
    pub destructive_hint: bool,
    /// Calling it twice is as calling it once.
    #[serde(
        deserialize_with = "flag",
        skip_serializing_if = "is_false",
        alias = "idempotentHint",
        alias = "idempotent"
    )]
    pub idempotent_hint: bool,
    /// It talks to the outside world.
    #[serde(
        deserialize_with = "flag",
        skip_serializing_if = "is_false",
        alias = "openWorldHint",
        alias = "open_world"
    )]
    pub open_world_hint: bool,
}

impl ToolAnnotations {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the plugin brings to the browser.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ui {
    /// Root-relative path of the script.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub bundle: String,
    /// Root-relative paths of style sheets.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub styles: Vec<String>,
    /// Pages.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<UiPage>,
    /// Keyboard shortcuts.
    #[serde(deserialize_with = "list", skip_serializing_if = "Vec::is_empty")]
    pub keybindings: Vec<Keybinding>,
}

/// A page of the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UiPage {
    /// Name.
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    /// Title for people.
    #[serde(deserialize_with = "nullable")]
    pub title: String,
    /// Path in the browser.
    #[serde(deserialize_with = "nullable")]
    pub path: String,
    /// Where it is shown.
    #[serde(deserialize_with = "nullable")]
    pub surface: String,
}

/// A keyboard shortcut.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Keybinding {
    /// Name, unique in the manifest.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Key combination, see `keybinding`.
    #[serde(deserialize_with = "nullable")]
    pub default: String,
    /// For people.
    #[serde(deserialize_with = "nullable")]
    pub description: String,
    /// Also while the user types.
    #[serde(deserialize_with = "flag", skip_serializing_if = "is_false")]
    pub allow_in_editor: bool,
}
