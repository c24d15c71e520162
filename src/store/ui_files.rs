//! Files of packages for browsers: opened so that no link leads out of the package, and the smaller ones kept in memory
//! for as long as the plugin's run goes on.
//!
//! A file in memory belongs to one run of one plugin: an upgrade, an uninstall and a new start begin with files from
//! disk, and what is left of an earlier run goes as what is longest not asked for. Which files are lawful is
//! `domain::ui_file`'s decision. Disks are read on blocking threads only.

mod cache;

use std::{
    fs::File,
    io::{self, Read as _},
    os::{fd::AsFd, unix::fs::FileExt as _, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use sha2::{Digest as _, Sha256};
use tokio::{sync::Semaphore, time::timeout};

use self::cache::Cache;
use crate::domain::package::{EntryPath, hex};

/// Files read into memory at once; more wait.
const LOADS: usize = 4;

/// Bytes of a large file read at once.
const PIECE_BYTES: u64 = 256 * 1024;

/// The part of the memory that one file may take.
const LARGEST_PART: u64 = 8;

/// Where a file is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The plugin's run: another one has other files.
    pub run: u64,
    /// Folder of the installed version.
    pub folder: PathBuf,
    /// Path within it.
    pub path: EntryPath,
}

/// A file as it was found.
#[derive(Debug, Clone)]
pub struct UiFile {
    /// Bytes.
    pub size: u64,
    /// Changes with the content: text without quotes.
    pub tag: String,
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Memory(Bytes),
    Disk(Arc<File>),
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum UiFileError {
    /// Nothing of this name, or no regular file, or one behind a link.
    #[error("file not found")]
    NotFound,
    /// The disk did not answer in time.
    #[error("the file was not read within {} ms (timing.ask_timeout)", .0.as_millis())]
    TooLate(Duration),
    /// The disk failed.
    #[error("a file of a plugin's user interface cannot be read")]
    Disk(#[from] io::Error),
}

impl From<Errno> for UiFileError {
    fn from(error: Errno) -> Self {
        match error {
            // What lies in the way is no folder, or the name leads elsewhere: for a browser it is not there. A file
            // that is a socket or a device without anybody behind it cannot be opened.
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG | Errno::NXIO | Errno::NODEV => {
                Self::NotFound
            }
            error => Self::Disk(error.into()),
        }
    }
}

/// Gives files out; clones share the memory.
#[derive(Debug, Clone)]
pub struct UiFiles {
    cache: Arc<Mutex<Cache>>,
    largest: u64,
    loads: Arc<Semaphore>,
    deadline: Duration,
}

impl UiFiles {
    /// With room for `bytes` in memory. Reading from disk may take `deadline`.
    pub fn new(bytes: u64, deadline: Duration) -> Self {
        Self {
            cache: Arc::new(Mutex::new(Cache::new(bytes))),
            largest: bytes / LARGEST_PART,
            loads: Arc::new(Semaphore::new(LOADS)),
            deadline,
        }
    }

    /// The first of these places where there is a file.
    ///
    /// # Errors
    /// [`UiFileError`]
    pub async fn find(&self, places: Vec<Place>) -> Result<UiFile, UiFileError> {
        // Of the others it is not known whether one before them is there.
        if let Some(file) = places.first().and_then(|place| self.kept(place)) {
            return Ok(file);
        }
        let load = async {
            // Never closed.
            let turn = Arc::clone(&self.loads).acquire_owned().await.map_err(|_| UiFileError::NotFound)?;
            let files = self.clone();
            let work = move || {
                let _turn = turn;
                files.load(&places)
            };
            tokio::task::spawn_blocking(work).await.map_err(|error| io::Error::other(error.to_string()))?
        };
        timeout(self.deadline, load).await.unwrap_or(Err(UiFileError::TooLate(self.deadline)))
    }

    fn kept(&self, place: &Place) -> Option<UiFile> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).get(place)
    }

    /// Reads from disk, what does not exist in memory meanwhile. Blocks.
    fn load(&self, places: &[Place]) -> Result<UiFile, UiFileError> {
        for place in places {
            if let Some(file) = self.kept(place) {
                return Ok(file);
            }
            match read(place, self.largest) {
                Err(UiFileError::NotFound) => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
                    // Somebody may have been faster: there is one copy.
                    if let Some(kept) = cache.get(place) {
                        return Ok(kept);
                    }
                    cache.put(place.clone(), &file);
                    return Ok(file);
                }
            }
        }
        Err(UiFileError::NotFound)
    }
}

