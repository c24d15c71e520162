//! `plugin check`: good packages pass, and each broken one fails for its reason and for no other.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    command::{Desk, Done},
    on_both, python,
    support::{Guest, Package, Signal, alive, eventually_some, kill},
};

/// What the fixture is asked for, in the place of the template's webhooks: nothing that ends it.
const PARTS: &str = r#"webhooks:
  - {key: echo, access: public}
  - {key: absent, access: authenticated, method: POST}
icon: assets/icon.svg
ui:
  bundle: /ui/bundle.js
  styles: [/ui/a.css]
agent_tools:
  - name: sleep
    description: Answers later
    surfaces: [kanban-task]
    input_schema: {type: object}
"#;

/// A fixture that gives no reason to complain.
fn good(package: Package) -> Package {
    package
        .manifest(|text| text.split("webhooks:").next().expect("a manifest").to_owned() + PARTS)
        .file("ui/bundle.js", "register()")
        .file("ui/a.css", "a{}")
        .file("assets/icon.svg", "<svg/>")
}

/// The Rust fixture with these switches.
fn with(switches: &Value) -> Package {
    good(Package::of(Guest::Rust, "demo", "1.0.0")).switches(switches)
}

/// A desk that has the archive, and a folder of its own for temporary files.
fn desk(archive: &[u8]) -> Desk {
    let desk = Desk::new();
    let temporary = desk.path().join("tmp");
    fs::create_dir(&temporary).expect("a folder");
    fs::write(desk.path().join("package.tar.gz"), archive).expect("a package");
    let temporary = temporary.to_str().expect("a path as text").to_owned();
    desk.env("TMPDIR", &temporary)
}

/// What lies among the temporary files.
fn temporary(desk: &Desk) -> Vec<PathBuf> {
    fs::read_dir(desk.path().join("tmp")).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
}

/// Checks an archive as JSON; nothing may be left of it.
fn check_archive(archive: &[u8], arguments: &[&str]) -> (Done, Value) {
    let desk = desk(archive);
    let done = desk.run(&[&["plugin", "check", "package.tar.gz", "--json"], arguments].concat());
    assert_eq!(temporary(&desk), Vec::<PathBuf>::new(), "the home is gone");
    let report = done.json();
    (done, report)
}

async fn check(package: &Package, arguments: &[&str]) -> (Done, Value) {
    check_archive(&package.archive().await, arguments)
}

/// `check subject` and text of every finding with this verdict.
fn findings(report: &Value, verdict: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = report["checks"].as_array().expect("checks").iter();
    all.filter(|finding| finding["verdict"] == verdict)
        .map(|finding| {
            let name = format!("{} {}", text(&finding["check"]), text(&finding["subject"]));
            (name.trim_end().to_owned(), text(&finding["text"]))
        })
        .collect()
}

/// Fails unless exactly this check failed, with these words in its text.
#[track_caller]
fn assert_fails_only((done, report): &(Done, Value), check: &str, words: &str) {
    assert_eq!(done.code, Some(8), "{done:?}");
    let failed = findings(report, "fail");
    assert_eq!(failed.len(), 1, "{failed:#?}\n{report:#}");
    assert_eq!(failed[0].0, check, "{failed:?}");
    assert!(failed[0].1.contains(words), "\"{words}\" is not in: {}", failed[0].1);
    assert_eq!((&report["verdict"], &report["counts"]["fail"]), (&json!("fail"), &json!(1)));
    let error = json!({"error": "1 of the checks failed; each says what to do", "code": "check_failed", "exit": 8});
    assert_eq!(done.error(), error);
    let told = report["checks"].as_array().expect("checks").iter().find(|finding| finding["verdict"] == "fail");
    assert!(told.is_some_and(|finding| finding["advice"].as_str().is_some_and(|advice| !advice.is_empty())));
}

/// Fails unless every check passed, and only the settings, of which there are none, were left out.
#[track_caller]
fn assert_passes(done: &Done, report: &Value) {
    assert_eq!((findings(report, "fail"), findings(report, "warn")), (vec![], vec![]), "{report:#}");
    assert_eq!(findings(report, "skipped"), [("settings".to_owned(), "it has none".to_owned())]);
    let expected = [
        "archive",
        "manifest",
        "platform",
        "capabilities",
        "handshake",
        "health",
        "log",
        "memory start",
        "memory after the calls",
        "events test.*",
        "events task.*",
        "events shell.>",
        "webhooks echo",
        "webhooks absent",
        "ui /ui/bundle.js",
        "ui /ui/a.css",
        "ui assets/icon.svg",
        "tools sleep",
        "stop",
        "leftovers",
    ];
    let passed: Vec<_> = findings(report, "pass").into_iter().map(|(name, _)| name).collect();
    assert_eq!(passed, expected);
    assert_eq!((&report["format"], &report["id"], &report["version"]), (&json!(1), &json!("demo"), &json!("1.0.0")));
    assert_eq!((&report["verdict"], &report["home"]), (&json!("pass"), &Value::Null));
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
}

