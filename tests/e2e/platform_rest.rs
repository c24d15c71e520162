//! REST for the platform: every resource from its making to its end, on both databases (contract/platform-rest.md §3–8,
//! 10).

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_databases,
    support::{Guest, Host, Package, Settings, eventually},
};

const PLAIN: &str = "";

/// A value without what differs from run to run.
fn without(mut value: Value, keys: &[&str]) -> Value {
    for key in keys {
        assert!(value.as_object_mut().unwrap().shift_remove(*key).is_some(), "{key} in {value}");
    }
    value
}

/// The keys that every row has.
const STAMPS: [&str; 3] = ["id", "created_at", "updated_at"];

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("an id in {value}")).to_owned()
}

async fn change(host: &Host, method: Method, path: &str, body: Value) -> Value {
    host.request(method, path, Some(body)).await.expect(200)
}

async fn delete(host: &Host, path: &str) {
    assert_eq!(host.request(Method::DELETE, path, None).await.expect(200), json!({"success": true}));
}

/// A workspace with its default board: its id, the board's, and the steps'.
async fn board(host: &Host) -> (String, String, Vec<String>) {
    let workspace = id(&host.post("/api/v1/workspaces", json!({"name": "Board"})).await.expect(200));
    let workflows = host.get(&format!("/api/v1/workspaces/{workspace}/workflows")).await.expect(200);
    let workflow = id(&workflows["workflows"][0]);
    let steps = host.get(&format!("/api/v1/workflows/{workflow}/workflow/steps")).await.expect(200);
    (workspace, workflow, steps["steps"].as_array().unwrap().iter().map(id).collect())
}

on_databases!(a_workspace_lives_and_ends_with_everything_in_it, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    assert_eq!(host.get("/api/v1/workspaces").await.expect(200), json!({"workspaces": [], "total": 0}));
    let made = host.post("/api/v1/workspaces", json!({"name": "One", "description": "d", "task_prefix": "ONE"}));
    let made = made.await.expect(200);
    let expected = json!({"name": "One", "description": "d", "owner_id": "", "task_prefix": "ONE", "version": 1});
    assert_eq!(without(made.clone(), &STAMPS), expected);
    let path = format!("/api/v1/workspaces/{}", id(&made));
    assert_eq!(host.get(&path).await.expect(200), made);
    let changed = change(&host, Method::PATCH, &path, json!({"description": "", "owner_id": "me"})).await;
    let expected = json!({"name": "One", "owner_id": "me", "task_prefix": "ONE", "version": 2});
    assert_eq!(without(changed.clone(), &STAMPS), expected);
    let list = host.get("/api/v1/workspaces").await.expect(200);
    assert_eq!(list, json!({"workspaces": [changed], "total": 1}));

    let task = host.post("/api/v1/tasks", json!({"title": "In it"})).await.expect(200);
    assert_eq!(task["identifier"], "ONE-1");
    let wrong = host.request(Method::DELETE, &path, Some(json!({"confirm_name": "one"}))).await.expect(400);
    assert_eq!(wrong, json!({"error": "confirm_name must be the name of the workspace", "code": "not_confirmed"}));
    let gone = host.request(Method::DELETE, &path, Some(json!({"confirm_name": "One"}))).await.expect(200);
    assert_eq!(gone, json!({"success": true}));
    for path in [path, format!("/api/v1/tasks/{}", id(&task))] {
        host.get(&path).await.expect(404);
    }
});

