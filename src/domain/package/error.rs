//! Why a package is refused, in the words of contract/manifest.md where it has some.
//!
//! Every text is safe to show to the operator: names from the archive are bounded and escaped.

use crate::domain::clean::quote;
use crate::domain::manifest::ManifestError;
use crate::domain::signature::SignatureError;

/// At most this many platforms of a package are named.
const MAX_PLATFORMS_SHOWN: usize = 8;

/// Why a package is refused. None of these depends on the disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackageError {
    /// The stream is not gzip, or its checksum or length is wrong. One that is only cut off is a [`Self::BadArchive`].
    #[error("pkgtar: not a gzip-compressed archive: {0}")]
    BadGzip(String),
    /// The archive is cut off, or its tar headers are malformed, truncated or ambiguous.
    #[error("pkgtar: bad archive: {0}")]
    BadArchive(String),
    /// An entry that is neither a regular file nor a folder.
    #[error("pkgtar: unsafe archive path: entry {0} has unsupported type (symlinks/hardlinks/devices are not allowed)")]
    UnsupportedType(String),
    /// A name that could leave the package or be an alias of another.
    #[error("pkgtar: unsafe archive path: {name} {fault}")]
    UnsafePath {
        /// The name, quoted and bounded.
        name: String,
        /// What is wrong with it.
        fault: PathFault,
    },
    /// Two entries that would be one file on some system.
    #[error("pkgtar: unsafe archive path: {second} collides with {first}")]
    Collision {
        /// The earlier entry, quoted.
        first: String,
        /// The later entry, quoted.
        second: String,
    },
    /// The archive as received is larger than its limit.
    #[error("pkgtar: package exceeds max compressed size of {0} bytes")]
    CompressedTooLarge(u64),
    /// One file is larger than its limit.
    #[error("pkgtar: file {name} exceeds max size of {limit} bytes")]
    FileTooLarge {
        /// The file, quoted.
        name: String,
        /// Bytes.
        limit: u64,
    },
    /// All files together are larger than their limit.
    #[error("pkgtar: package exceeds max total size of {0} bytes")]
    ExpandedTooLarge(u64),
    /// More entries than the limit.
    #[error("pkgtar: package exceeds max number of {0} entries")]
    TooManyEntries(usize),
    /// No `manifest.yaml` at the root.
    #[error("pkgtar: missing manifest.yaml: it must be at the root of the archive")]
    MissingManifest,
    /// No `checksums.txt` at the root.
    #[error("pkgtar: missing checksums.txt")]
    MissingChecksums,
    /// A line of `checksums.txt` is not `<sha256> <path>`.
    #[error("pkgtar: malformed checksums.txt line: {line}: {fault}")]
    MalformedChecksums {
        /// The line, quoted and bounded.
        line: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A file of the package is not listed.
    #[error("pkgtar: file not listed in checksums.txt: {0}")]
    Unlisted(String),
    /// A file differs from what is listed.
    #[error("pkgtar: checksum mismatch: {0}")]
    ChecksumMismatch(String),
    /// A listed file is not in the package.
    #[error("pkgtar: checksums.txt references missing file {0}")]
    ListedMissing(String),
    /// The signature is wrong.
    #[error("pkgtar: signature verification failed: {0}")]
    Signature(#[from] SignatureError),
    /// The host takes signed packages only; the text says what this one is.
    #[error(
        "pkgtar: {0}; install.signatures is \"require\": trust a key that may sign this plugin, or set it to \"warn\""
    )]
    SignatureRequired(String),
    /// The manifest breaks its rules.
    #[error("pkgtar: manifest invalid: {0}")]
    Manifest(#[from] ManifestError),
    /// The host's executable is declared and absent.
    #[error("pkgtar: manifest invalid: declared executable {0} not found in package")]
    ExecutableMissing(String),
    /// No executable is declared for this host.
    #[error("pkgtar: host platform not supported by package: {host}; it has {offered}")]
    PlatformUnsupported {
        /// `<goos>-<goarch>`.
        host: String,
        /// What the package has instead, quoted and bounded.
        offered: String,
    },
}

impl PackageError {
    /// A stable word for programs; one a variant, except that all name faults share one.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadGzip(_) | Self::BadArchive(_) => "bad_archive",
            Self::UnsupportedType(_) | Self::UnsafePath { .. } | Self::Collision { .. } => "unsafe_path",
            Self::CompressedTooLarge(_) => "package_too_large",
            Self::FileTooLarge { .. } | Self::ExpandedTooLarge(_) => "package_expands_too_large",
            Self::TooManyEntries(_) => "too_many_entries",
            Self::MissingManifest => "missing_manifest",
            Self::MissingChecksums => "missing_checksums",
            Self::MalformedChecksums { .. } => "malformed_checksums",
            Self::Unlisted(_) => "file_not_listed",
            Self::ChecksumMismatch(_) => "checksum_mismatch",
            Self::ListedMissing(_) => "listed_file_missing",
            Self::Signature(_) => "signature_invalid",
            Self::SignatureRequired(_) => "signature_required",
            Self::Manifest(_) => "manifest_invalid",
            Self::ExecutableMissing(_) => "executable_missing",
            Self::PlatformUnsupported { .. } => "platform_unsupported",
        }
    }

    pub(crate) fn bad_archive(text: impl Into<String>) -> Self {
        Self::BadArchive(text.into())
    }

    pub(crate) fn platform_unsupported<'a>(host: &str, offered: impl Iterator<Item = &'a str>) -> Self {
        let mut names: Vec<String> = offered.take(MAX_PLATFORMS_SHOWN + 1).map(quote).collect();
        if names.len() > MAX_PLATFORMS_SHOWN {
            names[MAX_PLATFORMS_SHOWN] = "others".to_owned();
        }
        Self::PlatformUnsupported { host: host.to_owned(), offered: names.join(", ") }
    }

    pub(super) fn unsafe_path(name: &str, fault: PathFault) -> Self {
        Self::UnsafePath { name: quote(name), fault }
    }
}

/// What is wrong with a name in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// No name at all.
    #[error("is empty")]
    Empty,
    /// Not UTF-8.
    #[error("is not valid UTF-8")]
    NotUtf8,
    /// Starts at a root or a drive.
    #[error("is absolute")]
    Absolute,
    /// Has a `..` part.
    #[error("has a \"..\" part")]
    Parent,
    /// Has an empty part or `.` inside.
    #[error("has an empty or \".\" part inside")]
    EmptyPart,
    /// A file whose name ends in a slash.
    #[error("is a file and ends in a slash")]
    FileWithSlash,
    /// Has a backslash.
    #[error("has a backslash")]
    Backslash,
    /// Has a control character.
    #[error("has a control character")]
    Control,
    /// Has a part longer than a file system takes.
    #[error("has a part longer than 255 bytes")]
    PartTooLong,
    /// Is longer than the host takes.
    #[error("is longer than 1024 bytes")]
    TooLong,
    /// Has a part that ends in a dot or a space.
    #[error("has a part ending in a dot or a space")]
    TrailingDotOrSpace,
    /// Has a part that is a device on some systems.
    #[error("has a part that names a device (CON, NUL, COM1 …)")]
    DeviceName,
}
