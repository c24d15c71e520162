//! The marketplace in the database: its sources, and whether plugins are updated automatically when their record does
//! not say.
//!
//! Which addresses are lawful is `domain::marketplace`'s decision. Every call leaves the same rows when it is done
//! twice, so all of them are repeated when their connection is lost (`Db::repeat`).

use sea_orm::{
    ActiveModelTrait, ActiveValue::Set, ColumnTrait, DbErr, EntityTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QuerySelect, sea_query::OnConflict,
};
use time::OffsetDateTime;

use super::db::{Db, DbFault, MayBeFault};
use crate::{
    config::Limits,
    domain::marketplace::{BUILTIN_ID, BUILTIN_NAME, Source},
    entities::{
        instance_setting,
        marketplace_source::{Column, Entity, Model},
    },
};

/// Key of the setting for plugins whose record does not say.
const AUTO_UPDATE: &str = "plugins.auto_update_default";

/// Reads and writes sources; clones share the database.
#[derive(Clone, Debug)]
pub struct MarketplaceStore {
    db: Db,
    most: usize,
}

/// Why a call about sources failed. The texts are for the operator, but for the last.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceStoreError {
    /// No such source.
    #[error("marketplace source not found")]
    NotFound,
    /// Another source has the address.
    #[error("a source with this url already exists")]
    Exists,
    /// A setting names it.
    #[error("the built-in source cannot be deleted")]
    BuiltIn,
    /// As many as may be.
    #[error("there are {0} sources already (limits.marketplace_sources): delete one that is not needed")]
    Full(usize),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbFault),
}

impl From<DbErr> for SourceStoreError {
    fn from(error: DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl MayBeFault for SourceStoreError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Database(fault) => Some(fault),
            Self::NotFound | Self::Exists | Self::BuiltIn | Self::Full(_) => None,
        }
    }
}

impl MarketplaceStore {
    /// A store with the host's limits.
    pub fn new(db: Db, limits: &Limits) -> Self {
        Self { db, most: limits.marketplace_sources }
    }

    /// Every source, in the order in which they count: the built-in one, then the oldest first.
    pub async fn list(&self) -> Result<Vec<Source>, SourceStoreError> {
        let work = async || Ok::<_, SourceStoreError>(Entity::find().all(self.db.reader()).await?);
        let mut sources: Vec<_> = self.db.repeat(work).await?.into_iter().map(source).collect();
        sources.sort_by(|a, b| (!a.builtin, a.created_at, &a.id).cmp(&(!b.builtin, b.created_at, &b.id)));
        Ok(sources)
    }