on_databases!(workflows_and_steps_are_made_changed_ordered_and_deleted, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let (workspace, first, steps) = board(&host).await;
    assert_eq!(steps.len(), 4);
    let body = json!({"workspace_id": workspace, "name": "Second", "workflow_template_id": "plan-first"});
    let second = host.post("/api/v1/workflows", body).await.expect(201);
    let expected = json!({"workspace_id": workspace, "name": "Second", "sort_order": 1, "version": 1,
        "description": "A plan is made and approved before work begins"});
    let shown = without(second.clone(), &STAMPS);
    assert_eq!(shown["name"], expected["name"]);
    let second = id(&second);
    let order = json!({"workflow_ids": [second]});
    let path = format!("/api/v1/workspaces/{workspace}/workflows/reorder");
    assert_eq!(change(&host, Method::PUT, &path, order).await, json!({"success": true}));
    let of_workspace = host.get(&format!("/api/v1/workflows?workspace_id={workspace}")).await.expect(200);
    let ids: Vec<_> = of_workspace["workflows"].as_array().unwrap().iter().map(id).collect();
    assert_eq!((ids, &of_workspace["total"]), (vec![second.clone(), first.clone()], &json!(2)));

    let body = json!({"workflow_id": first, "name": "Extra", "color": "red", "wip_limit": 3,
        "events": {"on_enter": [{"type": "enable_plan_mode"}]}, "is_start_step": true});
    let step = host.post("/api/v1/workflow/steps", body).await.expect(201);
    let expected = json!({"workflow_id": first, "name": "Extra", "position": 4, "color": "red", "stage_type": "work",
        "prompt": "", "events": {"on_enter": [{"type": "enable_plan_mode"}]}, "allow_manual_move": true,
        "is_start_step": true, "show_in_command_panel": false, "auto_archive_after_hours": 0, "wip_limit": 3, "pull_from_step_id": "",
        "agent_profile_id": "", "auto_advance_requires_signal": false, "cancel_triggers_turn_complete": false, "version": 1});
    assert_eq!(without(step.clone(), &STAMPS), expected);
    let path = format!("/api/v1/workflow/steps/{}", id(&step));
    assert_eq!(host.get(&path).await.expect(200), json!({"step": step}));
    let old_start = host.get(&format!("/api/v1/workflow/steps/{}", steps[0])).await.expect(200);
    assert_eq!(old_start["step"]["is_start_step"], false, "there is one start step");
    let changed = change(&host, Method::PUT, &path, json!({"name": "Renamed", "stage_type": "review"})).await;
    assert_eq!(
        (&changed["name"], &changed["stage_type"], &changed["version"]),
        (&json!("Renamed"), &json!("review"), &json!(2))
    );
    let reorder = format!("/api/v1/workflows/{first}/workflow/steps/reorder");
    change(&host, Method::PUT, &reorder, json!({"step_ids": [id(&step)]})).await;
    let all = host.get(&format!("/api/v1/workspaces/{workspace}/workflow-steps")).await.expect(200);
    let of_first = all["steps"].as_array().unwrap().iter().filter(|step| step["workflow_id"] == first.as_str());
    let names: Vec<_> = of_first.map(|step| step["name"].clone()).collect();
    assert_eq!(names, ["Renamed", "Backlog", "In Progress", "Review", "Done"]);
    assert_eq!(all["steps"].as_array().unwrap().len(), 10);

    let task = host.post("/api/v1/tasks", json!({"title": "t", "workflow_id": first})).await.expect(200);
    assert_eq!(task["workflow_step_id"], id(&step).as_str());
    let held = host.request(Method::DELETE, &path, None).await.expect(409);
    assert_eq!(held["code"], "not_empty");
    delete(&host, &format!("/api/v1/tasks/{}", id(&task))).await;
    delete(&host, &path).await;
    delete(&host, &format!("/api/v1/workflows/{second}")).await;
    host.post(&format!("/api/v1/workflows/{first}/workflow/steps"), json!({"template_id": "kanban"})).await.expect(201);
    let steps = host.get(&format!("/api/v1/workflows/{first}/workflow/steps")).await.expect(200);
    assert_eq!(steps["steps"].as_array().unwrap().len(), 8);
    let templates = host.get("/api/v1/workflow/templates").await.expect(200);
    let one = host.get("/api/v1/workflow/templates/kanban").await.expect(200);
    assert_eq!(templates["templates"][0], one["template"]);
    host.get("/api/v1/workflow/templates/none").await.expect(404);
});

