//! Workspaces: what everything else belongs to.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::{
    refusal::Refusal,
    text::{check_name, check_required, check_text},
};

/// Longest prefix of task identifiers, in bytes.
const MAX_PREFIX_BYTES: usize = 16;

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// A UUID of version 7.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Whose it is; empty when nobody's.
    pub owner_id: String,
    /// Where tasks run unless they say.
    pub default_executor_id: Option<String>,
    /// In which environment.
    pub default_environment_id: Option<String>,
    /// With which agent profile.
    pub default_agent_profile_id: Option<String>,
    /// With which agent profile the workspace itself is set up.
    pub default_config_agent_profile_id: Option<String>,
    /// Start of the identifiers of its tasks (`KAN` gives `KAN-7`); empty for none.
    pub task_prefix: String,
    /// The last number given.
    pub task_sequence: i64,
    /// Made, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Changed, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// Goes up by one with every change.
    pub version: i64,
    /// Whether its deletion was begun. It is finished sooner or later; meanwhile the workspace takes no new tasks and
    /// no changes.
    #[serde(default)]
    pub deleting: bool,
}

/// What a writer says about a workspace: all of it for a new one, what changes for an old one. An empty id of a default
/// takes it away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceDraft {
    /// Needed for a new one.
    pub name: Option<String>,
    /// Empty takes it away.
    pub description: Option<String>,
    /// Whose it is.
    pub owner_id: Option<String>,
    /// Where tasks run.
    pub default_executor_id: Option<String>,
    /// In which environment.
    pub default_environment_id: Option<String>,
    /// With which agent profile.
    pub default_agent_profile_id: Option<String>,
    /// For the workspace itself.
    pub default_config_agent_profile_id: Option<String>,
    /// Start of task identifiers: capital letters and digits, a letter first.
    pub task_prefix: Option<String>,
}

impl Workspace {
    /// A new workspace.
    pub fn new(id: String, draft: &WorkspaceDraft, now: OffsetDateTime) -> Result<Self, Refusal> {
        let mut workspace = Self {
            id,
            name: String::new(),
            description: None,
            owner_id: String::new(),
            default_executor_id: None,
            default_environment_id: None,
            default_agent_profile_id: None,
            default_config_agent_profile_id: None,
            task_prefix: String::new(),
            task_sequence: 0,
            created_at: now,
            updated_at: now,
            version: 1,
            deleting: false,
        };
        workspace.apply(draft)?;
        check_required("name", &workspace.name)?;
        Ok(workspace)
    }

    /// Takes over what the draft says.
    pub fn apply(&mut self, draft: &WorkspaceDraft) -> Result<(), Refusal> {
        if let Some(name) = &draft.name {
            check_required("name", name)?;
            self.name.clone_from(name);
        }
        if let Some(description) = &draft.description {
            check_text("description", description)?;
            self.description = given(description);
        }
        if let Some(owner) = &draft.owner_id {
            check_name("owner_id", owner)?;
            self.owner_id.clone_from(owner);
        }
        if let Some(prefix) = &draft.task_prefix {
            check_prefix(prefix)?;
            self.task_prefix.clone_from(prefix);
        }
        for (field, text, slot) in [
            ("default_executor_id", &draft.default_executor_id, &mut self.default_executor_id),
            ("default_environment_id", &draft.default_environment_id, &mut self.default_environment_id),
            ("default_agent_profile_id", &draft.default_agent_profile_id, &mut self.default_agent_profile_id),
            (
                "default_config_agent_profile_id",
                &draft.default_config_agent_profile_id,
                &mut self.default_config_agent_profile_id,
            ),
        ] {
            if let Some(text) = text {
                check_name(field, text)?;
                *slot = given(text);
            }
        }
        Ok(())
    }

    /// Refuses what must not be done any more once its deletion has begun.
    pub fn expect_open(&self) -> Result<(), Refusal> {
        if self.deleting { Err(Refusal::BeingDeleted(self.id.clone())) } else { Ok(()) }
    }

    /// The identifier of its next task, when it gives any.
    pub fn next_identifier(&mut self) -> Option<String> {
        if self.task_prefix.is_empty() {
            return None;
        }
        self.task_sequence += 1;
        Some(format!("{}-{}", self.task_prefix, self.task_sequence))
    }
}

/// The text, unless it is empty.
pub fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn check_prefix(prefix: &str) -> Result<(), Refusal> {
    let lawful = prefix.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        && prefix.bytes().next().is_none_or(|byte| byte.is_ascii_uppercase());
    if prefix.len() > MAX_PREFIX_BYTES || !lawful {
        let problem = format!("must be at most {MAX_PREFIX_BYTES} capital letters and digits, a letter first");
        return Err(Refusal::Invalid { field: "task_prefix", problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_with_a_prefix_numbers_its_tasks() {
        let draft = WorkspaceDraft { name: Some("Board".to_owned()), ..WorkspaceDraft::default() };
        let mut plain = Workspace::new("w".to_owned(), &draft, OffsetDateTime::UNIX_EPOCH).unwrap();
        assert_eq!(plain.next_identifier(), None);
        plain.apply(&WorkspaceDraft { task_prefix: Some("KAN".to_owned()), ..WorkspaceDraft::default() }).unwrap();
        assert_eq!(
            (plain.next_identifier(), plain.next_identifier()),
            (Some("KAN-1".to_owned()), Some("KAN-2".to_owned()))
        );
        for prefix in ["kan", "1A", "A-B", &"A".repeat(17)] {
            let draft = WorkspaceDraft { task_prefix: Some(prefix.to_owned()), ..WorkspaceDraft::default() };
            assert!(plain.apply(&draft).is_err(), "{prefix}");
        }
    }

    #[test]
    fn a_new_workspace_needs_a_name() {
        let new = Workspace::new("w".to_owned(), &WorkspaceDraft::default(), OffsetDateTime::UNIX_EPOCH);
        assert_eq!(new, Err(Refusal::Required("name")));
    }
}
