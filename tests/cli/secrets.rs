//! `secret …` and `vault …` against a running host.

use std::process::Stdio;

use serde_json::json;

use crate::{
    command::{Desk, Done, finish},
    support::{Guest, Host, Package, Settings},
};

/// Runs with a value on standard input.
fn with_input(desk: &Desk, input: &str, arguments: &[&str]) -> Done {
    let path = desk.path().join("input");
    std::fs::write(&path, input).expect("the input is written");
    let file = std::fs::File::open(path).expect("the input is there");
    finish(desk.command(env!("CARGO_BIN_EXE_kandev-host")).args(arguments).stdin(Stdio::from(file)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secrets_whole_life() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let desk = Desk::at(&host);
    assert_eq!(desk.run(&["secret", "list"]).expect(0).out, "no secret is kept\n");
    let made = with_input(&desk, "hunter2\n", &["secret", "set", "token", "--json"]).expect(0).json();
    let id = made["id"].as_str().expect("an id");
    assert_eq!((&made["name"], &made["has_value"]), (&json!("token"), &json!(true)));
    std::fs::write(desk.path().join("value"), "hunter3").unwrap();
    let again = desk.run(&["secret", "set", "token", "--file", "value"]).expect(0);
    assert_eq!(again.out, format!("token is kept, its id is {id}\n"), "the same secret");
    let workspace = host.post("/api/v1/workspaces", json!({"name": "w"})).await.expect(200);
    let workspace = workspace["id"].as_str().expect("an id");
    let elsewhere = desk.run(&["secret", "set", "token", "--file", "value", "--workspace", workspace]).expect(0);
    assert_ne!(elsewhere.out, again.out, "a workspace has its own");
    let several = desk.run(&["secret", "share", "token", "demo"]).expect(4);
    assert!(several.err.starts_with("kandev-host: several secrets are called \"token\""), "{}", several.err);
    let shared = desk.run(&["secret", "share", id, "demo"]).expect(0);
    assert_eq!(shared.out, format!("demo may reveal token by its id {id}\n"));
    let list = desk.run(&["secret", "list"]).expect(0).out;
    assert!(list.starts_with("ID ") && list.contains("demo") && list.contains(id), "{list}");
    assert!(!list.contains("hunter"), "{list}");
    assert_eq!(desk.run(&["secret", "unshare", id, "demo"]).expect(0).out, "demo may not reveal token\n");
    assert_eq!(desk.run(&["--json", "secret", "remove", id]).expect(0).json(), json!({"id": id, "removed": true}));
    assert_eq!(desk.run(&["secret", "remove", "token"]).expect(0).out, "token is removed\n");
    let gone = desk.run(&["secret", "remove", "token"]).expect(4);
    assert_eq!(gone.err, "kandev-host: no secret is called \"token\"; `kandev-host secret list` shows what there is\n");
    let nothing = with_input(&desk, "\n", &["secret", "set", "x"]).expect(2);
    assert_eq!(nothing.err, "kandev-host: standard input holds nothing: there is no secret in it\n");
    with_input(&desk, "", &["vault", "rotate", "--key-file", "-"]).expect(2);
    let absent = desk.run(&["secret", "set", "x", "--file", "absent"]).expect(1);
    assert!(absent.err.starts_with("kandev-host: cannot read the secret from absent: "), "{}", absent.err);
    assert!(absent.err.ends_with("; name a file that is there\n"), "{}", absent.err);
    std::fs::write(desk.path().join("bytes"), [0xff]).unwrap();
    let bytes = desk.run(&["secret", "set", "x", "--file", "bytes"]).expect(1);
    assert!(bytes.err.ends_with("; it must be text\n"), "{}", bytes.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_changed_while_the_host_runs() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    with_input(&desk, "hunter2", &["secret", "set", "token"]).expect(0);
    let before = desk.run(&["vault", "status", "--json"]).expect(0).json();
    assert_eq!(before["secrets"], json!({"config": 0, "own": 0, "shared": 1}));
    let rotated = desk.run(&["vault", "rotate", "--json"]).expect(0).json();
    assert_eq!(rotated["resealed"], 1);
    let key = "5ec5e7005ec5e7005ec5e7005ec5e7005ec5e7005ec5e7005ec5e7005ec5e700";
    let given = with_input(&desk, &format!("{key}\n"), &["vault", "rotate", "--key-file", "-"]).expect(0);
    assert!(given.out.starts_with("the vault's key is now ") && !given.out.contains(key), "{}", given.out);
    assert_eq!(std::fs::read_to_string(host.home().join("vault.key")).unwrap(), format!("{key}\n"));
    let status = desk.run(&["vault", "status"]).expect(0).out;
    assert!(status.contains("shared: 1\n") && status.ends_with("pending:   0\n"), "{status}");
    let same = with_input(&desk, key, &["vault", "rotate", "--key-file", "-"]).expect(4);
    assert!(same.err.contains("one that the vault has already"), "{}", same.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_from_the_environment_is_not_changed_and_the_next_step_is_told() {
    let host = Host::start_with(Settings::default().env("KANDEV_VAULT_KEY", &"5e".repeat(32))).await;
    let desk = Desk::at(&host);
    let done = desk.run(&["vault", "rotate"]).expect(4);
    assert!(done.err.contains("put the new key before the old one"), "{}", done.err);
    assert!(!host.home().join("vault.key").exists());
    let shown = desk.env("KANDEV_VAULT_KEY", &"5e".repeat(32)).run(&["config", "show"]).expect(0).out;
    assert!(shown.contains("vault_key") && !shown.contains("5e5e"), "{shown}");
}
