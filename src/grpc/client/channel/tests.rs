//! The plugin client against a scripted plugin in memory.

use std::sync::Arc;

use bytes::Bytes;
use kandev_proto::v1::plugin_server::{Plugin, PluginServer};
use tokio::sync::Notify;
use tonic::{Code, metadata::MetadataMap, service::Routes};

use super::*;
use crate::grpc::testing::{channel, serve};

/// Does what the event's type says.
#[derive(Clone, Default)]
struct Scripted {
    cancelled: Arc<Notify>,
    reached: Arc<Notify>,
}

/// Notifies when the call it lives in is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Plugin for Scripted {
    async fn deliver_event(&self, request: Request<v1::Event>) -> Result<Response<v1::EventAck>, Status> {
        let _guard = OnDrop(self.cancelled.clone());
        match request.get_ref().event_type.as_str() {
            "hang" => {
                self.reached.notify_one();
                std::future::pending().await
            }
            "error" => Err(Status::unknown("no\u{1b}[31m such\nthing")),
            "unavailable" => Err(Status::unavailable("backend is down")),
            "deadline" => Err(Status::deadline_exceeded("own deadline")),
            "over" => Err(Status::out_of_range(over(4 << 20))),
            "long" => Err(Status::internal("x".repeat(5000))),
            "timeout" => Err(Status::unknown(timeout_of(request.metadata()))),
            _ => Ok(Response::new(v1::EventAck {})),
        }
    }

    async fn handle_webhook(
        &self,
        request: Request<v1::WebhookRequest>,
    ) -> Result<Response<v1::WebhookResponse>, Status> {
        let v1::WebhookRequest { webhook_key, body, .. } = request.into_inner();
        let body: Bytes = match webhook_key.as_str() {
            "eighteen" => vec![b'x'; 18 << 20].into(),
            _ => body,
        };
        Ok(Response::new(v1::WebhookResponse { status: 200, body, ..Default::default() }))
    }
}

