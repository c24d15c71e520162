//! The verdicts by the real binary: each package is uploaded; an accepted one must run, show the effects in its record
//! and go again, a refused one must leave nothing.

use kandev_host::domain::target::host_platform;
use serde_json::Value;

use crate::{
    case::{Case, cases},
    support::{Guest, Host},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_host_gives_every_manifest_its_verdict() {
    let program = std::fs::read(Guest::Rust.executable().expect("the Rust fixture")).expect("a readable program");
    let host = Host::start().await;
    for case in cases(&host_platform()) {
        match case.verdict.refused {
            Some(_) => refused(&host, &case).await,
            None => accepted(&host, &case, &program).await,
        }
    }
    assert_eq!(host.get("/api/plugins").await.expect(200)["plugins"], serde_json::json!([]));
}

async fn refused(host: &Host, case: &Case) {
    let answer = host.upload(case.package(b"a program").archive().await).await;
    let verdict = case.verdict.refused.as_ref().expect("a refusal");
    let text = |key: &str| answer.body[key].as_str().unwrap_or_default();
    assert_eq!(answer.status, 400, "{}: {}", case.name, answer.body);
    verdict.check(&case.name, text("code"), text("error"));
}

async fn accepted(host: &Host, case: &Case, program: &[u8]) {
    let name = &case.name;
    let verdict = case.verdict.accepted.as_ref().expect("an acceptance");
    let answer = host.upload(case.package(program).archive().await).await;
    assert_eq!(answer.status, 201, "{name}: {}", answer.body);
    assert_eq!(answer.body["plugin"]["status"], "active", "{name}: {}", answer.body);
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let told = texts(&answer.body["warnings"]);
    let unsigned = "the package is unsigned: only its checksums were verified".to_owned();
    let expected: Vec<_> = verdict.warnings.iter().cloned().chain([unsigned]).collect();
    assert_eq!(told, expected, "{name}");
    let id = answer.body["plugin"]["id"].as_str().unwrap_or_else(|| panic!("{name}: no id")).to_owned();
    verdict.check_record(name, &host.plugin(&id).await);
    host.uninstall(&id).await.expect(200);
}
