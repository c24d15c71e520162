//! `plugin sync`: has the host look at its plugins folder, and shows what it made of it.

use reqwest::Method;
use serde::Deserialize;

use super::operate::part;
use crate::cli::{
    client::Client,
    error::CliError,
    output::{Output, table},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin sync
  kandev-host plugin sync --json | jq -r '.errors[].reason'

Folders <home>/plugins/<id>/<version>/ are registered, disabled; packages <home>/plugins/*.tar.gz are installed and
started. Exit code 1 when an item failed; the others are done. Installs take their time: see --timeout.";

/// What the host answers (docs/api.md, "Sync").
#[derive(Deserialize)]
struct Report {
    added: Vec<String>,
    installed: Vec<String>,
    missing: Vec<String>,
    errors: Vec<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    path: String,
    reason: String,
}

/// Syncs.
pub async fn run(client: &Client, output: &Output) -> Result<(), CliError> {
    output.progress("syncing the plugins folder");
    let answer = client.send(client.request(Method::POST, &["api", "plugins", "sync"])).await?;
    let report: Report = part(&answer)?;
    output.result(&answer, || report.text())?;
    match report.errors.len() {
        0 => Ok(()),
        failed => Err(CliError::SyncIncomplete { failed }),
    }
}

impl Report {
    fn text(&self) -> String {
        let of = |what: &'static str, ids: &[String], note: &'static str| -> Vec<[String; 3]> {
            ids.iter().map(|id| [what.to_owned(), id.clone(), note.to_owned()]).collect()
        };
        let failed = self.errors.iter().map(|error| ["error".to_owned(), error.path.clone(), error.reason.clone()]);
        let rows: Vec<_> = of("added", &self.added, "disabled; enable it to start it")
            .into_iter()
            .chain(of("installed", &self.installed, ""))
            .chain(of("missing", &self.missing, "its folder is gone"))
            .chain(failed)
            .collect();
        match rows.is_empty() {
            true => "nothing to do".to_owned(),
            false => table(["WHAT", "ITEM", "NOTE"], rows),
        }
    }
}
