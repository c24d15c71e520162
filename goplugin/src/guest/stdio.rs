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
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::dup2_stdout;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::proto::StdioData;
use crate::proto::grpc_stdio_server::GrpcStdio;
use crate::proto::stdio_data::Channel;

/// The most that go-plugin puts into one message.
const CHUNK_BYTES: usize = 1024;

/// Chunks that may wait for the host, 1 MiB in all. At the bound a print waits for [`PATIENCE`], and then what is
/// printed is dropped until there is room again, and told of in a line of its own: a print on the runtime's own thread
/// must not wait for what that thread would have to send.
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

/// Takes what is printed to its end, whether or not the host takes it.
fn pump(mut reader: PipeReader, chunks: &mpsc::Sender<Chunk>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut dropped: u64 = 0;
    loop {
        if dropped > 0 {
            match chunks.try_send(Ok(notice(dropped))) {
                Ok(()) => dropped = 0,
                Err(TrySendError::Full(_)) if !readable(&reader, PAUSE) => continue,
                Err(_) => {}
            }
        }
        let Ok(read @ 1..) = reader.read(&mut buffer) else { break };
        let patience = if dropped > 0 { Duration::ZERO } else { PATIENCE };
        if !offer(chunks, stdout(Bytes::copy_from_slice(&buffer[..read])), patience) {
            dropped += read as u64;
        }
    }
    if dropped > 0 {
        offer(chunks, notice(dropped), PATIENCE);
    }
}

fn stdout(data: Bytes) -> StdioData {
    StdioData { channel: Channel::Stdout.into(), data }
}

/// A line of its own, wherever the text before it ended.
fn notice(dropped: u64) -> StdioData {
    let text = format!("\n{dropped} bytes of output were left out: the plugin prints faster than the host is sent\n");
    stdout(text.into())
}

/// Whether there is something to read, or the end, before `patience` is over.
fn readable(reader: &PipeReader, patience: Duration) -> bool {
    let mut waited_for = [PollFd::new(reader, PollFlags::IN)];
    // A wait that cannot be had is none: the read then waits.
    let patience = Timespec::try_from(patience).ok();
    poll(&mut waited_for, patience.as_ref()).map_or(true, |ready| ready > 0)
}

/// Whether the chunk was taken. Waits by hand, since the runtime that would wake this thread may be the one that waits.
#[expect(clippy::disallowed_methods, reason = "it runs on a thread of its own")]
fn offer(chunks: &mpsc::Sender<Chunk>, data: StdioData, patience: Duration) -> bool {
    let mut chunk = Ok(data);
    let mut waited = Duration::ZERO;
    loop {
        match chunks.try_send(chunk) {
            Err(TrySendError::Full(returned)) if waited < patience => chunk = returned,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(chunks: &[Chunk]) -> Vec<String> {
        let text = |chunk: &Chunk| String::from_utf8_lossy(&chunk.as_ref().expect("data").data).into_owned();
        chunks.iter().map(text).collect()
    }

    #[tokio::test]
    async fn what_is_dropped_is_told_in_a_line_even_when_nothing_is_printed_after_it() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let (chunks, mut printed) = mpsc::channel(1);
        let pump = thread::spawn(move || pump(reader, &chunks));
        // One is taken, one waits in vain for its patience, and nothing comes after it.
        writer.write_all(&[b'x'; CHUNK_BYTES + 7]).expect("the pipe takes it");
        tokio::time::sleep(PATIENCE * 3).await;
        let taken = [printed.recv().await.expect("the first"), printed.recv().await.expect("the notice")];
        let notice = "\n7 bytes of output were left out: the plugin prints faster than the host is sent\n";
        assert_eq!(text(&taken), ["x".repeat(CHUNK_BYTES), notice.to_owned()]);
        writer.write_all(b"later\n").expect("the pipe is open");
        assert_eq!(text(&[printed.recv().await.expect("the line")]), ["later\n"]);
        drop(writer);
        pump.join().expect("no panic");
        assert!(printed.recv().await.is_none());
    }

    #[tokio::test]
    async fn a_host_that_is_gone_blocks_no_print() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let (chunks, printed) = mpsc::channel(1);
        drop(printed);
        let pump = thread::spawn(move || pump(reader, &chunks));
        writer.write_all(&vec![b'x'; 1 << 20]).expect("it is drained");
        drop(writer);
        pump.join().expect("no panic");
    }
}
