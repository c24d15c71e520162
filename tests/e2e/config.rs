//! A plugin's settings from the operator's side and from the plugin's (contract/rest.md §4; field cases 54, 55, 57, 59
//! and 85).

use std::{os::unix::fs::PermissionsExt as _, sync::Arc, time::Duration};

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::{
    on_both, on_databases,
    support::{Guest, Host, Package, Settings, eventually_some, host::TOKEN},
};

const ID: &str = "demo";

const MASK: &str = "********";

const SCHEMA: &str = r#"
config_schema:
  type: object
  required: [url]
  properties:
    zeta: {type: string}
    url: {type: string, pattern: "^https?://"}
    token: {type: string, secret: true}
    "10": {type: integer, minimum: 1}
    "2": {type: boolean}
    mode: {type: string, enum: [fast, slow]}
    proxy: {type: object, additionalProperties: false, properties: {host: {type: string}}}
"#;

pub fn package(guest: Guest, version: &str) -> Package {
    Package::of(guest, ID, version).manifest(|text| text + SCHEMA)
}

async fn installed(guest: Guest) -> Host {
    let host = Host::start().await;
    host.install(&package(guest, "1.0.0")).await;
    host
}

async fn patch(host: &Host, config: Value) -> (u16, Value) {
    let answer = host.request(Method::PATCH, &format!("/api/plugins/{ID}"), Some(json!({ "config": config }))).await;
    (answer.status, answer.body)
}

async fn save(host: &Host, config: Value) {
    assert_eq!(patch(host, config.clone()).await, (200, json!({"updated": true})), "{config}");
}

async fn shown(host: &Host) -> Value {
    host.get(&format!("/api/plugins/{ID}/config")).await.expect(200)["config"].take()
}

/// What the plugin gets from its host.
async fn seen(host: &Host) -> Value {
    let result = eventually_some("the plugin has found its host", || async {
        let result = host.host_calls(ID, json!([{"rpc": "GetConfig", "request": {}}])).await.remove(0);
        (result["code"] != "Unavailable").then_some(result)
    })
    .await;
    assert_eq!(result["ok"], true, "{result}");
    result["response"]["config"].clone()
}

fn file(host: &Host) -> String {
    std::fs::read_to_string(host.plugins().join(format!("{ID}.config.yml"))).unwrap_or_default()
}

fn starts(host: &Host) -> usize {
    host.recorded(ID, "starts.jsonl").len()
}

