//! The folder below which plugins' sockets live: private, and short enough for a socket path.
//!
//! One per home, named after it, in the first place that takes it: a long TMPDIR must not keep plugins from starting.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

use goplugin::host::socket_path_fits;

use crate::domain::home_id::HomeId;

/// A usable folder; made again when a cleaner of temporary files has removed it.
#[derive(Debug, Clone)]
pub struct SocketRoot {
    path: PathBuf,
}

/// No place took the folder.
#[derive(Debug, thiserror::Error)]
#[error("no folder for plugin sockets: {}; set XDG_RUNTIME_DIR to a short folder of the host's user", .tried.join("; "))]
pub struct SocketRootError {
    tried: Vec<String>,
}

impl SocketRoot {
    /// Where to look, best place first: the user's runtime folder is private and never cleaned while the user runs
    /// something.
    pub fn places(lookup: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
        let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(|name| lookup(name).map(PathBuf::from));
        let all = named.chain(["/tmp", "/dev/shm", "/var/tmp"].map(PathBuf::from));
        all.filter(|place| place.is_absolute()).collect()
    }

    /// Removes what an earlier host of this home left in any place and makes the folder in the first that takes it.
    /// Blocks. The caller holds the home's lock, so nothing removed is in use.
    pub fn prepare(home: &HomeId, places: &[PathBuf]) -> Result<Self, SocketRootError> {
        let name = format!("kandev-{}-{}", rustix::process::geteuid().as_raw(), home.short());
        let paths: Vec<PathBuf> = places.iter().map(|place| place.join(&name)).collect();
        for stale in paths.iter().filter(|path| is_own_folder(path)) {
            // What cannot be removed fails below, with its reason.
            let _ = fs::remove_dir_all(stale);
        }
        let mut tried = Vec::new();
        for path in paths {
            match make(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(reason) => tried.push(format!("{}: {reason}", path.display())),
            }
        }
        Err(SocketRootError { tried })
    }

    /// Removes the folder if nothing is left in it. Blocks.
    pub fn withdraw(&self) {
        // One in use, or gone already, is not worth a word: the next start of this home removes it.
        let _ = fs::remove_dir(&self.path);
    }

    /// The folder, made again when it is gone. Blocks.
    pub fn ensure(&self) -> Result<&Path, SocketRootError> {
        match is_own_folder(&self.path) {
            true => Ok(&self.path),
            false => make(&self.path)
                .map(|()| self.path.as_path())
                .map_err(|reason| SocketRootError { tried: vec![format!("{}: {reason}", self.path.display())] }),
        }
    }
}

/// Never takes over what exists: in a shared place somebody else may have put it there.
fn make(path: &Path) -> Result<(), String> {
    if !socket_path_fits(path) {
        return Err("the path is too long for a socket".to_owned());
    }
    DirBuilder::new().mode(0o700).create(path).map_err(|error: io::Error| error.to_string())
}

fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn home() -> HomeId {
        HomeId::derive(b"socket root", 0, 0)
    }

    fn name() -> String {
        format!("kandev-{}-{}", rustix::process::geteuid().as_raw(), home().short())
    }

    /// Field case 3.
    #[test]
    fn a_long_place_is_passed_over_for_a_short_one() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("x".repeat(120));
        fs::create_dir(&long).unwrap();
        let short = folder.path().join("s");
        fs::create_dir(&short).unwrap();
        let root = SocketRoot::prepare(&home(), &[long, short.clone()]).unwrap();
        assert_eq!(root.ensure().unwrap(), short.join(name()));
        assert_eq!(fs::metadata(short.join(name())).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn what_an_earlier_host_left_is_removed_in_every_place_and_others_are_not_touched() {
        let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths: Vec<PathBuf> = places.iter().map(|place| place.path().to_owned()).collect();
        for place in &paths {
            SocketRoot::prepare(&home(), std::slice::from_ref(place)).unwrap();
            fs::write(place.join(name()).join("stale.sock"), "").unwrap();
            fs::create_dir(place.join("kandev-0-other000")).unwrap();
        }
        let root = SocketRoot::prepare(&home(), &paths).unwrap();
        assert_eq!(fs::read_dir(root.ensure().unwrap()).unwrap().count(), 0);
        assert!(!paths[1].join(name()).exists());
        assert!(paths.iter().all(|place| place.join("kandev-0-other000").exists()));
    }

    #[test]
    fn a_folder_removed_by_a_cleaner_is_made_again() {
        let place = tempfile::tempdir().unwrap();
        let root = SocketRoot::prepare(&home(), &[place.path().to_owned()]).unwrap();
        fs::remove_dir(place.path().join(name())).unwrap();
        assert!(root.ensure().unwrap().is_dir());
    }

    #[test]
    fn an_empty_folder_is_withdrawn_and_one_in_use_stays() {
        let place = tempfile::tempdir().unwrap();
        let root = SocketRoot::prepare(&home(), &[place.path().to_owned()]).unwrap();
        fs::write(place.path().join(name()).join("in-use"), "").unwrap();
        root.withdraw();
        assert!(place.path().join(name()).exists());
        fs::remove_file(place.path().join(name()).join("in-use")).unwrap();
        root.withdraw();
        assert!(!place.path().join(name()).exists());
    }

    #[test]
    fn a_planted_link_is_neither_followed_nor_taken_over() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("precious"), "").unwrap();
        symlink(elsewhere.path(), place.path().join(name())).unwrap();
        let error = SocketRoot::prepare(&home(), &[place.path().to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("no folder for plugin sockets: ") && error.contains("File exists"), "{error}");
        assert!(elsewhere.path().join("precious").exists());
    }

    #[test]
    fn places_are_the_runtime_folder_then_the_temporary_ones() {
        let places = SocketRoot::places(|name| (name == "TMPDIR").then(|| "/t".into()));
        assert_eq!(places, ["/t", "/tmp", "/dev/shm", "/var/tmp"].map(PathBuf::from));
        let relative = SocketRoot::places(|_| Some("relative".into()));
        assert_eq!(relative, ["/tmp", "/dev/shm", "/var/tmp"].map(PathBuf::from));
    }
}
