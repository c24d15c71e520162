//! Where a call is made: what a caller names, and the rules by which the host makes a verified place of it
//! (contract/rest.md §7, scopes).
//!
//! A name is a claim. It becomes part of a [`Place`] only after the host has found the thing among its own data, in the
//! caller's scope, and in its place: the session of this task, the repository of this workspace.

use crate::domain::{manifest::ActionScope, platform::task::TaskRepository};

/// Ids as a caller gives them, untrusted; empty when it names none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// Of a workspace.
    pub workspace: String,
    /// Of a task.
    pub task: String,
    /// Of a session.
    pub session: String,
    /// Of a repository.
    pub repository: String,
}

/// What has to be found before a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: the call is about no thing of the platform.
    Nowhere,
    /// This workspace.
    Workspace(String),
    /// This task; what else is named must belong to it.
    Task {
        /// Which.
        task: String,
        /// Its workspace, when it is named.
        workspace: Option<String>,
        /// Attached to it, when one is named.
        repository: Option<String>,
        /// One of its sessions, when one is named.
        session: Option<String>,
    },
    /// This session, and whatever task it is of.
    Session(String),
    /// This repository of this workspace.
    Repository {
        /// Whose.
        workspace: String,
        /// Which.
        repository: String,
    },
}

/// Ids that the host has verified; empty where they do not apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The workspace.
    pub workspace: String,
    /// The task.
    pub task: String,
    /// The session.
    pub session: String,
    /// The repository.
    pub repository: String,
    /// The branch that the session works on in the repository.
    pub head_branch: String,
}

/// Why there is no such place. The texts are the contract's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// 400.
    #[error("workspace action requires only workspaceId")]
    OnlyWorkspace,
    /// 400.
    #[error("task action requires taskId")]
    TaskMissing,
    /// 400.
    #[error("workspaceId does not match task")]
    OtherWorkspace,
    /// 400.
    #[error("repository action requires workspaceId and repositoryId")]
    OnlyRepository,
    /// 404.
    #[error("workspace not found")]
    NoWorkspace,
    /// 404.
    #[error("task not found")]
    NoTask,
    /// 404: also one that is not attached to the task or not of the workspace.
    #[error("repository not found")]
    NoRepository,
    /// 404: also one of another task.
    #[error("session not found")]
    NoSession,
    /// 404: the session works on another repository, or on no branch that the host knows.
    #[error("session repository checkout not found")]
    NoCheckout,
}

impl Named {
    /// What an action of this scope needs.
    pub fn for_action(self, scope: ActionScope) -> Result<Wanted, Misplaced> {
        let Self { workspace, task, session, repository } = self;
        match scope {
            ActionScope::Workspace => {
                let others = [&task, &session, &repository].into_iter().any(|id| !id.is_empty());
                if workspace.is_empty() || others {
                    Err(Misplaced::OnlyWorkspace)
                } else {
                    Ok(Wanted::Workspace(workspace))
                }
            }
            ActionScope::Task if task.is_empty() => Err(Misplaced::TaskMissing),
            ActionScope::Task => Ok(Wanted::Task {
                task,
                workspace: some(workspace),
                repository: some(repository),
                session: some(session),
            }),
            ActionScope::Repository => {
                let complete = !workspace.is_empty() && !repository.is_empty();
                let others = !task.is_empty() || !session.is_empty();
                if !complete || others {
                    return Err(Misplaced::OnlyRepository);
                }
                Ok(Wanted::Repository { workspace, repository })
            }
        }
    }

    /// What a tool call needs: a task, a session, both or none. A session stands for its task.
    pub fn for_tool(self) -> Wanted {
        let Self { task, session, .. } = self;
        match (task.is_empty(), session.is_empty()) {
            (true, true) => Wanted::Nowhere,
            (true, false) => Wanted::Session(session),
            (false, _) => Wanted::Task { task, workspace: None, repository: None, session: some(session) },
        }
    }
}

fn some(id: String) -> Option<String> {
    (!id.is_empty()).then_some(id)
}

/// The attachment of a repository to a task.
pub fn attached<'a>(repositories: &'a [TaskRepository], id: &str) -> Result<&'a TaskRepository, Misplaced> {
    repositories.iter().find(|attached| attached.repository_id == id).ok_or(Misplaced::NoRepository)
}

