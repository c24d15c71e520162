//! Looking at what lies in the plugins root, for a sync: folders without a record, dropped packages, installs that are
//! gone, leftovers. Taking a dropped package in.
//!
//! Follows no link, and reads nothing but small manifests. What becomes of the findings is `domain::sync`'s decision.
//! All functions but [`PackageStore::stage_file`] block.

use std::collections::BTreeMap;
use std::fs::{self as std_fs, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use tokio_util::io::ReaderStream;

use super::{PackageStore, StageError, Staged};
use crate::domain::clean;
use crate::domain::id::PluginId;
use crate::domain::manifest::{self, Manifest};
use crate::domain::package::{Limits, PackageError};
use crate::domain::sync::{Folder, Install, ItemError, Survey, Tarball, TarballKind, Version};
use crate::store::fs::{self, At as _, FileError, TMP_PREFIX};

/// End of the names of dropped packages.
const TARBALL: &str = ".tar.gz";

/// Longest path shown, in bytes.
const SHOWN_PATH_BYTES: usize = 1024;

/// Longest reason shown, in bytes.
const SHOWN_REASON_BYTES: usize = 4096;

/// Bounds of one look.
#[derive(Debug, Clone, Copy)]
pub struct SurveyLimits {
    /// Unregistered folders, versions in one of them, dropped packages; each.
    pub items: usize,
    /// Bytes of a manifest.
    pub manifest: u64,
}

/// Tells a file from another one that took its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMark {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileMark {
    fn of(meta: &Metadata) -> Self {
        let modified = (meta.mtime(), meta.mtime_nsec());
        Self { device: meta.dev(), inode: meta.ino(), size: meta.size(), modified }
    }
}

impl PackageStore {
    /// Looks at everything a sync is concerned with; `registered` are the plugins that have a record, with the folder
    /// of their version.
    ///
    /// # Errors
    /// [`FileError`] when the root cannot be listed; what else fails is in [`Survey::errors`].
    pub fn survey(&self, registered: &BTreeMap<PluginId, PathBuf>, limits: SurveyLimits) -> Result<Survey, FileError> {
        let mut look = Look { root: self.root(), limits, survey: Survey::default() };
        for name in fs::names_in(self.root())?.into_iter().filter(|name| !name.starts_with('.')) {
            let is_registered = registered.contains_key(name.as_str());
            look.entry(name, is_registered);
        }
        for (id, place) in registered {
            look.install(id, place);
        }
        Ok(look.done())
    }

    /// Whether the folder is gone; a link there counts as something.
    pub fn is_missing(&self, place: &Path) -> Result<bool, FileError> {
        Ok(!fs::exists(place)?)
    }

    /// Deletes unfinished files in a plugin's folder. Nothing may be under way for the plugin.
    pub fn remove_leftovers(&self, id: &PluginId) -> Result<usize, FileError> {
        let folder = self.plugin_folder(id);
        let names: Vec<_> = fs::names_in(&folder)?.into_iter().filter(|name| name.starts_with(TMP_PREFIX)).collect();
        names.iter().try_for_each(|name| fs::remove_any(&folder.join(name)))?;
        Ok(names.len())
    }

    /// Copies a dropped package into a new private folder, as [`Self::stage`] does with an upload.
    ///
    /// # Errors
    /// [`StageError`], `Source` when the dropped file cannot be read; nothing of the copy is left then.
    pub async fn stage_file(&self, name: &str, limits: &Limits) -> Result<(Staged, FileMark), StageError<io::Error>> {
        let path = self.root().join(name);
        let open = move || {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
            let meta = file.metadata()?;
            match meta.is_file() {
                true => Ok((file, FileMark::of(&meta))),
                false => Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file")),
            }
        };
        let (file, mark) = tokio::task::spawn_blocking(open).await?.map_err(StageError::Source)?;
        let pieces = ReaderStream::new(tokio::fs::File::from_std(file));
        Ok((self.stage(pieces, limits).await?, mark))
    }

    /// Deletes a dropped package that was taken in; one that was replaced meanwhile stays.
    pub fn remove_dropped(&self, name: &str, mark: FileMark) -> Result<(), FileError> {
        let path = self.root().join(name);
        match std_fs::symlink_metadata(&path) {
            Ok(meta) if FileMark::of(&meta) == mark => fs::remove_any(&path)?,
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).at("look at", &path),
        }
        fs::sync_folder(self.root())
    }
}

/// One look in progress.
struct Look<'a> {
    root: &'a Path,
    limits: SurveyLimits,
    survey: Survey,
}

