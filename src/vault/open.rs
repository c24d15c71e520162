//! Opening the vault at the start of the host: the key is proven before anything else of the host is touched.
//!
//! An empty vault takes any key, and makes one in the file when there is none. A vault with entries takes only the key
//! that they are sealed with; with another, or none, the start ends here and no file and no row is changed.

use std::{
    path::PathBuf,
    sync::{Arc, RwLock},
};

use secrecy::SecretString;
use time::OffsetDateTime;

use super::{
    Inner, Vault, VaultError,
    key::{Key, KeyRing, KeyTextError},
    rows,
    source::{self, KeyError, KeySource},
    unseal,
};
use crate::{config::Limits, domain::tenancy::Tenancy, entities::vault_entry, failpoint, store::db::Db};

/// What the key check seals. Anyone may know it: that it opens is what counts.
const CHECK_TEXT: &str = "kandev-host vault";

/// Why the vault cannot be opened. Nothing was changed then.
#[derive(Debug, thiserror::Error)]
pub enum VaultOpenError {
    /// The key cannot be read or made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Entries and no key.
    #[error("the vault holds {entries} entries that are sealed with the key {wanted}, and {} is missing: put your backup of the file back, or give the key by KANDEV_VAULT_KEY_FILE", path.display())]
    Missing {
        /// Id of the key that is wanted.
        wanted: String,
        /// Where the key should be.
        path: PathBuf,
        /// How many entries cannot be had, secrets and what belongs to saved settings.
        entries: u64,
    },
    /// Entries, and another key.
    #[error(
        "the vault holds {entries} entries that are sealed with the key {wanted}, and {place} has {present}: use the key that this database was last used with"
    )]
    Wrong {
        /// Where the keys come from.
        place: String,
        /// Ids of the keys that are there.
        present: String,
        /// Id of the key that is wanted.
        wanted: String,
        /// How many entries cannot be had, secrets and what belongs to saved settings.
        entries: u64,
    },
    /// Entries, and no proof which key is theirs.
    #[error(
        "the vault's own entry that proves its key is missing or damaged, with {entries} others beside it: restore the table vault_entry from a backup of the database"
    )]
    Damaged {
        /// How many there are.
        entries: u64,
    },
    /// The database failed.
    #[error("the vault cannot be read")]
    Vault(#[from] VaultError),
}

impl Vault {
    /// Opens the vault of `db`: reads the key, or makes it for a vault without entries, and proves it. A rotation that
    /// a crash interrupted, or that several keys in the variable ask for, is finished.
    ///
    /// # Errors
    /// [`VaultOpenError`]; nothing was changed then.
    pub async fn open(db: Db, source: KeySource, limits: &Limits) -> Result<Self, VaultOpenError> {
        let (vault, ring) = Self::prove(db, source, limits).await?;
        vault.settle(&ring).await;
        Ok(vault)
    }

    /// Ends a start with a wrong or missing key before a schema step is applied, which an older host, started again
    /// with the right key, would not know. A schema that is older than the vault has nothing to prove.
    pub async fn refuse_foreign_key(db: &Db, source: &KeySource) -> Result<(), VaultOpenError> {
        let Ok((check, entries)) = look(db).await else { return Ok(()) };
        let reading = source.clone();
        let found = blocking(move || reading.read()).await?;
        refuse(found.as_ref(), source, check.as_ref(), entries)
    }

    /// A vault whose key is proven, with the keys it was opened with.
    pub(super) async fn prove(db: Db, source: KeySource, limits: &Limits) -> Result<(Self, KeyRing), VaultOpenError> {
        let reading = source.clone();
        let found = blocking(move || reading.read()).await?;
        let (check, entries) = db.repeat(async || look(&db).await).await?;
        refuse(found.as_ref(), &source, check.as_ref(), entries)?;
        let ring = match (found, &source) {
            (Some(ring), _) => ring,
            (None, KeySource::Given { variable, .. }) => {
                return Err(KeyError::Variable { variable, reason: KeyTextError::Empty }.into());
            }
            (None, KeySource::File(path)) => make_key(path.clone()).await?,
        };
        let proven = check.is_some_and(|check| unseal(&ring, &check).is_ok());
        let vault = Self {
            inner: Arc::new(Inner {
                db,
                ring: RwLock::new(ring.clone()),
                source,
                rotating: tokio::sync::Mutex::new(()),
                value_bytes: limits.secret_value_bytes,
                plugin_secrets: limits.plugin_secrets as u64,
                shared_secrets: limits.shared_secrets as u64,
            }),
            tenancy: Tenancy::default(),
        };
        if !proven {
            vault.write_check(ring.current()).await?;
        }
        Ok((vault, ring))
    }

    async fn write_check(&self, key: &Key) -> Result<(), VaultError> {
        let check: SecretString = CHECK_TEXT.to_owned().into();
        let work = async || {
            let transaction = self.inner.db.begin_write().await?;
            let row = rows::check(key.seal(rows::CHECK_ID, &check)?, OffsetDateTime::now_utc());
            rows::put(&transaction, row).await?;
            Ok(transaction.commit().await?)
        };
        self.inner.db.repeat(work).await
    }
}

/// A vault with entries takes only a key that opens its check; one without takes any.
fn refuse(
    found: Option<&KeyRing>,
    source: &KeySource,
    check: Option<&vault_entry::Model>,
    entries: u64,
) -> Result<(), VaultOpenError> {
    if entries == 0 {
        return Ok(());
    }
    let ring = match (found, source) {
        (Some(ring), _) => ring,
        (None, KeySource::Given { variable, .. }) => {
            return Err(KeyError::Variable { variable, reason: KeyTextError::Empty }.into());
        }
        (None, KeySource::File(path)) => {
            let wanted = check.map_or("(unknown)", |check| check.key_id.as_str()).to_owned();
            return Err(VaultOpenError::Missing { wanted, path: path.clone(), entries });
        }
    };
    match check.map(|check| unseal(ring, check)) {
        Some(Ok(_)) => Ok(()),
        Some(Err(VaultError::ForeignKey { key_id, .. })) => {
            Err(VaultOpenError::Wrong { place: source.place(), present: ring.ids(), wanted: key_id, entries })
        }
        Some(Err(_)) | None => Err(VaultOpenError::Damaged { entries }),
    }
}

async fn look(db: &Db) -> Result<(Option<vault_entry::Model>, u64), VaultError> {
    let check = rows::read(db.reader(), &[rows::CHECK_ID]).await?.pop();
    Ok((check, rows::count_all(db.reader()).await?))
}

async fn make_key(path: PathBuf) -> Result<KeyRing, KeyError> {
    let ring = KeyRing::of(Key::random()?);
    let written = ring.clone();
    let place = path.clone();
    blocking(move || source::write(&path, &written)).await?;
    failpoint::hit("vault.key.made");
    tracing::info!(path = %place.display(), key = ring.current().id(), "a key for the vault was made: back it up");
    Ok(ring)
}

/// Runs file work on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeyError> + Send + 'static,
) -> Result<T, KeyError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only a panic of the work itself, which has none; the runtime may be ending.
        Err(error) => Err(KeyError::Interrupted(error.to_string())),
    }
}
