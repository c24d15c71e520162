//! Syncs of the plugins folder: the start takes over what it may, the next sync does and tells the rest.

use serde_json::{Value, json};

use super::{Archives, ID, Left, Outcome, install, moments::Scenario};
use crate::support::{Host, eventually, host::Answer};

/// Installed and off; its folder may go away.
pub const GONE: &str = "gone";

/// Put there as a folder.
pub const PUT: &str = "put";

/// [`ID`]'s package, dropped.
const DROPPED: &str = "dropped.tar.gz";

pub async fn prepare(host: &Host, scenario: Scenario, archives: &Archives) {
    install(host, &archives.gone).await;
    host.command(GONE, "disable").await.expect(200);
    if scenario == Scenario::SyncMissing {
        std::fs::remove_dir_all(host.plugins().join(GONE).join("1.0.0")).expect("the folder is there");
    }
    let folder = host.plugins().join(PUT).join("1.0.0");
    unpack(&archives.put, &folder);
    std::fs::write(host.plugins().join(DROPPED), &archives.old).expect("the package is dropped");
}

/// Unpacks a package as an operator does, with tar.
fn unpack(package: &[u8], folder: &std::path::Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    let archive = folder.with_extension("tar.gz");
    std::fs::write(&archive, package).expect("an archive");
    let tar = std::process::Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder).status();
    assert!(tar.expect("tar runs").success());
    std::fs::remove_file(archive).expect("the archive is there");
}

pub async fn operate(host: &Host) -> Answer {
    host.post("/api/plugins/sync", json!(null)).await
}

pub async fn check(host: &Host, outcome: &Outcome<'_>) {
    let missing = outcome.moment.scenario == Scenario::SyncMissing;
    eventually("the start takes the folder over", || async {
        host.get(&format!("/api/plugins/{PUT}")).await.body["status"] == "disabled"
    })
    .await;
    assert_eq!(host.plugin(PUT).await["version"], "1.0.0");
    let gone = host.status(GONE, if missing { "error" } else { "disabled" }).await;
    assert!(!missing || gone["last_error"].as_str().is_some_and(|text| text.ends_with(" is missing")), "{gone}");

    let lawful: &[bool] = match (&outcome.answered, outcome.moment.left) {
        (Some(answer), _) => {
            assert_eq!((answer.status, &answer.body["errors"]), (200, &json!([])), "{answer:?}");
            &[true]
        }
        (None, Left::Old) => &[false],
        (None, Left::New | Left::TakenOver) => &[true],
        (None, _) => &[false, true],
    };
    let is_there = async || host.get(&format!("/api/plugins/{ID}")).await.status == 200;
    if lawful == [true] {
        eventually("it is installed", is_there).await;
    }
    let is_there = is_there().await;
    assert!(lawful.contains(&is_there), "installed: {is_there}");
    if is_there {
        eventually("it stands as it was left", || async {
            let status = host.plugin(ID).await["status"].clone();
            match outcome.moment.left {
                Left::TakenOver => status == "disabled",
                Left::Lawful if outcome.answered.is_none() => status == "active" || status == "disabled",
                _ => status == "active",
            }
        })
        .await;
    }
    let dropped = host.plugins().join(DROPPED).exists();
    assert!(dropped || is_there, "a package is deleted last");
    assert_next_sync(host, missing, is_there, dropped).await;
    for id in [PUT, GONE, ID] {
        host.uninstall(id).await.expect(200);
    }
    let _ = std::fs::remove_file(host.plugins().join(DROPPED));
    let nothing = json!({"added": [], "installed": [], "missing": [], "errors": []});
    assert_eq!(operate(host).await.expect(200), nothing);
}

/// The next sync goes on where this one was cut off, and tells all of it.
async fn assert_next_sync(host: &Host, missing: bool, is_there: bool, dropped: bool) {
    let report = operate(host).await.expect(200);
    assert_eq!(report["added"], json!([]), "{report}");
    assert_eq!(report["missing"], if missing { json!([GONE]) } else { json!([]) }, "{report}");
    assert_eq!(report["installed"], if is_there { json!([]) } else { json!([ID]) }, "{report}");
    let reasons: Vec<_> = report["errors"].as_array().expect("an array").iter().map(reason).collect();
    match is_there && dropped {
        true => assert!(matches!(&reasons[..], [one] if one.contains("version already installed")), "{report}"),
        false => assert_eq!(reasons, Vec::<&str>::new(), "{report}"),
    }
}

fn reason(error: &Value) -> &str {
    error["reason"].as_str().expect("a reason")
}
