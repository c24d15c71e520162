//! A small HTTP/1.1 client on one kept connection: as little as possible beside what is measured.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::Outcome;

/// One connection.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Outcome<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// Sends a request as it is and gives status and body of the answer, which must have a `content-length`.
    pub async fn send(&mut self, request: &[u8]) -> Outcome<(u16, &[u8])> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let (head_end, total, status) = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some(found) = head(&self.buffer)? {
                break found;
            }
        };
        while self.buffer.len() < total {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
        }
        Ok((status, &self.buffer[head_end..total]))
    }
}

/// End of the head, end of the answer, and status, once the head is whole.
fn head(bytes: &[u8]) -> Outcome<Option<(usize, usize, u16)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..end])?;
    let status = text.get(9..12).ok_or("no status")?.parse()?;
    let length = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())?;
    Ok(Some((end + 4, end + 4 + length, status)))
}

/// The text of a request.
pub fn request(method: &str, path: &str, token: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
