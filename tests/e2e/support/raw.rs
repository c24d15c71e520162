//! A client without manners: exact bytes on a socket, and whatever comes back. For what an HTTP library would correct.

use std::{io, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use super::Host;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An open connection.
pub struct Raw {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    read: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub struct RawAnswer {
    /// Status.
    pub status: u16,
    /// Names in lower case, values with foreign bytes replaced.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// All values of a header.
    pub fn values(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The body as JSON; `Null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// Fails unless this is an error answer of the host: status, code, JSON with text.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str) -> String {
        let json = self.json();
        assert_eq!((self.status, json["code"].as_str()), (status, Some(code)), "{self:?}");
        assert_eq!(self.values("content-type"), ["application/json"]);
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(2), "{json}");
        json["error"].as_str().expect("a text").to_owned()
    }
}

impl Raw {
    /// Connects.
    pub async fn connect(host: &Host) -> Self {
        let address = host.url().strip_prefix("http://").expect("a plain address");
        let (reader, writer) = TcpStream::connect(address).await.expect("the host listens").into_split();
        Self { reader, writer, read: Vec::new() }
    }

    /// Sends all of it.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.expect("the host takes it");
    }

    /// Sends, unless the host has closed.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        timeout(PATIENCE, self.writer.write_all(bytes.as_ref())).await.expect("the host reads on or closes")
    }

    /// Says that nothing more is coming.
    pub async fn finish(&mut self) {
        self.writer.shutdown().await.expect("the connection is open");
    }

    /// Sends while it reads, as a browser does: what is not taken any more is no failure.
    pub async fn send_and_read(mut self, bytes: Vec<u8>) -> RawAnswer {
        let mut writer = self.writer;
        let sender = tokio::spawn(async move {
            let _ = writer.write_all(&bytes).await;
            writer
        });
        let answer = read_answer(&mut self.reader, &mut self.read, true).await;
        sender.abort();
        answer
    }

    /// The next answer.
    pub async fn answer(&mut self) -> RawAnswer {
        read_answer(&mut self.reader, &mut self.read, true).await
    }

    /// The next answer to a HEAD request.
    pub async fn head_answer(&mut self) -> RawAnswer {
        read_answer(&mut self.reader, &mut self.read, false).await
    }

    /// The next line, without its line end.
    pub async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                return String::from_utf8_lossy(&line[..end]).into_owned();
            }
            assert!(more(&mut self.reader, &mut self.read).await, "closed within a line");
        }
    }

    /// Reads on until the host closes.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.read);
        let read = timeout(PATIENCE, self.reader.read_to_end(&mut rest)).await.expect("the host closes");
        read.map(|_| rest).unwrap_or_default()
    }
}

/// One request on a connection of its own.
pub async fn exchange(host: &Host, request: impl AsRef<[u8]>) -> RawAnswer {
    let mut raw = Raw::connect(host).await;
    raw.send(request).await;
    raw.answer().await
}

/// A whole request with these header lines (each without its line end).
pub fn request(method: &str, target: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: kandev.test\r\n");
    for header in headers {
        text += &format!("{header}\r\n");
    }
    if !body.is_empty() {
        text += &format!("Content-Length: {}\r\n", body.len());
    }
    [text.as_bytes(), b"\r\n", body].concat()
}

/// A body in chunks of this size, with its end.
pub fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 64);
    for chunk in body.chunks(size) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Reads one answer; interim ones (1xx) are passed over. `read` keeps what came after it.
async fn read_answer(reader: &mut OwnedReadHalf, read: &mut Vec<u8>, with_body: bool) -> RawAnswer {
    loop {
        let end = loop {
            match read.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => assert!(more(reader, read).await, "closed: {}", String::from_utf8_lossy(read)),
            }
        };
        let head = String::from_utf8_lossy(&read.drain(..end).collect::<Vec<_>>()).into_owned();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status line");
        if (100..200).contains(&status) {
            continue;
        }
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut answer = RawAnswer { status, headers, body: Vec::new() };
        if with_body && !matches!(status, 204 | 304) {
            let lengths = answer.values("content-length");
            assert_eq!(lengths.len(), 1, "one length: {answer:?}");
            assert_eq!(answer.values("transfer-encoding"), Vec::<&str>::new());
            let length: usize = lengths[0].parse().expect("a number");
            while read.len() < length {
                assert!(more(reader, read).await, "closed within the body: {answer:?}");
            }
            answer.body = read.drain(..length).collect();
        }
        return answer;
    }
}

async fn more(reader: &mut OwnedReadHalf, read: &mut Vec<u8>) -> bool {
    let count = timeout(PATIENCE, reader.read_buf(read)).await.expect("the host answers in time");
    count.is_ok_and(|count| count > 0)
}
