//! Git credentials (contract/wire.md §2.1): tokens that open one route for one repository and end with their session,
//! credentials under the binding that holds now, hostile answers, and a secret that is nowhere but in the answer.

use std::process::{Command, Stdio};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{
        Board, Guest, Host, Settings,
        board::provider,
        eventually,
        host::{Answer, TOKEN, answer},
    },
};

/// No other text of any test.
const MARKER: &str = "m4rk3d-cr3dent1al-4711";

const QUICK: &str = r#"
[timing]
git_credential_timeout = "2s"
lease_grace = "300ms"
"#;

fn git(bindings: Value) -> Value {
    json!({"git": {"username": "x-access-token", "secret": MARKER, "expires_at": "2099-01-01T00:00:00Z",
        "bindings": bindings}})
}

async fn with_forge(guest: Guest, toml: &str) -> (Host, Board) {
    let host = Host::start_with(Settings::toml(toml)).await;
    host.install(&provider(guest, "forge", "1.0.0")).await;
    host.set_switches("forge", &git(json!(["account-7"])));
    let board = Board::hosted(&host).await;
    (host, board)
}

/// Asks as git's helper does.
async fn ask(host: &Host, token: &str, remote: Value) -> Answer {
    let url = format!("{}/api/v1/git-credential", host.url());
    answer(host.client().post(url).bearer_auth(token).json(&remote)).await
}

fn remote(path: &str) -> Value {
    json!({"protocol": "https", "host": "forge.example.test", "path": path})
}

async fn asked(host: &Host, token: &str) -> Answer {
    ask(host, token, remote("team/app.git")).await
}

on_both!(a_token_gives_the_credential_of_its_repository_and_opens_nothing_else, |guest| {
    let (host, board) = with_forge(guest, "").await;
    let made = host.post(&board.tokens(), json!({"expires_in_seconds": 3600})).await.expect(201);
    let token = made["token"].as_str().expect("a token").to_owned();
    assert!(token.starts_with("kgt_") && token.len() == 47, "{token}");
    assert_eq!((&made["session_id"], &made["repository_id"]), (&json!(board.session), &json!(board.repository)));
    let list = host.get(&board.tokens()).await.expect(200);
    let mut shown = made.clone();
    shown.as_object_mut().unwrap().remove("token");
    assert_eq!(list, json!({"tokens": [shown]}));

    let expected = json!({"username": "x-access-token", "password": MARKER, "expires_at": "2099-01-01T00:00:00Z"});
    assert_eq!(asked(&host, &token).await.expect(200), expected);
    let request = json!({"workspace_id": board.workspace, "task_id": board.task, "session_id": board.session,
        "repository_id": board.repository, "host": "forge.example.test", "path": "team/app.git"});
    let calls: Vec<_> =
        host.calls("forge").into_iter().map(|call| (call["kind"].clone(), call["request"].clone())).collect();
    let order = ["binding", "credential", "binding"].map(|kind| (json!(kind), request.clone()));
    assert_eq!(calls, order);
    assert_ne!(host.get(&board.tokens()).await.expect(200)["tokens"][0]["last_used_at"], Value::Null);
    let url = format!("{}/api/v1/git-credential", host.url());
    let raw = host.client().post(url).bearer_auth(&token).json(&remote("team/app")).send().await.expect("an answer");
    assert_eq!((raw.status().as_u16(), raw.headers()["cache-control"].to_str().unwrap()), (200, "no-store"));

    for (elsewhere, code) in [
        (json!({"protocol": "http", "host": "forge.example.test", "path": "team/app.git"}), "git_elsewhere"),
        (json!({"protocol": "https", "host": "Forge.example.test", "path": "team/app.git"}), "git_elsewhere"),
        (json!({"protocol": "https", "host": "evil.example.test", "path": "team/app.git"}), "git_elsewhere"),
        (remote("Team/app.git"), "git_elsewhere"),
        (remote("team/other.git"), "git_elsewhere"),
        (remote(""), "git_path_missing"),
    ] {
        let refused = ask(&host, &token, elsewhere.clone()).await.expect(404);
        assert_eq!(refused["code"], code, "{elsewhere}");
    }
    let lines = json!({"protocol": "https", "host": "forge.example.test\nhost=evil", "path": "team/app.git"});
    assert_eq!(ask(&host, &token, lines).await.expect(400)["code"], "invalid_payload");
    assert_eq!(host.calls("forge").len(), 6, "none of those reached the plugin");

    for path in ["/api/plugins", "/api/v1/workspaces", "/metrics", &board.tokens(), "/api/v1/secrets"] {
        assert_eq!(host.with_token(&token, Method::GET, path).await.status, 401, "{path}");
    }
    assert_eq!(host.with_token(&token, Method::POST, &board.tokens()).await.status, 401);
    for other in [TOKEN, "kgt_", &format!("{token}x"), &token.replace("kgt_", "")] {
        assert_eq!(asked(&host, other).await.expect(401)["code"], "unauthenticated");
    }
    assert_eq!(host.anonymous(Method::POST, "/api/v1/git-credential").await.status, 401);
});

