//! `plugin pack`: a folder becomes a package. Same files, same bytes: order, times, owners and modes are fixed.
//!
//! The rules are the host's own (`domain`); the finished package is unpacked as a host unpacks it before it gets its
//! name. Reading the folder is in `folder`.

mod folder;

use std::{
    collections::BTreeMap,
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use async_compression::{Level, tokio::write::GzipEncoder};
use clap::Args;
use folder::{Found, digest};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_util::io::ReaderStream;

use super::keys::{self, KeyFileFault};
use crate::{
    cli::{
        error::CliError,
        output::{Output, fields, size},
    },
    config::{DEFAULT_COMPAT_VERSION, Limits},
    domain::{
        key::{PrivateKey, PublicKey},
        manifest::{self, Manifest, ManifestError},
        package::{CHECKSUMS_NAME, MANIFEST_NAME, PackageError, SIGNATURE_NAME, hex},
        signature::{SignatureFile, Trust},
        target::host_platform,
        ui_file,
        version::check_minimum,
    },
    store::packages::{PackageStore, PackageStoreError, StageError, Staged},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin pack dist
  kandev-host plugin pack dist --output releases/
  kandev-host plugin pack dist --output plugin.tar.gz --json
  kandev-host plugin pack dist --sign acme.key

The folder holds manifest.yaml, the executables that it names, and whatever the plugin needs beside them; everything in
it is packed, except names that begin with a dot. `checksums.txt` is written into the folder, and with --sign the signature
over it, checksums.txt.sig. To sign elsewhere: pack, sign checksums.txt, put the signature beside it, pack again. The same
files give the same bytes.";

/// The compression of every package; another one would change the bytes.
const LEVEL: Level = Level::Precise(6);

/// `pack`.
#[derive(Args)]
pub struct Pack {
    /// The folder with manifest.yaml and everything else
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The package, or the folder to put it in [default: ID-VERSION.tar.gz here]
    #[arg(short, long, value_name = "FILE|FOLDER")]
    output: Option<PathBuf>,
    /// Signs with this private key, from `plugin keygen` or `openssl genpkey -algorithm ed25519`
    #[arg(long, value_name = "FILE")]
    sign: Option<PathBuf>,
}

/// Why there is no package.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file operation.
    #[error("could not {action} {path}: {source}", path = .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No folder to pack.
    #[error("cannot pack {path}: {source}; name the folder that has manifest.yaml", path = .path.display())]
    Folder {
        /// What was named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No manifest.
    #[error("{folder} holds no manifest.yaml: name the folder that has it, with the built executables beside it", folder = .0.display())]
    NoManifest(PathBuf),
    /// The manifest breaks rules.
    #[error("manifest.yaml is not valid:\n{0}")]
    Manifest(#[from] ManifestError),
    /// A name that a host refuses.
    #[error("{0}; rename it, or begin its name with a dot to leave it out")]
    Name(PackageError),
    /// A link or a special file.
    #[error("{path} is neither a file nor a folder: a package holds no links, put the file itself there", path = .0.display())]
    Kind(PathBuf),
    /// Nothing to run.
    #[error("none of the executables that manifest.yaml names is in the folder ({0}): build the plugin first")]
    NoExecutable(String),
    /// The signature is of other content.
    #[error(
        "checksums.txt has changed since checksums.txt.sig was made: remove the signature, pack, sign checksums.txt, pack again"
    )]
    StaleSignature,
    /// The package would be packed the next time.
    #[error("the package would lie in the folder that is packed: choose another place with --output")]
    OutputInside,
    /// The key to sign with.
    #[error(transparent)]
    Key(#[from] KeyFileFault),
    /// The host's own check says no.
    #[error("a host would refuse the package: {0}")]
    Refused(PackageStoreError),
}

/// Turns an I/O error into one that names the path.
fn at(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PackError {
    move |source| PackError::File { action, path: path.to_owned(), source }
}

/// What was packed.
#[derive(Debug, Serialize)]
struct Packed {
    package: PathBuf,
    id: String,
    version: String,
    /// Platforms whose executable is in the package.
    platforms: Vec<String>,
    files: usize,
    /// Bytes of the package.
    size: u64,
    sha256: String,
    signed: bool,
    /// The key that `--sign` signed with, base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<PublicKey>,
    /// Names that were not packed.
    left_out: Vec<String>,
    warnings: Vec<String>,
}

/// Packs and tells.
pub async fn run(Pack { folder, output: place, sign }: Pack, output: &Output) -> Result<(), CliError> {
    let key = sign.as_deref().map(keys::private).transpose()?;
    let packed = pack(&folder, place.as_deref(), key.as_ref(), output).await?;
    for warning in &packed.warnings {
        output.note(&format!("warning: {warning}"));
    }
    output.result(&packed, || {
        fields(&[
            ("package", packed.package.display().to_string()),
            ("plugin", format!("{} {}", packed.id, packed.version)),
            ("platforms", packed.platforms.join(", ")),
            ("size", format!("{}, {} files", size(packed.size), packed.files)),
            ("sha256", packed.sha256.clone()),
            ("signed with", packed.key.map(|key| key.to_string()).unwrap_or_default()),
            ("left out", packed.left_out.join(", ")),
        ])
    })
}

async fn pack(
    folder: &Path,
    place: Option<&Path>,
    key: Option<&PrivateKey>,
    output: &Output,
) -> Result<Packed, PackError> {
    if let Err(source) = std::fs::read_dir(folder) {
        return Err(PackError::Folder { path: folder.to_owned(), source });
    }
    let Found { mut files, left_out } = folder::read(folder)?;
    let manifest_path = folder.join(MANIFEST_NAME);
    if !files.contains_key(MANIFEST_NAME) {
        return Err(PackError::NoManifest(folder.to_owned()));
    }
    let bytes = std::fs::read(&manifest_path).map_err(at("read", &manifest_path))?;
    let manifest::Parsed { manifest, mut warnings } = manifest::parse(&bytes)?;
    warnings.extend(ui_file::warnings(&manifest, |path| files.contains_key(path)));
    let platforms = present_platforms(&manifest, &files, &mut warnings)?;
    let target = target(folder, place, &manifest)?;
    let signed = write_checksums(folder, &mut files, key)?;

    output.progress(&format!("packing {}", target.display()));
    let parent = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // The mode of an ordinary file; the umask has its say.
    let unfinished = tempfile::Builder::new()
        .prefix(".kandev-pack-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent)
        .map_err(at("create a file in", parent))?;
    write(unfinished.path(), folder, &files, &manifest).await?;
    output.progress("checking the package as a host does");
    let platform = match platforms.contains(&host_platform()) {
        true => host_platform(),
        false => platforms[0].clone(),
    };
    prove(unfinished.path(), &platform).await?;
    let size = unfinished.path().metadata().map_err(at("read", &target))?.len();
    let sha256 = hex(&digest(unfinished.path())?);
    unfinished.persist(&target).map_err(|error| at("write", &target)(error.error))?;
    Ok(Packed {
        package: target,
        id: manifest.id,
        version: manifest.version,
        platforms,
        files: files.len(),
        size,
        sha256,
        signed,
        key: key.map(PrivateKey::public),
        left_out,
        warnings,
    })
}

/// The declared platforms whose executable is there: at least one. The others become warnings.
fn present_platforms(
    manifest: &Manifest,
    files: &BTreeMap<String, PathBuf>,
    warnings: &mut Vec<String>,
) -> Result<Vec<String>, PackError> {
    let declared = &manifest.runtime.executables;
    let (present, absent): (Vec<_>, Vec<_>) = declared.iter().partition(|(_, path)| files.contains_key(path.as_str()));
    if present.is_empty() {
        let names: Vec<_> = declared.values().map(String::as_str).collect();
        return Err(PackError::NoExecutable(names.join(", ")));
    }
    warnings.extend(
        absent.iter().map(|(platform, path)| {
            format!("{path} is not in the folder: hosts on {platform} will refuse the package")
        }),
    );
    if let Err(error) = check_minimum(&manifest.min_kandev_version, DEFAULT_COMPAT_VERSION) {
        warnings.push(format!("this version of the host refuses the package, unless compat_version is set: {error}"));
    }
    Ok(present.into_iter().map(|(platform, _)| platform.clone()).collect())
}

/// Where the package goes; never into the folder that is packed.
fn target(folder: &Path, place: Option<&Path>, manifest: &Manifest) -> Result<PathBuf, PackError> {
    let name = format!("{}-{}.tar.gz", manifest.id, manifest.version);
    let target = match place {
        None => PathBuf::from(name),
        Some(place) if place.is_dir() => place.join(name),
        Some(place) => place.to_owned(),
    };
    let real = |path: &Path| std::fs::canonicalize(path).map_err(at("find", path));
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match real(parent)?.starts_with(real(folder)?) {
        true => Err(PackError::OutputInside),
        false => Ok(target),
    }
}

/// Hashes everything and writes `checksums.txt` when it says something new, and the signature when there is a key for
/// it; tells whether there is a signature.
fn write_checksums(
    folder: &Path,
    files: &mut BTreeMap<String, PathBuf>,
    key: Option<&PrivateKey>,
) -> Result<bool, PackError> {
    let mut text = String::new();
    for (name, path) in files.iter().filter(|(name, _)| !matches!(name.as_str(), CHECKSUMS_NAME | SIGNATURE_NAME)) {
        text.push_str(&format!("{}  {name}\n", hex(&digest(path)?)));
    }
    let path = folder.join(CHECKSUMS_NAME);
    if let Some(key) = key {
        let place = folder.join(SIGNATURE_NAME);
        let signature = SignatureFile { key: Some(key.public()), signature: key.sign(text.as_bytes()) };
        std::fs::write(&place, signature.to_text()).map_err(at("write", &place))?;
        files.insert(SIGNATURE_NAME.to_owned(), place);
    }
    let signed = files.contains_key(SIGNATURE_NAME);
    if !std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
        if signed && key.is_none() {
            return Err(PackError::StaleSignature);
        }
        std::fs::write(&path, text).map_err(at("write", &path))?;
    }
    files.insert(CHECKSUMS_NAME.to_owned(), path);
    Ok(signed)
}

/// Writes the archive: what a host reads first comes first, then the files by name.
async fn write(
    target: &Path,
    folder: &Path,
    files: &BTreeMap<String, PathBuf>,
    manifest: &Manifest,
) -> Result<(), PackError> {
    let file = tokio::fs::File::create(target).await.map_err(at("write", target))?;
    let mut archive = tokio_tar::Builder::new(GzipEncoder::with_quality(file, LEVEL));
    let first = [MANIFEST_NAME, CHECKSUMS_NAME, SIGNATURE_NAME];
    let rest = files.keys().map(String::as_str).filter(|name| !first.contains(name));
    for name in first.into_iter().filter(|name| files.contains_key(*name)).chain(rest) {
        let executable = manifest.runtime.executables.values().any(|path| path == name);
        append(&mut archive, &folder.join(name), name, executable).await?;
    }
    let mut gzip = archive.into_inner().await.map_err(at("write", target))?;
    gzip.shutdown().await.map_err(at("write", target))
}

async fn append(
    archive: &mut tokio_tar::Builder<GzipEncoder<tokio::fs::File>>,
    path: &Path,
    name: &str,
    executable: bool,
) -> Result<(), PackError> {
    let file = tokio::fs::File::open(path).await.map_err(at("read", path))?;
    let bytes = file.metadata().await.map_err(at("read", path))?.len();
    let mut header = tokio_tar::Header::new_gnu();
    header.set_entry_type(tokio_tar::EntryType::Regular);
    header.set_size(bytes);
    header.set_mode(if executable { 0o755 } else { 0o644 });
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    // One that grows meanwhile fails the proof, not the archive.
    archive.append_data(&mut header, name, file.take(bytes)).await.map_err(at("pack", path))
}

/// Unpacks the package as a host on `platform` does.
async fn prove(package: &Path, platform: &str) -> Result<(), PackError> {
    let scratch = tempfile::tempdir().map_err(at("create", &std::env::temp_dir()))?;
    let store = PackageStore::new(scratch.path());
    let limits = Limits::default().package();
    let staged = stage(&store, package).await.map_err(PackError::Refused)?;
    store.unpack(staged, limits, platform, Trust::default()).await.map(drop).map_err(PackError::Refused)
}

/// Hands the package file in that a command was given.
pub(super) async fn take(store: &PackageStore, package: &Path) -> Result<Staged, CliError> {
    let source = match tokio::fs::metadata(package).await {
        Ok(meta) if meta.is_file() => return Ok(stage(store, package).await?),
        Ok(_) => io::Error::other("it is not a regular file"),
        Err(error) => error,
    };
    Err(CliError::PackageFile { path: package.to_owned(), wanted: "a package file", source })
}

/// Hands a package file in, as an upload does.
async fn stage(store: &PackageStore, package: &Path) -> Result<Staged, PackageStoreError> {
    let action = "read";
    let failed = |source| crate::store::fs::FileError { action, path: package.to_owned(), source };
    let file = tokio::fs::File::open(package).await.map_err(failed)?;
    let pieces = ReaderStream::new(file).map(|piece| piece.map_err(failed));
    store.stage(pieces, &Limits::default().package()).await.map_err(|error| match error {
        StageError::TooLarge(error) => error.into(),
        StageError::Source(error) | StageError::File(error) => error.into(),
        StageError::Interrupted(error) => error.into(),
    })
}