on_databases!(a_task_is_made_changed_moved_put_away_and_deleted, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let (workspace, workflow, steps) = board(&host).await;
    let body = json!({"workspace_id": workspace, "workflow_id": workflow, "title": "Parent", "description": "d",
        "priority": "high", "state": "TODO", "metadata": {"k": [1]}, "external_id": "X-1", "position": 2});
    let made = host.post("/api/v1/tasks", body.clone()).await.expect(200);
    let expected = json!({"workspace_id": workspace, "workflow_id": workflow, "workflow_step_id": steps[0],
        "title": "Parent", "description": "d", "state": "TODO", "priority": "high", "position": 2,
        "wip_admitted": true, "primary_session_pending_action": null, "task_pending_action": null,
        "session_count": 0, "active_subagent_count": 0, "autopilot": false, "is_ephemeral": false,
        "origin": "manual", "external_id": "X-1", "metadata": {"k": [1]}, "version": 1,
        "deduplicated": false, "creation_complete": true});
    assert_eq!(without(made.clone(), &STAMPS), expected);
    let again = host.post("/api/v1/tasks", body).await.expect(200);
    assert_eq!((id(&again), &again["deduplicated"]), (id(&made), &json!(true)));
    let task = id(&made);
    let path = format!("/api/v1/tasks/{task}");
    let by_external = format!("/api/v1/workspaces/{workspace}/tasks/by-external-id?external_id=X-1");
    assert_eq!(host.get(&by_external).await.expect(200), host.get(&path).await.expect(200));

    let child = host.post("/api/v1/tasks", json!({"title": "Part", "parent_id": task})).await.expect(200);
    assert_eq!(child["parent_id"], task.as_str());
    assert_eq!(host.get(&format!("{path}/subtask-count")).await.expect(200), json!({"count": 1}));
    let grandchild = host.post("/api/v1/tasks", json!({"title": "x", "parent_id": id(&child)})).await.expect(400);
    assert!(grandchild["error"].as_str().unwrap().contains("maximum nesting depth is 1"), "{grandchild}");

    let changed = change(&host, Method::PATCH, &path, json!({"state": "IN_PROGRESS", "title": "New"})).await;
    assert_eq!(
        (&changed["state"], &changed["title"], &changed["version"]),
        (&json!("IN_PROGRESS"), &json!("New"), &json!(2))
    );
    assert!(changed["started_at"].is_string() && changed.get("completed_at").is_none(), "{changed}");
    let target = json!({"workflow_id": workflow, "workflow_step_id": steps[2], "position": 5});
    let moved = host.post(&format!("{path}/move"), target).await.expect(200);
    assert_eq!((&moved["task"]["workflow_step_id"], &moved["task"]["position"]), (&json!(steps[2]), &json!(5)));
    assert_eq!(moved["workflow_step"]["name"], "Review");
    let bulk = json!({"source_workflow_id": workflow, "target_workflow_id": workflow, "target_step_id": steps[3]});
    assert_eq!(host.post("/api/v1/tasks/bulk-move", bulk).await.expect(200), json!({"moved_count": 2}));

    host.request(Method::POST, &format!("{path}/archive"), None).await.expect(200);
    let shown = |list: Value| list["tasks"].as_array().unwrap().iter().map(id).collect::<Vec<_>>();
    let tasks = format!("/api/v1/workspaces/{workspace}/tasks");
    assert_eq!(shown(host.get(&tasks).await.expect(200)), [id(&child)]);
    assert_eq!(shown(host.get(&format!("{tasks}?only_archived=true")).await.expect(200)), std::slice::from_ref(&task));
    assert_eq!(shown(host.get(&format!("/api/v1/workflows/{workflow}/tasks")).await.expect(200)), [id(&child)]);
    host.request(Method::POST, &format!("{path}/unarchive"), None).await.expect(200);
    let snapshot = host.get(&format!("/api/v1/workspaces/{workspace}/snapshot")).await.expect(200);
    assert_eq!(snapshot, host.get(&format!("/api/v1/workflows/{workflow}/snapshot")).await.expect(200));
    assert_eq!((snapshot["steps"].as_array().unwrap().len(), shown(snapshot)), (4, vec![id(&child), task.clone()]));

    delete(&host, &format!("{path}?cascade=true")).await;
    host.get(&format!("/api/v1/tasks/{}", id(&child))).await.expect(404);
    assert_eq!(host.get(&tasks).await.expect(200), json!({"tasks": [], "total": 0}));
});

