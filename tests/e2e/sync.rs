//! The plugins folder as operators use it: folders and packages that are put there, folders that go away
//! (contract/manifest.md §12; field cases 21 and 83).

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    Guest, Host, OpensslKey, Package, Settings, Signal, eventually, eventually_some, has_openssl, kill,
};

const FAST: &str = r#"
[timing]
ping_interval = "1h"
restart_delays = ["50ms", "50ms", "50ms", "50ms", "50ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
"#;

async fn sync(host: &Host) -> Value {
    host.post("/api/plugins/sync", json!(null)).await.expect(200)
}

fn ids(report: &Value, key: &str) -> Vec<String> {
    report[key].as_array().expect("an array").iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

/// Path, relative to the plugins folder, and reason of each error.
fn errors(host: &Host, report: &Value) -> Vec<(String, String)> {
    let errors = report["errors"].as_array().expect("an array");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let relative = |path: String| path.strip_prefix(host.plugins().to_str().unwrap()).unwrap_or(&path).to_owned();
    errors.iter().map(|error| (relative(text(&error["path"])), text(&error["reason"]))).collect()
}

fn nothing() -> Value {
    json!({"added": [], "installed": [], "missing": [], "errors": []})
}

/// Unpacks a package as an operator does, with tar.
async fn put(host: &Host, package: &Package, folder: &str) {
    let folder = host.plugins().join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let archive = host.home().join("put.tar.gz");
    std::fs::write(&archive, package.archive().await).unwrap();
    let done = std::process::Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder).status().unwrap();
    assert!(done.success());
}

async fn drop_package(host: &Host, package: &Package, name: &str) {
    std::fs::write(host.plugins().join(name), package.archive().await).unwrap();
}

fn exists(host: &Host, name: &str) -> bool {
    Path::new(&host.plugins()).join(name).exists()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_becomes_a_plugin_that_is_off_until_it_is_enabled() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    assert_eq!(sync(&host).await, nothing());
    put(&host, &Package::of(Guest::Rust, "demo", "1.9.0"), "demo/1.9.0").await;
    put(&host, &Package::of(Guest::Rust, "demo", "1.10.0"), "demo/1.10.0").await;
    let report = sync(&host).await;
    assert_eq!(ids(&report, "added"), ["demo"]);
    let skipped = "skipped: version \"1.9.0\" already selected for unregistered plugin \"demo\"".to_owned();
    assert_eq!(errors(&host, &report), [("/demo/1.9.0".to_owned(), skipped)]);
    let record = host.plugin("demo").await;
    assert_eq!((&record["status"], &record["signed"]), (&json!("disabled"), &json!(false)));
    assert_eq!(record["install_path"], host.plugins().join("demo/1.10.0").to_str().unwrap());
    assert_eq!(host.plugin_processes(), Vec::<i32>::new(), "nothing was started");
    assert_eq!(sync(&host).await, nothing(), "it is registered now");
    host.kill();
    host.spawn().await;
    assert_eq!(host.plugin("demo").await["status"], "disabled");
    host.command("demo", "enable").await.expect(200);
    assert_eq!(host.plugin("demo").await["version"], "1.10.0");
    host.uninstall("demo").await.expect(200);
    assert!(!exists(&host, "demo") && !exists(&host, "demo.yml"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_start_takes_folders_over_and_leaves_packages_alone() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(Guest::Rust, "running", "1.0.0")).await;
    host.install(&Package::of(Guest::Rust, "gone", "1.0.0")).await;
    assert_eq!(host.stop().await, Some(0));
    std::fs::remove_dir_all(host.plugins().join("gone/1.0.0")).unwrap();
    std::fs::create_dir(host.plugins().join("running/.tmp-left")).unwrap();
    put(&host, &Package::of(Guest::Rust, "put", "1.0.0"), "put/1.0.0").await;
    drop_package(&host, &Package::of(Guest::Rust, "dropped", "1.0.0"), "dropped.tar.gz").await;
    host.spawn().await;
    eventually("the folder is registered", || async {
        host.get("/api/plugins/put").await.body["status"] == "disabled"
    })
    .await;
    let gone = host.status("gone", "error").await;
    let path = host.plugins().join("gone/1.0.0");
    assert_eq!(gone["last_error"], format!("plugin install path \"{}\" is missing", path.display()));
    assert_eq!(gone["restarting"], false);
    host.status("running", "active").await;
    assert_eq!(host.get("/api/plugins/dropped").await.status, 404);
    eventually("what was unfinished is gone", || async { !exists(&host, "running/.tmp-left") }).await;
    assert!(exists(&host, "dropped.tar.gz"));
    let report = sync(&host).await;
    assert_eq!((ids(&report, "installed"), ids(&report, "missing")), (vec!["dropped".into()], vec!["gone".into()]));
    assert_eq!(host.plugin("dropped").await["status"], "active");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packages_are_installed_like_uploads_and_go_when_a_record_came_of_them() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(Guest::Rust, "older", "1.0.0")).await;
    drop_package(&host, &Package::of(Guest::Rust, "good", "1.0.0"), "a.tar.gz").await;
    let dies = Package::of(Guest::Rust, "dies", "1.0.0").switches(&json!({"crash_before_handshake": 3}));
    drop_package(&host, &dies, "b.tar.gz").await;
    let tampered = Package::of(Guest::Rust, "bad", "1.0.0");
    let checksums = tampered.checksums();
    let tampered = tampered.file("extra", "x").archive_with_checksums(&checksums).await;
    std::fs::write(host.plugins().join("c.tar.gz"), tampered).unwrap();
    std::fs::write(host.plugins().join("d.tar.gz"), "not a package").unwrap();
    let demanding = Package::of(Guest::Rust, "new", "1.0.0").manifest(|text| text + "min_kandev_version: 99.0.0\n");
    drop_package(&host, &demanding, "e.tar.gz").await;
    std::os::unix::fs::symlink(host.plugins().join("a.tar.gz"), host.plugins().join("f.tar.gz")).unwrap();
    drop_package(&host, &Package::of(Guest::Rust, "older", "1.1.0"), "g.tar.gz").await;
    drop_package(&host, &Package::of(Guest::Rust, "older", "1.1.0"), "h.tar.gz").await;

    let report = sync(&host).await;
    assert_eq!(ids(&report, "installed"), ["good", "dies", "older"]);
    let errors = errors(&host, &report);
    let reasons: Vec<_> = errors.iter().map(|(path, reason)| (path.as_str(), reason.as_str())).collect();
    let [special, unlisted, broken, too_old, again] = &reasons[..] else { panic!("{reasons:?}") };
    assert_eq!(*special, ("/f.tar.gz", "a link is not followed; put the package itself here"));
    assert_eq!(*unlisted, ("/c.tar.gz", "pkgtar: file not listed in checksums.txt: extra"));
    assert_eq!(broken.0, "/d.tar.gz");
    assert_eq!(
        *too_old,
        (
            "/e.tar.gz",
            "plugins: requires kandev >= 99.0.0, running 0.91.0: update this host, or raise its setting compat_version"
        )
    );
    assert!(again.0 == "/h.tar.gz" && again.1.starts_with("pkgtar: version already installed: "), "{again:?}");
    for (name, there) in [("a", false), ("b", false), ("c", true), ("d", true), ("e", true), ("g", false), ("h", true)]
    {
        assert_eq!(exists(&host, &format!("{name}.tar.gz")), there, "{name}");
    }
    assert_eq!(host.plugin("good").await["status"], "active");
    assert_eq!(host.plugin("dies").await["status"], "error");
    assert_eq!(host.plugin("older").await["version"], "1.1.0");
    assert_eq!(host.get("/api/plugins").await.expect(200)["plugins"].as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_package_that_needs_consent_is_refused_with_the_way_that_gives_it() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let more = |text: String| text.replace("capabilities:", "capabilities:\n  secrets: true");
    drop_package(&host, &Package::of(Guest::Rust, "demo", "1.1.0").manifest(more), "demo.tar.gz").await;
    std::fs::create_dir(host.plugins().join("folder.tar.gz")).unwrap();
    let report = sync(&host).await;
    let told = errors(&host, &report);
    let [folder, consent] = &told[..] else { panic!("{told:?}") };
    let reason = "a folder with the name of a package; put the package file itself here";
    assert_eq!((folder.0.as_str(), folder.1.as_str()), ("/folder.tar.gz", reason));
    assert_eq!(consent.0, "/demo.tar.gz");
    let command = "plugin install --accept capabilities";
    assert!(consent.1.contains(command) && !consent.1.contains("with the request"), "{consent:?}");
    // The advice works.
    let archive = std::fs::read(host.plugins().join("demo.tar.gz")).unwrap();
    host.upload_with("?accept=capabilities", archive).await.expect(201);
    assert_eq!(host.plugin("demo").await["version"], "1.1.0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_another_command_has_claimed_is_told_and_left_to_it() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let slow = Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"slow_start_ms": 3000}));
    let archive = slow.archive().await;
    let during = async {
        eventually("it is being started", || async { !host.plugin_processes().is_empty() }).await;
        assert_eq!(host.plugin("demo").await["status"], "registered");
        std::fs::rename(host.plugins().join("demo/1.0.0"), host.home().join("away")).unwrap();
        let report = sync(&host).await;
        std::fs::rename(host.home().join("away"), host.plugins().join("demo/1.0.0")).unwrap();
        assert_eq!(ids(&report, "missing"), Vec::<String>::new());
        let reason = "another command for the plugin is under way; sync again when it is done".to_owned();
        assert_eq!(errors(&host, &report), [("/demo".to_owned(), reason)]);
    };
    let (installed, ()) = tokio::join!(host.upload(archive), during);
    assert_eq!(installed.expect(201)["plugin"]["status"], "active");
    assert_eq!(sync(&host).await, nothing());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_belong_there_is_told_and_stops_nothing_else() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(Guest::Rust, "record", "1.0.0")).await;
    assert_eq!(host.stop().await, Some(0));
    std::fs::write(host.plugins().join("record.yml"), "status: [").unwrap();
    put(&host, &Package::of(Guest::Rust, "other", "1.0.0"), "misnamed/1.0.0").await;
    put(&host, &Package::of(Guest::Rust, "version", "1.0.0"), "version/2.0.0").await;
    put(&host, &Package::of(Guest::Rust, "good", "1.0.0"), "good/1.0.0").await;
    std::fs::create_dir_all(host.plugins().join("broken/1.0.0")).unwrap();
    std::fs::write(host.plugins().join("broken/1.0.0/manifest.yaml"), "id: [").unwrap();
    std::fs::create_dir_all(host.plugins().join("notes/2026")).unwrap();
    std::os::unix::fs::symlink("/etc", host.plugins().join("linked")).unwrap();
    std::fs::create_dir(host.plugins().join("manifest-link")).unwrap();
    std::fs::create_dir(host.plugins().join("manifest-link/1.0.0")).unwrap();
    let inside = host.plugins().join("manifest-link/1.0.0/manifest.yaml");
    std::os::unix::fs::symlink(host.plugins().join("good/1.0.0/manifest.yaml"), inside).unwrap();
    host.spawn().await;
    eventually("the good one is registered", || async { host.get("/api/plugins/good").await.status == 200 }).await;
    let report = sync(&host).await;
    assert_eq!(ids(&report, "added"), Vec::<String>::new());
    let errors = errors(&host, &report);
    let paths: Vec<_> = errors.iter().map(|(path, _)| path.as_str()).collect();
    let expected = ["/broken/1.0.0", "/linked", "/manifest-link/1.0.0", "/misnamed/1.0.0", "/record", "/version/2.0.0"];
    assert_eq!(paths, expected, "{errors:?}");
    assert!(errors[0].1.starts_with("pkgtar: manifest invalid: "), "{errors:?}");
    assert_eq!(errors[3].1, "the manifest's id \"other\" is not the folder's name \"misnamed\"");
    assert!(errors[4].1.contains("record.yml, that was not read"), "{errors:?}");
    assert_eq!(errors[5].1, "the manifest's version \"1.0.0\" is not the folder's name \"2.0.0\"");
    assert_eq!(std::fs::read_to_string(host.plugins().join("record.yml")).unwrap(), "status: [", "not replaced");
    let listed = host.get("/api/plugins").await.expect(200)["plugins"].as_array().unwrap().clone();
    let listed: Vec<_> = listed.iter().map(|plugin| (plugin["id"].as_str(), plugin["status"].as_str())).collect();
    assert_eq!(listed, [(Some("good"), Some("disabled")), (Some("record"), Some("error"))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn syncs_at_once_take_turns_and_each_thing_is_done_once() {
    let host = Host::start_with(Settings::toml(&format!("{FAST}\n[limits]\nsyncs = 3\n"))).await;
    put(&host, &Package::of(Guest::Rust, "put", "1.0.0"), "put/1.0.0").await;
    let slow = Package::of(Guest::Rust, "dropped", "1.0.0").switches(&json!({"slow_start_ms": 4000}));
    drop_package(&host, &slow, "dropped.tar.gz").await;
    let calls = (0..6).map(|_| host.post("/api/plugins/sync", json!(null)));
    let answers = futures_util::future::join_all(calls).await;
    let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!(done.len(), 3, "{refused:?}");
    assert!(refused.iter().all(|a| a.status == 429 && a.body["code"] == "too_many_syncs"), "{refused:?}");
    let all = |key: &str| done.iter().flat_map(|answer| ids(&answer.body, key)).collect::<Vec<_>>();
    assert_eq!((all("added"), all("installed")), (vec!["put".to_owned()], vec!["dropped".to_owned()]));
    assert!(done.iter().all(|answer| answer.body["errors"] == json!([])), "{done:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn syncs_during_crash_loops_and_commands_leave_every_plugin_lawful() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let archives: Vec<_> = futures_util::future::join_all((0..4).map(|n| async move {
        let package = Package::of(Guest::Rust, &format!("loop{n}"), "1.0.0");
        package.switches(&json!({"exit_after_handshake_ms": 60})).archive().await
    }))
    .await;
    for archive in &archives {
        host.upload(archive.clone()).await.expect(201);
    }
    let end = tokio::time::Instant::now() + Duration::from_secs(6);
    let operators = (0..4).map(|n| {
        let (host, archive) = (&host, &archives[n]);
        async move {
            let id = format!("loop{n}");
            while tokio::time::Instant::now() < end {
                let mut answers = vec![host.command(&id, "disable").await, host.command(&id, "enable").await];
                answers.push(host.post("/api/plugins/sync", json!(null)).await);
                if n == 0 {
                    answers.extend([host.uninstall(&id).await, host.upload(archive.clone()).await]);
                }
                let lawful = |status| matches!(status, 200 | 201 | 404 | 409 | 429 | 500);
                assert!(answers.iter().all(|answer| lawful(answer.status)), "{answers:?}");
                let internal = answers.iter().filter(|answer| answer.body["code"] == "internal").count();
                assert_eq!(internal, 0, "{answers:?}");
            }
        }
    });
    futures_util::future::join_all(operators).await;
    let report = sync(&host).await;
    assert_eq!((&report["missing"], &report["errors"]), (&json!([]), &json!([])), "{report}");
    for plugin in host.get("/api/plugins").await.expect(200)["plugins"].as_array().unwrap() {
        let status = plugin["status"].as_str().unwrap();
        assert!(["active", "error", "disabled"].contains(&status), "{plugin}");
    }
    for n in 0..4 {
        // The first may have been refused its last install, while a sync looked at what was left of it.
        let removed = host.uninstall(&format!("loop{n}")).await;
        assert!(removed.status == 200 || (n == 0 && removed.status == 404), "{removed:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lifecycle_events_reach_the_other_plugins_in_order() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let watch = |text: String| text.replace("\"shell.>\"", "\"shell.>\", \"plugin.lifecycle.*\"");
    host.install(&Package::of(Guest::Rust, "watcher", "1.0.0").manifest(watch)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0").manifest(watch)).await;
    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    eventually("it was started again", || async { host.plugin("demo").await["restart_count"] == 1 }).await;
    host.command("demo", "disable").await.expect(200);
    host.uninstall("demo").await.expect(200);
    let events = host.events("watcher", 6).await;
    let told: Vec<_> = events
        .iter()
        .map(|event| {
            let payload = &event["payload"];
            assert_eq!(payload["plugin_id"], "demo", "{event}");
            (event["event_type"].as_str().unwrap(), payload["from"].as_str(), payload["restart_count"].clone())
        })
        .collect();
    let row = |state, from, count| (state, from, json!(count));
    let expected = [
        row("plugin.lifecycle.registered", None, 0),
        row("plugin.lifecycle.active", Some("registered"), 0),
        row("plugin.lifecycle.error", Some("active"), 0),
        row("plugin.lifecycle.active", Some("error"), 1),
        row("plugin.lifecycle.disabled", Some("active"), 1),
        row("plugin.lifecycle.uninstalled", Some("disabled"), 1),
    ];
    assert_eq!(told, expected);
    let error = &events[2]["payload"];
    assert!(error["reason"].as_str().unwrap().contains("signal 9") && error["restarting"] == true, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_but_the_host_publishes_lifecycle_events() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(Guest::Rust, "lifecycle.fake", "1.0.0")).await;
    let emit = json!([{"rpc": "EmitEvent", "request": {"event_name": "active", "payload": {}}}]);
    let result = eventually_some("the plugin has found its host", || async {
        let result = host.host_calls("lifecycle.fake", emit.clone()).await.remove(0);
        (result["code"] != "Unavailable").then_some(result)
    })
    .await;
    assert_eq!((&result["ok"], &result["code"]), (&json!(false), &json!("PermissionDenied")), "{result}");
    assert!(result["message"].as_str().unwrap().contains("where the host alone publishes"), "{result}");
    let event = json!({"subject": "plugin.lifecycle.active", "payload": {}});
    let refused = host.post("/api/v1/events", event).await.expect(400);
    assert_eq!(refused["code"], "reserved_subject");
}
const REQUIRE: &str = "[install]\nsignatures = \"require\"\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_requires_signatures_starts_a_folder_only_when_a_trusted_key_signed_it() {
    if !has_openssl() {
        return;
    }
    let mut host = Host::start_with(Settings::toml(&format!("{FAST}{REQUIRE}"))).await;
    let key = OpensslKey::new();
    let signed = |id: &str| Package::of(Guest::Rust, id, "1.0.0").signed(|bytes| key.sign_named(bytes));
    put(&host, &Package::of(Guest::Rust, "bare", "1.0.0"), "bare/1.0.0").await;
    std::fs::remove_file(host.plugins().join("bare/1.0.0/checksums.txt")).unwrap();
    put(&host, &Package::of(Guest::Rust, "unsigned", "1.0.0"), "unsigned/1.0.0").await;
    put(&host, &signed("changed"), "changed/1.0.0").await;
    std::fs::write(host.plugins().join("changed/1.0.0/more"), "x").unwrap();
    put(&host, &signed("signed"), "signed/1.0.0").await;
    assert_eq!(ids(&sync(&host).await, "added"), ["bare", "changed", "signed", "unsigned"]);

    let stranger =
        format!("the package counts as unsigned: its signature is right, of the key {}", key.public_base64());
    for (id, reason) in [
        ("bare", "pkgtar: missing checksums.txt"),
        ("unsigned", "the package is unsigned: only its checksums were verified"),
        ("changed", "pkgtar: file not listed in checksums.txt: more"),
        ("signed", &stranger),
    ] {
        let body = host.command(id, "enable").await.expect(400);
        assert_eq!(body["code"], "signature_required");
        let text = body["error"].as_str().unwrap();
        let start = format!(
            "plugin \"{id}\" was put into the plugins folder by hand and install.signatures is \"require\": {reason}"
        );
        assert!(text.starts_with(&start), "{text}");
        assert!(text.ends_with("beside its files, or set it to \"warn\""), "{text}");
        let record = host.plugin(id).await;
        assert_eq!((&record["status"], &record["signed"]), (&json!("disabled"), &json!(false)));
    }
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());

    let body = json!({"name": "us", "key": key.public_pem(), "plugins": ["signed"]});
    host.post("/api/v1/trust/keys", body).await.expect(201);
    host.command("signed", "enable").await.expect(200);
    let record = host.plugin("signed").await;
    assert_eq!(
        json!([record["signed"], record["signer"], record["signer_key"], record["sideloaded"]]),
        json!([true, "us", key.public_base64(), null])
    );
    assert!(record["executable_sha256"].is_string() && !record.to_string().contains("taken over"), "{record}");
    // As good as a package: what it was signed with counts for the install, not for ever.
    std::fs::remove_file(host.home().join("trust/us.pub")).unwrap();
    host.kill();
    host.spawn().await;
    host.status("signed", "active").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_nothing_vouches_for_runs_with_a_warning_until_signatures_are_required() {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    put(&host, &Package::of(Guest::Rust, "demo", "1.0.0"), "demo/1.0.0").await;
    sync(&host).await;
    host.command("demo", "enable").await.expect(200);
    let record = host.plugin("demo").await;
    let warning = "taken over from the plugins folder, and nothing vouches for its files: the package is unsigned: only its \
                   checksums were verified";
    assert_eq!((&record["warnings"], &record["sideloaded"]), (&json!([warning]), &json!(true)));
    assert_eq!(host.stop().await, Some(0));
    host.set_toml(&format!("{FAST}{REQUIRE}"));
    host.spawn().await;
    let record = host.status("demo", "error").await;
    assert_eq!(record["restarting"], false);
    assert!(record["last_error"].as_str().unwrap().contains("install.signatures is \"require\""), "{record}");
    assert_eq!(host.recorded("demo", "starts.jsonl").len(), 1, "it was not started again");
    host.command("demo", "enable").await.expect(400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_without_checksums_comes_back_after_a_crash_in_its_upgrade() {
    for failpoint in ["upgrade.held", "upgrade.undoing"] {
        let mut host = Host::start_with(Settings::toml(FAST)).await;
        put(&host, &Package::of(Guest::Rust, "demo", "1.0.0"), "demo/1.0.0").await;
        std::fs::remove_file(host.plugins().join("demo/1.0.0/checksums.txt")).unwrap();
        sync(&host).await;
        host.command("demo", "enable").await.expect(200);
        host.arm(failpoint);
        let lame = Package::of(Guest::Rust, "demo", "1.1.0").switches(&json!({"crash_before_handshake": 3}));
        host.upload(lame.archive().await).await;
        host.kill();
        host.disarm();
        host.spawn().await;
        eventually(&format!("{failpoint}: the version before runs"), || async {
            let record = host.plugin("demo").await;
            let ended =
                ["rolled_back", "interrupted"].contains(&record["last_upgrade"]["outcome"].as_str().unwrap_or(""));
            ended && record["version"] == "1.0.0" && record["status"] == "active" && record["sideloaded"] == true
        })
        .await;
    }
}
