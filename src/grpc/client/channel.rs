//! [`PluginClient`] over the connection to a real plugin process.

use std::{
    error::Error,
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use async_trait::async_trait;
use kandev_proto::v1::{self, plugin_client::PluginClient as Stub};
use prost::Message;
use tokio::time::{Instant, timeout_at};
use tonic::{
    Code, Request, Response, Status,
    metadata::MetadataValue,
    transport::{Channel, Error as TransportError},
};

use super::{CallError, PluginClient};
use crate::domain::clean;

/// The header of a call's deadline.
const GRPC_TIMEOUT: &str = "grpc-timeout";

/// The largest number that the header may have.
const MOST_DIGITS: u128 = 99_999_999;

/// Longest plugin text kept of a refused call, in bytes.
const MESSAGE_BYTES: usize = 2048;

/// How tonic begins to say that a message is too large.
const OVER: &str = "Error, decoded message length too large: ";

/// Calls one plugin process; clones share its connection.
#[derive(Clone, Debug)]
pub struct ChannelClient {
    stub: Stub<Channel>,
    message_bytes: usize,
}

impl ChannelClient {
    /// A client that neither sends nor takes a message beyond `message_bytes`.
    pub fn new(channel: Channel, message_bytes: u64) -> Self {
        let bytes = usize::try_from(message_bytes).unwrap_or(usize::MAX);
        Self { stub: Stub::new(channel).max_decoding_message_size(bytes), message_bytes: bytes }
    }

    /// The plugin is told a deadline slightly later than ours: its context ends too, and ours still gives the verdict.
    /// The size is checked here because tonic reports its own check as a broken connection.
    fn request<T: Message>(&self, message: T, deadline: Duration) -> Result<Request<T>, CallError> {
        if message.encoded_len() > self.message_bytes {
            let message = format!("the message is larger than {} bytes", self.message_bytes);
            return Err(CallError::Refused { code: Code::ResourceExhausted, message });
        }
        let mut request = Request::new(message);
        if let Ok(deadline) = MetadataValue::try_from(grpc_timeout(deadline + deadline / 10)) {
            request.metadata_mut().insert(GRPC_TIMEOUT, deadline);
        }
        Ok(request)
    }

    /// Dropping the call resets its stream, which cancels the plugin's context; its owner does so with what this
    /// returns. It is pinned by its owner since it is large: moving it costs as much as a small call.
    async fn bounded<T>(
        &self,
        deadline: Duration,
        call: Pin<&mut impl Future<Output = Result<Response<T>, Status>>>,
    ) -> Result<T, CallError> {
        let end = Instant::now() + deadline;
        match timeout_at(end, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            // On a busy machine the plugin's word may be read first; some say it as a cancellation.
            Ok(Err(_)) if Instant::now() >= end => Err(CallError::TimedOut(deadline)),
            Ok(Err(status)) => Err(classify(&status, self.message_bytes)),
            Err(_) => Err(CallError::TimedOut(deadline)),
        }
    }
}

/// As the gRPC protocol writes a deadline: at most eight digits and a unit. In milliseconds, or in seconds what is
/// longer than a day; tonic would try its way up from nanoseconds with each call.
fn grpc_timeout(deadline: Duration) -> String {
    match deadline.as_millis() {
        millis @ ..=MOST_DIGITS => format!("{}m", millis.max(1)),
        _ => format!("{}S", u128::from(deadline.as_secs()).min(MOST_DIGITS)),
    }
}

#[async_trait]
impl PluginClient for ChannelClient {
    async fn deliver_event(&self, event: v1::Event, deadline: Duration) -> Result<(), CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.deliver_event(self.request(event, deadline)?))).await.map(|_: v1::EventAck| ())
    }

    async fn handle_webhook(
        &self,
        webhook: v1::WebhookRequest,
        deadline: Duration,
    ) -> Result<v1::WebhookResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.handle_webhook(self.request(webhook, deadline)?))).await
    }

    async fn handle_action(
        &self,
        action: v1::PluginActionRequest,
        deadline: Duration,
    ) -> Result<v1::PluginActionResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.handle_action(self.request(action, deadline)?))).await
    }

    async fn invoke_agent_tool(
        &self,
        tool: v1::AgentToolRequest,
        deadline: Duration,
    ) -> Result<v1::AgentToolResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.invoke_agent_tool(self.request(tool, deadline)?))).await
    }

    async fn search_entity_references(
        &self,
        search: v1::SearchEntityReferencesRequest,
        deadline: Duration,
    ) -> Result<v1::SearchEntityReferencesResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.search_entity_references(self.request(search, deadline)?))).await
    }

    async fn authorize_entity_reference(
        &self,
        question: v1::AuthorizeEntityReferenceRequest,
        deadline: Duration,
    ) -> Result<v1::AuthorizeEntityReferenceResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.authorize_entity_reference(self.request(question, deadline)?))).await
    }

    async fn resolve_git_credential(
        &self,
        credential: v1::ResolveGitCredentialRequest,
        deadline: Duration,
    ) -> Result<v1::ResolveGitCredentialResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.resolve_git_credential(self.request(credential, deadline)?))).await
    }

    async fn get_git_credential_binding(
        &self,
        binding: v1::GitCredentialBindingRequest,
        deadline: Duration,
    ) -> Result<v1::GitCredentialBindingResponse, CallError> {
        let mut stub = self.stub.clone();
        self.bounded(deadline, pin!(stub.get_git_credential_binding(self.request(binding, deadline)?))).await
    }
}

/// tonic gives a lost connection as `Unavailable` or `Unknown` with its transport error as the source, whose text is
/// Rust debug output; a plugin's own answer has no source (protocol page §4).
fn classify(status: &Status, limit: usize) -> CallError {
    let lost =
        std::iter::successors(status.source(), |cause| (*cause).source()).any(|cause| cause.is::<TransportError>());
    match status.code() {
        _ if lost => CallError::Disconnected,
        Code::OutOfRange if is_over(status.message(), limit) => CallError::TooLarge(limit),
        code => CallError::Refused { code, message: clean::single_line(status.message(), MESSAGE_BYTES) },
    }
}

/// tonic tells by a text alone that it did not take an answer. A plugin in Rust says the same of a message of the host,
/// but with a limit of its own: it is never this one, since the host sends nothing that is over this one.
fn is_over(message: &str, limit: usize) -> bool {
    message.strip_prefix(OVER).is_some_and(|rest| rest.ends_with(&format!(" the limit is: {limit} bytes")))
}

#[cfg(test)]
mod tests;
