//! References (contract/wire.md §2.1, manifest.md `reference_sources`): the sources, a search whose references are the
//! host's, the question before each use, and one owner for each source.

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    on_both,
    support::{
        Guest, Host, Package, Settings, Signal,
        board::{provider, workspace},
        host::Answer,
        kill,
    },
};

const QUICK: &str = r#"
[timing]
reference_search_timeout = "2s"
reference_authorize_timeout = "1s"
lease_grace = "300ms"
[limits]
reference_concurrency = 1
"#;

/// A host with the provider and a workspace.
async fn with_forge(guest: Guest, toml: &str) -> (Host, String) {
    let host = Host::start_with(Settings::toml(toml)).await;
    host.install(&provider(guest, "forge", "1.0.0")).await;
    let workspace = workspace(&host, "searched").await;
    (host, workspace)
}

fn candidate(id: &str) -> Value {
    json!({"id": id, "title": format!("Issue {id}"), "url": format!("https://forge.example.test/{id}")})
}

/// The reference that the host makes of [`candidate`].
fn reference(workspace: &str, id: &str) -> Value {
    json!({"version": 1, "ref": format!("forge/issue/{id}"), "provider": "forge", "kind": "issue", "id": id, "key": id,
        "title": format!("Issue {id}"), "url": format!("https://forge.example.test/{id}"),
        "scope": format!("workspace:{workspace}")})
}

async fn search(host: &Host, workspace: &str, more: Value) -> Answer {
    let mut body = json!({"workspace_id": workspace, "source": "issues", "query": "fix"});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    host.post("/api/v1/references/search", body).await
}

/// The verdicts on one reference.
async fn authorize(host: &Host, workspace: &str, reference: &Value) -> Value {
    let body = json!({"workspace_id": workspace, "references": [reference]});
    host.post("/api/v1/references/authorize", body).await.expect(200)["results"].clone()
}

/// What the fixture was asked, without moments.
fn asked(host: &Host, kind: &str) -> Vec<Value> {
    let calls = host.calls("forge").into_iter().filter(|call| call["kind"] == kind);
    let plain = |mut call: Value| {
        let fields = call.as_object_mut().expect("a call");
        fields.retain(|name, _| name != "time_ms" && name != "pid");
        call
    };
    calls.map(plain).collect()
}

on_both!(a_search_answers_references_that_the_host_wrote_and_the_plugin_allows, |guest| {
    let (host, workspace) = with_forge(guest, "").await;
    let source = |source: &str, kind: &str, name: &str, label: &str, order: u32| {
        json!({"plugin": "forge", "source": source, "provider": "forge", "kind": kind, "display_name": name,
            "kind_label": label, "order": order})
    };
    let expected = json!({"sources": [
        source("pulls", "pull", "Forge pull requests", "Pull request", 1),
        source("issues", "issue", "Forge issues", "Issue", 2),
    ]});
    assert_eq!(host.get("/api/v1/references/sources").await.expect(200), expected);

    let mut keyed = candidate("a/ü");
    keyed["attributes"] = json!({"key": "APP-7", "scope": "evil", "provider": "evil"});
    let evil = json!({"id": "9", "title": "x", "url": "javascript:alert(1)"});
    let candidates = json!([candidate("1"), candidate("2"), evil, candidate("1"), keyed]);
    host.set_switches("forge", &json!({"references": {"candidates": candidates, "denied": ["2"]}}));
    let found = search(&host, &workspace, json!({})).await.expect(200);
    let mut last = reference(&workspace, "a/ü");
    last["ref"] = json!("forge/issue/a%2F%C3%BC");
    last["key"] = json!("APP-7");
    last["url"] = json!("https://forge.example.test/a/%C3%BC");
    assert_eq!(found, json!({"references": [reference(&workspace, "1"), last], "denied": 1, "malformed": 1}));

    let searched = json!({"kind": "search", "name": "issues", "workspace_id": workspace, "query": "fix", "limit": 10});
    assert_eq!(asked(&host, "search"), [searched]);
    let questions = asked(&host, "authorize");
    assert_eq!(questions.len(), 3, "each entity once: {questions:?}");
    let one = json!({"kind": "authorize", "name": "issues", "workspace_id": workspace, "purpose": "search",
        "reference": reference(&workspace, "1")});
    assert!(questions.contains(&one), "{questions:?}");

    let some = search(&host, &workspace, json!({"limit": 1, "query": null})).await.expect(200);
    assert_eq!(some["references"], json!([reference(&workspace, "1")]));
    host.command("forge", "disable").await.expect(200);
    assert_eq!(host.get("/api/v1/references/sources").await.expect(200), json!({"sources": []}));
    let gone = search(&host, &workspace, json!({})).await.expect(404);
    assert_eq!(gone["code"], "reference_source_not_found");
});

