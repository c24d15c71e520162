//! The trusted keys on disk, `<home>/trust/<name>.pub` (`domain::trust` has the format).
//!
//! Read anew each time, so that what an operator changes by hand counts at once. A file that is no trusted key is
//! skipped and told: less is trusted then, never more. All functions block: call them on a blocking thread.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Serialize;

use super::fs::{self, FileError, TMP_PREFIX};
use crate::{
    config::Limits,
    domain::{
        clean::single_line,
        trust::{KeyName, KeyRing, TrustedKey},
    },
};

/// Ending of a key's file; others in the folder are not looked at.
const ENDING: &str = ".pub";

/// Longest file name or reason that is passed on, in bytes.
const MAX_TEXT_BYTES: usize = 300;

/// The folder of trusted keys.
#[derive(Debug, Clone)]
pub struct TrustStore {
    folder: PathBuf,
    max_keys: usize,
    max_bytes: u64,
    /// Held while a key is added or removed.
    writing: Arc<Mutex<()>>,
}

/// What the folder says now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The usable keys.
    pub keys: KeyRing,
    /// Files that are skipped.
    pub skipped: Vec<Skipped>,
}

/// A file that is no trusted key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = SkippedKey)]
pub struct Skipped {
    /// Its name.
    pub file: String,
    /// Why.
    pub error: String,
}

/// Why a key was not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// No key has this name.
    #[error("no trusted key is named \"{0}\"")]
    NotFound(KeyName),
    /// Another key has this name.
    #[error("a trusted key named \"{0}\" exists: remove it first, or choose another name")]
    Exists(KeyName),
    /// No room.
    #[error("there are {0} trusted keys already: remove one, or raise limits.trusted_keys")]
    Full(usize),
    /// Too many plugins for one file.
    #[error("the key's file would be larger than {0} bytes: name fewer plugins, or use * (limits.trusted_key_bytes)")]
    TooLarge(u64),
    /// The file system said no; for the log.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Loaded {
    /// Tells in the log what is skipped.
    pub fn log(&self) {
        for Skipped { file, error } in &self.skipped {
            tracing::warn!(file, error, "a trusted key is skipped: correct its file in the folder trust, or remove it");
        }
    }
}

impl TrustStore {
    /// Keys below `folder`, which is made with the first key.
    pub fn new(folder: impl Into<PathBuf>, limits: &Limits) -> Self {
        let (max_keys, max_bytes) = (limits.trusted_keys, limits.trusted_key_bytes);
        Self { folder: folder.into(), max_keys, max_bytes, writing: Arc::default() }
    }

    /// Reads all keys. At most `limits.trusted_keys` files are read, by name, each up to `limits.trusted_key_bytes`.
    ///
    /// # Errors
    /// Only when the folder itself cannot be listed.
    pub fn load(&self) -> Result<Loaded, FileError> {
        let mut keys = Vec::new();
        let mut skipped = Vec::new();
        for (read, file) in self.files()?.into_iter().enumerate() {
            let outcome = match read < self.max_keys {
                true => self.read(&file),
                false => Err(format!("there are more than {} files (limits.trusted_keys)", self.max_keys)),
            };
            match outcome {
                Ok(key) => keys.push(key),
                Err(error) => {
                    let [file, error] = [file, error].map(|text| single_line(&text, MAX_TEXT_BYTES));
                    skipped.push(Skipped { file, error });
                }
            }
        }
        Ok(Loaded { keys: KeyRing::new(keys), skipped })
    }

    /// Adds a key; on success it survives a crash.
    ///
    /// # Errors
    /// [`TrustError`]; nothing has changed then.
    pub fn add(&self, key: &TrustedKey) -> Result<(), TrustError> {
        let text = key.to_text();
        if text.len() as u64 > self.max_bytes {
            return Err(TrustError::TooLarge(self.max_bytes));
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(&key.name);
        if fs::exists(&path)? {
            return Err(TrustError::Exists(key.name.clone()));
        }
        if self.files()?.len() >= self.max_keys {
            return Err(TrustError::Full(self.max_keys));
        }
        fs::create_private_folder(&self.folder)?;
        Ok(fs::write_atomic(&path, text.as_bytes())?)
    }

    /// Removes a key, or a file of that name that is none; tells whether it was a key that counted.
    ///
    /// # Errors
    /// [`TrustError::NotFound`], [`TrustError::File`].
    pub fn remove(&self, name: &KeyName) -> Result<bool, TrustError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path(name);
        if !fs::exists(&path)? {
            return Err(TrustError::NotFound(name.clone()));
        }
        let counted = self.load()?.keys.keys().iter().any(|key| key.name == *name);
        fs::remove_any(&path)?;
        fs::sync_folder(&self.folder)?;
        Ok(counted)
    }

    /// Deletes what a crash left half written. Only at start.
    pub fn sweep(&self) -> Result<(), FileError> {
        let names = fs::names_in(&self.folder)?;
        names
            .iter()
            .filter(|name| name.starts_with(TMP_PREFIX))
            .try_for_each(|name| fs::remove_any(&self.folder.join(name)))
    }

