//! What the manifest's own paths mean: which file of the package is the bundle, a style or the icon, how the page asks
//! for it, and what is told when a browser will not get it.
//!
//! Bundle and icon are names of files. A style is an address, which the contract has the page use as it is written
//! (frontend.md §1.1): a browser resolves it and the host decodes it, so `/ui/a%20b.css` is the file `ui/a b.css`. All
//! of them are cleaned as the contract's host does (rest.md §5): `//` and `/./` say nothing, and `..` stays inside. One
//! that leads out is no file: a browser would take it to another plugin's address.

use std::borrow::Cow;

use super::{candidates, is_withheld, plain};
use crate::domain::{
    clean::quote,
    manifest::{self, Manifest},
    package::EntryPath,
    percent::decoded,
};

/// Why a browser does not get what a manifest names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unserved {
    /// `..` beyond the package, or a name that no file of a package has.
    #[error("leads out of the package or to no file")]
    Unlawful,
    /// The manifest, the checksums, their signature or an executable.
    #[error("names a file that is the host's alone")]
    Withheld,
    /// Another file, or none, was packed.
    #[error("means {}, which is not in the package", quote(.0.as_str()))]
    Missing(EntryPath),
}

/// A style sheet of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// What follows `/api/plugins/<id>/ui`: what the manifest says, unless that had to be cleaned.
    pub address: String,
    /// The file that the host finds by it.
    pub file: EntryPath,
}

/// The declared bundle.
///
/// # Errors
/// [`Unserved`], also when none is declared.
pub fn bundle(manifest: &Manifest) -> Result<EntryPath, Unserved> {
    served(manifest, file(&manifest.ui.bundle))
}

/// The declared icon.
///
/// # Errors
/// [`Unserved`], also when none is declared.
pub fn icon(manifest: &Manifest) -> Result<EntryPath, Unserved> {
    served(manifest, file(&manifest.icon))
}

/// A declared style.
///
/// # Errors
/// [`Unserved`].
pub fn style(manifest: &Manifest, written: &str) -> Result<Style, Unserved> {
    let (parts, rest) = address(written).ok_or(Unserved::Unlawful)?;
    let file = served(manifest, decoded_file(&parts))?;
    Ok(Style { address: format!("/{}{rest}", parts.join("/")), file })
}

/// What browsers will not get of bundle and styles, a line each. It is lawful (manifest.md §2): so it is told and
/// nothing is refused. `has` says whether the package has a file.
pub fn warnings(manifest: &Manifest, has: impl Fn(&str) -> bool) -> Vec<String> {
    let there = |file: EntryPath| {
        let asked: Vec<_> = file.as_str().split('/').collect();
        let found = candidates(manifest, &asked).iter().any(|path| has(path.as_str()));
        if found { Ok(()) } else { Err(Unserved::Missing(file)) }
    };
    let packed = |file: EntryPath| if has(file.as_str()) { Ok(()) } else { Err(Unserved::Missing(file)) };
    let ui = &manifest.ui;
    let bundle = (!ui.bundle.is_empty()).then(|| ("ui.bundle", &ui.bundle, bundle(manifest).and_then(packed)));
    let style = |written: &String| style(manifest, written).and_then(|style| there(style.file));
    let styles = ui.styles.iter().map(|written| ("ui.styles entry", written, style(written)));
    let told = bundle.into_iter().chain(styles).filter_map(|(key, written, found)| {
        found.err().map(|why| format!("{key} {} {why}: browsers will not get it", quote(written)))
    });
    manifest::shorten(told.collect())
}

/// Whether the manifest names this file, by whatever spelling.
pub(super) fn is_declared(manifest: &Manifest, path: &str) -> bool {
    let is = |file: Option<EntryPath>| file.is_some_and(|file| file.as_str() == path);
    let of_style = |written: &String| address(written).and_then(|(parts, _)| decoded_file(&parts));
    is(file(&manifest.ui.bundle)) || is(file(&manifest.icon)) || manifest.ui.styles.iter().any(|s| is(of_style(s)))
}

/// The file of a path that is a name; it counts from the package with or without a slash.
pub(super) fn file(path: &str) -> Option<EntryPath> {
    plain(&parts(path, Cow::Borrowed)?.join("/"))
}

/// The parts of a style's address, and its query and fragment; `None` when it leads out.
fn address(written: &str) -> Option<(Vec<&str>, &str)> {
    let (path, rest) = written.split_at(written.find(['?', '#']).unwrap_or(written.len()));
    Some((parts(path, decoded)?, rest))
}

/// The file that the host finds by these parts of an address. An encoded slash separates nothing.
fn decoded_file(parts: &[&str]) -> Option<EntryPath> {
    let parts: Vec<_> = parts.iter().map(|part| decoded(part)).collect();
    if parts.iter().any(|part| part.contains('/')) { None } else { plain(&parts.join("/")) }
}

/// The parts of a path without those that mean nothing; `None` when it leads out. `meant` is what a part says.
fn parts<'a>(path: &'a str, meant: impl Fn(&'a str) -> Cow<'a, str>) -> Option<Vec<&'a str>> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match &*meant(part) {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts)
}

fn served(manifest: &Manifest, file: Option<EntryPath>) -> Result<EntryPath, Unserved> {
    let file = file.ok_or(Unserved::Unlawful)?;
    if is_withheld(manifest, file.as_str()) { Err(Unserved::Withheld) } else { Ok(file) }
}

#[cfg(test)]
mod tests;