on_both!(whatever_goes_wrong_with_the_question_is_a_no, |guest| {
    let (host, workspace) = with_forge(guest, QUICK).await;
    let (good, other) = (reference(&workspace, "1"), reference(&workspace, "2"));
    let verdict = |id: &str, reason: &str| match reason {
        "" => json!({"ref": format!("forge/issue/{id}"), "allowed": true}),
        reason => json!({"ref": format!("forge/issue/{id}"), "allowed": false, "reason": reason}),
    };
    host.set_switches("forge", &json!({"references": {"denied": ["2"], "reason": " not\nyours "}}));
    let verdicts = authorize(&host, &workspace, &good).await;
    assert_eq!(verdicts, json!([verdict("1", "")]));
    let submitted = json!({"kind": "authorize", "name": "issues", "workspace_id": workspace, "purpose": "submission",
        "reference": good});
    assert_eq!(asked(&host, "authorize"), [submitted]);
    assert_eq!(authorize(&host, &workspace, &other).await, json!([verdict("2", "not yours")]));

    let changed = |field: &str, value: Value| {
        let mut changed = reference(&workspace, "1");
        changed[field] = value;
        changed
    };
    let calls = host.calls("forge").len();
    for (forged, reason) in [
        (changed("id", json!("3")), "ref and scope must be as a search in this workspace answered them"),
        (
            changed("scope", json!("workspace:other")),
            "ref and scope must be as a search in this workspace answered them",
        ),
        (changed("version", json!(2)), "version must be 1"),
        (changed("title", json!("a\nb")), "title must be one line of 1 to 300 bytes"),
        (
            changed("url", json!("javascript:alert(1)")),
            "url must be empty, or an http or https address of at most 2048 bytes without user and password",
        ),
    ] {
        assert_eq!(authorize(&host, &workspace, &forged).await, json!([verdict("1", reason)]));
    }
    let mut foreign = changed("provider", json!("tracker"));
    foreign["ref"] = json!("tracker/issue/1");
    let told = authorize(&host, &workspace, &foreign).await;
    assert_eq!(told[0]["reason"], "no active plugin has references of this kind");
    assert_eq!(host.calls("forge").len(), calls, "none of these reached the plugin");

    host.set_switches("forge", &json!({"references": {"authorize_ms": 60_000}}));
    let begin = Instant::now();
    assert_eq!(authorize(&host, &workspace, &good).await, json!([verdict("1", "the plugin did not answer in time")]));
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    host.set_switches("forge", &json!({"references": {"fail": "password=hunter2hunter2"}}));
    assert_eq!(authorize(&host, &workspace, &good).await, json!([verdict("1", "the plugin failed to answer")]));
    host.set_switches("forge", &json!({}));
    assert_eq!(authorize(&host, &workspace, &good).await, json!([verdict("1", "the plugin failed to answer")]));
    host.command("forge", "disable").await.expect(200);
    let told = authorize(&host, &workspace, &good).await;
    assert_eq!(told, json!([verdict("1", "no active plugin has references of this kind")]));
    assert!(!host.log().contains("hunter2"));
});

on_both!(a_search_has_a_deadline_and_bounds, |guest| {
    let (host, workspace) = with_forge(guest, QUICK).await;
    host.set_switches("forge", &json!({"references": {"candidates": [candidate("1")], "repeat": 200}}));
    let most = search(&host, &workspace, json!({"limit": 50})).await.expect(200);
    assert_eq!(most["references"], json!([reference(&workspace, "1")]));
    for switches in [
        json!({"candidates": [candidate("1")], "repeat": 201}),
        json!({"candidates": [{"id": "1", "title": "x".repeat(1 << 20), "url": ""}]}),
    ] {
        host.set_switches("forge", &json!({"references": switches}));
        let refused = search(&host, &workspace, json!({})).await.expect(502);
        let text = "plugin \"forge\" answered more than 200 candidates or 1048576 bytes to a search";
        assert_eq!(refused, json!({"error": text, "code": "invalid_reference_answer"}));
    }
    host.set_switches("forge", &json!({"references": {"search_ms": 60_000}}));
    let slow = search(&host, &workspace, json!({})).await.expect(504);
    assert_eq!(
        slow,
        json!({"error": "plugin \"forge\" did not answer the search in time", "code": "reference_timeout"})
    );
    for switches in [json!({}), json!({"references": {"fail": "password=hunter2hunter2"}})] {
        host.set_switches("forge", &switches);
        let failed = search(&host, &workspace, json!({})).await.expect(503);
        assert_eq!(failed, json!({"error": "plugin \"forge\" failed to search", "code": "reference_failed"}));
    }
    for (more, status, code) in [
        (json!({"source": "absent"}), 404, "reference_source_not_found"),
        (json!({"workspace_id": "absent"}), 404, "workspace_not_found"),
        (json!({"limit": 0}), 400, "invalid_payload"),
        (json!({"limit": 51}), 400, "invalid_payload"),
        (json!({"query": "x".repeat(257)}), 400, "invalid_payload"),
        (json!({"more": 1}), 400, "invalid_payload"),
    ] {
        assert_eq!(search(&host, &workspace, more.clone()).await.expect(status)["code"], code, "{more}");
    }
    assert!(!host.log().contains("hunter2"));
});

