//! Live connections: what clients of `GET /ws` see of the real host (platform-rest.md §12; field cases 78, 80, 81 and
//! 84).

use std::{cell::Cell, collections::BTreeSet, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _, future::join_all};
use kandev_host::domain::gateway::request::rest_actions;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_tungstenite::{
    connect_async,
    tungstenite::protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::support::{
    Guest, Host, Package, Settings, TOKEN, eventually,
    live::{Client, refused, request},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_needs_the_token_in_a_header_or_in_the_query_and_the_log_has_neither() {
    let host = Host::start_with(Settings::default().env("KANDEV_LOG", "debug")).await;
    assert_eq!(refused(request(&host, "")).await, 401);
    assert_eq!(refused(request(&host, "?token=else")).await, 401);
    let mut with_header = request(&host, "");
    with_header.headers_mut().insert("Authorization", format!("Bearer {TOKEN}").parse().expect("a header"));
    connect_async(with_header).await.expect("a connection");
    let mut client = Client::connect(&host).await;
    assert_eq!(client.done("health.check", json!({})).await, json!({"status": "ok"}));
    let plain = host.get("/ws").await;
    assert_eq!((plain.status, &plain.body["code"]), (426, &json!("no_upgrade")));
    assert!(!host.log().contains(TOKEN), "{}", host.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_as_rest_answers_them_and_news_come_in_order() {
    let host = Host::start().await;
    let (mut client, mut other) = (Client::connect(&host).await, Client::connect(&host).await);
    let workspace = client.done("workspace.create", json!({"name": "one"})).await;
    assert_eq!(
        workspace,
        host.get(&format!("/api/v1/workspaces/{}", workspace["id"].as_str().unwrap())).await.expect(200)
    );
    let task = client.done("task.create", json!({"title": "shed"})).await;
    let state = client.done("task.state", json!({"id": task["id"], "state": "TODO"})).await;
    assert_eq!((&state["state"], &state["version"]), (&json!("TODO"), &json!(2)));
    let (kind, gone) = client.ask("task.get", json!({"id": "none"})).await;
    assert_eq!(
        (kind.as_str(), &gone["code"], &gone["details"]["code"]),
        ("error", &json!("NOT_FOUND"), &json!("task_not_found"))
    );
    let (_, wrong) = client.ask("task.create", json!({})).await;
    assert_eq!(wrong["code"], "VALIDATION_ERROR");
    let (_, unknown) = client.ask("task.explode", json!({})).await;
    assert_eq!(unknown, json!({"code": "UNKNOWN_ACTION", "message": "unknown action"}));
    client.send("no frame").await;
    assert_eq!(client.answer().await["payload"]["code"], "BAD_REQUEST");

    for connection in [&mut client, &mut other] {
        assert_eq!(connection.told("workspace.created").await["id"], workspace["id"]);
        assert_eq!(connection.told("task.created").await["task_id"], task["id"]);
        assert_eq!(connection.told("task.state_changed").await["task_id"], task["id"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_a_session_is_told_to_those_that_follow_it_and_a_message_sent_twice_is_one() {
    let host = Host::start().await;
    let (mut follower, mut other) = (Client::connect(&host).await, Client::connect(&host).await);
    other.done("workspace.create", json!({"name": "one"})).await;
    let task = other.done("task.create", json!({"title": "shed"})).await["id"].clone();
    let session = other.done("session.ensure", json!({"task_id": task})).await["session_id"].clone();
    follower.done("session.subscribe", json!({"session_id": session})).await;
    let message = json!({"task_id": task, "session_id": session, "content": "hello", "client_message_id": "a b/ä"});
    let first = other.done("message.add", message.clone()).await;
    assert_eq!(other.done("message.add", message).await, first);
    let list = other.done("message.list", json!({"session_id": session})).await;
    assert_eq!(list["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(follower.told("session.message.added").await["message_id"], first["id"]);
    other.done("task.update", json!({"id": task, "title": "after"})).await;
    other.told("task.updated").await;
    let inside = |frame: &Value| frame["action"].as_str().is_some_and(|action| action.starts_with("session.message"));
    assert!(!other.news.iter().any(inside), "{:?}", other.news);
}

/// Whatever REST has is asked as the contract's clients ask it.
#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_rest_is_answered() {
    let host = Host::start().await;
    let (mut client, mut asked) = (Client::connect(&host).await, BTreeSet::new());
    let mut ask = async |action: &'static str, payload: Value| {
        asked.insert(action);
        let (kind, answer) = client.ask(action, payload).await;
        assert_eq!(kind, "response", "{action}: {answer}");
        answer
    };

    let workspace = ask("workspace.create", json!({"name": "one"})).await["id"].clone();
    ask("workspace.list", json!({})).await;
    ask("workspace.get", json!({"id": workspace})).await;
    ask("workspace.update", json!({"id": workspace, "name": "two"})).await;
    let workflow = ask("workflow.create", json!({"workspace_id": workspace, "name": "board"})).await["id"].clone();
    let listed = ask("workflow.list", json!({"workspace_id": workspace})).await;
    let order: Vec<_> = listed["workflows"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
    ask("workflow.reorder", json!({"workspace_id": workspace, "workflow_ids": order})).await;
    ask("workflow.get", json!({"id": workflow})).await;
    ask("workflow.update", json!({"id": workflow, "name": "other"})).await;
    let step =
        ask("workflow.step.create", json!({"workflow_id": workflow, "name": "Extra", "position": 9})).await["id"]
            .clone();
    ask("workflow.step.list", json!({"workflow_id": workflow})).await;
    ask("workflow.step.get", json!({"id": step})).await;

    let new_task = json!({"workspace_id": workspace, "workflow_id": workflow, "title": "shed"});
    let task = ask("task.create", new_task).await["id"].clone();
    ask("task.list", json!({"workflow_id": workflow})).await;
    let listed = ask("task.list", json!({"workspace_id": workspace, "workflow_id": workflow, "page": 1})).await;
    assert_eq!(listed["tasks"][0]["id"], task);
    ask("task.get", json!({"id": task})).await;
    ask("task.update", json!({"id": task, "title": "hut"})).await;
    ask("task.state", json!({"id": task, "state": "TODO"})).await;
    let place = json!({"id": task, "workflow_id": workflow, "workflow_step_id": step, "position": 0});
    ask("task.move", place).await;
    let session = ask("session.ensure", json!({"task_id": task})).await["session_id"].clone();
    let of_session = json!({"task_id": task, "session_id": session});
    ask("session.ensure", of_session.clone()).await;
    ask("task.session.list", json!({"task_id": task})).await;
    ask("session.rename", json!({"task_id": task, "session_id": session, "name": "mine"})).await;
    ask("session.set_primary", of_session.clone()).await;
    ask("message.add", json!({"task_id": task, "session_id": session, "content": "hello"})).await;
    ask("message.list", json!({"session_id": session, "limit": 5})).await;
    ask("message.search", json!({"session_id": session, "query": "ell", "limit": 5})).await;
    ask("session.delete", of_session).await;
    ask("task.archive", json!({"id": task})).await;
    ask("task.delete", json!({"id": task, "cascade": true})).await;

    let app = json!({"workspace_id": workspace, "name": "app", "remote_url": "https://forge.test/app.git"});
    let repository = ask("repository.create", app).await["id"].clone();
    ask("repository.list", json!({"workspace_id": workspace})).await;
    ask("repository.get", json!({"id": repository})).await;
    ask("repository.update", json!({"id": repository, "name": "api"})).await;
    ask("repository.delete", json!({"id": repository})).await;
    let executor = ask("executor.create", json!({"name": "here", "type": "local"})).await["id"].clone();
    ask("executor.list", json!({})).await;
    ask("executor.get", json!({"id": executor})).await;
    ask("executor.update", json!({"id": executor, "name": "there"})).await;
    let profile = ask("executor.profile.create", json!({"executor_id": executor, "name": "plain"})).await["id"].clone();
    let of_profile = json!({"executor_id": executor, "id": profile});
    ask("executor.profile.list", json!({})).await;
    ask("executor.profile.get", of_profile.clone()).await;
    ask("executor.profile.update", json!({"executor_id": executor, "id": profile, "name": "fine"})).await;
    ask("executor.profile.delete", of_profile).await;
    ask("executor.delete", json!({"id": executor})).await;
    let secret = ask("secrets.create", json!({"name": "n", "value": "v"})).await["id"].clone();
    ask("secrets.list", json!({})).await;
    ask("secrets.get", json!({"id": secret})).await;
    ask("secrets.update", json!({"id": secret, "value": "w"})).await;
    ask("secrets.delete", json!({"id": secret})).await;
    ask("workflow.delete", json!({"id": workflow})).await;
    ask("workspace.delete", json!({"id": workspace, "confirm_name": "two"})).await;
    assert_eq!(asked, rest_actions().collect());
}

/// The payload of platform-rest.md §12, as existing clients send it.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_may_bring_along_all_that_the_contract_names() {
    let host = Host::start().await;
    let mut client = Client::connect(&host).await;
    client.done("workspace.create", json!({"name": "one"})).await;
    let task = client.done("task.create", json!({"title": "shed"})).await["id"].clone();
    let ensured = client.done("session.ensure", json!({"task_id": task, "session_id": ""})).await;
    let session = &ensured["session_id"];
    let bare = json!({"task_id": task, "session_id": session, "content": "a", "message_id": "m1", "author_id": "me",
        "model": "", "plan_mode": false, "has_review_comments": false, "attachments": [], "context_files": [],
        "entity_references": []});
    let first = client.done("message.add", bare.clone()).await;
    assert_eq!((&first["content"], &first["author_id"], &first["metadata"]), (&json!("a"), &json!("me"), &Value::Null));
    assert_eq!(client.done("message.add", bare).await, first);
    let brought = json!({"model": "x", "plan_mode": true, "has_review_comments": true,
        "attachments": [{"type": "image", "data": "aGk="}], "context_files": [{"path": "a.rs"}],
        "entity_references": [{"provider": "acme", "id": "7"}]});
    let mut full = brought.clone();
    full.as_object_mut().expect("an object").extend([
        ("task_id".to_owned(), task.clone()),
        ("session_id".to_owned(), session.clone()),
        ("content".to_owned(), json!("b")),
    ]);
    let second = client.done("message.add", full).await;
    assert_eq!((&second["content"], &second["metadata"]), (&json!("b"), &brought));
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_and_ids_that_rest_could_not_be_asked_with_are_the_clients_fault() {
    let host = Host::start().await;
    let mut client = Client::connect(&host).await;
    for (metadata, id) in [
        (json!({"if_match": "\"3\"\r\nEvil: 1"}), "t".to_owned()),
        (json!({"idempotency_key": "ä"}), "t".to_owned()),
        (json!({}), "t".repeat(70_000)),
    ] {
        let request =
            json!({"id": "1", "type": "request", "action": "task.delete", "payload": {"id": id}, "metadata": metadata});
        client.send(&request.to_string()).await;
        let answer = client.answer().await;
        assert_eq!(
            (&answer["type"], &answer["payload"]["code"]),
            (&json!("error"), &json!("VALIDATION_ERROR")),
            "{answer}"
        );
    }
    client.done("health.check", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_unsubscribes_is_told_no_more_and_who_looks_away_still_is() {
    let host = Host::start().await;
    let (mut follower, mut other) = (Client::connect(&host).await, Client::connect(&host).await);
    other.done("workspace.create", json!({"name": "one"})).await;
    let task = other.done("task.create", json!({"title": "shed"})).await["id"].clone();
    let session = other.done("session.ensure", json!({"task_id": task})).await["session_id"].clone();
    for (topic, payload) in [("session", json!({"session_id": session})), ("task", json!({"task_id": task}))] {
        let say = async |client: &mut Client, text: String| {
            client.done("message.add", json!({"session_id": session, "content": text})).await["id"].clone()
        };
        follower.done(&format!("{topic}.subscribe"), payload.clone()).await;
        let told = say(&mut other, format!("{topic} told")).await;
        assert_eq!(follower.told("session.message.added").await["message_id"], told);
        follower.done("session.unfocus", json!({"session_id": session})).await;
        let told = say(&mut other, format!("{topic} still told")).await;
        assert_eq!(follower.told("session.message.added").await["message_id"], told);
        follower.done(&format!("{topic}.unsubscribe"), payload).await;
        say(&mut other, format!("{topic} not told")).await;
        // Everybody is told of this, after the message.
        other.done("task.update", json!({"id": task, "title": format!("after {topic}")})).await;
        loop {
            let (action, told) = follower.next().await;
            assert_ne!(action, "session.message.added", "{topic}: {told}");
            if action == "task.updated" && told["title"] == format!("after {topic}") {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_nothing_but_answers_to_pings_stays() {
    let toml = "[timing]\nws_ping = \"200ms\"\nws_pong_wait = \"1s\"\n";
    let host = Host::start_with(Settings::toml(toml)).await;
    let (stream, _) = connect_async(request(&host, &format!("?token={TOKEN}"))).await.expect("a connection");
    let (mut sending, mut reading) = stream.split();
    let mut next = async || {
        let next = tokio::time::timeout(Duration::from_secs(30), reading.next()).await;
        next.expect("in time").expect("it is open").expect("a frame")
    };
    // As many as come while a silent client would be ended more than once.
    for _ in 0..15 {
        let frame = next().await;
        assert!(frame.is_ping(), "{frame:?}");
    }
    sending.send(r#"{"id":"1","type":"request","action":"health.check"}"#.into()).await.expect("it is sent");
    loop {
        let frame = next().await;
        if !frame.is_ping() {
            assert!(frame.to_text().is_ok_and(|text| text.contains("\"response\"")), "{frame:?}");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_let_go_and_the_others_lose_nothing() {
    let host = Host::start_with(Settings::toml(
        "[limits]\nws_queue = 8\nws_connections = 2\n[timing]\nws_write = \"300ms\"\n",
    ))
    .await;
    let (slow, mut quick) = (Client::connect(&host).await, Client::connect(&host).await);
    assert_eq!(refused(request(&host, &format!("?token={TOKEN}"))).await, 429);
    quick.done("workspace.create", json!({"name": "one"})).await;
    let description = "x".repeat(200_000);
    let mut sent = 0;
    // As much as sockets hold, and more.
    while metric(&host, "kandev_ws_let_go_total").await < 1.0 {
        assert!(sent < 400, "it is not let go");
        quick.done("task.create", json!({"title": format!("t{sent}"), "description": description})).await;
        sent += 1;
    }
    for n in 0..sent {
        assert_eq!(quick.told("task.created").await["title"], format!("t{n}"));
    }
    drop(slow);
    eventually("its place is free", || async { metric(&host, "kandev_ws_connections").await == 1.0 }).await;
}

async fn metric(host: &Host, name: &str) -> f64 {
    let text = host.get("/metrics").await.expect(200);
    let line = text.as_str().and_then(|text| text.lines().find(|line| line.starts_with(&format!("{name} "))));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_clients_are_ended_answering_ones_stay_and_a_stop_ends_all() {
    let toml = "[timing]\nws_ping = \"200ms\"\nws_pong_wait = \"1s\"\n";
    let mut host = Host::start_with(Settings::toml(toml)).await;
    let mut client = Client::connect(&host).await;
    // It does not read, so it does not answer pings.
    let silent = Client::connect(&host).await;
    let begun = Instant::now();
    while metric(&host, "kandev_ws_connections").await > 1.0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the silent one is not ended");
        client.done("health.check", json!({})).await;
    }
    drop(silent);
    client.send(&"x".repeat(16)).await;
    assert_eq!(client.frame().await.expect("an answer")["type"], "error");
    let (stopped, end) = tokio::join!(async { host.stop().await }, async {
        loop {
            if let Err(end) = client.frame().await {
                return end;
            }
        }
    });
    assert_eq!(stopped, Some(0));
    assert_eq!(end.map(|frame| frame.code), Some(CloseCode::Away));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_beyond_the_bound_ends_the_connection() {
    let host = Host::start_with(Settings::toml("[limits]\nws_frame_bytes = 4096\n")).await;
    let mut client = Client::connect(&host).await;
    client.send(&"x".repeat(5000)).await;
    assert_eq!(client.frame().await.expect_err("an end").map(|frame| frame.code), Some(CloseCode::Size));
}

/// The head of a frame counts: what it announces is not waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_is_announced_as_too_large_ends_the_connection_at_once() {
    let host = Host::start().await;
    for length in [(32 << 20) + 1, 1_u64 << 40, 1 << 62] {
        let mut client = Client::connect(&host).await;
        client.raw(&[&[0x81, 0xff][..], &length.to_be_bytes(), &[0; 4], b"{}"].concat()).await;
        let end = client.frame().await.expect_err("an end").expect("with a reason");
        assert_eq!(end.code, CloseCode::Size, "{length}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_against_the_protocol_and_texts_that_are_none_are_told_apart() {
    let host = Host::start().await;
    for (frame, code) in [
        ([0xc1, 0x82, 0, 0, 0, 0, b'{', b'}'], CloseCode::Protocol),
        ([0x81, 0x82, 0, 0, 0, 0, 0xff, b'}'], CloseCode::Invalid),
    ] {
        let mut client = Client::connect(&host).await;
        client.raw(&frame).await;
        let end = client.frame().await.expect_err("an end").expect("with a reason");
        assert_eq!(end.code, code, "{frame:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_its_answers_keeps_no_connection_to_the_database() {
    let settings = "[limits]\ndatabase_connections = 2\n[timing]\nws_write = \"60s\"\ndatabase_timeout = \"3s\"\n";
    let host = Host::start_with(Settings::toml(settings)).await;
    let (mut slow, mut quick) = (Client::connect(&host).await, Client::connect(&host).await);
    let workspace = quick.done("workspace.create", json!({"name": "one"})).await["id"].clone();
    for n in 0..20 {
        quick.done("task.create", json!({"title": format!("t{n}"), "description": "x".repeat(100_000)})).await;
    }
    // As much as sockets hold, and more.
    for n in 0..60 {
        let list = json!({"id": n.to_string(), "type": "request", "action": "task.list", "payload": {"workspace_id": workspace}});
        slow.send(&list.to_string()).await;
    }
    for _ in 0..20 {
        host.get("/api/v1/workspaces").await.expect(200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_is_answered_with_its_own_code() {
    let host = Host::start().await;
    for code in [CloseCode::Normal, CloseCode::Away] {
        let mut client = Client::connect(&host).await;
        let said = CloseFrame { code, reason: "done".into() };
        let answer = client.close(Some(said)).await.expect_err("an end");
        assert_eq!(answer.map(|frame| frame.code), Some(code));
        assert_eq!(client.frame().await, Err(None), "the connection ends");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_found_by_their_text_over_both_ways() {
    let host = Host::start().await;
    let mut client = Client::connect(&host).await;
    client.done("workspace.create", json!({"name": "one"})).await;
    let task = client.done("task.create", json!({"title": "shed"})).await["id"].clone();
    let session = client.done("session.ensure", json!({"task_id": task})).await["session_id"].clone();
    let other = client.done("task.create", json!({"title": "else"})).await["id"].clone();
    let elsewhere = client.done("session.ensure", json!({"task_id": other})).await["session_id"].clone();
    for (session, content) in [
        (&session, "Paint the SHED 100% green"),
        (&session, "100 nails"),
        (&elsewhere, "a shed too"),
        (&session, "the shed's door"),
    ] {
        client.done("message.add", json!({"session_id": session, "content": content})).await;
    }
    let mut found = async |query: &str, limit: u32| {
        let payload = json!({"session_id": session, "query": query, "limit": limit});
        let answer = client.done("message.search", payload).await;
        let hits = answer["hits"].as_array().expect("a list").iter();
        (hits.map(|hit| hit["content"].as_str().expect("text").to_owned()).collect::<Vec<_>>(), answer["total"].clone())
    };
    assert_eq!(
        found("shed", 10).await,
        (vec!["the shed's door".to_owned(), "Paint the SHED 100% green".to_owned()], json!(2))
    );
    assert_eq!(found("SHED", 1).await, (vec!["the shed's door".to_owned()], json!(2)));
    assert_eq!(found("0% G", 10).await, (vec!["Paint the SHED 100% green".to_owned()], json!(1)), "no wildcard");
    assert_eq!(found("_", 10).await, (Vec::new(), json!(0)));
    let (kind, refused) = client.ask("message.search", json!({"session_id": session, "query": ""})).await;
    assert_eq!((kind.as_str(), &refused["message"]), ("error", &json!("query is required")));

    let path = format!("/api/v1/task-sessions/{}/messages/search", session.as_str().expect("an id"));
    let first = host.get(&format!("{path}?query=shed&limit=1")).await.expect(200);
    let cursor = first["next_cursor"].as_str().expect("a cursor");
    let last = host.get(&format!("{path}?query=shed&limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!((&last["hits"][0]["content"], last.get("next_cursor")), (&json!("Paint the SHED 100% green"), None));
    assert_eq!(host.get(&format!("{path}?query=")).await.body["code"], "invalid_field");
    assert_eq!(host.get("/api/v1/task-sessions/none/messages/search?query=x").await.body["code"], "session_not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_this_host_cannot_do_and_whom_one_may_not_follow_is_told_with_a_code() {
    let host = Host::start().await;
    let mut client = Client::connect(&host).await;
    let (kind, refused) = client.ask("session.launch", json!({"task_id": "t", "intent": "start"})).await;
    let text = "no agent runtime is connected: this host starts, stops and asks no agents";
    let expected = json!({"code": "CONFLICT", "message": text, "details": {"code": "no_agent_runtime"}});
    assert_eq!((kind.as_str(), refused), ("error", expected));
    let (_, refused) = client.ask("user.get", json!({})).await;
    assert_eq!(refused["details"], json!({"code": "no_accounts"}));
    client.done("user.subscribe", json!({})).await;
    client.done("user.subscribe", json!({"user_id": "operator"})).await;
    let (kind, refused) = client.ask("user.subscribe", json!({"user_id": "somebody"})).await;
    assert_eq!((kind.as_str(), &refused["code"]), ("error", &json!("FORBIDDEN")));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_the_host_could_not_hand_out_are_told_of_by_their_number() {
    const PARTS: u64 = 150;
    let host = Host::start_with(Settings::toml("[limits]\nws_hub_queue = 1\n")).await;
    let mut client = Client::connect(&host).await;
    client.done("workspace.create", json!({"name": "one"})).await;
    let whole = client.done("task.create", json!({"title": "whole"})).await["id"].clone();
    for n in 0..PARTS {
        client.done("task.create", json!({"title": format!("t{n}"), "parent_id": whole})).await;
    }
    client.caught_up(&whole).await;
    // All in one transaction, so they come at once.
    let path = format!("/api/v1/tasks/{}?cascade=true", whole.as_str().expect("an id"));
    host.request(reqwest::Method::DELETE, &path, None).await.expect(200);
    let (mut told, mut missed) = (0, 0);
    while told + missed < PARTS + 1 {
        match client.next().await {
            (action, _) if action == "task.deleted" => told += 1,
            (action, payload) if action == "gateway.events_missed" => {
                missed += payload["count"].as_u64().expect("a number");
            }
            _ => {}
        }
    }
    assert!(missed > 0, "all {told} fitted");
    assert_eq!(told + missed, PARTS + 1);
    let fresh = client.done("task.create", json!({"title": "after"})).await;
    assert_eq!(client.told("task.created").await["task_id"], fresh["id"], "what comes later is told again");
}

/// Field case 81. A page cannot read the token, but one that was given it elsewhere must not use it here.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_is_turned_away_with_the_token_too() {
    let host = Host::start().await;
    let own = host.url().to_owned();
    let opened = async |origin: &str| {
        let mut request = request(&host, &format!("?token={TOKEN}"));
        request.headers_mut().insert("Origin", origin.parse().expect("a header"));
        match connect_async(request).await {
            Ok(_) => 101,
            Err(tokio_tungstenite::tungstenite::Error::Http(answer)) => answer.status().as_u16(),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(opened(&own).await, 101);
    for foreign in ["http://evil.test", "null", "http://127.0.0.1:1", &format!("{own}.evil.test"), "file://"] {
        assert_eq!(opened(foreign).await, 403, "{foreign}");
        for path in ["/api/v1/workspaces", "/api/plugins/demo/actions/echo"] {
            let post = host.client().post(format!("{own}{path}")).bearer_auth(TOKEN).header("Origin", foreign);
            let refused = crate::support::host::answer(post.json(&json!({"name": "evil"}))).await;
            assert_eq!((refused.status, &refused.body["code"]), (403, &json!("foreign_origin")), "{foreign} {path}");
        }
    }
    assert_eq!(host.get("/api/v1/workspaces").await.expect(200)["total"], 0, "nothing took effect");
    let open = host.client().get(format!("{own}/health")).header("Origin", "http://evil.test");
    assert_eq!(crate::support::host::answer(open).await.status, 200, "what everyone may do, every page may");
}

/// For a proxy that rewrites `Host`: what it is opened as is not what the host is asked as.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_an_origin_that_the_operator_lists_may_ask_and_gets_no_cors_headers() {
    const LISTED: &str = "https://kandev.example.test";
    let host = Host::start_with(Settings::toml(&format!("[http]\nallowed_origins = [\"{LISTED}\"]\n"))).await;
    let workspaces = format!("{}/api/v1/workspaces", host.url());
    let create = async |origin: &str| {
        let post = host.client().post(&workspaces).bearer_auth(TOKEN).header("Origin", origin);
        crate::support::host::answer(post.json(&json!({"name": "one"}))).await
    };
    for foreign in ["http://kandev.example.test", "https://kandev.example.test:8443", "https://evil.test"] {
        assert_eq!(create(foreign).await.expect(403)["code"], "foreign_origin", "{foreign}");
    }
    create(LISTED).await.expect(200);
    create(host.url()).await.expect(200);

    let mut open = request(&host, &format!("?token={TOKEN}"));
    open.headers_mut().insert("Origin", LISTED.parse().expect("a header"));
    connect_async(open).await.expect("a connection");
    let mut open = request(&host, &format!("?token={TOKEN}"));
    open.headers_mut().insert("Origin", "https://evil.test".parse().expect("a header"));
    assert_eq!(refused(open).await, 403);

    let list = host.client().get(&workspaces).bearer_auth(TOKEN).header("Origin", LISTED);
    let answer = list.send().await.expect("an answer");
    let cors = answer.headers().keys().filter(|name| name.as_str().starts_with("access-control-"));
    assert_eq!((answer.status().as_u16(), cors.count()), (200, 0), "it is not CORS");
}

/// Field case 80.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_publishers_at_once_reach_a_client_in_whole_frames() {
    const EACH: usize = 4;
    let host = Host::start().await;
    let mut client = Client::connect(&host).await;
    client.done("workspace.create", json!({"name": "one"})).await;
    let publishers = (0..50).map(|n| {
        let host = &host;
        async move {
            for round in 0..EACH {
                // Quotes, line ends and letters of more than one byte must not break a frame.
                let title = format!("{n}.{round} \"€\"\n");
                host.post("/api/v1/tasks", json!({"title": title})).await.expect(200);
            }
        }
    });
    let told = async {
        let mut titles = BTreeSet::new();
        while titles.len() < 50 * EACH {
            // Requests and news share the connection.
            client.done("health.check", json!({})).await;
            let task = client.told("task.created").await;
            assert!(titles.insert(task["title"].as_str().expect("a title").to_owned()), "{task} came twice");
        }
    };
    tokio::join!(join_all(publishers), told);
    assert_eq!(client.done("health.check", json!({})).await, json!({"status": "ok"}), "it is still open");
}

/// Field case 78: whoever follows first and then reads what there is misses nothing, and what is followed twice comes
/// once.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_opens_during_a_burst_has_every_message_and_none_is_told_twice() {
    let host = Host::start().await;
    let mut writer = Client::connect(&host).await;
    writer.done("workspace.create", json!({"name": "one"})).await;
    let task = writer.done("task.create", json!({"title": "shed"})).await["id"].clone();
    let session = writer.done("session.ensure", json!({"task_id": task})).await["session_id"].clone();
    let follows = Cell::new(false);
    let write = async {
        let mut written = 0;
        // As many again as there were until the page follows, and one that says it was the last.
        let mut rest = None;
        while rest != Some(0) {
            rest = rest.map(|rest: usize| rest - 1).or_else(|| follows.get().then_some(written + 20));
            let content = if rest == Some(0) { "last" } else { "one of many" };
            writer.done("message.add", json!({"session_id": session, "content": content})).await;
            written += 1;
        }
        written
    };
    let page = async {
        let mut page = Client::connect(&host).await;
        for action in ["session.subscribe", "session.focus", "session.subscribe"] {
            page.done(action, json!({"session_id": session})).await;
        }
        page.done("task.subscribe", json!({"task_id": task})).await;
        follows.set(true);
        let list = page.done("message.list", json!({"session_id": session})).await;
        let listed = list["messages"].as_array().expect("a list");
        let listed: BTreeSet<_> = listed.iter().map(|message| message["id"].clone().to_string()).collect();
        let (mut told, mut last) = (BTreeSet::new(), Value::Null);
        while last != json!("last") {
            let message = page.told("session.message.added").await;
            assert!(told.insert(message["message_id"].to_string()), "{message} came twice");
            last = message["content"].clone();
        }
        &listed | &told
    };
    let (written, seen) = tokio::join!(write, page);
    assert_eq!(seen.len(), written);
}

/// Field case 84: a page that is open needs no reload.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_hears_of_a_plugin_from_its_install_to_its_end() {
    let host = Host::start().await;
    let mut page = Client::connect(&host).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    host.command("demo", "disable").await.expect(200);
    host.command("demo", "enable").await.expect(200);
    host.install(&Package::of(Guest::Rust, "demo", "2.0.0")).await;
    host.uninstall("demo").await.expect(200);
    let mut told = Vec::new();
    while told.last().is_none_or(|(state, _): &(String, String)| state != "uninstalled") {
        let (action, change) = page.next().await;
        let state = action.strip_prefix("plugin.lifecycle.").unwrap_or_else(|| panic!("{action}")).to_owned();
        assert_eq!((&change["plugin_id"], &change["to"]), (&json!("demo"), &json!(state)));
        told.push((state, change["version"].as_str().expect("a version").to_owned()));
    }
    let told: Vec<_> = told.iter().map(|(state, version)| (state.as_str(), version.as_str())).collect();
    for expected in [("registered", "1.0.0"), ("active", "1.0.0"), ("disabled", "1.0.0"), ("active", "2.0.0")] {
        assert!(told.contains(&expected), "{expected:?} in {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_keeps_for_a_user_is_told_to_all_browsers_of_that_user() {
    let host = Host::start().await;
    let with_user_state = |text: String| text.replace("  state: true\n", "  state: true\n  user_state: true\n");
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0").manifest(with_user_state)).await;
    let (mut one, mut two) = (Client::connect(&host).await, Client::connect(&host).await);
    let path = "/api/plugins/demo/user-state/task/t1/k";
    let put = Some(json!({"value": "s3cret", "writerId": "tab-1"}));
    host.request(reqwest::Method::PUT, path, put).await.expect(200);
    for browser in [&mut one, &mut two] {
        let told = browser.told("plugin.user-state.updated").await;
        let expected = json!({"user_id": "operator", "pluginId": "demo", "scope": "task", "scopeId": "t1", "key": "k",
            "updatedAt": told["updatedAt"], "writerId": "tab-1"});
        assert_eq!(told, expected, "the writer's own too: it knows itself by writerId");
    }
}
