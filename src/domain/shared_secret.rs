//! A secret that the operator keeps and shares with plugins: what is told of it, and what may be asked (the shape of
//! platform-rest.md §9). Never its value.

use time::OffsetDateTime;
use uuid::Uuid;

use super::id::PluginId;

/// Longest name, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Longest workspace id, in bytes.
pub const MAX_WORKSPACE_ID_BYTES: usize = 512;

/// Where a secret belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretScope {
    /// To the whole host.
    Global,
    /// To this workspace.
    Workspace(String),
}

/// A shared secret without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSecret {
    /// Its id: what a plugin gives to RevealSecret.
    pub id: Uuid,
    /// The operator's word; need not be unique.
    pub name: String,
    /// Where it belongs.
    pub scope: SecretScope,
    /// Whether its value is other than the empty text.
    pub has_value: bool,
    /// The plugins that may reveal it, sorted.
    pub plugins: Vec<PluginId>,
    /// Whole seconds, UTC.
    pub created_at: OffsetDateTime,
    /// Whole seconds, UTC; of name, scope or value, not of the plugins.
    pub updated_at: OffsetDateTime,
}

/// Which secrets a list has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretFilter {
    /// All.
    All,
    /// Those of the whole host.
    Global,
    /// Those of any workspace.
    AnyWorkspace,
    /// Those of one workspace.
    Workspace {
        /// Which.
        id: String,
        /// And those of the whole host.
        include_global: bool,
    },
}

/// Why something asked about shared secrets cannot be taken. The text is for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharedSecretError {
    /// A name that cannot be one.
    #[error("name must have 1 to {MAX_NAME_BYTES} bytes and no control characters")]
    Name,
    /// A word that is no scope.
    #[error("scope must be \"global\" or \"workspace\"")]
    Scope,
    /// A secret of a workspace, and no workspace.
    #[error("scope \"workspace\" needs workspace_id")]
    NoWorkspace,
    /// A workspace for a secret that belongs to none.
    #[error("scope \"global\" has no workspace_id; send scope \"workspace\" with it")]
    WorkspaceOfGlobal,
    /// A workspace id that cannot be one.
    #[error("workspace_id must have at most {MAX_WORKSPACE_ID_BYTES} bytes and no control characters")]
    WorkspaceId,
}

/// Checks a name.
///
/// # Errors
/// [`SharedSecretError::Name`].
pub fn check_name(name: String) -> Result<String, SharedSecretError> {
    let lawful = !name.trim().is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(char::is_control);
    if lawful { Ok(name) } else { Err(SharedSecretError::Name) }
}

fn check_workspace(id: String) -> Result<String, SharedSecretError> {
    let lawful = id.len() <= MAX_WORKSPACE_ID_BYTES && !id.contains(char::is_control);
    if lawful { Ok(id) } else { Err(SharedSecretError::WorkspaceId) }
}

impl SecretScope {
    /// Reads the two fields of a request; an empty text is like none. A workspace alone implies its scope, nothing at
    /// all the whole host.
    ///
    /// # Errors
    /// [`SharedSecretError`] when they contradict each other.
    pub fn new(scope: Option<String>, workspace_id: Option<String>) -> Result<Self, SharedSecretError> {
        let workspace_id = workspace_id.filter(|id| !id.is_empty());
        match (scope.as_deref().unwrap_or_default(), workspace_id) {
            ("" | "workspace", Some(id)) => check_workspace(id).map(Self::Workspace),
            ("" | "global", None) => Ok(Self::Global),
            ("workspace", None) => Err(SharedSecretError::NoWorkspace),
            ("global", Some(_)) => Err(SharedSecretError::WorkspaceOfGlobal),
            _ => Err(SharedSecretError::Scope),
        }
    }

    /// The stable word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Workspace(_) => "workspace",
        }
    }

    /// The workspace, when it belongs to one.
    pub fn workspace_id(&self) -> Option<&str> {
        match self {
            Self::Global => None,
            Self::Workspace(id) => Some(id),
        }
    }
}

impl SecretFilter {
    /// Reads the query of a list; an empty text is like none.
    ///
    /// # Errors
    /// [`SharedSecretError`] when its parts contradict each other.
    pub fn new(
        scope: Option<String>,
        workspace_id: Option<String>,
        include_global: bool,
    ) -> Result<Self, SharedSecretError> {
        let workspace_id = workspace_id.filter(|id| !id.is_empty());
        match (scope.as_deref().unwrap_or_default(), workspace_id) {
            ("" | "workspace", Some(id)) => Ok(Self::Workspace { id: check_workspace(id)?, include_global }),
            ("", None) => Ok(Self::All),
            ("global", None) => Ok(Self::Global),
            ("workspace", None) if include_global => Ok(Self::All),
            ("workspace", None) => Ok(Self::AnyWorkspace),
            ("global", Some(_)) => Err(SharedSecretError::WorkspaceOfGlobal),
            _ => Err(SharedSecretError::Scope),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(scope: &str, workspace: &str) -> Result<SecretScope, SharedSecretError> {
        SecretScope::new(Some(scope.to_owned()), Some(workspace.to_owned()))
    }

    #[test]
    fn scope_and_workspace_agree_or_are_refused() {
        let workspace = SecretScope::Workspace("w1".to_owned());
        assert_eq!(SecretScope::new(None, None), Ok(SecretScope::Global));
        assert_eq!(scope("global", ""), Ok(SecretScope::Global));
        assert_eq!(scope("workspace", "w1"), Ok(workspace.clone()));
        assert_eq!(scope("", "w1"), Ok(workspace));
        assert_eq!(scope("workspace", ""), Err(SharedSecretError::NoWorkspace));
        assert_eq!(scope("global", "w1"), Err(SharedSecretError::WorkspaceOfGlobal));
        assert_eq!(scope("Global", ""), Err(SharedSecretError::Scope));
        assert_eq!(scope("workspace", "a\nb"), Err(SharedSecretError::WorkspaceId));
    }

    #[test]
    fn a_list_is_of_one_scope_of_one_workspace_or_of_all() {
        let filter = |scope: &str, workspace: &str, global| {
            SecretFilter::new(Some(scope.to_owned()), Some(workspace.to_owned()), global)
        };
        let of = |include_global| Ok(SecretFilter::Workspace { id: "w".to_owned(), include_global });
        assert_eq!(SecretFilter::new(None, None, false), Ok(SecretFilter::All));
        assert_eq!(filter("global", "", false), Ok(SecretFilter::Global));
        assert_eq!(filter("workspace", "", false), Ok(SecretFilter::AnyWorkspace));
        assert_eq!(filter("workspace", "", true), Ok(SecretFilter::All));
        assert_eq!(filter("", "w", false), of(false));
        assert_eq!(filter("workspace", "w", true), of(true));
        assert_eq!(filter("global", "w", true), Err(SharedSecretError::WorkspaceOfGlobal));
        assert_eq!(filter("all", "", false), Err(SharedSecretError::Scope));
    }

    #[test]
    fn a_name_is_visible_text_within_its_bound() {
        for name in ["deploy key", "é", &"n".repeat(200)] {
            assert_eq!(check_name(name.to_owned()), Ok(name.to_owned()));
        }
        for name in ["", "  ", "a\nb", "\0", &"n".repeat(201)] {
            assert_eq!(check_name(name.to_owned()), Err(SharedSecretError::Name), "{name:?}");
        }
    }
}
