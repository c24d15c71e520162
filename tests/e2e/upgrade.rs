//! Another version over an installed one: consent, dry run, the way back, retention, the oldest host a plugin runs on
//! (issue "Upgrade and consent"; contract/manifest.md §6–8 and §11, lifecycle.md §10 rows 24, 25, 38; field cases 45,
//! 46).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    on_both,
    support::{
        FileServer, Guest, Host, OpensslKey, Package, Settings, eventually, eventually_some, files::File, has_openssl,
        host::Answer,
    },
};

const FAST: &str = r#"
[timing]
restart_delays = ["100ms", "200ms"]
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
start_timeout = "10s"
"#;

async fn host() -> Host {
    Host::start_with(Settings::toml(FAST)).await
}

fn lame(guest: Guest, version: &str) -> Package {
    Package::of(guest, "demo", version).switches(&json!({"crash_before_handshake": 3}))
}

fn wider(version: &str) -> Package {
    let more = "capabilities:\n  secrets: true\n  api_write: [tasks]";
    let package = Package::of(Guest::Rust, "demo", version);
    package.manifest(|text| text.replace("capabilities:", more).replace("\"task.*\"", "\"task.>\""))
}

fn sha256(archive: &[u8]) -> String {
    use sha2::Digest;
    crate::support::package::hex(&sha2::Sha256::digest(archive))
}

async fn rollback(host: &Host) -> Answer {
    host.command("demo", "rollback").await
}

/// The record without what differs from one moment to the next.
async fn stable(host: &Host) -> Value {
    let mut record = host.record("demo").await;
    for key in ["installed_at", "last_upgrade"] {
        record.as_object_mut().unwrap().remove(key);
    }
    record
}

async fn answers(host: &Host) -> bool {
    host.get("/api/plugins/demo/webhooks/echo").await.status == 200
}

async fn set_state(host: &Host, value: u32) {
    let request = json!({"scope": "s", "scope_id": "", "key": "k", "value": {"v": value}});
    let results = host.host_calls("demo", json!([{"rpc": "SetState", "request": request}])).await;
    assert_eq!(results[0]["ok"], true, "{results:?}");
}

async fn state(host: &Host) -> Value {
    let calls = json!([{"rpc": "GetState", "request": {"scope": "s", "scope_id": "", "key": "k"}}]);
    host.host_calls("demo", calls).await[0]["response"]["value"]["v"].clone()
}

on_both!(an_upgrade_that_does_not_start_is_undone_and_the_version_before_runs_again, |guest| {
    let host = host().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    set_state(&host, 7).await;
    let before = stable(&host).await;
    let body = host.upload(lame(guest, "1.1.0").archive().await).await.expect(422);
    assert_eq!(body["code"], "upgrade_failed");
    let text = body["error"].as_str().unwrap();
    assert!(text.starts_with("plugin \"demo\": version 1.1.0 did not come up, 1.0.0 runs again: "), "{text}");
    assert!(text.contains("code 3"), "{text}");
    assert_eq!((&body["details"]["version"], &body["details"]["now"]), (&json!("1.1.0"), &json!("1.0.0 runs again")));

    assert_eq!(stable(&host).await, before);
    let note = host.plugin("demo").await["last_upgrade"].clone();
    assert_eq!((&note["from"], &note["version"]), (&json!("1.0.0"), &json!("1.1.0")));
    assert_eq!((&note["outcome"], &note["kind"]), (&json!("rolled_back"), &json!("install")));
    assert_eq!(note["reason"], body["details"]["reason"]);
    assert_eq!(host.versions("demo"), ["1.0.0"], "the failed version is removed");
    assert_eq!(host.plugin_processes().len(), 1);
    assert!(answers(&host).await);
    assert_eq!(state(&host).await, 7.0);
});

