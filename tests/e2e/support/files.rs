//! A file server on the loopback address, for installs by address. It counts who came.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

/// What a path answers.
#[derive(Debug, Clone)]
pub enum File {
    /// 200 with these bytes.
    Content(Vec<u8>),
    /// 302 to there.
    Redirect(String),
    /// A status without body.
    Status(u16),
    /// Bytes without length and end.
    Endless,
    /// 200 with these bytes, each time when it is told to.
    Late(Arc<Notify>, Vec<u8>),
    /// Nothing, for ever.
    Silence,
}

/// Paths and what they answer now.
type Files = Arc<Mutex<BTreeMap<String, File>>>;

/// The server; it ends when dropped.
pub struct FileServer {
    address: SocketAddr,
    files: Files,
    hits: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl FileServer {
    /// Serves these paths; others are 404.
    pub async fn start(files: &[(&str, File)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let hits = Arc::new(Mutex::new(Vec::new()));
        let files: BTreeMap<String, File> =
            files.iter().map(|(path, file)| ((*path).to_owned(), file.clone())).collect();
        let files: Files = Arc::new(Mutex::new(files));
        let (served, seen) = (Arc::clone(&files), Arc::clone(&hits));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&served), Arc::clone(&seen)));
            }
        });
        Self { address, files, hits, task }
    }

    /// From now on the path answers this.
    pub fn put(&self, path: &str, file: File) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), file);
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths that were asked for since the last look.
    pub fn take_hits(&self) -> Vec<String> {
        std::mem::take(&mut self.hits.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, files: Files, hits: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if !stream.read_buf(&mut head).await.is_ok_and(|count| count > 0) {
            return;
        }
    }
    let path = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap_or_default().to_owned();
    hits.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let file = files.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    if let Some(File::Late(told, _)) = &file {
        told.notified().await;
    }
    let (lines, body) = match &file {
        Some(File::Silence) => return std::future::pending().await,
        Some(File::Content(bytes) | File::Late(_, bytes)) => {
            (format!("200 OK\r\nContent-Length: {}", bytes.len()), bytes.as_slice())
        }
        Some(File::Redirect(to)) => (format!("302 Found\r\nContent-Length: 0\r\nLocation: {to}"), &b""[..]),
        Some(File::Status(status)) => (format!("{status} Odd\r\nContent-Length: 0"), &b""[..]),
        Some(File::Endless) => ("200 OK".to_owned(), &b""[..]),
        None => ("404 Not Found\r\nContent-Length: 0".to_owned(), &b""[..]),
    };
    let head = format!("HTTP/1.1 {lines}\r\nConnection: close\r\n\r\n");
    let mut open = stream.write_all(&[head.as_bytes(), body].concat()).await.is_ok();
    while open && matches!(file, Some(File::Endless)) {
        open = stream.write_all(&[0; 4096]).await.is_ok();
    }
}
