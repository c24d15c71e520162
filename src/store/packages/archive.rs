//! The one reading pass: gunzip → strict guard → archive reader → files on disk, hashed while written.
//!
//! Runs on a blocking thread that drives the async readers itself: the source is a local file, so nothing here ever
//! waits for another party. Memory: some buffers, one extension header and the three small files that are kept.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::GzipDecoder;
use futures_util::StreamExt as _;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncReadExt as _, BufReader, ReadBuf};

use super::PackageStoreError;
use crate::domain::clean::single_line;
use crate::domain::package::{
    CHECKSUMS_NAME, Digest, EntryPath, Limits, MANIFEST_NAME, Member, PackageError, SIGNATURE_NAME, TarGuard,
};
use crate::store::fs::At as _;

/// Size of the read and copy buffers, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Told of a gzip stream that ends too soon.
const CUT_OFF: &str = "the gzip stream is cut off before its end: fetch or copy the whole package again";

/// Longest text taken over from a reader's error, in bytes.
const MAX_CAUSE_BYTES: usize = 200;

/// What was in the archive.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Every regular file with its digest.
    pub files: BTreeMap<EntryPath, Digest>,
    /// `manifest.yaml`.
    pub manifest: Option<Vec<u8>>,
    /// `checksums.txt`.
    pub checksums: Option<Vec<u8>>,
    /// `checksums.txt.sig`.
    pub signature: Option<Vec<u8>>,
    /// Bytes of all files.
    pub size: u64,
}

impl Contents {
    /// Where the content of a file is to be kept, when it is one of the three.
    pub(super) fn kept(&mut self, path: &EntryPath) -> Option<&mut Vec<u8>> {
        let slot = match path.as_str() {
            MANIFEST_NAME => &mut self.manifest,
            CHECKSUMS_NAME => &mut self.checksums,
            SIGNATURE_NAME => &mut self.signature,
            _ => return None,
        };
        Some(slot.insert(Vec::new()))
    }
}

/// Unpacks `archive` into the existing empty folder `target`. Blocks; to be driven on a blocking thread.
pub(super) async fn extract(archive: File, target: &Path, limits: Limits) -> Result<Contents, PackageStoreError> {
    // To the decoder an empty stream is one that is cut off.
    if archive.metadata().at("read", Path::new("the staged package"))?.len() == 0 {
        return Err(PackageError::BadGzip("the file is empty".to_owned()).into());
    }
    let mut gunzip = GzipDecoder::new(BufReader::with_capacity(BUFFER_BYTES, Blocking(archive)));
    gunzip.multiple_members(true);
    let watch = Watch::new(limits);
    let mut archive = tokio_tar::Archive::new(Guarded { inner: gunzip, watch: watch.clone() });
    let mut contents = Contents::default();
    let mut entries = archive.entries().map_err(|e| watch.cause(&e))?;
    while let Some(entry) = entries.next().await {
        let mut entry = entry.map_err(|e| watch.cause(&e))?;
        let member = watch.lock().guard.take_member().ok_or_else(disagreement)?;
        let agreed = *entry.path_bytes().map_err(|e| watch.cause(&e))? == member.raw_name
            && entry.effective_size() == member.size
            && entry.header().entry_type().is_dir() == member.folder;
        if !agreed {
            return Err(disagreement().into());
        }
        write_member(&mut entry, member, target, &watch, &mut contents).await?;
    }
    drop(entries);
    let rest = archive.into_inner().map_err(|_| disagreement())?;
    drain(rest, &watch).await?;
    Ok(contents)
}

/// The archive reader and the guard understood different things: never unpack such an archive.
fn disagreement() -> PackageError {
    PackageError::bad_archive("the archive can be read in two ways")
}

