//! Secrets that the operator keeps, and the plugins that may reveal each.
//!
//! Values go in and come out only to a plugin that the operator chose (lifecycle.md §10, row 27): nothing here gives
//! one to an operator.

use std::collections::BTreeMap;

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, DatabaseTransaction, EntityTrait, FromQueryResult, QueryFilter, QuerySelect, QueryTrait, Select,
    sea_query::{Expr, ExprTrait, OnConflict},
};
use secrecy::SecretString;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Vault, VaultError, key::TAG_BYTES, rows, unseal};
use crate::{
    domain::{
        id::PluginId,
        secret::{SecretKind, VaultId},
        shared_secret::{SecretFilter, SecretScope, SharedSecret},
    },
    entities::{
        vault_entry::{ActiveModel, Column, Entity},
        vault_share,
    },
    store::db::{DbFault, MayBeFault},
};

/// A secret to keep; its name was checked.
#[derive(Debug)]
pub struct NewSecret {
    /// The operator's word.
    pub name: String,
    /// Where it belongs.
    pub scope: SecretScope,
    /// The value.
    pub value: SecretString,
}

/// What to change; `None` stays as it is.
#[derive(Debug, Default)]
pub struct SecretChange {
    /// A new name, checked.
    pub name: Option<String>,
    /// Another place.
    pub scope: Option<SecretScope>,
    /// A new value.
    pub value: Option<SecretString>,
}

/// Why something about a shared secret could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharedError {
    /// No such secret.
    #[error("secret not found")]
    NotFound,
    /// The vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl From<DbFault> for SharedError {
    fn from(fault: DbFault) -> Self {
        Self::Vault(fault.into())
    }
}

impl From<sea_orm::DbErr> for SharedError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Vault(error.into())
    }
}

impl MayBeFault for SharedError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Vault(error) => error.fault(),
            Self::NotFound => None,
        }
    }
}

/// A row without its value.
#[derive(FromQueryResult)]
struct Item {
    id: String,
    name: String,
    workspace_id: Option<String>,
    has_value: bool,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
}

