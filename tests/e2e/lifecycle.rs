//! Install, enable, disable, uninstall, crash, restart, frozen processes, host stop and host death
//! (contract/lifecycle.md; field cases §2).

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Guest, Host, Package, Settings, Signal, alive, eventually, eventually_some, kill},
};

/// Timers so short that a whole restart row fits into a test.
const FAST: &str = r#"
[timing]
ping_interval = "200ms"
ping_timeout = "300ms"
restart_delays = ["100ms", "200ms", "300ms"]
restart_stability = "60s"
drain_grace = "300ms"
stop_grace = "500ms"
term_grace = "300ms"
start_timeout = "5s"
delivery_retries = ["100ms", "200ms", "300ms"]
delivery_timeout = "1s"
"#;

/// A plugin has time to note what it was told.
fn patient_stop() -> String {
    FAST.replace("stop_grace = \"500ms\"", "stop_grace = \"3s\"")
        .replace("term_grace = \"300ms\"", "term_grace = \"3s\"")
}

on_both!(an_installed_package_comes_up_answers_is_disabled_enabled_and_removed_without_a_trace, |guest| {
    let host = Host::start().await;
    let body = host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let record = &body["plugin"];
    assert_eq!(record["id"], "demo");
    assert_eq!(record["version"], "1.0.0");
    assert_eq!(record["signed"], false);
    assert_eq!(record["restarting"], false);
    assert_eq!(record["restart_count"], 0);
    assert_eq!(record["last_error"], Value::Null);
    assert_eq!(record["last_error_at"], Value::Null);
    assert_eq!(record["install_path"], host.plugins().join("demo/1.0.0").to_str().unwrap());
    assert!(body["warnings"].as_array().unwrap().iter().any(|w| w.as_str().unwrap().contains("unsigned")), "{body}");

    let pid = host.plugin_pid("demo").expect("the fixture recorded its start");
    assert!(alive(pid));
    assert_eq!(host.command("demo", "enable").await.expect(200)["enabled"], true);
    assert_eq!(host.plugin_pid("demo"), Some(pid), "enable of a running plugin starts nothing");

    assert_eq!(host.command("demo", "disable").await.expect(200)["disabled"], true);
    assert!(!alive(pid));
    assert_eq!(host.plugin("demo").await["status"], "disabled");
    assert_eq!(host.recorded("demo", "stops.jsonl")[0]["reason"], "shutdown", "asked before any signal");
    assert_eq!(host.command("demo", "disable").await.expect(200)["disabled"], true);

    host.command("demo", "enable").await.expect(200);
    assert_ne!(host.plugin_pid("demo"), Some(pid));

    assert_eq!(host.uninstall("demo").await.expect(200)["deleted"], true);
    assert_eq!(host.get("/api/plugins/demo").await.status, 404);
    assert_eq!(host.get("/api/plugins").await.expect(200), json!({"plugins": []}));
    assert_eq!(
        std::fs::read_dir(host.plugins())
            .unwrap()
            .filter(|e| {
                let name = e.as_ref().unwrap().file_name();
                name != ".staging"
            })
            .count(),
        0
    );
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
});

on_both!(a_crash_is_seen_at_once_and_the_plugin_comes_back_by_itself, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let pid = host.plugin_pid("demo").unwrap();
    kill(pid, Signal::KILL);
    let failed = host.status("demo", "error").await;
    assert_eq!(failed["restarting"], true);
    assert!(failed["last_error"].as_str().unwrap().contains("signal 9"), "{failed}");
    assert!(failed["last_error_at"].is_string());
    let back = host.status("demo", "active").await;
    assert_eq!(back["restart_count"], 1);
    assert_eq!(back["last_error"], Value::Null);
    assert_ne!(host.plugin_pid("demo"), Some(pid));
});

on_both!(a_plugin_that_always_crashes_ends_in_error_until_an_operator_enables_it, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"exit_after_handshake_ms": 1500}));
    host.upload(package.archive().await).await.expect(201);
    let dead = eventually_some("the row is used up", || async {
        let record = host.plugin("demo").await;
        (record["status"] == "error" && record["restarting"] == false).then_some(record)
    })
    .await;
    assert!(dead["last_error"].as_str().unwrap().contains("gave up after 3 restarts"), "{dead}");
    assert_eq!(host.recorded("demo", "starts.jsonl").len(), 4);

    host.set_switches("demo", &json!({"exit_after_handshake_ms": null}));
    host.command("demo", "enable").await.expect(200);
    assert_eq!(host.plugin("demo").await["last_error"], Value::Null);
});

on_both!(a_frozen_process_is_found_by_its_pings_killed_and_replaced, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let pid = host.plugin_pid("demo").unwrap();
    kill(pid, Signal::STOP);
    let failed = host.status("demo", "error").await;
    assert!(failed["last_error"].as_str().unwrap().contains("3 health pings in a row failed"), "{failed}");
    host.status("demo", "active").await;
    assert!(!alive(pid));
});