impl Look<'_> {
    fn entry(&mut self, name: String, is_registered: bool) {
        let path = self.root.join(&name);
        let meta = match std_fs::symlink_metadata(&path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == ErrorKind::NotFound && !name.contains(char::REPLACEMENT_CHARACTER) => return,
            Err(error) => return self.error(&path, unseen(&name, &error)),
        };
        let is_tarball = name.ends_with(TARBALL);
        let tarball = Tarball { name: name.clone(), path: shown(&path), kind: kind_of(&meta) };
        let is_plugin = if meta.is_dir() || (meta.is_symlink() && !is_tarball && PluginId::new(&name).is_ok()) {
            self.folder(name, &path, meta.is_symlink(), is_registered)
        } else {
            false
        };
        if is_tarball && !is_plugin {
            self.survey.tarballs.push(tarball);
        }
    }

    /// Whether it is a plugin's, or was told as one that cannot be looked at.
    fn folder(&mut self, name: String, path: &Path, is_link: bool, is_registered: bool) -> bool {
        let mut folder = Folder {
            path: shown(path),
            is_link,
            has_record: fs::exists(&self.root.join(format!("{name}.yml"))).unwrap_or(true),
            has_leftovers: false,
            versions: Vec::new(),
            name,
        };
        if !is_link {
            let names = match fs::names_in(path) {
                Ok(names) => names,
                Err(error) => {
                    self.error(path, error.to_string());
                    return true;
                }
            };
            folder.has_leftovers = names.iter().any(|name| name.starts_with(TMP_PREFIX));
            if !is_registered {
                folder.versions = self.versions(path, names);
            }
        }
        let counts = folder.is_link || !folder.versions.is_empty();
        if folder.has_leftovers || (counts && !is_registered) {
            self.survey.folders.push(folder);
        }
        counts || is_registered
    }

    fn versions(&mut self, folder: &Path, names: Vec<String>) -> Vec<Version> {
        let names = names.into_iter().filter(|name| name != "data" && !name.starts_with('.'));
        let mut versions: Vec<_> = names.filter_map(|name| self.version(folder, name)).collect();
        if versions.len() > self.limits.items {
            versions.truncate(self.limits.items);
            self.too_many(folder, "versions");
        }
        versions
    }

    /// A folder with a manifest, or what could be one: a link, a folder that cannot be looked into.
    fn version(&self, folder: &Path, name: String) -> Option<Version> {
        let path = folder.join(&name);
        let manifest = match std_fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && !name.contains(char::REPLACEMENT_CHARACTER) => {
                return None;
            }
            Err(error) => Err(unseen(&name, &error)),
            Ok(meta) if meta.is_symlink() => Err("a link is not followed; put the folder itself here".to_owned()),
            Ok(meta) if !meta.is_dir() => return None,
            Ok(_) => {
                let file = path.join("manifest.yaml");
                match fs::exists(&file) {
                    Ok(true) => self.manifest(&file),
                    Ok(false) => return None,
                    Err(error) => Err(error.to_string()),
                }
            }
        };
        Some(Version { name, path: shown(&path), manifest })
    }

    fn manifest(&self, file: &Path) -> Result<Box<Manifest>, String> {
        let bytes = fs::read_bounded(file, self.limits.manifest).map_err(|error| error.to_string())?;
        match manifest::parse(&bytes) {
            Ok(parsed) => Ok(Box::new(parsed.manifest)),
            Err(error) => Err(clean::plain_text(&PackageError::from(error).to_string(), SHOWN_REASON_BYTES)),
        }
    }

    fn install(&mut self, id: &PluginId, place: &Path) {
        match fs::exists(place) {
            Ok(there) => {
                let install = if there { Install::There } else { Install::Missing };
                self.survey.installs.push((id.clone(), install));
            }
            Err(error) => {
                // Not known to be gone: it stays as it is (contract/manifest.md §12).
                tracing::warn!(plugin.id = %id, %error, "the install folder cannot be looked at");
                self.survey.installs.push((id.clone(), Install::There));
            }
        }
    }

    fn done(mut self) -> Survey {
        let items = self.limits.items;
        let mut unregistered = 0;
        let registered: Vec<_> = self.survey.installs.iter().map(|(id, _)| id.as_str().to_owned()).collect();
        let before = self.survey.folders.len();
        self.survey.folders.retain(|folder| {
            let counts = !registered.contains(&folder.name);
            unregistered += usize::from(counts);
            !counts || unregistered <= items
        });
        if self.survey.folders.len() < before {
            self.too_many(self.root, "folders of unregistered plugins");
        }
        if self.survey.tarballs.len() > items {
            self.survey.tarballs.truncate(items);
            self.too_many(self.root, "packages");
        }
        self.survey
    }

    fn too_many(&mut self, path: &Path, what: &str) {
        let items = self.limits.items;
        let reason =
            format!("more than {items} {what} (limits.sync_items): move some away, or sync again when these are done");
        self.error(path, reason);
    }

    fn error(&mut self, path: &Path, reason: String) {
        let reason = clean::plain_text(&reason, SHOWN_REASON_BYTES);
        self.survey.errors.push(ItemError { path: shown(path), reason });
    }
}

