//! What a plugin can ask of the host: state, config, emitted events, the capability gate, and when the host answers
//! (contract/wire.md §3 and §4; field cases 5, 7, 9).

use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Guest, Host, Package, Settings, eventually_some},
};

/// One call of the `host` webhook.
fn call(rpc: &str, request: Value) -> Value {
    json!({"rpc": rpc, "request": request})
}

/// A state call of scope `scope`, id `id`.
fn state(rpc: &str, scope: &str, id: &str, key: &str) -> Value {
    call(rpc, json!({"scope": scope, "scope_id": id, "key": key}))
}

fn set(scope: &str, id: &str, key: &str, value: &Value) -> Value {
    call("SetState", json!({"scope": scope, "scope_id": id, "key": key, "value": value}))
}

fn list(scope: &str, id: &str) -> Value {
    call("ListState", json!({"scope": scope, "scope_id": id}))
}

async fn started(guest: Guest, settings: Settings) -> Host {
    let host = Host::start_with(settings).await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    host
}

/// The responses; every call must succeed.
async fn responses(host: &Host, calls: Value) -> Vec<Value> {
    let results = host.host_calls("demo", calls).await;
    results.into_iter().map(ok).collect()
}

fn ok(result: Value) -> Value {
    assert_eq!(result["ok"], true, "{result}");
    result["response"].clone()
}

/// Code and message of a refused call.
fn refusal(result: &Value) -> (&str, &str) {
    assert_eq!(result["ok"], false, "{result}");
    (result["code"].as_str().expect("a code"), result["message"].as_str().expect("a message"))
}

on_both!(state_is_set_read_replaced_listed_in_key_order_and_deleted, |guest| {
    let host = started(guest, Settings::default()).await;
    let nested = json!({"list": [1, "x", null, {"deep": true}], "text": "ä\u{1f600}", "n": -1.5});
    let found = responses(
        &host,
        json!([
            state("GetState", "task", "t1", "b"),
            set("task", "t1", "b", &json!({"v": 1})),
            set("task", "t1", "a", &nested),
            set("task", "t1", "B", &json!({})),
            set("task", "t1", "b", &json!({"v": 2})),
            state("GetState", "task", "t1", "b"),
            state("GetState", "task", "t1", "a"),
            list("task", "t1"),
            state("DeleteState", "task", "t1", "b"),
            state("DeleteState", "task", "t1", "b"),
            state("GetState", "task", "t1", "b"),
        ]),
    )
    .await;
    assert_eq!(found[0], json!({"found": false, "value": null}));
    assert_eq!(found[5], json!({"found": true, "value": {"v": 2}}), "the last write stays");
    assert_eq!(found[6], json!({"found": true, "value": nested}));
    let entries = found[7]["entries"].as_array().expect("entries");
    let listed: Vec<_> = entries.iter().map(|entry| (entry["key"].clone(), entry["value"].clone())).collect();
    assert_eq!(listed, [(json!("B"), json!({})), (json!("a"), nested), (json!("b"), json!({"v": 2}))]);
    for entry in entries {
        let at = entry["updated_at"].as_str().expect("a time");
        assert_eq!((at.len(), &at[19..]), (20, "Z"), "UTC, whole seconds: {at}");
    }
    assert_eq!(found[10], json!({"found": false, "value": null}));
});

on_both!(scopes_are_exact_words_and_an_empty_scope_id_is_one_of_its_own, |guest| {
    let host = started(guest, Settings::default()).await;
    let places = [("instance", ""), ("instance", "x"), ("Instance", ""), ("my own word", ""), ("", ""), ("", "x")];
    let sets: Vec<_> = places.iter().map(|(scope, id)| set(scope, id, "k", &json!({"at": [scope, id]}))).collect();
    let gets: Vec<_> = places.iter().map(|(scope, id)| state("GetState", scope, id, "k")).collect();
    let lists: Vec<_> = places.iter().map(|(scope, id)| list(scope, id)).collect();
    responses(&host, json!(sets)).await;
    let got = responses(&host, json!(gets)).await;
    let expected: Vec<_> =
        places.iter().map(|(scope, id)| json!({"found": true, "value": {"at": [scope, id]}})).collect();
    assert_eq!(got, expected);
    for (listed, (scope, id)) in responses(&host, json!(lists)).await.iter().zip(places) {
        assert_eq!(listed["entries"].as_array().map(Vec::len), Some(1), "{listed}");
        assert_eq!(listed["entries"][0]["value"], json!({"at": [scope, id]}));
    }
});

on_both!(an_absent_value_is_found_without_a_value, |guest| {
    let host = started(guest, Settings::default()).await;
    let calls =
        json!([state("SetState", "instance", "", "k"), state("GetState", "instance", "", "k"), list("instance", ""),]);
    let found = responses(&host, calls).await;
    assert_eq!(found[1], json!({"found": true, "value": null}));
    assert_eq!(found[2]["entries"][0]["key"], "k");
    assert_eq!(found[2]["entries"][0]["value"], Value::Null);
});

