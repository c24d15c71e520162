//! What plugins keep for users (contract/rest.md §8; field cases 85 and 86).

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    on_databases,
    support::{
        Guest, Host, Package, Settings, TOKEN,
        host::{Answer, answer},
    },
};

/// A package that may keep something for users and hears of it.
fn package(version: &str) -> Package {
    Package::of(Guest::Rust, "demo", version).manifest(|text| {
        text.replace("  state: true\n", "  state: true\n  user_state: true\n")
            .replace("\"test.*\"", "\"test.*\", \"plugin.user-state.updated\"")
    })
}

const AT: &str = "/api/plugins/demo/user-state/task/t1";

async fn put(host: &Host, key: &str, body: Value) -> Answer {
    host.request(Method::PUT, &format!("{AT}/{key}"), Some(body)).await
}

async fn put_at(host: &Host, path: &str) -> Answer {
    host.request(Method::PUT, path, Some(json!({"value": 1}))).await
}

fn stamp(body: &Value) -> String {
    let text = body["updatedAt"].as_str().expect("a stamp").to_owned();
    assert!(text.len() == 30 && text.ends_with('Z'), "{text}");
    text
}

on_databases!(a_value_is_kept_listed_and_forgotten_and_of_two_writers_one_wins, "", |settings| {
    let host = Host::start_with(settings).await;
    host.install(&package("1.0.0")).await;
    assert_eq!(host.get(AT).await.expect(200), json!({"entries": []}));
    host.get(&format!("{AT}/b")).await.expect(404);
    let b = stamp(&put(&host, "b", json!({"value": {"open": [true, null, "é"]}})).await.expect(200));
    let a = stamp(&put(&host, "a", json!({"value": null, "writerId": "tab"})).await.expect(200));
    let kept = host.get(&format!("{AT}/b")).await.expect(200);
    assert_eq!(kept, json!({"value": {"open": [true, null, "é"]}, "updatedAt": b}));
    let entries = json!([{"key": "a", "value": null, "updatedAt": a},
        {"key": "b", "value": {"open": [true, null, "é"]}, "updatedAt": b}]);
    assert_eq!(host.get(AT).await.expect(200), json!({"entries": entries}));

    let stale = json!({"value": 2, "ifUnmodifiedSince": "2020-01-01T00:00:00Z"});
    let refused =
        json!({"error": "conflict: value was modified since ifUnmodifiedSince", "code": "user_state_conflict"});
    assert_eq!(put(&host, "b", stale).await.expect(409), refused);
    let newer = stamp(&put(&host, "b", json!({"value": 2, "ifUnmodifiedSince": b})).await.expect(200));
    assert!(newer > b);

    let path = format!("{AT}/b?writerId=tab");
    for _ in 0..2 {
        assert_eq!(host.request(Method::DELETE, &path, None).await.expect(200), json!({"deleted": true}));
    }
    host.get(&format!("{AT}/b")).await.expect(404);
    two_browsers_save_at_once(&host).await;
});