/// The branch that a session works on in a repository of its task: the one it last reported, else the one that the task
/// says work goes on in. A session is in one repository.
pub fn head_branch(
    attached: &TaskRepository,
    session_repository: &str,
    reported: Option<String>,
) -> Result<String, Misplaced> {
    if session_repository != attached.repository_id {
        return Err(Misplaced::NoCheckout);
    }
    let branches = [reported, Some(attached.checkout_branch.clone())];
    branches.into_iter().flatten().find(|branch| !branch.is_empty()).ok_or(Misplaced::NoCheckout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(workspace: &str, task: &str, session: &str, repository: &str) -> Named {
        let [workspace, task, session, repository] = [workspace, task, session, repository].map(str::to_owned);
        Named { workspace, task, session, repository }
    }

    fn repository(id: &str, checkout_branch: &str) -> TaskRepository {
        TaskRepository {
            id: "tr".to_owned(),
            repository_id: id.to_owned(),
            base_branch: "main".to_owned(),
            checkout_branch: checkout_branch.to_owned(),
            pull_request_number: None,
            position: 0,
        }
    }

    #[test]
    fn a_workspace_action_names_its_workspace_and_nothing_else() {
        let wanted = |named: Named| named.for_action(ActionScope::Workspace);
        assert_eq!(wanted(named("w", "", "", "")), Ok(Wanted::Workspace("w".to_owned())));
        for wrong in [Named::default(), named("w", "t", "", ""), named("w", "", "s", ""), named("w", "", "", "r")] {
            assert_eq!(wanted(wrong), Err(Misplaced::OnlyWorkspace));
        }
    }

    #[test]
    fn a_task_action_names_a_task_and_what_it_likes_of_it() {
        let wanted = |named: Named| named.for_action(ActionScope::Task);
        let id = |text: &str| some(text.to_owned());
        let task =
            |workspace, repository, session| Wanted::Task { task: "t".to_owned(), workspace, repository, session };
        assert_eq!(wanted(named("", "t", "", "")), Ok(task(None, None, None)));
        assert_eq!(wanted(named("w", "t", "s", "r")), Ok(task(id("w"), id("r"), id("s"))));
        for wrong in [Named::default(), named("w", "", "s", "r")] {
            assert_eq!(wanted(wrong), Err(Misplaced::TaskMissing));
        }
    }

    #[test]
    fn a_repository_action_names_a_repository_and_its_workspace() {
        let wanted = |named: Named| named.for_action(ActionScope::Repository);
        let both = Wanted::Repository { workspace: "w".to_owned(), repository: "r".to_owned() };
        assert_eq!(wanted(named("w", "", "", "r")), Ok(both));
        for wrong in [
            Named::default(),
            named("w", "", "", ""),
            named("", "", "", "r"),
            named("w", "t", "", "r"),
            named("w", "", "s", "r"),
        ] {
            assert_eq!(wanted(wrong), Err(Misplaced::OnlyRepository));
        }
    }

    #[test]
    fn a_tool_is_called_from_a_task_a_session_or_nowhere() {
        assert_eq!(Named::default().for_tool(), Wanted::Nowhere);
        assert_eq!(named("", "", "s", "").for_tool(), Wanted::Session("s".to_owned()));
        let session = some("s".to_owned());
        let task = Wanted::Task { task: "t".to_owned(), workspace: None, repository: None, session };
        assert_eq!(named("", "t", "s", "").for_tool(), task);
    }

    #[test]
    fn a_repository_counts_for_a_task_only_when_it_is_attached() {
        let repositories = [repository("a", ""), repository("b", "fix")];
        assert_eq!(attached(&repositories, "b"), Ok(&repositories[1]));
        assert_eq!(attached(&repositories, "c"), Err(Misplaced::NoRepository));
    }

    #[test]
    fn the_head_branch_is_what_the_session_reported_or_the_task_says() {
        let attached = repository("a", "fix");
        let reported = |text: &str| Some(text.to_owned());
        assert_eq!(head_branch(&attached, "a", reported("topic")).as_deref(), Ok("topic"));
        for unknown in [None, reported("")] {
            assert_eq!(head_branch(&attached, "a", unknown).as_deref(), Ok("fix"));
        }
        assert_eq!(head_branch(&repository("a", ""), "a", None), Err(Misplaced::NoCheckout));
        for elsewhere in ["", "b"] {
            assert_eq!(head_branch(&attached, elsewhere, reported("topic")), Err(Misplaced::NoCheckout));
        }
    }
}