on_both!(a_frozen_process_can_be_disabled_and_uninstalled_within_the_deadlines, |guest| {
    let slow_pings = FAST.replace("ping_interval = \"200ms\"", "ping_interval = \"1h\"");
    let host = Host::start_with(Settings::toml(&slow_pings)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    kill(host.plugin_pid("demo").unwrap(), Signal::STOP);
    host.command("demo", "disable").await.expect(200);
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    host.command("demo", "enable").await.expect(200);
    kill(host.plugin_pid("demo").unwrap(), Signal::STOP);
    host.uninstall("demo").await.expect(200);
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
});

on_both!(a_process_that_ignores_shutdown_and_term_is_killed, |guest| {
    let host = Host::start_with(Settings::toml(&patient_stop())).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"ignore_shutdown": true, "ignore_term": true}));
    host.install(&package).await;
    let pid = host.plugin_pid("demo").unwrap();
    host.command("demo", "disable").await.expect(200);
    assert!(!alive(pid));
    let stops: Vec<_> = host.recorded("demo", "stops.jsonl").iter().map(|stop| stop["reason"].clone()).collect();
    assert_eq!(stops, [json!("shutdown"), json!("term")]);
});

on_both!(the_whole_process_group_ends_with_the_plugin, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"spawn_child": true}));
    host.install(&package).await;
    let child = eventually_some("the child's pid", || async {
        std::fs::read_to_string(host.data("demo").join("child.pid")).ok()?.trim().parse::<i32>().ok()
    })
    .await;
    assert!(alive(child));
    host.command("demo", "disable").await.expect(200);
    eventually("the child is gone", || async { !alive(child) }).await;
    host.command("demo", "enable").await.expect(200);
    let child = eventually_some("the second child's pid", || async {
        let text = std::fs::read_to_string(host.data("demo").join("child.pid")).ok()?;
        text.lines().last()?.trim().parse::<i32>().ok().filter(|pid| *pid != child)
    })
    .await;
    kill(host.plugin_pid("demo").unwrap(), Signal::KILL);
    eventually("a crash takes the child with it", || async { !alive(child) }).await;
});

on_both!(a_disable_aborts_a_start_that_hangs, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"hang_before_handshake": true}));
    let archive = package.archive().await;
    let (upload, disabled) = tokio::join!(host.upload(archive), async {
        eventually("the start is under way", || async {
            host.get("/api/plugins/demo").await.body["status"] == "registered" && host.plugin_pid("demo").is_some()
        })
        .await;
        host.command("demo", "disable").await
    });
    assert_eq!(disabled.expect(200)["disabled"], true);
    let body = upload.expect(201);
    assert!(body["warning"].as_str().unwrap().contains("aborted"), "{body}");
    assert_eq!(host.plugin("demo").await["status"], "disabled");
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
});

on_both!(a_host_that_is_killed_leaves_no_plugin_process_and_its_successor_starts_each_once, |guest| {
    let mut host = Host::start().await;
    for id in ["one", "two", "three"] {
        host.install(&Package::of(guest, id, "1.0.0")).await;
    }
    assert_eq!(host.plugin_processes().len(), 3);
    host.kill();
    eventually("no plugin process is left", || async { host.plugin_processes().is_empty() }).await;
    host.spawn().await;
    for id in ["one", "two", "three"] {
        host.status(id, "active").await;
    }
    assert_eq!(host.plugin_processes().len(), 3);
});

on_both!(a_child_that_outlives_a_killed_host_is_swept_at_the_next_start, |guest| {
    let mut host = Host::start().await;
    let package = Package::of(guest, "demo", "1.0.0").switches(&json!({"spawn_child_setsid": true}));
    host.install(&package).await;
    let child = eventually_some("the child's pid", || async {
        std::fs::read_to_string(host.data("demo").join("child.pid")).ok()?.trim().parse::<i32>().ok()
    })
    .await;
    host.kill();
    assert!(alive(child), "a session of its own survives the host");
    host.spawn().await;
    eventually("the child is swept", || async { !alive(child) }).await;
    host.status("demo", "active").await;
    host.command("demo", "disable").await.expect(200);
    let second: i32 = std::fs::read_to_string(host.data("demo").join("child.pid"))
        .unwrap()
        .lines()
        .last()
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    if alive(second) {
        kill(second, Signal::KILL);
    }
});

on_both!(a_clean_stop_ends_dead_and_stubborn_plugins_alike_and_the_record_stays_active, |guest| {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(guest, "calm", "1.0.0")).await;
    let stubborn =
        Package::of(guest, "stubborn", "1.0.0").switches(&json!({"ignore_shutdown": true, "ignore_term": true}));
    host.install(&stubborn).await;
    assert_eq!(host.stop().await, Some(0));
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    assert!(!host.home().join("run/host.json").exists());
    let errors: Vec<_> = host.log().lines().filter(|line| line.contains("ERROR")).map(str::to_owned).collect();
    assert_eq!(errors, Vec::<String>::new());
    host.spawn().await;
    host.status("calm", "active").await;
    host.status("stubborn", "active").await;
});

