//! The vault: a rotation of its key, its first key, a secret that a plugin writes. Every secret opens afterwards.

use serde_json::{Value, json};

use super::{Archives, ID, Left, Outcome, When, call, host_calls, install, moments::Scenario};
use crate::support::{Host, host::Answer};

/// More than one batch of a rotation.
const SECRETS: usize = 150;

/// The key on disk; empty when there is none.
pub fn key_file(host: &Host) -> String {
    std::fs::read_to_string(host.home().join("vault.key")).unwrap_or_default()
}

pub async fn prepare(host: &mut Host, scenario: Scenario, archives: &Archives) {
    if scenario == Scenario::FirstKey {
        host.kill();
        std::fs::remove_file(host.home().join("vault.key")).expect("an empty vault does without");
        return;
    }
    install(host, &archives.old).await;
    let count = if scenario == Scenario::Rotate { SECRETS } else { 1 };
    let calls: Vec<_> = (0..count).map(|n| set(n, "old")).collect();
    host_calls(host, json!(calls)).await;
}

pub async fn operate(host: &Host, scenario: Scenario) -> Option<Answer> {
    match scenario {
        Scenario::Rotate => Some(host.post("/api/v1/vault/rotate", json!({})).await),
        Scenario::WriteSecret => {
            let path = format!("/api/plugins/{ID}/webhooks/host");
            Some(host.post(&path, json!({"calls": [set(0, "new")]})).await)
        }
        _ => None,
    }
}

fn set(number: usize, value: &str) -> Value {
    call("SetSecret", json!({"key": format!("k{number}"), "value": value}))
}

pub async fn check(host: &Host, outcome: &Outcome<'_>) {
    let moment = outcome.moment;
    if moment.scenario == Scenario::FirstKey {
        let item = host.post("/api/v1/secrets", json!({"name": "n", "value": "v"})).await.expect(201);
        let path = format!("/api/v1/secrets/{}", item["id"].as_str().expect("an id"));
        host.request(reqwest::Method::DELETE, &path, None).await.expect(204);
    } else {
        host.status(ID, "active").await;
        let count = if moment.scenario == Scenario::Rotate { SECRETS } else { 1 };
        let calls: Vec<_> = (0..count).map(|n| call("GetSecret", json!({"key": format!("k{n}")}))).collect();
        let values: Vec<_> = host_calls(host, json!(calls)).await.iter().map(|found| found["value"].clone()).collect();
        assert_values(outcome, &values);
        host.uninstall(ID).await.expect(200);
    }
    let key = key_file(host);
    assert_eq!(key.lines().count(), 1, "one key is left");
    let status = host.get("/api/v1/vault").await.expect(200);
    assert_eq!((&status["pending"], &status["secrets"]["own"]), (&json!(0), &json!(0)), "{status}");
    if moment.scenario == Scenario::Rotate {
        assert_rotated(host, outcome, &key).await;
    }
}

fn assert_values(outcome: &Outcome<'_>, values: &[Value]) {
    let lawful: &[&str] = match (outcome.moment.scenario, &outcome.answered, outcome.moment.left) {
        (Scenario::WriteSecret, Some(_), _) | (Scenario::WriteSecret, None, Left::New) => &["new"],
        (Scenario::WriteSecret, None, Left::Lawful) => &["old", "new"],
        _ => &["old"],
    };
    assert!(values.iter().all(|value| lawful.contains(&value.as_str().unwrap_or("none"))), "{values:?}");
}

/// The key is the old one or another one, and a rotation that was cut off is told as finished.
async fn assert_rotated(host: &Host, outcome: &Outcome<'_>, key: &str) {
    let changed = key != outcome.before;
    match (&outcome.answered, outcome.moment.left) {
        (Some(answer), _) => assert!(answer.status == 200 && changed, "{answer:?}"),
        (None, Left::Old) => assert!(!changed, "the key was changed"),
        (None, Left::New) => assert!(changed, "the key was not changed"),
        (None, _) => {}
    }
    let When::Failpoint(name) = &outcome.moment.when else { return };
    if !matches!(name.as_str(), "vault.key.replacing:1" | "vault.rotate.done:1") {
        outcome.tells(host, "a change of the vault's key was finished").await;
    }
}