on_databases!(sessions_messages_commits_and_snapshots_are_recorded_and_read, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    board(&host).await;
    change(&host, Method::PUT, "/api/v1/agents/claude", json!({"name": "Claude", "supports_mcp": true})).await;
    let profile = json!({"name": "Fast", "model": "m-1", "settings": {"auto_approve": true}});
    let profile = host.post("/api/v1/agents/claude/profiles", profile).await.expect(201);
    let task = id(&host.post("/api/v1/tasks", json!({"title": "t"})).await.expect(200));
    let ensure = format!("/api/v1/tasks/{task}/sessions/ensure");
    let body = json!({"agent_profile_id": id(&profile), "base_branch": "main"});
    let made = host.post(&ensure, body.clone()).await.expect(200);
    let session = made["session_id"].as_str().unwrap().to_owned();
    assert_eq!(host.post(&ensure, body).await.expect(200), made, "there is one primary session");
    let shown = &made["session"];
    assert_eq!((&shown["agent_profile_snapshot"]["model"], &shown["is_primary"]), (&json!("m-1"), &json!(true)));
    let path = format!("/api/v1/task-sessions/{session}");
    assert_eq!(host.get(&path).await.expect(200), json!({"session": made["session"]}));
    let list = host.get(&format!("/api/v1/tasks/{task}/sessions")).await.expect(200);
    assert_eq!(list, json!({"sessions": [made["session"]], "total": 1}));
    let shown = host.get(&format!("/api/v1/tasks/{task}")).await.expect(200);
    let summary = (&shown["session_count"], &shown["primary_session_id"], &shown["primary_session_state"]);
    assert_eq!(summary, (&json!(1), &json!(session), &json!("CREATED")));

    let messages = format!("{path}/messages");
    let text = "<kandev-system>hidden</kandev-system> Ship it";
    let first = host.post(&messages, json!({"content": text, "metadata": {"a": 1}})).await.expect(201);
    let expected = json!({"session_id": session, "task_id": task, "author_type": "user", "type": "message",
        "content": "Ship it", "raw_content": text, "requests_input": false, "metadata": {"a": 1}, "version": 1});
    assert_eq!(without(first.clone(), &["id", "turn_id", "created_at", "updated_at"]), expected);
    let mut ids = vec![id(&first)];
    for n in 0..11 {
        let body = json!({"content": n.to_string(), "author_type": "agent", "type": "content"});
        ids.push(id(&host.post(&messages, body).await.expect(201)));
    }
    let of = |page: &Value| page["messages"].as_array().unwrap().iter().map(id).collect::<Vec<_>>();
    let whole = host.get(&messages).await.expect(200);
    assert_eq!((of(&whole), &whole["total"], &whole["has_more"]), (ids.clone(), &json!(12), &json!(false)));
    let page = host.get(&format!("{messages}?sort=desc&limit=5")).await.expect(200);
    let newest: Vec<_> = ids.iter().rev().take(5).cloned().collect();
    assert_eq!((of(&page), &page["has_more"], &page["cursor"]), (newest, &json!(true), &json!(ids[7])));
    let older = host.get(&format!("{messages}?sort=desc&limit=100&before={}", ids[7])).await.expect(200);
    assert_eq!((of(&older).len(), &older["has_more"]), (7, &json!(false)));
    let between = host.get(&format!("{messages}?sort=asc&after={}&before={}", ids[2], ids[6])).await.expect(200);
    assert_eq!((of(&between), &between["has_more"]), (ids[3..6].to_vec(), &json!(false)));
    let backwards = host.get(&format!("{messages}?sort=desc&after={}", ids[8])).await.expect(200);
    assert_eq!(of(&backwards), [ids[11].clone(), ids[10].clone(), ids[9].clone()]);
    assert_eq!(host.get(&format!("/api/v1/agent-sessions/{session}/messages")).await.expect(200), whole);
    let read = host.post(&format!("{path}/mark-read"), json!({"message_id": ids[3]})).await.expect(200);
    assert_eq!(read, json!({"session_id": session, "last_read_message_id": ids[3]}));
    let turns = host.get(&format!("{path}/turns")).await.expect(200);
    assert_eq!((&turns["total"], turns["turns"][0].get("completed_at")), (&json!(1), None));
    let closed = host.request(Method::POST, &format!("{path}/turns/complete"), None).await.expect(200);
    assert!(closed["turn"]["completed_at"].is_string(), "{closed}");
    let none = host.request(Method::POST, &format!("{path}/turns/complete"), None).await.expect(200);
    assert_eq!(none, json!({"turn": null}));

    let commit = json!({"commit_sha": "abc", "insertions": 5, "deletions": 2, "committed_at": "2026-11-01T10:00:00Z"});
    let recorded = host.post(&format!("{path}/commits"), commit.clone()).await.expect(201);
    assert_eq!(host.post(&format!("{path}/commits"), commit).await.expect(201), recorded, "one of each hash");
    let commits = host.get(&format!("{path}/commits")).await.expect(200);
    assert_eq!((&commits["commits"], &recorded["committed_at"]), (&json!([recorded]), &json!("2026-11-01T10:00:00Z")));
    let files = json!({"branch": "b", "files": {"a.rs": {"additions": 3, "deletions": 1}, "b.rs": {"additions": 4}}});
    let snapshot = host.post(&format!("{path}/git-snapshots"), files).await.expect(201);
    assert_eq!((&snapshot["additions"], &snapshot["deletions"]), (&json!(7), &json!(1)));
    assert_eq!(host.get(&format!("{path}/git-snapshots")).await.expect(200), json!({"snapshots": [snapshot]}));

    let changed = change(&host, Method::PATCH, &path, json!({"state": "COMPLETED", "review_status": "pending"})).await;
    let review = (&changed["session"]["review_status"], &changed["session"]["state"]);
    assert_eq!(review, (&json!("pending"), &json!("COMPLETED")));
    let approved = host.request(Method::POST, &format!("/api/v1/sessions/{session}/approve"), None).await.expect(200);
    assert_eq!((&approved["success"], &approved["session"]["review_status"]), (&json!(true), &json!("approved")));
    delete(&host, &path).await;
    host.get(&messages).await.expect(404);
});

