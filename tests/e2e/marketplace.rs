//! The marketplace: sources, what they list, packages held against their digest, updates (contract/rest.md §9; field
//! case 44). Indexes and packages come from a server on the loopback address.

use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    on_databases,
    support::{
        FileServer, Guest, Host, OpensslKey, Package, Settings, eventually, eventually_some, files::File, has_openssl,
        host::Answer, package::hex,
    },
};

const MARKET: &str = "/api/plugins/marketplace";
const SOURCES: &str = "/api/plugins/marketplace/sources";

/// Indexes are fetched anew by a refresh only, and rounds of updates come after one.
const SETTINGS: &str = r#"
[install]
allow_private_addresses = true
[timing]
marketplace_timeout = "1s"
marketplace_cache = "1h"
marketplace_retry = "1h"
update_interval = "1h"
restart_delays = ["100ms", "200ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
[limits]
marketplace_index_bytes = 20000
"#;

fn sha256(archive: &[u8]) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(archive))
}

/// An index of these entries.
fn index(plugins: Value) -> File {
    let document = json!({"schema_version": 1, "generated_at": "2026-11-29T12:00:00Z",
        "source": {"name": "Acme", "url": "https://acme.test/"}, "plugins": plugins});
    File::Content(document.to_string().into_bytes())
}

fn entry(server: &FileServer, id: &str, version: &str, path: &str) -> Value {
    json!({"id": id, "name": format!("The {id}"), "version": version, "package_url": server.url(path)})
}

async fn add(host: &Host, name: &str, url: &str) -> String {
    let source = host.post(SOURCES, json!({"name": name, "url": url})).await.expect(201);
    source["id"].as_str().expect("an id").to_owned()
}

async fn market(host: &Host, query: &str) -> Value {
    host.get(&format!("{MARKET}{query}")).await.expect(200)
}

async fn refresh(host: &Host) {
    let answer = host.request(Method::POST, &format!("{MARKET}/refresh"), None).await;
    assert_eq!(answer.expect(200), json!({"refreshed": true}));
}

fn ids(market: &Value) -> Vec<&str> {
    market["plugins"].as_array().unwrap().iter().map(|plugin| plugin["id"].as_str().unwrap()).collect()
}

/// The items about newer versions, the newest first.
async fn updates(host: &Host) -> Vec<Value> {
    let items = host.get("/api/v1/inbox?status=all").await.expect(200);
    let items = items["items"].as_array().unwrap().iter();
    items.filter(|item| item["type"] == "plugin_update_available").cloned().collect()
}

async fn told(host: &Host, what: &str, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    eventually_some(what, || async {
        let items = updates(host).await;
        holds(&items).then_some(items)
    })
    .await
}

async fn auto_update(host: &Host, id: &str, word: Value) -> Answer {
    host.request(Method::PUT, &format!("/api/plugins/{id}/auto-update"), Some(json!({"auto_update": word}))).await
}

