//! Repositories. A deleted one leaves the lists and stays where tasks name it.

use super::{By, PlatformError, Versioned as _, new_id};
use crate::{
    domain::platform::{
        Map, Scope,
        event::{self, Happened},
        merged,
        page::{Page, PageRequest},
        refusal::{Kind, Refusal},
        repository::{Repository, RepositoryFields},
        workspace::Workspace,
    },
    store::platform::{PlatformStore, Work},
};

/// The service.
#[derive(Debug, Clone)]
pub struct Repositories {
    store: PlatformStore,
}

impl Repositories {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// A page of a workspace's repositories, the newest first, ids in order; empty when there is no such workspace.
    pub async fn list(
        &self,
        scope: &Scope,
        workspace_id: &str,
        page: &PageRequest,
    ) -> Result<Page<Repository>, PlatformError> {
        self.store.repositories(scope, workspace_id, page).await
    }

    /// How many repositories that list has.
    pub async fn count(&self, scope: &Scope, workspace_id: &str) -> Result<u64, PlatformError> {
        self.store.count_repositories(scope, workspace_id).await
    }

    /// One repository that was not deleted.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Repository, PlatformError> {
        let repository: Repository = self.store.find(scope, id).await?;
        if repository.deleted_at.is_some() {
            return Err(Refusal::not_found(Kind::Repository, id).into());
        }
        Ok(repository)
    }

    /// A new repository. Tells `repository.created`.
    pub async fn create(
        &self,
        by: &By,
        workspace_id: &str,
        fields: RepositoryFields,
    ) -> Result<Repository, PlatformError> {
        let fields = &fields.checked()?;
        let work = |work: Work| async move {
            let workspace: Workspace = work.get(workspace_id).await?;
            create(&work, &workspace.id, fields.clone()).await
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes the fields that the patch names. Tells `repository.updated`; nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        patch: &Map,
        expected: Option<i64>,
    ) -> Result<Repository, PlatformError> {
        let work = |work: Work| async move {
            let mut repository = existing(&work, id).await?;
            repository.expect(expected)?;
            let fields = merged(&repository.fields, patch)?.checked()?;
            if fields != repository.fields {
                repository.fields = fields;
                repository.touch(work.now());
                work.update(&repository).await?;
                work.tell(event::repository(Happened::Updated, &repository));
            }
            Ok(repository)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Takes a repository out of the lists. Tells `repository.deleted`.
    pub async fn delete(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let mut repository = existing(&work, id).await?;
            repository.expect(expected)?;
            repository.deleted_at = Some(work.now());
            repository.touch(work.now());
            work.update(&repository).await?;
            work.tell(event::repository(Happened::Deleted, &repository));
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}

async fn existing(work: &Work, id: &str) -> Result<Repository, PlatformError> {
    let repository: Repository = work.get(id).await?;
    if repository.deleted_at.is_some() {
        return Err(Refusal::not_found(Kind::Repository, id).into());
    }
    Ok(repository)
}

/// A new repository with checked fields in a workspace that exists.
pub(super) async fn create(
    work: &Work,
    workspace_id: &str,
    fields: RepositoryFields,
) -> Result<Repository, PlatformError> {
    let now = work.now();
    let repository = Repository {
        id: new_id(),
        workspace_id: workspace_id.to_owned(),
        fields,
        created_at: now,
        updated_at: now,
        version: 1,
        deleted_at: None,
    };
    work.insert(&repository).await?;
    work.tell(event::repository(Happened::Created, &repository));
    Ok(repository)
}