on_both!(one_search_more_than_the_bound_is_429_and_a_question_more_is_a_no, |guest| {
    let (host, workspace) = with_forge(guest, "[limits]\nreference_concurrency = 1\n").await;
    host.set_switches("forge", &json!({"references": {"candidates": [candidate("1")], "search_ms": 3000}}));
    let meanwhile = async {
        host.called("forge", 1).await;
        let refused = search(&host, &workspace, json!({})).await;
        (refused, authorize(&host, &workspace, &reference(&workspace, "1")).await)
    };
    let (found, (refused, denied)) = tokio::join!(search(&host, &workspace, json!({})), meanwhile);
    let text = "plugin \"forge\" has too many reference calls under way";
    assert_eq!(refused.expect(429), json!({"error": text, "code": "too_many_calls"}));
    let reason = "the plugin has too many reference calls under way";
    assert_eq!(denied, json!([{"ref": "forge/issue/1", "allowed": false, "reason": reason}]));
    assert_eq!(found.expect(200)["references"], json!([reference(&workspace, "1")]));
});

on_both!(a_plugin_that_is_disabled_answers_the_search_that_is_under_way_first, |guest| {
    let (host, workspace) = with_forge(guest, "[timing]\ndrain_grace = \"100ms\"\n").await;
    host.set_switches("forge", &json!({"references": {"candidates": [candidate("1")], "search_ms": 1500}}));
    let disable = async {
        host.called("forge", 1).await;
        host.command("forge", "disable").await
    };
    let (found, disabled) = tokio::join!(search(&host, &workspace, json!({})), disable);
    assert_eq!(found.expect(200)["references"], json!([reference(&workspace, "1")]));
    disabled.expect(200);
    assert_eq!(search(&host, &workspace, json!({})).await.status, 404, "nobody has the source now");
});

on_both!(a_provider_or_source_has_one_active_owner_the_first, |guest| {
    let host = Host::start().await;
    host.install(&provider(guest, "first", "1.0.0")).await;
    let second = provider(guest, "second", "1.0.0");
    let text = "plugins: repository provider \"forge\" is already owned by active plugin \"first\"";
    let refused = host.upload(second.archive().await).await.expect(409);
    assert_eq!(refused, json!({"error": text, "code": "already_owned"}));
    host.get("/api/plugins/second").await.expect(404);
    assert_eq!(host.versions("second"), Vec::<String>::new(), "nothing is left of it");
    assert_eq!(host.plugin("first").await["status"], "active");

    let sources_only = |text: String| text.replace("repository_providers: [forge]\n", "");
    let refused = host.upload(second.clone().manifest(sources_only).archive().await).await.expect(409);
    let text = "plugins: reference source \"issues\" is already owned by active plugin \"first\"";
    assert_eq!(refused, json!({"error": text, "code": "already_owned"}));

    host.command("first", "disable").await.expect(200);
    host.install(&second).await;
    let text = "plugins: repository provider \"forge\" is already owned by active plugin \"second\"";
    let refused = host.command("first", "enable").await.expect(409);
    assert_eq!(refused, json!({"error": text, "code": "already_owned"}));
    assert_eq!(host.plugin("second").await["status"], "active");
    // An upgrade keeps what it owns.
    host.install(&provider(guest, "second", "1.1.0")).await;
    host.command("first", "enable").await.expect(409);
    host.uninstall("second").await.expect(200);
    host.command("first", "enable").await.expect(200);
    assert_eq!(host.plugin("first").await["status"], "active");
});