on_both!(a_name_of_512_bytes_is_stored_and_one_byte_more_is_refused_by_name, |guest| {
    let host = started(guest, Settings::default()).await;
    let (fits, long) = ("k".repeat(512), "k".repeat(513));
    responses(&host, json!([set(&fits, &fits, &fits, &json!({})), state("GetState", &fits, &fits, &fits)])).await;
    let calls = json!([
        set("s", "i", &long, &json!({})),
        set(&long, "i", "k", &json!({})),
        set("s", &long, "k", &json!({})),
        state("GetState", "s", "i", &long),
        state("DeleteState", "s", &long, "k"),
        list(&long, ""),
        set("s", "i", "", &json!({})),
    ]);
    let results = host.host_calls("demo", calls).await;
    let refusals: Vec<_> = results.iter().map(refusal).collect();
    let too_long = |what: &str| format!("{what} has 513 bytes, at most 512 are allowed");
    let (key, scope, id) = (too_long("key"), too_long("scope"), too_long("scope_id"));
    let expected: Vec<_> =
        [&key, &scope, &id, &key, &id, &scope, "key is empty"].iter().map(|text| ("InvalidArgument", *text)).collect();
    assert_eq!(refusals, expected);
});

on_both!(a_value_of_five_mebibytes_is_refused_with_the_limit_and_the_link_stays, |guest| {
    let host = Host::start().await;
    let package = Package::of(guest, "demo", "1.0.0").manifest(|text| {
        let declared = "listed in the JSON body\n    access: authenticated\n";
        assert!(text.contains(declared), "the template has changed");
        text.replace(declared, &format!("{declared}    max_body_bytes: 16777216\n"))
    });
    host.install(&package).await;
    let value = json!({"v": "x".repeat(5 << 20)});
    let calls = json!([set("s", "", "big", &value), set("s", "", "small", &json!({})), list("s", "")]);
    let results = host.host_calls("demo", calls).await;
    let (code, message) = refusal(&results[0]);
    assert_eq!(code, "ResourceExhausted");
    assert_eq!(message, "value has 5242888 bytes as JSON, at most 4194304 are allowed; split it over several keys");
    ok(results[1].clone());
    let listed = ok(results[2].clone());
    let keys: Vec<_> = listed["entries"].as_array().expect("entries").iter().map(|entry| &entry["key"]).collect();
    assert_eq!(keys, ["small"]);
    // A value at the limit passes through both directions of the link.
    let fits = json!({"v": "y".repeat((4 << 20) - 8)});
    let found = responses(&host, json!([set("s", "", "fits", &fits), state("GetState", "s", "", "fits")])).await;
    assert_eq!(found[1], json!({"found": true, "value": fits}));
});

on_both!(the_quota_of_a_plugin_is_refused_beyond_freed_by_delete_and_its_own, |guest| {
    let host = started(guest, Settings::toml("[limits]\nstate_plugin_bytes = 2048\n")).await;
    host.install(&Package::of(guest, "other", "1.0.0")).await;
    let half = json!({"v": "x".repeat(1000)});
    let calls = json!([
        set("s", "", "a", &half),
        set("s", "", "b", &half),
        set("s", "", "c", &half),
        set("s", "", "b", &half),
        state("DeleteState", "s", "", "a"),
        set("s", "", "c", &half),
    ]);
    let results = host.host_calls("demo", calls).await;
    let codes: Vec<_> = results.iter().map(|result| result["code"].as_str().expect("a code")).collect();
    assert_eq!(codes, ["OK", "OK", "ResourceExhausted", "OK", "OK", "OK"]);
    let text = "the plugin's state would have 3030 bytes, at most 2048 are allowed; delete what is not needed";
    assert_eq!(refusal(&results[2]).1, text);
    let others = host.host_calls("other", json!([set("s", "", "a", &half), state("GetState", "s", "", "b")])).await;
    assert_eq!(ok(others[1].clone()), json!({"found": false, "value": null}), "another plugin's state is not seen");
});

