//! The vault: secrets in the database, encrypted with a key that is not in it.
//!
//! AES-256-GCM; each value is bound to its entry's id and to its key (`key`). A secret that is not there is `None`; one
//! that is there and cannot be had is an error, so that nobody takes a locked vault for an empty one (field case 58).
//! Clear text exists inside a call and in what it returns, in types that cannot be printed and are wiped.
//!
//! `source` has the keys, `open` the checks at start, `rotate` the change of keys, `shared` the secrets that the
//! operator shares with plugins, `rows` the statements.

mod key;
mod open;
mod rotate;
mod rows;
mod shared;
mod source;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use sea_orm::{DatabaseTransaction, DbErr};
use secrecy::{ExposeSecret, SecretString};
use time::OffsetDateTime;

use self::key::{Key, KeyRing};
pub use self::{
    key::{KeyTextError, NoRandom},
    open::VaultOpenError,
    rotate::{RotateError, Rotation, VaultStatus},
    shared::{NewSecret, SecretChange, SharedError},
    source::{FILE_NAME, KeyError, KeySource},
};
use crate::{
    domain::{
        id::PluginId,
        secret::{MAX_VAULT_ID_BYTES, SecretKind, VaultId},
        tenancy::Tenancy,
    },
    entities::vault_entry,
    failpoint,
    store::{
        db::{Db, DbFault, MayBeFault},
        plugin_state, user_state,
    },
};

/// Reads and writes secrets; clones share everything.
#[derive(Clone)]
pub struct Vault {
    inner: Arc<Inner>,
    /// For whom it writes; never over for the operator.
    tenancy: Tenancy,
}

struct Inner {
    db: Db,
    /// Grows with each rotation and forgets no key while the host runs: a reader may hold a row of before.
    ring: RwLock<KeyRing>,
    source: KeySource,
    rotating: tokio::sync::Mutex<()>,
    value_bytes: u64,
    plugin_secrets: u64,
    shared_secrets: u64,
}

/// Why the vault could not do what was asked. The first four texts are for whoever asked, the others for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// The value is larger than `limits.secret_value_bytes`.
    #[error("the secret has {size} bytes, at most {limit} are allowed")]
    TooLarge {
        /// Bytes of the value.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// One more than `limits.plugin_secrets` or `limits.shared_secrets`.
    #[error("there are {limit} secrets already, which is the limit; delete what is not needed")]
    TooMany {
        /// How many are allowed.
        limit: u64,
    },
    /// An id that no database holds; only a config field's name can be the cause.
    #[error(
        "the field's name cannot be stored: it must have no zero byte and an id of at most {MAX_VAULT_ID_BYTES} bytes"
    )]
    Id,
    /// A call that was under way when its plugin was uninstalled.
    #[error("the plugin was uninstalled")]
    Uninstalled,
    /// Sealed with a key that this host does not have.
    #[error("the vault entry \"{id}\" is sealed with the key {key_id}, which this host does not have")]
    ForeignKey {
        /// Which entry.
        id: String,
        /// The key's id.
        key_id: String,
    },
    /// The key is right and the row is not what was written.
    #[error("the vault entry \"{id}\" was changed outside of the host and cannot be decrypted; delete or set it again")]
    Damaged {
        /// Which entry.
        id: String,
    },
    /// The system gives no random bytes.
    #[error(transparent)]
    Random(#[from] NoRandom),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbFault),
}

impl VaultError {
    /// The entry that cannot be had, when it is one entry's fault.
    pub fn entry(&self) -> Option<&str> {
        match self {
            Self::ForeignKey { id, .. } | Self::Damaged { id } => Some(id),
            Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::Id
            | Self::Uninstalled
            | Self::Random(_)
            | Self::Database(_) => None,
        }
    }
}

impl From<DbErr> for VaultError {
    fn from(error: DbErr) -> Self {
        Self::Database(error.into())
    }
}

impl MayBeFault for VaultError {
    fn fault(&self) -> Option<&DbFault> {
        match self {
            Self::Database(fault) => Some(fault),
            Self::TooLarge { .. }
            | Self::TooMany { .. }
            | Self::Id
            | Self::Uninstalled
            | Self::ForeignKey { .. }
            | Self::Damaged { .. }
            | Self::Random(_) => None,
        }
    }
}

impl Vault {
    /// The same vault for one install of a plugin: it writes nothing any more once that is over.
    pub fn under(&self, tenancy: &Tenancy) -> Self {
        Self { inner: Arc::clone(&self.inner), tenancy: tenancy.clone() }
    }

    /// The secret, `None` when there is none.
    ///
    /// # Errors
    /// [`VaultError::ForeignKey`], [`VaultError::Damaged`] or [`VaultError::Database`] when it cannot be had.
    pub async fn get(&self, id: &VaultId) -> Result<Option<SecretString>, VaultError> {
        Ok(self.get_many(std::slice::from_ref(id)).await?.pop().flatten())
    }