    fn path(&self, name: &KeyName) -> PathBuf {
        self.folder.join(format!("{name}{ENDING}"))
    }

    fn files(&self) -> Result<Vec<String>, FileError> {
        let mut names = fs::names_in(&self.folder)?;
        names.retain(|name| name.ends_with(ENDING) && !name.starts_with('.'));
        Ok(names)
    }

    fn read(&self, file: &str) -> Result<TrustedKey, String> {
        let name = KeyName::new(file.strip_suffix(ENDING).unwrap_or(file)).map_err(|error| error.to_string())?;
        let bytes =
            fs::read_bounded(&self.folder.join(file), self.max_bytes).map_err(|error| error.source.to_string())?;
        TrustedKey::parse(name, &bytes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{key::PrivateKey, trust::Scope};

    struct World {
        home: tempfile::TempDir,
        store: TrustStore,
    }

    fn world() -> World {
        let home = tempfile::tempdir().unwrap();
        let limits = Limits { trusted_keys: 3, trusted_key_bytes: 200, ..Limits::default() };
        World { store: TrustStore::new(home.path().join("trust"), &limits), home }
    }

    fn key(name: &str) -> TrustedKey {
        let key = PrivateKey::from_seed(&[1; 32]).public();
        TrustedKey { name: KeyName::new(name).unwrap(), key, plugins: Scope::new(["acme"]).unwrap() }
    }

    impl World {
        fn write(&self, file: &str, text: &str) {
            std::fs::write(self.home.path().join("trust").join(file), text).unwrap();
        }

        fn names(&self) -> Vec<String> {
            self.store.load().unwrap().keys.keys().iter().map(|key| key.name.to_string()).collect()
        }
    }

    #[test]
    fn keys_are_added_listed_and_removed() {
        let world = world();
        assert_eq!(world.store.load().unwrap(), Loaded::default());
        world.store.add(&key("b")).unwrap();
        world.store.add(&key("a")).unwrap();
        assert_eq!(world.store.load().unwrap().keys.keys(), [key("a"), key("b")]);
        assert!(matches!(world.store.add(&key("a")), Err(TrustError::Exists(_))));
        assert!(world.store.remove(&key("a").name).unwrap(), "it counted");
        assert!(matches!(world.store.remove(&key("a").name), Err(TrustError::NotFound(_))));
        assert_eq!(world.names(), ["b"]);
    }

    #[test]
    fn a_broken_file_is_skipped_and_told_and_the_others_count() {
        let world = world();
        world.store.add(&key("good")).unwrap();
        world.write("bad.pub", "nonsense");
        world.write("a b.pub", &key("x").to_text());
        world.write("notes.txt", "not looked at");
        world.write(".tmp-x.pub", "not looked at");
        let loaded = world.store.load().unwrap();
        assert_eq!(loaded.keys.keys(), [key("good")]);
        let told: Vec<_> = loaded.skipped.iter().map(|skipped| skipped.file.as_str()).collect();
        assert_eq!(told, ["a b.pub", "bad.pub"]);
        assert!(loaded.skipped[1].error.starts_with("line 1: it is no public key"), "{loaded:?}");
        // An operator can be rid of it.
        assert!(!world.store.remove(&KeyName::new("bad").unwrap()).unwrap(), "it never counted");
        assert_eq!(world.store.load().unwrap().skipped.len(), 1);
        world.store.sweep().unwrap();
        assert!(!world.home.path().join("trust/.tmp-x.pub").exists());
    }

    #[test]
    fn a_link_is_not_followed_and_told_as_one() {
        let world = world();
        world.store.add(&key("good")).unwrap();
        std::os::unix::fs::symlink("good.pub", world.home.path().join("trust/link.pub")).unwrap();
        let skipped = Skipped { file: "link.pub".into(), error: "it is a link; put the file itself there".into() };
        assert_eq!(world.store.load().unwrap().skipped, [skipped]);
        assert!(!world.store.remove(&KeyName::new("link").unwrap()).unwrap());
        assert_eq!(world.names(), ["good"]);
    }

    #[test]
    fn number_and_size_are_bounded() {
        let world = world();
        for name in ["a", "b", "c"] {
            world.store.add(&key(name)).unwrap();
        }
        assert!(matches!(world.store.add(&key("d")), Err(TrustError::Full(3))));
        world.write("d.pub", &key("d").to_text());
        let loaded = world.store.load().unwrap();
        assert_eq!((world.names(), loaded.skipped.len()), (["a", "b", "c"].map(String::from).to_vec(), 1));
        world.store.remove(&key("a").name).unwrap();
        world.write("b.pub", &format!("{}{}", "#".repeat(200), key("b").to_text()));
        assert_eq!(world.names(), ["c", "d"]);
        let ids: Vec<_> = (0..100).map(|n| format!("p{n}")).collect();
        let wide = TrustedKey { plugins: Scope::new(ids.iter().map(String::as_str)).unwrap(), ..key("e") };
        assert!(matches!(world.store.add(&wide), Err(TrustError::TooLarge(200))));
    }
}
