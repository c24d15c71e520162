//! Every way a start can fail: its own text with cause and next step, and nothing left behind.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Host, go_program, rust_guest, until, write_program};
use goplugin::host::{HandshakeError, LaunchError, StartFailure};

fn cause(error: LaunchError) -> StartFailure {
    match error {
        LaunchError::Failed { cause, .. } => cause,
        other => panic!("not after the fork: {other}"),
    }
}

#[tokio::test]
async fn a_first_line_of_something_else_is_quoted() {
    let error = Host::new().script_error("echo 'hello \x1b[31mworld'; sleep 60").await;
    let text = "the plugin printed \"hello world\" on stdout before its handshake line; make it print to stderr, or only \
                after serving began";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn an_end_before_the_line_is_told_with_code_and_last_output() {
    let error = Host::new().script_error("echo one >&2; echo two >&2; exit 3").await;
    let text = "the plugin ended before its handshake line: plugin process exited with code 3; last output: one | two";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_signal_before_the_line_is_told_by_name() {
    let error = Host::new().script_error("kill -SEGV $$").await;
    let text = "the plugin ended before its handshake line: plugin process was ended by signal 11 (SEGV)";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_panic_before_the_line_is_shown() {
    let error = Host::new().script_error("echo 'panic: early boom' >&2; exit 2").await;
    assert!(error.to_string().ends_with("exited with code 2; last output: panic: early boom"), "{error}");
}

#[tokio::test]
async fn an_end_before_the_line_is_seen_although_a_daemon_holds_the_pipes() {
    let error = Host::new().script_error("setsid sleep 30 & echo gone >&2; exit 4").await;
    assert!(error.to_string().ends_with("exited with code 4; last output: gone"), "{error}");
}

#[tokio::test]
async fn a_plugin_that_closes_stdout_and_runs_on_is_killed() {
    let error = Host::new().script_error("exec >&-; sleep 60").await;
    assert!(matches!(cause(error), StartFailure::ClosedStdout));
}

#[tokio::test]
async fn a_plugin_that_says_nothing_is_killed_after_the_start_timeout() {
    let mut host = Host::new();
    host.timing.start_timeout = Duration::from_secs(2);
    let error = host.script_error("echo starting >&2; sleep 60").await;
    let text = "the plugin printed no handshake line within 2000 ms; it was killed; last output: starting";
    assert_eq!(error.to_string(), text);
}

#[tokio::test]
async fn a_wrong_line_is_told_by_the_check_it_fails() {
    let host = Host::new();
    let certificate = "A".repeat(60);
    let cases = [
        ("echo '1|1|unix'", HandshakeError::TooFewFields { line: "1|1|unix".to_owned(), count: 3 }),
        ("echo '2|1|unix|/s|grpc|'", HandshakeError::WrongCoreVersion { found: "2".to_owned() }),
        ("echo '1|2|unix|/s|grpc|'", HandshakeError::WrongAppVersion { found: "2".to_owned(), offered: 1 }),
        ("echo '1|1|tcp|127.0.0.1:1|grpc|'", HandshakeError::TcpRefused),
        ("echo '1|1|unix|/s|netrpc|'", HandshakeError::NetRpc),
        ("echo '1|1|unix|/s|grpc|'", HandshakeError::MissingCertificate),
        ("echo '1|1|unix|/s|grpc|AAAA'", HandshakeError::ShortCertificate { length: 4 }),
    ];
    for (script, wanted) in cases {
        let found = cause(host.script_error(&format!("{script}; sleep 60")).await);
        assert!(matches!(&found, StartFailure::Handshake(found) if *found == wanted), "{script}: {found}");
    }
    let found = cause(host.script_error(&format!("echo '1|1|unix|/s|grpc|{certificate}'")).await);
    assert!(matches!(found, StartFailure::Handshake(HandshakeError::UndecodableCertificate { .. })), "{found}");
}

/// The failure of a script that runs `make` and then prints a line that names `address`; its certificate is a DER
/// sequence of 773 zero bytes.
async fn with_socket(host: &Host, make: &str, address: &str) -> StartFailure {
    let certificate = r"(printf '\060\202\003\005'; head -c 773 /dev/zero) | base64 -w0 | tr -d =";
    let line = format!(r#"printf '1|1|unix|%s|grpc|%s\n' "{address}" "$( {certificate} )""#);
    cause(host.script_error(&format!("{make}\n{line}\nsleep 60")).await)
}

#[tokio::test]
async fn a_socket_outside_the_private_folder_is_refused() {
    let host = Host::new();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let path = elsewhere.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    let found = with_socket(&host, "true", &path.display().to_string()).await;
    assert!(found.to_string().contains("lies outside the private folder"), "{found}");
    let link = format!("ln -s {} $PLUGIN_UNIX_SOCKET_DIR/s", path.display());
    let found = with_socket(&host, &link, "$PLUGIN_UNIX_SOCKET_DIR/s").await;
    assert!(found.to_string().contains("lies outside the private folder"), "{found}");
}

#[tokio::test]
async fn an_address_that_is_no_socket_is_refused() {
    let host = Host::new();
    let found = with_socket(&host, "touch $PLUGIN_UNIX_SOCKET_DIR/s", "$PLUGIN_UNIX_SOCKET_DIR/s").await;
    assert!(found.to_string().ends_with("is not a socket"), "{found}");
    let found = with_socket(&host, "true", "$PLUGIN_UNIX_SOCKET_DIR/s").await;
    assert!(found.to_string().contains("cannot be reached"), "{found}");
}

#[tokio::test]
async fn a_program_that_cannot_run_here_is_told_before_it_is_tried() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let program = |name: &str, content: &[u8], mode| {
        let path = folder.path().join(name);
        write_program(&path, content, mode);
        path
    };
    let mut foreign = std::fs::read(rust_guest()).expect("the guest is built");
    foreign.truncate(4096);
    foreign[18] = if cfg!(target_arch = "aarch64") { 62 } else { 183 };
    let cases = [
        (program("foreign", &foreign, 0o755), "is built for"),
        (program("text", b"just text", 0o755), "is a file of an unknown format"),
        (program("plain", b"#!/bin/sh\n", 0o644), "has mode 0644 and is not executable"),
        (folder.path().join("missing"), "does not exist"),
        (program("lost", b"#!/no/such/shell\n", 0o755), "names an interpreter or loader that does not exist here"),
    ];
    for (path, wanted) in cases {
        let text = host.launch_error(&path, "").await.to_string();
        assert!(text.contains(wanted) && text.contains(&path.display().to_string()), "{text}");
    }
}

#[tokio::test]
async fn a_missing_working_folder_is_told() {
    let host = Host::new();
    let mut spec = host.spec(&rust_guest(), "");
    spec.working_dir = "/no/such/folder".into();
    let error = host.launch_spec(spec).await.expect_err("the start fails");
    assert!(error.to_string().starts_with("the working folder /no/such/folder cannot be entered: "), "{error}");
}

#[tokio::test]
async fn a_socket_root_that_is_too_long_is_told_with_its_limit() {
    let host = Host::new();
    let mut spec = host.spec(&rust_guest(), "");
    spec.socket_root = format!("/tmp/{}", "x".repeat(115)).into();
    let error = host.launch_spec(spec).await.expect_err("the start fails");
    assert!(error.to_string().ends_with("has 120 bytes, at most 81 are possible; choose a shorter one"), "{error}");
}

#[tokio::test]
async fn a_wrong_cookie_ends_the_guest_with_a_text_for_people() {
    let host = Host::new();
    for (name, guest) in common::guests() {
        let mut spec = host.spec(&guest, "");
        spec.cookie.1 = "other".to_owned();
        let text = host.launch_spec(spec).await.expect_err("the start fails").to_string();
        assert!(text.contains("exited with code 1; last output: This binary is a plugin"), "{name}: {text}");
    }
}

#[tokio::test]
async fn not_serving_at_the_first_ping_fails_the_start() {
    let error = Host::new().launch_error(&rust_guest(), "not_serving").await;
    assert_eq!(
        error.to_string(),
        "the plugin's first health check failed: the plugin answered the health check with NOT_SERVING"
    );
}

#[tokio::test]
async fn a_go_plugin_that_fails_in_its_own_ways_is_told_apart() {
    let Some(go) = go_program("plugin") else { return };
    let host = Host::new();
    let panic = host.launch_error(&go, "panic_first").await.to_string();
    assert!(panic.contains("exited with code 2; last output: panic: early boom"), "{panic}");
    let init = host.launch_error(&go, "init_error").await.to_string();
    assert!(init.contains("exited with code 0; last output: ") && init.contains("no-such-group"), "{init}");
    let printed = host.launch_error(&go, "print_first").await.to_string();
    assert!(printed.starts_with("the plugin printed \"hello\" on stdout before its handshake line"), "{printed}");
    let version = host.launch_error(&go, "version7").await.to_string();
    assert!(version.starts_with("the plugin speaks application protocol 7, this host offers 1"), "{version}");
}

#[tokio::test]
async fn giving_a_start_up_kills_the_process_and_removes_its_folder() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let (script, mark) = (folder.path().join("plugin.sh"), folder.path().join("pid"));
    write_program(&script, format!("#!/bin/sh\necho $$ > {}; sleep 60\n", mark.display()).as_bytes(), 0o755);
    let read = |mark: &Path| std::fs::read_to_string(mark).ok()?.trim().parse::<u32>().ok();
    let pid = tokio::select! {
        _ = host.launch_spec(host.spec(&script, "")) => panic!("the script never meets the host"),
        pid = until("the script's pid", || read(&mark)) => pid,
    };
    common::gone(pid).await;
    until("an empty socket root", || host.sockets().is_empty().then_some(())).await;
}
