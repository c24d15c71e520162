//! `checksums.txt`: reading it and comparing it with what the archive holds (contract/manifest.md §4.1).
//!
//! Stricter than the contract: a path listed twice is refused instead of "last wins". The signature over the file is
//! `domain::signature`.

use std::collections::BTreeMap;

use super::error::PackageError;
use super::path::EntryPath;
use super::{CHECKSUMS_NAME, SIGNATURE_NAME};
use crate::domain::clean::quote;

/// A SHA-256.
pub type Digest = [u8; 32];

/// Lower-case hexadecimal of a digest.
pub fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Longest accepted line in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The digests a package promises.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checksums {
    listed: BTreeMap<EntryPath, Digest>,
}

impl Checksums {
    /// Reads the file: one `<hex sha-256> <path>` a line, white space around and between, blank lines skipped.
    ///
    /// # Errors
    /// [`PackageError::MalformedChecksums`], or [`PackageError::UnsafePath`] for a listed path.
    pub fn parse(bytes: &[u8]) -> Result<Self, PackageError> {
        let mut listed = BTreeMap::new();
        for raw in bytes.split(|b| *b == b'\n') {
            let line = String::from_utf8_lossy(raw);
            let malformed = |fault| PackageError::MalformedChecksums { line: quote(line.trim()), fault };
            if raw.len() > MAX_LINE_BYTES {
                return Err(malformed("the line is longer than 65536 bytes"));
            }
            let mut fields = line.split_whitespace();
            let (hex, name) = match (fields.next(), fields.next(), fields.next()) {
                (None, ..) => continue,
                (Some(hex), Some(name), None) => (hex, name),
                _ => return Err(malformed("expected a digest and one path without spaces")),
            };
            let digest = digest(hex).ok_or_else(|| malformed("the digest is not 64 hexadecimal digits"))?;
            if name.starts_with('*') {
                return Err(malformed("the binary-mode marker * is not understood, list the bare path"));
            }
            let path = EntryPath::of_file(name.as_bytes())?;
            if listed.insert(path, digest).is_some() {
                return Err(malformed("the path is listed twice"));
            }
        }
        Ok(Self { listed })
    }

    /// Compares with the files of the archive: every one listed with its digest, every listed one there. The file
    /// itself and its signature are exempt on both sides.
    ///
    /// # Errors
    /// [`PackageError::Unlisted`], [`PackageError::ChecksumMismatch`] or [`PackageError::ListedMissing`].
    pub fn verify(&self, files: &BTreeMap<EntryPath, Digest>) -> Result<(), PackageError> {
        let covered = |path: &EntryPath| !matches!(path.as_str(), CHECKSUMS_NAME | SIGNATURE_NAME);
        for (path, actual) in files.iter().filter(|(path, _)| covered(path)) {
            match self.listed.get(path) {
                None => return Err(PackageError::Unlisted(path.to_string())),
                Some(promised) if promised != actual => return Err(PackageError::ChecksumMismatch(path.to_string())),
                Some(_) => {}
            }
        }
        match self.listed.keys().find(|path| covered(path) && !files.contains_key(path.as_str())) {
            Some(path) => Err(PackageError::ListedMissing(path.to_string())),
            None => Ok(()),
        }
    }
}

/// Reads 64 hexadecimal digits of either case.
pub fn digest(hex: &str) -> Option<Digest> {
    let bytes = hex.as_bytes();
    let mut digest = [0; 32];
    if bytes.len() != 2 * digest.len() {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(bytes.chunks_exact(2)) {
        let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(byte: u8) -> String {
        format!("{byte:02x}").repeat(32)
    }

    fn files(list: &[(&str, u8)]) -> BTreeMap<EntryPath, Digest> {
        list.iter().map(|(name, byte)| (EntryPath::of_file(name.as_bytes()).unwrap(), [*byte; 32])).collect()
    }

    #[test]
    fn lawful_lines_are_read_with_any_case_and_spacing() {
        let text = format!("\n  {}\t ./a \r\n{}  ui/b\n\n", hex(0xab).to_uppercase(), hex(1));
        assert_eq!(
            Checksums::parse(text.as_bytes()).map(|c| c.verify(&files(&[("a", 0xab), ("ui/b", 1)]))),
            Ok(Ok(()))
        );
        assert_eq!(Checksums::parse(b""), Ok(Checksums::default()));
    }

    #[test]
    fn each_malformed_line_is_refused_with_its_fault() {
        let good = hex(1);
        for (line, fault) in [
            (format!("{good} a b"), "expected a digest and one path without spaces"),
            (good.clone(), "expected a digest and one path without spaces"),
            ("# comment here".to_owned(), "expected a digest and one path without spaces"),
            ("abc a".to_owned(), "the digest is not 64 hexadecimal digits"),
            (format!("{} a", "g".repeat(64)), "the digest is not 64 hexadecimal digits"),
            (format!("{} a", "é".repeat(32)), "the digest is not 64 hexadecimal digits"),
            (format!("{good} *a"), "the binary-mode marker * is not understood, list the bare path"),
        ] {
            assert_eq!(
                Checksums::parse(line.as_bytes()),
                Err(PackageError::MalformedChecksums { line: quote(&line), fault })
            );
        }
        let long = format!("{good} {}", "x".repeat(MAX_LINE_BYTES));
        assert!(matches!(Checksums::parse(long.as_bytes()), Err(PackageError::MalformedChecksums { .. })));
        assert!(matches!(Checksums::parse(format!("{good} ../x").as_bytes()), Err(PackageError::UnsafePath { .. })));
    }

    #[test]
    fn a_path_listed_twice_is_refused_even_with_the_same_digest() {
        let text = format!("{} a\n{} ./a\n", hex(1), hex(1));
        assert!(matches!(
            Checksums::parse(text.as_bytes()),
            Err(PackageError::MalformedChecksums { fault: "the path is listed twice", .. })
        ));
    }

    #[test]
    fn coverage_is_complete_in_both_directions() {
        let checksums = Checksums::parse(format!("{} a\n{} b\n", hex(1), hex(2)).as_bytes()).unwrap();
        for (have, error) in [
            (files(&[("a", 1), ("b", 2), ("c", 3)]), PackageError::Unlisted("c".into())),
            (files(&[("a", 1), ("b", 3)]), PackageError::ChecksumMismatch("b".into())),
            (files(&[("a", 1)]), PackageError::ListedMissing("b".into())),
        ] {
            assert_eq!(checksums.verify(&have), Err(error));
        }
        let exempt = files(&[("a", 1), ("b", 2), (CHECKSUMS_NAME, 9), (SIGNATURE_NAME, 9)]);
        assert_eq!(checksums.verify(&exempt), Ok(()));
        let lists_itself = format!("{} a\n{} {CHECKSUMS_NAME}\n{} {SIGNATURE_NAME}\n", hex(1), hex(7), hex(7));
        assert_eq!(Checksums::parse(lists_itself.as_bytes()).map(|c| c.verify(&files(&[("a", 1)]))), Ok(Ok(())));
    }

    proptest! {
        #[test]
        fn random_bytes_get_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Checksums::parse(&bytes);
        }
    }
}