on_both!(an_upgrade_of_a_disabled_plugin_starts_the_new_version_or_leaves_the_old_one_disabled, |guest| {
    let host = host().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    host.command("demo", "disable").await.expect(200);
    let body = host.upload(lame(guest, "1.1.0").archive().await).await.expect(422);
    assert_eq!(body["details"]["now"], "1.0.0 is installed again, in status disabled as before");
    let record = host.plugin("demo").await;
    assert_eq!((&record["version"], &record["status"]), (&json!("1.0.0"), &json!("disabled")));
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());

    let body = host.install(&Package::of(guest, "demo", "1.2.0")).await;
    assert_eq!((&body["plugin"]["version"], &body["plugin"]["status"]), (&json!("1.2.0"), &json!("active")));
    assert_eq!(body["plugin"]["last_upgrade"]["outcome"], "done");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_over_a_failed_version_is_tried_and_a_failure_leaves_it_as_it_was() {
    let host = host().await;
    let body = host.upload(lame(Guest::Rust, "1.0.0").archive().await).await.expect(201);
    assert_eq!(body["plugin"]["status"], "error", "a first install has nothing to go back to: {body}");
    let body = host.upload(lame(Guest::Rust, "1.1.0").archive().await).await.expect(422);
    assert_eq!(body["details"]["now"], "1.0.0 is installed again, in status error as before");
    let record = host.plugin("demo").await;
    assert_eq!((&record["version"], &record["status"]), (&json!("1.0.0"), &json!("error")));
    assert!(record["last_error"].is_string(), "{record}");
    host.install(&Package::of(Guest::Rust, "demo", "1.2.0")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_asks_for_more_is_refused_until_it_is_accepted_by_name_and_for_this_package() {
    let host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let (before, pid) = (host.record("demo").await, host.plugin_pid("demo"));
    let archive = wider("1.1.0").archive().await;
    let digest = sha256(&archive);

    let shown = host.upload_with("?dry_run=true", archive.clone()).await.expect(200);
    let difference = json!({
        "installed": "1.0.0", "offered": "1.1.0", "direction": "upgrade",
        "widened": ["events:task.>", "api_write:tasks", "secrets"], "narrowed": [],
        "signer_installed": null, "signer_key_installed": null, "signer_offered": null, "signer_key_offered": null,
        "signature_offered": "absent", "signer_change": "none", "needs": ["capabilities"],
    });
    assert_eq!((&shown["difference"], &shown["sha256"]), (&difference, &json!(digest)));

    for query in ["", "?accept=signer,downgrade"] {
        let body = host.upload_with(query, archive.clone()).await.expect(409);
        assert_eq!(body["code"], "consent_needed");
        assert_eq!(body["details"], json!({"difference": difference, "accept": "capabilities", "sha256": digest}));
        let text = body["error"].as_str().unwrap();
        assert!(text.contains("asks for more than 1.0.0: events:task.>, api_write:tasks, secrets"), "{text}");
        assert!(text.contains("accept=capabilities"), "{text}");
    }
    let other = format!("?accept=capabilities&sha256={}", "0".repeat(64));
    let body = host.upload_with(&other, archive.clone()).await.expect(409);
    assert_eq!((&body["code"], &body["details"]["found"]), (&json!("package_differs"), &json!(digest)));
    let body = host.upload_with("?accept=everything", archive.clone()).await.expect(400);
    assert_eq!(body["code"], "invalid_query");
    assert_eq!((host.record("demo").await, host.plugin_pid("demo")), (before, pid), "nothing was touched");
    assert_eq!(host.versions("demo"), ["1.0.0"]);

    let query = format!("?accept=capabilities&sha256={}", digest.to_uppercase());
    let body = host.upload_with(&query, archive).await.expect(201);
    assert_eq!((&body["plugin"]["version"], &body["plugin"]["status"]), (&json!("1.1.0"), &json!("active")));
    host.install(&Package::of(Guest::Rust, "demo", "1.2.0")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_capability_consent_shows_the_difference_and_does_not_ask() {
    let host = Host::start_with(Settings::toml("[install]\ncapability_consent = false\n")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let archive = wider("1.1.0").archive().await;
    let shown = host.upload_with("?dry_run=true", archive.clone()).await.expect(200);
    assert_eq!(shown["difference"]["widened"], json!(["events:task.>", "api_write:tasks", "secrets"]));
    assert_eq!(shown["difference"]["needs"], json!([]));
    host.upload(archive).await.expect(201);
    let older = Package::of(Guest::Rust, "demo", "0.9.0").archive().await;
    assert_eq!(host.upload(older).await.expect(409)["details"]["accept"], "downgrade", "of its own kind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_version_needs_consent_also_when_it_is_still_on_disk() {
    let host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
    for version in ["1.0.0", "1.1.0-rc.1"] {
        let archive = Package::of(Guest::Rust, "demo", version).archive().await;
        let body = host.upload(archive.clone()).await.expect(409);
        assert_eq!(body["details"]["difference"]["direction"], "downgrade", "{body}");
        assert!(body["error"].as_str().unwrap().contains(&format!("version {version} goes back from 1.1.0")), "{body}");
    }
    let archive = Package::of(Guest::Rust, "demo", "1.0.0").archive().await;
    let body = host.upload_with("?accept=downgrade", archive).await.expect(201);
    assert_eq!((&body["plugin"]["version"], &body["plugin"]["previous_version"]), (&json!("1.0.0"), &json!("1.1.0")));
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_verifies_everything_and_leaves_nothing() {
    let host = Host::start_with(Settings::toml("[install]\nallow_private_addresses = true\n")).await;
    let package = Package::of(Guest::Rust, "demo", "1.0.0").file("assets/x", "x");
    let archive = package.archive().await;
    let server = FileServer::start(&[("/p", File::Content(archive.clone()))]).await;
    let uploaded = host.upload_with("?dry_run=true", archive.clone()).await.expect(200);
    let fetched = host.post("/api/plugins/install?dry_run=true", json!({"url": server.url("/p")})).await.expect(200);
    assert_eq!(uploaded, fetched);
    assert_eq!((&uploaded["dry_run"], &uploaded["manifest"]["id"]), (&json!(true), &json!("demo")));
    assert_eq!((&uploaded["size"], &uploaded["signature"]), (&json!(archive.len()), &json!("absent")));
    assert!(uploaded["unpacked_size"].as_u64() > Some(1000) && uploaded["files"] == 4, "{uploaded}");
    let here = kandev_host::domain::target::host_platform();
    let platforms = uploaded["platforms"].as_array().unwrap();
    assert!(platforms.contains(&json!({"platform": here, "present": true})), "{uploaded}");
    assert_eq!(uploaded["difference"]["direction"], "first");
    assert_eq!(uploaded["difference"]["needs"], json!([]));
    assert!(!uploaded["warnings"].as_array().unwrap().is_empty());

    let spoilt = package.archive_with_checksums("nonsense\n").await;
    assert_eq!(host.upload_with("?dry_run=true", spoilt).await.expect(400)["code"], "malformed_checksums");
    let newer = package.clone().manifest(|text| text + "min_kandev_version: \"1.0\"\n").archive().await;
    assert_eq!(host.upload_with("?dry_run=true", newer).await.expect(400)["code"], "host_too_old");
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}));
    assert!(!host.plugins().join("demo").exists());
    let staging = host.plugins().join(".staging");
    eventually("nothing is staged", || async { std::fs::read_dir(&staging).unwrap().next().is_none() }).await;

    host.upload(archive.clone()).await.expect(201);
    let same = host.upload_with("?dry_run=true", archive).await.expect(200);
    assert_eq!(same["difference"]["direction"], "same");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_over_an_unreadable_record_says_what_the_install_that_repairs_it_does_not_compare() {
    let mut host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    assert_eq!(host.stop().await, Some(0));
    let record = host.plugins().join("demo.yml");
    std::fs::write(&record, "status: [").unwrap();
    host.spawn().await;
    let archive = wider("1.1.0").archive().await;
    let preview = host.upload_with("?dry_run=true", archive.clone()).await.expect(200);
    let told = "the record demo.yml cannot be read: neither capabilities nor the signer can be compared with what was \
                installed, and installing this package replaces it without asking for consent";
    assert_eq!(preview["warnings"].as_array().unwrap().last(), Some(&json!(told)), "{preview}");
    assert_eq!((&preview["difference"]["direction"], &preview["difference"]["needs"]), (&json!("first"), &json!([])));
    assert_eq!(std::fs::read(&record).unwrap(), b"status: [", "a dry run repairs nothing");
    assert_eq!(host.versions("demo"), ["1.0.0"]);
    host.upload(archive).await.expect(201);
    assert_eq!(host.status("demo", "active").await["version"], "1.1.0");
}

on_both!(a_rollback_goes_to_the_version_before_and_a_second_one_returns, |guest| {
    let host = host().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    assert_eq!(rollback(&host).await.expect(409)["code"], "no_earlier_version");
    host.install(&Package::of(guest, "demo", "1.1.0")).await;
    set_state(&host, 3).await;
    for (from, to) in [("1.1.0", "1.0.0"), ("1.0.0", "1.1.0")] {
        let body = rollback(&host).await.expect(200);
        let record = host.record("demo").await;
        assert_eq!(body, json!({"plugin": record}));
        assert_eq!((&record["version"], &record["previous_version"]), (&json!(to), &json!(from)));
        assert_eq!((&record["status"], &record["last_upgrade"]["outcome"]), (&json!("active"), &json!("done")));
        assert_eq!(record["last_upgrade"]["kind"], "rollback");
        assert_eq!(record["install_path"], host.plugins().join("demo").join(to).to_str().unwrap());
        assert_eq!(host.plugin_processes().len(), 1);
        assert_eq!(state(&host).await, 3.0, "what the plugin stored stays");
    }
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0"]);
    host.command("demo", "disable").await.expect(200);
    let body = rollback(&host).await.expect(200);
    assert_eq!((&body["plugin"]["version"], &body["plugin"]["status"]), (&json!("1.0.0"), &json!("disabled")));
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    assert_eq!(host.command("absent", "rollback").await.expect(404)["code"], "plugin_not_found");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_version_that_was_changed_on_disk_is_not_run() {
    let host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
    let (before, pid) = (host.record("demo").await, host.plugin_pid("demo"));
    std::fs::write(host.plugins().join("demo/1.0.0/extra"), "x").unwrap();
    let body = rollback(&host).await.expect(409);
    assert_eq!(body["code"], "earlier_version_broken");
    assert!(body["error"].as_str().unwrap().contains("kept version 1.0.0 cannot be used"), "{body}");
    assert!(body["error"].as_str().unwrap().contains("file not listed in checksums.txt: extra"), "{body}");
    assert_eq!((host.record("demo").await, host.plugin_pid("demo")), (before.clone(), pid));
    std::fs::remove_dir_all(host.plugins().join("demo/1.0.0")).unwrap();
    assert_eq!(rollback(&host).await.expect(409)["code"], "no_earlier_version");
    assert_eq!((host.record("demo").await, host.plugin_pid("demo")), (before, pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_does_not_come_up_returns_to_the_present_version_and_keeps_both() {
    let host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"unhealthy_when_file": "sick"}))).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
    std::fs::write(host.data("demo").join("sick"), "").unwrap();
    let body = rollback(&host).await.expect(422);
    assert_eq!((&body["code"], &body["details"]["now"]), (&json!("upgrade_failed"), &json!("1.1.0 runs again")));
    let record = host.plugin("demo").await;
    assert_eq!((&record["version"], &record["status"]), (&json!("1.1.0"), &json!("active")));
    assert_eq!(record["previous_version"], "1.0.0");
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0"]);
    assert_eq!(
        (&record["last_upgrade"]["kind"], &record["last_upgrade"]["outcome"]),
        (&json!("rollback"), &json!("rolled_back"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_many_updates_the_active_and_one_earlier_version_are_kept_and_the_data_untouched() {
    let host = host().await;
    for version in ["1.0.0", "1.1.0", "1.2.0", "1.10.0", "1.11.0", "2.0.0"] {
        host.install(&Package::of(Guest::Rust, "demo", version)).await;
    }
    assert_eq!(host.versions("demo"), ["1.11.0", "2.0.0"]);
    assert_eq!(host.recorded("demo", "starts.jsonl").len(), 6, "every version wrote into one data folder");
    // A folder that an operator put there is no package of this plugin.
    let foreign = host.plugins().join("demo/backup");
    std::fs::create_dir(&foreign).unwrap();
    host.upload(lame(Guest::Rust, "2.1.0").archive().await).await.expect(422);
    assert_eq!(host.versions("demo"), ["1.11.0", "2.0.0", "backup"], "a failed update leaves both");
    host.install(&Package::of(Guest::Rust, "demo", "2.2.0")).await;
    assert_eq!(host.versions("demo"), ["2.0.0", "2.2.0", "backup"]);
}

on_both!(of_two_upgrades_at_once_exactly_one_wins_and_its_folder_is_there, |guest| {
    let host = host().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let one = Package::of(guest, "demo", "1.1.0").switches(&json!({"slow_start_ms": 4000})).archive().await;
    // Small, so that it is unpacked and refused long before the first one has started.
    let two = Package::with_program("#!/bin/sh\n", "demo", "1.2.0").archive().await;
    let (first, second) = tokio::join!(host.upload(one), async {
        eventually("the first is being started", || async { host.plugin("demo").await["version"] == "1.1.0" }).await;
        host.upload(two).await
    });
    first.expect(201);
    assert_eq!(second.expect(409)["code"], "plugin_busy");
    let record = host.status("demo", "active").await;
    assert_eq!((&record["version"], &record["previous_version"]), (&json!("1.1.0"), &json!("1.0.0")));
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0"]);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_versions_are_kept_after_the_first_good_start_whatever_came_before_it() {
    let mut host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
    let slow = Package::of(Guest::Rust, "demo", "1.2.0").switches(&json!({"slow_start_ms": 2000}));
    let (upload, ()) = tokio::join!(host.upload(slow.archive().await), async {
        eventually("it is being started", || async { host.plugin("demo").await["version"] == "1.2.0" }).await;
        host.command("demo", "disable").await.expect(200);
    });
    upload.expect(201);
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0", "1.2.0"], "what never ran prunes nothing");
    host.command("demo", "enable").await.expect(200);
    assert_eq!(host.versions("demo"), ["1.1.0", "1.2.0"], "enable has proved it");

    // The host dies when all is done but the pruning.
    upload_and_die(&mut host, "upgrade.pruning", "", Package::of(Guest::Rust, "demo", "1.3.0").archive().await).await;
    assert_eq!(host.status("demo", "active").await["previous_version"], "1.2.0");
    eventually("two are kept", || async { host.versions("demo") == ["1.2.0", "1.3.0"] }).await;
    assert!(host.data("demo").is_dir());

    // The folder of what was undone goes too, although it is the newest.
    upload_and_die(&mut host, "upgrade.undone", "", lame(Guest::Rust, "1.4.0").archive().await).await;
    eventually("the failed one is gone", || async { host.versions("demo") == ["1.2.0", "1.3.0"] }).await;
    host.status("demo", "active").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_can_overrule_the_start_of_an_upgrade() {
    let host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let slow = |version: &str| Package::of(Guest::Rust, "demo", version).switches(&json!({"slow_start_ms": 5000}));
    let archive = slow("1.1.0").archive().await;
    let (upload, ()) = tokio::join!(host.upload(archive), async {
        eventually("it is being started", || async { host.plugin("demo").await["version"] == "1.1.0" }).await;
        host.command("demo", "disable").await.expect(200);
    });
    let body = upload.expect(201);
    assert!(body["warning"].as_str().unwrap().contains("aborted"), "{body}");
    let record = host.plugin("demo").await;
    assert_eq!((&record["version"], &record["status"]), (&json!("1.1.0"), &json!("disabled")));
    assert_eq!(record["last_upgrade"]["outcome"], "done", "{record}");
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0"], "what never ran prunes nothing");

    let archive = slow("1.2.0").archive().await;
    let (upload, ()) = tokio::join!(host.upload(archive), async {
        eventually("it is being started", || async { host.plugin("demo").await["version"] == "1.2.0" }).await;
        host.uninstall("demo").await.expect(200);
    });
    assert_eq!(upload.expect(409)["code"], "overtaken");
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}));
    eventually("no trace is left", || async { !host.plugins().join("demo").exists() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_wants_a_newer_host_is_kept_down_at_boot_enable_and_rollback() {
    let mut host = host().await;
    let wants = |id: &str, version: &str, minimum: &str| {
        let line = format!("min_kandev_version: {minimum}\n");
        Package::of(Guest::Rust, id, version).manifest(|text| text + &line)
    };
    host.install(&wants("runs", "1.0.0", "v0.91.0")).await;
    host.install(&wants("off", "1.0.0", "0.91")).await;
    host.command("off", "disable").await.expect(200);
    host.install(&wants("demo", "1.0.0", "0.91.0")).await;
    host.install(&wants("demo", "1.1.0", "0.88.0")).await;
    host.stop().await;
    host.set_toml(&format!("compat_version = \"0.90.0\"\n{FAST}"));
    host.spawn().await;

    let record = host.status("runs", "error").await;
    let text =
        "plugins: requires kandev >= v0.91.0, running 0.90.0: update this host, or raise its setting compat_version";
    assert_eq!((&record["last_error"], &record["restarting"]), (&json!(text), &json!(false)));
    let body = host.command("runs", "enable").await.expect(400);
    assert_eq!((&body["code"], &body["error"]), (&json!("host_too_old"), &json!(text)));
    assert_eq!(host.recorded("runs", "starts.jsonl").len(), 1, "it was not started again");
    assert_eq!(host.command("off", "enable").await.expect(400)["code"], "host_too_old");
    assert_eq!(host.plugin("off").await["status"], "disabled");
    host.status("demo", "active").await;
    assert_eq!(rollback(&host).await.expect(400)["code"], "host_too_old");
    assert_eq!(host.plugin("demo").await["version"], "1.1.0");

    host.stop().await;
    host.set_toml(&format!("compat_version = \"dev\"\n{FAST}"));
    host.spawn().await;
    host.command("runs", "enable").await.expect(200);
    assert_eq!(host.plugin("runs").await["last_error"], Value::Null);
}

/// The rule of docs/performance.md, with a plugin whose start is long enough to be measured on a busy machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_refused_during_an_upgrade_for_at_most_one_and_a_half_times_the_start() {
    let host = Host::start().await;
    let slow = |version: &str| Package::of(Guest::Rust, "demo", version).switches(&json!({"slow_start_ms": 1500}));
    host.install(&slow("1.0.0")).await;
    host.command("demo", "disable").await.expect(200);
    let began = Instant::now();
    host.command("demo", "enable").await.expect(200);
    let start = began.elapsed();
    let archive = slow("1.1.0").file("assets/large", vec![7; 20_000_000]).archive().await;
    let upload = async { host.upload(archive).await.expect(201) };
    let watch = async {
        let (mut refused, mut longest) = (None::<Instant>, Duration::ZERO);
        while host.plugin("demo").await["last_upgrade"]["outcome"] != "done" || refused.is_some() {
            match answers(&host).await {
                true => refused = None,
                false => longest = longest.max(refused.get_or_insert_with(Instant::now).elapsed()),
            }
        }
        longest
    };
    let (_, longest) = tokio::join!(upload, watch);
    // Other work on the machine may have begun in between.
    host.command("demo", "disable").await.expect(200);
    let began = Instant::now();
    host.command("demo", "enable").await.expect(200);
    let start = start.max(began.elapsed());
    assert!(longest > Duration::from_millis(500), "the window was seen: {longest:?}");
    assert!(longest <= start.mul_f64(1.5), "refused for {longest:?}, its own start takes {start:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signer_that_is_dropped_or_changed_needs_consent_and_a_rollback_brings_the_signer_back() {
    if !has_openssl() {
        return;
    }
    let host = host().await;
    let (one, two) = (OpensslKey::new(), OpensslKey::new());
    for (name, key) in [("one", &one), ("two", &two)] {
        let body = json!({"name": name, "key": key.public_pem(), "plugins": ["demo"]});
        host.post("/api/v1/trust/keys", body).await.expect(201);
    }
    let package = |version: &str| Package::of(Guest::Rust, "demo", version);
    host.install(&package("1.0.0")).await;
    let signed = host.install(&package("1.1.0").signed(|bytes| one.sign(bytes))).await;
    assert_eq!(signed["plugin"]["signer"], "one", "a signer that comes is no question");

    let unsigned = package("1.2.0").archive().await;
    let body = host.upload(unsigned.clone()).await.expect(409);
    let difference = &body["details"]["difference"];
    assert_eq!((&difference["signer_change"], &body["details"]["accept"]), (&json!("dropped"), &json!("signer")));
    assert!(
        body["error"].as_str().unwrap().contains("is signed by nobody, the installed version by \"one\""),
        "{body}"
    );
    let stranger = OpensslKey::new();
    let archive = package("1.2.0").signed(|bytes| stranger.sign_named(bytes)).archive().await;
    let text = host.upload(archive).await.expect(409)["error"].as_str().unwrap().to_owned();
    let told = format!("is signed by the key {}, which is not trusted for this plugin", stranger.public_base64());
    assert!(text.contains(&told) && !text.contains("nobody"), "{text}");
    let other = package("1.2.0").signed(|bytes| two.sign(bytes)).archive().await;
    let difference = host.upload(other).await.expect(409)["details"]["difference"].clone();
    assert_eq!((&difference["signer_change"], &difference["signer_offered"]), (&json!("changed"), &json!("two")));
    assert_eq!(host.plugin("demo").await["version"], "1.1.0");

    let body = host.upload_with("?accept=signer", unsigned).await.expect(201);
    assert_eq!((&body["plugin"]["signed"], &body["plugin"]["signer"]), (&json!(false), &Value::Null));
    let body = rollback(&host).await.expect(200);
    assert_eq!((&body["plugin"]["signed"], &body["plugin"]["signer"]), (&json!(true), &json!("one")));
    assert!(body["plugin"]["executable_sha256"].is_string(), "{body}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_signer_is_its_key_whatever_the_name_of_the_file_is() {
    if !has_openssl() {
        return;
    }
    let mut host = host().await;
    let (ours, other) = (OpensslKey::new(), OpensslKey::new());
    let trust = |name: &str, key: &OpensslKey| json!({"name": name, "key": key.public_pem(), "plugins": ["demo"]});
    host.post("/api/v1/trust/keys", trust("acme", &ours)).await.expect(201);
    let package =
        |version: &str, key: &OpensslKey| Package::of(Guest::Rust, "demo", version).signed(|bytes| key.sign(bytes));
    let record = host.install(&package("1.0.0", &ours)).await["plugin"].clone();
    assert_eq!((&record["signer"], &record["signer_key"]), (&json!("acme"), &json!(ours.public_base64())));

    let file = |name: &str| host.home().join(format!("trust/{name}.pub"));
    std::fs::rename(file("acme"), file("renamed")).unwrap();
    let record = host.install(&package("1.1.0", &ours)).await["plugin"].clone();
    assert_eq!((&record["signer"], &record["signer_key"]), (&json!("renamed"), &json!(ours.public_base64())));

    std::fs::remove_file(file("renamed")).unwrap();
    host.post("/api/v1/trust/keys", trust("renamed", &other)).await.expect(201);
    let body = host.upload(package("1.2.0", &other).archive().await).await.expect(409);
    assert_eq!(
        (&body["details"]["difference"]["signer_change"], &body["details"]["accept"]),
        (&json!("changed"), &json!("signer"))
    );
    let told = format!(
        "is signed by \"renamed\" (key {}), the installed version by \"renamed\" (key {})",
        other.public_base64(),
        ours.public_base64()
    );
    assert!(body["error"].as_str().unwrap().contains(&told), "{body}");

    // A record of before keys were noted: who it was cannot be told, so the next upgrade asks once.
    host.post("/api/v1/trust/keys", trust("ours", &ours)).await.expect(201);
    host.stop().await;
    let path = host.plugins().join("demo.yml");
    let text = std::fs::read_to_string(&path).unwrap();
    let older: Vec<_> = text.lines().filter(|line| !line.starts_with("signer_key:")).collect();
    std::fs::write(&path, older.join("\n") + "\n").unwrap();
    host.spawn().await;
    let archive = package("1.2.0", &ours).archive().await;
    let body = host.upload(archive.clone()).await.expect(409);
    assert!(body["error"].as_str().unwrap().contains("(its key is not on record)"), "{body}");
    host.upload_with("?accept=signer", archive).await.expect(201);
    host.install(&package("1.3.0", &ours)).await;
}

/// Uploads with the host dying at the named moment; then starts it again.
async fn upload_and_die(host: &mut Host, failpoint: &str, query: &str, archive: Vec<u8>) {
    host.arm(failpoint);
    host.upload_with(query, archive).await;
    eventually("the host is dead", || {
        let ended = host.try_exit();
        async move { ended }
    })
    .await;
    host.kill();
    host.disarm();
    host.spawn().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_ran_comes_back_after_a_crash_whatever_the_policy_is_by_then() {
    let mut host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let before = stable(&host).await;
    // What a plugin leaves in its own folder is no reason either.
    std::fs::write(host.plugins().join("demo/1.0.0/cache"), "x").unwrap();
    host.set_toml(&format!("{FAST}[install]\nsignatures = \"require\"\n"));
    upload_and_die(&mut host, "upgrade.undoing", "", lame(Guest::Rust, "1.1.0").archive().await).await;
    eventually("it is undone", || async { host.plugin("demo").await["last_upgrade"]["outcome"] == "rolled_back" })
        .await;
    host.status("demo", "active").await;
    assert_eq!(stable(&host).await, before, "the record is the one of before, not made anew");
    assert!(answers(&host).await);
    eventually("only its files are left", || async { host.versions("demo") == ["1.0.0"] }).await;
    eventually("nothing is kept any more", || async { hidden(&host).is_empty() }).await;
}

/// What the host keeps for itself in the plugin's folder.
fn hidden(host: &Host) -> Vec<String> {
    let entries = std::fs::read_dir(host.plugins().join("demo")).unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.starts_with('.')).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_whose_program_was_exchanged_does_not_come_back_after_a_crash() {
    let mut host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.arm("upgrade.undoing");
    host.upload(lame(Guest::Rust, "1.1.0").archive().await).await;
    host.kill();
    host.disarm();
    let program = host.plugins().join("demo/1.0.0").join(crate::support::package::executable_path());
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    host.spawn().await;
    eventually("it is told", || async {
        let note = host.plugin("demo").await["last_upgrade"].clone();
        note["reason"].as_str().is_some_and(|reason| reason.ends_with("; and 1.0.0 cannot be used any more"))
    })
    .await;
    assert_eq!(host.plugin("demo").await["status"], "error");
}

/// Puts a folder in the place of the record, as a disk that does not take it; what the record was comes back with
/// [`disk_takes_the_record`].
fn disk_refuses_the_record(host: &Host) {
    std::fs::rename(host.plugins().join("demo.yml"), host.home().join("kept.yml")).unwrap();
    std::fs::create_dir(host.plugins().join("demo.yml")).unwrap();
}

fn disk_takes_the_record(host: &Host) {
    std::fs::remove_dir(host.plugins().join("demo.yml")).unwrap();
    std::fs::rename(host.home().join("kept.yml"), host.plugins().join("demo.yml")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_cannot_be_noted_has_not_begun_then_or_later() {
    let mut host = Host::start_with(Settings::toml(&format!("{FAST}ask_timeout = \"3s\"\n"))).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
    let before = host.record("demo").await;
    let archive = Package::of(Guest::Rust, "demo", "1.2.0").archive().await;
    disk_refuses_the_record(&host);
    host.upload(archive.clone()).await.expect(500);
    rollback(&host).await.expect(500);
    assert_eq!(host.record("demo").await, before);
    assert!(answers(&host).await, "it was not stopped");
    assert_eq!((host.versions("demo"), hidden(&host)), (vec!["1.0.0".to_owned(), "1.1.0".to_owned()], vec![]));

    // What the host goes on trying to write is no change under way either.
    std::fs::remove_dir(host.plugins().join("demo.yml")).unwrap();
    let text = || std::fs::read_to_string(host.plugins().join("demo.yml")).unwrap_or_default();
    eventually("the record is written", || async { !text().is_empty() }).await;
    assert!(text().contains("outcome: done") && !text().contains("under_way"), "{}", text());
    host.kill();
    host.spawn().await;
    host.status("demo", "active").await;
    assert_eq!(host.record("demo").await, before);
    assert!(!host.log().contains("the host ended during a change of version"));
    host.upload(archive).await.expect(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_back_stays_until_the_record_before_is_on_disk_again() {
    let mut host = host().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let before = stable(&host).await;
    let slow = json!({"slow_start_ms": 1500, "crash_before_handshake": 3});
    let archive = Package::of(Guest::Rust, "demo", "1.1.0").switches(&slow).archive().await;
    let (failed, ()) = tokio::join!(host.upload(archive), async {
        let file = host.plugins().join("demo.yml");
        let recorded = || std::fs::read_to_string(&file).unwrap_or_default().contains("/1.1.0");
        eventually("the new record is on disk", || async { recorded() }).await;
        disk_refuses_the_record(&host);
    });
    let body = failed.expect(422);
    assert_eq!(body["code"], "upgrade_failed");
    assert_eq!(body["details"]["now"], "1.0.0 runs again, and its record could not be written yet");
    assert!(answers(&host).await, "the version before runs, whatever the disk does: {body}");
    assert_eq!(host.versions("demo"), ["1.0.0", "1.1.0"], "the record on disk speaks of it");
    assert_eq!(hidden(&host), [".before.yml"]);

    // The host ends before its disk is well.
    host.kill();
    disk_takes_the_record(&host);
    host.spawn().await;
    eventually("it is undone", || async { host.plugin("demo").await["last_upgrade"]["outcome"] == "rolled_back" })
        .await;
    host.status("demo", "active").await;
    assert_eq!(stable(&host).await, before);
    assert!(answers(&host).await);
    eventually("only its files are left", || async { host.versions("demo") == ["1.0.0"] }).await;
    eventually("nothing is kept any more", || async { hidden(&host).is_empty() }).await;
}

/// The kept version 1.0.0 and another package of that number: the marker tells them apart.
async fn with_kept(host: &Host) {
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0").file("assets/marker", "kept")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.1.0")).await;
}

/// Both versions are there, the kept one is the one of before, and a rollback runs it.
async fn the_way_back_is_whole(host: &Host) {
    eventually("both versions are there", || async {
        let record = host.plugin("demo").await;
        record["status"] == "active" && record["version"] == "1.1.0" && host.versions("demo") == ["1.0.0", "1.1.0"]
    })
    .await;
    eventually("nothing is kept any more", || async { hidden(host).is_empty() }).await;
    let marker = std::fs::read_to_string(host.plugins().join("demo/1.0.0/assets/marker")).unwrap();
    assert_eq!(marker, "kept");
    // A start may still be removing what it must not keep.
    let answer = eventually_some("the plugin is free", || async {
        let answer = rollback(host).await;
        (answer.body["code"] != "plugin_busy").then_some(answer)
    })
    .await;
    let body = answer.expect(200);
    assert_eq!((&body["plugin"]["version"], &body["plugin"]["status"]), (&json!("1.0.0"), &json!("active")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_package_of_the_kept_versions_number_leaves_the_kept_version() {
    let host = host().await;
    with_kept(&host).await;
    let archive = lame(Guest::Rust, "1.0.0").archive().await;
    let body = host.upload_with("?accept=downgrade", archive).await.expect(422);
    assert_eq!(body["details"]["now"], "1.1.0 runs again");
    assert_eq!(host.plugin("demo").await["previous_version"], "1.0.0");
    the_way_back_is_whole(&host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crash_while_a_package_takes_the_kept_versions_place_leaves_the_kept_version() {
    let archive = lame(Guest::Rust, "1.0.0").archive().await;
    for failpoint in ["upgrade.set_aside", "install.placed", "upgrade.recorded", "upgrade.undone"] {
        let mut host = host().await;
        with_kept(&host).await;
        upload_and_die(&mut host, failpoint, "?accept=downgrade", archive.clone()).await;
        println!("{failpoint}");
        the_way_back_is_whole(&host).await;
    }
}