on_both!(exhausted_and_disabled_plugins_are_left_alone_by_a_restart_of_the_host, |guest| {
    let mut host = Host::start_with(Settings::toml(FAST)).await;
    let failing = Package::of(guest, "failing", "1.0.0").switches(&json!({"crash_before_handshake": 3}));
    let body = host.upload(failing.archive().await).await.expect(201);
    assert_eq!(body["plugin"]["status"], "error");
    assert!(body["warning"].as_str().unwrap().contains("code 3"), "{body}");
    host.install(&Package::of(guest, "off", "1.0.0")).await;
    host.command("off", "disable").await.expect(200);
    host.stop().await;
    let starts = host.recorded("failing", "starts.jsonl").len();
    host.spawn().await;
    assert_eq!(host.plugin("failing").await["status"], "error");
    assert_eq!(host.plugin("off").await["status"], "disabled");
    assert_eq!(host.recorded("failing", "starts.jsonl").len(), starts);
    assert_eq!(host.recorded("off", "starts.jsonl").len(), 1);
});

on_both!(two_disables_at_once_both_answer_after_one_stop, |guest| {
    let host = Host::start_with(Settings::toml(&patient_stop())).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let (first, second) = tokio::join!(host.command("demo", "disable"), host.command("demo", "disable"));
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(host.recorded("demo", "stops.jsonl").len(), 1);
});

on_both!(a_newer_version_replaces_a_running_one_and_the_same_version_again_is_refused, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    let first = host.plugin_pid("demo").unwrap();
    let again = host.upload(Package::of(guest, "demo", "1.0.0").archive().await).await;
    assert_eq!(again.status, 409);
    assert!(again.body["error"].as_str().unwrap().starts_with("pkgtar: version already installed: "), "{}", again.body);
    assert!(alive(first), "the running plugin was not touched");

    let body = host.install(&Package::of(guest, "demo", "1.1.0")).await;
    assert_eq!(body["plugin"]["version"], "1.1.0");
    assert!(!alive(first));
    assert_eq!(host.plugin_processes().len(), 1);
    host.install(&Package::of(guest, "demo", "1.2.0")).await;
    let mut versions: Vec<_> = std::fs::read_dir(host.plugins().join("demo"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    versions.sort();
    assert_eq!(versions, ["1.1.0", "1.2.0", "data"]);
});

on_both!(of_two_installs_of_one_id_at_once_exactly_one_wins, |guest| {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let archive = Package::of(guest, "demo", "1.0.0").archive().await;
    let (first, second) = tokio::join!(host.upload(archive.clone()), host.upload(archive));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409], "{first:?} {second:?}");
    host.status("demo", "active").await;
});

fn looping(id: &str) -> Package {
    Package::of(Guest::Rust, id, "1.0.0").switches(&json!({"exit_after_handshake_ms": 100}))
}

/// Field case 21: ten crash-looping plugins while an operator clicks everything: the host stays up and every plugin
/// ends in a lawful state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_loops_and_a_busy_operator_leave_every_plugin_in_a_lawful_state() {
    let host = Host::start_with(Settings::toml(FAST)).await;
    let ids: Vec<String> = (0..10).map(|n| format!("loop-{n}")).collect();
    let mut packages = Vec::new();
    for id in &ids {
        let archive = looping(id).archive().await;
        host.upload(archive.clone()).await.expect(201);
        packages.push(archive);
    }
    let click = async |n: usize, turn: usize| {
        let path = format!("/api/plugins/{}", ids[n]);
        let answer = match turn % 6 {
            0 | 3 => host.command(&ids[n], "enable").await,
            1 => host.command(&ids[n], "disable").await,
            2 => host.post("/api/plugins/sync", json!({})).await,
            4 => host.get(&path).await,
            _ => {
                let gone = host.request(Method::DELETE, &path, None).await;
                assert!([200, 404, 409].contains(&gone.status), "{gone:?}");
                host.upload(packages[n].clone()).await
            }
        };
        assert!([200, 201, 404, 409, 422, 429, 500, 502, 503].contains(&answer.status), "{answer:?}");
        assert_ne!(answer.body["code"], "internal", "{answer:?}");
    };
    let until = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    let clicks = (0..ids.len()).map(|n| async move {
        for turn in 0.. {
            if tokio::time::Instant::now() >= until {
                return;
            }
            click(n, turn + n).await;
        }
    });
    tokio::time::timeout(std::time::Duration::from_secs(120), futures_util::future::join_all(clicks))
        .await
        .expect("every click is answered");
    for (n, id) in ids.iter().enumerate() {
        if host.get(&format!("/api/plugins/{id}")).await.status == 404 {
            host.upload(packages[n].clone()).await.expect(201);
        }
        host.command(id, "disable").await.expect(200);
    }
    assert_eq!(host.plugin_processes(), Vec::<i32>::new());
    for id in &ids[..5] {
        host.uninstall(id).await.expect(200);
    }
    let list = host.get("/api/plugins").await.expect(200);
    let left: Vec<_> =
        list["plugins"].as_array().unwrap().iter().map(|p| (p["id"].clone(), p["status"].clone())).collect();
    assert_eq!(left, ids[5..].iter().map(|id| (json!(id), json!("disabled"))).collect::<Vec<_>>());
    assert_eq!(host.request(Method::GET, "/ready", None).await.status, 200);
}