    /// As [`Self::get`] for several, in their order, with one query. One that cannot be had fails the whole.
    pub async fn get_many(&self, ids: &[VaultId]) -> Result<Vec<Option<SecretString>>, VaultError> {
        // What cannot be stored is not there.
        let storable: Vec<&str> = ids.iter().filter(|id| id.is_storable()).map(VaultId::as_str).collect();
        if storable.is_empty() {
            return Ok(ids.iter().map(|_| None).collect());
        }
        let db = &self.inner.db;
        let rows = db.repeat(async || Ok::<_, VaultError>(rows::read(db.reader(), &storable).await?)).await?;
        let rows: HashMap<&str, &vault_entry::Model> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
        // After the query: the ring has every key of every row that it saw.
        let ring = self.ring();
        ids.iter().map(|id| rows.get(id.as_str()).map(|row| unseal(&ring, row)).transpose()).collect()
    }

    /// Stores a secret, replacing an earlier one.
    ///
    /// # Errors
    /// [`VaultError`]; nothing was stored then, but when the answer to the commit was lost.
    pub async fn set(&self, id: &VaultId, value: SecretString) -> Result<(), VaultError> {
        self.apply(vec![(id.clone(), Some(value))]).await
    }

    /// Removes a secret; one that is not there is removed already.
    pub async fn delete(&self, id: &VaultId) -> Result<(), VaultError> {
        self.apply(vec![(id.clone(), None)]).await
    }

    /// Stores (`Some`) and removes (`None`) several in one transaction: all or nothing.
    ///
    /// # Errors
    /// [`VaultError`]; nothing was changed then, but when the answer to the commit was lost.
    pub async fn apply(&self, changes: Vec<(VaultId, Option<SecretString>)>) -> Result<(), VaultError> {
        for (id, value) in &changes {
            if let Some(value) = value {
                self.check(id, value)?;
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.inner
            .db
            .repeat(async || {
                let transaction = self.inner.db.begin_write().await?;
                let key = self.key_for_writing(&transaction).await?;
                // An uninstall deletes under the same lock: what is written before it goes with it.
                if self.tenancy.is_over() {
                    return Err(VaultError::Uninstalled);
                }
                for (id, value) in &changes {
                    match value {
                        None if id.is_storable() => drop(rows::delete(&transaction, id.as_str()).await?),
                        None => {}
                        Some(value) => self.put(&transaction, &key, id, value).await?,
                    }
                }
                failpoint::hit("vault.writing");
                Ok::<_, VaultError>(transaction.commit().await?)
            })
            .await?;
        failpoint::hit("vault.written");
        Ok(())
    }

    /// Removes every secret that goes with a plugin, its right to reveal shared ones, its stored state and what it
    /// keeps for users, in one transaction: all or nothing. Writers for the plugin that are under way go before it; end
    /// its [`Tenancy`] first, so that none comes after.
    ///
    /// # Errors
    /// [`VaultError::Database`]; nothing was removed then, but when the answer to the commit was lost.
    pub async fn delete_plugin(&self, plugin: &PluginId) -> Result<(), VaultError> {
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            rows::lock_check(&transaction).await?;
            rows::delete_owned(&transaction, plugin).await?;
            plugin_state::delete_all(&transaction, plugin).await?;
            user_state::delete_all(&transaction, plugin).await?;
            Ok(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await
    }

    fn check(&self, id: &VaultId, value: &SecretString) -> Result<(), VaultError> {
        let (size, limit) = (value.expose_secret().len() as u64, self.inner.value_bytes);
        match id.is_storable() {
            false => Err(VaultError::Id),
            true if size > limit => Err(VaultError::TooLarge { size, limit }),
            true => Ok(()),
        }
    }

    async fn put(
        &self,
        transaction: &DatabaseTransaction,
        key: &Key,
        id: &VaultId,
        value: &SecretString,
    ) -> Result<(), VaultError> {
        if let (SecretKind::Own, Some(owner)) = (id.kind(), id.owner()) {
            let limit = self.inner.plugin_secrets;
            if rows::count_others(transaction, owner, SecretKind::Own, id.as_str()).await? >= limit {
                return Err(VaultError::TooMany { limit });
            }
        }
        let sealed = key.seal(id.as_str(), value)?;
        let row = rows::entry(id.as_str(), id.kind(), id.owner(), sealed, OffsetDateTime::now_utc());
        Ok(rows::put(transaction, row).await?)
    }

    /// The key that new entries are sealed with, as the database has it. Held until the transaction ends, so that a
    /// rotation sees every entry of the key that it replaces.
    async fn key_for_writing(&self, transaction: &DatabaseTransaction) -> Result<Arc<Key>, VaultError> {
        let Some(check) = rows::lock_check(transaction).await? else {
            return Err(VaultError::Damaged { id: rows::CHECK_ID.to_owned() });
        };
        let foreign = || VaultError::ForeignKey { id: check.id.clone(), key_id: check.key_id.clone() };
        self.ring().get(&check.key_id).cloned().ok_or_else(foreign)
    }

    fn ring(&self) -> KeyRing {
        self.inner.ring.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_ring(&self, ring: KeyRing) {
        *self.inner.ring.write().unwrap_or_else(PoisonError::into_inner) = ring;
    }
}

fn unseal(ring: &KeyRing, row: &vault_entry::Model) -> Result<SecretString, VaultError> {
    let Some(key) = ring.get(&row.key_id) else {
        return Err(VaultError::ForeignKey { id: row.id.clone(), key_id: row.key_id.clone() });
    };
    key.open(&row.id, &row.nonce, &row.ciphertext).ok_or_else(|| VaultError::Damaged { id: row.id.clone() })
}