fn small(version: &str) -> Package {
    Package::of(Guest::Rust, "demo", version)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_at_a_private_address_is_listed_with_the_reason_that_its_install_gives() {
    let host = Host::start().await;
    let server = FileServer::start(&[]).await;
    server.put("/one", index(json!([entry(&server, "demo", "1.0.0", "/demo")])));
    add(&host, "One", &server.url("/one")).await;
    let listed = market(&host, "").await;
    let refused = host.post("/api/plugins/install", json!({"url": server.url("/demo")})).await.expect(400);
    assert_eq!(refused["code"], "address_refused");
    assert_eq!(listed["plugins"][0]["note"], refused["error"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sources_offer_is_searched_sorted_and_compared_and_bad_entries_spoil_nothing() {
    let host = Host::start_with(Settings::toml(SETTINGS)).await;
    let empty = json!({"plugins": [], "sources": []});
    assert_eq!(market(&host, "").await, empty, "field case 83");
    host.install(&small("1.0.0")).await;
    let server = FileServer::start(&[]).await;
    let with = |mut entry: Value, key: &str, value: Value| {
        entry[key] = value;
        entry
    };
    let mail = with(entry(&server, "mail", "2.0.0", "/mail"), "stars", json!(7));
    let demo = with(entry(&server, "demo", "1.1.0", "/demo"), "updated_at", json!("2026-11-01T00:00:00Z"));
    let bad = with(entry(&server, "bad", "1.0.0", "/bad"), "package_url", json!("http://a.test/p"));
    let wants_more = with(entry(&server, "later", "1.0.0", "/later"), "min_kandev_version", json!("99.0.0"));
    let wants_more = with(wants_more, "categories", json!(["connector"]));
    server.put("/one", index(json!([mail, bad, demo])));
    server.put("/two", index(json!([with(entry(&server, "mail", "9.0.0", "/x"), "stars", json!(99)), wants_more])));
    let one = add(&host, "One", &server.url("/one")).await;
    let two = add(&host, "", &server.url("/two")).await;

    let all = market(&host, "").await;
    assert_eq!(ids(&all), ["mail", "demo", "later"]);
    let expected = json!({"id": "mail", "name": "The mail", "description": "", "author": "", "categories": [],
        "icon_url": "", "repo_url": "", "version": "2.0.0", "min_kandev_version": "", "package_url": server.url("/mail"),
        "package_sha256": "", "stars": 7, "updated_at": "", "install_state": "available", "source_id": one,
        "source_name": "One"});
    assert_eq!(all["plugins"][0], expected);
    let state = (&all["plugins"][1]["install_state"], &all["plugins"][1]["installed_version"]);
    assert_eq!(state, (&json!("update_available"), &json!("1.0.0")));
    assert!(all["plugins"][2]["note"].as_str().unwrap().contains("requires kandev >= 99.0.0"), "{all}");
    let reason = "package_url: url must begin with https://; http:// is for this machine (127.0.0.1, ::1, localhost)";
    let expected = json!([
        {"id": one, "name": "One", "url": server.url("/one"), "enabled": true, "builtin": false, "healthy": true,
            "skipped": [{"entry": 1, "reason": reason}], "skipped_count": 1},
        {"id": two, "name": "127.0.0.1", "url": server.url("/two"), "enabled": true, "builtin": false, "healthy": true,
            "skipped_count": 0},
    ]);
    assert_eq!(all["sources"], expected);

    for (query, expected) in [
        ("?sort=name", vec!["demo", "later", "mail"]),
        ("?sort=recent", vec!["demo", "later", "mail"]),
        ("?q=MAIL", vec!["mail"]),
        ("?q=the+later", vec!["later"]),
        ("?category=Connector&sort=stars", vec!["later"]),
        ("?q=none", vec![]),
    ] {
        assert_eq!(ids(&market(&host, query).await), expected, "{query}");
    }
    let refused = host.get(&format!("{MARKET}?sort=best")).await.expect(400);
    assert_eq!(refused["code"], "invalid_query");
    let mut hits = server.take_hits();
    hits.sort();
    assert_eq!(hits, ["/one", "/two"], "each index is fetched once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_cannot_be_had_is_told_and_shows_what_it_had() {
    let host = Host::start_with(Settings::toml(SETTINGS)).await;
    let server = FileServer::start(&[]).await;
    let good = index(json!([entry(&server, "mail", "1.0.0", "/mail")]));
    server.put("/i", good.clone());
    add(&host, "One", &server.url("/i")).await;
    assert_eq!(ids(&market(&host, "").await), ["mail"]);
    let large = "x".repeat(20_001).into_bytes();
    for (file, reason) in [
        (File::Status(500), "the server responded 500; "),
        (File::Content(b"<html>".to_vec()), "what it serves is no plugin index: "),
        (
            File::Content(br#"{"schema_version":2,"plugins":[{"id":"later"}]}"#.to_vec()),
            "its index has the schema_version 2, and this host reads 1: ",
        ),
        (File::Content(large), "the index is larger than 20000 bytes (limits.marketplace_index_bytes)"),
        (File::Endless, "the index is larger than 20000 bytes (limits.marketplace_index_bytes)"),
        (File::Silence, "the index did not come within 1 s (timing.marketplace_timeout)"),
        (File::Redirect("http://plugins.test/i".to_owned()), "it leads to an address with the scheme http; "),
        (File::Redirect("file:///etc/passwd".to_owned()), "it leads to an address with the scheme file; "),
        (File::Redirect("/i".to_owned()), "more than 5 redirects; "),
    ] {
        server.put("/i", file);
        refresh(&host).await;
        let listing = market(&host, "").await;
        assert_eq!((ids(&listing), &listing["sources"][0]["healthy"]), (vec!["mail"], &json!(false)), "{reason}");
        let error = listing["sources"][0]["error"].as_str().unwrap();
        assert!(error.starts_with(reason), "{error}");
    }
    server.put("/moved", good);
    server.put("/i", File::Redirect("/moved".to_owned()));
    refresh(&host).await;
    let listing = market(&host, "").await;
    assert_eq!((&listing["sources"][0]["healthy"], listing["sources"][0].get("error")), (&json!(true), None));
}

on_databases!(sources_are_added_changed_and_deleted_with_the_texts_of_the_contract, SETTINGS, |settings| {
    let mut host = Host::start_with(settings).await;
    let server = FileServer::start(&[]).await;
    server.put("/i", index(json!([entry(&server, "mail", "1.0.0", "/mail")])));
    let url = server.url("/i");
    let source = host.post(SOURCES, json!({"name": "One", "url": url})).await.expect(201);
    let id = source["id"].as_str().unwrap().to_owned();
    assert!(source["created_at"].is_string(), "{source}");
    let again = host.post(SOURCES, json!({"name": "Other", "url": url})).await.expect(409);
    assert_eq!(again, json!({"error": "a source with this url already exists", "code": "source_exists"}));
    for url in ["http://a.test/i", "ftp://127.0.0.1/i", "index.json", "", "https://me:pw@a.test/"] {
        let refused = host.post(SOURCES, json!({"name": "Bad", "url": url})).await.expect(400);
        assert_eq!(refused["code"], "invalid_source", "{url}");
    }
    assert_eq!(host.post(SOURCES, json!({"name": "Bad"})).await.expect(400)["code"], "invalid_payload");

    let one = format!("{SOURCES}/{id}");
    let change = |body: Value| host.request(Method::PATCH, &one, Some(body));
    let off = change(json!({"name": "Two", "enabled": false})).await.expect(200);
    assert_eq!((&off["name"], &off["enabled"], &off["url"]), (&json!("Two"), &json!(false), &json!(url)));
    assert_eq!(change(json!({})).await.expect(200), off);
    assert_eq!(change(json!({"name": ""})).await.expect(400)["code"], "invalid_source");
    for unknown in ["url", "enabeld"] {
        let refused = change(json!({"name": "Three", unknown: true})).await.expect(400);
        let text = format!("unknown field `{unknown}`, expected `name` or `enabled`");
        assert!(refused["error"].as_str().unwrap().contains(&text), "{refused}");
        assert_eq!(refused["code"], "invalid_payload");
    }
    let more = host.post(SOURCES, json!({"name": "Bad", "url": "https://a.test/", "enabled": false})).await;
    assert_eq!(more.expect(400)["code"], "invalid_payload");
    assert_eq!(change(json!({})).await.expect(200), off, "nothing of those was changed");
    server.take_hits();
    let listing = market(&host, "").await;
    assert_eq!((ids(&listing), listing["sources"].as_array().unwrap().len()), (vec![], 1));
    assert_eq!(server.take_hits(), [""; 0], "a source that is off is not asked");
    change(json!({"enabled": true})).await.expect(200);
    assert_eq!(ids(&market(&host, "").await), ["mail"]);

    // They survive the host, and a setting adds one that cannot be deleted.
    host.stop().await;
    let built_in = server.url("/main");
    let mut env = vec![("KANDEV_PLUGIN_MARKETPLACE_URL".to_owned(), built_in.clone())];
    env.extend(host.env().into_iter().filter(|(name, _)| name != "KANDEV_PLUGIN_MARKETPLACE_URL"));
    host.set_env(env);
    host.spawn().await;
    let listed = host.get(SOURCES).await.expect(200);
    let shown: Vec<_> = listed["sources"].as_array().unwrap().iter().map(|s| (&s["id"], &s["builtin"])).collect();
    assert_eq!(shown, [(&json!("builtin"), &json!(true)), (&json!(id), &json!(false))]);
    let kept = host.request(Method::DELETE, &format!("{SOURCES}/builtin"), None).await.expect(409);
    assert_eq!(kept, json!({"error": "the built-in source cannot be deleted", "code": "source_built_in"}));
    let deleted = host.request(Method::DELETE, &format!("{SOURCES}/{id}"), None).await.expect(200);
    assert_eq!(deleted, json!({"deleted": true}));
    for method in [Method::DELETE, Method::PATCH] {
        let gone = host.request(method, &format!("{SOURCES}/{id}"), Some(json!({}))).await.expect(404);
        assert_eq!(gone, json!({"error": "marketplace source not found", "code": "source_not_found"}));
    }
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_is_held_against_the_listed_digest_before_anything_of_it_is_read() {
    let host = Host::start_with(Settings::toml(SETTINGS)).await;
    let archive = small("1.0.0").archive().await;
    let (right, wrong) = (sha256(&archive), "0".repeat(64));
    let server = FileServer::start(&[("/p", File::Content(archive)), ("/junk", File::Content(b"junk".to_vec()))]).await;
    let listing = |path: &str, digest: &str| {
        let mut entry = entry(&server, "demo", "1.0.0", path);
        entry["package_sha256"] = json!(digest);
        index(json!([entry]))
    };
    let install = |body: Value| host.post("/api/plugins/install", body);
    server.put("/i", listing("/p", &wrong));
    add(&host, "Acme", &server.url("/i")).await;

    let refused = install(json!({"url": server.url("/p")})).await.expect(422);
    assert_eq!(refused["code"], "digest_mismatch");
    let details = json!({"found": right, "wanted": wrong, "by": "the marketplace source \"Acme\""});
    assert_eq!(refused["details"], details);
    let text = refused["error"].as_str().unwrap();
    assert!(text.contains(&right) && text.contains(&wrong), "{text}");
    // A digest is told before an archive that is none.
    server.put("/i", listing("/junk", &wrong));
    refresh(&host).await;
    assert_eq!(install(json!({"url": server.url("/junk")})).await.expect(422)["code"], "digest_mismatch");
    let stated = json!({"url": server.url("/p"), "package_sha256": wrong});
    assert_eq!(install(stated).await.expect(422)["details"]["by"], "the request");
    let malformed = json!({"url": server.url("/p"), "package_sha256": "abc"});
    assert_eq!(install(malformed).await.expect(400)["code"], "invalid_payload");
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}), "nothing was changed");
    assert!(!host.plugins().join("demo").exists());

    // Nobody gets another plugin than the one that he chose.
    let mut other = entry(&server, "chosen", "1.0.0", "/p");
    for digest in [json!(right), Value::Null] {
        other["package_sha256"] = digest;
        server.put("/i", index(json!([other])));
        refresh(&host).await;
        for query in ["", "?dry_run=true"] {
            let path = format!("/api/plugins/install{query}");
            let refused = host.post(&path, json!({"url": server.url("/p")})).await.expect(422);
            assert_eq!(refused["code"], "other_plugin");
            assert_eq!(refused["details"], json!({"listed": "chosen", "found": "demo"}));
        }
    }
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}));

    server.put("/i", listing("/p", &right.to_uppercase()));
    refresh(&host).await;
    let installed = install(json!({"url": server.url("/p"), "package_sha256": right.to_uppercase()})).await.expect(201);
    assert_eq!(installed["plugin"]["status"], "active", "upper case is the same digest");
    assert_eq!(market(&host, "").await["plugins"][0]["install_state"], "installed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_version_is_told_once_and_a_signed_one_is_installed_when_the_operator_wants_it() {
    if !has_openssl() {
        return;
    }
    let host = Host::start_with(Settings::toml(SETTINGS)).await;
    let key = OpensslKey::new();
    let trusted = json!({"name": "acme", "key": key.public_pem(), "plugins": ["demo"]});
    host.post("/api/v1/trust/keys", trusted).await.expect(201);
    let signed = |version: &str| small(version).signed(|bytes| key.sign_named(bytes));
    host.install(&signed("1.0.0")).await;
    let (second, third) = (signed("1.1.0").archive().await, signed("1.2.0").archive().await);
    let digest = sha256(&second);
    let server = FileServer::start(&[("/2", File::Content(second)), ("/3", File::Content(third))]).await;
    let mut newer = entry(&server, "demo", "1.1.0", "/2");
    newer["package_sha256"] = json!(digest);
    server.put("/i", index(json!([newer])));
    add(&host, "Acme", &server.url("/i")).await;

    refresh(&host).await;
    let items = told(&host, "the newer version is told", |items| !items.is_empty()).await;
    let text = "1.0.0 is installed; Acme offers 1.1.0";
    assert_eq!((items.len(), &items[0]["status"], &items[0]["description"]), (1, &json!("open"), &json!(text)));
    assert_eq!(host.get("/api/plugins/settings").await.expect(200), json!({"auto_update_default": false}));
    assert_eq!(host.record("demo").await["version"], "1.0.0", "automatic updates are off");

    let record = auto_update(&host, "demo", json!(true)).await.expect(200);
    assert_eq!((&record["id"], &record["auto_update"]), (&json!("demo"), &json!(true)));
    let items = told(&host, "the update is over", |items| items[0]["status"] == "resolved").await;
    assert_eq!((items.len(), &items[0]["payload"]["resolution"]), (1, &json!("updated")));
    let record = host.status("demo", "active").await;
    let kept = (&record["version"], &record["auto_update"], &record["signer"], &record["previous_version"]);
    assert_eq!(kept, (&json!("1.1.0"), &json!(true), &json!("acme"), &json!("1.0.0")));

    // By the host's setting, once the plugin has no word of its own.
    server.put("/i", index(json!([entry(&server, "demo", "1.2.0", "/3")])));
    assert_eq!(auto_update(&host, "demo", Value::Null).await.expect(200).get("auto_update"), None);
    refresh(&host).await;
    told(&host, "the third version is told", |items| items.len() == 2 && items[0]["status"] == "open").await;
    let on = json!({"auto_update_default": true});
    let answer = host.request(Method::PUT, "/api/plugins/settings", Some(on.clone())).await;
    assert_eq!(answer.expect(200), on);
    eventually("the third version runs", || async {
        let record = host.record("demo").await;
        record["version"] == "1.2.0" && record["status"] == "active"
    })
    .await;

    assert_eq!(auto_update(&host, "none", json!(true)).await.expect(404)["code"], "plugin_not_found");
    for body in [json!({}), json!({"auto_update": "yes"}), json!({"auto_update": true, "until": "tomorrow"})] {
        let answer = host.request(Method::PUT, "/api/plugins/demo/auto-update", Some(body)).await;
        assert_eq!(answer.expect(400)["code"], "invalid_payload");
    }
    let more = json!({"auto_update_default": false, "auto_update": false});
    let answer = host.request(Method::PUT, "/api/plugins/settings", Some(more)).await;
    assert_eq!(answer.expect(400)["code"], "invalid_payload");
    assert_eq!(host.get("/api/plugins/settings").await.expect(200), on, "nothing of those was changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_vouches_for_asks_for_more_or_does_not_come_up_is_told_with_its_reason_and_left_alone() {
    if !has_openssl() {
        return;
    }
    // Not even a host that asks nobody about capabilities widens them by itself.
    let settings = SETTINGS.replace("[install]", "[install]\ncapability_consent = false");
    let host = Host::start_with(Settings::toml(&settings)).await;
    let (key, other) = (OpensslKey::new(), OpensslKey::new());
    for (name, key) in [("acme", &key), ("other", &other)] {
        let body = json!({"name": name, "key": key.public_pem(), "plugins": ["demo"]});
        host.post("/api/v1/trust/keys", body).await.expect(201);
    }
    host.install(&small("1.0.0").signed(|bytes| key.sign_named(bytes))).await;
    auto_update(&host, "demo", json!(true)).await.expect(200);
    let wider = small("1.3.0")
        .manifest(|text| text.replace("capabilities:", "capabilities:\n  secrets: true"))
        .signed(|bytes| key.sign_named(bytes));
    let lame = small("1.5.0").switches(&json!({"crash_before_handshake": 3})).signed(|bytes| key.sign_named(bytes));
    let cases = [
        ("1.1.0", small("1.1.0"), "is not signed by a key that is trusted for the plugin"),
        ("1.2.0", small("1.2.0").signed(|bytes| other.sign_named(bytes)), "is not signed by the key that signed"),
        ("1.3.0", wider, "asks for more than the installed version: secrets"),
        ("1.4.0", small("1.9.9").signed(|bytes| key.sign_named(bytes)), "the package is demo 1.9.9, which is not"),
        ("1.5.0", lame, "version 1.5.0 did not come up, 1.0.0 runs again"),
    ];
    let server = FileServer::start(&[]).await;
    add(&host, "Acme", &server.url("/i")).await;
    for (version, package, reason) in cases {
        server.put("/p", File::Content(package.archive().await));
        server.put("/i", index(json!([entry(&server, "demo", version, "/p")])));
        refresh(&host).await;
        let items = told(&host, reason, |items| {
            items.first().is_some_and(|item| {
                let obstacle = item["payload"]["obstacle"].as_str().unwrap_or_default();
                item["payload"]["offered"] == version && obstacle.contains(reason)
            })
        })
        .await;
        assert_eq!(
            (&items[0]["status"], host.status("demo", "active").await["version"].clone()),
            (&json!("open"), json!("1.0.0"))
        );
        assert!(items[1..].iter().all(|item| item["payload"]["resolution"] == "superseded"), "{items:?}");
    }
    // What failed once is not tried again, and its reason is told instead.
    server.take_hits();
    refresh(&host).await;
    let tried = "it was tried and undone: ";
    told(&host, "it is not tried again", |items| {
        items[0]["payload"]["obstacle"].as_str().unwrap_or_default().starts_with(tried)
    })
    .await;
    assert_eq!(server.take_hits(), ["/i"]);

    host.uninstall("demo").await.expect(200);
    refresh(&host).await;
    let items = told(&host, "the plugin is gone", |items| items[0]["status"] == "resolved").await;
    assert_eq!((items.len(), &items[0]["payload"]["resolution"]), (5, &json!("uninstalled")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_word_counts_during_a_download_and_what_was_taken_back_is_not_installed_again() {
    if !has_openssl() {
        return;
    }
    let host = Host::start_with(Settings::toml(SETTINGS)).await;
    let key = OpensslKey::new();
    let trusted = json!({"name": "acme", "key": key.public_pem(), "plugins": ["demo"]});
    host.post("/api/v1/trust/keys", trusted).await.expect(201);
    let signed = |version: &str| small(version).signed(|bytes| key.sign_named(bytes));
    host.install(&signed("1.0.0")).await;
    let (told_to, second) = (Arc::new(Notify::new()), signed("1.1.0").archive().await);
    let server = FileServer::start(&[("/p", File::Late(Arc::clone(&told_to), second.clone()))]).await;
    server.put("/i", index(json!([entry(&server, "demo", "1.1.0", "/p")])));
    add(&host, "Acme", &server.url("/i")).await;

    auto_update(&host, "demo", json!(true)).await.expect(200);
    eventually("the package is asked for", || async { server.take_hits().iter().any(|path| path == "/p") }).await;
    auto_update(&host, "demo", json!(false)).await.expect(200);
    told_to.notify_one();
    let items = told(&host, "it is only told", |items| !items.is_empty()).await;
    let text = "1.0.0 is installed; Acme offers 1.1.0";
    assert_eq!((items.len(), &items[0]["description"]), (1, &json!(text)));
    assert_eq!(host.record("demo").await["version"], "1.0.0");

    server.put("/p", File::Content(second));
    auto_update(&host, "demo", json!(true)).await.expect(200);
    told(&host, "the update is over", |items| items[0]["status"] == "resolved").await;
    assert_eq!(host.status("demo", "active").await["version"], "1.1.0");
    let back = host.command("demo", "rollback").await.expect(200);
    assert_eq!(back["plugin"]["version"], "1.0.0");
    refresh(&host).await;
    told(&host, "it is told why it is not installed again", |items| {
        items[0]["payload"]["obstacle"] == "an operator went back from it"
    })
    .await;
    let record = host.status("demo", "active").await;
    assert_eq!((&record["version"], &record["auto_update"]), (&json!("1.0.0"), &json!(true)));

    // A version after it is another matter.
    server.put("/p", File::Content(signed("1.2.0").archive().await));
    server.put("/i", index(json!([entry(&server, "demo", "1.2.0", "/p")])));
    refresh(&host).await;
    eventually("the version after it runs", || async {
        let record = host.record("demo").await;
        record["version"] == "1.2.0" && record["status"] == "active"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_of_nobody_known_is_told_without_fetching_a_package_and_an_older_offer_is_no_update() {
    let host = Host::start_with(Settings::toml(SETTINGS)).await;
    host.install(&small("1.0.0")).await;
    let server = FileServer::start(&[]).await;
    server.put("/i", index(json!([entry(&server, "demo", "1.1.0", "/p")])));
    add(&host, "Acme", &server.url("/i")).await;
    auto_update(&host, "demo", json!(true)).await.expect(200);
    told(&host, "it is told what is in the way", |items| {
        let reason = "the installed version has no signature of a trusted key on record";
        items.first().is_some_and(|item| item["payload"]["obstacle"] == reason)
    })
    .await;
    assert_eq!(server.take_hits(), ["/i"]);
    server.put("/i", index(json!([entry(&server, "demo", "1.0.0", "/p")])));
    refresh(&host).await;
    let items = told(&host, "the newer version is withdrawn", |items| items[0]["status"] == "resolved").await;
    assert_eq!((items.len(), &items[0]["payload"]["resolution"]), (1, &json!("withdrawn")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_cannot_be_had_is_told_before_a_slow_index_is_here() {
    // An index would be waited for half a minute.
    let settings = SETTINGS.replace("marketplace_timeout = \"1s\"", "marketplace_timeout = \"30s\"");
    let host = Host::start_with(Settings::toml(&settings)).await;
    let server = FileServer::start(&[("/i", File::Silence)]).await;
    add(&host, "Acme", &server.url("/i")).await;
    let begun = tokio::time::Instant::now();
    let refused = host.post("/api/plugins/install", json!({"url": server.url("/none")})).await.expect(502);
    assert_eq!(refused["code"], "download_failed");
    assert!(begun.elapsed() < std::time::Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_versions_are_looked_for_with_time_and_one_that_is_withdrawn_is_told_no_more() {
    let settings = SETTINGS
        .replace("marketplace_cache = \"1h\"", "marketplace_cache = \"100ms\"")
        .replace("update_interval = \"1h\"", "update_interval = \"200ms\"");
    let host = Host::start_with(Settings::toml(&settings)).await;
    host.install(&small("1.0.0")).await;
    let server = FileServer::start(&[]).await;
    server.put("/i", index(json!([entry(&server, "demo", "1.1.0", "/p")])));
    add(&host, "Acme", &server.url("/i")).await;
    let first = told(&host, "the newer version is told", |items| !items.is_empty()).await;
    // The source cannot be had for a while: nobody knows that it offers no more.
    server.put("/i", File::Status(500));
    eventually("the source is not healthy", || async { market(&host, "").await["sources"][0]["healthy"] == false })
        .await;
    assert_eq!(updates(&host).await, first);
    server.put("/i", index(json!([])));
    refresh(&host).await;
    let items = told(&host, "the version is withdrawn", |items| items[0]["status"] == "resolved").await;
    assert_eq!((items.len(), &items[0]["payload"]["resolution"]), (1, &json!("withdrawn")));
}
