//! Verifying where a call into a plugin is made (contract/rest.md §7): what the caller names is looked up in its scope,
//! and must belong together. What the rules are is `domain::calls::place`'s knowledge.

use super::{Platform, PlatformError};
use crate::{
    domain::{
        calls::place::{Misplaced, Place, Wanted, attached, head_branch},
        platform::{Scope, page::PageRequest, session::Session, task::Task},
    },
    store::db::DbFault,
};

/// Why a place was not verified.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It does not exist, or not for this caller.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// It is not known whether it does.
    #[error(transparent)]
    Database(#[from] DbFault),
}

/// What was asked for by its id is not there.
fn or(misplaced: Misplaced) -> impl FnOnce(PlatformError) -> PlaceError {
    move |error| match error {
        PlatformError::Refused(_) => misplaced.into(),
        PlatformError::Database(fault) => fault.into(),
    }
}

impl Platform {
    /// Finds what is wanted, as far as the scope sees it. What it says is true when it is read; a thing may be gone a
    /// moment later.
    pub async fn place(&self, scope: &Scope, wanted: &Wanted) -> Result<Place, PlaceError> {
        match wanted {
            Wanted::Nowhere => Ok(Place::default()),
            Wanted::Workspace(id) => {
                self.workspaces.see(scope, id).await.map_err(or(Misplaced::NoWorkspace))?;
                Ok(Place { workspace: id.clone(), ..Place::default() })
            }
            // In boxes: a future that asks the database is many times one that does not.
            Wanted::Repository { workspace, repository } => {
                Box::pin(self.of_repository(scope, workspace, repository)).await
            }
            Wanted::Session(id) => Box::pin(self.of_session(scope, id)).await,
            Wanted::Task { task, workspace, repository, session } => {
                let named = (workspace.as_deref(), repository.as_deref(), session.as_deref());
                Box::pin(self.of_task(scope, task, named)).await
            }
        }
    }

    async fn of_repository(&self, scope: &Scope, workspace: &str, repository: &str) -> Result<Place, PlaceError> {
        let found = self.repositories.get(scope, repository).await.map_err(or(Misplaced::NoRepository))?;
        if found.workspace_id != workspace {
            return Err(Misplaced::NoRepository.into());
        }
        Ok(Place { workspace: found.workspace_id, repository: found.id, ..Place::default() })
    }

    async fn of_session(&self, scope: &Scope, id: &str) -> Result<Place, PlaceError> {
        let session = self.sessions.get(scope, id).await.map_err(or(Misplaced::NoSession))?;
        let task = self.tasks.get(scope, &session.task_id).await.map_err(or(Misplaced::NoSession))?;
        Ok(Place { workspace: task.workspace_id, task: task.id, session: session.id, ..Place::default() })
    }

    /// What is named beside the task: its workspace, a repository and a session.
    async fn of_task(
        &self,
        scope: &Scope,
        task: &str,
        (workspace, repository, session): (Option<&str>, Option<&str>, Option<&str>),
    ) -> Result<Place, PlaceError> {
        let task = self.tasks.get(scope, task).await.map_err(or(Misplaced::NoTask))?;
        if workspace.is_some_and(|workspace| workspace != task.workspace_id) {
            return Err(Misplaced::OtherWorkspace.into());
        }
        self.in_task(scope, task, repository, session).await
    }

    async fn in_task(
        &self,
        scope: &Scope,
        task: Task,
        repository: Option<&str>,
        session: Option<&str>,
    ) -> Result<Place, PlaceError> {
        let attached = match repository {
            Some(id) => {
                let attached = attached(&task.repositories, id)?;
                // One that was deleted stays attached.
                self.repositories.get(scope, id).await.map_err(or(Misplaced::NoRepository))?;
                Some(attached)
            }
            None => None,
        };
        let session = match session {
            Some(id) => {
                let session = self.sessions.get(scope, id).await.map_err(or(Misplaced::NoSession))?;
                Some(session).filter(|session| session.task_id == task.id).ok_or(Misplaced::NoSession)?.into()
            }
            None => None,
        };
        let head_branch = match (attached, &session) {
            (Some(attached), Some(session)) => {
                head_branch(attached, &session.repository_id, self.reported_branch(scope, session).await?)?
            }
            _ => String::new(),
        };
        Ok(Place {
            repository: attached.map(|attached| attached.repository_id.clone()).unwrap_or_default(),
            session: session.map(|session: Session| session.id).unwrap_or_default(),
            workspace: task.workspace_id,
            task: task.id,
            head_branch,
        })
    }

    /// The branch in the session's newest snapshot.
    async fn reported_branch(&self, scope: &Scope, session: &Session) -> Result<Option<String>, PlaceError> {
        let newest = PageRequest::default().cut(1);
        let page = self.code.snapshots(scope, &session.id, &newest).await.map_err(or(Misplaced::NoSession))?;
        Ok(page.items.into_iter().next().map(|snapshot| snapshot.fields.branch))
    }
}
