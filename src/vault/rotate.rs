//! Changing the vault's key while the host runs.
//!
//! Order: the key file holds the new key before the old one → new entries are sealed with the new key → all others are
//! sealed anew, a batch a transaction → the key file holds the new key alone. Whenever the host is killed, the file on
//! disk opens every entry, and the next start goes on from there (docs/runtime-semantics.md).

use std::{path::PathBuf, sync::Arc};

use secrecy::{ExposeSecret, SecretString};

use super::{
    Vault, VaultError,
    key::{Key, KeyRing, KeyTextError},
    open::blocking,
    rows,
    source::{self, KeyError, KeySource},
    unseal,
};
use crate::{domain::secret::SecretKind, failpoint};

/// Entries sealed anew in one transaction; other writers wait for it.
const BATCH: u64 = 100;

/// What a rotation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotation {
    /// Id of the key that counts now.
    pub key_id: String,
    /// How many secrets were sealed anew.
    pub resealed: u64,
}

/// The vault as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultStatus {
    /// The key file's path, or the variable's name.
    pub key_from: String,
    /// Id of the current key.
    pub key_id: String,
    /// How many secrets there are of each kind.
    pub secrets: Vec<(SecretKind, u64)>,
    /// How many are not sealed with the current key: a rotation is under way or was not finished.
    pub pending: u64,
}

/// Why the key was not changed, or not yet for all.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// One at a time.
    #[error("a rotation is under way")]
    Busy,
    /// The host cannot change a variable.
    #[error(
        "the vault's key comes from {variable}: put the new key before the old one in it, separated by a comma or a line break, restart the host, and take the old key out when `kandev-host vault status` shows nothing pending"
    )]
    Given {
        /// Which.
        variable: &'static str,
    },
    /// The given key is none.
    #[error("the new key cannot be used: {0}")]
    Text(#[from] KeyTextError),
    /// The given key is in use.
    #[error("the new key is one that the vault has already; make another, or leave it out to have one made")]
    Same,
    /// The key file is not what this host works with.
    #[error("the vault's key file is missing or was changed since the host read it; put it back, or restart the host")]
    Changed,
    /// The key file.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An entry, or the database.
    #[error(
        "not every secret is sealed with the new key yet; both keys are kept, and the next start or rotation goes on"
    )]
    Unfinished(#[source] VaultError),
}

impl Vault {
    /// Changes the key to `new`, or to a random one, and seals every secret anew. Other calls go on meanwhile. A
    /// rotation that was not finished is finished first, with the key it began with, and is all that is done unless
    /// `new` is another one: the file never holds more than two keys, however often a damaged entry makes it fail.
    ///
    /// # Errors
    /// [`RotateError`]; with [`RotateError::Unfinished`] the new key counts already.
    pub async fn rotate(&self, new: Option<SecretString>) -> Result<Rotation, RotateError> {
        let _alone = self.inner.rotating.try_lock().map_err(|_| RotateError::Busy)?;
        let path = match &self.inner.source {
            KeySource::File(path) => path.clone(),
            KeySource::Given { variable, .. } => return Err(RotateError::Given { variable }),
        };
        let new = new.map(|text| Key::parse(text.expose_secret())).transpose()?;
        let source = self.inner.source.clone();
        let on_disk = blocking(move || source.read()).await?.ok_or(RotateError::Changed)?;
        let current = self.ring().current().clone();
        if on_disk.current().id() != current.id() {
            return Err(RotateError::Changed);
        }
        if on_disk.count() > 1 {
            let finished = self.finish(path.clone(), &current).await?;
            if new.as_ref().is_none_or(|key| key.id() == current.id()) {
                return Ok(finished);
            }
        }
        let key = Arc::new(match new {
            Some(key) => key,
            None => Key::random().map_err(KeyError::from)?,
        });
        if self.ring().get(key.id()).is_some() {
            return Err(RotateError::Same);
        }
        write(path.clone(), KeyRing::of(current).led_by(key.clone())).await?;
        failpoint::hit("vault.rotate.keyed");
        self.set_ring(self.ring().led_by(key.clone()));
        self.finish(path, &key).await
    }

