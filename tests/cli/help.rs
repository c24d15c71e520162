//! Help, usage errors and completions of every command, and that the documentation knows them.

use serde_json::json;

use crate::command::Desk;

/// Every command, and the groups.
pub const COMMANDS: &[&[&str]] = &[
    &["serve"],
    &["plugin", "new"],
    &["plugin", "pack"],
    &["plugin", "check"],
    &["plugin", "inspect"],
    &["plugin", "verify"],
    &["plugin", "keygen"],
    &["plugin", "search"],
    &["plugin", "install"],
    &["plugin", "upgrade"],
    &["plugin", "rollback"],
    &["plugin", "sync"],
    &["plugin", "list"],
    &["plugin", "show"],
    &["plugin", "logs"],
    &["plugin", "config", "get"],
    &["plugin", "config", "set"],
    &["plugin", "config"],
    &["plugin", "auto-update"],
    &["plugin", "enable"],
    &["plugin", "disable"],
    &["plugin", "remove"],
    &["trust", "add"],
    &["trust", "list"],
    &["trust", "remove"],
    &["trust"],
    &["marketplace", "search"],
    &["marketplace", "install"],
    &["marketplace", "sources"],
    &["marketplace", "add"],
    &["marketplace", "remove"],
    &["marketplace", "enable"],
    &["marketplace", "disable"],
    &["marketplace", "refresh"],
    &["marketplace", "auto-update"],
    &["marketplace"],
    &["secret", "set"],
    &["secret", "list"],
    &["secret", "share"],
    &["secret", "unshare"],
    &["secret", "remove"],
    &["vault", "status"],
    &["vault", "rotate"],
    &["git-credential"],
    &["inbox", "list"],
    &["inbox", "read"],
    &["inbox", "dismiss"],
    &["inbox"],
    &["db", "backup"],
    &["db", "restore"],
    &["db", "seed"],
    &["db", "migrate"],
    &["db", "status"],
    &["config", "show"],
    &["completions"],
    &["health"],
    &["plugin"],
    &["secret"],
    &["vault"],
    &["db"],
    &["config"],
    &[],
];

#[test]
fn every_command_has_help_with_examples() {
    let desk = Desk::new();
    for command in COMMANDS {
        let done = desk.run(&[*command, &["--help"]].concat()).expect(0);
        assert!(done.out.contains("Usage: kandev-host"), "{command:?}: {}", done.out);
        assert!(done.out.contains("Examples:"), "{command:?}: {}", done.out);
        assert_eq!(done.err, "");
    }
}

#[test]
fn wrong_usage_of_every_command_is_exit_code_2() {
    let desk = Desk::new();
    for command in COMMANDS {
        let done = desk.run(&[*command, &["--no-such-flag"]].concat()).expect(2);
        assert!(done.err.contains("--no-such-flag") && done.out.is_empty(), "{command:?}: {done:?}");
    }
}

#[test]
fn wrong_usage_is_one_json_object_for_programs() {
    let desk = Desk::new();
    for command in COMMANDS {
        let done = desk.run(&[*command, &["--json", "--no-such-flag"]].concat()).expect(2);
        let error = done.error();
        assert_eq!(
            (&error["code"], &error["exit"], done.out.as_str()),
            (&json!("usage"), &json!(2), ""),
            "{command:?}"
        );
        let text = error["error"].as_str().expect("a text");
        assert!(text.starts_with("unexpected argument '--no-such-flag' found\n"), "{command:?}: {text}");
        assert!(text.contains("Usage: kandev-host") && !text.ends_with('\n'), "{command:?}: {text}");
    }
    for arguments in [&["--json"][..], &["--json", "plugin"], &["--json", "nope"], &["secret", "set", "--json"]] {
        assert_eq!(desk.run(arguments).expect(2).error()["code"], "usage", "{arguments:?}");
    }
    let help = desk.run(&["--json", "plugin", "--help"]).expect(0);
    assert!(help.out.contains("Usage: kandev-host plugin") && help.err.is_empty(), "help is a result: {help:?}");
}

#[test]
fn the_exit_codes_are_in_the_help_and_every_command_is_in_the_documentation() {
    let help = Desk::new().run(&["--help"]).expect(0).out;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/cli.md");
    let document = std::fs::read_to_string(path).expect("docs/cli.md");
    for code in 0..=8 {
        assert!(help.contains(&format!("\n  {code}  ")) && document.contains(&format!("| {code} |")), "code {code}");
    }
    for command in COMMANDS.iter().filter(|command| !command.is_empty()) {
        assert!(document.contains(&format!("kandev-host {}", command.join(" "))), "{command:?} is not documented");
    }
}

#[test]
fn completions_are_written_for_every_shell() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = desk.run(&["completions", shell]).expect(0);
        assert!(done.out.contains("kandev-host") && done.out.contains("inspect"), "{shell}");
    }
    desk.run(&["completions", "csh"]).expect(2);
}

#[test]
fn a_bad_setting_is_exit_code_2_as_text_and_as_json() {
    let desk = Desk::new();
    let done = desk.run(&["config", "show", "--listen", "nowhere"]).expect(2);
    let text = "listen (from --listen): \"nowhere\" is not an address with a port, like 127.0.0.1:38429 or [::]:38429";
    assert_eq!((done.out.as_str(), done.err), ("", format!("kandev-host: {text}\n")));
    let done = desk.run(&["config", "show", "--json", "--listen", "nowhere"]).expect(2);
    assert_eq!(done.error(), serde_json::json!({"error": text, "code": null, "exit": 2}));
    let shown = desk.run(&["--json", "config", "show"]).expect(0).json();
    assert_eq!(shown[0]["key"], "listen");
}