on_both!(a_version_that_claims_what_another_plugin_owns_leaves_the_present_one_running, |guest| {
    let host = Host::start().await;
    host.install(&provider(guest, "first", "1.0.0")).await;
    host.install(&Package::of(guest, "first", "1.1.0")).await;
    host.install(&provider(guest, "second", "1.0.0")).await;
    let pid = host.plugin_pid("first");
    let text = "plugins: repository provider \"forge\" is already owned by active plugin \"second\"";
    let expected = json!({"error": text, "code": "already_owned"});
    assert_eq!(host.upload(provider(guest, "first", "1.2.0").archive().await).await.expect(409), expected);
    assert_eq!(host.command("first", "rollback").await.expect(409), expected);
    let first = host.plugin("first").await;
    assert_eq!((&first["status"], &first["version"]), (&json!("active"), &json!("1.1.0")));
    assert!(pid.is_some() && host.plugin_pid("first") == pid, "it was not stopped for that");
    assert_eq!(host.versions("first"), ["1.0.0", "1.1.0"]);
});

on_both!(of_two_plugins_that_are_enabled_at_once_one_owns_the_provider, |guest| {
    let host = Host::start().await;
    let ids = ["first", "second"];
    for id in ids {
        host.install(&provider(guest, id, "1.0.0")).await;
        host.command(id, "disable").await.expect(200);
    }
    for _ in 0..5 {
        let (first, second) = tokio::join!(host.command("first", "enable"), host.command("second", "enable"));
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{first:?} {second:?}");
        let (owner, other) = if first.status == 200 { (ids[0], ids[1]) } else { (ids[1], ids[0]) };
        assert_eq!(host.plugin(owner).await["status"], "active");
        assert_eq!(host.plugin(other).await["status"], "disabled", "it stays off");
        host.command(owner, "disable").await.expect(200);
    }
});

on_both!(the_owner_that_waits_for_its_restart_still_owns_its_provider, |guest| {
    let host = Host::start_with(Settings::toml("[timing]\nrestart_delays = [\"1h\"]\n")).await;
    host.install(&provider(guest, "first", "1.0.0")).await;
    kill(host.plugin_pid("first").expect("a process"), Signal::KILL);
    host.status("first", "error").await;
    let refused = host.upload(provider(guest, "second", "1.0.0").archive().await).await.expect(409);
    assert_eq!(refused["code"], "already_owned");
    host.get("/api/plugins/second").await.expect(404);
});

on_both!(the_branches_of_a_repository_come_from_its_providers_owner, |guest| {
    let (host, _) = with_forge(guest, "[timing]\naction_timeout = \"1s\"\n").await;
    let board = crate::support::Board::hosted(&host).await;
    let path = |repository: &str| format!("/api/v1/repositories/{repository}/branches");
    let expected = json!({"branches": [{"name": "main", "commit": "abc123", "is_default": true},
        {"name": "fix/1", "is_default": false}], "malformed": 0});
    assert_eq!(host.get(&path(&board.repository)).await.expect(200), expected);
    let call = host.called("forge", 1).await;
    let context = json!({"actor_id": "operator", "workspace_id": board.workspace, "task_id": "", "repository_id": "",
        "session_id": "", "head_branch": ""});
    assert_eq!((&call["name"], &call["context"]), (&json!("repositories.branches"), &context));
    let body: Value = serde_json::from_str(call["body"].as_str().unwrap()).unwrap();
    let asked = json!({"repository": {"provider_id": "forge", "provider_host": "forge.example.test",
        "provider_scope": "s", "provider_repository_id": "7", "owner_or_project": "team", "name": "app",
        "clone_url": "https://forge.example.test/team/app.git", "default_branch": "main"}});
    assert_eq!(body, asked);
    let odd = json!({"branches": [{"name": "--upload-pack=x"}, {"name": "a\nb"}, {"name": "main", "commit": null}]});
    host.set_switches("forge", &json!({"branches": odd.to_string()}));
    let lawful = json!({"branches": [{"name": "main", "is_default": false}], "malformed": 2});
    assert_eq!(host.get(&path(&board.repository)).await.expect(200), lawful);
    for hostile in ["[]", "{}", "{\"branches\":[{\"name\":7}]}"] {
        host.set_switches("forge", &json!({"branches": hostile}));
        let refused = host.get(&path(&board.repository)).await.expect(502);
        assert_eq!(refused["code"], "invalid_branches", "{hostile}");
    }
    let plain = host.get(&path(&board.other_repository)).await.expect(404);
    assert_eq!(plain, json!({"error": "the repository has no provider", "code": "no_provider"}));
    assert_eq!(host.get(&path("absent")).await.expect(404)["code"], "repository_not_found");
    host.set_switches("forge", &json!({"hang_on_action": true}));
    assert_eq!(host.get(&path(&board.repository)).await.expect(504)["code"], "provider_timeout");
    host.set_switches("forge", &json!({}));
    host.command("forge", "disable").await.expect(200);
    let off = host.get(&path(&board.repository)).await.expect(503);
    let text = "no active plugin owns the repository provider \"forge\"";
    assert_eq!(off, json!({"error": text, "code": "provider_not_active"}));
});