/// Reads to the end of the stream, so that the guard and the gzip checksum see everything.
async fn drain(mut rest: Guarded, watch: &Watch) -> Result<(), PackageStoreError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    while rest.read(&mut buffer).await.map_err(|e| watch.cause(&e))? > 0 {}
    let mut state = watch.lock();
    state.guard.finish()?;
    match state.guard.take_member() {
        None => Ok(()),
        Some(_) => Err(disagreement().into()),
    }
}

async fn write_member(
    entry: &mut (impl AsyncRead + Unpin),
    member: Member,
    target: &Path,
    watch: &Watch,
    contents: &mut Contents,
) -> Result<(), PackageStoreError> {
    let Some(path) = member.path else { return Ok(()) };
    let place = target.join(path.as_str());
    if member.folder {
        return Ok(create_folder(&place)?);
    }
    if let Some(folder) = place.parent() {
        create_folder(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&place).at("create", &place)?;
    let mut hash = Sha256::new();
    let mut left = member.size;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut kept = contents.kept(&path);
    loop {
        let count = entry.read(&mut buffer).await.map_err(|e| watch.cause(&e))?;
        let bytes = &buffer[..count];
        if count == 0 {
            break;
        }
        hash.update(bytes);
        file.write_all(bytes).at("write", &place)?;
        kept.iter_mut().for_each(|kept| kept.extend_from_slice(bytes));
        left = left.checked_sub(count as u64).ok_or_else(disagreement)?;
    }
    if left > 0 {
        return Err(PackageError::bad_archive("the archive is truncated").into());
    }
    contents.size += member.size;
    contents.files.insert(path, hash.finalize().into());
    Ok(())
}

fn create_folder(folder: &Path) -> Result<(), crate::store::fs::FileError> {
    DirBuilder::new().recursive(true).mode(0o755).create(folder).at("create", folder)
}

/// What the guarded reader and the loop around the archive reader share.
#[derive(Clone)]
struct Watch(Arc<Mutex<WatchState>>);

struct WatchState {
    guard: TarGuard,
    /// The first fault, kept because the archive reader wraps errors.
    fault: Option<Fault>,
}

enum Fault {
    Package(PackageError),
    Source(io::Error),
}

impl Watch {
    fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(WatchState { guard: TarGuard::new(limits), fault: None })))
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The true cause of an error the archive reader reports: the fault kept below it, or its own complaint.
    fn cause(&self, error: &io::Error) -> PackageStoreError {
        match self.lock().fault.take() {
            Some(Fault::Package(error)) => error.into(),
            Some(Fault::Source(source)) => {
                crate::store::fs::FileError { action: "read", path: PathBuf::from("the staged package"), source }.into()
            }
            None => PackageError::bad_archive(single_line(&error.to_string(), MAX_CAUSE_BYTES)).into(),
        }
    }
}

/// A reader that shows every byte to the guard before anyone else gets it.
struct Guarded {
    inner: GzipDecoder<BufReader<Blocking>>,
    watch: Watch,
}

impl AsyncRead for Guarded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        let mut state = self.watch.lock();
        let fault = match read {
            // The decoder's own errors carry no system code; the source's do.
            Err(error) if error.raw_os_error().is_some() => Fault::Source(error),
            // Never of bytes that do not begin as gzip does: these are refused at the first that differs.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Fault::Package(PackageError::bad_archive(CUT_OFF))
            }
            Err(error) => Fault::Package(PackageError::BadGzip(single_line(&error.to_string(), MAX_CAUSE_BYTES))),
            Ok(()) => match state.guard.feed(&buffer.filled()[before..]) {
                Ok(()) => return Poll::Ready(Ok(())),
                Err(error) => Fault::Package(error),
            },
        };
        state.fault.get_or_insert(fault);
        buffer.set_filled(before);
        Poll::Ready(Err(io::Error::other("the package is refused")))
    }
}

/// A local file as an async reader that is always ready; only for use on a blocking thread.
struct Blocking(File);

impl AsyncRead for Blocking {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = self.0.read(buffer.initialize_unfilled())?;
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }
}