fn timeout_of(metadata: &MetadataMap) -> String {
    metadata.get("grpc-timeout").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// What tonic says of a message that is one byte longer than `limit`.
fn over(limit: usize) -> String {
    format!("{OVER}found {} bytes, the limit is: {limit} bytes", limit + 1)
}

struct Connected {
    client: ChannelClient,
    plugin: Scripted,
    pipe: tokio::task::JoinHandle<()>,
}

async fn connect() -> Connected {
    let plugin = Scripted::default();
    let server = PluginServer::new(plugin.clone()).max_decoding_message_size(64 << 20);
    let (near, pipe) = serve(Routes::new(server));
    let client = ChannelClient::new(channel(near, "http://localhost").await, 17 << 20);
    Connected { client, plugin, pipe }
}

fn event(event_type: &str) -> v1::Event {
    v1::Event { event_type: event_type.to_owned(), ..Default::default() }
}

const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_acknowledgement_is_ok() {
    let plugin = connect().await;
    assert_eq!(plugin.client.deliver_event(event("fine"), LONG).await, Ok(()));
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_a_clean_bounded_text() {
    let plugin = connect().await;
    let refused = |code, message: &str| Err(CallError::Refused { code, message: message.to_owned() });
    let answers = [
        ("error", refused(Code::Unknown, "no [31m such thing")),
        ("unavailable", refused(Code::Unavailable, "backend is down")),
        ("deadline", refused(Code::DeadlineExceeded, "own deadline")),
    ];
    for (event_type, expected) in answers {
        assert_eq!(plugin.client.deliver_event(event(event_type), LONG).await, expected);
    }
    let long = plugin.client.deliver_event(event("long"), LONG).await;
    let Err(CallError::Refused { message, .. }) = long else { panic!("{long:?}") };
    assert!(message.len() <= MESSAGE_BYTES && message.ends_with('…'), "{}", message.len());
}

#[tokio::test]
async fn the_plugin_is_told_a_deadline_slightly_later_than_ours() {
    let plugin = connect().await;
    let told = plugin.client.deliver_event(event("timeout"), LONG).await;
    assert_eq!(told, Err(CallError::Refused { code: Code::Unknown, message: "11000m".to_owned() }));
}

#[test]
fn a_deadline_is_written_with_at_most_eight_digits_and_never_as_none() {
    let written = [
        (Duration::from_nanos(1), "1m"),
        (Duration::from_millis(99_999_999), "99999999m"),
        (Duration::from_millis(100_000_000), "100000S"),
        (Duration::MAX, "99999999S"),
    ];
    for (deadline, text) in written {
        assert_eq!(grpc_timeout(deadline), text);
    }
}

#[tokio::test]
async fn a_late_call_times_out_and_is_cancelled_in_the_plugin() {
    let plugin = connect().await;
    let deadline = Duration::from_millis(100);
    let late = plugin.client.deliver_event(event("hang"), deadline).await;
    assert_eq!(late, Err(CallError::TimedOut(deadline)));
    tokio::time::timeout(LONG, plugin.plugin.cancelled.notified()).await.unwrap();
    assert_eq!(plugin.client.deliver_event(event("fine"), LONG).await, Ok(()));
}

#[tokio::test]
async fn a_lost_connection_fails_the_call_in_flight_and_the_next_one() {
    let plugin = connect().await;
    let client = plugin.client.clone();
    let in_flight = tokio::spawn(async move { client.deliver_event(event("hang"), LONG).await });
    tokio::time::timeout(LONG, plugin.plugin.reached.notified()).await.unwrap();
    plugin.pipe.abort();
    assert_eq!(in_flight.await.unwrap(), Err(CallError::Disconnected));
    assert_eq!(plugin.client.deliver_event(event("fine"), LONG).await, Err(CallError::Disconnected));
}

/// Field case 9.
#[tokio::test]
async fn a_body_of_sixteen_mebibytes_goes_both_ways_and_eighteen_are_refused() {
    let plugin = connect().await;
    let webhook = |mib: usize| v1::WebhookRequest { body: vec![b'x'; mib << 20].into(), ..Default::default() };
    let answer = plugin.client.handle_webhook(webhook(16), LONG).await.unwrap();
    assert_eq!(answer.body.len(), 16 << 20);
    let refused = plugin.client.handle_webhook(webhook(18), LONG).await;
    let message = "the message is larger than 17825792 bytes".to_owned();
    assert_eq!(refused, Err(CallError::Refused { code: Code::ResourceExhausted, message }));
    assert_eq!(plugin.client.deliver_event(event("fine"), LONG).await, Ok(()));
}

#[tokio::test]
async fn an_answer_of_eighteen_mebibytes_is_too_large_and_the_next_call_is_made() {
    let plugin = connect().await;
    let webhook = v1::WebhookRequest { webhook_key: "eighteen".to_owned(), ..Default::default() };
    let answer = plugin.client.handle_webhook(webhook, LONG).await;
    assert_eq!(answer, Err(CallError::TooLarge(17 << 20)));
    assert_eq!(plugin.client.deliver_event(event("fine"), LONG).await, Ok(()));
}

#[tokio::test]
async fn a_plugin_that_finds_the_hosts_message_too_large_has_refused_it() {
    let plugin = connect().await;
    let refused = plugin.client.deliver_event(event("over"), LONG).await;
    assert_eq!(refused, Err(CallError::Refused { code: Code::OutOfRange, message: over(4 << 20) }));
}

/// A plugin's own deadline is a little later; on a machine that stood still both are over, and its word may be read
/// first.
#[tokio::test]
async fn a_plugin_that_says_first_that_the_deadline_is_over_is_too_late_and_does_not_refuse() {
    let client = connect().await.client;
    tokio::time::pause();
    let deadline = Duration::from_secs(1);
    let told = async |after: Duration| {
        let call = async move {
            tokio::time::sleep(after).await;
            Err::<Response<()>, _>(Status::cancelled("Timeout expired"))
        };
        client.bounded(deadline, std::pin::pin!(call)).await
    };
    assert!(matches!(told(deadline).await, Err(CallError::TimedOut(after)) if after == deadline));
    assert!(matches!(told(deadline / 2).await, Err(CallError::Refused { code: Code::Cancelled, .. })));
}
