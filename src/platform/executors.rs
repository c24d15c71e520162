//! Executors and their profiles.

use super::{By, PlatformError, Versioned as _, new_id};
use crate::{
    domain::platform::{
        Map, Scope,
        event::{self, Happened},
        merged,
        page::{Page, PageRequest},
        profile::{Executor, ExecutorFields, ExecutorProfile, ExecutorProfileFields},
        refusal::{Kind, Refusal},
    },
    store::platform::{PlatformStore, Work},
};

/// Where a profile is: its own id, and the executor whose it must be.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Of this executor.
    pub executor_id: &'a str,
    /// This profile.
    pub profile_id: &'a str,
}

impl At<'_> {
    fn check(self, found: ExecutorProfile) -> Result<ExecutorProfile, Refusal> {
        match found.executor_id == self.executor_id {
            true => Ok(found),
            false => Err(Refusal::not_found(Kind::ExecutorProfile, self.profile_id)),
        }
    }
}

/// The service.
#[derive(Debug, Clone)]
pub struct Executors {
    store: PlatformStore,
}

impl Executors {
    pub(super) fn new(store: PlatformStore) -> Self {
        Self { store }
    }

    /// All executors, the oldest first.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<Executor>, PlatformError> {
        self.store.executors(scope).await
    }

    /// One executor.
    pub async fn get(&self, scope: &Scope, id: &str) -> Result<Executor, PlatformError> {
        self.store.find(scope, id).await
    }

    /// A page of profiles by executor, then name, then id. One whose executor is gone has no type.
    pub async fn profiles(&self, scope: &Scope, page: &PageRequest) -> Result<Page<ExecutorProfile>, PlatformError> {
        self.store.executor_profiles(scope, None, page).await
    }

    /// A page of an executor's profiles by name, then id.
    pub async fn profiles_of(
        &self,
        scope: &Scope,
        executor_id: &str,
        page: &PageRequest,
    ) -> Result<Page<ExecutorProfile>, PlatformError> {
        self.store.executor_profiles(scope, Some(executor_id), page).await
    }

    /// How many profiles there are, of one executor or of all.
    pub async fn count_profiles(&self, scope: &Scope, executor_id: Option<&str>) -> Result<u64, PlatformError> {
        self.store.count_executor_profiles(scope, executor_id).await
    }

    /// One profile.
    pub async fn profile(&self, scope: &Scope, at: At<'_>) -> Result<ExecutorProfile, PlatformError> {
        let mut profile = at.check(self.store.find(scope, at.profile_id).await?)?;
        profile.executor_type = match self.store.find::<Executor>(scope, &profile.executor_id).await {
            Ok(executor) => Some(executor.fields.executor_type),
            Err(PlatformError::Refused(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(profile)
    }

    /// A new executor. Tells `executor.created`.
    pub async fn create(&self, by: &By, fields: ExecutorFields) -> Result<Executor, PlatformError> {
        let fields = &fields.checked()?;
        let work = |work: Work| async move {
            let now = work.now();
            let executor =
                Executor { id: new_id(), fields: fields.clone(), created_at: now, updated_at: now, version: 1 };
            work.insert(&executor).await?;
            work.tell(event::executor(Happened::Created, &executor));
            Ok(executor)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes the fields that the patch names. Tells `executor.updated`; nothing when nothing changes.
    pub async fn update(
        &self,
        by: &By,
        id: &str,
        patch: &Map,
        expected: Option<i64>,
    ) -> Result<Executor, PlatformError> {
        let work = |work: Work| async move {
            let mut executor: Executor = work.get(id).await?;
            executor.expect(expected)?;
            let fields = merged(&executor.fields, patch)?.checked()?;
            if fields != executor.fields {
                executor.fields = fields;
                executor.touch(work.now());
                work.update(&executor).await?;
                work.tell(event::executor(Happened::Updated, &executor));
            }
            Ok(executor)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes an executor; its profiles stay without a type. Tells `executor.deleted`.
    pub async fn delete(&self, by: &By, id: &str, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let mut executor: Executor = work.get(id).await?;
            executor.expect(expected)?;
            work.delete::<Executor>(id).await?;
            work.tell(event::executor(Happened::Deleted, &executor));
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// A new profile of an executor. Tells `executor.profile.created`.
    pub async fn create_profile(
        &self,
        by: &By,
        executor_id: &str,
        fields: ExecutorProfileFields,
    ) -> Result<ExecutorProfile, PlatformError> {
        let fields = &fields.checked()?;
        let work = |work: Work| async move {
            let executor: Executor = work.get(executor_id).await?;
            let profile = ExecutorProfile {
                id: new_id(),
                executor_id: executor.id,
                executor_type: Some(executor.fields.executor_type),
                fields: fields.clone(),
                created_at: work.now(),
                updated_at: work.now(),
                version: 1,
            };
            work.insert(&profile).await?;
            work.tell(event::executor_profile(Happened::Created, &profile));
            Ok(profile)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Changes the fields that the patch names. Tells `executor.profile.updated`; nothing when nothing changes.
    pub async fn update_profile(
        &self,
        by: &By,
        at: At<'_>,
        patch: &Map,
        expected: Option<i64>,
    ) -> Result<ExecutorProfile, PlatformError> {
        let work = |work: Work| async move {
            let mut profile = existing(&work, at).await?;
            profile.expect(expected)?;
            let executor = work.peek::<Executor>(&profile.executor_id).await?;
            profile.executor_type = executor.map(|executor| executor.fields.executor_type);
            let fields = merged(&profile.fields, patch)?.checked()?;
            if fields != profile.fields {
                profile.fields = fields;
                profile.touch(work.now());
                work.update(&profile).await?;
                work.tell(event::executor_profile(Happened::Updated, &profile));
            }
            Ok(profile)
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }

    /// Deletes a profile. Tells `executor.profile.deleted`.
    pub async fn delete_profile(&self, by: &By, at: At<'_>, expected: Option<i64>) -> Result<(), PlatformError> {
        let work = |work: Work| async move {
            let mut profile = existing(&work, at).await?;
            profile.expect(expected)?;
            work.delete::<ExecutorProfile>(&profile.id).await?;
            work.tell(event::executor_profile(Happened::Deleted, &profile));
            Ok(())
        };
        self.store.write(&by.scope, by.once.as_ref(), work).await
    }
}

async fn existing(work: &Work, at: At<'_>) -> Result<ExecutorProfile, PlatformError> {
    Ok(at.check(work.get(at.profile_id).await?)?)
}
