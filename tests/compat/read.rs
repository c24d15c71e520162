//! The verdicts by the same code as an install, without a host: staging, unpacking, the manifest's rules, this
//! platform's executable, the minimum version. For [`PLATFORM`], wherever the test runs.

use std::io;

use futures_util::stream;
use kandev_host::{
    config::{DEFAULT_COMPAT_VERSION, Limits},
    domain::{manifest::Manifest, signature::Trust, version::check_minimum},
    store::packages::{PackageStore, PackageStoreError},
};

use crate::case::{Case, PLATFORM, cases};

/// The manifest and what is told of it, or code and text of the refusal.
async fn verdict(case: &Case) -> Result<(Manifest, Vec<String>), (&'static str, String)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = PackageStore::new(folder.path());
    let archive = case.package(b"a program").archive().await;
    let limits = Limits::default().package();
    let body = stream::iter([Ok::<_, io::Error>(archive)]);
    let staged = store.stage(body, &limits).await.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let unpacked = match store.unpack(staged, limits, PLATFORM, Trust::default()).await {
        Ok(unpacked) => unpacked,
        Err(PackageStoreError::Package(error)) => return Err((error.code(), error.to_string())),
        Err(error) => panic!("{}: {error}", case.name),
    };
    check_minimum(&unpacked.manifest.min_kandev_version, DEFAULT_COMPAT_VERSION)
        .map_err(|error| ("host_too_old", error.to_string()))?;
    Ok((unpacked.manifest.clone(), unpacked.warnings.clone()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_manifest_gets_its_verdict() {
    for case in cases(PLATFORM) {
        let name = &case.name;
        let found = verdict(&case).await;
        match (found, &case.verdict.accepted, &case.verdict.refused) {
            (Ok((manifest, warnings)), Some(accepted), _) => {
                assert_eq!(warnings, accepted.warnings, "{name}");
                let mut granted: Vec<_> = manifest.capabilities.granted().iter().map(|word| word.name()).collect();
                let mut wanted: Vec<_> = accepted.granted.iter().map(String::as_str).collect();
                granted.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(granted, wanted, "{name}");
                accepted.check_record(name, &serde_json::to_value(&manifest).expect("a manifest as JSON"));
            }
            (Err((code, text)), _, Some(refused)) => refused.check(name, code, &text),
            (Ok(_), ..) => panic!("{name} was accepted and must be refused"),
            (Err((code, text)), ..) => panic!("{name} was refused and must be accepted: {code}: {text}"),
        }
    }
}
