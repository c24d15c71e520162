//! go-plugin's stdio stream: what the plugin prints after its start.
//!
//! Owns the one call of it. It must be read for the plugin's whole life, or the plugin blocks when it prints.

use tokio::time::Instant;
use tonic::Code;
use tonic::transport::Channel;

use super::lines::LineSplitter;
use super::log_line::Stream;
use super::output::Journal;
use crate::proto::grpc_stdio_client::GrpcStdioClient;
use crate::proto::stdio_data::Channel as Source;

/// Reads the stream to its end. To be called once for each start, at once: there is no replay.
pub(crate) async fn drain(channel: Channel, max_message_bytes: usize, journal: &Journal) {
    let mut client = GrpcStdioClient::new(channel).max_decoding_message_size(max_message_bytes);
    // grpc-go answers only with its first output, so this may take for ever.
    let mut stream = match client.stream_stdio(()).await {
        Ok(response) => response.into_inner(),
        // go-plugin before 1.1.0 prints to its pipes.
        Err(status) if status.code() == Code::Unimplemented => return,
        Err(status) => {
            tracing::debug!(code = ?status.code(), "the plugin's stdio stream did not open");
            return;
        }
    };
    let (mut stdout, mut stderr) = (LineSplitter::default(), LineSplitter::default());
    while let Ok(Some(data)) = journal.until(stream.message()).await {
        let (splitter, source) = match data.channel() {
            Source::Stdout => (&mut stdout, Stream::Stdout),
            Source::Stderr => (&mut stderr, Stream::Stderr),
            Source::Invalid => continue,
        };
        let now = Instant::now();
        splitter.push(&data.data, |line, cut| journal.line(source, line, cut, now));
    }
    let now = Instant::now();
    stdout.finish(|line, cut| journal.line(Stream::Stdout, line, cut, now));
    stderr.finish(|line, cut| journal.line(Stream::Stderr, line, cut, now));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio_stream::wrappers::ReceiverStream;
    use tonic::service::Routes;
    use tonic::{Request, Response, Status};

    use super::*;
    use crate::host::in_process::channel_to;
    use crate::proto::StdioData;
    use crate::proto::grpc_stdio_server::{GrpcStdio, GrpcStdioServer};

    struct Chunks(Vec<(Source, &'static str)>);

    #[tonic::async_trait]
    impl GrpcStdio for Chunks {
        type StreamStdioStream = ReceiverStream<Result<StdioData, Status>>;

        async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
            let (sender, receiver) = tokio::sync::mpsc::channel(self.0.len());
            for (source, text) in &self.0 {
                let data = StdioData { channel: (*source).into(), data: text.as_bytes().into() };
                sender.send(Ok(data)).await.expect("room for all");
            }
            Ok(Response::new(ReceiverStream::new(receiver)))
        }
    }

    async fn drained(routes: Routes) -> Vec<(Stream, String)> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        let sink = Arc::new(move |line: crate::host::LogLine| {
            sink.lock().expect("no panic").push((line.stream, line.message));
        });
        drain(channel_to(routes).await, 1 << 20, &Journal::new(sink, Instant::now())).await;
        let lines = lines.lock().expect("no panic");
        lines.clone()
    }

    #[tokio::test]
    async fn chunks_cut_anywhere_are_put_together_for_each_channel() {
        let chunks = Chunks(vec![
            (Source::Stdout, "out o"),
            (Source::Stderr, "err one\nerr t"),
            (Source::Invalid, "nothing\n"),
            (Source::Stdout, "ne\n"),
            (Source::Stderr, "wo"),
        ]);
        let wanted = [(Stream::Stderr, "err one"), (Stream::Stdout, "out one"), (Stream::Stderr, "err two")];
        let found = drained(Routes::new(GrpcStdioServer::new(chunks))).await;
        assert_eq!(found, wanted.map(|(stream, text)| (stream, text.to_owned())));
    }

    #[tokio::test]
    async fn a_plugin_without_the_service_is_left_alone() {
        assert_eq!(drained(Routes::default()).await, []);
    }
}
