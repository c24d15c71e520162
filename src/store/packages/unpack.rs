//! From a received archive to a checked folder, and checking a folder again later.
//!
//! The order of the checks: the archive itself while it is read, checksums, manifest, this host's executable, the
//! signature (which plugins a key may sign is a question of the manifest's id). Nothing is trusted or made executable
//! before the checksums hold.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::archive::{Contents, extract};
use super::stage::{Staged, StagingFolder};
use super::{PackageStore, PackageStoreError};
use crate::domain::manifest::{self, Manifest, Parsed};
use crate::domain::package::{Checksums, Digest, EntryPath, Limits, PackageError};
use crate::domain::signature::{PackageSignature, Trust};
use crate::domain::ui_file;
use crate::store::fs::{self, At as _, FileError};

/// A package that follows every rule, unpacked beside its final place. Dropping it deletes it.
#[derive(Debug)]
pub struct Unpacked {
    /// The validated manifest.
    pub manifest: Manifest,
    /// What the operator should know about the manifest, and what of it is not in the package.
    pub warnings: Vec<String>,
    /// Who signed it.
    pub signature: PackageSignature,
    /// SHA-256 of the executable for the host's platform.
    pub executable: Digest,
    /// The private folder (0700) with the files.
    pub folder: PathBuf,
    /// Numbers about the package.
    pub facts: Facts,
    pub(super) staging: StagingFolder,
}

/// What a lawful package says, and holds.
#[derive(Debug)]
pub struct Examined {
    /// The validated manifest.
    pub manifest: Manifest,
    /// What the operator should know about the manifest, and what of it is not in the package.
    pub warnings: Vec<String>,
    /// Who signed it.
    pub signature: PackageSignature,
    /// Numbers about the package.
    pub facts: Facts,
}

/// What an operator may want to know of a package before it is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// SHA-256 of the archive.
    pub sha256: Digest,
    /// Declared platform → whether its executable is in the package.
    pub platforms: BTreeMap<String, bool>,
    /// Bytes of the archive.
    pub compressed: u64,
    /// Bytes of all files.
    pub size: u64,
    /// Number of files.
    pub files: usize,
}

/// A version that is on disk and follows every rule.
#[derive(Debug)]
pub struct Kept {
    /// The manifest, and what an operator should know about it.
    pub parsed: Parsed,
    /// SHA-256 of the executable for the host's platform.
    pub executable: Digest,
    /// Who signed it.
    pub signature: PackageSignature,
}

impl Facts {
    fn of(staged: &Staged, contents: &Contents, manifest: &Manifest) -> Self {
        let declared = manifest.runtime.executables.iter();
        Self {
            sha256: staged.sha256,
            platforms: declared.map(|(key, path)| (key.clone(), contents.files.contains_key(path.as_str()))).collect(),
            compressed: staged.size,
            size: contents.size,
            files: contents.files.len(),
        }
    }
}

impl Unpacked {
    /// Deletes what was unpacked and waits until it is gone; dropping it does the same in the background.
    pub async fn discard(self) {
        let gone = tokio::task::spawn_blocking(move || self.staging.remove()).await;
        if let Err(error) = gone {
            tracing::warn!(%error, "an unpacked package was not removed, the next start will");
        }
    }
}

impl PackageStore {
    /// Unpacks a received archive in one reading pass and checks everything, on a blocking thread.
    ///
    /// `platform` is the host's key, see [`crate::domain::target::host_platform`]; `trust` says whose signature counts
    /// and whether one is needed.
    ///
    /// # Errors
    /// [`PackageStoreError::Package`] with the first broken rule; the staging folder is then gone. Dropping the future
    /// does not stop the work, which is bounded by `limits`, but its result is deleted.
    pub async fn unpack(
        &self,
        staged: Staged,
        limits: Limits,
        platform: &str,
        trust: Trust,
    ) -> Result<Unpacked, PackageStoreError> {
        let platform = platform.to_owned();
        let runtime = tokio::runtime::Handle::current();
        let task = move || {
            let folder = staged.folder.path().join("pkg");
            let unpacked = fs::create_private_folder(&folder).map_err(PackageStoreError::from).and_then(|()| {
                let archive = staged.archive();
                let file = File::open(&archive).at("open", &archive)?;
                let contents = runtime.block_on(extract(file, &folder, limits))?;
                let (parsed, executable) = judge(&contents, &platform)?;
                let signature = judge_signature(&contents, &parsed.manifest, &trust)?;
                set_executable(&folder, &contents, &parsed.manifest)?;
                Ok((contents, parsed, executable, signature))
            });
            match unpacked {
                Ok((contents, Parsed { manifest, warnings }, executable, signature)) => Ok(Unpacked {
                    warnings,
                    signature,
                    executable,
                    folder,
                    facts: Facts::of(&staged, &contents, &manifest),
                    manifest,
                    staging: staged.folder,
                }),
                Err(error) => {
                    staged.folder.remove();
                    Err(error)
                }
            }
        };
        tokio::task::spawn_blocking(task).await?
    }

