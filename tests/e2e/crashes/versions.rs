//! Install, upgrade, rollback, restart, host start and uninstall.

use serde_json::{Value, json};

use super::{
    Archives, ID,
    Left::{Lawful, New, Nothing, Old, TakenOver},
    Moment, Outcome, When, call, host_calls, install,
    moments::Scenario::{self, Boot, FailedUpgrade, Install, Restart, Rollback, Uninstall, Upgrade, UpgradeOff},
};
use crate::support::{Host, Signal, eventually, eventually_some, host::Answer, kill};

/// A version that an earlier upgrade should have pruned.
const OLDEST: &str = "0.9.0";

/// Told when a change of version was under way.
const UNFINISHED: &str = "the host ended during a change of version";

pub async fn prepare(host: &Host, scenario: Scenario, archives: &Archives) {
    if scenario == Install {
        return;
    }
    install(host, &archives.old).await;
    let state = json!({"scope": "s", "scope_id": "", "key": "k", "value": {"v": 1}});
    host_calls(host, json!([call("SetState", state), call("SetSecret", json!({"key": "k", "value": "v"}))])).await;
    if scenario == UpgradeOff {
        host.command(ID, "disable").await.expect(200);
    }
    if scenario == Upgrade {
        // What an earlier version left: the upgrade prunes it.
        let folder = host.plugins().join(ID);
        let manifest = std::fs::read_to_string(folder.join("1.0.0/manifest.yaml")).expect("the manifest");
        std::fs::create_dir(folder.join(OLDEST)).expect("an old version's folder");
        let manifest = manifest.replace("1.0.0", OLDEST);
        std::fs::write(folder.join(OLDEST).join("manifest.yaml"), manifest).expect("an old version's file");
    }
    if scenario == Rollback {
        host.upload(archives.new.clone()).await.expect(201);
    }
}

pub async fn operate(host: &Host, scenario: Scenario, archives: &Archives) -> Option<Answer> {
    match scenario {
        Install => Some(host.upload(archives.old.clone()).await),
        Upgrade | UpgradeOff => Some(host.upload(archives.new.clone()).await),
        FailedUpgrade => Some(host.upload(archives.lame.clone()).await),
        Rollback => Some(host.command(ID, "rollback").await),
        Uninstall => Some(host.uninstall(ID).await),
        Restart => {
            kill(host.plugin_pid(ID).expect("the plugin runs"), Signal::KILL);
            eventually("the restart, or the host's end", || async {
                let answer = host.get(&format!("/api/plugins/{ID}")).await;
                answer.status == 0 || (answer.body["status"] == "active" && answer.body["restart_count"] != 0)
            })
            .await;
            None
        }
        Boot => {
            up_or_dead(host).await;
            None
        }
        other => panic!("{other:?} is of another family"),
    }
}

/// What is installed is whole, runs, and is told; nothing else is left.
pub async fn check(host: &Host, outcome: &Outcome<'_>, archives: &Archives) {
    let moment = outcome.moment;
    let note = ended_change(host).await;
    let placed = host.plugins().join(ID).join("1.0.0");
    eventually("a folder without a record is taken over", || async {
        installed_version(host).await.is_some() || !placed.exists()
    })
    .await;
    let version = installed_version(host).await;
    assert_lawful(moment, outcome.answered.as_ref(), version.as_deref());
    assert_reported(host, outcome, version.as_deref(), &note).await;
    match version {
        Some(version) => assert_whole(host, moment, &version, archives).await,
        None => assert_gone(host, moment.scenario, &archives.old).await,
    }
    // The repair may still hold the plugin, to clear what the change left.
    let uninstalled = eventually_some("the plugin is free for commands", || async {
        let answer = host.uninstall(ID).await;
        (answer.status != 409).then_some(answer)
    });
    uninstalled.await.expect(200);
    assert!(!host.plugins().join(ID).exists() && !record_file(host).exists());
}

async fn up_or_dead(host: &Host) {
    eventually("the plugin is up, or the host's end", || async {
        let answer = host.get(&format!("/api/plugins/{ID}")).await;
        let running = host.recorded(ID, "starts.jsonl").len() > 1;
        answer.status == 0 || (running && answer.body["status"] == "active")
    })
    .await;
}

/// What was answered before the kill holds; otherwise what the moment says.
fn assert_lawful(moment: &Moment, answered: Option<&Answer>, version: Option<&str>) {
    let nothing = None;
    let (old, new) = match moment.scenario {
        Rollback => (Some("1.1.0"), Some("1.0.0")),
        _ => (Some("1.0.0"), Some("1.1.0")),
    };
    let acknowledged = answered.map(|answer| (moment.scenario, answer.status));
    let allowed: &[Option<&str>] = match (acknowledged, moment.left, moment.scenario) {
        (Some((Install, 201) | (FailedUpgrade, 422)), _, _) => &[old],
        (Some((Upgrade | UpgradeOff, 201) | (Rollback, 200)), _, _) => &[new],
        (Some((Uninstall, 200)), _, _) => &[nothing],
        (Some(_), _, _) => panic!("the command failed: {answered:?}"),
        (None, Nothing, _) => &[nothing],
        (None, Old | TakenOver, _) => &[old],
        (None, New, _) => &[new],
        (None, Lawful, Install | Uninstall) => &[nothing, old],
        (None, Lawful, Upgrade | UpgradeOff | Rollback) => &[old, new],
        (None, Lawful, _) => &[old],
    };
    assert!(allowed.contains(&version), "found {version:?}, lawful is {allowed:?}, answered {answered:?}");
}