    /// Seals everything with the current key, then leaves it alone in the file.
    async fn finish(&self, path: PathBuf, key: &Arc<Key>) -> Result<Rotation, RotateError> {
        let resealed = self.reseal_all(key).await.map_err(RotateError::Unfinished)?;
        failpoint::hit("vault.rotate.resealed");
        write(path, KeyRing::of(key.clone())).await?;
        failpoint::hit("vault.rotate.done");
        tracing::info!(key = key.id(), resealed, "the vault's key was changed");
        Ok(Rotation { key_id: key.id().to_owned(), resealed })
    }

    /// What an operator may know of the vault.
    ///
    /// # Errors
    /// [`VaultError::Database`].
    pub async fn status(&self) -> Result<VaultStatus, VaultError> {
        let db = &self.inner.db;
        let key_id = self.ring().current().id().to_owned();
        let counts = db.repeat(async || {
            let mut secrets = Vec::new();
            for kind in SecretKind::ALL {
                secrets.push((kind, rows::count(db.reader(), kind).await?));
            }
            Ok::<_, VaultError>((secrets, rows::count_sealed_otherwise(db.reader(), &key_id).await?))
        });
        let (secrets, pending) = counts.await?;
        Ok(VaultStatus { key_from: self.inner.source.place(), key_id, secrets, pending })
    }

    /// At start: goes on with a rotation that was not finished. The secrets can be had in any case.
    pub(super) async fn settle(&self, ring: &KeyRing) {
        let current = ring.current();
        let settled = async {
            let resealed = self.reseal_all(current).await.map_err(RotateError::Unfinished)?;
            if let KeySource::File(path) = &self.inner.source {
                let path = path.clone();
                if ring.count() > 1 {
                    write(path.clone(), ring.current_alone()).await?;
                }
                blocking(move || source::remove_leftover(&path)).await?;
            }
            Ok::<_, RotateError>(resealed)
        };
        match settled.await {
            Ok(0) if ring.count() == 1 => {}
            Ok(resealed) => tracing::info!(key = current.id(), resealed, "a change of the vault's key was finished"),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::error!(%error, cause, "a change of the vault's key could not be finished");
            }
        }
    }

    /// Seals with `key` what is sealed with another. The key check is the first: from then on nobody else writes with
    /// another key, so that an end comes.
    async fn reseal_all(&self, key: &Arc<Key>) -> Result<u64, VaultError> {
        let mut resealed = 0;
        loop {
            let batch = self.inner.db.repeat(async || self.reseal_batch(key).await).await?;
            if batch.rows == 0 {
                return Ok(resealed);
            }
            resealed += batch.secrets;
            failpoint::hit("vault.rotate.batch");
        }
    }

    pub(super) async fn reseal_batch(&self, key: &Arc<Key>) -> Result<Batch, VaultError> {
        let transaction = self.inner.db.begin_write().await?;
        rows::lock_check(&transaction).await?;
        let rows = rows::sealed_otherwise(&transaction, key.id(), BATCH).await?;
        let ring = self.ring();
        let mut secrets = 0;
        for row in &rows {
            let sealed = key.seal(&row.id, &unseal(&ring, row)?)?;
            rows::reseal(&transaction, &row.id, sealed).await?;
            secrets += u64::from(rows::is_secret(row));
        }
        transaction.commit().await?;
        Ok(Batch { rows: rows.len(), secrets })
    }
}

/// What one transaction of a rotation did.
pub(super) struct Batch {
    rows: usize,
    secrets: u64,
}

async fn write(path: PathBuf, ring: KeyRing) -> Result<(), KeyError> {
    blocking(move || source::write(&path, &ring)).await
}
