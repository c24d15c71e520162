//! `plugin config get` and `plugin config set`.

use std::{io::Write as _, process::Stdio};

use serde_json::json;

use crate::{
    command::{Desk, Done},
    support::{Guest, Host, Package},
};

const SCHEMA: &str = "
config_schema:
  required: [target]
  properties:
    target: {type: string, pattern: \"^https://\"}
    retries: {type: integer, maximum: 9}
    token: {type: string, secret: true}
";

async fn installed() -> (Host, Desk) {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0").manifest(|text| text + SCHEMA)).await;
    let desk = Desk::at(&host);
    (host, desk)
}

/// Runs with this on standard input.
fn piped(desk: &Desk, arguments: &[&str], input: &str) -> Done {
    let mut command = desk.command(env!("CARGO_BIN_EXE_kandev-host"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // A command that reads nothing may have ended.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let done = child.wait_with_output().expect("the command ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { code: done.status.code(), out: text(&done.stdout), err: text(&done.stderr) }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_changed_field_by_field_and_secrets_come_by_standard_input() {
    let (host, desk) = installed().await;
    let run = |arguments: &[&str]| desk.run(&[&["plugin", "config"], arguments].concat());
    let empty = run(&["get", "demo"]).expect(0);
    assert_eq!((empty.out.as_str(), empty.err.as_str()), ("", "nothing is set\n"));
    let set = run(&["set", "demo", "target=https://a.test", "retries=3", "free=[1]"]).expect(0);
    assert_eq!(set.out, "the settings of demo are saved\n");
    let saved =
        piped(&desk, &["plugin", "config", "set", "demo", "--secret-from-stdin", "token"], "s3cret\n").expect(0);
    assert!(!format!("{saved:?}").contains("s3cret"));
    let shown = run(&["get", "demo"]).expect(0).out;
    assert_eq!(shown, "target:   https://a.test\nretries:  3\nfree:     [1]\ntoken:    ********\n");
    run(&["set", "demo", "--unset", "free", "--unset", "absent", "retries=4"]).expect(0);
    let config = desk.run(&["--json", "plugin", "config", "get", "demo"]).expect(0).json();
    assert_eq!(config, json!({"config": {"target": "https://a.test", "retries": 4, "token": "********"}}));
    let seen = host.host_calls("demo", json!([{"rpc": "GetConfig", "request": {}}])).await;
    assert_eq!(seen[0]["response"]["config"]["token"], "s3cret", "{seen:?}");
    std::fs::write(desk.path().join("new.yaml"), "target: https://b.test\ntoken: '********'\n").unwrap();
    let set =
        desk.run(&["--json", "plugin", "config", "set", "demo", "--from-file", "new.yaml", "retries=1"]).expect(0);
    assert_eq!(set.json(), json!({"updated": true}));
    let config = desk.run(&["--json", "plugin", "config", "get", "demo"]).expect(0).json();
    assert_eq!(config, json!({"config": {"target": "https://b.test", "token": "********", "retries": 1}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_settings_is_told_with_its_exit_code() {
    let (host, desk) = installed().await;
    let run = |arguments: &[&str], code| {
        desk.run(&[&["plugin", "config", "set", "demo"], arguments].concat()).expect(code).err
    };
    assert!(run(&["target"], 2).contains("\"target\" is no setting; write it as KEY=VALUE"));
    let told = run(&["target=https://a.test", "token=visible"], 2);
    assert!(told.contains("--secret-from-stdin") && !told.contains("visible"), "{told}");
    assert!(run(&["--secret-from-stdin", "token"], 2).contains("standard input holds no secret"));
    let absent = "kandev-host: cannot read absent.yaml: No such file or directory (os error 2)\n";
    assert_eq!(run(&["--from-file", "absent.yaml"], 1), absent);
    assert!(run(&["free=9007199254740993"], 2).contains("the number for \"free\" has more digits than a plugin gets"));
    let since = desk.run(&["plugin", "logs", "demo", "--since", "yesterday"]).expect(2).err;
    assert!(since.contains("write a time like 2026-11-29T09:00:00Z"), "{since}");
    std::fs::write(desk.path().join("list.yaml"), "- a\n").unwrap();
    assert!(run(&["--from-file", "list.yaml"], 2).contains("list.yaml is not a mapping of fields to values"));
    run(&[], 2);
    let told = run(&["target=http://a", "retries=10"], 4);
    assert!(
        told.contains("plugin config invalid: ") && told.contains("\n  /target: ") && told.contains("\n  /retries: "),
        "{told}"
    );
    assert_eq!(run(&["retries=many"], 4).lines().count(), 3, "both fixed rules");
    let file = host.plugins().join("demo.config.yml");
    std::fs::write(&file, "- damaged\n").unwrap();
    assert!(run(&["target=https://a.test"], 4).contains("the config file demo.config.yml is damaged"));
    std::fs::write(desk.path().join("whole.yaml"), "target: https://a.test\n").unwrap();
    run(&["--from-file", "whole.yaml"], 0);
    host.set_switches("demo", &json!({"crash_before_handshake": 7}));
    assert!(run(&["target=https://a.test"], 5).contains("config saved but restart of \"demo\" failed: "));
}