on_databases!(repositories_agents_and_executors_live_and_end, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let (workspace, ..) = board(&host).await;
    let repositories = format!("/api/v1/workspaces/{workspace}/repositories");
    let body = json!({"name": "app", "remote_url": "https://u:p@forge.test/app.git", "default_branch": "main"});
    let made = host.post(&repositories, body).await.expect(201);
    let address = (&made["remote_url"], &made["default_branch"]);
    assert_eq!(address, (&json!("https://forge.test/app.git"), &json!("main")));
    let path = format!("/api/v1/repositories/{}", id(&made));
    let changed = change(&host, Method::PATCH, &path, json!({"setup_script": "make"})).await;
    assert_eq!(host.get(&path).await.expect(200), changed);
    assert_eq!(host.get(&repositories).await.expect(200), json!({"repositories": [changed], "total": 1}));
    let body =
        json!({"title": "t", "repositories": [{"repository_id": id(&made), "base_branch": "dev", "pr_number": 7}]});
    let task = host.post("/api/v1/tasks", body).await.expect(200);
    let of_task = without(task["repositories"][0].clone(), &["id"]);
    let expected = json!({"task_id": id(&task), "repository_id": id(&made), "base_branch": "dev", "checkout_branch": "",
        "pr_number": 7, "position": 0});
    assert_eq!(of_task, expected);
    delete(&host, &path).await;
    assert_eq!(host.get(&repositories).await.expect(200), json!({"repositories": [], "total": 0}));

    change(&host, Method::PUT, "/api/v1/agents/b", json!({"name": "B", "position": 2})).await;
    change(&host, Method::PUT, "/api/v1/agents/a", json!({"name": "A", "position": 1})).await;
    let profile = host.post("/api/v1/agents/b/profiles", json!({"name": "p"})).await.expect(201);
    let path = format!("/api/v1/agent-profiles/{}", id(&profile));
    let changed = change(&host, Method::PATCH, &path, json!({"enabled": false, "workspace_id": ""})).await;
    assert_eq!((&changed["enabled"], &changed["user_modified"]), (&json!(false), &json!(true)));
    let agents = host.get("/api/v1/agents").await.expect(200);
    let shown: Vec<_> =
        agents["agents"].as_array().unwrap().iter().map(|a| (a["id"].clone(), a["profiles"].clone())).collect();
    assert_eq!(shown, [(json!("a"), json!([])), (json!("b"), json!([changed]))]);
    delete(&host, &path).await;
    host.get(&path).await.expect(404);

    let executor = host.post("/api/v1/executors", json!({"name": "here", "type": "local"})).await.expect(201);
    let path = format!("/api/v1/executors/{}", id(&executor));
    let profiles = format!("{path}/profiles");
    let profile = host.post(&profiles, json!({"name": "p", "config": {"a": 1}})).await.expect(201);
    assert_eq!((&profile["executor_type"], &profile["config"]), (&json!("local"), &json!({"a": 1})));
    let expected = json!({"profiles": [profile], "total": 1});
    assert_eq!(host.get(&profiles).await.expect(200), expected);
    assert_eq!(host.get("/api/v1/executor-profiles").await.expect(200), expected);
    let one = format!("{profiles}/{}", id(&profile));
    let changed = change(&host, Method::PATCH, &one, json!({"prepare_script": "x"})).await;
    assert_eq!(host.get(&one).await.expect(200), changed);
    host.get(&format!("/api/v1/executors/other/profiles/{}", id(&profile))).await.expect(404);
    delete(&host, &one).await;
    assert_eq!(change(&host, Method::PATCH, &path, json!({"name": "there"})).await["version"], 2);
    delete(&host, &path).await;
    assert_eq!(host.get("/api/v1/executors").await.expect(200), json!({"executors": [], "total": 0}));
});