/// Why something cannot be looked at. A name with a replacement character is not UTF-8 (`fs::names_in`).
fn unseen(name: &str, error: &io::Error) -> String {
    match name.contains(char::REPLACEMENT_CHARACTER) {
        true => "the name is not UTF-8; rename it, or move it away".to_owned(),
        false => error.to_string(),
    }
}

fn kind_of(meta: &Metadata) -> TarballKind {
    match (meta.is_file(), meta.is_symlink(), meta.is_dir()) {
        (true, _, _) => TarballKind::File,
        (_, true, _) => TarballKind::Link,
        (_, _, true) => TarballKind::Folder,
        _ => TarballKind::Special,
    }
}

fn shown(path: &Path) -> String {
    clean::single_line(&path.to_string_lossy(), SHOWN_PATH_BYTES)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::domain::package::sample;

    const LIMITS: SurveyLimits = SurveyLimits { items: 3, manifest: 10_000 };

    struct World {
        root: tempfile::TempDir,
        store: PackageStore,
    }

    fn world() -> World {
        let root = tempfile::tempdir().unwrap();
        let store = PackageStore::new(root.path());
        World { root, store }
    }

    impl World {
        fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
            let path = self.root.path().join(path);
            std_fs::create_dir_all(path.parent().unwrap()).unwrap();
            std_fs::write(path, bytes).unwrap();
        }

        fn survey(&self, registered: &[(&str, &str)]) -> Survey {
            let place = |(id, path): &(&str, &str)| (PluginId::new(id).unwrap(), self.root.path().join(path));
            self.store.survey(&registered.iter().map(place).collect(), LIMITS).unwrap()
        }
    }

    fn names(survey: &Survey) -> Vec<&str> {
        survey.folders.iter().map(|folder| folder.name.as_str()).collect()
    }

    #[test]
    fn what_is_no_plugin_is_not_looked_at() {
        let world = world();
        world.file("notes/readme.txt", "x");
        world.file("notes/1.0/readme.txt", "x");
        world.file("only-data/data/manifest.yaml", "x");
        world.file(".staging/x/manifest.yaml", "x");
        world.file("acme.yml", "x");
        world.file(".hidden.tar.gz", "x");
        assert_eq!(world.survey(&[]), Survey::default());
    }

    #[test]
    fn folders_packages_and_missing_installs_are_found_and_links_are_marked() {
        let world = world();
        world.file("acme/1.0/manifest.yaml", sample::manifest("1.0"));
        world.file("acme/.tmp-x/manifest.yaml", "x");
        world.file("broken/1.0/manifest.yaml", "id: [");
        world.file("known/1.0/manifest.yaml", "not read");
        world.file("a.tar.gz", "x");
        symlink(world.root.path().join("acme"), world.root.path().join("linked")).unwrap();
        symlink("1.0", world.root.path().join("acme/current")).unwrap();
        symlink("a.tar.gz", world.root.path().join("b.tar.gz")).unwrap();
        let survey = world.survey(&[("gone", "gone/1.0"), ("known", "known/1.0")]);
        assert_eq!(names(&survey), ["acme", "broken", "linked"]);
        let [acme, broken, linked] = &survey.folders[..] else { unreachable!() };
        assert!(acme.has_leftovers && !acme.has_record && !acme.is_link && linked.is_link);
        let [lawful, link] = &acme.versions[..] else { panic!("{acme:?}") };
        assert_eq!((lawful.name.as_str(), lawful.manifest.as_ref().unwrap().version.as_str()), ("1.0", "1.0"));
        assert!(link.manifest.as_ref().is_err_and(|reason| reason.contains("link is not followed")));
        let reason = broken.versions[0].manifest.as_ref().unwrap_err();
        assert!(reason.starts_with("pkgtar: manifest invalid: "), "{reason}");
        let tarballs: Vec<_> = survey.tarballs.iter().map(|t| (t.name.as_str(), t.kind)).collect();
        assert_eq!(tarballs, [("a.tar.gz", TarballKind::File), ("b.tar.gz", TarballKind::Link)]);
        let installs: Vec<_> = survey.installs.iter().map(|(id, install)| (id.as_str(), install.clone())).collect();
        assert_eq!(installs, [("gone", Install::Missing), ("known", Install::There)]);
        assert_eq!(survey.errors, []);
    }

    #[test]
    fn what_has_the_name_of_a_package_and_is_none_is_found_as_what_it_is() {
        let world = world();
        world.file("folder.tar.gz/x", "x");
        world.file("plugin.tar.gz/1.0/manifest.yaml", "x");
        world.file("known.tar.gz/x", "x");
        let _socket = UnixListener::bind(world.root.path().join("socket.tar.gz")).unwrap();
        let survey = world.survey(&[("known.tar.gz", "known.tar.gz/1.0")]);
        assert_eq!(names(&survey), ["plugin.tar.gz"], "a plugin's id may end like a package");
        let tarballs: Vec<_> = survey.tarballs.iter().map(|t| (t.name.as_str(), t.kind)).collect();
        assert_eq!(tarballs, [("folder.tar.gz", TarballKind::Folder), ("socket.tar.gz", TarballKind::Special)]);
    }

    #[test]
    fn names_that_are_no_text_are_told_at_every_level() {
        let world = world();
        world.file("acme/1.0/manifest.yaml", sample::manifest("1.0"));
        for folder in [world.root.path().to_owned(), world.root.path().join("acme")] {
            std_fs::create_dir(folder.join(OsStr::from_bytes(b"\xff.tar.gz"))).unwrap();
        }
        let survey = world.survey(&[]);
        let reason = "the name is not UTF-8; rename it, or move it away";
        let told: Vec<_> = survey.errors.iter().map(|error| error.reason.as_str()).collect();
        assert_eq!((told, survey.tarballs.len()), (vec![reason], 0));
        let broken = survey.folders[0].versions.iter().find(|version| version.name != "1.0").unwrap();
        assert_eq!(broken.manifest, Err(reason.to_owned()));
    }

    #[test]
    fn a_look_is_bounded_and_says_so() {
        let world = world();
        for n in 0..5 {
            world.file(&format!("p{n}/1.0/manifest.yaml"), "x");
            world.file(&format!("p0/{n}.9/manifest.yaml"), "x");
            world.file(&format!("{n}.tar.gz"), "x");
        }
        let survey = world.survey(&[("p1", "p1/1.0")]);
        assert_eq!(names(&survey), ["p0", "p2", "p3"]);
        assert_eq!((survey.folders[0].versions.len(), survey.tarballs.len()), (3, 3));
        let reasons: Vec<_> = survey.errors.iter().map(|error| error.reason.split(" (").next().unwrap()).collect();
        assert_eq!(
            reasons,
            ["more than 3 versions", "more than 3 folders of unregistered plugins", "more than 3 packages"]
        );
        world.file("big/1.0/manifest.yaml", " ".repeat(10_001));
        let big = world.survey(&[]).folders.into_iter().find(|folder| folder.name == "big").unwrap();
        assert!(big.versions[0].manifest.as_ref().is_err_and(|reason| reason.contains("larger than 10000 bytes")));
    }

    #[tokio::test]
    async fn a_dropped_package_is_copied_and_removed_unless_it_was_replaced() {
        let world = world();
        world.file("a.tar.gz", "one");
        let (staged, mark) = world.store.stage_file("a.tar.gz", &Limits::default()).await.unwrap();
        assert_eq!(std_fs::read(staged.archive()).unwrap(), b"one");
        let path = world.root.path().join("a.tar.gz");
        std_fs::remove_file(&path).unwrap();
        world.file("a.tar.gz", "another");
        world.store.remove_dropped("a.tar.gz", mark).unwrap();
        assert!(path.exists(), "another file took its name");
        let (_, mark) = world.store.stage_file("a.tar.gz", &Limits::default()).await.unwrap();
        world.store.remove_dropped("a.tar.gz", mark).unwrap();
        assert!(!path.exists());
        world.store.remove_dropped("a.tar.gz", mark).unwrap();
        symlink("/etc/hostname", &path).unwrap();
        assert!(matches!(world.store.stage_file("a.tar.gz", &Limits::default()).await, Err(StageError::Source(_))));
    }

    #[test]
    fn leftovers_of_one_plugin_are_deleted() {
        let world = world();
        world.file("acme/.tmp-1/x", "x");
        world.file("acme/1.0/x", "x");
        let acme = PluginId::new("acme").unwrap();
        assert_eq!(world.store.remove_leftovers(&acme).unwrap(), 1);
        assert_eq!(fs::names_in(&world.root.path().join("acme")).unwrap(), ["1.0"]);
    }
}