    /// Adds a source.
    ///
    /// # Errors
    /// [`SourceStoreError::Exists`], [`SourceStoreError::Full`].
    pub async fn add(&self, new: &Source) -> Result<Source, SourceStoreError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let untouched = OnConflict::column(Column::Url).do_nothing().to_owned();
            let row = row(new).into_active_model();
            // The answer of an earlier attempt may have been lost.
            let found = Entity::find_by_id(new.id.clone()).one(&transaction).await?;
            if found.is_none() {
                let operators = Entity::find().filter(Column::Builtin.eq(false)).count(&transaction).await?;
                let added = Entity::insert(row).on_conflict(untouched).exec_without_returning(&transaction).await?;
                if added == 0 {
                    return Err(SourceStoreError::Exists);
                }
                if operators >= self.most as u64 {
                    return Err(SourceStoreError::Full(self.most));
                }
            }
            let written = Entity::find_by_id(new.id.clone()).one(&transaction).await?;
            transaction.commit().await?;
            written.map(source).ok_or(SourceStoreError::NotFound)
        };
        self.db.repeat(work).await
    }

    /// Gives a source another name, asks it or does not; `None` leaves it as it is. Answers with the source as it is
    /// then.
    ///
    /// # Errors
    /// [`SourceStoreError::NotFound`].
    pub async fn change(
        &self,
        id: &str,
        name: Option<&str>,
        enabled: Option<bool>,
    ) -> Result<Source, SourceStoreError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let found = Entity::find_by_id(id.to_owned()).lock_exclusive().one(&transaction).await?;
            let mut row = found.ok_or(SourceStoreError::NotFound)?;
            if let Some(name) = name {
                name.clone_into(&mut row.name);
            }
            row.enabled = enabled.unwrap_or(row.enabled);
            row.clone().into_active_model().reset_all().update(&transaction).await?;
            transaction.commit().await?;
            Ok(source(row))
        };
        self.db.repeat(work).await
    }

    /// Deletes a source; one that is gone is not found.
    ///
    /// # Errors
    /// [`SourceStoreError::NotFound`], [`SourceStoreError::BuiltIn`].
    pub async fn remove(&self, id: &str) -> Result<(), SourceStoreError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let found = Entity::find_by_id(id.to_owned()).lock_exclusive().one(&transaction).await?;
            if found.ok_or(SourceStoreError::NotFound)?.builtin {
                return Err(SourceStoreError::BuiltIn);
            }
            Entity::delete_by_id(id.to_owned()).exec(&transaction).await?;
            Ok(transaction.commit().await?)
        };
        self.db.repeat(work).await
    }

    /// Writes what the settings say of the built-in source: where it is, or that there is none. Whether it is asked
    /// stays the operator's word; a source of the same address that the operator has added becomes the built-in one.
    pub async fn set_builtin(&self, url: Option<&str>, now: OffsetDateTime) -> Result<(), SourceStoreError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let before = Entity::find_by_id(BUILTIN_ID.to_owned()).lock_exclusive().one(&transaction).await?;
            let Some(url) = url else {
                Entity::delete_by_id(BUILTIN_ID.to_owned()).exec(&transaction).await?;
                return Ok(transaction.commit().await?);
            };
            let others = Entity::delete_many().filter(Column::Url.eq(url)).filter(Column::Id.ne(BUILTIN_ID));
            others.exec(&transaction).await?;
            match before {
                Some(row) if row.url == url => {}
                Some(row) => {
                    let row = Model { url: url.to_owned(), ..row };
                    row.into_active_model().reset_all().update(&transaction).await?;
                }
                None => {
                    let new = Source {
                        id: BUILTIN_ID.to_owned(),
                        name: BUILTIN_NAME.to_owned(),
                        url: url.to_owned(),
                        enabled: true,
                        builtin: true,
                        created_at: now,
                    };
                    let row = row(&new).into_active_model();
                    Entity::insert(row).exec_without_returning(&transaction).await?;
                }
            }
            Ok(transaction.commit().await?)
        };
        self.db.repeat(work).await
    }

    /// Whether plugins whose record does not say are updated automatically; nobody said so at first.
    pub async fn auto_update_default(&self) -> Result<bool, SourceStoreError> {
        let key = AUTO_UPDATE.to_owned();
        let read = async || {
            let found = instance_setting::Entity::find_by_id(key.clone()).one(self.db.reader()).await?;
            Ok::<_, SourceStoreError>(found)
        };
        Ok(self.db.repeat(read).await?.is_some_and(|row| row.value == "true"))
    }

    /// Says it.
    pub async fn set_auto_update_default(&self, on: bool) -> Result<(), SourceStoreError> {
        use instance_setting::{ActiveModel, Column, Entity};
        let write = async || {
            let row = ActiveModel { key: Set(AUTO_UPDATE.to_owned()), value: Set(on.to_string()) };
            let overwrite = OnConflict::column(Column::Key).update_column(Column::Value).to_owned();
            Entity::insert(row).on_conflict(overwrite).exec_without_returning(self.db.writer()).await?;
            Ok::<_, SourceStoreError>(())
        };
        self.db.repeat(write).await
    }
}

fn row(source: &Source) -> Model {
    Model {
        id: source.id.clone(),
        name: source.name.clone(),
        url: source.url.clone(),
        enabled: source.enabled,
        builtin: source.builtin,
        // As fine as every database keeps it.
        created_at: source.created_at.replace_millisecond(source.created_at.millisecond()).unwrap_or(source.created_at),
    }
}

fn source(row: Model) -> Source {
    let Model { id, name, url, enabled, builtin, created_at } = row;
    Source { id, name, url, enabled, builtin, created_at }
}

#[cfg(test)]
mod tests;