on_databases!(pages_of_a_list_show_every_row_once_and_a_garbage_cursor_is_refused, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let (_, workflow, _) = board(&host).await;
    for n in 0..12 {
        host.post("/api/v1/tasks", json!({"title": n.to_string()})).await.expect(200);
    }
    let list = format!("/api/v1/workflows/{workflow}/tasks");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = host.get(&format!("{list}?limit=5&cursor={cursor}")).await.expect(200);
        // New rows come first: they are on no later page.
        host.post("/api/v1/tasks", json!({"title": "later"})).await.expect(200);
        seen.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["title"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = next.to_owned();
    }
    let expected: Vec<_> = (0..12).rev().map(|n| json!(n.to_string())).collect();
    assert_eq!(seen, expected);
    for (query, code) in [
        ("cursor=garbage", "invalid_cursor"),
        ("limit=0", "invalid_query"),
        ("limit=201", "invalid_query"),
        ("limit=x", "invalid_query"),
        ("page=2", "invalid_query"),
    ] {
        assert_eq!(host.get(&format!("{list}?{query}")).await.expect(400)["code"], code, "{query}");
    }
    // A cursor of another list is garbage here.
    let workspaces = host.get(&format!("/api/v1/workspaces?cursor={cursor}")).await.expect(400);
    assert_eq!(workspaces["code"], "invalid_cursor");
});

