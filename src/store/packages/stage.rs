//! Receiving an archive: its bytes go, still compressed, into a private folder below `.staging`.
//!
//! Knows only the limit on compressed bytes. Time limits on the sender are the caller's: dropping the future removes
//! what was written.

use std::path::{Path, PathBuf};

use futures_util::{Stream, StreamExt as _};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::{PackageStore, STAGING};
use crate::domain::package::{Digest, Limits, PackageError};
use crate::store::fs::{self, At as _, FileError};

/// A folder that is deleted with its content when dropped.
#[derive(Debug)]
pub struct StagingFolder {
    path: PathBuf,
}

impl StagingFolder {
    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Deletes the folder now. Blocks.
    pub(super) fn remove(mut self) {
        remove_logged(&std::mem::take(&mut self.path));
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        if path.as_os_str().is_empty() {
            return;
        }
        match tokio::runtime::Handle::try_current() {
            // Deleting a large folder must not hold up other tasks.
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove_logged(&path))),
            Err(_) => remove_logged(&path),
        }
    }
}

fn remove_logged(path: &Path) {
    if let Err(error) = fs::remove_any(path) {
        tracing::warn!(%error, "staging folder not removed, the next start will");
    }
}

/// A received archive.
#[derive(Debug)]
pub struct Staged {
    pub(super) folder: StagingFolder,
    /// Bytes received.
    pub size: u64,
    /// SHA-256 of them: names the package.
    pub sha256: Digest,
}

impl Staged {
    /// The file that holds the archive.
    pub fn archive(&self) -> PathBuf {
        self.folder.path().join("package.tar.gz")
    }
}

/// Why an archive was not received.
#[derive(Debug, thiserror::Error)]
pub enum StageError<E> {
    /// More bytes than the limit; the rest was not read.
    #[error(transparent)]
    TooLarge(PackageError),
    /// The sender failed.
    #[error("receiving the package failed: {0}")]
    Source(E),
    /// The file system said no; for the log.
    #[error(transparent)]
    File(#[from] FileError),
    /// The blocking task ended without a result.
    #[error("the package task ended without a result: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl PackageStore {
    /// Writes a byte stream into a new private folder. Fails as soon as [`Limits::compressed`] is passed.
    ///
    /// # Errors
    /// [`StageError`]; nothing of the archive is left then, nor when the future is dropped.
    pub async fn stage<S, B, E>(&self, body: S, limits: &Limits) -> Result<Staged, StageError<E>>
    where
        S: Stream<Item = Result<B, E>>,
        B: AsRef<[u8]>,
    {
        let path = self.root.join(STAGING).join(uuid::Uuid::new_v4().simple().to_string());
        // One job makes and owns both: when this future is dropped meanwhile, so is the job's result, and the folder
        // goes.
        let make = move || {
            fs::create_private_folder(&path)?;
            let staged = Staged { folder: StagingFolder { path }, size: 0, sha256: Digest::default() };
            let archive = staged.archive();
            let file = std::fs::File::create_new(&archive).at("create", &archive)?;
            Ok::<_, FileError>((staged, file))
        };
        let (mut staged, file) = tokio::task::spawn_blocking(make).await??;
        let archive = staged.archive();
        let mut file = tokio::fs::File::from_std(file);
        let mut body = std::pin::pin!(body);
        let mut hash = Sha256::new();
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(StageError::Source)?;
            staged.size += chunk.as_ref().len() as u64;
            if staged.size > limits.compressed {
                return Err(StageError::TooLarge(PackageError::CompressedTooLarge(limits.compressed)));
            }
            hash.update(chunk.as_ref());
            file.write_all(chunk.as_ref()).await.at("write", &archive)?;
        }
        file.flush().await.at("write", &archive)?;
        staged.sha256 = hash.finalize().into();
        Ok(staged)
    }
}