/// Every gated RPC with the capability it needs (wire.md §3) and, when the host does not serve it yet, its resource.
const GATED: [(&str, &str, Option<&str>); 25] = [
    ("GetState", "state", None),
    ("SetState", "state", None),
    ("DeleteState", "state", None),
    ("ListState", "state", None),
    ("RevealSecret", "secrets", None),
    ("GetSecret", "secrets", None),
    ("SetSecret", "secrets", None),
    ("DeleteSecret", "secrets", None),
    ("ListTasks", "api_read:tasks", None),
    ("GetTask", "api_read:tasks", None),
    ("ListWorkspaces", "api_read:workspaces", None),
    ("ListWorkflows", "api_read:workflows", None),
    ("ListWorkflowSteps", "api_read:workflows", None),
    ("ListAgentProfiles", "api_read:agent_profiles", None),
    ("ListExecutorProfiles", "api_read:executor_profiles", None),
    ("ListRepositories", "api_read:repositories", None),
    ("ListSessions", "api_read:sessions", None),
    ("ListSessionCodeStats", "api_read:sessions", None),
    ("ListMessages", "api_read:messages", None),
    ("InvokeUtilityAgent", "agent_invoke", Some("utility_agent")),
    ("CreateTask", "api_write:tasks", None),
    ("UpdateTask", "api_write:tasks", None),
    ("SendMessage", "api_write:messages", Some("messages")),
    ("PreviewPluginOwnedTaskTree", "api_write:tasks", None),
    ("DeletePluginOwnedTaskTree", "api_write:tasks", None),
];

/// The package with these lines as its capabilities.
fn with_capabilities(guest: Guest, lines: &str) -> Package {
    let declared = "  events: [\"test.*\", \"task.*\", \"shell.>\"]\n  state: true\n";
    Package::of(guest, "demo", "1.0.0").manifest(|text| {
        assert!(text.contains(declared), "the template has changed");
        text.replace(declared, lines)
    })
}

on_both!(without_a_declared_capability_every_gated_call_is_denied_by_its_name, |guest| {
    let host = Host::start().await;
    host.install(&with_capabilities(guest, "  state: false\n")).await;
    let calls: Vec<_> = GATED.iter().map(|(rpc, ..)| call(rpc, json!({}))).collect();
    let results = host.host_calls("demo", json!(calls)).await;
    for (result, (rpc, capability, _)) in results.iter().zip(GATED) {
        let text = format!("capability '{capability}' not declared");
        assert_eq!(refusal(result), ("PermissionDenied", text.as_str()), "{rpc}");
    }
    let open =
        host.host_calls("demo", json!([call("GetConfig", json!({})), call("EmitEvent", json!({"event_name": "x"}))]));
    for result in open.await {
        ok(result);
    }
});

on_both!(behind_the_gate_a_call_that_comes_later_is_unimplemented_by_its_resource, |guest| {
    let host = Host::start().await;
    let all = "  secrets: true\n  agent_invoke: true\n  \
        api_read: [tasks, workspaces, workflows, agent_profiles, executor_profiles, repositories, sessions, messages]\n  \
        api_write: [tasks, messages]\n";
    host.install(&with_capabilities(guest, all)).await;
    let later: Vec<_> = GATED.iter().filter_map(|(rpc, _, later)| Some((*rpc, (*later)?))).collect();
    let calls: Vec<_> = later.iter().map(|(rpc, _)| call(rpc, json!({}))).collect();
    let results = host.host_calls("demo", json!(calls)).await;
    for (result, (rpc, resource)) in results.iter().zip(later) {
        let text = format!("pluginsdk: Host data API \"{resource}\" not implemented");
        assert_eq!(refusal(result), ("Unimplemented", text.as_str()), "{rpc}");
    }
});

on_both!(a_config_that_nobody_set_is_an_empty_object, |guest| {
    let host = started(guest, Settings::default()).await;
    assert_eq!(responses(&host, json!([call("GetConfig", json!({}))])).await, [json!({"config": {}})]);
});

on_both!(state_survives_disable_upgrade_and_host_restart_and_ends_with_the_plugin, |guest| {
    let mut host = started(guest, Settings::default()).await;
    let get = json!([state("GetState", "s", "", "k")]);
    let there = [json!({"found": true, "value": {"v": 1}})];
    responses(&host, json!([set("s", "", "k", &json!({"v": 1}))])).await;
    host.command("demo", "disable").await.expect(200);
    host.command("demo", "enable").await.expect(200);
    assert_eq!(responses(&host, get.clone()).await, there);
    host.install(&Package::of(guest, "demo", "1.1.0")).await;
    assert_eq!(responses(&host, get.clone()).await, there);
    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    host.status("demo", "active").await;
    assert_eq!(responses(&host, get.clone()).await, there);
    host.uninstall("demo").await.expect(200);
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    assert_eq!(responses(&host, get).await, [json!({"found": false, "value": null})]);
});