impl Vault {
    /// Keeps a new secret.
    ///
    /// # Errors
    /// [`VaultError::TooLarge`], [`VaultError::TooMany`], or the database's.
    pub async fn create_shared(&self, new: NewSecret) -> Result<SharedSecret, SharedError> {
        let (uuid, now) = (Uuid::now_v7(), OffsetDateTime::now_utc());
        let id = VaultId::shared(uuid);
        self.check(&id, &new.value)?;
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            let key = self.key_for_writing(&transaction).await?;
            let limit = self.inner.shared_secrets;
            if rows::count(&transaction, SecretKind::Shared).await? >= limit {
                return Err(VaultError::TooMany { limit }.into());
            }
            let sealed = key.seal(id.as_str(), &new.value).map_err(VaultError::from)?;
            let row = ActiveModel {
                name: Set(new.name.clone()),
                scope: Set(Some(new.scope.name().to_owned())),
                workspace_id: Set(new.scope.workspace_id().map(str::to_owned)),
                ..rows::entry(id.as_str(), SecretKind::Shared, None, sealed, now)
            };
            rows::put(&transaction, row).await?;
            Ok::<_, SharedError>(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await?;
        self.shared(uuid).await
    }

    /// What is told of one.
    pub async fn shared(&self, id: Uuid) -> Result<SharedSecret, SharedError> {
        let id = VaultId::shared(id);
        let of_id = || of_kind().filter(Column::Id.eq(id.as_str()));
        self.inner.db.repeat(async || self.items(of_id()).await).await?.pop().ok_or(SharedError::NotFound)
    }

    /// What is told of all that the filter lets through, by name, then by id.
    pub async fn list_shared(&self, filter: &SecretFilter) -> Result<Vec<SharedSecret>, SharedError> {
        let mut found = self.inner.db.repeat(async || self.items(filtered(filter)).await).await?;
        // Here and not in SQL: PostgreSQL would order by its locale.
        found.sort_unstable_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
        Ok(found)
    }

    /// Changes one.
    ///
    /// # Errors
    /// [`SharedError::NotFound`], [`VaultError::TooLarge`], or the database's.
    pub async fn change_shared(&self, id: Uuid, change: SecretChange) -> Result<SharedSecret, SharedError> {
        let (vault_id, now) = (VaultId::shared(id), OffsetDateTime::now_utc());
        if let Some(value) = &change.value {
            self.check(&vault_id, value)?;
        }
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            let key = self.key_for_writing(&transaction).await?;
            exists(&transaction, &vault_id).await?;
            let mut row =
                ActiveModel { updated_at: Set(now.replace_nanosecond(0).unwrap_or(now)), ..ActiveModel::default() };
            if let Some(name) = &change.name {
                row.name = Set(name.clone());
            }
            if let Some(scope) = &change.scope {
                row.scope = Set(Some(scope.name().to_owned()));
                row.workspace_id = Set(scope.workspace_id().map(str::to_owned));
            }
            if let Some(value) = &change.value {
                let sealed = key.seal(vault_id.as_str(), value).map_err(VaultError::from)?;
                row.key_id = Set(sealed.key_id);
                row.nonce = Set(sealed.nonce);
                row.ciphertext = Set(sealed.ciphertext);
            }
            Entity::update_many().set(row).filter(Column::Id.eq(vault_id.as_str())).exec(&transaction).await?;
            Ok::<_, SharedError>(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await?;
        self.shared(id).await
    }

    /// Removes one, and every plugin's right to it.
    pub async fn delete_shared(&self, id: Uuid) -> Result<(), SharedError> {
        let id = VaultId::shared(id);
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            if rows::delete(&transaction, id.as_str()).await? == 0 {
                return Err(SharedError::NotFound);
            }
            Ok(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await
    }

    /// Lets a plugin reveal a secret; without effect when it may already.
    pub async fn share(&self, id: Uuid, plugin: &PluginId) -> Result<(), SharedError> {
        let id = VaultId::shared(id);
        let row = vault_share::ActiveModel {
            plugin_id: Set(plugin.as_str().to_owned()),
            secret_id: Set(id.as_str().to_owned()),
        };
        let there_already = || {
            OnConflict::columns([vault_share::Column::PluginId, vault_share::Column::SecretId]).do_nothing().to_owned()
        };
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            exists(&transaction, &id).await?;
            let insert = vault_share::Entity::insert(row.clone()).on_conflict(there_already());
            insert.exec_without_returning(&transaction).await?;
            Ok::<_, SharedError>(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await
    }

    /// Takes a plugin's right to a secret away; without effect when it has none.
    pub async fn unshare(&self, id: Uuid, plugin: &PluginId) -> Result<(), SharedError> {
        let id = VaultId::shared(id);
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            exists(&transaction, &id).await?;
            let key = (plugin.as_str().to_owned(), id.as_str().to_owned());
            vault_share::Entity::delete_by_id(key).exec(&transaction).await?;
            Ok::<_, SharedError>(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await
    }

    /// The value behind a plugin's reference; `None` when there is no such secret or the operator did not share it with
    /// this plugin, which the plugin cannot tell apart.
    ///
    /// # Errors
    /// [`VaultError`] when it is there and cannot be had.
    pub async fn reveal(&self, plugin: &PluginId, reference: &str) -> Result<Option<SecretString>, VaultError> {
        let Some(id) = VaultId::reference(reference) else { return Ok(None) };
        let shared = vault_share::Entity::find()
            .select_only()
            .column(vault_share::Column::SecretId)
            .filter(vault_share::Column::PluginId.eq(plugin.as_str()))
            .filter(vault_share::Column::SecretId.eq(id.as_str()))
            .into_query();
        let query = of_kind().filter(Column::Id.in_subquery(shared));
        let db = &self.inner.db;
        let row = db.repeat(async || Ok::<_, VaultError>(query.clone().one(db.reader()).await?)).await?;
        row.map(|row| unseal(&self.ring(), &row)).transpose()
    }

    async fn items(&self, query: Select<Entity>) -> Result<Vec<SharedSecret>, SharedError> {
        let ids = query.clone().select_only().column(Column::Id).into_query();
        let db = self.inner.db.reader();
        let items = query
            .select_only()
            .columns([Column::Id, Column::Name, Column::WorkspaceId, Column::CreatedAt, Column::UpdatedAt])
            .column_as(Expr::cust(format!("length(ciphertext) > {TAG_BYTES}")), "has_value")
            .into_model::<Item>()
            .all(db)
            .await?;
        let shares = vault_share::Entity::find().filter(vault_share::Column::SecretId.in_subquery(ids)).all(db).await?;
        let mut plugins: BTreeMap<String, Vec<PluginId>> = BTreeMap::new();
        for share in shares {
            plugins.entry(share.secret_id).or_default().extend(PluginId::new(&share.plugin_id));
        }
        Ok(items.into_iter().filter_map(|item| told(item, &mut plugins)).collect())
    }
}

fn told(item: Item, plugins: &mut BTreeMap<String, Vec<PluginId>>) -> Option<SharedSecret> {
    let Item { id, name, workspace_id, has_value, created_at, updated_at } = item;
    let mut plugins = plugins.remove(&id).unwrap_or_default();
    plugins.sort_unstable();
    let scope = workspace_id.map_or(SecretScope::Global, SecretScope::Workspace);
    // Only this host writes ids.
    let id = Uuid::try_parse(&id).ok()?;
    Some(SharedSecret { id, name, scope, has_value, plugins, created_at, updated_at })
}

fn of_kind() -> Select<Entity> {
    Entity::find().filter(Column::Kind.eq(SecretKind::Shared.name()))
}

fn filtered(filter: &SecretFilter) -> Select<Entity> {
    let all = of_kind();
    match filter {
        SecretFilter::All => all,
        SecretFilter::Global => all.filter(Column::WorkspaceId.is_null()),
        SecretFilter::AnyWorkspace => all.filter(Column::WorkspaceId.is_not_null()),
        SecretFilter::Workspace { id, include_global: false } => all.filter(Column::WorkspaceId.eq(id)),
        SecretFilter::Workspace { id, include_global: true } => {
            all.filter(Column::WorkspaceId.eq(id).or(Column::WorkspaceId.is_null()))
        }
    }
}

/// Fails when there is no such shared secret. The row is held, so that it is not removed before the transaction ends.
async fn exists(transaction: &DatabaseTransaction, id: &VaultId) -> Result<(), SharedError> {
    let query = of_kind().filter(Column::Id.eq(id.as_str())).select_only().column(Column::Id).lock_exclusive();
    let found: Option<String> = query.into_tuple().one(transaction).await?;
    found.map(drop).ok_or(SharedError::NotFound)
}
