//! Saves of a plugin's settings: file and secrets are of the same save, the plugin has it and the operator sees it.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Archives, ID, Left, Outcome, When, call, host_calls, install, moments::Scenario};
use crate::support::{Host, host::Answer};

const MASK: &str = "********";

pub async fn prepare(host: &Host, archives: &Archives) {
    install(host, &archives.old).await;
    patch(host, "old", "old").await.expect(200);
}

pub async fn operate(host: &Host, scenario: Scenario) -> Answer {
    patch(host, "new", if scenario == Scenario::SaveWithSecret { "new" } else { MASK }).await
}

async fn patch(host: &Host, name: &str, token: &str) -> Answer {
    let body = json!({"config": {"name": name, "token": token}});
    host.request(Method::PATCH, &format!("/api/plugins/{ID}"), Some(body)).await
}

pub async fn check(host: &Host, outcome: &Outcome<'_>) {
    host.status(ID, "active").await;
    let seen = host_calls(host, json!([call("GetConfig", json!({}))])).await[0]["config"].clone();
    let name = seen["name"].as_str().expect("a name").to_owned();
    let token = if outcome.moment.scenario == Scenario::SaveWithSecret { name.as_str() } else { "old" };
    assert_eq!(seen, json!({"name": name, "token": token}), "file and secret are of the same save");
    let lawful: &[&str] = match (&outcome.answered, outcome.moment.left) {
        (Some(answer), _) => {
            assert_eq!(answer.status, 200, "{answer:?}");
            &["new"]
        }
        (None, Left::Old) => &["old"],
        (None, Left::New) => &["new"],
        (None, _) => &["old", "new"],
    };
    assert!(lawful.contains(&name.as_str()), "{name} was left");
    let shown = host.get(&format!("/api/plugins/{ID}/config")).await.expect(200);
    assert_eq!(shown["config"], json!({"name": name, "token": MASK}), "the operator sees what the plugin has");
    assert_told(host, outcome).await;
    host.uninstall(ID).await.expect(200);
    assert_eq!(host.get("/api/v1/vault").await.expect(200)["secrets"]["config"], Value::from(0));
}

/// A save that was cut off between its two halves is told as what became of it.
async fn assert_told(host: &Host, outcome: &Outcome<'_>) {
    let When::Failpoint(name) = &outcome.moment.when else { return };
    let told = match name.as_str() {
        "config.staged:1" => "an unfinished save of a plugin's config was dropped",
        "config.secrets_saved:1" => "an unfinished save of a plugin's config was finished",
        _ => return,
    };
    outcome.tells(host, told).await;
}