on_both!(an_event_name_is_letters_digits_dots_underscores_and_hyphens, |guest| {
    let host = started(guest, Settings::default()).await;
    let emit = |name: &str| call("EmitEvent", json!({"event_name": name, "payload": {"n": 1}}));
    let longest = format!("a{}", "-".repeat(127));
    let lawful = ["x", "A.b_c-9", "9", &longest];
    responses(&host, json!(lawful.map(emit))).await;
    let too_long = format!("a{}", "-".repeat(128));
    let refused = ["", ".x", "-x", "_x", "a b", "a/b", "a*", "a>", "ä", "a\nb", &too_long];
    let results = host.host_calls("demo", json!(refused.map(emit))).await;
    for (result, name) in results.iter().zip(refused) {
        let (code, message) = refusal(result);
        assert_eq!(code, "InvalidArgument", "{name:?}");
        assert!(message.starts_with("event name \"") && message.len() < 400, "{name:?}: {message}");
    }
});

on_both!(calls_are_served_while_a_stop_waits_for_what_is_in_flight, |guest| {
    let host = Host::start_with(Settings::toml("[timing]\ndrain_grace = \"30s\"\n")).await;
    let package = Package::of(guest, "demo", "1.0.0").manifest(|text| text.replace("\"task.*\"", "\"plugin.demo.*\""));
    host.install(&package).await;
    // The plugin emits an event that it gets itself: the sign that its row of calls has begun.
    let mut calls = vec![call("EmitEvent", json!({"event_name": "begun"}))];
    calls.extend((0..400).map(|n| set("s", "", &format!("k{n}"), &json!({"n": n}))));
    let (results, disabled) = tokio::join!(host.host_calls("demo", json!(calls)), async {
        host.events("demo", 1).await;
        host.command("demo", "disable").await
    });
    disabled.expect(200);
    assert_eq!(results.len(), 401);
    for result in results {
        ok(result);
    }
});

on_both!(calls_are_served_after_the_plugin_was_asked_to_shut_down, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0").switches(&json!({"state_at_shutdown": "last"}))).await;
    responses(&host, json!([call("GetConfig", json!({}))])).await;
    host.command("demo", "disable").await.expect(200);
    assert_eq!(host.recorded("demo", "stops.jsonl")[0]["reason"], "shutdown");
    host.command("demo", "enable").await.expect(200);
    let found = responses(&host, json!([state("GetState", "shutdown", "", "last")])).await;
    assert_eq!(found, [json!({"found": true, "value": {}})]);
});

on_both!(a_plugin_that_never_dials_the_host_gets_its_events, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0").switches(&json!({"never_dial_host": true}))).await;
    host.publish("test.one", json!({})).await;
    host.events("demo", 1).await;
    assert_eq!(host.event_types("demo"), ["test.one"]);
    assert_eq!(host.recorded("demo", "dials.jsonl"), Vec::<Value>::new());
    host.command("demo", "disable").await.expect(200);
    assert_eq!(host.recorded("demo", "stops.jsonl")[0]["reason"], "shutdown");
});

// Field case 7.
on_both!(a_broker_id_that_nobody_serves_fails_in_the_plugin_in_five_seconds_and_hurts_nothing, |guest| {
    let host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0").switches(&json!({"dial_unknown_broker_id": 99}))).await;
    responses(&host, json!([set("s", "", "k", &json!({}))])).await;
    let dial = eventually_some("the dial has ended", || async {
        host.recorded("demo", "dials.jsonl").into_iter().find(|dial| dial["broker_id"] == 99)
    })
    .await;
    assert_eq!(dial["ok"], false, "{dial}");
    let elapsed = dial["elapsed_ms"].as_u64().expect("a time");
    // Never sooner; a busy machine may look at it later.
    assert!((4_900..9_000).contains(&elapsed), "{dial}");
    responses(&host, json!([state("GetState", "s", "", "k")])).await;
    assert_eq!(host.plugin("demo").await["status"], "active");
    assert_eq!(host.recorded("demo", "starts.jsonl").len(), 1);
});

// Field case 9: 16 MiB to the plugin, 10 MiB back.
on_both!(large_webhook_bodies_pass_whole_in_both_directions, |guest| {
    let host = started(guest, Settings::default()).await;
    let body = vec![b'b'; 16 << 20];
    let send = |key: &str, body: Vec<u8>| {
        let url = format!("{}/api/plugins/demo/webhooks/{key}", host.url());
        host.client().post(url).bearer_auth(crate::support::host::TOKEN).body(body)
    };
    let answer = crate::support::host::answer(send("big", body.clone())).await.expect(200);
    let digest = crate::support::package::hex(&<sha2::Sha256 as sha2::Digest>::digest(&body));
    assert_eq!(answer, json!({"body_len": 16 << 20, "sha256": digest}));
    let ask = json!({"status": 200, "headers": {}, "body_repeat": {"byte": 120, "count": 10 << 20}});
    let response = send("respond", ask.to_string().into_bytes()).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200);
    let bytes = response.bytes().await.expect("the whole body");
    assert_eq!((bytes.len(), bytes.iter().all(|byte| *byte == b'x')), (10 << 20, true));
});
