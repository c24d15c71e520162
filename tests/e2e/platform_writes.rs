//! Changes by REST beside each other, twice, late and wrong: versions, idempotency keys, many writers, bad bodies.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_databases,
    support::{
        Guest, Host, Package,
        host::TOKEN,
        raw::{Raw, request},
    },
};

const PLAIN: &str = "";

/// Status, `ETag` and body of an answer to a request with headers.
async fn ask(host: &Host, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> (u16, String, Value) {
    let mut request = host.client().request(method, format!("{}{path}", host.url())).bearer_auth(TOKEN).json(&body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
    (answer.status().as_u16(), tag.unwrap_or_default(), answer.json().await.unwrap())
}

async fn task(host: &Host) -> String {
    host.post("/api/v1/workspaces", json!({"name": "w"})).await.expect(200);
    let task = host.post("/api/v1/tasks", json!({"title": "t"})).await.expect(200);
    format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())
}

on_databases!(a_change_is_made_only_to_the_version_that_was_seen, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let path = task(&host).await;
    let change = |tag: &'static str, title: &'static str| {
        let (host, path) = (&host, path.as_str());
        async move { ask(host, Method::PATCH, path, &[("if-match", tag)], json!({"title": title})).await }
    };
    let (status, tag, body) = change("\"1\"", "second").await;
    assert_eq!((status, tag.as_str(), &body["version"]), (200, "\"2\"", &json!(2)));
    let (status, _, body) = change("\"1\"", "third").await;
    assert_eq!(
        (status, &body["code"], &body["details"]),
        (412, &json!("version_mismatch"), &json!({"expected": 1, "found": 2}))
    );
    for (tag, expected) in [("*", 200), ("\"foreign\"", 412), ("W/\"3\"", 412), ("3", 400), ("\"3\", \"4\"", 400)] {
        assert_eq!(change(tag, "fourth").await.0, expected, "{tag}");
    }
    // Many at once with the same version: one wins.
    let version = host.get(&path).await.expect(200)["version"].to_string();
    let tag = format!("\"{version}\"");
    let writers = (0..10).map(|n| ask_patch(&host, &path, &tag, n));
    let mut statuses = join_all(writers).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200], vec![412; 9]].concat());
    let (status, ..) = ask(&host, Method::DELETE, &path, &[("if-match", "\"1\"")], json!({})).await;
    assert_eq!(status, 412);
});

async fn ask_patch(host: &Host, path: &str, tag: &str, n: u32) -> u16 {
    ask(host, Method::PATCH, path, &[("if-match", tag)], json!({"title": n.to_string()})).await.0
}

on_databases!(a_request_with_a_key_is_done_once, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    task(&host).await;
    let create = |key: &'static str, title: &'static str| {
        let host = &host;
        async move { ask(host, Method::POST, "/api/v1/tasks", &[("idempotency-key", key)], json!({"title": title})).await }
    };
    let first = create("k1", "once").await;
    assert_eq!(first.0, 200);
    let all = join_all((0..8).map(|_| create("k1", "once"))).await;
    assert!(all.iter().all(|answer| *answer == first), "{all:?}");
    let (status, _, body) = create("k1", "another").await;
    assert_eq!((status, &body["code"]), (409, &json!("idempotency_key_reused")));
    let other = join_all((0..8).map(|_| create("k2", "at once"))).await;
    assert!(other.iter().all(|answer| answer == &other[0]), "{other:?}");
    // A refusal is not remembered: the corrected request is another one, the same one may pass later.
    assert_eq!(create("k3", "").await.0, 400);
    assert_eq!(create("k3", "now").await.0, 200);
    for bad in ["", "a b", "ä"] {
        let (status, _, body) =
            ask(&host, Method::POST, "/api/v1/tasks", &[("idempotency-key", bad)], json!({"title": "x"})).await;
        assert_eq!((status, &body["code"]), (400, &json!("invalid_payload")), "{bad:?}");
    }
    let events = host.get("/api/v1/events?limit=200&subject=task.created").await.expect(200);
    let titles: Vec<_> = events["events"].as_array().unwrap().iter().map(|e| e["payload"]["title"].clone()).collect();
    assert_eq!(titles, ["t", "once", "at once", "now"]);
});