impl UiFile {
    /// The whole content, when it is in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Disk(_) => None,
        }
    }

    /// The bytes from `start` to `end`, in pieces that are read as they are asked for.
    pub fn pieces(&self, start: u64, end: u64) -> impl Stream<Item = io::Result<Bytes>> + use<> {
        let content = self.content.clone();
        stream::try_unfold(start, move |at| {
            let content = content.clone();
            async move {
                if at >= end {
                    return Ok(None);
                }
                let until = end.min(at + PIECE_BYTES);
                let piece = match content {
                    Content::Memory(bytes) => bytes.slice(at as usize..until as usize),
                    Content::Disk(file) => {
                        let read = move || read_piece(&file, at, until);
                        tokio::task::spawn_blocking(read)
                            .await
                            .map_err(|error| io::Error::other(error.to_string()))??
                    }
                };
                Ok(Some((piece, until)))
            }
        })
    }
}

fn read_piece(file: &File, at: u64, until: u64) -> io::Result<Bytes> {
    let mut piece = vec![0; (until - at) as usize];
    file.read_exact_at(&mut piece, at)?;
    Ok(piece.into())
}

/// Opens and, when it is not larger than `largest`, reads a file.
fn read(place: &Place, largest: u64) -> Result<UiFile, UiFileError> {
    let mut file = open_below(&place.folder, place.path.as_str())?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(UiFileError::NotFound);
    }
    if meta.len() > largest {
        // As long as nobody writes to it in place, which no install does, this is as good as its content's hash.
        let tag = format!("{:x}-{:x}-{:x}.{:x}", meta.len(), meta.ino(), meta.mtime(), meta.mtime_nsec());
        return Ok(UiFile { size: meta.len(), tag, content: Content::Disk(Arc::new(file)) });
    }
    let mut bytes = Vec::with_capacity(meta.len() as usize);
    file.by_ref().take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(io::Error::other("the file grows while it is read").into());
    }
    let tag = hex(&Sha256::digest(&bytes).into());
    Ok(UiFile { size: bytes.len() as u64, tag, content: Content::Memory(bytes.into()) })
}

