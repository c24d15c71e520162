//! Typed calls to a plugin with a deadline each, behind a trait so that actors can be tested without a process.
//!
//! Owns the classification of what went wrong. It does not retry, queue or count: the plugin actor does.

mod channel;

use std::time::Duration;

use async_trait::async_trait;
pub use channel::ChannelClient;
use kandev_proto::v1;

/// What the host calls in a plugin.
#[async_trait]
pub trait PluginClient: Send + Sync + 'static {
    /// Delivers one event; `Ok` is the plugin's acknowledgement.
    async fn deliver_event(&self, event: v1::Event, deadline: Duration) -> Result<(), CallError>;

    /// Relays one webhook request.
    async fn handle_webhook(
        &self,
        request: v1::WebhookRequest,
        deadline: Duration,
    ) -> Result<v1::WebhookResponse, CallError>;

    /// Calls an action.
    async fn handle_action(
        &self,
        request: v1::PluginActionRequest,
        deadline: Duration,
    ) -> Result<v1::PluginActionResponse, CallError>;

    /// Calls a tool for an agent.
    async fn invoke_agent_tool(
        &self,
        request: v1::AgentToolRequest,
        deadline: Duration,
    ) -> Result<v1::AgentToolResponse, CallError>;

    /// Searches for references in a source. A plugin without them answers so, and so does a client that says nothing
    /// else; the same of the calls below.
    async fn search_entity_references(
        &self,
        _request: v1::SearchEntityReferencesRequest,
        _deadline: Duration,
    ) -> Result<v1::SearchEntityReferencesResponse, CallError> {
        Err(CallError::not_implemented())
    }

    /// Asks whether a reference may be used.
    async fn authorize_entity_reference(
        &self,
        _request: v1::AuthorizeEntityReferenceRequest,
        _deadline: Duration,
    ) -> Result<v1::AuthorizeEntityReferenceResponse, CallError> {
        Err(CallError::not_implemented())
    }

    /// Asks for user name and secret for a repository. The answer must not be printed.
    async fn resolve_git_credential(
        &self,
        _request: v1::ResolveGitCredentialRequest,
        _deadline: Duration,
    ) -> Result<v1::ResolveGitCredentialResponse, CallError> {
        Err(CallError::not_implemented())
    }

    /// Asks for the revision of what [`Self::resolve_git_credential`] answers.
    async fn get_git_credential_binding(
        &self,
        _request: v1::GitCredentialBindingRequest,
        _deadline: Duration,
    ) -> Result<v1::GitCredentialBindingResponse, CallError> {
        Err(CallError::not_implemented())
    }
}

/// In the place of a text that is not kept.
const WITHHELD: &str = "its text may hold the credential and is not kept";

/// Why a call to a plugin gave no answer. The texts are for the log, never for a caller outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The deadline passed; the plugin's context was cancelled too.
    #[error("the plugin did not answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The connection is gone: the process died or closed its socket.
    #[error("the connection to the plugin is lost")]
    Disconnected,
    /// The plugin's answer is larger than this many bytes and was not read.
    #[error("the plugin's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The plugin's answer was an error.
    #[error("the plugin answered {code:?}: {message}")]
    Refused {
        /// gRPC code.
        code: tonic::Code,
        /// The plugin's text, cleaned and bounded.
        message: String,
    },
}

impl CallError {
    /// Of a call about a credential: the plugin's text may hold it in any form, so that nothing of the text is kept.
    pub fn without_text(self) -> Self {
        match self {
            Self::Refused { code, .. } => Self::Refused { code, message: WITHHELD.to_owned() },
            Self::TimedOut(_) | Self::Disconnected | Self::TooLarge(_) => self,
        }
    }

    fn not_implemented() -> Self {
        Self::Refused { code: tonic::Code::Unimplemented, message: "not implemented".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_plugins_text_about_a_credential_is_kept_but_the_code() {
        let refused = CallError::Refused { code: tonic::Code::Unknown, message: "no entry for hunter2".to_owned() };
        let told = "the plugin answered Unknown: its text may hold the credential and is not kept";
        assert_eq!(refused.without_text().to_string(), told);
        for other in [CallError::Disconnected, CallError::TimedOut(Duration::from_secs(1)), CallError::TooLarge(1)] {
            assert_eq!(other.clone().without_text(), other);
        }
    }
}