on_both!(a_good_package_passes_every_check, |guest| {
    let (done, report) = check(&good(Package::of(guest, "demo", "1.0.0")), &["--call-tools"]).await;
    assert_passes(&done, &report);
});

#[tokio::test(flavor = "multi_thread")]
async fn a_good_package_in_python_passes_every_check() {
    let Some(program) = python::fixture() else { return };
    let (done, report) = check(&good(Package::with_program(program, "demo", "1.0.0")), &["--call-tools"]).await;
    assert_passes(&done, &report);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_fails_the_archive() {
    let package = with(&json!({}));
    let checksums = package.checksums();
    let (line, digest) = checksums.lines().find_map(|line| Some((line, line.strip_suffix("  ui/a.css")?))).unwrap();
    let wrong = checksums.replace(line, &line.replace(digest, &"0".repeat(64)));
    let checked = check_archive(&package.archive_with_checksums(&wrong).await, &[]);
    assert_fails_only(&checked, "archive", "pkgtar: checksum mismatch: ui/a.css");
    let skipped: Vec<_> = findings(&checked.1, "skipped").into_iter().map(|(_, why)| why).collect();
    assert_eq!(skipped, vec!["no host would install the package here"; 14]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_binary_for_this_machine_fails_the_platform() {
    let package = with(&json!({}))
        .manifest(|text| text.replace("linux-amd64", "darwin-amd64").replace("linux-arm64", "darwin-arm64"));
    let checked = check(&package, &[]).await;
    assert_fails_only(&checked, "platform", "pkgtar: host platform not supported by package: ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_schema_that_does_not_compile_fails_the_manifest() {
    let package = with(&json!({})).manifest(|text| {
        text.replace("input_schema: {type: object}", "input_schema: {type: object, properties: {a: {type: text}}}")
    });
    let words = "agent_tools[0].input_schema is not a valid JSON Schema: bad value of \"type\"";
    assert_fails_only(&check(&package, &[]).await, "manifest", words);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_at_once_fails_the_handshake() {
    let checked = check(&with(&json!({"crash_before_handshake": 7})), &[]).await;
    assert_fails_only(&checked, "handshake", "ended before its handshake line: plugin process exited with code 7");
    let skipped: Vec<_> = findings(&checked.1, "skipped").into_iter().filter(|(name, _)| name == "stop").collect();
    assert_eq!(skipped, [("stop".to_owned(), "the plugin does not run".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn something_else_on_stdout_fails_the_handshake() {
    let checked = check(&with(&json!({"print_before_handshake": "hello there"})), &[]).await;
    assert_fails_only(&checked, "handshake", "printed \"hello there\" on stdout before its handshake line");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_never_says_its_line_fails_the_handshake() {
    let checked = check(&with(&json!({"hang_before_handshake": true})), &["--timeout", "2s"]).await;
    assert_fails_only(&checked, "handshake", "printed no handshake line within 2000 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_version_of_the_protocol_fails_the_handshake() {
    let program = "#!/bin/sh\necho '1|9|unix|/tmp/nowhere|grpc|'\nexec sleep 60\n";
    let checked = check(&good(Package::with_program(program, "demo", "1.0.0")), &[]).await;
    assert_fails_only(&checked, "handshake", "speaks application protocol 9");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_answers_no_health_check_fails_health() {
    let checked = check(&with(&json!({"never_healthy": true})), &[]).await;
    assert_fails_only(&checked, "health", "first health check failed");
    assert!(findings(&checked.1, "pass").iter().any(|(name, _)| name == "handshake"), "{:#}", checked.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_dies_of_an_event_fails_events_and_the_rest_is_still_looked_at() {
    let checked = check(&with(&json!({"crash_on_event": true})), &[]).await;
    assert_fails_only(&checked, "events test.*", "test.check ended the plugin: ");
    let skipped = "an event before it ended the plugin".to_owned();
    assert!(findings(&checked.1, "skipped").contains(&("events task.*".to_owned(), skipped)), "{:#}", checked.1);
    assert!(findings(&checked.1, "pass").iter().any(|(name, _)| name == "webhooks echo"), "{:#}", checked.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_hangs_fails_events() {
    let checked = check(&with(&json!({"hang_on_event": "test."})), &["--timeout", "3s"]).await;
    assert_fails_only(&checked, "events test.*", "test.check was not acknowledged within 3.0 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_for_a_made_up_event_is_a_warning() {
    let (done, report) = check(&with(&json!({"fail_event": {"test.check": 9}})), &[]).await;
    assert_eq!((done.code, findings(&report, "fail")), (Some(0), vec![]), "{report:#}");
    let warned = findings(&report, "warn");
    assert_eq!((warned.len(), warned[0].0.as_str()), (1, "events test.*"), "{warned:?}");
    assert!(warned[0].1.contains("fixture: fail_event test.check"), "{warned:?}");
    assert_eq!(report["verdict"], "warn");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_hangs_or_dies_fails_webhooks() {
    let checked = check(&with(&json!({"hang_on_webhook": "echo"})), &["--timeout", "3s"]).await;
    assert_fails_only(&checked, "webhooks echo", "it did not answer within 3");
    let checked = check(&with(&json!({"crash_on_webhook": "echo"})), &[]).await;
    assert_fails_only(&checked, "webhooks echo", "it gave no answer that can be sent on (webhook_failed)");
    let passed = findings(&checked.1, "pass");
    assert!(passed.iter().any(|(name, _)| name == "webhooks absent"), "judged by itself: {:#}", checked.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_file_that_is_not_there_or_has_another_type_fails_ui() {
    let checked = check(&with(&json!({})).without("ui/bundle.js"), &[]).await;
    assert_fails_only(&checked, "ui /ui/bundle.js", "it is not in the package");
    let package =
        with(&json!({})).manifest(|text| text.replace("/ui/a.css", "/ui/style.txt")).file("ui/style.txt", "a{}");
    let checked = check(&package, &[]).await;
    assert_fails_only(&checked, "ui /ui/style.txt", "it is served as text/plain; charset=utf-8, not as text/css");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_asked_for_by_the_address_that_the_page_gets() {
    let styled = |style: &str| with(&json!({})).manifest(|text| text.replace("/ui/a.css", style));
    let checked = check(&styled("/ui/a%20b.css").file("ui/a%20b.css", "a{}"), &[]).await;
    let words = "the page asks for \"ui/a b.css\" by it, which is not in the package";
    assert_fails_only(&checked, "ui /ui/a%20b.css", words);
    let checked = check(&styled("/../../evil1.yml"), &[]).await;
    assert_fails_only(&checked, "ui /../../evil1.yml", "it leads out of the package or to no file");
    for (style, file) in [("/ui/a%2Bb.css", "ui/a+b.css"), ("//ui/./a.css?v=1", "ui/a.css")] {
        let package = styled(style).manifest(|text| text.replace("assets/icon.svg", "./assets//icon.svg"));
        let (done, report) = check(&package.file(file, "a{}"), &[]).await;
        assert_eq!((done.code, findings(&report, "fail")), (Some(0), vec![]), "{report:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_is_told_only_when_tools_are_called() {
    let package = with(&json!({"hang_on_tool": true}));
    let (done, report) = check(&package, &["--timeout", "3s"]).await;
    assert_eq!((done.code, findings(&report, "fail")), (Some(0), vec![]), "{report:#}");
    let checked = check(&package, &["--timeout", "3s", "--call-tools"]).await;
    assert_fails_only(&checked, "tools sleep", "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_must_be_killed_fails_stop() {
    let checked = check(&with(&json!({"ignore_shutdown": true, "ignore_term": true})), &[]).await;
    assert_fails_only(&checked, "stop", "it had to be killed");
    let (done, report) = check(&with(&json!({"ignore_shutdown": true})), &[]).await;
    assert_eq!((done.code, findings(&report, "fail")), (Some(0), vec![]), "{report:#}");
    let text = "it did not end within 2.0 s, but at SIGTERM";
    assert_eq!(findings(&report, "warn"), [("stop".to_owned(), text.to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_lines_fails_log() {
    let checked = check(&with(&json!({"flood_stderr": 20_000})), &[]).await;
    assert_fails_only(&checked, "log", "it floods its log: ");
    let log = checked.1["checks"].as_array().expect("checks").iter().find(|finding| finding["check"] == "log");
    let left_out = log.and_then(|finding| finding["facts"]["left_out"].as_u64());
    assert!(left_out.is_some_and(|lines| lines > 1000), "what the host left out is counted: {log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_outlives_the_plugin_fails_leftovers_and_is_ended() {
    let checked = check(&with(&json!({"spawn_child_setsid": true})), &[]).await;
    assert_fails_only(&checked, "leftovers", "1 of its processes outlived it: sleep (");
    let pid = findings(&checked.1, "fail")[0].1.split('(').nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
    let pid: i32 = pid.expect("a pid");
    eventually_some("the child is gone", || async { (!alive(pid)).then_some(()) }).await;
}

const SCHEMA: &str = "config_schema: {type: object, required: [token], properties: {token: {type: string, secret: true}, \
                      retries: {type: integer}}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_taken_from_files_and_missing_ones_are_a_warning() {
    let package = with(&json!({})).manifest(|text| text + SCHEMA);
    let desk = desk(&package.archive().await);
    fs::write(desk.path().join("settings.yaml"), "retries: 3\n").unwrap();
    fs::write(desk.path().join("token.txt"), "hunter2-hunter2\n").unwrap();
    fs::write(desk.path().join("wrong.yaml"), "retries: many\n").unwrap();
    let run = |arguments: &[&str]| desk.run(&[&["plugin", "check", "package.tar.gz", "--json"], arguments].concat());

    let report = run(&["--config", "settings.yaml", "--secret", "token=token.txt"]).expect(0).json();
    let passed = findings(&report, "pass");
    assert!(passed.contains(&("settings".to_owned(), "the host took 2 of them".to_owned())), "{report:#}");
    assert!(!report.to_string().contains("hunter2"));

    let report = run(&[]).expect(0).json();
    let warned = [("settings".to_owned(), "it requires token, and was checked without".to_owned())];
    assert_eq!(findings(&report, "warn"), warned);

    let done = run(&["--config", "wrong.yaml", "--secret", "token=token.txt"]);
    let report = done.json();
    assert_fails_only(&(done, report), "settings", "retries");

    let refused = run(&["--secret", "hunter2"]).expect(2);
    assert!(refused.err.contains("--secret takes FIELD=FILE") && !refused.err.contains("hunter2"), "{}", refused.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_tells_what_the_json_does_and_the_home_can_be_kept() {
    let desk = desk(&with(&json!({"crash_before_handshake": 7})).archive().await);
    let done = desk.run(&["plugin", "check", "package.tar.gz", "--keep"]).expect(8);
    let lines: Vec<_> = done.out.lines().collect();
    assert!(lines[0].starts_with("CHECK  ") && lines[0].ends_with("VERDICT  TEXT"), "{}", done.out);
    let at = lines.iter().position(|line| line.starts_with("handshake ")).expect("a line for the handshake");
    assert!(lines[at].contains("  fail  ") && lines[at + 1].contains("-> start the binary by hand"), "{}", done.out);
    assert_eq!(lines.last().copied(), Some("demo 1.0.0: fail (4 pass, 0 warn, 1 fail, 10 skipped)"));
    assert!(done.err.ends_with("kandev-host: 1 of the checks failed; each says what to do\n"), "{}", done.err);
    let kept = temporary(&desk);
    assert_eq!(kept.len(), 1);
    assert!(done.err.contains(&format!("the home is kept: {}", kept[0].display())), "{}", done.err);
    assert!(fs::read_to_string(kept[0].join("host.log")).unwrap().contains("plugin failed"));
    assert!(kept[0].join("plugins/demo/data/starts.jsonl").is_file());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_a_terminal_that_goes_away_end_the_check_and_leave_nothing() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        ends_the_check(signal).await;
    }
}

async fn ends_the_check(signal: Signal) {
    let desk = desk(&with(&json!({"hang_before_handshake": true})).archive().await);
    let mut command = desk.command(env!("CARGO_BIN_EXE_kandev-host"));
    command.args(["plugin", "check", "package.tar.gz"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the command starts");
    let starts = |home: &Path| fs::read_to_string(home.join("plugins/demo/data/starts.jsonl")).ok();
    let plugin = eventually_some("the plugin was started", || {
        let found = temporary(&desk).iter().find_map(|home| starts(home));
        let line = found.and_then(|text| serde_json::from_str::<Value>(text.lines().next()?).ok());
        async move { line.and_then(|line| i32::try_from(line["start"].as_i64()?).ok()) }
    })
    .await;
    kill(i32::try_from(child.id()).expect("a pid"), signal);
    let output = child.wait_with_output().expect("the command ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{signal:?}: {text}");
    assert!(text.contains("the check was interrupted"), "{text}");
    assert_eq!(temporary(&desk), Vec::<PathBuf>::new());
    assert!(!alive(plugin));
}

#[test]
fn a_file_that_cannot_be_read_is_no_verdict() {
    let desk = Desk::new();
    let done = desk.run(&["plugin", "check", "nothing.tar.gz"]).expect(1);
    assert!(done.out.is_empty() && done.err.contains("cannot read nothing.tar.gz"), "{done:?}");
    fs::write(desk.path().join("text.tar.gz"), "no package").unwrap();
    let report = desk.run(&["plugin", "check", "text.tar.gz", "--json"]).expect(8).json();
    assert_eq!(findings(&report, "fail")[0].0, "archive");
    assert_eq!((&report["id"], &report["counts"]["skipped"]), (&Value::Null, &json!(14)));
}
