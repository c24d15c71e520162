//! Which names may stand together in one package.
//!
//! Two entries collide when any system could store them as one: same name, names that differ only in case or in the
//! Unicode form of a letter, a file that is also the folder of another. Folders may be named again.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use super::error::PackageError;
use super::path::EntryPath;
use crate::domain::clean::quote;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// The names seen so far, files and every folder above them.
#[derive(Debug, Default)]
pub struct NameSet {
    seen: HashMap<String, (Kind, String)>,
}

impl NameSet {
    /// Adds a regular file.
    ///
    /// # Errors
    /// [`PackageError::Collision`] with an earlier entry.
    pub fn add_file(&mut self, path: &EntryPath) -> Result<(), PackageError> {
        path.folders().try_for_each(|folder| self.add(folder, Kind::Folder))?;
        self.add(path.as_str(), Kind::File)
    }

    /// Adds a folder.
    ///
    /// # Errors
    /// [`PackageError::Collision`] with an earlier entry.
    pub fn add_folder(&mut self, path: &EntryPath) -> Result<(), PackageError> {
        path.folders().try_for_each(|folder| self.add(folder, Kind::Folder))?;
        self.add(path.as_str(), Kind::Folder)
    }

    /// How many different names there are, the folders above files included.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    fn add(&mut self, path: &str, kind: Kind) -> Result<(), PackageError> {
        let (earlier, first) = self.seen.entry(fold(path)).or_insert_with(|| (Kind::Folder, String::new()));
        if first.is_empty() {
            (*earlier, *first) = (kind, path.to_owned());
            return Ok(());
        }
        if kind == Kind::Folder && *earlier == Kind::Folder && first == path {
            return Ok(());
        }
        Err(PackageError::Collision { first: quote(first), second: quote(path) })
    }
}

/// The form in which names are compared: letters folded through upper to lower case, then composed (NFC).
fn fold(path: &str) -> String {
    path.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_all(names: &[&str]) -> Result<(), PackageError> {
        let mut set = NameSet::default();
        names.iter().try_for_each(|name| match name.strip_suffix('/') {
            Some(_) => EntryPath::of_folder(name.as_bytes())?.map_or(Ok(()), |path| set.add_folder(&path)),
            None => set.add_file(&EntryPath::of_file(name.as_bytes())?),
        })
    }

    #[test]
    fn different_files_and_repeated_folders_stand_together() {
        assert_eq!(add_all(&["ui/", "ui/a", "ui/b/", "ui/b/c", "ui/", "./ui/", "ab", "a/b"]), Ok(()));
    }

    #[test]
    fn names_that_some_system_stores_as_one_collide() {
        for (first, second) in [
            ("server/p", "server/p"),
            ("server/p", "./server/p"),
            ("UI/x", "ui/x"),
            ("ui/x", "ui/X"),
            ("ui/caf\u{e9}", "ui/cafe\u{301}"),
            ("ui/CAF\u{c9}", "ui/cafe\u{301}"),
            ("stra\u{df}e", "STRASSE"),
            ("\u{212a}", "k"),
            ("\u{3c3}", "\u{3c2}"),
            ("a", "a/b"),
            ("a/b", "a"),
            ("a", "a/"),
            ("a/", "a"),
            ("A/", "a/"),
        ] {
            assert!(
                matches!(add_all(&[first, second]), Err(PackageError::Collision { .. })),
                "{first:?} and {second:?}: {:?}",
                add_all(&[first, second])
            );
        }
    }

    #[test]
    fn the_error_names_both_entries() {
        assert_eq!(
            add_all(&["ui/x", "UI/x"]).map_err(|e| e.to_string()),
            Err("pkgtar: unsafe archive path: \"UI\" collides with \"ui\"".to_owned())
        );
    }
}
