//! Plugin records as files, `<plugins>/<id>.yml`.
//!
//! Reads and writes; it neither caches nor locks, and only the registry writes. All functions block: call them on a
//! blocking thread.

use std::path::{Path, PathBuf};

use super::fs::{self, FileError};
use crate::domain::clean::single_line;
use crate::domain::id::PluginId;
use crate::domain::record::{MAX_RECORD_BYTES, PluginRecord, RecordError};
use crate::failpoint;

/// Longest reason kept for an unreadable record, in bytes.
const MAX_REASON_BYTES: usize = 500;

/// The records below one plugins root.
#[derive(Debug, Clone)]
pub struct RecordStore {
    root: PathBuf,
}

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordStoreError {
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is not a record.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Everything found at start.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The readable records, ordered by id.
    pub records: Vec<PluginRecord>,
    /// Files that look like records and are not readable.
    pub skipped: Vec<Skipped>,
}

/// A record that cannot be read.
#[derive(Debug)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// Whose record it is; nothing when the name is no plugin's.
    pub id: Option<PluginId>,
    /// Why, one line.
    pub reason: String,
}

impl RecordStore {
    /// Records below `root`, which must exist before the first write.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The file of a record.
    pub fn path(&self, id: &PluginId) -> PathBuf {
        self.root.join(format!("{id}.yml"))
    }

    /// Reads all records; one that is unreadable is skipped and the others load.
    ///
    /// # Errors
    /// Only when the folder itself cannot be listed.
    pub fn load_all(&self) -> Result<Loaded, FileError> {
        let mut loaded = Loaded::default();
        for name in fs::names_in(&self.root)? {
            let Some(stem) = record_stem(&name) else { continue };
            let path = self.root.join(&name);
            let (id, read) = match PluginId::new(stem) {
                Ok(id) => (Some(id.clone()), read_file(&path, id).map_err(|error| error.to_string())),
                Err(error) => (None, Err(error.to_string())),
            };
            match read {
                Ok(record) => loaded.records.push(record),
                Err(reason) => {
                    let reason = single_line(&reason, MAX_REASON_BYTES);
                    loaded.skipped.push(Skipped { path, id, reason });
                }
            }
        }
        loaded.records.sort_by(|a, b| a.id().cmp(b.id()));
        Ok(loaded)
    }

    /// Reads one record; `None` when there is none.
    ///
    /// # Errors
    /// [`RecordStoreError`] when it is there and not readable.
    pub fn load(&self, id: &PluginId) -> Result<Option<PluginRecord>, RecordStoreError> {
        let path = self.path(id);
        if !fs::exists(&path)? {
            return Ok(None);
        }
        read_file(&path, id.clone()).map(Some)
    }

    /// Writes a record, replacing an older one atomically; on success it survives a crash.
    ///
    /// # Errors
    /// [`RecordStoreError`]; the older record is then still in place.
    pub fn save(&self, record: &PluginRecord) -> Result<(), RecordStoreError> {
        failpoint::hit("record.writing");
        fs::write_atomic(&self.path(record.id()), record.to_yaml()?.as_bytes())?;
        failpoint::hit("record.written");
        Ok(())
    }
}

fn read_file(path: &Path, id: PluginId) -> Result<PluginRecord, RecordStoreError> {
    let bytes = fs::read_bounded(path, MAX_RECORD_BYTES as u64)?;
    Ok(PluginRecord::from_yaml(id, &bytes)?)
}

/// The part of a file name that is the id of a record; config files and the host's dot files are none.
fn record_stem(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(".yml")?;
    (!stem.starts_with('.') && !stem.ends_with(".config")).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::manifest;
    use crate::domain::package::sample;
    use crate::domain::record::{RecordState, Status};

    fn record(id: &str) -> PluginRecord {
        let manifest = manifest::parse(sample::manifest("1.0").as_bytes()).unwrap().manifest;
        let state = RecordState {
            restart_count: 2,
            restarting: true,
            last_error: Some("boom: \"x\"".to_owned()),
            last_error_at: Some(time::OffsetDateTime::UNIX_EPOCH),
            ..RecordState::installed(format!("/plugins/{id}/1.0"), time::OffsetDateTime::UNIX_EPOCH)
        };
        PluginRecord::new(PluginId::new(id).unwrap(), manifest, state)
    }

    #[test]
    fn a_saved_record_is_loaded_again() {
        let root = tempfile::tempdir().unwrap();
        let store = RecordStore::new(root.path());
        let mut saved = record("acme");
        store.save(&saved).unwrap();
        saved.state.status = Status::Disabled;
        store.save(&saved).unwrap();
        assert_eq!(store.load(saved.id()).unwrap(), Some(saved.clone()));
        assert_eq!(store.load_all().unwrap().records, [saved]);
        assert_eq!(store.load(&PluginId::new("other").unwrap()).unwrap(), None);
    }

    #[test]
    fn an_unreadable_record_is_skipped_and_the_others_load() {
        let root = tempfile::tempdir().unwrap();
        let store = RecordStore::new(root.path());
        let records = [record("a"), record("b.c")];
        records.iter().for_each(|r| store.save(r).unwrap());
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        write("broken.yml", "status: [");
        write("Bad Id.yml", "");
        write("a.config.yml", "status: active");
        write("notes.txt", "x");
        write(".tmp-1.yml", "x");
        std::os::unix::fs::symlink("/dev/zero", root.path().join("zero.yml")).unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        let loaded = store.load_all().unwrap();
        assert_eq!(loaded.records, records);
        let skipped: Vec<_> = loaded
            .skipped
            .iter()
            .map(|skipped| skipped.path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(skipped, ["Bad Id.yml", "broken.yml", "zero.yml"]);
        assert!(store.load(&PluginId::new("broken").unwrap()).is_err());
    }

    #[test]
    fn no_folder_means_no_records() {
        let root = tempfile::tempdir().unwrap();
        let loaded = RecordStore::new(root.path().join("absent")).load_all().unwrap();
        assert!(loaded.records.is_empty() && loaded.skipped.is_empty());
    }
}
