//! Live connections: what clients of `GET /ws` see of the real host.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        self, Message,
        client::IntoClientRequest,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::support::{Host, Settings, TOKEN, eventually};

type Stream = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// One client.
struct Client {
    stream: Stream,
    /// Notifications that came while an answer was waited for.
    news: Vec<Value>,
    asked: u32,
}

impl Client {
    async fn connect(host: &Host) -> Self {
        let (stream, _) = connect_async(request(host, &format!("?token={TOKEN}"))).await.expect("a connection");
        Self { stream, news: Vec::new(), asked: 0 }
    }

    async fn send(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.expect("sent");
    }

    /// The next frame that is no ping; none when the connection has ended.
    async fn frame(&mut self) -> Result<Value, Option<CloseFrame>> {
        loop {
            let next = timeout(Duration::from_secs(30), self.stream.next()).await.expect("a frame in time");
            match next {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).expect("JSON")),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(frame))) => return Err(frame),
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    /// Type and payload of the answer.
    async fn ask(&mut self, action: &str, payload: Value) -> (String, Value) {
        self.asked += 1;
        let id = self.asked.to_string();
        self.send(&json!({"id": id, "type": "request", "action": action, "payload": payload}).to_string()).await;
        loop {
            let frame = self.frame().await.expect("an answer");
            if frame["id"] == json!(id) {
                assert_eq!(frame["action"], action);
                return (frame["type"].as_str().unwrap().to_owned(), frame["payload"].clone());
            }
            self.news.push(frame);
        }
    }

    async fn done(&mut self, action: &str, payload: Value) -> Value {
        let (kind, payload) = self.ask(action, payload).await;
        assert_eq!(kind, "response", "{payload}");
        payload
    }

    /// The next news: action and payload.
    async fn next(&mut self) -> (String, Value) {
        loop {
            let frame = if self.news.is_empty() { self.frame().await.expect("news") } else { self.news.remove(0) };
            if frame["type"] == "notification" {
                return (frame["action"].as_str().expect("an action").to_owned(), frame["payload"].clone());
            }
        }
    }

    /// The next news with this action; what comes before it is dropped.
    async fn told(&mut self, action: &str) -> Value {
        loop {
            match self.next().await {
                (told, payload) if told == action => return payload,
                _ => {}
            }
        }
    }

    /// Waits until everything that happened so far was told, by itself or by number.
    async fn caught_up(&mut self, task: &Value) {
        for n in 0..100 {
            let title = format!("change {n}");
            self.done("task.update", json!({"id": task, "title": title})).await;
            loop {
                match self.next().await {
                    (action, payload) if action == "task.updated" && payload["title"] == title => return,
                    // It may have been this one.
                    (action, _) if action == "gateway.events_missed" => break,
                    _ => {}
                }
            }
        }
        panic!("single events are missed again and again");
    }
}

fn request(host: &Host, query: &str) -> tungstenite::handshake::client::Request {
    let url = format!("{}/ws{query}", host.url().replacen("http", "ws", 1));
    url.into_client_request().expect("a request")
}

async fn refused(request: tungstenite::handshake::client::Request) -> u16 {
    match connect_async(request).await {
        Err(tungstenite::Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

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
    assert_eq!(client.frame().await.expect("an answer")["payload"]["code"], "BAD_REQUEST");

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
    let message = json!({"task_id": task, "session_id": session, "content": "hello", "client_message_id": "a b/1"});
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
    let (kind, refused) = client.ask("message.search", json!({"session_id": session, "query": " "})).await;
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
