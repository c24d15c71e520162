//! Who signed a package, whom the host believes, and executables that are no longer what was installed
//! (contract/manifest.md §4.2, docs/operations.md, "Who signed this"). Keys and signatures are made by openssl.

use std::{
    fs,
    path::{Path, PathBuf},
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{
    Guest, Host, OpensslKey, Package, Settings, Signal, eventually, eventually_some, has_openssl, kill,
};

const UNSIGNED: &str = "the package is unsigned: only its checksums were verified";

/// A small plugin that runs.
fn package(id: &str) -> Package {
    Package::of(Guest::Rust, id, "1.0.0")
}

async fn trust(host: &Host, name: &str, key: &str, plugins: &[&str]) -> Value {
    let body = json!({"name": name, "key": key, "plugins": plugins});
    host.post("/api/v1/trust/keys", body).await.expect(201)
}

/// Installs; gives the warnings about the signature, which the record must keep.
async fn install(host: &Host, package: &Package) -> (Value, Vec<String>) {
    let answer = host.install(package).await;
    let record = host.plugin(package.id()).await;
    assert_eq!(answer["warnings"], record.get("warnings").cloned().unwrap_or(json!([])), "kept on the record");
    let warnings = answer["warnings"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let about = warnings.filter(|warning| warning.contains("signed")).map(str::to_owned).collect();
    (json!([record["signed"], record["signer"]]), about)
}

/// A refused upload: the answer's text; nothing is left of it.
async fn refused(host: &Host, package: &Package, code: &str) -> String {
    let body = host.upload(package.archive().await).await.expect(400);
    assert_eq!(body["code"], code, "{body}");
    assert_eq!(host.get(&format!("/api/plugins/{}", package.id())).await.status, 404);
    assert!(!host.plugins().join(package.id()).exists());
    let staging = fs::read_dir(host.plugins().join(".staging")).map_or(0, Iterator::count);
    assert_eq!(staging, 0, "the staging folder is empty when the refusal is told");
    body["error"].as_str().expect("a text").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_of_a_signature_with_keys_of_openssl() {
    if !has_openssl() {
        return;
    }
    let host = Host::start().await;
    let (ours, theirs, stranger) = (OpensslKey::new(), OpensslKey::new(), OpensslKey::new());
    trust(&host, "ours", &ours.public_pem(), &["absent", "bare", "encoded", "named", "bad-bare", "bad-named"]).await;
    trust(&host, "theirs", &theirs.public_base64(), &["something-else"]).await;
    let base64 = |raw: Vec<u8>| {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        format!("{}\n", STANDARD.encode(raw)).into_bytes()
    };

    let (unsigned, ours_is) = (json!([false, null]), json!([true, "ours"]));
    assert_eq!(install(&host, &package("absent")).await, (unsigned.clone(), vec![UNSIGNED.to_owned()]));
    for (id, signed) in [
        ("bare", package("bare").signed(|bytes| ours.sign(bytes))),
        ("encoded", package("encoded").signed(|bytes| base64(ours.sign(bytes)))),
        ("named", package("named").signed(|bytes| ours.sign_named(bytes))),
    ] {
        assert_eq!(install(&host, &signed).await, (ours_is.clone(), vec![]), "{id}");
    }

    let unknown = package("unknown").signed(|bytes| stranger.sign_named(bytes));
    let warning = format!(
        "the package counts as unsigned: its signature is right, of the key {}, which is not trusted here",
        stranger.public_base64()
    );
    assert_eq!(install(&host, &unknown).await, (unsigned.clone(), vec![warning]));
    let other = package("other").signed(|bytes| theirs.sign(bytes));
    let warning = "the package counts as unsigned: its signature is right, of the trusted key \"theirs\", which may not sign \
                   this plugin";
    assert_eq!(install(&host, &other).await, (unsigned.clone(), vec![warning.to_owned()]));
    let nobodys = package("nobodys").signed(|bytes| stranger.sign(bytes));
    let warning = "the package counts as unsigned: its signature does not say whose it is, and no trusted key may sign this \
                   plugin";
    assert_eq!(install(&host, &nobodys).await, (unsigned, vec![warning.to_owned()]));

    let start = "pkgtar: signature verification failed: ";
    for (bad, cause) in [
        (package("bad-bare").signed(|bytes| stranger.sign(bytes)), "no trusted key that may sign this plugin made"),
        (package("bad-bare").signed(|_| ours.sign(b"something else")), "no trusted key that may sign this plugin made"),
        (
            package("bad-named").signed(|_| ours.sign_named(b"something else")),
            "the signature is not the one that the key",
        ),
        (package("bad-anyone").signed(|_| stranger.sign_named(b"x")), "the signature is not the one that the key"),
        (package("bad-form").signed(|_| b"gpg?".to_vec()), "checksums.txt.sig is not a signature: "),
    ] {
        let text = refused(&host, &bad, "signature_invalid").await;
        assert!(text.starts_with(&format!("{start}{cause}")), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_requires_signatures_refuses_the_rest_and_runs_what_it_had() {
    if !has_openssl() {
        return;
    }
    let mut host = Host::start().await;
    let key = OpensslKey::new();
    host.install(&package("old")).await;
    host.stop().await;
    fs::write(host.home().join("host.toml"), "[install]\nsignatures = \"require\"\n").unwrap();
    host.spawn().await;
    assert_eq!(host.status("old", "active").await["signed"], false);

    let text = refused(&host, &package("unsigned"), "signature_required").await;
    let next = "install.signatures is \"require\": trust a key that may sign this plugin, or set it to \"warn\"";
    assert_eq!(text, format!("pkgtar: {UNSIGNED}; {next}"));
    let signed = package("demo").signed(|bytes| key.sign_named(bytes));
    let text = refused(&host, &signed, "signature_required").await;
    assert!(text.contains("which is not trusted here") && text.ends_with(next), "{text}");
    trust(&host, "us", &key.public_pem(), &["*"]).await;
    assert_eq!(install(&host, &signed).await, (json!([true, "us"]), vec![]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_added_listed_and_removed_and_files_put_there_by_hand_count_at_once() {
    if !has_openssl() {
        return;
    }
    let host = Host::start().await;
    let (key, path) = (OpensslKey::new(), "/api/v1/trust/keys");
    assert_eq!(host.get(path).await.expect(200), json!({"keys": [], "skipped": []}));
    let shown = json!({"name": "acme", "key": key.public_base64(), "plugins": ["a", "b"]});
    assert_eq!(trust(&host, "acme", &key.public_pem(), &["b", "a"]).await, shown);

    let by_hand = host.home().join("trust/hand.pub");
    fs::write(&by_hand, format!("# from Acme's web site\nplugins: demo\n{}", key.public_pem())).unwrap();
    fs::write(host.home().join("trust/broken.pub"), key.public_pem()).unwrap();
    let hand = json!({"name": "hand", "key": key.public_base64(), "plugins": ["demo"]});
    let why =
        "it does not say which plugins the key may sign: add a line `plugins: ID, …`, or `plugins: *` for every one";
    let skipped = json!([{"file": "broken.pub", "error": why}]);
    assert_eq!(host.get(path).await.expect(200), json!({"keys": [shown, hand], "skipped": skipped}));
    let signed = package("demo").signed(|bytes| key.sign(bytes));
    assert_eq!(install(&host, &signed).await, (json!([true, "hand"]), vec![]));
    eventually("the log says so", || async {
        let log = host.log();
        log.contains("a trusted key is skipped") && log.contains("broken.pub")
    })
    .await;

    // Distrust does not reach back.
    host.request(Method::DELETE, &format!("{path}/hand"), None).await.expect(200);
    assert!(!by_hand.exists());
    let record = host.plugin("demo").await;
    assert_eq!(json!([record["status"], record["signed"], record["signer"]]), json!(["active", true, "hand"]));

    let private = fs::read_to_string(key.private()).unwrap();
    for (status, code, body) in [
        (409, "trust_key_exists", json!({"name": "acme", "key": key.public_pem(), "plugins": ["*"]})),
        (400, "invalid_payload", json!({"name": "../x", "key": key.public_pem(), "plugins": ["*"]})),
        (400, "invalid_payload", json!({"name": "x", "key": "nonsense", "plugins": ["*"]})),
        (400, "invalid_payload", json!({"name": "x", "key": private, "plugins": ["*"]})),
        (400, "invalid_payload", json!({"name": "x", "key": key.public_pem(), "plugins": []})),
        (400, "invalid_payload", json!({"name": "x", "key": key.public_pem(), "plugins": ["No"]})),
        (400, "invalid_payload", json!({"name": "x"})),
        (
            400,
            "invalid_payload",
            json!({"name": "x", "key": key.public_pem(), "plugins": ["*"], "until": "2030-01-01"}),
        ),
    ] {
        let answer = host.post(path, body).await.expect(status);
        assert_eq!(answer["code"], code, "{answer}");
        assert!(!answer.to_string().contains(private.lines().nth(1).unwrap()), "{answer}");
    }
    for (status, name) in [(404, "hand"), (400, ".."), (400, "a%2Fb")] {
        let answer = host.request(Method::DELETE, &format!("{path}/{name}"), None).await;
        assert!(answer.status == status || (name == ".." && answer.status >= 400), "{name}: {answer:?}");
    }
    assert_eq!(host.anonymous(Method::GET, path).await.status, 401);
    assert_eq!(host.anonymous(Method::DELETE, &format!("{path}/acme")).await.status, 401);
}

/// The executable of an installed plugin.
fn executable(host: &Host, id: &str) -> PathBuf {
    host.plugins().join(id).join("1.0.0").join(crate::support::package::executable_path())
}

/// Puts other bytes in a file's place, as an attacker would: with its mode, and although it may run.
fn replace(path: &Path, bytes: &[u8]) {
    let (new, mode) = (path.with_extension("new"), fs::metadata(path).unwrap().permissions());
    fs::write(&new, bytes).unwrap();
    fs::set_permissions(&new, mode).unwrap();
    fs::rename(new, path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executable_that_was_changed_is_not_started_by_enable_restart_or_boot() {
    let mut host = Host::start_with(Settings::toml("[timing]\nrestart_delays = [\"50ms\", \"50ms\"]\n")).await;
    let record = host.install(&package("demo")).await["plugin"].clone();
    let path = executable(&host, "demo");
    let right = fs::read(&path).unwrap();
    let digest = record["executable_sha256"].as_str().expect("a digest").to_owned();
    let wrong = [right.as_slice(), b"\0"].concat();
    let told = format!("on record is {digest}): it was changed or is damaged");

    host.command("demo", "disable").await.expect(200);
    replace(&path, &wrong);
    let starts = host.recorded("demo", "starts.jsonl").len();
    let refusal = host.command("demo", "enable").await.expect(500);
    assert_eq!(refusal["code"], "start_failed");
    assert!(refusal["error"].as_str().unwrap().contains(&told), "{refusal}");
    let record = host.plugin("demo").await;
    assert_eq!((&record["status"], &record["restarting"]), (&json!("error"), &json!(false)));
    assert!(record["last_error"].as_str().unwrap().contains(&told), "{record}");

    replace(&path, &right);
    host.command("demo", "enable").await.expect(200);
    replace(&path, &wrong);
    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    let record = eventually_some("the first restart has failed", || async {
        let record = host.plugin("demo").await;
        (record["status"] == "error" && record["restarting"] == false).then_some(record)
    })
    .await;
    let text = record["last_error"].as_str().unwrap();
    assert!(text.starts_with("the program ") && text.contains(&told), "no attempt was counted: {text}");
    assert!(text.contains("install another version of the package, roll back, or uninstall"), "{text}");
    assert!(!text.contains("enable"), "{text}");

    replace(&path, &right);
    host.command("demo", "enable").await.expect(200);
    host.stop().await;
    replace(&path, &wrong);
    host.spawn().await;
    let record = host.status("demo", "error").await;
    assert!(record["last_error"].as_str().unwrap().contains(&told), "{record}");
    assert_eq!(record["restarting"], false, "no attempt helps: {record}");
    assert_eq!(host.recorded("demo", "starts.jsonl").len(), starts + 2, "the wrong one never ran");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_without_a_digest_gets_it_at_its_first_good_start() {
    let mut host = Host::start().await;
    let digest = host.install(&package("demo")).await["plugin"]["executable_sha256"].clone();
    host.stop().await;
    let file = host.plugins().join("demo.yml");
    let text = fs::read_to_string(&file).unwrap();
    let older: Vec<_> = text.lines().filter(|line| !line.starts_with("executable_sha256:")).collect();
    fs::write(&file, older.join("\n") + "\n").unwrap();
    host.spawn().await;
    eventually("the record has the digest", || async { host.plugin("demo").await["executable_sha256"] == digest })
        .await;
    host.stop().await;
    assert!(fs::read_to_string(&file).unwrap().contains(digest.as_str().unwrap()));
}