on_both!(a_saved_config_is_masked_for_the_operator_and_clear_for_the_restarted_plugin, |guest| {
    let host = installed(guest).await;
    assert_eq!((shown(&host).await, starts(&host)), (json!({}), 1));
    save(&host, json!({"url": "https://a.test", "token": "s3cret", "10": 3, "extra": [1]})).await;
    assert_eq!(shown(&host).await, json!({"url": "https://a.test", "token": MASK, "10": 3, "extra": [1]}));
    assert_eq!(seen(&host).await, json!({"url": "https://a.test", "token": "s3cret", "10": 3, "extra": [1]}));
    assert_eq!((starts(&host), host.plugin(ID).await["status"].clone()), (2, json!("active")));
    let text = file(&host);
    assert!(text.contains("vault:plugin:demo:config:token") && !text.contains("s3cret"), "{text}");
    let mode = std::fs::metadata(host.plugins().join("demo.config.yml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Field case 55: what was shown is sent back.
    let back = shown(&host).await;
    save(&host, back).await;
    assert_eq!(seen(&host).await["token"], "s3cret");
});

#[tokio::test(flavor = "multi_thread")]
async fn omitted_null_empty_and_masked_secrets_do_what_the_contract_says() {
    let host = installed(Guest::Rust).await;
    let with = |token: Value| json!({"url": "http://a", "token": token});
    for (sent, shown_after, plugin_sees) in [
        (with(json!(MASK)), with(json!(MASK)), with(json!("first"))),
        (with(json!("")), with(json!("")), with(json!(""))),
        (with(json!(MASK)), with(json!("")), with(json!(""))),
        (with(json!(null)), with(json!(null)), with(json!(null))),
        (json!({"url": "http://a"}), json!({"url": "http://a"}), json!({"url": "http://a"})),
        (with(json!(MASK)), json!({"url": "http://a"}), json!({"url": "http://a"})),
        (
            with(json!("vault:plugin:other:config:token")),
            with(json!(MASK)),
            with(json!("vault:plugin:other:config:token")),
        ),
        (
            json!({"url": "http://a", "zeta": MASK}),
            json!({"url": "http://a", "zeta": MASK}),
            json!({"url": "http://a", "zeta": MASK}),
        ),
    ] {
        if plugin_sees["token"] == "first" {
            save(&host, with(json!("first"))).await;
        }
        save(&host, sent.clone()).await;
        assert_eq!((shown(&host).await, seen(&host).await), (shown_after, plugin_sees), "{sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_breaks_rules_changes_nothing_and_every_violation_is_told() {
    let host = installed(Guest::Rust).await;
    save(&host, json!({"url": "http://a", "token": "kept"})).await;
    let before = file(&host);
    let refused = async |config: Value| {
        let (status, body) = patch(&host, config).await;
        assert_eq!((status, &body["code"]), (400, &json!("config_invalid")), "{body}");
        body
    };
    let body = refused(json!({"token": 5, "10": 0, "2": "x", "mode": "other", "proxy": {"host": 1, "port": 2}})).await;
    assert_eq!(body["error"], "plugin config invalid: missing required field \"url\"");
    let told: Vec<_> = body["violations"].as_array().unwrap().iter().map(|v| v["path"].as_str().unwrap()).collect();
    assert_eq!(told[..4], ["/url", "/token", "/2", "/mode"], "{body}");
    assert!(["/10", "/proxy", "/proxy/host"].iter().all(|path| told.contains(path)), "{body}");
    let body = refused(json!({"url": "ftp://a", "token": "new-marker"})).await;
    assert!(body["error"].as_str().unwrap().starts_with("plugin config invalid: /url: "), "{body}");
    assert!(!body.to_string().contains("new-marker"));
    // What is no config at all.
    let url = format!("{}/api/plugins/{ID}", host.url());
    for text in ["", "[]", "{", "null", r#"{"config": []}"#, r#"{"config": "x"}"#, r#"{"confg": {}}"#] {
        let request = host.client().patch(&url).bearer_auth(TOKEN).body(text);
        let body = crate::support::host::answer(request).await.expect(400);
        assert_eq!(body, json!({"error": "invalid payload", "code": "invalid_payload"}), "{text}");
    }
    let large = json!({"url": "http://a", "zeta": "x".repeat(70_000)});
    assert_eq!(patch(&host, large).await.0, 413);
    assert_eq!((file(&host), starts(&host)), (before, 2));
    for (method, path) in [(Method::GET, "/api/plugins/none/config"), (Method::PATCH, "/api/plugins/none")] {
        let answer = host.request(method.clone(), path, Some(json!({}))).await;
        assert_eq!((answer.status, answer.body["error"].as_str()), (404, Some("plugin not found")));
        assert_eq!(host.anonymous(method.clone(), path).await.status, 401);
        assert_eq!(host.with_token("another", method, path).await.status, 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_changes_with_every_save_and_guards_against_lost_updates() {
    let mut host = installed(Guest::Rust).await;
    host.command(ID, "disable").await.expect(200);
    let tag = async |host: &Host| {
        let url = format!("{}/api/plugins/{ID}/config", host.url());
        let answer = host.client().get(url).bearer_auth(TOKEN).send().await.unwrap();
        answer.headers()[header::ETAG].to_str().unwrap().to_owned()
    };
    let save_if = async |host: &Host, expected: &str, config: Value| {
        let request = host.client().patch(format!("{}/api/plugins/{ID}", host.url())).bearer_auth(TOKEN);
        let request = request.header(header::IF_MATCH, expected).json(&json!({ "config": config }));
        crate::support::host::answer(request).await
    };
    let mut tags = vec![tag(&host).await];
    for token in ["one", "two", "two"] {
        let last = tags.last().unwrap().clone();
        save_if(&host, &last, json!({"url": "http://a", "token": token})).await.expect(200);
        tags.push(tag(&host).await);
    }
    let mut unique = tags.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), tags.len(), "also when only a secret is written");
    for expected in [&tags[0], &format!("W/{}", tags[3])] {
        let answer = save_if(&host, expected, json!({"url": "http://b"})).await;
        assert_eq!((answer.status, &answer.body["code"]), (412, &json!("config_changed")));
    }
    assert_eq!(save_if(&host, "abc", json!({})).await.status, 400);
    assert_eq!(shown(&host).await["url"], "http://a");
    let both = format!("{}, {}", tags[0], tags[3]);
    save_if(&host, &both, json!({"url": "http://c"})).await.expect(200);
    save_if(&host, "*", json!({"url": "http://d"})).await.expect(200);
    let present = tag(&host).await;
    let url = format!("{}/api/plugins/{ID}/config", host.url());
    for (known, status) in [(present.as_str(), 304), (tags[0].as_str(), 200), ("*", 304)] {
        let request = host.client().get(&url).bearer_auth(TOKEN).header(header::IF_NONE_MATCH, known);
        let answer = request.send().await.unwrap();
        let told = answer.headers()[header::ETAG].to_str().unwrap();
        assert_eq!((answer.status().as_u16(), told), (status, present.as_str()));
    }
    host.kill();
    host.spawn().await;
    assert_eq!(tag(&host).await, present, "a restart of the host is no change");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_running_plugin_is_restarted_and_a_failed_restart_keeps_the_config() {
    let host = installed(Guest::Rust).await;
    host.command(ID, "disable").await.expect(200);
    save(&host, json!({"url": "http://off"})).await;
    assert_eq!((starts(&host), host.plugin(ID).await["status"].clone()), (1, json!("disabled")));
    host.command(ID, "enable").await.expect(200);
    assert_eq!(seen(&host).await, json!({"url": "http://off"}));
    host.set_switches(ID, &json!({"crash_before_handshake": 7}));
    let (status, body) = patch(&host, json!({"url": "http://on"})).await;
    let text = body["error"].as_str().unwrap_or_default();
    assert!(text.starts_with("plugins: config saved but restart of \"demo\" failed: "), "{body}");
    assert_eq!((status, &body["code"]), (500, &json!("restart_failed")));
    let record = host.plugin(ID).await;
    assert_eq!((&record["status"], &record["restarting"]), (&json!("error"), &json!(false)));
    assert_eq!(shown(&host).await, json!({"url": "http://on"}));
    let before = starts(&host);
    save(&host, json!({"url": "http://error"})).await;
    assert_eq!((starts(&host), host.plugin(ID).await["status"].clone()), (before, json!("error")));
    host.set_switches(ID, &json!({}));
    host.command(ID, "enable").await.expect(200);
    assert_eq!(seen(&host).await, json!({"url": "http://error"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_config_survives_upgrade_and_host_restart_in_the_clients_order_and_goes_with_the_plugin() {
    let mut host = installed(Guest::Rust).await;
    let schema: Vec<String> =
        host.plugin(ID).await["config_schema"]["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(schema, ["zeta", "url", "token", "10", "2", "mode", "proxy"], "field case 59");
    let sent = r#"{"zeta":"z","2":true,"url":"http://a","token":"t","10":2}"#;
    save(&host, serde_json::from_str(sent).unwrap()).await;
    let expected = sent.replace("\"t\"", &format!("\"{MASK}\""));
    assert_eq!(shown(&host).await.to_string(), expected);
    host.install(&package(Guest::Rust, "1.1.0")).await;
    host.kill();
    host.spawn().await;
    host.status(ID, "active").await;
    assert_eq!(shown(&host).await.to_string(), expected);
    assert_eq!(seen(&host).await["token"], "t");
    host.uninstall(ID).await.expect(200);
    assert_eq!(file(&host), "");
    host.install(&package(Guest::Rust, "1.0.0")).await;
    assert_eq!((shown(&host).await, seen(&host).await), (json!({}), json!({})));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_cannot_be_used_is_a_warning_and_one_that_reaches_out_is_refused() {
    let host = Host::start().await;
    let with = |schema: &str| {
        Package::of(Guest::Rust, ID, "1.0.0").manifest(|text| format!("{text}\nconfig_schema: {schema}\n"))
    };
    let outside = with(r#"{properties: {a: {$ref: "https://example.test/a.json"}}}"#);
    let body = host.upload(outside.archive().await).await.expect(400);
    assert!(
        body["error"].as_str().unwrap().contains("$ref \"https://example.test/a.json\" leads out of the document"),
        "{body}"
    );
    let broken = with(
        r#"{$schema: "http://json-schema.org/draft-07/schema#", required: [r], properties: {a: {pattern: "(?=x)"}}}"#,
    );
    let body = host.install(&broken).await;
    let warnings = body["warnings"].to_string();
    assert!(warnings.contains("config_schema is checked in part only"), "{warnings}");
    assert_eq!(patch(&host, json!({"a": "y"})).await.0, 400, "the fixed rules hold");
    save(&host, json!({"r": 1, "a": "y"})).await;
}

/// Sends a PATCH whose body is this text.
async fn patch_text(host: &Host, body: &str) -> (u16, Value) {
    let request = host.client().patch(format!("{}/api/plugins/{ID}", host.url())).bearer_auth(TOKEN);
    let answer = crate::support::host::answer(request.header("content-type", "application/json").body(body.to_owned()));
    let answer = answer.await;
    (answer.status, answer.body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_would_be_changed_is_refused_and_one_that_is_kept_arrives_as_it_is() {
    let host = installed(Guest::Rust).await;
    for number in ["123456789012345678901234567890", "9007199254740993", "3.14159265358979323846"] {
        let (status, body) =
            patch_text(&host, &format!(r#"{{"config":{{"url":"http://a","deep":[{number}]}}}}"#)).await;
        assert_eq!((status, &body["code"]), (400, &json!("config_invalid")), "{body}");
        assert_eq!(body["violations"][0]["path"], "/deep/0", "{body}");
        assert!(!body.to_string().contains(number), "{body}");
    }
    let (status, body) = patch_text(&host, r#"{"config":{"url":"http://a","n":[9007199254740992,1.5,-0.25]}}"#).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(seen(&host).await["n"].to_string(), "[9007199254740992,1.5,-0.25]");
    let (status, body) = patch_text(&host, r#"{"config":null}"#).await;
    assert_eq!((status, body), (400, json!({"error": "invalid payload", "code": "invalid_payload"})));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_told_and_a_whole_new_config_takes_its_place() {
    let host = installed(Guest::Rust).await;
    save(&host, json!({"url": "http://a", "token": "old"})).await;
    let path = host.plugins().join(format!("{ID}.config.yml"));
    for damage in [&b"- hunter2: [\n"[..], b"\xff\xfe", &vec![b'#'; 3 * 1024 * 1024]] {
        std::fs::write(&path, damage).expect("the file is damaged");
        let told = host.get(&format!("/api/plugins/{ID}/config")).await.expect(409);
        let text = "the config file demo.config.yml is damaged: correct it in the plugins folder, or send a whole new config \
                    by PATCH";
        assert_eq!(told, json!({"error": text, "code": "config_damaged"}));
        let (status, body) = patch(&host, json!({"url": "http://b", "token": MASK})).await;
        let text = "the config file demo.config.yml is damaged: nothing can be kept of it; send new values for \"token\", \
                    or leave them out";
        assert_eq!((status, body), (409, json!({"error": text, "code": "config_damaged"})));
        assert_eq!(std::fs::read(&path).unwrap(), damage, "a refused save changes nothing");
        save(&host, json!({"url": "http://b", "token": "new"})).await;
        assert_eq!(seen(&host).await, json!({"url": "http://b", "token": "new"}));
        std::fs::write(&path, damage).expect("the file is damaged");
        save(&host, json!({"url": "http://c"})).await;
        assert_eq!(seen(&host).await, json!({"url": "http://c"}));
        assert_eq!(host.get("/api/v1/vault").await.expect(200)["secrets"]["config"], 0, "no secret is left behind");
    }
}

/// A plugin that takes long to start, and fails fast when it does not.
const SLOW: &str = "[timing]\nrestart_delays = [\"100ms\", \"1h\"]\ndrain_grace = \"300ms\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_during_a_start_starts_the_plugin_again_and_whoever_waits_for_the_start_gets_it() {
    let host = Arc::new(Host::start_with(Settings::toml(SLOW)).await);
    host.install(&package(Guest::Rust, "1.0.0")).await;
    host.command(ID, "disable").await.expect(200);
    host.set_switches(ID, &json!({"slow_start_ms": 1500}));
    let enabling = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.command(ID, "enable").await }
    });
    crate::support::eventually("the start is under way", || async { starts(&host) == 2 }).await;
    save(&host, json!({"url": "http://new"})).await;
    enabling.await.expect("no panic").expect(200);
    assert_eq!((starts(&host), host.plugin(ID).await["status"].clone()), (3, json!("active")));
    assert_eq!(seen(&host).await, json!({"url": "http://new"}));

    // The same during an automatic restart.
    let pid = host.plugin_pid(ID).expect("a pid");
    crate::support::kill(pid, crate::support::Signal::KILL);
    crate::support::eventually("the restart is under way", || async { starts(&host) == 4 }).await;
    assert_eq!(host.plugin(ID).await["status"], "error");
    save(&host, json!({"url": "http://newer"})).await;
    assert_eq!((starts(&host), host.plugin(ID).await["status"].clone()), (5, json!("active")));
    assert_eq!(seen(&host).await, json!({"url": "http://newer"}));

    // One that waits for its restart is left to it.
    host.set_switches(ID, &json!({"crash_before_handshake": 7}));
    crate::support::kill(host.plugin_pid(ID).expect("a pid"), crate::support::Signal::KILL);
    crate::support::eventually("the second restart is awaited", || async { starts(&host) == 6 }).await;
    host.status(ID, "error").await;
    save(&host, json!({"url": "http://newest"})).await;
    let record = host.plugin(ID).await;
    assert_eq!((&record["status"], &record["restarting"]), (&json!("error"), &json!(true)), "{record}");
}

on_both!(saves_of_a_running_plugin_follow_each_other_and_the_last_one_is_what_it_runs_with, |guest| {
    let host = Arc::new(installed(guest).await);
    let mut saving = tokio::task::JoinSet::new();
    for n in 0..6 {
        let host = Arc::clone(&host);
        saving.spawn(async move {
            save(&host, json!({"url": "http://a", "zeta": n.to_string(), "token": n.to_string()})).await
        });
    }
    while let Some(saved) = saving.join_next().await {
        saved.expect("every save is done");
    }
    let config = seen(&host).await;
    assert_eq!((&config["zeta"], starts(&host)), (&config["token"], 7), "file and vault are of one save");
    assert_eq!(shown(&host).await["zeta"], config["zeta"]);
});

const BUSY: &str = "[timing]\nconfig_wait = \"60s\"\n";

on_databases!(parallel_savers_and_state_writers_meet_no_server_error, BUSY, |settings| {
    let host = Arc::new(Host::start_with(settings).await);
    host.install(&package(Guest::Rust, "1.0.0")).await;
    host.command(ID, "disable").await.expect(200);
    host.install(&Package::of(Guest::Rust, "writer", "1.0.0")).await;
    host.host_calls("writer", json!([{"rpc": "GetConfig", "request": {}}])).await;
    let until = tokio::time::Instant::now() + Duration::from_secs(4);
    let (mut savers, mut busy) = (tokio::task::JoinSet::new(), tokio::task::JoinSet::new());
    for n in 0..25 {
        let host = Arc::clone(&host);
        savers.spawn(async move {
            let mut saved = Vec::new();
            while tokio::time::Instant::now() < until {
                let (text, begin) = (format!("{n}-{}", saved.len()), tokio::time::Instant::now());
                save(&host, json!({"url": "http://a", "zeta": text, "token": text})).await;
                saved.push((text, begin, tokio::time::Instant::now()));
            }
            saved
        });
    }
    for n in 0..25 {
        let host = Arc::clone(&host);
        busy.spawn(async move {
            for round in 0.. {
                let (set, get) = (
                    json!({"scope": "s", "scope_id": "", "key": n.to_string(), "value": {"v": round}}),
                    json!({"scope": "s", "scope_id": "", "key": n.to_string()}),
                );
                let calls = json!([{"rpc": "SetState", "request": set}, {"rpc": "GetState", "request": get}]);
                let results = host.host_calls("writer", calls).await;
                assert_eq!(results[1]["response"]["value"], json!({"v": round}), "{results:?}");
                if tokio::time::Instant::now() >= until {
                    return;
                }
            }
        });
    }
    while let Some(done) = busy.join_next().await {
        done.expect("no call fails");
    }
    let saved = savers.join_all().await.concat();
    host.command(ID, "enable").await.expect(200);
    let seen = seen(&host).await;
    let (_, _, end) = saved.iter().find(|(text, ..)| seen["zeta"] == *text).expect("somebody saved it");
    assert_eq!(seen["token"], seen["zeta"], "file and vault are of one save");
    let later: Vec<_> = saved.iter().filter(|(_, begin, _)| begin > end).collect();
    assert!(later.is_empty(), "{seen} was kept, and later saves were lost: {later:?}");
});

/// Nobody else sees or changes anything, with another token or without one.
#[tokio::test(flavor = "multi_thread")]
async fn settings_are_the_operators_alone() {
    let host = Host::start_with(Settings::default()).await;
    for (method, path) in [(Method::GET, "/api/plugins/demo/config"), (Method::PATCH, "/api/plugins/demo")] {
        assert_eq!(host.anonymous(method, path).await.status, 401);
    }
}
