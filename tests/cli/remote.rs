//! The commands that ask a running host.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::json;

use crate::{
    command::Desk,
    support::{FileServer, Guest, Host, Package, Settings, eventually, files::File, host::TOKEN},
};

/// The package as a file on the desk.
async fn file(desk: &Desk, package: &Package) -> PathBuf {
    let path = desk.path().join(format!("{}-{}.tar.gz", package.id(), package.version()));
    std::fs::write(&path, package.archive().await).expect("the package is written");
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_whole_life_as_text() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    assert_eq!(desk.run(&["plugin", "list"]).expect(0).out, "no plugin is installed\n");
    let path = file(&desk, &Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let done = desk.run(&["plugin", "install", path.to_str().unwrap()]).expect(0);
    assert_eq!(done.out, "demo 1.0.0 is active\n");
    assert!(done.err.lines().all(|line| line.starts_with("warning: ")), "{}", done.err);
    assert!(
        done.err.ends_with("\nwarning: the package is unsigned: only its checksums were verified\n"),
        "{}",
        done.err
    );
    let list = desk.run(&["plugin", "list"]).expect(0).out;
    assert_eq!(list, "ID    VERSION  STATUS  RESTARTS  LAST ERROR\ndemo  1.0.0    active  0\n");
    let show = desk.run(&["plugin", "show", "demo"]).expect(0).out;
    assert!(show.starts_with("id:            demo\nversion:       1.0.0\nstatus:        active\n"), "{show}");
    assert!(show.contains("\nwebhooks:      echo (public)\n"), "{show}");

    let address = format!("{}/api/plugins/demo/webhooks/print?stream=stderr&text=hello-from-it", host.url());
    host.client().post(address).send().await.expect("the webhook answers");
    eventually("the line in the plugin's log", || async {
        desk.run(&["plugin", "logs", "demo"]).expect(0).out.contains("hello-from-it")
    })
    .await;
    let last = desk.run(&["plugin", "logs", "demo", "--lines", "1"]).expect(0).out;
    assert_eq!(last.lines().count(), 1, "{last}");

    assert_eq!(desk.run(&["plugin", "disable", "demo"]).expect(0).out, "demo is disabled\n");
    assert_eq!(desk.run(&["plugin", "enable", "demo"]).expect(0).out, "demo is active\n");
    assert_eq!(desk.run(&["plugin", "remove", "demo"]).expect(0).out, "demo is removed\n");
    assert_eq!(desk.run(&["plugin", "list"]).expect(0).out, "no plugin is installed\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugins_whole_life_as_json() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let run = |arguments: &[&str]| {
        let done = desk.run(&[&["--json", "plugin"], arguments].concat()).expect(0);
        assert_eq!(done.err, "", "results on standard output only");
        done.json()
    };
    assert_eq!(run(&["list"]), json!({"plugins": []}));
    let path = file(&desk, &Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let installed = run(&["install", path.to_str().unwrap()]);
    assert_eq!(installed["plugin"]["status"], "active");
    let warnings = installed["warnings"].as_array().unwrap();
    assert_eq!(warnings.last(), Some(&json!("the package is unsigned: only its checksums were verified")));
    assert_eq!(run(&["list"])["plugins"][0]["id"], "demo");
    assert_eq!(run(&["show", "demo"])["version"], "1.0.0");
    assert!(run(&["logs", "demo", "-n", "0"])["lines"].as_array().unwrap().is_empty());
    assert_eq!(run(&["disable", "demo"]), json!({"disabled": true}));
    assert_eq!(run(&["enable", "demo"]), json!({"enabled": true}));
    assert_eq!(run(&["remove", "demo"]), json!({"deleted": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn address_and_token_are_found_in_the_hosts_home() {
    let mut host = Host::start_with(Settings::default().env("KANDEV_ADMIN_TOKEN", "")).await;
    let desk = Desk::new();
    let home = host.home().to_str().unwrap().to_owned();
    desk.run(&["plugin", "list", "--home", &home]).expect(0);
    let done = desk.run(&["plugin", "list", "--home", &home, "--token", "wrong"]).expect(4);
    assert!(done.err.contains("does not accept the token from --token or KANDEV_ADMIN_TOKEN"), "{}", done.err);
    host.kill();
    let done = desk.run(&["plugin", "list", "--home", &home]).expect(3);
    assert!(done.err.contains("cannot be reached: ") && done.err.contains("kandev-host serve"), "{}", done.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_as_json_says_how_the_host_is_where_and_why() {
    let mut host = Host::start().await;
    let (desk, home, url) = (Desk::new(), host.home().to_str().unwrap().to_owned(), host.url().to_owned());
    let ready = json!({"status": "ready", "url": url, "reason": null});
    for place in [["--home", home.as_str()], ["--host", url.as_str()], ["--url", url.as_str()]] {
        let done = desk.run(&[&["health", "--json"][..], &place].concat()).expect(0);
        assert_eq!((done.json(), done.err.as_str()), (ready.clone(), ""), "{place:?}");
        let done = desk.run(&[&["health"][..], &place].concat()).expect(0);
        assert_eq!((done.out.as_str(), done.err.as_str()), ("", ""), "{place:?}");
    }
    host.kill();
    let server = FileServer::start(&[("/ready", File::Status(503))]).await;
    let (starting, nowhere) = (server.url(""), desk.path().join("run/host.json").display().to_string());
    let desk_home = desk.path().to_str().unwrap().to_owned();
    for (place, status, url, begin) in [
        (["--home", home.as_str()], "not_reached", json!(url), format!("cannot ask {url}/ready: ")),
        (["--host", starting.as_str()], "not_ready", json!(starting), format!("{starting}/ready answered 503: ")),
        (
            ["--home", desk_home.as_str()],
            "not_reached",
            json!(null),
            format!("no host announces itself in {nowhere}; "),
        ),
    ] {
        let done = desk.run(&[&["health", "--json"][..], &place].concat()).expect(1);
        let reason = done.json()["reason"].as_str().expect("a reason").to_owned();
        assert!(reason.starts_with(&begin), "{reason}");
        assert_eq!(done.json(), json!({"status": status, "url": url, "reason": reason}), "{place:?}");
        assert_eq!(done.error(), json!({"error": reason, "code": status, "exit": 1}), "{place:?}");
    }
}

#[test]
fn without_a_host_every_command_is_exit_code_3_and_says_what_to_start() {
    let desk = Desk::new();
    let home = desk.path().join(".kandev");
    let package = desk.path().join("p.tar.gz");
    std::fs::write(&package, "x").unwrap();
    for command in [
        &["list"][..],
        &["show", "demo"],
        &["logs", "demo"],
        &["config", "get", "demo"],
        &["config", "set", "demo", "a=b"],
        &["enable", "demo"],
        &["disable", "demo"],
        &["remove", "demo"],
        &["rollback", "demo"],
        &["install", "p.tar.gz"],
        &["upgrade", "p.tar.gz", "--dry-run"],
    ] {
        let done = desk.run(&[&["plugin"], command].concat()).expect(3);
        let expected = format!(
            "kandev-host: no host runs on {}: start it with `kandev-host serve`, or name another one with --home, \
             --host or KANDEV_URL\n",
            home.display()
        );
        assert_eq!((done.out.as_str(), done.err), ("", expected), "{command:?}");
        let done = desk.run(&[&["--json", "plugin"], command].concat()).expect(3);
        assert_eq!((done.error()["exit"].clone(), done.out.as_str()), (json!(3), ""), "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_refuses_is_exit_code_4_with_its_text() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    for command in ["show", "logs", "enable", "disable", "remove"] {
        let done = desk.run(&["plugin", command, "absent"]).expect(4);
        let expected = "kandev-host: plugin not found: absent; `kandev-host plugin list` shows what is installed\n";
        assert_eq!((done.out.as_str(), done.err.as_str()), ("", expected), "{command}");
        let error = desk.run(&["--json", "plugin", command, "absent"]).expect(4).error();
        assert_eq!((&error["code"], &error["exit"]), (&json!("plugin_not_found"), &json!(4)), "{command}");
    }
    let broken =
        Package::of(Guest::Rust, "demo", "1.0.0").manifest(|text| text.replace("api_version: 1", "api_version: 7"));
    let path = file(&desk, &broken).await;
    let done = desk.run(&["plugin", "install", path.to_str().unwrap()]).expect(4);
    assert!(done.err.contains("unsupported api_version 7"), "{}", done.err);
    let done = desk.run(&["plugin", "install", "http://127.0.0.1:9/x.tar.gz"]).expect(4);
    assert!(done.err.contains("public addresses only"), "{}", done.err);
    for id in ["..", "UPPER", "install", ""] {
        let done = desk.run(&["plugin", "remove", id]).expect(2);
        assert!(done.err.contains("invalid plugin id"), "{}", done.err);
    }
    let done = desk.run(&["plugin", "install", "no-such-file.tar.gz"]).expect(1);
    assert!(done.err.contains("cannot read no-such-file.tar.gz: "), "{}", done.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_installed_and_does_not_run_is_exit_code_5() {
    let host = Host::start_with(Settings::toml("[timing]\nrestart_delays = [\"50ms\"]\n")).await;
    let desk = Desk::at(&host);
    let package = Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"crash_before_handshake": 7}));
    let path = file(&desk, &package).await;
    let done = desk.run(&["--json", "plugin", "install", path.to_str().unwrap()]).expect(5);
    assert_eq!(done.json()["plugin"]["status"], "error");
    let error = done.error();
    assert_eq!((&error["code"], &error["exit"]), (&json!("not_running"), &json!(5)));
    assert!(error["error"].as_str().unwrap().starts_with("plugin \"demo\" is installed but not running: "), "{error}");
    let done = desk.run(&["plugin", "enable", "demo"]).expect(5);
    assert!(done.err.contains("start \"demo\""), "{}", done.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_token_that_other_users_may_read_is_used_and_told() {
    let host = Host::start().await;
    let desk = Desk::new();
    let file = desk.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let list = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let desk = Desk::new().env("KANDEV_ADMIN_TOKEN_FILE", file.to_str().unwrap());
        desk.run(&["plugin", "list", "--host", host.url()]).expect(0).err
    };
    assert_eq!(list(0o600), "");
    let warning = format!(
        "warning: the token in {} is open to other users (mode 640): run chmod 600 on the file, and make a new token \
         if someone may have read it\n",
        file.display()
    );
    assert_eq!(list(0o640), warning);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_and_never_sent_to_a_strange_address() {
    let host = Host::start().await;
    // The home of another host, whose token must stay there.
    let other = Host::start_with(Settings::default().env("KANDEV_ADMIN_TOKEN", "")).await;
    let desk = Desk::new();
    let home = other.home().to_str().unwrap();
    let done = desk.run(&["plugin", "list", "--home", home, "--host", host.url()]).expect(2);
    assert!(done.err.contains("no token for the host at "), "{}", done.err);
    assert!(!done.err.contains(TOKEN));
    desk.run(&["plugin", "list", "--host", "nonsense", "--token", "x"]).expect(2);
}

#[tokio::test(flavor = "multi_thread")]
async fn something_else_and_a_silent_host_are_told_apart() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let desk = Desk::new();
    let arguments = ["plugin", "list", "--host", url.as_str(), "--token", "x", "--timeout", "300ms"];
    let done = desk.run(&arguments).expect(3);
    assert!(done.err.contains("did not answer within 0.3 s"), "{}", done.err);
    let answer = tokio::task::spawn_blocking(move || {
        use std::io::{Read, Write};
        // The first connection is the one that got no answer.
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
        }
    });
    let done = desk.run(&["plugin", "list", "--host", &url, "--token", "x"]).expect(3);
    assert!(done.err.contains("is no kandev-host (status 200)"), "{}", done.err);
    answer.await.expect("the stand-in");
}

/// The host's fixture with a capability more.
fn wider(version: &str) -> Package {
    let package = Package::of(Guest::Rust, "demo", version);
    package.manifest(|text| text.replace("capabilities:", "capabilities:\n  secrets: true"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_looked_at_accepted_and_rolled_back() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let old = file(&desk, &Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let new = file(&desk, &wider("1.1.0")).await;
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());
    desk.run(&["plugin", "install", old]).expect(0);

    let looked = desk.run(&["plugin", "upgrade", new, "--dry-run"]).expect(0);
    let inspected = desk.run(&["plugin", "inspect", new, "--host", host.url()]).expect(0);
    assert_eq!(looked.out, inspected.out);
    for line in [
        "installed:      1.0.0",
        "offered:        1.1.0 (upgrade)",
        "asks beyond:    secrets",
        "needs consent:  capabilities",
    ] {
        assert!(looked.out.lines().any(|found| found == line), "{line}: {}", looked.out);
    }
    let json = desk.run(&["--json", "plugin", "install", new, "--dry-run"]).expect(0).json();
    assert_eq!(json["difference"]["needs"], json!(["capabilities"]));

    let refused = desk.run(&["plugin", "upgrade", new]).expect(4);
    assert!(refused.err.contains("asks for more than 1.0.0: secrets"), "{}", refused.err);
    assert!(refused.err.contains("--accept"), "{}", refused.err);
    let error = desk.run(&["--json", "plugin", "upgrade", new]).expect(4).error();
    assert_eq!((&error["code"], &error["details"]["accept"]), (&json!("consent_needed"), &json!("capabilities")));
    assert_eq!(desk.run(&["plugin", "show", "demo", "--json"]).expect(0).json()["version"], "1.0.0");
    desk.run(&["plugin", "upgrade", new, "--accept", "everything"]).expect(2);
    let digest = error["details"]["sha256"].as_str().unwrap();
    let other = digest.replace(|c: char| c.is_ascii_digit(), "a");
    desk.run(&["plugin", "upgrade", new, "--accept", "capabilities", "--sha256", &other]).expect(4);
    let done = desk.run(&["plugin", "upgrade", new, "--accept", "capabilities", "--sha256", digest]).expect(0);
    assert_eq!(done.out, "demo 1.1.0 is active\n");

    assert_eq!(desk.run(&["plugin", "rollback", "demo"]).expect(0).out, "demo 1.0.0 is active\n");
    let show = desk.run(&["plugin", "show", "demo"]).expect(0).out;
    assert!(show.contains("previous:      1.1.0\nlast upgrade:  1.1.0 to 1.0.0, done ("), "{show}");
    desk.run(&["plugin", "disable", "demo"]).expect(0);
    assert_eq!(desk.run(&["plugin", "rollback", "demo"]).expect(0).out, "demo 1.1.0 is disabled\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_undone_is_exit_code_7_and_nothing_to_go_back_to_is_4() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let old = file(&desk, &Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let lame = Package::of(Guest::Rust, "demo", "1.1.0").switches(&json!({"crash_before_handshake": 3}));
    let lame = file(&desk, &lame).await;
    desk.run(&["plugin", "install", old.to_str().unwrap()]).expect(0);
    let done = desk.run(&["plugin", "rollback", "demo"]).expect(4);
    assert!(done.err.contains("no earlier version to go back to"), "{}", done.err);
    let done = desk.run(&["plugin", "install", lame.to_str().unwrap()]).expect(7);
    assert!(done.err.contains("version 1.1.0 did not come up, 1.0.0 runs again: "), "{}", done.err);
    let error = desk.run(&["--json", "plugin", "install", lame.to_str().unwrap()]).expect(7).error();
    assert_eq!((&error["code"], &error["exit"]), (&json!("upgrade_failed"), &json!(7)));
}

/// A command that goes on, and what it printed so far.
struct Following {
    child: std::process::Child,
    out: PathBuf,
}

impl Following {
    fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let out = desk.path().join("followed.txt");
        let file = std::fs::File::create(&out).expect("a file");
        Self {
            child: desk
                .command(env!("CARGO_BIN_EXE_kandev-host"))
                .args(arguments)
                .stdout(file)
                .spawn()
                .expect("the binary starts"),
            out,
        }
    }

    async fn until(&self, part: &str) -> String {
        let read = || std::fs::read_to_string(&self.out).unwrap_or_default();
        eventually(part, || async { read().contains(part) }).await;
        read()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_followed_over_a_restart_of_the_host_until_the_plugin_is_removed() {
    let mut host = Host::start_with(Settings::default().env("KANDEV_ADMIN_TOKEN", "")).await;
    // The token is the home's, and so is the address: it changes with the restart.
    let desk = Desk::new().env("KANDEV_HOME", host.home().to_str().unwrap());
    let path = file(&desk, &Package::of(Guest::Rust, "demo", "1.0.0")).await;
    desk.run(&["plugin", "install", path.to_str().unwrap()]).expect(0);
    let print = async |host: &Host, text: &str| {
        let address = format!("{}/api/plugins/demo/webhooks/print?stream=stderr&text={text}", host.url());
        assert_eq!(host.client().post(address).send().await.expect("the webhook answers").status(), 200);
    };
    print(&host, "[WARN]%20before").await;
    let mut following = Following::start(&desk, &["plugin", "logs", "demo", "-f", "--level", "warn"]);
    following.until(" warn stderr before\n").await;
    print(&host, "finer").await;
    print(&host, "[ERROR]%20during").await;
    following.until(" error stderr during\n").await;
    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    eventually("the plugin runs again", || async {
        desk.run(&["plugin", "show", "demo"]).expect(0).out.contains("status:        active")
    })
    .await;
    print(&host, "[WARN]%20after").await;
    let shown = following.until(" warn stderr after\n").await;
    assert!(!shown.contains("finer"), "{shown}");
    assert_eq!(shown.matches(" during\n").count(), 1, "no line is shown twice: {shown}");
    desk.run(&["plugin", "remove", "demo"]).expect(0);
    eventually("the command ends", || {
        let ended = following.child.try_wait().expect("the command can be waited for");
        async move { ended.is_some_and(|status| status.success()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn following_what_is_not_there_fails_at_once() {
    let host = Host::start().await;
    let done = Desk::at(&host).run(&["plugin", "logs", "absent", "-f"]).expect(4);
    assert!(done.err.contains("plugin not found"), "{done:?}");
    assert_eq!(Desk::new().run(&["plugin", "logs", "absent", "-f"]).expect(3).out, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_tells_of_the_process_and_the_events() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    let path = file(&desk, &Package::of(Guest::Rust, "demo", "1.0.0")).await;
    desk.run(&["plugin", "install", path.to_str().unwrap()]).expect(0);
    host.publish("test.one", json!({})).await;
    let expected = "\nevents:        1 delivered, 0 failed, 0 dropped, 0 expired, 0 waiting\nlast event:    ";
    eventually("the event is shown", || async {
        desk.run(&["plugin", "show", "demo"]).expect(0).out.contains(expected)
    })
    .await;
    let text = desk.run(&["plugin", "show", "demo"]).expect(0).out;
    let pid = host.plugin_pid("demo").unwrap();
    let process = text.lines().find(|line| line.starts_with("process:")).unwrap_or_else(|| panic!("{text}"));
    assert!(process.starts_with(&format!("process:       pid {pid}, up ")), "{process}");
    assert!(process.contains(" MB, ") || process.contains(" kB, "), "{process}");
    assert!(process.ends_with(" s of processor time, 0 calls in flight"), "{process}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_shows_what_became_of_each_item_and_fails_when_one_did() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    assert_eq!(desk.run(&["plugin", "sync"]).expect(0).out, "nothing to do\n");
    let archive = Package::of(Guest::Rust, "demo", "1.0.0").archive().await;
    std::fs::write(host.plugins().join("demo.tar.gz"), archive).unwrap();
    assert_eq!(desk.run(&["plugin", "sync"]).expect(0).out, "WHAT       ITEM  NOTE\ninstalled  demo\n");
    let bad = host.plugins().join("bad.tar.gz");
    std::fs::write(&bad, "x").unwrap();
    let done = desk.run(&["plugin", "sync"]).expect(1);
    let line = format!("error  {}  pkgtar: ", bad.display());
    assert!(done.out.lines().nth(1).is_some_and(|text| text.starts_with(&line)), "{done:?}");
    assert_eq!(
        done.err,
        "kandev-host: 1 of the items in the plugins folder failed; the list says why, the others are done\n"
    );
    let done = desk.run(&["--json", "plugin", "sync"]).expect(1);
    assert_eq!((&done.json()["added"], &done.error()["code"]), (&json!([]), &json!("sync_incomplete")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_is_listed_read_and_dismissed() {
    let host = Host::start().await;
    let desk = Desk::at(&host);
    assert_eq!(desk.run(&["inbox"]).expect(0).out, "the inbox is empty\n");
    let package = Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"crash_before_handshake": 3}));
    host.upload(package.archive().await).await.expect(201);
    eventually("the item is there", || async { desk.run(&["inbox", "list"]).expect(0).out.contains("open (new)") })
        .await;
    let listed = desk.run(&["--json", "inbox", "--status", "open", "--limit", "1"]).expect(0).json();
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert_eq!(desk.run(&["inbox", "read", id]).expect(0).out, format!("{id} is read\n"));
    let text = desk.run(&["inbox"]).expect(0).out;
    assert!(
        text.starts_with("ID ") && text.contains("  open  ") && text.contains("Plugin demo is unreachable"),
        "{text}"
    );
    assert_eq!(desk.run(&["inbox", "dismiss", id]).expect(0).out, format!("{id} is dismissed\n"));
    assert_eq!(desk.run(&["inbox"]).expect(0).out, "the inbox is empty\n");
    let done = desk.run(&["inbox", "read", "nonsense"]).expect(4);
    let expected =
        "kandev-host: no inbox item has the id \"nonsense\"; `kandev-host inbox --status all` shows what there is\n";
    assert_eq!(done.err, expected);
    assert_eq!(desk.run(&["--json", "inbox", "read", "nonsense"]).expect(4).error()["code"], "inbox_item_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_marketplace_from_the_first_source_to_an_installed_plugin() {
    let host = Host::start_with(Settings::toml("[install]\nallow_private_addresses = true\n")).await;
    let desk = Desk::at(&host);
    let done = desk.run(&["plugin", "search"]).expect(0);
    assert_eq!(done.out, "no plugin is found\n");
    assert!(done.err.starts_with("warning: the marketplace has no source"), "{}", done.err);
    assert_eq!(desk.run(&["marketplace", "sources"]).expect(0).out, "the marketplace has no source\n");

    let archive = Package::of(Guest::Rust, "demo", "1.0.0").archive().await;
    let server = FileServer::start(&[("/p", File::Content(archive))]).await;
    let entry = json!({"id": "demo", "name": "Demo", "version": "1.0.0", "stars": 3, "package_url": server.url("/p")});
    server.put("/i", File::Content(json!({"plugins": [entry]}).to_string().into_bytes()));
    let url = server.url("/i");
    let added = desk.run(&["--json", "marketplace", "add", &url, "--name", "Acme"]).expect(0).json();
    let id = added["id"].as_str().unwrap();
    assert_eq!(
        desk.run(&["marketplace", "sources"]).expect(0).out,
        format!("{:36}  STATE    NAME  URL\n{id}  enabled  Acme  {url}\n", "ID")
    );
    let found = "ID    VERSION  STARS  STATE  SOURCE  NAME  NOTE\ndemo  1.0.0    3             Acme    Demo\n";
    for search in [["plugin", "search", "DEMO"], ["marketplace", "search", "demo"]] {
        let done = desk.run(&search).expect(0);
        assert_eq!((done.out.as_str(), done.err.as_str()), (found, ""));
    }
    let missing = desk.run(&["--json", "marketplace", "install", "none"]).expect(4).error();
    assert_eq!(missing["code"], "not_listed");
    assert_eq!(desk.run(&["marketplace", "install", "demo"]).expect(0).out, "demo 1.0.0 is active\n");
    assert!(desk.run(&["plugin", "search"]).expect(0).out.contains("installed 1.0.0"));

    for (word, text) in [("on", "is updated automatically"), ("default", "follows the host's setting")] {
        let done = desk.run(&["plugin", "auto-update", "demo", word]).expect(0);
        assert_eq!(done.out, format!("demo {text}\n"));
    }
    desk.run(&["plugin", "auto-update", "demo"]).expect(2);
    let auto_update = |words: &[&str]| desk.run(&[&["marketplace", "auto-update"], words].concat()).expect(0).out;
    assert_eq!(auto_update(&[]), "automatic updates are off\n");
    assert_eq!(auto_update(&["on"]), "automatic updates are on\n");
    assert_eq!(auto_update(&[]), "automatic updates are on\n");

    for command in ["disable", "enable", "remove"] {
        let done = desk.run(&["marketplace", command, "A name"]).expect(4);
        let expected = "kandev-host: no source of the marketplace has the id \"A name\"; \
                        `kandev-host marketplace sources` shows their ids\n";
        assert_eq!((done.out.as_str(), done.err.as_str()), ("", expected), "{command}");
        let error = desk.run(&["--json", "marketplace", command, "A name"]).expect(4).error();
        assert_eq!(error["code"], "source_not_found", "{command}");
    }
    assert_eq!(desk.run(&["marketplace", "disable", id]).expect(0).out, "Acme is disabled\n");
    let none = desk.run(&["marketplace", "search"]).expect(0);
    assert!(none.err.starts_with("warning: every source is disabled: "), "{}", none.err);
    assert_eq!(desk.run(&["marketplace", "enable", id]).expect(0).out, "Acme is enabled\n");
    server.put("/i", File::Status(500));
    let done = desk.run(&["marketplace", "refresh"]).expect(0);
    assert_eq!(done.out, "one source could not be had and shows what it had; the others are fresh\n");
    assert!(done.err.starts_with("warning: Acme: the server responded 500; "), "{}", done.err);
    assert_eq!(desk.run(&["marketplace", "remove", id]).expect(0).out, format!("{id} is removed\n"));
    desk.run(&["marketplace", "remove", id]).expect(4);
}
