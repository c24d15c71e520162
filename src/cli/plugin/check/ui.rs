//! Fetches the files that the manifest names for the browser, and looks at their types.

use reqwest::Method;

use super::{
    CheckError,
    report::{Finding, Topic},
    session::Session,
};
use crate::cli::output::size;

const MISSING: &str = "pack the file at this path, below ui/ or assets/, or take it out of the manifest";
const TYPE: &str = "give the file the ending of its kind: the host takes the type from the name";
const EMPTY: &str = "an empty file is served as one: look at what builds it";

/// A file as the manifest names it.
struct Named<'a> {
    path: &'a str,
    /// Beginning of the type that it must have.
    kind: &'static str,
}

/// Tries every file.
pub async fn check(session: &mut Session<'_>) -> Result<(), CheckError> {
    let manifest = session.manifest;
    let styles = manifest.ui.styles.iter().map(|path| Named { path, kind: "text/css" });
    let icon = Some(manifest.icon.as_str()).filter(|icon| !icon.is_empty());
    let files: Vec<_> = styles.chain(icon.map(|path| Named { path, kind: "image/" })).collect();
    if manifest.ui.bundle.is_empty() && files.is_empty() {
        session.add(Finding::skipped(Topic::Ui, "it has no part in the page"));
        return Ok(());
    }
    session.output.progress("files for the browser");
    if !session.runs().await? {
        session.add(Finding::skipped(Topic::Ui, "files are served while the plugin runs, and it does not"));
        return Ok(());
    }
    if !manifest.ui.bundle.is_empty() {
        let bundle = Named { path: &manifest.ui.bundle, kind: "text/javascript" };
        fetch(session, &["bundle"], &bundle).await?;
    }
    for file in files {
        if is_address(file.path) {
            session.add(Finding::skipped(Topic::Ui, "it is an address, not a file").of(file.path));
            continue;
        }
        let segments: Vec<&str> = file.path.trim_start_matches('/').split('/').collect();
        fetch(session, &[&["ui"][..], segments.as_slice()].concat(), &file).await?;
    }
    Ok(())
}

/// An icon may be one; the page gets it as it is.
fn is_address(path: &str) -> bool {
    path.contains("://") || path.starts_with("data:")
}

async fn fetch(session: &mut Session<'_>, place: &[&str], file: &Named<'_>) -> Result<(), CheckError> {
    let answer = session.ask(Method::GET, place).await?;
    let finding = match answer.status {
        200 if !answer.kind.starts_with(file.kind) => {
            let text = format!("it is served as {}, not as {}", answer.kind, file.kind.trim_end_matches('/'));
            Finding::fail(Topic::Ui, text, TYPE)
        }
        200 if answer.body.is_empty() => Finding::warn(Topic::Ui, "it is empty", EMPTY),
        200 => Finding::pass(Topic::Ui, format!("{}, {}", answer.kind, size(answer.body.len() as u64))),
        404 => Finding::fail(Topic::Ui, "it is not in the package, or not where files are served from", MISSING),
        _ => Finding::fail(Topic::Ui, answer.fault(), MISSING),
    };
    session.add(finding.of(file.path).fact("bytes", answer.body.len()).fact("type", answer.kind));
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
