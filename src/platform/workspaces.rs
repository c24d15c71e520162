//! Workspaces. A new one begins with a board (platform-rest.md §3).

use super::{
    By, PlatformError, Versioned as _,
    clearing::{self, Begun, ROWS},
    new_id, workflows,
};
use crate::{
    domain::platform::{
        Scope,
        event::{self, Happened},
        page::{Page, PageRequest},
        refusal::Refusal,
        template,
        workflow::WorkflowDraft,
        workspace::{Workspace, WorkspaceDraft},
    },
    store::platform::{Holder, PlatformStore, Work},
};

/// The service.
#[derive(Debug, Clone)]
pub struct Workspaces {
    store: PlatformStore,
}

impl Workspaces {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of workspaces, the newest first, ids in order.
    pub async fn list(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Workspace>, PlatformError> {
        self.store.workspaces(scope, page).await
    }

    /// How many workspaces there are.
    pub async fn count(&self, scope: &Scope) -> Result<u64, PlatformError> {
        self.store.count_workspaces(scope).await
    }

    /// One workspace.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Workspace, PlatformError> {
        self.store.find(scope, id).await
    }

    /// Whether there is one: refused as not found when not. For what asks again and again.
    pub async fn see(&self, scope: &Scope, id: &str) -> Result<(), PlatformError> {
        self.store.see_workspace(scope, id).await
    }

    /// A new workspace with the default board. Tells `workspace.created`, `workflow.created` and
    /// `workflow_step.created`.
    pub async fn create(&self, by: &By, draft: &WorkspaceDraft) -> Result<Workspace, PlatformError> {
        let id = &new_id();
        let work = |work: Work| async move {
            let workspace = Workspace::new(id.clone(), draft, work.now())?;
            work.insert(&workspace).await?;
            work.tell(event::workspace(Happened::Created, &workspace));
            let board = WorkflowDraft::default();
            workflows::create(&work, &workspace.id, &board, Some(template::DEFAULT)).await?;
            Ok(workspace)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes a workspace. Tells `workspace.updated`; nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        draft: &WorkspaceDraft,
        expected: Option<i64>,
    ) -> Result<Workspace, PlatformError> {
        let work = |work: Work| async move {
            let mut workspace: Workspace = work.get(id).await?;
            workspace.expect_open()?;
            workspace.expect(expected)?;
            let before = workspace.clone();
            workspace.apply(draft)?;
            if workspace != before {
                workspace.touch(work.now());
                work.update(&workspace).await?;
                work.tell(event::workspace(Happened::Updated, &workspace));
            }
            Ok(workspace)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a workspace with everything in it; `confirm_name` must be its name. Tells `workspace.deleted`, which
    /// speaks for all that goes with it.
    ///
    /// One with few rows goes in one transaction. Of a large one the tasks go first (`clearing`), each told by its
    /// `task.deleted`; it is marked before, takes no new tasks and no changes from then on, and is told of as deleted
    /// when it is gone. It is not hidden meanwhile: that would cost every read a look at whose each row is, for
    /// something that happens seldom and takes seconds. What a host that ends leaves of it the next one deletes
    /// ([`Self::finish_deletions`]), and so does the same request.
    pub async fn delete(
        &self,
        by: &By,
        id: &str,
        confirm_name: &str,
        expected: Option<i64>,
    ) -> Result<(), PlatformError> {
        self.delete_by(by, id, confirm_name, expected, ROWS).await
    }

    /// As [`Self::delete`], at most about `rows` rows in a transaction.
    pub(super) async fn delete_by(
        &self,
        by: &By,
        id: &str,
        confirm_name: &str,
        expected: Option<i64>,
        rows: u64,
    ) -> Result<(), PlatformError> {
        let confirmed = async |work: &Work| {
            let mut workspace: Workspace = work.get(id).await?;
            workspace.expect(expected)?;
            match workspace.name == confirm_name {
                true => Ok(workspace),
                false => Err(PlatformError::from(Refusal::NotConfirmed)),
            }
        };
        let whole = async |work: Work| remove(&work, confirmed(&work).await?, rows).await;
        match self.store.write(&by.scope, by.once.as_ref(), whole).await {
            Err(error) if clearing::is_too_large(&error) => {}
            done => return done,
        }
        let mark = async |work: Work| {
            let workspace = Workspace { deleting: true, ..confirmed(&work).await? };
            work.update(&workspace).await
        };
        self.store.write(&by.scope, None, mark).await?;
        self.finish(by, id, rows).await
    }

    /// Goes on with deletions that were begun, by an earlier host or by a request that was cut off.
    pub async fn finish_deletions(&self) -> Result<(), PlatformError> {
        loop {
            let begun = self.store.workspaces_being_deleted().await?;
            if begun.is_empty() {
                return Ok(());
            }
            for id in begun {
                self.finish(&By::operator(), &id, ROWS).await?;
                tracing::info!(workspace.id = id, "the deletion of a workspace was finished");
            }
        }
    }

    /// The rest of a deletion that was begun; nothing when somebody else was faster.
    async fn finish(&self, by: &By, id: &str, rows: u64) -> Result<(), PlatformError> {
        let rest = async |work: Work, _: Begun| remove(&work, work.get(id).await?, rows).await;
        clearing::empty(&self.store, &by.scope, Holder::Workspace(id), rows).await?;
        match clearing::delete(&self.store, by, Begun::EARLIER, Holder::Workspace(id), rows, rest).await {
            Err(PlatformError::Refused(Refusal::NotFound { .. })) => Ok(()),
            done => done,
        }
    }
}

async fn remove(work: &Work, workspace: Workspace, rows: u64) -> Result<(), PlatformError> {
    clearing::refuse_large(work, Holder::Workspace(&workspace.id), rows).await?;
    work.delete_secrets_of(&workspace.id).await?;
    work.delete::<Workspace>(&workspace.id).await?;
    work.tell(event::workspace(Happened::Deleted, &workspace));
    Ok(())
}
