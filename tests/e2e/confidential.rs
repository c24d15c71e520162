//! One secret in every place that secrets have, used by a plugin that tells everybody: it must be nowhere but encrypted
//! in the vault, and in what the plugin itself gets and gives (the issue's "marker secret"; field case 57).

use std::{path::Path, process::Command};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_databases,
    support::{Guest, Host, Package, eventually, eventually_some, host::TOKEN},
    traces::Collector,
};

const ID: &str = "demo";

/// No other text of any test. Searched for is its beginning, which a cut might leave.
const MARKER: &str = "m4rk3r-0f-everything/\"4711\"";
const BEGINNING: usize = 10;

/// Longest line of a plugin that is kept, in bytes (docs/logging.md).
const LINE_BYTES: usize = 16 * 1024;

const SCHEMA: &str = r#"
config_schema:
  required: [url]
  properties:
    url: {type: string, pattern: "^https?://"}
    token: {type: string, secret: true}
    count: {type: integer}
"#;

/// What is searched for: as text, as JSON and addresses write it, and in the two ways in which bytes are often written.
fn forms() -> Vec<Vec<u8>> {
    let begin = &MARKER[..BEGINNING];
    let hex: String = begin.bytes().map(|byte| format!("{byte:02x}")).collect();
    // Three bytes are four digits, wherever they stand: the parts that do not depend on what is before.
    let base64 = STANDARD.encode(&begin[..9]);
    vec![begin.as_bytes().to_vec(), hex.to_uppercase().into_bytes(), hex.into_bytes(), base64.into_bytes()]
}

#[track_caller]
fn assert_absent(place: &str, bytes: &[u8]) {
    for form in forms() {
        let found = bytes.windows(form.len()).position(|window| window == form);
        let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(200)..bytes.len().min(at + 100)]));
        assert_eq!(around, None, "{place} holds the secret");
    }
}