/// Waits until the host has ended what its predecessor left; gives the note of the last change, `null` when none began.
async fn ended_change(host: &Host) -> Value {
    eventually_some("the unfinished change is ended", || async {
        let note = host.get(&format!("/api/plugins/{ID}")).await.body["last_upgrade"].clone();
        (note["outcome"] != "under_way").then_some(note)
    })
    .await
}

/// A change that was begun and is not the installed version's was noted as what became of it, and left no files.
async fn assert_reported(host: &Host, outcome: &Outcome<'_>, version: Option<&str>, note: &Value) {
    let moment = outcome.moment;
    if matches!(moment.scenario, Upgrade | UpgradeOff | FailedUpgrade | Rollback) && !note.is_null() {
        match note["version"] == json!(version) {
            true => assert_eq!(note["outcome"], "done", "{note}"),
            false => assert!(["interrupted", "rolled_back"].contains(&note["outcome"].as_str().unwrap()), "{note}"),
        }
    }
    if outcome.cut_off {
        outcome.tells(host, UNFINISHED).await;
    }
    // After the last deletion nothing is left to finish.
    let finished = matches!(&moment.when, When::Failpoint(name) if name != "uninstall.deleting:3");
    if moment.scenario == Uninstall && moment.left == Nothing && finished {
        outcome.tells(host, "an unfinished uninstall was finished").await;
    }
    if moment.scenario == Rollback {
        assert_eq!(host.versions(ID), ["1.0.0", "1.1.0"], "a rollback removes nothing");
    }
}

/// The plugin comes up, record and folder agree, its state is there, and the same version is known as installed.
async fn assert_whole(host: &Host, moment: &Moment, version: &str, archives: &Archives) {
    let scenario = moment.scenario;
    let off = host.plugin(ID).await["status"] == "disabled";
    match (scenario, moment.left) {
        (UpgradeOff, _) if version == "1.0.0" => assert!(off, "an upgrade that did not come about enables nothing"),
        (_, TakenOver) => assert!(off, "what was taken over does not run by itself"),
        (Install, Lawful) => {}
        _ => assert!(!off, "nobody has disabled it"),
    }
    if off {
        let enabled = eventually_some("the repair has ended", || async {
            let answer = host.command(ID, "enable").await;
            (answer.status != 409).then_some(answer)
        });
        enabled.await.expect(200);
    }
    let record = host.status(ID, "active").await;
    let folder = host.plugins().join(ID).join(version);
    assert_eq!(record["install_path"], folder.to_str().expect("a path as text"));
    assert!(folder.join("manifest.yaml").is_file());
    eventually("the record on disk says so too", || async {
        let text = std::fs::read_to_string(record_file(host)).unwrap_or_default();
        text.contains("status: active") && text.contains(&format!("/{version}"))
    })
    .await;
    let kept = kept_versions(scenario, version);
    eventually(&format!("the versions {kept:?} are kept"), || async { host.versions(ID) == kept }).await;
    assert_eq!(host.plugin_processes().len(), 1);
    assert_eq!(has_rows(host).await, scenario != Install);
    let again = if version == "1.0.0" { &archives.old } else { &archives.new };
    assert_eq!(host.upload(again.clone()).await.status, 409);
}

/// The installed version and the one before it, whatever the crash left: of what was placed and did not come to be
/// installed nothing, and no third one.
fn kept_versions(scenario: Scenario, version: &str) -> &'static [&'static str] {
    match (scenario, version) {
        // Nobody knows what the old version replaced: the newest other one is kept.
        (Upgrade, "1.0.0") => &[OLDEST, "1.0.0"],
        (Upgrade | UpgradeOff, _) if version != "1.0.0" => &["1.0.0", "1.1.0"],
        (Rollback, _) => &["1.0.0", "1.1.0"],
        _ => &["1.0.0"],
    }
}

/// Nothing of the plugin is left, and the same package installs with no state of before.
async fn assert_gone(host: &Host, scenario: Scenario, archive: &[u8]) {
    assert!(!record_file(host).exists());
    // An install may have made the plugin's folder and come no further.
    assert!(scenario == Install || !host.plugins().join(ID).exists());
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    install(host, archive).await;
    assert!(!has_rows(host).await, "rows of the removed plugin were left");
}

async fn installed_version(host: &Host) -> Option<String> {
    let answer = host.get(&format!("/api/plugins/{ID}")).await;
    match answer.status {
        404 => None,
        _ => Some(answer.expect(200)["version"].as_str().expect("a version").to_owned()),
    }
}

fn record_file(host: &Host) -> std::path::PathBuf {
    host.plugins().join(format!("{ID}.yml"))
}

/// Whether the plugin's stored state and its secret are there; never one without the other.
async fn has_rows(host: &Host) -> bool {
    let state = call("GetState", json!({"scope": "s", "scope_id": "", "key": "k"}));
    let rows = host_calls(host, json!([state, call("GetSecret", json!({"key": "k"}))])).await;
    assert_eq!(rows[0]["found"], rows[1]["found"], "{rows:?}");
    rows[0]["found"] == json!(true)
}
