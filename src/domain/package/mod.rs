//! The rules of a package archive, without touching the disk (contract/manifest.md §4 and §5).
//!
//! One strict reading: `tar_guard` sees every byte of the archive before the archive reader does and refuses whatever
//! two readers could understand differently. `path` and `names` decide which names are lawful together, `checksums`
//! what must be listed. Unpacking is `store::packages`.

mod checksums;
mod error;
mod names;
mod path;
#[cfg(test)]
pub(crate) mod sample;
mod tar_guard;
#[cfg(test)]
mod tar_guard_tests;
mod tar_header;

pub use checksums::{Checksums, Digest, digest, hex};
pub use error::{PackageError, PathFault};
pub use names::NameSet;
pub use path::{EntryPath, MAX_PART_BYTES, MAX_PATH_BYTES};
pub use tar_guard::{Member, TarGuard};

/// Name of the manifest at the root of a package.
pub const MANIFEST_NAME: &str = "manifest.yaml";
/// Name of the file that lists the SHA-256 of every other file.
pub const CHECKSUMS_NAME: &str = "checksums.txt";
/// Name of the optional signature over [`CHECKSUMS_NAME`].
pub const SIGNATURE_NAME: &str = "checksums.txt.sig";

/// What a package may cost. Every number is a bound at which reading stops with an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the archive as received; default 100 MiB.
    pub compressed: u64,
    /// Bytes of all files together; default 512 MiB.
    pub expanded: u64,
    /// Entries, folders included, also those that are only part of a file's name; default 10 000.
    pub files: usize,
    /// Bytes of `manifest.yaml`; default 2 MiB.
    pub manifest: u64,
    /// Bytes of `checksums.txt`; default 2 MiB.
    pub checksums: u64,
    /// Bytes of `checksums.txt.sig`; default 4 KiB.
    pub signature: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            compressed: 100 * 1024 * 1024,
            expanded: 512 * 1024 * 1024,
            files: 10_000,
            manifest: 2 * 1024 * 1024,
            checksums: 2 * 1024 * 1024,
            signature: 4 * 1024,
        }
    }
}

impl Limits {
    /// Largest lawful size of one file, in bytes.
    pub fn of_file(&self, path: &str) -> u64 {
        match path {
            MANIFEST_NAME => self.manifest.min(self.expanded),
            CHECKSUMS_NAME => self.checksums.min(self.expanded),
            SIGNATURE_NAME => self.signature.min(self.expanded),
            _ => self.expanded,
        }
    }
}