on_databases!(an_event_with_a_key_is_published_once, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let publish = |key: &'static str, n: u32| {
        let host = &host;
        let body = json!({"subject": "test.once", "payload": {"n": n}});
        async move { ask(host, Method::POST, "/api/v1/events", &[("idempotency-key", key)], body).await }
    };
    let first = publish("k1", 1).await;
    assert_eq!(first.0, 202);
    let again = join_all((0..8).map(|_| publish("k1", 1))).await;
    assert!(again.iter().all(|answer| *answer == first), "{again:?}");
    let (status, _, body) = publish("k1", 2).await;
    assert_eq!((status, &body["code"]), (409, &json!("idempotency_key_reused")));
    let (status, _, body) = publish("a b", 1).await;
    assert_eq!((status, &body["code"]), (400, &json!("invalid_payload")));
    assert_eq!(publish("k2", 3).await.0, 202);
    let events = host.events("demo", 2).await;
    let told: Vec<_> = events.iter().map(|event| event["payload"]["n"].clone()).collect();
    assert_eq!((told, &events[0]["event_id"]), (vec![json!(1), json!(3)], &first.2["event_id"]));
    let log = host.get("/api/v1/events?limit=200&subject=test.once").await.expect(200);
    assert_eq!(log["events"].as_array().unwrap().len(), 2);
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_remembered_over_a_kill() {
    let mut host = Host::start().await;
    task(&host).await;
    let create = async |host: &Host| {
        ask(host, Method::POST, "/api/v1/tasks", &[("idempotency-key", "k")], json!({"title": "once"})).await
    };
    let first = create(&host).await;
    host.kill();
    host.spawn().await;
    assert_eq!(create(&host).await, first);
}

