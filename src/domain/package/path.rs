//! Names of entries in an archive: which are lawful, and their one clean form.
//!
//! A lawful name is a relative path of plain parts that means the same file on every system. A leading `./`, the entry
//! `./` itself and a folder's final `/` are lawful spellings. Collisions between names are in `names`.

use std::borrow::Borrow;
use std::fmt;

use super::error::{PackageError, PathFault};

/// Longest part of a name, in bytes: what common file systems take.
pub const MAX_PART_BYTES: usize = 255;

/// Longest name, in bytes: leaves room for the plugins folder below the system's path limit.
pub const MAX_PATH_BYTES: usize = 1024;

/// A clean relative path with `/` between its parts, safe to join to a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPath(String);

impl EntryPath {
    /// Checks the name of a regular file.
    pub fn of_file(raw: &[u8]) -> Result<Self, PackageError> {
        let name = text(raw)?;
        if name.ends_with('/') {
            return Err(PackageError::unsafe_path(name, PathFault::FileWithSlash));
        }
        Self::clean(name, name.strip_prefix("./").unwrap_or(name))
    }

    /// Checks the name of a folder; `None` for the root of the archive (`./` or `.`).
    pub fn of_folder(raw: &[u8]) -> Result<Option<Self>, PackageError> {
        let name = text(raw)?;
        if matches!(name, "." | "./") {
            return Ok(None);
        }
        let relative = name.strip_prefix("./").unwrap_or(name);
        Self::clean(name, relative.strip_suffix('/').unwrap_or(relative)).map(Some)
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders above the path, outermost first, without the root.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }

    fn clean(name: &str, relative: &str) -> Result<Self, PackageError> {
        match fault(relative) {
            Some(fault) => Err(PackageError::unsafe_path(name, fault)),
            None => Ok(Self(relative.to_owned())),
        }
    }
}

impl Borrow<str> for EntryPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn text(raw: &[u8]) -> Result<&str, PackageError> {
    std::str::from_utf8(raw).map_err(|_| PackageError::unsafe_path(&String::from_utf8_lossy(raw), PathFault::NotUtf8))
}

fn fault(path: &str) -> Option<PathFault> {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if path.is_empty() {
        Some(PathFault::Empty)
    } else if path.starts_with('/') || drive {
        Some(PathFault::Absolute)
    } else if path.len() > MAX_PATH_BYTES {
        Some(PathFault::TooLong)
    } else if path.contains('\\') {
        Some(PathFault::Backslash)
    } else if path.contains(char::is_control) {
        Some(PathFault::Control)
    } else {
        path.split('/').find_map(part_fault)
    }
}

fn part_fault(part: &str) -> Option<PathFault> {
    if part == ".." {
        Some(PathFault::Parent)
    } else if matches!(part, "" | ".") {
        Some(PathFault::EmptyPart)
    } else if part.len() > MAX_PART_BYTES {
        Some(PathFault::PartTooLong)
    } else if part.ends_with(['.', ' ']) {
        Some(PathFault::TrailingDotOrSpace)
    } else if is_device(part) {
        Some(PathFault::DeviceName)
    } else {
        None
    }
}

/// Whether a part is a device on Windows: the words count in any case and with any extension (`nul.txt`).
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_uppercase();
    let port = |prefix: &str| {
        let number = stem.strip_prefix(prefix).unwrap_or_default();
        matches!(number, "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³")
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || port("COM") || port("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lawful_spellings_become_one_clean_path() {
        for (raw, clean) in [
            ("ui/x", "ui/x"),
            ("./ui/x", "ui/x"),
            ("a", "a"),
            (".hidden", ".hidden"),
            ("a..b", "a..b"),
            ("console", "console"),
        ] {
            assert_eq!(EntryPath::of_file(raw.as_bytes()).map(|p| p.to_string()), Ok(clean.to_owned()));
        }
        for (raw, clean) in [("ui/", Some("ui")), ("./ui/", Some("ui")), ("ui", Some("ui")), ("./", None), (".", None)]
        {
            let path = EntryPath::of_folder(raw.as_bytes()).map(|p| p.map(|p| p.to_string()));
            assert_eq!(path, Ok(clean.map(str::to_owned)), "{raw}");
        }
        let part = "x".repeat(255);
        assert!(EntryPath::of_file(part.as_bytes()).is_ok());
    }

    #[test]
    fn each_unsafe_name_has_its_fault() {
        let long_part = format!("ui/{}", "x".repeat(300));
        let long_path = vec!["abcdefg"; 200].join("/");
        for (raw, fault) in [
            ("", PathFault::Empty),
            ("./", PathFault::FileWithSlash),
            ("/etc/x", PathFault::Absolute),
            ("//x", PathFault::Absolute),
            ("C:/x", PathFault::Absolute),
            (".//x", PathFault::Absolute),
            ("../x", PathFault::Parent),
            ("ui/../../x", PathFault::Parent),
            ("ui/..", PathFault::Parent),
            ("..", PathFault::Parent),
            (".", PathFault::EmptyPart),
            ("ui//x", PathFault::EmptyPart),
            ("ui/./x", PathFault::EmptyPart),
            ("ui/x/", PathFault::FileWithSlash),
            ("ui\\..\\x", PathFault::Backslash),
            ("ui\\x", PathFault::Backslash),
            ("ui/a\u{0}b", PathFault::Control),
            ("ui/a\nb", PathFault::Control),
            ("ui/a\u{85}b", PathFault::Control),
            (&long_part, PathFault::PartTooLong),
            (&long_path, PathFault::TooLong),
            ("ui/x.", PathFault::TrailingDotOrSpace),
            ("ui /x", PathFault::TrailingDotOrSpace),
            ("CON", PathFault::DeviceName),
            ("ui/nul.txt", PathFault::DeviceName),
            ("ui/Com1", PathFault::DeviceName),
            ("lpt9.tar.gz", PathFault::DeviceName),
        ] {
            assert_eq!(EntryPath::of_file(raw.as_bytes()), Err(PackageError::unsafe_path(raw, fault)), "{raw:?}");
        }
        assert!(EntryPath::of_file(b"ui/\xff").is_err());
        assert!(EntryPath::of_folder(b"ui//").is_err());
        assert!(EntryPath::of_folder(b"/").is_err());
    }

    #[test]
    fn folders_are_listed_from_the_outside() {
        let path = EntryPath::of_file(b"a/b/c");
        assert_eq!(
            path.map(|p| p.folders().map(str::to_owned).collect::<Vec<_>>()),
            Ok(vec!["a".into(), "a/b".into()])
        );
    }

    proptest! {
        #[test]
        fn an_accepted_name_never_leaves_its_folder(raw in "[a./\\\\ :]{0,12}|\\PC{0,20}|.{0,20}") {
            if let Ok(path) = EntryPath::of_file(raw.as_bytes()) {
                let joined = std::path::Path::new("/root/pkg").join(path.as_str());
                let plain = |c: std::path::Component<'_>| matches!(c, std::path::Component::Normal(_));
                prop_assert!(joined.strip_prefix("/root/pkg").unwrap().components().all(plain));
                prop_assert_eq!(EntryPath::of_file(path.as_str().as_bytes()), Ok(path));
            }
        }
    }
}
