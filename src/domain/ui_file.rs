//! What of a package a browser gets, by which name, as which type, and which part of it (contract/rest.md §5).
//!
//! Pure rules: opening the file is `store::ui_files`, answering is `http::ui`. Served are the declared bundle, styles
//! and icon, and what lies below `ui/` and `assets/`; never the manifest, the checksums or an executable. A type
//! follows from the name alone and is never guessed from the content. What the manifest's own paths mean is `declared`.

mod declared;

use std::ops::Range;

pub use declared::{Style, Unserved, bundle, icon, style, warnings};

use super::{
    manifest::Manifest,
    package::{CHECKSUMS_NAME, EntryPath, MANIFEST_NAME, SIGNATURE_NAME},
};

/// Folders of a package whose files are for browsers.
const FOLDERS: [&str; 2] = ["ui/", "assets/"];

/// The type of a bundle, whatever its name (rest.md §5).
pub const BUNDLE_TYPE: &str = "text/javascript; charset=utf-8";

/// The type of a file whose name says nothing: a browser saves it.
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Types by the ending of a name, in lower case.
const TYPES: &[(&str, &str)] = &[
    ("js", BUNDLE_TYPE),
    ("mjs", BUNDLE_TYPE),
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("json", "application/json"),
    ("map", "application/json"),
    ("webmanifest", "application/manifest+json"),
    ("txt", "text/plain; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("xml", "application/xml"),
    ("wasm", "application/wasm"),
    ("svg", "image/svg+xml"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("pdf", "application/pdf"),
];

/// The type of a file by its name.
pub fn content_type(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, ending)) = name.rsplit_once('.') else { return UNKNOWN_TYPE };
    TYPES.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known)).map_or(UNKNOWN_TYPE, |(_, kind)| kind)
}

/// The files that `/ui/<asked>` may mean, the likelier first. `segments` are the parts of the address between slashes,
/// each decoded once.
///
/// The path counts from the package (`/ui/ui/a.css` is `ui/a.css`, which is what bundles are written for), or else from
/// its folder `ui/`. Empty when it names nothing that is served.
pub fn candidates(manifest: &Manifest, segments: &[impl AsRef<str>]) -> Vec<EntryPath> {
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    // A slash that came encoded is no separator, and no file has one in its name.
    if segments.iter().any(|segment| segment.contains('/')) {
        return Vec::new();
    }
    let asked = segments.join("/");
    let paths = [asked.clone(), format!("ui/{asked}")];
    paths.iter().filter_map(|path| plain(path)).filter(|path| is_served(manifest, path.as_str())).collect()
}

/// A clean path that is spelt as it is meant: without `.`, `..`, empty parts, backslashes and control characters.
fn plain(path: &str) -> Option<EntryPath> {
    EntryPath::of_file(path.as_bytes()).ok().filter(|clean| clean.as_str() == path)
}

fn is_served(manifest: &Manifest, path: &str) -> bool {
    let in_folder = FOLDERS.iter().any(|folder| path.starts_with(folder));
    (in_folder || declared::is_declared(manifest, path)) && !is_withheld(manifest, path)
}

/// Whether the file is the host's alone, wherever it lies and whatever else the manifest calls it. Any spelling counts:
/// a folder put there by hand may be on a file system that knows no case.
fn is_withheld(manifest: &Manifest, path: &str) -> bool {
    let is = |name: &str| path.eq_ignore_ascii_case(name);
    let is_executable = |text: &String| declared::file(text).is_some_and(|executable| is(executable.as_str()));
    [MANIFEST_NAME, CHECKSUMS_NAME, SIGNATURE_NAME].into_iter().any(is)
        || manifest.runtime.executables.values().any(is_executable)
}

/// What part of a file is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it: nothing else was asked for, or nothing that is understood.
    Whole,
    /// These bytes; never empty and within the file.
    Range(Range<u64>),
    /// Bytes that the file does not have.
    Unsatisfiable,
}

/// Reads a `Range` header of a file of so many bytes (RFC 9110 §14.2). Several ranges at once are answered with the
/// whole file, as a server may.
pub fn part(header: &str, size: u64) -> Part {
    let Some(range) = single_range(header) else { return Part::Whole };
    let range = match range {
        (Some(first), last) => first..last.map_or(size, |last| last.saturating_add(1).min(size)),
        (None, Some(length)) => size.saturating_sub(length)..size,
        (None, None) => return Part::Whole,
    };
    if range.is_empty() { Part::Unsatisfiable } else { Part::Range(range) }
}

