//! Secrets from the outside: what a plugin keeps and reveals, what the operator keeps and shares, that a secret is
//! nowhere in clear, and the vault's key through starts, rotations and kills (contract/host-data.md §7; field cases 57
//! and 58).

use std::{collections::BTreeMap, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Guest, Host, Package, Settings},
};

/// No other text of any test.
const MARKER: &str = "m4rk3r-0f-a-s3cr3t";

fn call(rpc: &str, request: Value) -> Value {
    json!({"rpc": rpc, "request": request})
}

fn get(key: &str) -> Value {
    call("GetSecret", json!({"key": key}))
}

fn set(key: &str, value: &str) -> Value {
    call("SetSecret", json!({"key": key, "value": value}))
}

fn reveal(reference: &str) -> Value {
    call("RevealSecret", json!({"ref": reference}))
}

fn package(guest: Guest, id: &str, version: &str) -> Package {
    Package::of(guest, id, version).manifest(|text| text.replace("  state: true\n", "  state: true\n  secrets: true\n"))
}

/// Makes the calls; every one must succeed.
async fn responses(host: &Host, id: &str, calls: Value) -> Vec<Value> {
    let results = host.host_calls(id, calls).await;
    let ok = |result: Value| {
        assert_eq!(result["ok"], true, "{result}");
        result["response"].clone()
    };
    results.into_iter().map(ok).collect()
}

async fn refusal(host: &Host, id: &str, call: Value) -> (String, String) {
    let result = host.host_calls(id, json!([call])).await.remove(0);
    assert_eq!(result["ok"], false, "{result}");
    let text = |key: &str| result[key].as_str().expect("a text").to_owned();
    (text("code"), text("message"))
}

fn found(value: &str) -> Value {
    json!({"found": true, "value": value})
}

fn missing() -> Value {
    json!({"found": false, "value": ""})
}

/// Keeps a secret; returns its id.
async fn keep(host: &Host, name: &str, value: &str) -> String {
    let item = host.post("/api/v1/secrets", json!({"name": name, "value": value})).await.expect(201);
    item["id"].as_str().expect("an id").to_owned()
}

async fn share(host: &Host, id: &str, plugin: &str) -> Value {
    host.request(Method::PUT, &format!("/api/v1/secrets/{id}/plugins/{plugin}"), None).await.expect(200)
}

fn key_file(host: &Host) -> String {
    std::fs::read_to_string(host.home().join("vault.key")).expect("the vault's key")
}

on_both!(a_plugins_secrets_are_its_own_survive_restart_and_upgrade_and_end_with_it, |guest| {
    let mut host = Host::start().await;
    host.install(&package(guest, "demo", "1.0.0")).await;
    host.install(&package(guest, "other", "1.0.0")).await;
    let calls = json!([get("k"), set("k", "one"), set("k", "two \u{1f600}"), get("k"), get("K")]);
    let answers = responses(&host, "demo", calls).await;
    assert_eq!(answers, [missing(), json!({}), json!({}), found("two \u{1f600}"), missing()]);
    assert_eq!(responses(&host, "other", json!([get("k")])).await, [missing()]);
    let (code, message) = refusal(&host, "demo", get("plugin:other:secret:k")).await;
    assert_eq!((code.as_str(), message.as_str()), ("InvalidArgument", "invalid secret key \"plugin:other:secret:k\""));
    host.install(&package(guest, "demo", "1.1.0")).await;
    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    host.status("demo", "active").await;
    let delete = call("DeleteSecret", json!({"key": "k"}));
    let answers = responses(&host, "demo", json!([get("k"), delete, delete, get("k"), set("k", "three")])).await;
    assert_eq!(answers, [found("two \u{1f600}"), json!({}), json!({}), missing(), json!({})]);
    host.uninstall("demo").await.expect(200);
    host.install(&package(guest, "demo", "1.0.0")).await;
    assert_eq!(responses(&host, "demo", json!([get("k")])).await, [missing()]);
});

