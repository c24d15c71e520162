//! What can be said of a package without running it, by the host's own reading.

use std::path::Path;

use serde_json::{Value, json};

use super::report::{Finding, Report, Topic};
use crate::{
    cli::{
        error::CliError,
        output::size,
        plugin::{pack, view},
    },
    config::{DEFAULT_COMPAT_VERSION, Limits},
    domain::{
        manifest::Manifest,
        package::{PackageError, hex},
        signature::Trust,
        target::host_platform,
        version::check_minimum,
    },
    store::packages::{PackageStore, PackageStoreError, Unpacked},
};

const PACK: &str = "make the package with `kandev-host plugin pack`, which checks it as a host does";
const RULES: &str = "correct manifest.yaml: each line names a key and what is lawful there";
const BUILD: &str = "build the plugin for this platform, name the binary in runtime.executables and pack it";

/// Reads the package. The manifest, when a host would install it here.
///
/// # Errors
/// [`CliError`] when there is no file to read, or it cannot be unpacked for want of room or rights.
pub async fn examine(package: &Path, report: &mut Report) -> Result<Option<Manifest>, CliError> {
    let scratch = tempfile::tempdir()?;
    let store = PackageStore::new(scratch.path());
    let staged = match pack::take(&store, package).await {
        Err(CliError::Package(PackageStoreError::Package(error))) => {
            refused(&error, report);
            return Ok(None);
        }
        staged => staged?,
    };
    let limits = Limits::default().package();
    match store.unpack(staged, limits, &host_platform(), Trust::default()).await {
        Ok(unpacked) => {
            let lawful = sound(&unpacked, report);
            let manifest = unpacked.manifest.clone();
            unpacked.discard().await;
            Ok(lawful.then_some(manifest))
        }
        Err(PackageStoreError::Package(error)) => {
            refused(&error, report);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Why a host refuses it, at the check that it belongs to; those that come before have passed.
fn refused(error: &PackageError, report: &mut Report) {
    let read = || Finding::pass(Topic::Archive, "it unpacks, and every file is as checksums.txt says");
    let lawful = || Finding::pass(Topic::Manifest, "it follows every rule");
    match error {
        PackageError::Manifest(_) => {
            report.add(read());
            report.add(Finding::fail(Topic::Manifest, error.to_string(), RULES));
        }
        PackageError::PlatformUnsupported { .. } | PackageError::ExecutableMissing(_) => {
            report.add(read());
            report.add(lawful());
            report.add(Finding::fail(Topic::Platform, error.to_string(), BUILD));
        }
        _ => report.add(Finding::fail(Topic::Archive, error.to_string(), PACK)),
    }
}

/// What a lawful package holds; false when this host is too old for it.
fn sound(unpacked: &Unpacked, report: &mut Report) -> bool {
    let Unpacked { manifest, warnings, signature, facts, .. } = unpacked;
    report.plugin = Some((manifest.id.clone(), manifest.version.clone()));
    let text = format!("{}, unpacked {}, {} files", size(facts.compressed), size(facts.size), facts.files);
    report.add(
        Finding::pass(Topic::Archive, text)
            .fact("sha256", hex(&facts.sha256))
            .fact("bytes", facts.compressed)
            .fact("unpacked_bytes", facts.size)
            .fact("files", facts.files)
            .fact("signature", signature.word()),
    );
    let platforms: serde_json::Map<String, Value> =
        facts.platforms.iter().map(|(platform, present)| (platform.clone(), json!(present))).collect();
    report.add(
        Finding::pass(Topic::Platform, format!("it has a binary for {}", host_platform())).fact("platforms", platforms),
    );
    capabilities(manifest, report);
    if let Err(error) = check_minimum(&manifest.min_kandev_version, DEFAULT_COMPAT_VERSION) {
        let advice = "lower min_kandev_version to what the plugin really needs, or use a newer host";
        report.add(Finding::fail(Topic::Manifest, error.to_string(), advice));
        return false;
    }
    report.add(match warnings.as_slice() {
        [] => Finding::pass(Topic::Manifest, "it follows every rule"),
        told => Finding::warn(Topic::Manifest, told.join("; "), "operators are shown this at every install: mend it")
            .fact("warnings", told.to_vec()),
    });
    true
}

fn capabilities(manifest: &Manifest, report: &mut Report) {
    let asked = serde_json::to_value(&manifest.capabilities).unwrap_or_default();
    let text = view::capabilities(&asked).replace('\n', "; ");
    let text = if text.is_empty() { "it asks for nothing".to_owned() } else { format!("it asks for {text}") };
    report.add(Finding::pass(Topic::Capabilities, text).fact("capabilities", asked));
}