/// First and last byte of the one range; a suffix has its length for the last.
fn single_range(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = header.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let number = |text: &str| match text {
        "" => Some(None),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => Some(Some(text.parse().unwrap_or(u64::MAX))),
        _ => None,
    };
    let (first, last) = (number(first)?, number(last)?);
    match (first, last) {
        (Some(first), Some(last)) if first > last => None,
        both => Some(both),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::manifest;

    fn manifest(more: &str) -> Manifest {
        let text = format!(
            "{{id: acme, api_version: 1, version: 1.0, icon: /pics/icon.png,
              ui: {{bundle: /dist/bundle.js, styles: [/ui/a.css, /dist/b.css]}},
              runtime: {{type: binary, executables: {{linux-amd64: server/p, linux-arm64: ui/bin/p}}}}{more}}}"
        );
        manifest::parse(text.as_bytes()).unwrap().manifest
    }

    fn meant(path: &str) -> Vec<String> {
        let segments: Vec<_> = path.split('/').collect();
        candidates(&manifest(""), &segments).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_path_counts_from_the_package_or_else_from_its_folder_ui() {
        assert_eq!(meant("ui/a.css"), ["ui/a.css", "ui/ui/a.css"]);
        assert_eq!(meant("a.css"), ["ui/a.css"]);
        assert_eq!(meant("assets/x.png"), ["assets/x.png", "ui/assets/x.png"]);
        assert_eq!(meant("dist/b.css"), ["dist/b.css", "ui/dist/b.css"]);
        assert_eq!(meant("pics/icon.png"), ["pics/icon.png", "ui/pics/icon.png"]);
    }

    #[test]
    fn nothing_of_the_package_beside_the_declared_is_named() {
        for path in ["manifest.yaml", "checksums.txt", "checksums.txt.sig", "server/p", "dist/other.js", "data/x"] {
            assert_eq!(meant(path), [format!("ui/{path}")], "{path}");
        }
    }

    #[test]
    fn an_executable_is_withheld_wherever_it_lies_and_whatever_it_is_called() {
        assert_eq!(meant("ui/bin/p"), ["ui/ui/bin/p"]);
        assert_eq!(meant("bin/P"), [""; 0]);
        let icon_is_manifest = Manifest { icon: "/manifest.yaml".to_owned(), ..manifest("") };
        assert_eq!(candidates(&icon_is_manifest, &["manifest.yaml"]).len(), 1, "below ui only");
    }

    #[test]
    fn what_is_not_spelt_plainly_names_nothing() {
        for path in
            ["", "..", "../x", "ui/../manifest.yaml", "ui//a.css", "ui/./a.css", "ui/", "/ui/a.css", "ui\\a.css"]
        {
            assert_eq!(meant(path), [""; 0], "{path}");
        }
        for segments in [["ui", "../a.css"], ["ui", "x/y.css"], ["ui", "a\0.css"], ["..", "a.css"], ["ui", ""]] {
            assert_eq!(candidates(&manifest(""), &segments), [], "{segments:?}");
        }
    }

    #[test]
    fn types_follow_the_name_alone() {
        for (path, kind) in [
            ("ui/a.css", "text/css; charset=utf-8"),
            ("a.b.MJS", BUNDLE_TYPE),
            ("ui/a.svg", "image/svg+xml"),
            ("ui.css/none", UNKNOWN_TYPE),
            ("ui/x.exe", UNKNOWN_TYPE),
            ("css", UNKNOWN_TYPE),
        ] {
            assert_eq!(content_type(path), kind, "{path}");
        }
    }

    #[test]
    fn one_range_is_understood_and_everything_else_is_the_whole_file() {
        for (header, expected) in [
            ("bytes=0-0", Part::Range(0..1)),
            ("bytes=2-", Part::Range(2..10)),
            ("bytes=2-99", Part::Range(2..10)),
            ("bytes=-3", Part::Range(7..10)),
            ("bytes=-99", Part::Range(0..10)),
            ("Bytes=1-2", Part::Range(1..3)),
            ("bytes=10-", Part::Unsatisfiable),
            ("bytes=-0", Part::Unsatisfiable),
            ("bytes=99999999999999999999999-", Part::Unsatisfiable),
            ("bytes=0-1,3-4", Part::Whole),
            ("bytes=3-2", Part::Whole),
            ("bytes=-", Part::Whole),
            ("bytes=+1-2", Part::Whole),
            ("lines=0-1", Part::Whole),
            ("", Part::Whole),
        ] {
            assert_eq!(part(header, 10), expected, "{header}");
        }
        assert_eq!(part("bytes=0-", 0), Part::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn no_address_names_a_file_outside_of_what_is_served(segments in prop::collection::vec(
            prop_oneof![Just("..".to_owned()), Just(".".to_owned()), Just("ui".to_owned()), Just("assets".to_owned()),
                Just("manifest.yaml".to_owned()), Just("server".to_owned()), Just("p".to_owned()), "[a./\\\\%]{0,5}", ".{0,6}"],
            0..6)) {
            for path in candidates(&manifest(""), &segments) {
                let path = path.as_str();
                let declared = ["dist/bundle.js", "dist/b.css", "pics/icon.png"].contains(&path);
                prop_assert!(path.starts_with("ui/") || path.starts_with("assets/") || declared, "{}", path);
                prop_assert!(!["manifest.yaml", "server/p", "ui/bin/p"].contains(&path));
                prop_assert!(path.split('/').all(|part| !part.is_empty() && part != "." && part != ".."));
            }
        }

        #[test]
        fn a_range_lies_within_the_file(header in "(bytes=)?[0-9]{0,4}-?[0-9]{0,4}", size in 0u64..2000) {
            if let Part::Range(range) = part(&header, size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
