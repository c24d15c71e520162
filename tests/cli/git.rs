//! `git-credential` against a running host, as git runs it.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, process::Stdio};

use serde_json::json;

use crate::{
    command::{Desk, Done, finish},
    support::{Board, Guest, Host, provider},
};

const SECRET: &str = "hunter2-of-git";

/// A host whose plugin gives the secret, with a token for its repository.
async fn with_forge() -> (Host, String) {
    let host = Host::start().await;
    host.install(&provider(Guest::Rust, "forge", "1.0.0")).await;
    let git = json!({"username": "x-access-token", "secret": SECRET, "expires_at": "2099-01-01T00:00:00Z", "bindings": ["1"]});
    host.set_switches("forge", &json!({"git": git}));
    let token = Board::hosted(&host).await.token(&host).await;
    (host, token)
}

/// Runs the helper with what git says.
fn helper(desk: &Desk, input: &str, arguments: &[&str]) -> Done {
    let path = desk.path().join("input");
    std::fs::write(&path, input).expect("the input is written");
    let file = std::fs::File::open(path).expect("the input is there");
    let arguments = [&["git-credential"], arguments].concat();
    finish(desk.command(env!("CARGO_BIN_EXE_kandev-host")).args(arguments).stdin(Stdio::from(file)))
}

fn said(protocol: &str, host: &str, path: &str) -> String {
    format!("protocol={protocol}\nhost={host}\npath={path}\nwwwauth[]=Basic realm=\"x\"\n\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_helper_tells_git_the_credential_of_its_repository_and_is_silent_about_others() {
    let (host, token) = with_forge().await;
    let desk = Desk::at(&host).env("KANDEV_GIT_TOKEN", &token);
    let own = said("https", "forge.example.test", "team/app.git");
    let told = format!("username=x-access-token\npassword={SECRET}\npassword_expiry_utc=4070908800\n");
    let expected = || Done { code: Some(0), out: told.clone(), err: String::new() };
    assert_eq!(helper(&desk, &own, &["get"]), expected());
    let by_file = Desk::at(&host);
    let file = by_file.path().join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let warning = "warning: the token in token is open to other users (mode 644): run chmod 600 on the file, and \
                   make a new token if someone may have read it\n";
    let warned = Done { err: warning.to_owned(), ..expected() };
    assert_eq!(helper(&by_file, &own, &["get", "--token-file", "token"]), warned);
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(helper(&by_file, &own, &["get", "--token-file", "token"]), expected());

    let silent = || Done { code: Some(0), out: String::new(), err: String::new() };
    for (protocol, name, path) in [
        ("https", "forge.example.test", "team/other.git"),
        ("https", "other.example.test", "team/app.git"),
        ("http", "forge.example.test", "team/app.git"),
        ("ssh", "forge.example.test", "team/app.git"),
        ("https", "", "team/app.git"),
    ] {
        assert_eq!(helper(&desk, &said(protocol, name, path), &["get"]), silent(), "{protocol} {name} {path}");
    }
    let calls = host.calls("forge").len();
    let stored = format!("{own}username=x\npassword={SECRET}\n");
    for operation in ["store", "erase", "unheard-of"] {
        assert_eq!(helper(&desk, &stored, &[operation]), silent(), "{operation}");
    }
    assert_eq!(host.calls("forge").len(), calls);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_told_to_the_person_and_git_gets_nothing() {
    let (host, token) = with_forge().await;
    let desk = Desk::at(&host);
    let own = said("https", "forge.example.test", "team/app.git");
    let none = helper(&desk, &own, &["get"]).expect(2);
    assert_eq!(none.err, "kandev-host: no token: set KANDEV_GIT_TOKEN, or name a file with --token-file\n");
    let absent = helper(&desk, &own, &["get", "--token-file", "nope"]).expect(1);
    assert_eq!(
        absent.err,
        "kandev-host: cannot read the token from nope: No such file or directory (os error 2); name a file that is \
         there\n"
    );
    let wrong = Desk::at(&host).env("KANDEV_GIT_TOKEN", &token.replace("kgt_", "kgt-"));
    let refused = helper(&wrong, &own, &["get"]).expect(4);
    assert!(refused.err.starts_with("kandev-host: the host does not accept the git token: "), "{}", refused.err);
    let desk = Desk::at(&host).env("KANDEV_GIT_TOKEN", &token);
    let pathless = helper(&desk, &said("https", "forge.example.test", ""), &["get"]).expect(4);
    assert!(pathless.err.contains("credential.useHttpPath"), "{}", pathless.err);
    host.set_switches("forge", &json!({"git": {"username": "x\nquit=1", "secret": SECRET, "bindings": ["1"]}}));
    let hostile = helper(&desk, &own, &["get"]).expect(1);
    assert!(hostile.out.is_empty() && !hostile.err.contains(SECRET), "{hostile:?}");
    helper(&desk, "no line of the protocol", &["get"]).expect(1);
    for done in [none, refused, pathless] {
        assert!(done.out.is_empty() && !done.err.contains(&token), "{done:?}");
    }
}