on_databases!(a_value_comes_back_with_every_digit_and_without_the_white_space_between_its_parts, "", |settings| {
    let host = Host::start_with(settings).await;
    host.install(&package("1.0.0")).await;
    let sent = r#"{ "id" : 123456789012345678901234567890, "b" : [ 1.10E+400, "\u0000\ud800 " ] }"#;
    let kept = r#"{"id":123456789012345678901234567890,"b":[1.10E+400,"\u0000\ud800 "]}"#;
    let put = |value: &str| {
        let request = host.client().put(format!("{}{AT}/k", host.url())).bearer_auth(TOKEN);
        answer(request.body(format!(r#"{{"value" : {value} , "writerId":"w"}}"#)))
    };
    let at = stamp(&put(sent).await.expect(200));
    let one = format!(r#"{{"value":{kept},"updatedAt":"{at}"}}"#);
    assert_eq!(text(&host, &format!("{AT}/k")).await, one);
    let all = format!(r#"{{"entries":[{{"key":"k","value":{kept},"updatedAt":"{at}"}}]}}"#);
    assert_eq!(text(&host, AT).await, all);

    let deep = "[".repeat(125) + &"]".repeat(125);
    let refused = json!({"error": "invalid payload: value must be nested at most 124 deep", "code": "invalid_payload"});
    assert_eq!(put(&deep).await.expect(400), refused);
});

/// An answer as it came.
async fn text(host: &Host, path: &str) -> String {
    let request = host.client().get(format!("{}{path}", host.url())).bearer_auth(TOKEN);
    request.send().await.expect("an answer").text().await.expect("a body")
}

/// Field case 86.
async fn two_browsers_save_at_once(host: &Host) {
    for round in 0..20 {
        let seen = stamp(&put(host, "shared", json!({"value": round})).await.expect(200));
        let write = |n: i32| put(host, "shared", json!({"value": {"by": n}, "ifUnmodifiedSince": seen}));
        let (one, two) = tokio::join!(write(1), write(2));
        let mut statuses = [one.status, two.status];
        let winner = if one.status == 200 { 1 } else { 2 };
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{one:?} {two:?}");
        assert_eq!(host.get(&format!("{AT}/shared")).await.expect(200)["value"], json!({"by": winner}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_refusal_has_its_status_and_text() {
    let host = Host::start_with(Settings::toml("[limits]\nuser_state_bytes = 300\n")).await;
    host.install(&package("1.0.0")).await;
    host.install(&Package::of(Guest::Rust, "bare", "1.0.0")).await;
    let long = "x".repeat(129);
    for (path, text) in [
        ("/api/plugins/demo/user-state/Task/t1/k".to_owned(), "invalid scope \"Task\""),
        ("/api/plugins/demo/user-state/task/-/k".to_owned(), "invalid scopeId"),
        ("/api/plugins/demo/user-state/instance/a%20b/k".to_owned(), "invalid scopeId"),
        ("/api/plugins/demo/user-state/task/t1/.k".to_owned(), "invalid key"),
        ("/api/plugins/demo/user-state/task/t1/a%2Fb".to_owned(), "invalid key"),
        (format!("{AT}/{long}"), "invalid key"),
    ] {
        assert_eq!(put_at(&host, &path).await.expect(400), json!({"error": text, "code": "invalid_place"}), "{path}");
    }
    let refused = put_at(&host, "/api/plugins/bare/user-state/task/t1/k").await.expect(403);
    assert_eq!(refused["error"], "plugin \"bare\" does not declare the user_state capability");
    assert_eq!(put_at(&host, "/api/plugins/none/user-state/task/t1/k").await.expect(404)["error"], "plugin not found");
    host.anonymous(Method::GET, AT).await.expect(401);

    for (body, text) in [
        (json!({"writerId": "w"}), "invalid payload: value required"),
        (
            json!({"value": 1, "ifUnmodifiedSince": "yesterday"}),
            "invalid payload: ifUnmodifiedSince must be a time as RFC 3339",
        ),
        (json!({"value": 1, "writerId": "a\nb"}), "invalid payload: writerId must be one line of at most 256 bytes"),
    ] {
        assert_eq!(put(&host, "k", body).await.expect(400), json!({"error": text, "code": "invalid_payload"}));
    }
    let lawful = json!({"value": 1, "ifUnmodifiedSince": "", "writerId": null, "unknown": true});
    put(&host, "k", lawful).await.expect(200);
    let large = json!({"value": "x".repeat(262_144)});
    let refused = json!({"error": "request body exceeds max size of 262144 bytes", "code": "body_too_large"});
    assert_eq!(put(&host, "k", large).await.expect(413), refused);
    assert_eq!(put(&host, "k", json!({"value": "x".repeat(300)})).await.expect(413)["code"], "user_state_full");
    assert_eq!(host.get(&format!("{AT}/k")).await.expect(200)["value"], 1);

    host.command("demo", "disable").await.expect(200);
    for method in [Method::GET, Method::DELETE] {
        let refused = host.request(method, &format!("{AT}/k"), None).await.expect(404);
        assert_eq!(refused, json!({"error": "plugin \"demo\" is not active", "code": "plugin_not_active"}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_told_with_the_user_and_without_the_value_to_whoever_subscribes() {
    let host = Host::start().await;
    host.install(&package("1.0.0")).await;
    let at = stamp(&put(&host, "k", json!({"value": "s3cret", "writerId": "tab-1"})).await.expect(200));
    host.request(Method::DELETE, &format!("{AT}/k"), None).await.expect(200);
    let events = host.events("demo", 2).await;
    let payloads: Vec<_> = events.iter().map(|event| event["payload"].clone()).collect();
    let place = json!({"user_id": "operator", "pluginId": "demo", "scope": "task", "scopeId": "t1", "key": "k"});
    let with = |more: Value| {
        let mut all = place.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(payloads[0], with(json!({"updatedAt": at, "writerId": "tab-1"})));
    assert_eq!(payloads[1], with(json!({"updatedAt": payloads[1]["updatedAt"], "deleted": true})));
    assert!(events.iter().all(|event| event["event_type"] == "plugin.user-state.updated"));
    assert!(!host.log().contains("s3cret"));
    let publish = json!({"subject": "plugin.user-state.updated", "payload": {}});
    host.post("/api/v1/events", publish).await.expect(400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_outlive_the_host_and_an_upgrade_and_go_with_the_plugin() {
    let mut host = Host::start().await;
    host.install(&package("1.0.0")).await;
    put(&host, "k", json!({"value": 1})).await.expect(200);
    host.kill();
    host.spawn().await;
    host.status("demo", "active").await;
    host.install(&package("2.0.0")).await;
    assert_eq!(host.get(&format!("{AT}/k")).await.expect(200)["value"], 1);
    host.uninstall("demo").await.expect(200);
    host.get(AT).await.expect(404);
    host.install(&package("2.0.0")).await;
    assert_eq!(host.get(AT).await.expect(200), json!({"entries": []}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_of_another_user_changes_nothing_about_whose_entry_it_is() {
    let host = Host::start().await;
    host.install(&package("1.0.0")).await;
    let mut put = host.client().put(format!("{}{AT}/k", host.url())).bearer_auth(TOKEN);
    for name in ["X-Kandev-User", "X-Kandev-User-Id", "X-User-Id", "X-Forwarded-User", "Cookie"] {
        put = put.header(name, "eve");
    }
    let body = json!({"value": 1, "userId": "eve", "user_id": "eve"});
    assert_eq!(answer(put.json(&body)).await.status, 200);
    let told = host.events("demo", 1).await.remove(0)["payload"].take();
    assert_eq!(told["user_id"], "operator");
    assert!(!told.to_string().contains("eve"), "{told}");
    assert_eq!(host.get(&format!("{AT}/k")).await.expect(200)["value"], 1, "it is the operator's");
}

// Field case 85, with what else writes to the same database. The row `savers` of the bench does so for 30 s.
on_databases!(many_writers_of_everything_at_once_never_fail_and_the_last_write_of_each_is_kept, "", |settings| {
    const ROUNDS: u64 = 8;
    let host = Host::start_with(settings).await;
    host.install(&package("1.0.0")).await;
    // A save starts its plugin again, and what is off keeps nothing for users: so another one is saved.
    host.install(&Package::of(Guest::Rust, "saved", "1.0.0")).await;
    let host = &host;
    let users = (0..20).map(|n| async move {
        for round in 1..=ROUNDS {
            put(host, &format!("k{n}"), json!({"value": round})).await.expect(200);
            host.publish("test.load", json!({"n": n})).await;
        }
    });
    let states = (0..50).map(|n| async move {
        let call = |rpc: &str, more: Value| {
            let mut request = json!({"scope": "instance", "scope_id": "", "key": format!("s{n}")});
            request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            json!([{"rpc": rpc, "request": request}])
        };
        for round in 1..=ROUNDS {
            let set = host.host_calls("demo", call("SetState", json!({"value": {"n": round}}))).await;
            assert_eq!(set[0]["ok"], true, "s{n}: {set:?}");
        }
        let kept = host.host_calls("demo", call("GetState", json!({}))).await;
        assert_eq!(
            (&kept[0]["ok"], &kept[0]["response"]["value"]["n"]),
            (&json!(true), &json!(ROUNDS)),
            "s{n}: {kept:?}"
        );
    });
    let saves = async {
        for round in 1..=5 {
            let config = json!({"config": {"round": round}});
            host.request(Method::PATCH, "/api/plugins/saved", Some(config)).await.expect(200);
        }
    };
    tokio::join!(join_all(users), join_all(states), saves);
    let saved = host.get("/api/plugins/saved/config").await.expect(200);
    assert_eq!(saved, json!({"config": {"round": 5}}));
    let kept = host.get(AT).await.expect(200);
    let entries = kept["entries"].as_array().expect("a list");
    assert!(entries.len() == 20 && entries.iter().all(|entry| entry["value"] == ROUNDS), "{kept}");
});
