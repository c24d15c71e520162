//! Reading the folder that is to be packed: which files it has, and their digests.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::{PackError, at};
use crate::domain::package::EntryPath;

/// What a folder holds.
#[derive(Debug)]
pub struct Found {
    /// Name in the package → place on disk.
    pub files: BTreeMap<String, PathBuf>,
    /// Names that begin with a dot.
    pub left_out: Vec<String>,
}

/// Lists all regular files below `folder`. A name that no host takes, a link or a special file is an error.
pub fn read(folder: &Path) -> Result<Found, PackError> {
    let mut found = Found { files: BTreeMap::new(), left_out: Vec::new() };
    walk(folder, b"", &mut found)?;
    found.left_out.sort();
    Ok(found)
}

/// `below` is the folder's name in the package, empty or with a final slash.
fn walk(folder: &Path, below: &[u8], found: &mut Found) -> Result<(), PackError> {
    for entry in std::fs::read_dir(folder).map_err(at("read", folder))? {
        let entry = entry.map_err(at("read", folder))?;
        let (place, name) = (entry.path(), entry.file_name());
        let raw = [below, name.as_bytes()].concat();
        if name.as_bytes().starts_with(b".") {
            found.left_out.push(String::from_utf8_lossy(&raw).into_owned());
            continue;
        }
        let kind = entry.file_type().map_err(at("read", &place))?;
        if kind.is_dir() {
            EntryPath::of_folder(&raw).map_err(PackError::Name)?;
            walk(&place, &[&raw[..], b"/"].concat(), found)?;
        } else if kind.is_file() {
            let path = EntryPath::of_file(&raw).map_err(PackError::Name)?;
            found.files.insert(path.as_str().to_owned(), place);
        } else {
            return Err(PackError::Kind(place));
        }
    }
    Ok(())
}

/// The SHA-256 of a file.
pub fn digest(path: &Path) -> Result<[u8; 32], PackError> {
    struct Hash(Sha256);
    impl Write for Hash {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut hash = Hash(Sha256::new());
    let mut file = File::open(path).map_err(at("read", path))?;
    io::copy(&mut file, &mut hash).map_err(at("read", path))?;
    Ok(hash.0.finalize().into())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;
    use crate::domain::package::hex;

    #[test]
    fn files_of_all_depths_are_found_and_hidden_ones_left_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("ui/assets")).unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        for name in ["manifest.yaml", "ui/index.js", "ui/assets/a.css", "ui/.DS_Store", ".git/config"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let found = read(folder.path()).unwrap();
        assert_eq!(found.files.keys().collect::<Vec<_>>(), ["manifest.yaml", "ui/assets/a.css", "ui/index.js"]);
        assert_eq!(found.left_out, [".git", "ui/.DS_Store"]);
    }

    #[test]
    fn links_and_names_that_mean_something_else_elsewhere_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/etc/hostname", folder.path().join("link")).unwrap();
        assert!(matches!(read(folder.path()), Err(PackError::Kind(path)) if path.ends_with("link")));
        for name in ["a\\b", "nul.txt", "dot.", "line\nbreak"] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(name), "").unwrap();
            assert!(matches!(read(folder.path()), Err(PackError::Name(_))), "{name:?}");
        }
    }

    #[test]
    fn the_digest_is_sha256_in_lower_case() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(&digest(file.path()).unwrap()), expected);
    }
}