on_both!(a_plugin_reveals_what_was_shared_with_it_until_it_is_not, |guest| {
    let host = Host::start().await;
    host.install(&package(guest, "demo", "1.0.0")).await;
    host.install(&package(guest, "other", "1.0.0")).await;
    let id = keep(&host, "deploy", "hunter2").await;
    responses(&host, "other", json!([set("k", "hers")])).await;
    let refused = |reference: &str| ("NotFound".to_owned(), format!("secret not found: {reference}"));
    for reference in [&id, "plugin:other:secret:k", "Plugin:other:secret:k", "deploy", &format!("vault:{id}")] {
        assert_eq!(refusal(&host, "demo", reveal(reference)).await, refused(reference));
    }
    assert_eq!(share(&host, &id, "demo").await, json!({"plugins": ["demo"]}));
    assert_eq!(responses(&host, "demo", json!([reveal(&id)])).await, [json!({"value": "hunter2"})]);
    assert_eq!(refusal(&host, "other", reveal(&id)).await, refused(&id));
    host.request(Method::PUT, &format!("/api/v1/secrets/{id}"), Some(json!({"value": "hunter3"}))).await.expect(200);
    assert_eq!(responses(&host, "demo", json!([reveal(&id)])).await, [json!({"value": "hunter3"})]);
    let path = format!("/api/v1/secrets/{id}/plugins/demo");
    host.request(Method::DELETE, &path, None).await.expect(204);
    assert_eq!(refusal(&host, "demo", reveal(&id)).await, refused(&id));
    share(&host, &id, "demo").await;
    host.uninstall("demo").await.expect(200);
    host.install(&package(guest, "demo", "1.0.0")).await;
    assert_eq!(refusal(&host, "demo", reveal(&id)).await, refused(&id), "a new plugin of the id was given nothing");
});

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_secrets_are_kept_listed_changed_and_removed_without_their_values() {
    let host = Host::start().await;
    assert_eq!(host.get("/api/v1/secrets").await.expect(200), json!([]));
    let workspace = host.post("/api/v1/workspaces", json!({"name": "w"})).await.expect(200);
    let workspace = workspace["id"].as_str().expect("an id");
    let of = |id: &str| json!({"name": "n", "value": MARKER, "scope": "workspace", "workspace_id": id});
    assert_eq!(host.post("/api/v1/secrets", of("none")).await.expect(404)["code"], "workspace_not_found");
    let made = host.post("/api/v1/secrets", of(workspace)).await.expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/v1/secrets/{id}");
    let expected = json!({"id": id, "name": "n", "scope": "workspace", "workspace_id": workspace, "has_value": true,
                          "plugins": [], "created_at": made["created_at"], "updated_at": made["updated_at"]});
    assert_eq!(made, expected);
    assert_eq!(host.get(&path).await.expect(200), expected);
    let global = keep(&host, "g", "").await;
    let names = async |query: &str| {
        let list = host.get(&format!("/api/v1/secrets{query}")).await.expect(200);
        let names = list.as_array().expect("an array").iter().map(|item| item["name"].as_str().unwrap_or_default());
        names.collect::<String>()
    };
    assert_eq!(names("").await, "gn");
    assert_eq!(names("?scope=global").await, "g");
    assert_eq!(names("?scope=workspace").await, "n");
    assert_eq!(names(&format!("?workspace_id={workspace}&include_global=true")).await, "gn");
    let changed = host.request(Method::PUT, &path, Some(json!({"name": "m", "scope": "global"}))).await.expect(200);
    assert_eq!((&changed["name"], &changed["scope"]), (&json!("m"), &json!("global")));
    assert_eq!(changed.get("workspace_id"), None);
    let grants = format!("{path}/plugins");
    assert_eq!(host.get(&grants).await.expect(200), json!({"plugins": []}));
    let absent = host.request(Method::PUT, &format!("{grants}/absent"), None).await.expect(404);
    assert_eq!(absent["code"], "plugin_not_found");
    for path in [&path, &format!("/api/v1/secrets/{global}")] {
        host.request(Method::DELETE, path, None).await.expect(204);
        let gone = host.request(Method::DELETE, path, None).await.expect(404);
        assert_eq!(gone["code"], "secret_not_found");
    }
    assert_eq!(host.get("/api/v1/secrets/plugin:demo:secret:k").await.expect(404)["code"], "secret_not_found");
    host.post("/api/v1/secrets", of(workspace)).await.expect(201);
    let confirmed = Some(json!({"confirm_name": "w"}));
    host.request(Method::DELETE, &format!("/api/v1/workspaces/{workspace}"), confirmed).await.expect(200);
    assert_eq!(host.get("/api/v1/secrets").await.expect(200), json!([]), "a workspace takes its secrets along");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_kept_is_refused_without_its_value() {
    let host = Host::start_with(Settings::toml("[limits]\nsecret_value_bytes = 30\nshared_secrets = 1\n")).await;
    let long = format!("{MARKER}{MARKER}");
    for (body, status, code) in [
        (json!({"value": MARKER}), 400, "invalid_secret"),
        (json!({"name": "a\nb", "value": MARKER}), 400, "invalid_secret"),
        (json!({"name": "n", "value": MARKER, "scope": "user"}), 400, "invalid_secret"),
        (json!({"name": "n", "value": MARKER, "scope": "workspace"}), 400, "invalid_secret"),
        (json!({"name": "n", "value": long}), 413, "secret_too_large"),
        (json!({"name": "n", "value": [MARKER]}), 400, "invalid_payload"),
        (json!({"name": "n", "vlaue": MARKER}), 400, "invalid_payload"),
        (json!(MARKER), 400, "invalid_payload"),
    ] {
        let refused = host.post("/api/v1/secrets", body).await.expect(status);
        assert_eq!(refused["code"], code, "{refused}");
        assert!(!refused.to_string().contains(MARKER), "{refused}");
    }
    let query = host.get("/api/v1/secrets?include_global=perhaps").await.expect(400);
    assert_eq!(query["code"], "invalid_query");
    keep(&host, "n", MARKER).await;
    let full = host.post("/api/v1/secrets", json!({"name": "o", "value": MARKER})).await.expect(409);
    assert_eq!(full["code"], "too_many_secrets");
    let key = host.post("/api/v1/vault/rotate", json!({"key": MARKER})).await.expect(400);
    assert!(key["code"] == "invalid_key" && !key.to_string().contains(MARKER), "{key}");
    assert!(!host.log().contains(MARKER));
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match entry.file_type().expect("a file type") {
            kind if kind.is_dir() => found.extend(files(&path)),
            kind if kind.is_file() => {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()))
            }
            _ => {}
        }
    }
    found
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

