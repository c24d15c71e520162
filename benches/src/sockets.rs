//! The clients of the row `ws-1000`, in a process of their own: so many live connections that follow one session, each
//! of which is to be told every event, in order.

use std::{net::SocketAddr, process::Stdio, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    task::JoinSet,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest, protocol::WebSocketConfig},
};

use crate::{Outcome, world::TOKEN};

/// The subject of the events.
pub const SUBJECT: &str = "message.added";

/// What that is called in a frame.
const ACTION: &str = "session.message.added";

/// The session that they are about.
pub const SESSION: &str = "0192d7c1-54f6-7bb2-a0f4-0c8b2f6f5d11";

/// What does not come within this time is lost.
const LIMIT: Duration = Duration::from_secs(30);

/// Bytes that a client reads at once; what they take by themselves would be 128 kB for each.
const READ_BYTES: usize = 8 << 10;

/// Who listens to what.
#[derive(Debug, clap::Args)]
pub struct Sockets {
    /// Server.
    #[arg(long)]
    address: SocketAddr,
    /// Connections.
    #[arg(long)]
    connections: usize,
    /// Events that each of them is told of, numbered from 0.
    #[arg(long)]
    events: u64,
}

/// The process, all of its connections following.
pub struct Elsewhere {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Elsewhere {
    /// Waits until all connections follow.
    pub async fn start(address: SocketAddr, connections: usize, events: u64) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["sockets", "--address", &address.to_string()]);
        command.args(["--connections", &connections.to_string(), "--events", &events.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let output = process.stdout.take().ok_or("the process of the connections has no output")?;
        let mut elsewhere = Self { process, said: BufReader::new(output).lines() };
        match elsewhere.said.next_line().await? {
            Some(line) if line == "ready" => Ok(elsewhere),
            _ => Err("the connections were not made".into()),
        }
    }

    /// Waits until each connection was told everything, or lost it; how many frames were lost by all together.
    pub async fn lost(mut self) -> Outcome<u64> {
        let line = self.said.next_line().await?;
        match (self.process.wait().await?.success(), line) {
            (true, Some(line)) => Ok(line.parse()?),
            _ => Err("the process of the connections failed".into()),
        }
    }
}

/// Connects, says `ready`, listens, and says how many frames were lost.
pub fn run(sockets: &Sockets) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lost = runtime.block_on(drive(sockets))?;
    println!("{lost}");
    Ok(())
}

async fn drive(sockets: &Sockets) -> Outcome<u64> {
    let mut streams = Vec::with_capacity(sockets.connections);
    for _ in 0..sockets.connections {
        streams.push(connect(sockets.address).await?);
    }
    println!("ready");
    let mut tasks = JoinSet::new();
    for stream in streams {
        tasks.spawn(follow(stream, sockets.events));
    }
    let mut lost = 0;
    while let Some(done) = tasks.join_next().await {
        lost += done??;
    }
    Ok(lost)
}

type Stream = WebSocketStream<TcpStream>;

/// A connection that follows the session.
async fn connect(address: SocketAddr) -> Outcome<Stream> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let mut request = format!("ws://{address}/ws").into_client_request()?;
    request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse()?);
    let config = WebSocketConfig::default().read_buffer_size(READ_BYTES);
    let (mut stream, _) = client_async_with_config(request, socket, Some(config)).await?;
    let ask = json!({"id": "1", "type": "request", "action": "session.subscribe", "payload": {"session_id": SESSION}});
    stream.send(Message::text(ask.to_string())).await?;
    loop {
        let frame = timeout(LIMIT, frame(&mut stream)).await??;
        match (frame.id.as_deref(), frame.kind.as_str()) {
            (Some("1"), "response") => return Ok(stream),
            (Some("1"), _) => return Err("a connection may not follow the session".into()),
            _ => {}
        }
    }
}

/// What is looked at of a frame.
#[derive(Deserialize)]
struct Frame {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    action: String,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    /// The number of the event.
    n: Option<u64>,
}

/// The next frame that is no ping.
async fn frame(stream: &mut Stream) -> Outcome<Frame> {
    loop {
        match stream.next().await.ok_or("the connection has ended")?? {
            Message::Text(text) => return Ok(serde_json::from_str(&text)?),
            Message::Ping(_) | Message::Pong(_) => {}
            other => return Err(format!("unlawful for this host: {other:?}").into()),
        }
    }
}

/// How many of the events did not come; an event that comes twice or late is a failure.
async fn follow(mut stream: Stream, events: u64) -> Result<u64, String> {
    let (mut next, mut lost) = (0, 0);
    while next < events {
        let frame = match timeout(LIMIT, frame(&mut stream)).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(error)) => {
                eprintln!("bench: sockets: {error}");
                return Ok(lost + events - next);
            }
            Err(_) => return Ok(lost + events - next),
        };
        if frame.action != ACTION {
            continue;
        }
        match frame.payload.and_then(|payload| payload.n) {
            Some(n) if (next..events).contains(&n) => {
                lost += n - next;
                next = n + 1;
            }
            n => return Err(format!("after event {next} came {n:?}")),
        }
    }
    Ok(lost)
}