on_databases!(the_log_is_read_from_any_place_on, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let (workspace, ..) = board(&host).await;
    let begin = host.get("/api/v1/events?limit=200").await.expect(200);
    let types: Vec<_> = begin["events"].as_array().unwrap().iter().map(|event| event["type"].clone()).collect();
    let step = "workflow_step.created";
    assert_eq!(types, ["workspace.created", "workflow.created", step, step, step, step]);
    let cursor = begin["cursor"].as_str().unwrap();
    let idle = host.get(&format!("/api/v1/events?after={cursor}")).await.expect(200);
    assert_eq!(idle, json!({"events": [], "cursor": cursor, "has_more": false}));
    let task = id(&host.post("/api/v1/tasks", json!({"title": "t"})).await.expect(200));
    change(&host, Method::PATCH, &format!("/api/v1/tasks/{task}"), json!({"state": "TODO"})).await;
    let first = host.get(&format!("/api/v1/events?after={cursor}&limit=1")).await.expect(200);
    let event = &first["events"][0];
    let shown = (&event["type"], &event["workspace_id"], &event["payload"]["task_id"], &first["has_more"]);
    assert_eq!(shown, (&json!("task.created"), &json!(workspace), &json!(task), &json!(true)));
    let after = first["cursor"].as_str().unwrap();
    let filter = "subject=task.state_changed,task.moved";
    let rest = host.get(&format!("/api/v1/events?after={after}&{filter}&workspace_id={workspace}")).await.expect(200);
    assert_eq!(
        (rest["events"].as_array().unwrap().len(), &rest["events"][0]["payload"]["new_state"]),
        (1, &json!("TODO"))
    );
    assert_eq!(host.get("/api/v1/events?after=x").await.expect(400)["code"], "invalid_cursor");
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_by_rest_reaches_a_subscribed_plugin() {
    let host = Host::start().await;
    host.install(&Package::of(Guest::Go, "demo", "1.0.0")).await;
    board(&host).await;
    let task = host.post("/api/v1/tasks", json!({"title": "Told", "metadata": {"a": 1}})).await.expect(200);
    let events = host.events("demo", 1).await;
    let shown = (&events[0]["event_type"], &events[0]["payload"]["task_id"], &events[0]["payload"]["metadata"]);
    assert_eq!(shown, (&json!("task.created"), &task["id"], &json!({"a": 1})));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_inbox_of_a_workspace_shows_incidents_of_plugins_and_dismisses_them() {
    let host = Host::start_with(Settings::toml("[timing]\nrestart_delays = []\n")).await;
    let (workspace, ..) = board(&host).await;
    let inbox = format!("/api/v1/office/workspaces/{workspace}/inbox");
    assert_eq!(host.get(&inbox).await.expect(200), json!({"items": [], "total_count": 0}));
    let package = Package::of(Guest::Rust, "demo", "1.0.0").switches(&json!({"crash_before_handshake": 100}));
    host.upload(package.archive().await).await.expect(201);
    eventually("the incident is in the inbox", || async {
        host.get(&format!("{inbox}?count=true")).await.expect(200) == json!({"count": 1})
    })
    .await;
    let items = host.get(&inbox).await.expect(200);
    let item = &items["items"][0];
    let shown = (&item["type"], &item["entity_id"], &item["entity_type"], &items["total_count"]);
    assert_eq!(shown, (&json!("plugin_unreachable"), &json!("demo"), &json!("plugin"), &json!(1)));
    for (body, text) in
        [(json!({}), "kind and item_id are required"), (json!({"kind": "x", "item_id": "y"}), "unsupported kind: x")]
    {
        assert_eq!(host.post("/api/v1/office/inbox/dismiss", body).await.expect(400)["error"], text);
    }
    let none = json!({"kind": "agent_run_failed", "item_id": item["id"]});
    host.post("/api/v1/office/inbox/dismiss", none).await.expect(404);
    let body = json!({"kind": item["type"], "item_id": item["id"]});
    assert_eq!(host.post("/api/v1/office/inbox/dismiss", body).await.expect(200), json!({"ok": true}));
    assert_eq!(host.get(&inbox).await.expect(200), json!({"items": [], "total_count": 0}));
    host.get("/api/v1/office/workspaces/none/inbox").await.expect(404);
}

/// The fields of `value` that its shape calls a list and that must be there, by their names; each must be one.
fn lists_in(document: &Value, shape: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = shape["$ref"].as_str() {
        let shape = document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name}"));
        return lists_in(document, shape, value, at, found);
    }
    if shape["type"] == "array" {
        let rows = value.as_array().unwrap_or_else(|| panic!("{at} is {value}"));
        found.push(at.to_owned());
        for row in rows {
            lists_in(document, &shape["items"], row, at, &mut Vec::new());
        }
    }
    let Some(fields) = shape["properties"].as_object() else { return };
    let must = |field: &str| shape["required"].as_array().is_some_and(|all| all.iter().any(|name| name == field));
    for (field, shape) in fields.iter().filter(|(field, _)| must(field) || value.get(field).is_some()) {
        lists_in(document, shape, &value[field], &format!("{at} {field}"), found);
    }
}

// Field case 83: of a host with nothing, and of things with nothing in them.
on_databases!(what_is_called_a_list_is_one_when_it_is_empty, PLAIN, |settings| {
    let host = Host::start_with(settings).await;
    let document = host.get("/api/openapi.json").await.expect(200);
    let check = async |path: &str, ids: &[(&str, &str)]| {
        let filled = ids.iter().fold(path.to_owned(), |filled, (begin, id)| {
            if filled.starts_with(begin) { filled.replacen("{id}", id, 1) } else { filled }
        });
        if filled.contains('{') {
            return Vec::new();
        }
        let answers = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"];
        let value = host.get(&filled).await;
        let mut found = Vec::new();
        if !answers.is_null() && value.status == 200 {
            lists_in(&document, &answers["schema"], &value.expect(200), path, &mut found);
        }
        found
    };
    let paths: Vec<&String> =
        document["paths"].as_object().unwrap().keys().filter(|path| path.contains("/v1/")).collect();
    let mut found = Vec::new();
    for path in &paths {
        found.extend(check(path, &[]).await);
    }
    let expected = [
        "/api/v1/agents agents",
        "/api/v1/events events",
        "/api/v1/executor-profiles profiles",
        "/api/v1/executors executors",
        "/api/v1/workflows workflows",
        "/api/v1/workspaces workspaces",
    ];
    for list in expected {
        assert!(found.iter().any(|found| found == list), "{list} among {found:#?}");
    }

    let (workspace, workflow, _) = board(&host).await;
    let task = id(&host.post("/api/v1/tasks", json!({"title": "t"})).await.expect(200));
    let session = host.request(Method::POST, &format!("/api/v1/tasks/{task}/sessions/ensure"), None).await.expect(200);
    let session = session["session_id"].as_str().unwrap();
    let executor = json!({"name": "e", "type": "local"});
    let executor = id(&host.post("/api/v1/executors", executor).await.expect(201));
    let ids = [
        ("/api/v1/workspaces/", workspace.as_str()),
        ("/api/v1/workflows/", &workflow),
        ("/api/v1/tasks/", &task),
        ("/api/v1/task-sessions/", session),
        ("/api/v1/agent-sessions/", session),
        ("/api/v1/executors/", &executor),
        ("/api/v1/office/workspaces/", &workspace),
    ];
    let mut found = Vec::new();
    for path in &paths {
        found.extend(check(path, &ids).await);
    }
    let expected = [
        "/api/v1/executors/{id}/profiles profiles",
        "/api/v1/task-sessions/{id}/commits commits",
        "/api/v1/task-sessions/{id}/git-snapshots snapshots",
        "/api/v1/task-sessions/{id}/messages messages",
        "/api/v1/task-sessions/{id}/turns turns",
        "/api/v1/tasks/{id}/sessions sessions",
        "/api/v1/workflows/{id}/tasks tasks",
        "/api/v1/workspaces/{id}/repositories repositories",
        "/api/v1/workspaces/{id}/tasks tasks",
    ];
    for list in expected {
        assert!(found.iter().any(|found| found == list), "{list} among {found:#?}");
    }
});