/// Opens a file below a folder, part by part: no part may be a link, wherever it leads.
fn open_below(folder: &Path, path: &str) -> Result<File, UiFileError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let in_between = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut at = rustix::fs::open(folder, in_between, Mode::empty())?;
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        at = rustix::fs::openat(at.as_fd(), part, in_between, Mode::empty())?;
    }
    Ok(rustix::fs::openat(at.as_fd(), name, flags, Mode::empty())?.into())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use futures_util::TryStreamExt as _;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn package() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("ui/sub")).unwrap();
        fs::write(folder.path().join("ui/a.css"), "a{}").unwrap();
        fs::write(folder.path().join("ui/sub/b.js"), "b()").unwrap();
        fs::write(folder.path().join("secret"), "s3cret").unwrap();
        folder
    }

    fn place(folder: &Path, run: u64, path: &str) -> Place {
        Place { run, folder: folder.to_owned(), path: EntryPath::of_file(path.as_bytes()).unwrap() }
    }

    async fn all(file: &UiFile, start: u64, end: u64) -> Vec<u8> {
        file.pieces(start, end).try_collect::<Vec<_>>().await.unwrap().concat()
    }

    #[tokio::test]
    async fn the_first_name_with_a_file_is_found_and_read_once_in_a_run() {
        let folder = package();
        let files = UiFiles::new(1 << 20, PATIENCE);
        let of_run = |run| vec![place(folder.path(), run, "ui/none"), place(folder.path(), run, "ui/a.css")];
        let first = files.find(of_run(1)).await.unwrap();
        assert_eq!((first.size, first.bytes().unwrap().as_ref()), (3, b"a{}".as_slice()));
        assert_eq!(first.tag, hex(&Sha256::digest("a{}").into()));
        fs::write(folder.path().join("ui/a.css"), "b{}").unwrap();
        assert_eq!(files.find(of_run(1)).await.unwrap().tag, first.tag);
        assert_ne!(files.find(of_run(2)).await.unwrap().tag, first.tag);
        fs::remove_file(folder.path().join("ui/a.css")).unwrap();
        assert!(matches!(files.find(of_run(3)).await, Err(UiFileError::NotFound)));
    }

    #[tokio::test]
    async fn no_link_is_followed_and_only_regular_files_are_found() {
        let folder = package();
        let ui = folder.path().join("ui");
        symlink("../secret", ui.join("file")).unwrap();
        symlink("sub", ui.join("folder")).unwrap();
        symlink("/", ui.join("root")).unwrap();
        symlink(folder.path(), folder.path().with_extension("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, ui.join("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let files = UiFiles::new(1 << 20, PATIENCE);
        for path in ["ui/file", "ui/folder/b.js", "ui/root/etc/hostname", "ui/pipe", "ui/sub", "ui/a.css/x", "ui/none"]
        {
            let found = files.find(vec![place(folder.path(), 1, path)]).await;
            assert!(matches!(found, Err(UiFileError::NotFound)), "{path}: {found:?}");
        }
        let found = files.find(vec![place(&folder.path().with_extension("link"), 1, "ui/a.css")]).await;
        assert!(matches!(found, Err(UiFileError::NotFound)), "{found:?}");
        fs::remove_file(folder.path().with_extension("link")).unwrap();
        assert!(files.find(vec![place(folder.path(), 1, "ui/sub/b.js")]).await.is_ok());
    }

    #[tokio::test]
    async fn a_large_file_is_read_in_pieces_and_not_kept() {
        let folder = package();
        let content: Vec<u8> = (0..700_000u32).map(|n| n as u8).collect();
        fs::write(folder.path().join("ui/large"), &content).unwrap();
        let files = UiFiles::new(1 << 20, PATIENCE);
        let at = vec![place(folder.path(), 1, "ui/large")];
        let file = files.find(at.clone()).await.unwrap();
        assert_eq!((file.size, file.bytes()), (700_000, None));
        assert_eq!(all(&file, 0, file.size).await, content);
        assert_eq!(all(&file, 262_100, 262_200).await, content[262_100..262_200]);
        assert_eq!(files.find(at.clone()).await.unwrap().tag, file.tag);
        fs::remove_file(folder.path().join("ui/large")).unwrap();
        assert!(matches!(files.find(at).await, Err(UiFileError::NotFound)));
        let kept = files.find(vec![place(folder.path(), 1, "ui/a.css")]).await.unwrap();
        assert_eq!(all(&kept, 1, 3).await, b"{}");
    }

    #[tokio::test]
    async fn many_who_ask_at_once_get_the_same_copy() {
        let folder = package();
        let files = UiFiles::new(1 << 20, PATIENCE);
        let asking = (0..50).map(|_| files.find(vec![place(folder.path(), 1, "ui/a.css")]));
        let found = futures_util::future::join_all(asking).await;
        let first = found[0].as_ref().unwrap().bytes().unwrap().as_ptr();
        let same = found.iter().filter(|file| file.as_ref().unwrap().bytes().unwrap().as_ptr() == first).count();
        assert_eq!(same, 50, "all share one copy");
    }
}
