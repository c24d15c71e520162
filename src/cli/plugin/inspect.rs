//! `plugin inspect`: what a package says and holds, by the host's own reading, without installing it.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{Host, difference, install, keys, pack, view};
use crate::{
    cli::{
        error::CliError,
        output::{Output, fields, size},
    },
    config::{Limits, Lookup},
    domain::{key::PublicKey, manifest::Manifest, target::host_platform, trust::KeyName},
    store::packages::{Examined, PackageStore},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin inspect my-plugin-0.1.0.tar.gz
  kandev-host plugin inspect my-plugin-0.1.0.tar.gz --json | jq .manifest.capabilities
  kandev-host plugin inspect my-plugin-0.2.0.tar.gz --host http://127.0.0.1:38429

The package is read as a host reads it: one that a host would refuse fails here with the same text. Nothing of it is
executed. Its signature is judged by the trusted keys of the home. With --host the host itself looks at it, by its own
keys, and tells what it would change there.";

/// `inspect`.
#[derive(Args)]
pub struct Inspect {
    /// The package file
    #[arg(value_name = "FILE")]
    package: PathBuf,
    #[command(flatten)]
    host: Host,
}

/// JSON of the result.
#[derive(Serialize)]
struct Report<'a> {
    manifest: &'a Manifest,
    /// `absent`, `unknown_key` or `trusted`, by the trusted keys of the home here.
    signature: &'static str,
    /// Whose signature it is, when it is trusted.
    signer: Option<&'a KeyName>,
    /// The key that signed, trusted or not, base64.
    key: Option<PublicKey>,
    platforms: Vec<PlatformReport<'a>>,
    /// Whether a host like this one, on this machine, can run it.
    runs_here: bool,
    /// Bytes of the package.
    size: u64,
    /// Bytes of all files.
    unpacked_size: u64,
    files: usize,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct PlatformReport<'a> {
    platform: &'a str,
    /// Whether its executable is in the package.
    present: bool,
}

/// Reads and tells.
pub async fn run(Inspect { package, host }: Inspect, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    if host.host.is_some() {
        let query = install::Query { dry_run: true, ..install::Query::default() };
        let answer = install::send(&host.client(env)?, &package.to_string_lossy(), &query, output).await?;
        return difference::show(&answer, output);
    }
    let (trust, skipped) = keys::trust(&[], host.home, env)?;
    output.progress("reading the package");
    let scratch = tempfile::tempdir()?;
    let store = PackageStore::new(scratch.path());
    let staged = pack::take(&store, &package).await?;
    let mut examined = store.examine(staged, Limits::default().package(), trust).await?;
    examined.warnings.extend(examined.signature.warning());
    examined.warnings.extend(skipped);
    let report = report(&examined);
    output.result(&report, || text(&examined, &report))
}

fn report(examined: &Examined) -> Report<'_> {
    let facts = &examined.facts;
    let platforms = facts.platforms.iter();
    Report {
        manifest: &examined.manifest,
        signature: examined.signature.word(),
        signer: examined.signature.signer().map(|signer| &signer.name),
        key: examined.signature.key(),
        platforms: platforms.map(|(platform, present)| PlatformReport { platform, present: *present }).collect(),
        runs_here: facts.platforms.get(&host_platform()).copied().unwrap_or(false),
        size: facts.compressed,
        unpacked_size: facts.size,
        files: facts.files,
        warnings: &examined.warnings,
    }
}

fn text(examined: &Examined, report: &Report<'_>) -> String {
    let manifest = &examined.manifest;
    let platforms = report.platforms.iter().map(|PlatformReport { platform, present }| match present {
        true => (*platform).to_owned(),
        false => format!("{platform} (declared, not in the package)"),
    });
    let capabilities = serde_json::to_value(&manifest.capabilities).unwrap_or_default();
    let webhooks = manifest.webhooks.iter().map(|hook| (hook.key.as_str(), hook.access.as_str()));
    let sizes = format!("{}, unpacked {}, {} files", size(report.size), size(report.unpacked_size), report.files);
    fields(&[
        ("id", manifest.id.clone()),
        ("version", manifest.version.clone()),
        ("name", manifest.display_name.clone()),
        ("description", manifest.description.clone()),
        ("author", manifest.author.clone()),
        ("needs host", manifest.min_kandev_version.clone()),
        ("platforms", platforms.collect::<Vec<_>>().join("\n")),
        ("runs here", if report.runs_here { "yes".to_owned() } else { format!("no, this is {}", host_platform()) }),
        ("capabilities", view::capabilities(&capabilities)),
        ("webhooks", view::webhooks(webhooks)),
        ("size", sizes),
        ("signature", report.signature.to_owned()),
        ("key", report.key.map(|key| key.to_string()).unwrap_or_default()),
        ("signer", report.signer.map(ToString::to_string).unwrap_or_default()),
        ("warnings", examined.warnings.join("\n")),
    ])
}
