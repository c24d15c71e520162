//! `deploy/kandev-host.service` and `deploy/nginx.conf`: their variables, times and sizes against the host's own.

use std::{process::Command, time::Duration};

use kandev_host::config::{Holds, Limits, Timing};

use crate::{holds, read, root};

const UNIT: &str = "deploy/kandev-host.service";

/// The values of a key of the unit, in order.
fn unit(key: &str) -> Vec<String> {
    let text = read(UNIT);
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
    text.lines().filter_map(value).collect()
}

#[test]
fn the_unit_names_variables_of_the_host_and_its_secrets_come_as_credentials() {
    let credentials: Vec<_> =
        unit("LoadCredential").iter().map(|value| value.split(':').next().unwrap_or_default().to_owned()).collect();
    for pair in unit("Environment").iter().flat_map(|line| line.split(' ')) {
        let (name, value) = pair.split_once('=').expect("NAME=value");
        match holds(name) {
            Holds::Text => {}
            Holds::Secret => panic!("{name}: secrets come by file"),
            Holds::SecretFile => {
                let credential = value.strip_prefix("%d/").expect("a credential's path");
                assert!(credentials.iter().any(|given| given == credential), "{credential} is not loaded");
            }
            Holds::Folder if name == "KANDEV_HOME" => {
                assert_eq!(unit("StateDirectory"), [value.strip_prefix("/var/lib/").expect("a state folder")]);
            }
            Holds::Folder => {
                assert_eq!(unit("RuntimeDirectory"), [value.strip_prefix("/run/").expect("a runtime folder")]);
            }
        }
    }
}

#[test]
fn the_unit_lets_the_host_stop_its_plugins_itself() {
    assert_eq!(unit("KillMode"), ["mixed"]);
    let limit: u64 = unit("TimeoutStopSec")[0].parse().expect("seconds");
    assert!(Duration::from_secs(limit) > Timing::default().shutdown_timeout);
    assert_eq!(unit("RestartPreventExitStatus"), ["2"], "the exit code for settings that cannot be used");
    assert_eq!(unit("MemoryDenyWriteExecute"), [""; 0], "plugins may compile at run time");
}

/// systemd's own check, where it is installed. It misses the program, which is not installed here.
#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("kandev-host.service");
    let text = read(UNIT).replace("/usr/local/bin/kandev-host", "/bin/true").replace("User=kandev", "User=root");
    std::fs::write(&copy, text.replace("Group=kandev", "Group=root")).expect("a copy of the unit");
    let Ok(output) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output() else {
        println!("systemd-analyze is not installed: the unit's keys and times were checked, its syntax was not");
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<_> = text.lines().filter(|line| line.contains("kandev-host.service")).collect();
    assert_eq!(ours, [""; 0]);
}

/// The values of a directive of the nginx example, in order of the file.
fn nginx(directive: &str) -> Vec<String> {
    let text = read("deploy/nginx.conf");
    let value = |line: &str| {
        let rest = line.trim().strip_prefix(directive)?.strip_prefix(' ')?;
        rest.strip_suffix(';').map(str::to_owned)
    };
    text.lines().filter_map(value).collect()
}

fn megabytes(text: &str) -> u64 {
    text.strip_suffix('m').and_then(|number| number.parse::<u64>().ok()).expect("megabytes") << 20
}

fn seconds(text: &str) -> Duration {
    Duration::from_secs(text.strip_suffix('s').and_then(|number| number.parse().ok()).expect("seconds"))
}

#[test]
fn the_proxy_lets_pass_what_the_host_accepts_and_waits_longer_than_the_host() {
    let (limits, timing) = (Limits::default(), Timing::default());
    let bodies: Vec<_> = nginx("client_max_body_size").iter().map(|text| megabytes(text)).collect();
    let [webhook, package] = bodies[..] else { panic!("webhooks and packages: {bodies:?}") };
    assert!(webhook >= 16 << 20 && webhook >= limits.event_bytes);
    assert!(package > limits.package_compressed);
    let waits: Vec<_> = nginx("proxy_read_timeout").iter().map(|text| seconds(text)).collect();
    let [webhook, install] = waits[..] else { panic!("webhooks and packages: {waits:?}") };
    assert!(webhook > timing.webhook_timeout_authenticated.max(timing.command_timeout()));
    assert!(install > timing.download_timeout + timing.command_timeout());
    assert!(nginx("client_body_timeout").iter().all(|text| seconds(text) >= timing.body_idle_timeout));
    assert!(nginx("keepalive_timeout").iter().all(|text| seconds(text) < timing.keep_alive));
    assert_eq!(nginx("proxy_next_upstream"), ["off"], "a webhook is never sent twice");
}

#[test]
fn live_connections_streams_and_the_hosts_name_pass_the_proxy() {
    let (set, timing) = (nginx("proxy_set_header"), Timing::default());
    for header in ["Upgrade $http_upgrade", "Connection $kandev_connection"] {
        assert!(set.iter().any(|line| line == header), "{header}: {set:?}");
    }
    let names: Vec<_> = set.iter().filter(|line| line.starts_with("Host ")).collect();
    assert_eq!(names, ["Host $http_host"; 2], "with the port, as the Origin of a page has it");
    assert_eq!(nginx("proxy_buffering"), ["off"]);
    let silence = seconds(&nginx("proxy_read_timeout")[0]);
    assert!(silence > timing.ws_ping && silence > timing.mcp_keep_alive);
}

#[test]
fn braces_of_the_proxy_example_match_and_every_line_ends() {
    let text = read("deploy/nginx.conf");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut depth = 0;
    for line in lines {
        match line.chars().last() {
            Some('{') => depth += 1,
            Some('}') => depth -= 1,
            end => assert_eq!(end, Some(';'), "{line}"),
        }
        assert!(depth >= 0, "{line}");
    }
    assert_eq!(depth, 0);
}

/// The guide shows the way to every file.
#[test]
fn the_guide_names_the_files() {
    let guide = read("docs/operations.md");
    for file in [UNIT, "deploy/nginx.conf", "compose.yaml", "Dockerfile", "scripts/make-secrets.sh"] {
        assert!(guide.contains(file), "{file}");
        assert!(root().join(file).is_file(), "{file}");
    }
}
