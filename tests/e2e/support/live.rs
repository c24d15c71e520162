//! A client of live connections (`GET /ws`).

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{self, Message, client::IntoClientRequest, protocol::CloseFrame},
};

use super::{Host, TOKEN};

type Stream = WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>;

/// One client.
pub struct Client {
    stream: Stream,
    /// Notifications that came while an answer was waited for.
    pub news: Vec<Value>,
    asked: u32,
}

impl Client {
    /// Connects with the token.
    pub async fn connect(host: &Host) -> Self {
        let (stream, _) = connect_async(request(host, &format!("?token={TOKEN}"))).await.expect("a connection");
        Self { stream, news: Vec::new(), asked: 0 }
    }

    /// Sends this text as it is.
    pub async fn send(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.expect("sent");
    }

    /// Writes these bytes as they are, no frame around them.
    pub async fn raw(&mut self, bytes: &[u8]) {
        let stream = self.stream.get_mut();
        stream.write_all(bytes).await.expect("written");
        stream.flush().await.expect("flushed");
    }

    /// Closes it; what the host answers.
    pub async fn close(&mut self, frame: Option<CloseFrame>) -> Result<Value, Option<CloseFrame>> {
        self.stream.send(Message::Close(frame)).await.expect("sent");
        self.frame().await
    }

    /// The next frame that is no ping; none when the connection has ended.
    pub async fn frame(&mut self) -> Result<Value, Option<CloseFrame>> {
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

    /// The next frame that is no news.
    pub async fn answer(&mut self) -> Value {
        loop {
            let frame = self.frame().await.expect("an answer");
            if frame["type"] != "notification" {
                return frame;
            }
            self.news.push(frame);
        }
    }

    /// Type and payload of the answer.
    pub async fn ask(&mut self, action: &str, payload: Value) -> (String, Value) {
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

    /// The payload of the answer to a request that is not refused.
    pub async fn done(&mut self, action: &str, payload: Value) -> Value {
        let (kind, payload) = self.ask(action, payload).await;
        assert_eq!(kind, "response", "{payload}");
        payload
    }

    /// The next news: action and payload.
    pub async fn next(&mut self) -> (String, Value) {
        loop {
            let frame = if self.news.is_empty() { self.frame().await.expect("news") } else { self.news.remove(0) };
            if frame["type"] == "notification" {
                return (frame["action"].as_str().expect("an action").to_owned(), frame["payload"].clone());
            }
        }
    }

    /// The next news with this action; what comes before it is dropped.
    pub async fn told(&mut self, action: &str) -> Value {
        loop {
            match self.next().await {
                (told, payload) if told == action => return payload,
                _ => {}
            }
        }
    }

    /// Waits until everything that happened so far was told, by itself or by number.
    pub async fn caught_up(&mut self, task: &Value) {
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

/// The request that opens a connection.
pub fn request(host: &Host, query: &str) -> tungstenite::handshake::client::Request {
    let url = format!("{}/ws{query}", host.url().replacen("http", "ws", 1));
    url.into_client_request().expect("a request")
}

/// The status of a request that opens none.
pub async fn refused(request: tungstenite::handshake::client::Request) -> u16 {
    match connect_async(request).await {
        Err(tungstenite::Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{other:?}"),
    }
}