// Field case 57.
on_both!(a_secret_is_in_no_file_no_log_and_no_answer, |guest| {
    let mut host = Host::start().await;
    host.install(&package(guest, "demo", "1.0.0")).await;
    let id = keep(&host, "marker", MARKER).await;
    share(&host, &id, "demo").await;
    let answers = responses(&host, "demo", json!([set("k", MARKER), get("k"), reveal(&id)])).await;
    assert_eq!(answers, [json!({}), found(MARKER), json!({"value": MARKER})]);
    host.post("/api/v1/vault/rotate", json!({})).await.expect(200);
    host.request(Method::PUT, &format!("/api/v1/secrets/{id}"), Some(json!({"value": MARKER}))).await.expect(200);
    let key = key_file(&host).trim().to_owned();
    for path in
        ["/api/v1/secrets", &format!("/api/v1/secrets/{id}"), "/api/v1/vault", "/api/plugins", "/api/plugins/demo/logs"]
    {
        let shown = host.get(path).await.expect(200).to_string();
        assert!(!shown.contains(MARKER) && !shown.contains(&key), "{path}: {shown}");
    }
    assert_eq!(host.stop().await, Some(0));
    let hex: String = MARKER.bytes().map(|byte| format!("{byte:02x}")).collect();
    let forms = [MARKER.as_bytes().to_vec(), hex.into_bytes(), STANDARD.encode(MARKER).into_bytes()];
    for (path, content) in files(host.home()) {
        assert!(forms.iter().all(|form| !contains(&content, form)), "{path} holds the secret");
        let of_the_key = path.ends_with("/vault.key");
        assert_eq!(contains(&content, key.as_bytes()), of_the_key, "{path} holds the vault's key");
    }
});

#[tokio::test(flavor = "multi_thread")]
async fn a_host_without_its_vaults_key_does_not_start_and_touches_nothing() {
    let mut host = Host::start().await;
    host.install(&package(Guest::Rust, "demo", "1.0.0")).await;
    responses(&host, "demo", json!([set("k", "kept")])).await;
    assert_eq!(host.stop().await, Some(0));
    let path = host.home().join("vault.key");
    let key = std::fs::read(&path).expect("the vault's key");
    // SQLite folds its log into its file whenever it is closed; that no row changes is shown by the vault's own tests.
    let state = |host: &Host| -> BTreeMap<String, Vec<u8>> {
        let all = files(host.home()).into_iter();
        let own = ["/test-host.log", "/run/lock"];
        all.filter(|(path, _)| !own.iter().any(|end| path.ends_with(end)) && !path.contains("/kandev.db")).collect()
    };
    let assert_same = |before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>| {
        let changed = |(path, bytes): &(&String, &Vec<u8>)| before.get(*path) != Some(*bytes);
        let changed: Vec<_> = after.iter().filter(changed).map(|(path, _)| path).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "a refused start changed {changed:?}");
    };

    std::fs::remove_file(&path).expect("the key is removed");
    // The first refused start writes what every start writes before it looks at the vault.
    for _ in 0..2 {
        assert!(!host.spawn_or_end().await, "it starts without its key");
        assert!(!path.exists(), "a key was made");
    }
    let before = state(&host);
    assert!(!host.spawn_or_end().await, "it starts without its key");
    assert_same(&before, &state(&host));
    assert!(host.log().contains("the vault holds 1 entries that are sealed with the key "), "the reason is told");

    host.set_env(vec![("KANDEV_VAULT_KEY".to_owned(), "1".repeat(64))]);
    assert!(!host.spawn_or_end().await, "it starts with a wrong key");
    assert!(host.log().contains("and KANDEV_VAULT_KEY has "), "the reason is told");
    assert_same(&before, &state(&host));

    host.set_env(vec![("KANDEV_VAULT_KEY".to_owned(), String::from_utf8(key).expect("text"))]);
    host.spawn().await;
    host.status("demo", "active").await;
    assert_eq!(responses(&host, "demo", json!([get("k")])).await, [found("kept")]);
    let given = host.post("/api/v1/vault/rotate", json!({})).await.expect(409);
    assert_eq!(given["code"], "key_from_environment");
    assert!(!host.log().contains(&"1".repeat(64)));
}