on_databases!(fifty_writers_at_once_lose_nothing_and_lock_nobody_out, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    task(&host).await;
    let writer = async |n: u32| {
        let title = format!("w{n}");
        let made = host.post("/api/v1/tasks", json!({"title": title})).await.expect(200);
        let path = format!("/api/v1/tasks/{}", made["id"].as_str().unwrap());
        for state in ["TODO", "IN_PROGRESS", "COMPLETED"] {
            host.request(Method::PATCH, &path, Some(json!({"state": state}))).await.expect(200);
        }
        let session = host.request(Method::POST, &format!("{path}/sessions/ensure"), None).await.expect(200);
        let messages = format!("/api/v1/task-sessions/{}/messages", session["session_id"].as_str().unwrap());
        host.post(&messages, json!({"content": title})).await.expect(201);
    };
    join_all((0..50).map(writer)).await;
    let workspaces = host.get("/api/v1/workspaces").await.expect(200);
    let workspace = workspaces["workspaces"][0]["id"].as_str().unwrap();
    let tasks = host.get(&format!("/api/v1/workspaces/{workspace}/tasks?page_size=100")).await.expect(200);
    let done = |task: &&Value| task["state"] == "COMPLETED" && task["session_count"] == 1;
    assert_eq!((&tasks["total"], tasks["tasks"].as_array().unwrap().iter().filter(done).count()), (&json!(51), 50));
    let mut told = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = host.get(&format!("/api/v1/events?after={cursor}&limit=200")).await.expect(200);
        told.extend(page["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap().to_owned()));
        cursor = page["cursor"].as_str().unwrap().to_owned();
        if page["has_more"] == false {
            break;
        }
    }
    let count = |kind: &str| told.iter().filter(|told| *told == kind).count();
    assert_eq!((count("task.created"), count("task.state_changed"), count("message.added")), (51, 150, 50));
    assert!(!host.log().contains("locked"), "{}", host.log());
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_client_hung_up_is_made() {
    let host = Host::start().await;
    task(&host).await;
    let mut raw = Raw::connect(&host).await;
    let authorization = format!("Authorization: Bearer {TOKEN}");
    raw.send(request("POST", "/api/v1/tasks", &[&authorization], br#"{"title":"left"}"#)).await;
    drop(raw);
    crate::support::eventually("the task is there", || async {
        let events = host.get("/api/v1/events?subject=task.created").await.expect(200);
        events["events"].as_array().unwrap().iter().any(|event| event["payload"]["title"] == "left")
    })
    .await;
}

on_databases!(what_is_wrong_with_a_request_is_named_and_nothing_is_changed, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let path = task(&host).await;
    let before = host.get(&path).await.expect(200);
    let long = "x".repeat(61);
    for (body, status, code, text) in [
        (json!({"title": long}), 400, "invalid_field", "task titles must be 60 characters or fewer"),
        (json!({"state": "SCHEDULING"}), 400, "invalid_field", "invalid task state"),
        (json!({"state": "DONE"}), 400, "invalid_payload", "unknown variant"),
        (json!({"priority": 1}), 400, "invalid_payload", "priority"),
        (json!({"colour": "red"}), 400, "invalid_payload", "unknown field `colour`"),
        (json!({"workflow_step_id": "none"}), 400, "invalid_field", "workflow step not found: none"),
        (json!({"parent_id": "none"}), 400, "invalid_field", "invalid parent_id: no such task"),
        (json!({"description": "a\u{0}b"}), 400, "invalid_field", "description contains a zero byte"),
        (json!({"metadata": {"source": "plugin:x"}}), 400, "invalid_field", "metadata.source is reserved"),
        (json!({"description": "d".repeat(300_000)}), 400, "field_too_large", "at most 262144 are allowed"),
        (json!([]), 400, "invalid_payload", "invalid payload"),
    ] {
        let answer = host.request(Method::PATCH, &path, Some(body.clone())).await.expect(status);
        assert_eq!(answer["code"], code, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(text), "{answer}");
    }
    for (method, path, code) in [
        (Method::GET, "/api/v1/tasks/none", "task_not_found"),
        (Method::GET, "/api/v1/tasks/a%00b", "task_not_found"),
        (Method::PATCH, "/api/v1/workspaces/none", "workspace_not_found"),
        (Method::GET, "/api/v1/workflows/none/snapshot", "workflow_not_found"),
        (Method::DELETE, "/api/v1/repositories/none", "repository_not_found"),
        (Method::GET, "/api/v1/task-sessions/none/messages", "session_not_found"),
        (Method::POST, "/api/v1/tasks/none/archive", "task_not_found"),
        (Method::DELETE, "/api/v1/agent-profiles/none", "agent_profile_not_found"),
        (Method::GET, "/api/v1/executors/none/profiles", "executor_not_found"),
    ] {
        assert_eq!(host.request(method, path, None).await.expect(404)["code"], code, "{path}");
    }
    assert_eq!(host.get(&path).await.expect(200), before);
    let (status, _, body) = ask(&host, Method::POST, "/api/v1/tasks", &[], json!({"title": "x".repeat(5 << 20)})).await;
    assert_eq!((status, &body["code"]), (413, &json!("body_too_large")));
    let agent = json!({"title": "t", "start_agent": true});
    assert_eq!(host.post("/api/v1/tasks", agent).await.expect(400)["error"], "agent_profile_id is required");
});

on_databases!(a_change_that_was_made_is_answered_the_same_whatever_came_after, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let task = task(&host).await;
    let key: &[(&str, &str)] = &[("idempotency-key", "k")];
    // The step where a task was moved to is gone.
    let workflow = host.get(&task).await.expect(200)["workflow_id"].as_str().unwrap().to_owned();
    let step = host.post("/api/v1/workflow/steps", json!({"workflow_id": workflow, "name": "new"})).await.expect(201);
    let (step, other) = (step["id"].as_str().unwrap(), host.get(&task).await.expect(200)["workflow_step_id"].clone());
    let path = format!("{task}/move");
    let there = json!({"workflow_id": workflow, "workflow_step_id": step, "position": 0});
    let moved = ask(&host, Method::POST, &path, key, there.clone()).await;
    assert_eq!((moved.0, &moved.2["workflow_step"]["name"]), (200, &json!("new")));
    let back = json!({"workflow_id": workflow, "workflow_step_id": other, "position": 0});
    host.post(&path, back).await.expect(200);
    host.request(Method::DELETE, &format!("/api/v1/workflow/steps/{step}"), None).await.expect(200);
    assert_eq!(ask(&host, Method::POST, &path, key, there).await, moved);
    // A profile that was changed or deleted is gone.
    let key: &[(&str, &str)] = &[("idempotency-key", "k1")];
    let executor = host.post("/api/v1/executors", json!({"name": "e", "type": "local"})).await.expect(201);
    let profiles = format!("/api/v1/executors/{}/profiles", executor["id"].as_str().unwrap());
    let profile = host.post(&profiles, json!({"name": "p"})).await.expect(201);
    let path = format!("{profiles}/{}", profile["id"].as_str().unwrap());
    let changed = ask(&host, Method::PATCH, &path, key, json!({"name": "q"})).await;
    let deleted = ask(&host, Method::DELETE, &path, key, json!({})).await;
    assert_eq!((changed.0, deleted.0), (200, 409), "one key, two requests");
    let key: &[(&str, &str)] = &[("idempotency-key", "k2")];
    let deleted = ask(&host, Method::DELETE, &path, key, json!({})).await;
    assert_eq!(deleted.0, 200);
    assert_eq!(ask(&host, Method::DELETE, &path, key, json!({})).await, deleted);
    assert_eq!(ask(&host, Method::PATCH, &path, &[("idempotency-key", "k1")], json!({"name": "q"})).await, changed);
});

on_databases!(agents_have_versions_and_show_all_their_profiles, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let workspace = host.post("/api/v1/workspaces", json!({"name": "w"})).await.expect(200)["id"].clone();
    let (status, tag, made) =
        ask(&host, Method::PUT, "/api/v1/agents/a", &[], json!({"name": "A", "position": null})).await;
    assert_eq!((status, tag.as_str(), &made["profiles"]), (200, "\"1\"", &json!([])));
    let profile =
        json!({"name": "p", "kind": "acp", "auto_approve": true, "cli_flags": ["-x"], "settings": {"more": 1}});
    let profile = host.post("/api/v1/agents/a/profiles", profile).await.expect(201);
    host.post("/api/v1/agents/a/profiles", json!({"name": "office", "workspace_id": workspace})).await.expect(201);
    let settings = json!({"more": 1, "kind": "acp", "auto_approve": true, "cli_flags": ["-x"]});
    assert_eq!((&profile["kind"], &profile["settings"]), (&json!("acp"), &settings));
    let path = format!("/api/v1/agent-profiles/{}", profile["id"].as_str().unwrap());
    let changed = host.request(Method::PATCH, &path, Some(json!({"auto_approve": false}))).await.expect(200);
    let settings = json!({"more": 1, "kind": "acp", "auto_approve": false, "cli_flags": ["-x"]});
    assert_eq!((&changed["auto_approve"], &changed["settings"]), (&json!(false), &settings));
    let (status, _, renamed) =
        ask(&host, Method::PUT, "/api/v1/agents/a", &[("if-match", tag.as_str())], json!({"name": "B"})).await;
    let names: Vec<_> =
        renamed["profiles"].as_array().unwrap().iter().map(|p| p["agent_display_name"].clone()).collect();
    assert_eq!((status, names), (200, vec![json!("B"), json!("B")]));
    let (status, ..) =
        ask(&host, Method::PUT, "/api/v1/agents/a", &[("if-match", tag.as_str())], json!({"name": "C"})).await;
    assert_eq!(status, 412);
    let list = host.get("/api/v1/agents").await.expect(200);
    assert_eq!(list["agents"][0], renamed);
});

on_databases!(a_commit_has_a_moment_that_can_be_written, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let task = task(&host).await;
    let session = host.request(Method::POST, &format!("{task}/sessions/ensure"), None).await.expect(200);
    let commits = format!("/api/v1/task-sessions/{}/commits", session["session_id"].as_str().unwrap());
    let commit = |at: &str| json!({"commit_sha": at, "committed_at": at, "author_name": null});
    for (at, status) in
        [("0000-01-01T00:00:00+01:00", 400), ("9999-12-31T23:59:59-01:00", 400), ("0000-01-01T00:00:00Z", 201)]
    {
        let answer = host.post(&commits, commit(at)).await.expect(status);
        if status == 400 {
            assert_eq!(answer["error"], "committed_at must be in the years 0000 to 9999 of UTC");
        }
    }
    assert_eq!(host.get(&commits).await.expect(200)["commits"].as_array().unwrap().len(), 1);
    let message = json!({"content": "c", "metadata": {"source": "plugin:x"}});
    let messages = format!("/api/v1/task-sessions/{}/messages", session["session_id"].as_str().unwrap());
    assert_eq!(host.post(&messages, message).await.expect(400)["error"], "metadata.source is reserved");
});
