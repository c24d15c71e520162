//! Workspaces. A new one begins with a board (platform-rest.md §3).

use super::{By, PlatformError, Versioned as _, new_id, workflows};
use crate::{
    domain::platform::{
        Scope,
        event::{self, Happened},
        page::{Page, PageRequest},
        refusal::{Kind, Refusal},
        template,
        workflow::WorkflowDraft,
        workspace::{Workspace, WorkspaceDraft},
    },
    store::platform::PlatformStore,
};

/// Most rows of a kind that go with a workspace in one transaction.
const ROWS: u64 = 2000;

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

    /// A new workspace with the default board. Tells `workspace.created`, `workflow.created` and `workflow_step.created`.
    pub async fn create(&self, by: &By, draft: &WorkspaceDraft) -> Result<Workspace, PlatformError> {
        let id = &new_id();
        let work = |work: crate::store::platform::Work| async move {
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
        let work = |work: crate::store::platform::Work| async move {
            let mut workspace: Workspace = work.get(id).await?;
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

    /// Deletes a workspace with everything in it; `confirm_name` must be its name. Tells `workspace.deleted`, which speaks
    /// for all that went with it.
    ///
    /// One with few rows goes in one transaction. Of a large one the tasks go first, `ROWS` rows at a time: one
    /// statement for all of them would take longer than `timing.database_timeout`, and nobody else could write while it
    /// runs. So it is seen to shrink, and is told of as deleted when it is gone. It is not hidden before: that would cost every
    /// read a look at whose each row is, for something that happens seldom and takes seconds. A host that ends meanwhile
    /// leaves it with fewer tasks and the same version: the same request then deletes the rest.
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
        let mut confirmed = false;
        loop {
            let work = |work: crate::store::platform::Work| async move {
                let mut workspace: Workspace = work.get(id).await?;
                if !confirmed {
                    workspace.expect(expected)?;
                    if workspace.name != confirm_name {
                        return Err(Refusal::NotConfirmed.into());
                    }
                }
                if work.is_large(id, rows).await? {
                    return Err(too_large(id).into());
                }
                work.delete::<Workspace>(id).await?;
                work.tell(event::workspace(Happened::Deleted, &workspace));
                Ok(())
            };
            let done = self.store.write(&by.scope, by.once.as_ref(), work).await;
            match done {
                // Its idempotency key was not used up: nothing of the transaction is kept.
                Err(PlatformError::Refused(refusal)) if refusal == too_large(id) => {
                    confirmed = true;
                    self.store.clear_workspace(id, rows).await?;
                }
                done => return done,
            }
        }
    }
}

/// What the transaction that would delete it is given up with.
fn too_large(id: &str) -> Refusal {
    Refusal::NotEmpty { kind: Kind::Workspace, id: id.to_owned(), holds: "many rows" }
}