    /// Reads a received archive as [`Self::unpack`] does, but for no platform in particular, and keeps nothing.
    ///
    /// # Errors
    /// [`PackageStoreError::Package`] with the first broken rule.
    pub async fn examine(&self, staged: Staged, limits: Limits, trust: Trust) -> Result<Examined, PackageStoreError> {
        let runtime = tokio::runtime::Handle::current();
        let task = move || {
            let folder = staged.folder.path().join("pkg");
            fs::create_private_folder(&folder)?;
            let archive = staged.archive();
            let file = File::open(&archive).at("open", &archive)?;
            let contents = runtime.block_on(extract(file, &folder, limits))?;
            let Parsed { manifest, warnings } = judge_content(&contents)?;
            let signature = judge_signature(&contents, &manifest, &trust)?;
            Ok(Examined { warnings, signature, facts: Facts::of(&staged, &contents, &manifest), manifest })
        };
        tokio::task::spawn_blocking(task).await?
    }

    /// Checks an installed version again: every file against `checksums.txt`, the manifest, this host's executable.
    /// Blocks: reads all files.
    ///
    /// # Errors
    /// [`PackageStoreError::Package`] with the first broken rule; a link or a special file counts as an unlisted file.
    pub fn verify(&self, folder: &Path, limits: &Limits, platform: &str) -> Result<Parsed, PackageStoreError> {
        let mut contents = Contents::default();
        read_folder(folder, "", limits, &mut contents)?;
        Ok(judge(&contents, platform)?.0)
    }

    /// [`Self::verify`], and whose signature it is now.
    ///
    /// # Errors
    /// As [`Self::verify`]; also those of the signature.
    pub fn verify_kept(
        &self,
        folder: &Path,
        limits: &Limits,
        platform: &str,
        trust: &Trust,
    ) -> Result<Kept, PackageStoreError> {
        let mut contents = Contents::default();
        read_folder(folder, "", limits, &mut contents)?;
        let (parsed, executable) = judge(&contents, platform)?;
        let signature = judge_signature(&contents, &parsed.manifest, trust)?;
        Ok(Kept { parsed, executable, signature })
    }
}

/// The checks on a complete package; gives the digest of the platform's executable too.
fn judge(contents: &Contents, platform: &str) -> Result<(Parsed, Digest), PackageError> {
    let parsed = judge_content(contents)?;
    let executable = judge_platform(contents, &parsed.manifest, platform)?;
    Ok((parsed, executable))
}

fn judge_signature(contents: &Contents, manifest: &Manifest, trust: &Trust) -> Result<PackageSignature, PackageError> {
    let checksums = contents.checksums.as_deref().unwrap_or_default();
    trust.judge(contents.signature.as_deref(), checksums, &manifest.id)
}

/// The checks that do not depend on where the package is to run.
fn judge_content(contents: &Contents) -> Result<Parsed, PackageError> {
    let checksums = contents.checksums.as_deref().ok_or(PackageError::MissingChecksums)?;
    Checksums::parse(checksums)?.verify(&contents.files)?;
    let bytes = contents.manifest.as_deref().ok_or(PackageError::MissingManifest)?;
    let mut parsed = manifest::parse(bytes)?;
    parsed.warnings.extend(ui_file::warnings(&parsed.manifest, |path| contents.files.contains_key(path)));
    Ok(parsed)
}

fn judge_platform(contents: &Contents, manifest: &Manifest, platform: &str) -> Result<Digest, PackageError> {
    let executables = &manifest.runtime.executables;
    let path = executables
        .get(platform)
        .ok_or_else(|| PackageError::platform_unsupported(platform, executables.keys().map(String::as_str)))?;
    let digest = contents.files.get(path.as_str()).copied();
    digest.ok_or_else(|| PackageError::ExecutableMissing(crate::domain::clean::quote(path)))
}

/// Gives 0755 to every declared executable that is there, those of other platforms included (manifest.md §5).
fn set_executable(folder: &Path, contents: &Contents, manifest: &Manifest) -> Result<(), FileError> {
    let declared = manifest.runtime.executables.values().filter(|path| contents.files.contains_key(path.as_str()));
    for path in declared {
        let place = folder.join(path);
        std::fs::set_permissions(&place, Permissions::from_mode(0o755)).at("make executable", &place)?;
    }
    Ok(())
}

/// Hashes the files below `folder`; `below` is its path in the package, empty or with a final slash.
fn read_folder(folder: &Path, below: &str, limits: &Limits, contents: &mut Contents) -> Result<(), PackageStoreError> {
    for name in fs::names_in(folder)? {
        let place = folder.join(&name);
        let relative = format!("{below}{name}");
        let meta = std::fs::symlink_metadata(&place).at("read", &place)?;
        if meta.is_dir() {
            // Checked as a name as well, which bounds the depth.
            EntryPath::of_folder(relative.as_bytes())?;
            read_folder(&place, &format!("{relative}/"), limits, contents)?;
        } else if meta.is_file() {
            read_file(&place, EntryPath::of_file(relative.as_bytes())?, limits, contents)?;
        } else {
            return Err(PackageError::Unlisted(relative).into());
        }
    }
    Ok(())
}

fn read_file(place: &Path, path: EntryPath, limits: &Limits, contents: &mut Contents) -> Result<(), PackageStoreError> {
    let limit = limits.of_file(path.as_str());
    if let Some(kept) = contents.kept(&path) {
        *kept = fs::read_bounded(place, limit)?;
        let digest = Sha256::digest(&*kept).into();
        contents.files.insert(path, digest);
        return Ok(());
    }
    let mut file = File::open(place).at("open", place)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = file.read(&mut buffer).at("read", place)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        contents.size += count as u64;
        if contents.size > limits.expanded {
            return Err(PackageError::ExpandedTooLarge(limits.expanded).into());
        }
    }
    contents.files.insert(path, hash.finalize().into());
    Ok(())
}
