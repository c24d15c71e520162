//! Fetches the files that the manifest names for the browser, by the very addresses that the page gets, and looks at
//! their types.

use super::{
    CheckError,
    report::{Finding, Topic},
    session::Session,
};
use crate::{
    cli::output::size,
    domain::{
        boot,
        clean::quote,
        package::EntryPath,
        percent::encoded,
        ui_file::{self, Unserved},
    },
};

const MISSING: &str = "pack the file at this path, below ui/ or assets/, or take it out of the manifest";
const TYPE: &str = "give the file the ending of its kind: the host takes the type from the name";
const EMPTY: &str = "an empty file is served as one: look at what builds it";

/// A file as the page asks for it.
struct Asked {
    address: String,
    /// What the host makes of the address.
    file: EntryPath,
}

/// Tries every file.
pub async fn check(session: &mut Session<'_>) -> Result<(), CheckError> {
    let manifest = session.manifest;
    let (bundle, styles, icon) = (&manifest.ui.bundle, &manifest.ui.styles, &manifest.icon);
    if bundle.is_empty() && styles.is_empty() && icon.is_empty() {
        session.add(Finding::skipped(Topic::Ui, "it has no part in the page"));
        return Ok(());
    }
    session.output.progress("files for the browser");
    if !session.runs().await? {
        session.add(Finding::skipped(Topic::Ui, "files are served while the plugin runs, and it does not"));
        return Ok(());
    }
    if !bundle.is_empty() {
        let address = boot::bundle_url(session.id(), manifest);
        let asked = ui_file::bundle(manifest).map(|file| Asked { address, file });
        fetch(session, bundle, "text/javascript", asked).await?;
    }
    for written in styles {
        let asked = ui_file::style(manifest, written)
            .map(|style| Asked { address: boot::style_url(&manifest.id, &style), file: style.file });
        fetch(session, written, "text/css", asked).await?;
    }
    if is_address(icon) {
        session.add(Finding::skipped(Topic::Ui, "it is an address, not a file").of(icon));
    } else if !icon.is_empty() {
        let asked = ui_file::icon(manifest).map(|file| Asked { address: address(&manifest.id, &file), file });
        fetch(session, icon, "image/", asked).await?;
    }
    Ok(())
}

/// An icon may be one; the page gets it as it is.
fn is_address(path: &str) -> bool {
    path.contains("://") || path.starts_with("data:")
}

/// Where the host serves a file, by its name.
fn address(id: &str, file: &EntryPath) -> String {
    let parts: Vec<_> = file.as_str().split('/').map(encoded).collect();
    format!("/api/plugins/{id}/ui/{}", parts.join("/"))
}

/// Asks for one file. `written` is what the manifest says of it, `kind` the beginning of the type that it must have.
async fn fetch(
    session: &mut Session<'_>,
    written: &str,
    kind: &'static str,
    asked: Result<Asked, Unserved>,
) -> Result<(), CheckError> {
    let Asked { address, file } = match asked {
        Ok(asked) => asked,
        Err(why) => {
            session.add(Finding::fail(Topic::Ui, format!("it {why}"), MISSING).of(written));
            return Ok(());
        }
    };
    let answer = session.fetch(&address).await?;
    let finding = match answer.status {
        200 if !answer.kind.starts_with(kind) => {
            let text = format!("it is served as {}, not as {}", answer.kind, kind.trim_end_matches('/'));
            Finding::fail(Topic::Ui, text, TYPE)
        }
        200 if answer.body.is_empty() => Finding::warn(Topic::Ui, "it is empty", EMPTY),
        200 => Finding::pass(Topic::Ui, format!("{}, {}", answer.kind, size(answer.body.len() as u64))),
        404 if file.as_str() == written.trim_start_matches('/') => {
            Finding::fail(Topic::Ui, "it is not in the package, or not where files are served from", MISSING)
        }
        404 => {
            let text = format!("the page asks for {} by it, which is not in the package", quote(file.as_str()));
            Finding::fail(Topic::Ui, text, MISSING)
        }
        _ => Finding::fail(Topic::Ui, answer.fault(), MISSING),
    };
    session.add(finding.of(written).fact("bytes", answer.body.len()).fact("type", answer.kind));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_not_fetched() {
        assert!(is_address("https://example.test/icon.svg") && is_address("data:image/svg+xml,<svg/>"));
        assert!(!is_address("assets/icon.svg") && !is_address("/ui/data.css"));
    }
}
