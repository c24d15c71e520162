//! `plugin verify`: whether a package is sound and signed by a key that counts, without a host.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{keys, pack};
use crate::{
    cli::{
        error::CliError,
        output::{Output, fields},
    },
    config::{Limits, Lookup},
    domain::{key::PublicKey, signature::PackageSignature, trust::KeyName},
    store::packages::PackageStore,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin verify my-plugin-0.1.0.tar.gz --key acme.pub
  kandev-host plugin verify my-plugin-0.1.0.tar.gz
  kandev-host plugin verify my-plugin-0.1.0.tar.gz --key acme.pub --json | jq -r .signer

With --key, those keys count for every plugin; without, the trusted keys of the home, each for its plugins. Exit code 0:
sound and signed by one of them; 1: damaged, unlawful or wrongly signed; 6: sound, but unsigned or of another key.";

/// `verify`.
#[derive(Args)]
pub struct Verify {
    /// The package file
    #[arg(value_name = "FILE")]
    package: PathBuf,
    /// A public key that counts; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// The host's folder, whose trusted keys count [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER", conflicts_with = "key")]
    home: Option<String>,
}

/// JSON of the result.
#[derive(Serialize)]
struct Verdict<'a> {
    id: &'a str,
    version: &'a str,
    /// `absent`, `unknown_key` or `trusted`.
    signature: &'static str,
    /// Whose signature it is, when it is trusted.
    signer: Option<&'a KeyName>,
    /// The key itself, base64.
    key: Option<PublicKey>,
}

/// Verifies and tells.
pub async fn run(Verify { package, key, home }: Verify, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let (trust, skipped) = keys::trust(&key, home, env)?;
    for text in skipped {
        output.note(&format!("warning: {text}"));
    }
    output.progress("reading the package");
    let scratch = tempfile::tempdir()?;
    let store = PackageStore::new(scratch.path());
    let staged = pack::take(&store, &package).await?;
    let examined = store.examine(staged, Limits::default().package(), trust).await?;
    let PackageSignature::Trusted(signer) = &examined.signature else {
        let why = examined.signature.warning().unwrap_or_default();
        return Err(CliError::NotTrusted(why));
    };
    let verdict = Verdict {
        id: &examined.manifest.id,
        version: &examined.manifest.version,
        signature: examined.signature.word(),
        signer: Some(&signer.name),
        key: Some(signer.key),
    };
    output.result(&verdict, || {
        fields(&[
            ("plugin", format!("{} {}", verdict.id, verdict.version)),
            ("signer", signer.name.to_string()),
            ("key", signer.key.to_string()),
        ])
    })
}