on_both!(a_page_of_another_origin_gets_no_credential_with_a_good_token, |guest| {
    let (host, board) = with_forge(guest, "").await;
    let token = board.token(&host).await;
    let from = async |origin: &str| {
        let request = host.client().post(format!("{}/api/v1/git-credential", host.url())).bearer_auth(&token);
        answer(request.header("Origin", origin).json(&remote("team/app.git"))).await
    };
    for foreign in ["http://evil.test", "null", "http://127.0.0.1:1"] {
        assert_eq!(from(foreign).await.expect(403)["code"], "foreign_origin", "{foreign}");
    }
    assert_eq!(host.calls("forge").len(), 0, "none of those reached the plugin");
    assert_eq!(from(host.url()).await.expect(200)["password"], MARKER, "the host's own page");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotency_key_is_refused_where_a_token_is_made_and_makes_none() {
    let host = Host::start().await;
    let board = Board::hosted(&host).await;
    let url = format!("{}{}", host.url(), board.tokens());
    let with_key = host.client().post(url).bearer_auth(TOKEN).header("Idempotency-Key", "7f2c").json(&json!({}));
    let text = "no Idempotency-Key is taken here: to answer the same token again the host would have to keep it; make \
                another one, and delete the one that is not needed";
    assert_eq!(answer(with_key).await.expect(400), json!({"error": text, "code": "invalid_payload"}));
    assert_eq!(host.get(&board.tokens()).await.expect(200), json!({"tokens": []}));
    host.post(&board.tokens(), json!({})).await.expect(201);
}

on_both!(a_token_ends_with_its_session_its_time_or_the_operators_word, |guest| {
    let (host, board) = with_forge(guest, "").await;
    let path = format!("/api/v1/task-sessions/{}", board.session);
    let state = async |state: &str| {
        host.request(Method::PATCH, &path, Some(json!({"state": state}))).await.expect(200);
    };
    let (revoked, other) = (board.token(&host).await, board.token(&host).await);
    let first = host.get(&board.tokens()).await.expect(200)["tokens"][0]["id"].as_str().expect("an id").to_owned();
    for _ in 0..2 {
        let gone = host.request(Method::DELETE, &format!("{}/{first}", board.tokens()), None).await;
        assert_eq!(gone.status, 204);
    }
    asked(&host, &revoked).await.expect(401);
    asked(&host, &other).await.expect(200);

    let short = host.post(&board.tokens(), json!({"expires_in_seconds": 1})).await.expect(201);
    let short = short["token"].as_str().expect("a token").to_owned();
    eventually("the token has expired", || async { asked(&host, &short).await.status == 401 }).await;
    for seconds in [0, 86_401] {
        let refused = host.post(&board.tokens(), json!({"expires_in_seconds": seconds})).await.expect(400);
        assert_eq!(refused["code"], "invalid_payload");
    }
    for ended in ["COMPLETED", "FAILED", "CANCELLED"] {
        let token = board.token(&host).await;
        asked(&host, &token).await.expect(200);
        state(ended).await;
        asked(&host, &token).await.expect(401);
        let refused = host.post(&board.tokens(), json!({})).await.expect(409);
        assert_eq!(refused["code"], "session_over");
        state("RUNNING").await;
        asked(&host, &token).await.expect(401);
    }
    let foreign = host.post(&board.tokens(), json!({"repository_id": "absent"})).await.expect(404);
    assert_eq!(foreign["code"], "repository_not_found");
    let plain = host.post(&board.tokens(), json!({"repository_id": board.other_repository})).await.expect(201);
    let refused = asked(&host, plain["token"].as_str().unwrap()).await.expect(404);
    assert_eq!(refused["code"], "git_elsewhere", "a repository without a provider");

    let token = board.token(&host).await;
    host.request(Method::DELETE, &path, None).await.expect(200);
    asked(&host, &token).await.expect(401);
    host.post(&board.tokens(), json!({})).await.expect(404);
});

on_both!(no_answer_of_a_plugin_that_git_must_not_get_is_passed_on, |guest| {
    let (host, board) = with_forge(guest, QUICK).await;
    let token = board.token(&host).await;
    let with = |field: &str, value: Value| {
        let mut switches = git(json!(["account-7"]));
        switches["git"][field] = value;
        switches
    };
    let many: Vec<_> = (0..100).map(|n| n.to_string()).collect();
    for (switches, status, code) in [
        (with("username", json!("x\nquit=1")), 502, "invalid_git_credential"),
        (with("username", json!("")), 502, "invalid_git_credential"),
        (with("secret", json!(format!("{MARKER}\npath=/evil"))), 502, "invalid_git_credential"),
        (with("secret", json!(format!("{MARKER}\u{0}"))), 502, "invalid_git_credential"),
        (with("secret", json!("")), 502, "invalid_git_credential"),
        (with("secret_repeat", json!(16 * 1024 + 1)), 502, "invalid_git_credential"),
        (with("expires_at", json!("2020-01-01T00:00:00Z")), 502, "invalid_git_credential"),
        (with("expires_at", json!("tomorrow")), 502, "invalid_git_credential"),
        (with("bindings", json!(["x".repeat(1025)])), 502, "invalid_git_credential"),
        (with("bindings", json!([])), 403, "git_access_revoked"),
        (with("bindings", json!(many)), 409, "git_access_changed"),
        (with("resolve_ms", json!(60_000)), 504, "provider_timeout"),
        (with("binding_ms", json!(1500)), 504, "provider_timeout"),
        (with("fail", json!(format!("token={MARKER}"))), 503, "provider_failed"),
        (json!({}), 503, "provider_failed"),
    ] {
        host.set_switches("forge", &switches);
        let refused = asked(&host, &token).await;
        assert_eq!((refused.status, &refused.body["code"]), (status, &json!(code)), "{switches}: {}", refused.body);
        assert!(!refused.body.to_string().contains(MARKER), "{}", refused.body);
    }
    host.set_switches("forge", &git(json!(["account-7"])));
    asked(&host, &token).await.expect(200);
    host.command("forge", "disable").await.expect(200);
    let off = asked(&host, &token).await.expect(503);
    assert_eq!(off["code"], "provider_not_active");
    host.command("forge", "enable").await.expect(200);
    asked(&host, &token).await.expect(200);
    assert!(!host.log().contains(MARKER), "{}", host.log());
});

/// Switches with which the credential itself takes its time, so that something can happen meanwhile.
fn slow() -> Value {
    let mut switches = git(json!(["account-7"]));
    switches["git"]["resolve_ms"] = json!(3000);
    switches
}

on_both!(a_token_that_ends_while_the_plugin_is_asked_gets_nothing, |guest| {
    let (host, board) = with_forge(guest, "").await;
    host.set_switches("forge", &slow());
    let (over, revoked) = (board.token(&host).await, board.token(&host).await);
    let second = host.get(&board.tokens()).await.expect(200)["tokens"][1]["id"].as_str().expect("an id").to_owned();
    let revoke = async {
        host.called("forge", 2).await;
        host.request(Method::DELETE, &format!("{}/{second}", board.tokens()), None).await
    };
    let (refused, gone) = tokio::join!(asked(&host, &revoked), revoke);
    assert_eq!((gone.status, &refused.expect(401)["code"]), (204, &json!("unauthenticated")));
    assert_eq!(host.calls("forge").len(), 3, "the plugin answered all that it was asked");
    let complete = async {
        host.called("forge", 5).await;
        let path = format!("/api/v1/task-sessions/{}", board.session);
        host.request(Method::PATCH, &path, Some(json!({"state": "COMPLETED"}))).await
    };
    let (refused, completed) = tokio::join!(asked(&host, &over), complete);
    completed.expect(200);
    assert_eq!(refused.expect(401)["code"], "unauthenticated");
});

on_both!(a_credential_is_a_lease_and_one_more_than_the_bound_is_429, |guest| {
    let (host, board) = with_forge(guest, "[limits]\ncredential_concurrency = 1\n").await;
    let token = board.token(&host).await;
    host.set_switches("forge", &slow());
    let meanwhile = async {
        host.called("forge", 2).await;
        let refused = asked(&host, &token).await;
        (refused, host.command("forge", "disable").await)
    };
    let (answered, (refused, disabled)) = tokio::join!(asked(&host, &token), meanwhile);
    let text = "plugin \"forge\" has too many credential calls under way";
    assert_eq!(refused.expect(429), json!({"error": text, "code": "too_many_calls"}));
    assert_eq!(answered.expect(200)["password"], MARKER);
    disabled.expect(200);
    assert_eq!(host.plugin("forge").await["status"], "disabled");
});

/// Every file of the home that has the text, but for what the plugin keeps for itself.
fn files_with(host: &Host, text: &str) -> Vec<String> {
    let mut folders = vec![host.home().to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && path != host.data("forge") {
                folders.push(path);
            } else if let Ok(bytes) = std::fs::read(&path)
                && bytes.windows(text.len()).any(|window| window == text.as_bytes())
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

on_both!(neither_token_nor_credential_is_kept_or_printed_anywhere, |guest| {
    let host = Host::start_with(Settings::default().env("KANDEV_LOG", "trace")).await;
    host.install(&provider(guest, "forge", "1.0.0")).await;
    host.set_switches("forge", &git(json!(["account-7"])));
    let board = Board::hosted(&host).await;
    let token = board.token(&host).await;
    for _ in 0..3 {
        asked(&host, &token).await.expect(200);
    }
    assert_eq!(host.calls("forge").len(), 9, "each request asks the plugin: nothing is cached");
    // In a form that no pattern knows.
    let mut failing = git(json!(["account-7"]));
    failing["git"]["fail"] = json!(format!("the forge has no use for {MARKER}"));
    host.set_switches("forge", &failing);
    let failed = json!({"error": "plugin \"forge\" failed to answer", "code": "provider_failed"});
    assert_eq!(asked(&host, &token).await.expect(503), failed);
    let told = "the plugin answered Unknown: its text may hold the credential and is not kept";
    eventually("the log has the reason", || async { host.log().contains(told) }).await;
    let events = host.get("/api/v1/events").await.expect(200).to_string();
    let metrics = host.get("/metrics").await.body.to_string();
    let plugin = host.plugin("forge").await.to_string();
    for secret in [MARKER, token.as_str()] {
        for (place, text) in
            [("log", host.log()), ("events", events.clone()), ("metrics", metrics.clone()), ("record", plugin.clone())]
        {
            assert!(!text.contains(secret), "{place} holds a secret");
        }
        assert_eq!(files_with(&host, secret), Vec::<String>::new());
    }
    assert!(
        metrics.contains("kandev_plugin_git_credentials_total{plugin=\\\"forge\\\",outcome=\\\"answered\\\"} 3"),
        "{metrics}"
    );
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_itself_gets_the_credential_by_the_helper() {
    let (host, board) = with_forge(Guest::Rust, "").await;
    let token = board.token(&host).await;
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("input");
    let helper = format!("!'{}' git-credential", env!("CARGO_BIN_EXE_kandev-host"));
    let fill = |path: &str| {
        std::fs::write(&input, format!("protocol=https\nhost=forge.example.test\npath={path}\n\n")).unwrap();
        let output = Command::new("git")
            .args(["-c", "credential.helper=", "-c", &format!("credential.helper={helper}")])
            .args(["-c", "credential.useHttpPath=true", "credential", "fill"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("GIT_ASKPASS")
            .env_remove("SSH_ASKPASS")
            .env("KANDEV_URL", host.url())
            .env("KANDEV_GIT_TOKEN", &token)
            .stdin(Stdio::from(std::fs::File::open(&input).unwrap()))
            .output()
            .expect("git is there");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (filled, text) = fill("team/app.git");
    assert!(filled && text.contains("username=x-access-token\n"), "{text}");
    assert!(text.contains(&format!("password={MARKER}\n")), "{text}");
    let (filled, text) = fill("team/other.git");
    assert!(!filled && !text.contains(MARKER), "git has nobody else to ask: {text}");
}
