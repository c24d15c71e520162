//! A client of the Model Context Protocol that sees everything: JSON-RPC by hand over `POST`, `GET` and `DELETE /mcp`.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Host, TOKEN};

/// How long a stream may take to say something.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a client accepts.
const ACCEPT: &str = "application/json, text/event-stream";

/// The protocol with sessions, and the one without.
pub const WITH_SESSIONS: &str = "2025-11-25";
pub const WITHOUT_SESSIONS: &str = "2026-07-28";

/// An answer of the endpoint.
#[derive(Debug)]
pub struct Said {
    /// HTTP status.
    pub status: u16,
    /// The session that it names.
    pub session: Option<String>,
    /// The messages in it, in a stream or alone.
    pub messages: Vec<Value>,
}

impl Said {
    /// Reads a whole answer.
    pub async fn of(response: Response) -> Self {
        let status = response.status().as_u16();
        let session = response.headers().get("mcp-session-id").map(|id| id.to_str().expect("text").to_owned());
        let text = response.text().await.expect("a body");
        let messages = match serde_json::from_str(&text) {
            Ok(message) => vec![message],
            Err(_) => events(&text),
        };
        Self { status, session, messages }
    }

    /// Fails unless it is this refusal of the host's.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> &str {
        assert_eq!((self.status, self.messages.len()), (status, 1), "{self:?}");
        assert_eq!(self.messages[0]["code"], code, "{self:?}");
        self.messages[0]["error"].as_str().expect("a text")
    }

    /// The last message; fails unless the status is 200.
    #[track_caller]
    pub fn answer(self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.messages.into_iter().next_back().expect("a message")
    }
}

/// The messages in the text of a stream.
pub fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
}

/// A request to `/mcp` with what every client sends.
pub fn to_mcp(host: &Host, method: Method, query: &str) -> RequestBuilder {
    let request = host.client().request(method, format!("{}/mcp{query}", host.url()));
    request.bearer_auth(TOKEN).header("Accept", ACCEPT)
}

/// Sends a message.
pub async fn post(request: RequestBuilder, message: &Value) -> Said {
    Said::of(request.json(message).send().await.expect("an answer")).await
}

/// A request of JSON-RPC.
pub fn message(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// How a session begins.
pub fn initialize() -> Value {
    let params = json!({"protocolVersion": WITH_SESSIONS, "capabilities": {},
        "clientInfo": {"name": "case", "version": "1"}});
    message(0, "initialize", params)
}

/// A client with a session.
pub struct Session<'a> {
    host: &'a Host,
    query: String,
    /// Its id.
    pub id: String,
    /// What `initialize` said.
    pub about: Value,
    asked: AtomicU64,
}

impl<'a> Session<'a> {
    /// Begins one at this place (the query with its `?`).
    pub async fn begin(host: &'a Host, query: &str) -> Self {
        let said = post(to_mcp(host, Method::POST, query), &initialize()).await;
        let id = said.session.clone().unwrap_or_else(|| panic!("a session in {said:?}"));
        let about = said.answer()["result"].clone();
        let session = Self { host, query: query.to_owned(), id, about, asked: AtomicU64::new(1) };
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.send(&begun).await.status, 202);
        session
    }

    /// A request of it.
    pub fn request(&self, method: Method) -> RequestBuilder {
        let request = to_mcp(self.host, method, &self.query);
        request.header("Mcp-Session-Id", &self.id).header("MCP-Protocol-Version", WITH_SESSIONS)
    }

    /// Sends a message.
    pub async fn send(&self, message: &Value) -> Said {
        post(self.request(Method::POST), message).await
    }

    /// Asks; the whole answering message.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let id = self.asked.fetch_add(1, Ordering::Relaxed);
        let answer = self.send(&message(id, method, params)).await.answer();
        assert_eq!(answer["id"], json!(id), "{answer}");
        answer
    }

    /// Calls a tool; the result.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that must be refused; the error.
    pub async fn refused(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].clone()
    }

    /// The names of all tools, page by page.
    pub async fn tools(&self) -> Vec<Vec<String>> {
        let mut pages = Vec::new();
        let mut cursor = json!({});
        loop {
            let page = self.ask("tools/list", cursor).await["result"].clone();
            let tools = page["tools"].as_array().expect("tools").iter();
            pages.push(tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect());
            match page.get("nextCursor") {
                Some(next) => cursor = json!({"cursor": next}),
                None => return pages,
            }
        }
    }

    /// Listens to what the host tells.
    pub async fn listen(&self) -> Told {
        Told::of(self.request(Method::GET).send().await.expect("an answer"))
    }

    /// Ends it.
    pub async fn end(&self) -> Said {
        Said::of(self.request(Method::DELETE).send().await.expect("an answer")).await
    }
}

/// A request of a client without a session.
pub fn alone(host: &Host, id: u64, method: &str, mut params: Value) -> RequestBuilder {
    params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": WITHOUT_SESSIONS,
        "io.modelcontextprotocol/clientCapabilities": {}});
    let mut request = to_mcp(host, Method::POST, "");
    request = request.header("MCP-Protocol-Version", WITHOUT_SESSIONS).header("Mcp-Method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.header("Mcp-Name", name);
    }
    request.json(&message(id, method, params))
}

/// A stream of messages.
pub struct Told {
    response: Response,
    text: String,
    read: usize,
}

impl Told {
    /// Fails unless it is a stream.
    pub fn of(response: Response) -> Self {
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { response, text: String::new(), read: 0 }
    }

    /// The next message with this method.
    pub async fn next(&mut self, method: &str) -> Value {
        loop {
            while let Some(message) = events(&self.text).into_iter().nth(self.read) {
                self.read += 1;
                if message["method"] == method {
                    return message;
                }
            }
            assert!(self.more().await, "the stream ended: {}", self.text);
        }
    }

    /// Reads on until it ends; all its messages.
    pub async fn rest(mut self) -> Vec<Value> {
        while self.more().await {}
        events(&self.text)
    }

    async fn more(&mut self) -> bool {
        let piece = timeout(PATIENCE, self.response.chunk()).await.expect("the stream says something");
        let Ok(Some(piece)) = piece else { return false };
        self.text.push_str(&String::from_utf8_lossy(&piece));
        true
    }
}
