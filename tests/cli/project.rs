//! `plugin new`: the project it makes is built, packed, installed, and is sent an event.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::{
    command::{Desk, finish},
    python,
    support::{Guest, Host, eventually},
};

/// Builds and packs the project with its own Makefile, installs it and publishes an event that it must count.
async fn packs_installs_and_counts(desk: &Desk, host: &Host, id: &str, make: &[(&str, &str)]) {
    let project = desk.path().join(id);
    let mut command = desk.command("make");
    command.current_dir(&project).arg("package");
    command.arg(format!("KANDEV_HOST={}", env!("CARGO_BIN_EXE_kandev-host")));
    command.args(make.iter().map(|(name, value)| format!("{name}={value}")));
    toolchain_home(&mut command);
    finish(&mut command).expect(0);
    let package = project.join(format!("{id}-0.1.0.tar.gz"));
    let done = desk.run(&["plugin", "install", package.to_str().unwrap()]).expect(0);
    assert_eq!(done.out, format!("{id} 0.1.0 is active\n"));
    host.publish("demo.hello", json!({"n": 1})).await;
    eventually("the event in the plugin's count", || async {
        let seen = host.get(&format!("/api/plugins/{id}/webhooks/seen")).await;
        seen.status == 200 && seen.body["seen"].as_f64() == Some(1.0)
    })
    .await;
    let logs = desk.run(&["plugin", "logs", id]).expect(0).out;
    assert!(logs.contains("event seen"), "{logs}");
    desk.run(&["plugin", "remove", id]).expect(0);
}

/// Build tools keep their caches below the caller's home.
fn toolchain_home(command: &mut Command) {
    if let Some(home) = std::env::var_os("HOME") {
        command.env("HOME", home);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_go_project_packs_installs_and_is_sent_an_event() {
    // Says `skipped: needs go`, or fails in CI.
    if Guest::Go.executable().is_none() {
        return;
    }
    let go = Command::new("sh").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/ensure-go.sh")).output();
    let go = String::from_utf8(go.expect("ensure-go.sh runs").stdout).expect("a path");
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let made = desk.run(&["plugin", "new", "go.demo", "--lang", "go", "--json"]).expect(0).json();
    assert_eq!((&made["id"], &made["lang"]), (&json!("go.demo"), &json!("go")));
    let platform = kandev_host::domain::target::host_platform();
    packs_installs_and_counts(&desk, &host, "go.demo", &[("GO", go.trim()), ("PLATFORMS", &platform)]).await;
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Gives the project the versions and the build settings of the workspace, so that it needs no network and takes most
/// of what is built already.
fn lend_the_workspace(project: &Path) {
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock")).expect("the lock file is copied");
    let read = |path: PathBuf| -> toml::Table {
        fs::read_to_string(path).expect("a manifest").parse().unwrap_or_else(|error| panic!("{error}"))
    };
    let dev = read(root().join("Cargo.toml"))["profile"]["dev"].clone();
    let mut manifest = read(project.join("Cargo.toml"));
    manifest["profile"].as_table_mut().expect("profiles").insert("dev".to_owned(), dev);
    fs::write(project.join("Cargo.toml"), manifest.to_string()).expect("the manifest is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_rust_project_packs_installs_and_is_sent_an_event() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let sdk = root().join("sdk");
    desk.run(&["plugin", "new", "rust-demo", "--lang", "rust", "--sdk-path", sdk.to_str().unwrap()]).expect(0);
    lend_the_workspace(&desk.path().join("rust-demo"));
    // The folder that this program was built in.
    let target = Path::new(env!("CARGO_BIN_EXE_kandev-host")).ancestors().nth(2).expect("<target>/debug/kandev-host");
    let target = target.to_str().unwrap();
    let make = [("PROFILE", "dev"), ("CARGO_FLAGS", "--offline --quiet"), ("CARGO_TARGET_DIR", target)];
    packs_installs_and_counts(&desk, &host, "rust-demo", &make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_python_project_packs_installs_and_is_sent_an_event() {
    // Says `skipped: needs python`, or fails in CI.
    let Some(python) = python::interpreter() else { return };
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let sdk = root().join("sdk-python");
    let new = ["plugin", "new", "python.demo", "--lang", "python", "--sdk-path", sdk.to_str().unwrap(), "--json"];
    assert_eq!(desk.run(&new).expect(0).json()["lang"], "python");
    packs_installs_and_counts(&desk, &host, "python.demo", &[("PYTHON", python)]).await;
}

#[test]
fn new_refuses_what_it_cannot_make() {
    let desk = Desk::new();
    let refused = |arguments: &[&str], code: i32, text: &str| {
        let done = desk.run(&[&["plugin", "new"], arguments].concat()).expect(code);
        assert!(done.err.contains(text), "{arguments:?}: {}", done.err);
    };
    refused(&["Bad Name", "--lang", "go"], 2, "invalid plugin id");
    refused(&["demo", "--lang", "cobol"], 2, "cobol");
    refused(&["demo", "--lang", "rust"], 2, "--sdk-path FOLDER or --sdk-git URL");
    refused(&["demo", "--lang", "rust", "--sdk-path", "nowhere"], 2, "nowhere is not the SDK");
    refused(&["demo", "--lang", "python"], 2, "--sdk-path FOLDER or --sdk-git URL");
    refused(
        &["demo", "--lang", "python", "--sdk-path", "."],
        2,
        "it has no pyproject.toml; name the folder `sdk-python`",
    );
    refused(&["demo", "--lang", "go", "--sdk-git", "https://x"], 2, "are for Rust");
    assert_eq!(names(desk.path()), [""; 0], "nothing is made");
    desk.run(&["plugin", "new", "demo", "--lang", "go"]).expect(0);
    refused(&["demo", "--lang", "go"], 1, "exists and is not empty");
}

#[test]
fn a_rust_project_names_the_sdk_it_was_told() {
    let desk = Desk::new();
    desk.run(&["plugin", "new", "demo", "--lang", "rust", "--sdk-git", "https://x/\"y"]).expect(0);
    let manifest = fs::read_to_string(desk.path().join("demo/Cargo.toml")).unwrap();
    let parsed: toml::Table = manifest.parse().expect("TOML");
    assert_eq!(parsed["dependencies"]["kandev-plugin-sdk"]["git"].as_str(), Some("https://x/\"y"));
    assert_eq!(parsed["package"]["name"].as_str(), Some("plugin-demo"));
}

#[test]
fn a_python_project_names_the_sdk_it_was_told() {
    let desk = Desk::new();
    desk.run(&["plugin", "new", "demo", "--lang", "python", "--sdk-git", "https://x/y"]).expect(0);
    let needed = fs::read_to_string(desk.path().join("demo/requirements.txt")).unwrap();
    let line = needed.lines().last();
    assert_eq!(line, Some("kandev-plugin-sdk @ git+https://x/y#subdirectory=sdk-python"));
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