/// Every file of the home, but what the plugin keeps for itself.
fn assert_no_file_holds_it(host: &Host) {
    let mut folders = vec![host.home().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && path != host.data(ID) {
                folders.push(path);
            } else if path.is_file() {
                files += 1;
                assert_absent(&path.display().to_string(), &std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    assert!(files > 5, "the home was looked at");
}

async fn calls(host: &Host, calls: Value) -> Vec<Value> {
    let results = eventually_some("the plugin has found its host", || async {
        let results = host.host_calls(ID, calls.clone()).await;
        (results[0]["code"] != "Unavailable").then_some(results)
    })
    .await;
    results.into_iter().map(|result| result["response"].clone()).collect()
}

async fn patch(host: &Host, config: Value) -> (u16, Value) {
    let answer = host.request(Method::PATCH, &format!("/api/plugins/{ID}"), Some(json!({ "config": config }))).await;
    (answer.status, answer.body)
}

/// Calls a public webhook with a text; what the plugin answers is its own.
async fn webhook(host: &Host, key: &str, text: &str, more: &str) -> (u16, String) {
    let mut url = reqwest::Url::parse(&format!("{}/api/plugins/{ID}/webhooks/{key}", host.url())).expect("an address");
    url.query_pairs_mut().append_pair("text", text).append_pair("stream", more);
    let answer = host.client().get(url).send().await.expect("an answer");
    (answer.status().as_u16(), answer.text().await.expect("a text"))
}

/// Puts the secret into config, vault and shared secrets, and has the plugin get it back from each.
async fn give_and_get(host: &Host) -> String {
    assert_eq!(patch(host, json!({"url": "http://a", "token": MARKER})).await.0, 200);
    let item = host.post("/api/v1/secrets", json!({"name": "n", "value": MARKER})).await.expect(201);
    let id = item["id"].as_str().expect("an id").to_owned();
    host.request(Method::PUT, &format!("/api/v1/secrets/{id}/plugins/{ID}"), None).await.expect(200);
    let requests = json!([
        {"rpc": "GetConfig", "request": {}},
        {"rpc": "SetSecret", "request": {"key": "k", "value": MARKER}},
        {"rpc": "GetSecret", "request": {"key": "k"}},
        {"rpc": "RevealSecret", "request": {"ref": id}},
    ]);
    let got = calls(host, requests).await;
    assert_eq!(
        (&got[0]["config"]["token"], &got[2]["value"], &got[3]["value"]),
        (&json!(MARKER), &json!(MARKER), &json!(MARKER)),
        "the plugin has it"
    );
    id
}

/// The plugin prints the secret in every way, also across the bound of a line, and fails with it.
async fn tell_everybody(host: &Host) {
    let quoted = json!({"@level": "warn", "@message": "cannot log in", "with": MARKER}).to_string();
    let cut = format!("{}{MARKER}", "x".repeat(LINE_BYTES - BEGINNING - 5));
    for stream in ["stdout", "stderr"] {
        for text in [&format!("the key is {MARKER}!"), &quoted, &cut, &format!("last of {stream}")] {
            assert_eq!(webhook(host, "print", text, stream).await.0, 200);
        }
    }
    let (status, body) = webhook(host, "error", &format!("no login with {MARKER}"), "").await;
    assert_eq!(status, 503);
    assert_absent("the answer to a failed webhook", body.as_bytes());
    eventually("the lines are in the log", || async {
        let lines = host.get(&format!("/api/plugins/{ID}/logs?limit=1000")).await.expect(200).to_string();
        ["last of stdout", "last of stderr", "the key is [REDACTED]!"].iter().all(|text| lines.contains(text))
    })
    .await;
}

/// Requests that fail with the secret in them, or because of it.
async fn provoke_failures(host: &Host, shared: &str) {
    let mut answers = vec![
        patch(host, json!({"url": MARKER, "token": MARKER})).await,
        patch(host, json!({"token": MARKER, "count": MARKER})).await,
        patch(host, json!({"url": "http://a", "token": [MARKER]})).await,
    ];
    for (path, body) in [
        ("/api/v1/secrets", json!({"name": "n", "value": [MARKER]})),
        ("/api/v1/secrets", json!({"nmae": "n", "value": MARKER})),
        ("/api/v1/vault/rotate", json!({"key": MARKER})),
    ] {
        let answer = host.post(path, body).await;
        answers.push((answer.status, answer.body));
    }
    assert!(answers.iter().all(|(status, _)| *status == 400), "{answers:?}");
    host.set_switches(ID, &json!({"panic_before_handshake": format!("cannot log in with {MARKER} today")}));
    let failed = patch(host, json!({"url": "http://b", "token": "********"})).await;
    let text = failed.1["error"].as_str().expect("a text").to_owned();
    assert!(failed.0 == 500 && text.contains("cannot log in with [REDACTED] today"), "{failed:?}");
    answers.push(failed);
    answers.push((0, host.command(ID, "enable").await.body));
    host.set_switches(ID, &json!({}));
    eventually("the incident is in the inbox", || async {
        host.get("/api/v1/inbox").await.expect(200).to_string().contains("[REDACTED]")
    })
    .await;
    for path in [
        "/health".to_owned(),
        "/ready".to_owned(),
        "/metrics".to_owned(),
        "/api/plugins".to_owned(),
        format!("/api/plugins/{ID}"),
        format!("/api/plugins/{ID}/config"),
        format!("/api/plugins/{ID}/logs?limit=10000"),
        "/api/v1/secrets".to_owned(),
        format!("/api/v1/secrets/{shared}"),
        format!("/api/v1/secrets/{shared}/plugins"),
        "/api/v1/vault".to_owned(),
        "/api/v1/trust/keys".to_owned(),
        "/api/v1/inbox?status=all".to_owned(),
    ] {
        let answer = host.client().get(format!("{}{path}", host.url())).bearer_auth(TOKEN).send().await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
        assert_absent(&path, &answer.bytes().await.expect("a body"));
    }
    for (status, body) in answers {
        assert_absent(&format!("an answer with status {status}"), body.to_string().as_bytes());
    }
}

/// Every row of a PostgreSQL database as text.
fn dump(address: &str) -> Vec<u8> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/ensure-postgres.sh");
    let folder = Command::new(script).output().expect("the script runs").stdout;
    let program = Path::new(String::from_utf8_lossy(&folder).trim()).join("pg_dump");
    let output = Command::new(program).args(["--data-only", "--inserts"]).arg(address).output().expect("pg_dump runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

on_databases!(a_secret_that_a_plugin_tells_everybody_is_nowhere, "", |settings| {
    let collector = Collector::start().await;
    let mut settings = settings;
    settings.toml = format!(
        "[telemetry]\notlp_endpoint = \"{}\"\n[timing]\ntelemetry_interval = \"100ms\"\nrestart_delays = [\"1h\"]\n",
        collector.url
    );
    let database = settings.env.iter().find(|(name, _)| name == "DATABASE_URL").map(|(_, address)| address.clone());
    let mut host = Host::start_with(settings).await;
    let package = Package::of(Guest::Rust, ID, "1.0.0");
    host.install(
        &package.manifest(|text| text.replace("  state: true\n", "  state: true\n  secrets: true\n") + SCHEMA),
    )
    .await;
    let shared = give_and_get(&host).await;
    tell_everybody(&host).await;
    provoke_failures(&host, &shared).await;
    host.command(ID, "enable").await.expect(200);
    assert_eq!(calls(&host, json!([{"rpc": "GetConfig", "request": {}}])).await[0]["config"]["token"], MARKER);
    // While the database has its log beside it, and again when everything is written.
    assert_no_file_holds_it(&host);
    if let Some(address) = database {
        let rows = dump(&address);
        assert!(rows.windows(11).any(|part| part == b"vault_entry"), "the dump has the vault");
        assert_absent("the database", &rows);
    }
    assert_eq!(host.stop().await, Some(0));
    assert_no_file_holds_it(&host);
    assert_absent("the exported spans", collector.text().as_bytes());
    assert!(collector.text().contains("host_call"), "spans were exported");
});
