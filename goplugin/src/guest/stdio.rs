//! The plugin's stdout, redirected to the host's stdio stream.
//!
//! stderr stays what it is: it is where a panic is printed when nothing else works any more.

use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use rustix::stdio::dup2_stdout;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::proto::StdioData;
use crate::proto::grpc_stdio_server::GrpcStdio;
use crate::proto::stdio_data::Channel;

/// The most that go-plugin puts into one message.
const CHUNK_BYTES: usize = 1024;

/// Chunks that may wait for the host, 1 MiB in all. At the bound a print waits for [`PATIENCE`], and then what is
/// printed is dropped until there is room again: a print on the runtime's own thread must not wait for what that thread
/// would have to send.
const MAX_CHUNKS: usize = 1024;
const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(1);

type Chunk = Result<StdioData, Status>;

/// The original stdout, while descriptor 1 leads elsewhere. It stays open: its end would tell the host that the plugin
/// closed its stdout.
pub(crate) struct Redirected {
    original: Option<OwnedFd>,
}

impl Redirected {
    /// Makes descriptor 1 a pipe, and gives what is printed from now on. The thread that reads it ends when nobody can
    /// print any more, which is after [`Redirected::end`].
    pub(crate) fn begin() -> io::Result<(Redirected, mpsc::Receiver<Chunk>)> {
        io::stdout().flush()?;
        let original = io::stdout().as_fd().try_clone_to_owned()?;
        let (reader, writer) = io::pipe()?;
        let (chunks, printed) = mpsc::channel(MAX_CHUNKS);
        thread::Builder::new().name("plugin-stdout".to_owned()).spawn(move || pump(reader, &chunks))?;
        dup2_stdout(writer)?;
        Ok((Redirected { original: Some(original) }, printed))
    }

    /// The original stdout, for the handshake line.
    pub(crate) fn original(&self) -> io::Result<File> {
        match &self.original {
            Some(original) => Ok(File::from(original.try_clone()?)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Gives descriptor 1 its first meaning back: what was printed goes out to its end, what comes later goes to the
    /// host's pipe.
    pub(crate) fn end(&mut self) {
        if let Some(original) = self.original.take() {
            let _ = io::stdout().flush();
            let _ = dup2_stdout(original);
        }
    }
}

impl Drop for Redirected {
    fn drop(&mut self) {
        self.end();
    }
}

fn pump(mut reader: PipeReader, chunks: &mpsc::Sender<Chunk>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut full = false;
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        let data = Bytes::copy_from_slice(&buffer[..read]);
        let patience = if full { Duration::ZERO } else { PATIENCE };
        full = !offer(chunks, StdioData { channel: Channel::Stdout.into(), data }, patience);
    }
}

/// Whether the chunk was taken. Waits by hand, since the runtime that would wake this thread may be the one that waits.
#[expect(clippy::disallowed_methods, reason = "it runs on a thread of its own")]
fn offer(chunks: &mpsc::Sender<Chunk>, data: StdioData, patience: Duration) -> bool {
    let mut chunk = Ok(data);
    let mut waited = Duration::ZERO;
    loop {
        match chunks.try_send(chunk) {
            Err(mpsc::error::TrySendError::Full(returned)) if waited < patience => chunk = returned,
            sent => return sent.is_ok(),
        }
        thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

/// The service: what was printed, once.
pub(crate) struct Stdio {
    printed: Mutex<Option<mpsc::Receiver<Chunk>>>,
}

impl Stdio {
    pub(crate) fn new(printed: mpsc::Receiver<Chunk>) -> Stdio {
        Stdio { printed: Mutex::new(Some(printed)) }
    }
}

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    type StreamStdioStream = ReceiverStream<Chunk>;

    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner).take();
        let printed = printed.ok_or_else(|| Status::failed_precondition("the stdio stream was opened before"))?;
        Ok(Response::new(ReceiverStream::new(printed)))
    }
}
