//! The gRPC service around a [`Plugin`]: own types in, own types out, panics caught.
//!
//! What a call means is the author's; what an error means on the wire is `error.rs` and `action.rs`.

use std::{any::Any, future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use kandev_proto::v1::{self, plugin_server};
use tonic::{Request, Response, Status};
use tracing::error;

use crate::{ActionResponse, Error, Host, Plugin, Result};

/// Serves `plugin`.
pub(crate) struct Service<P> {
    pub(crate) plugin: Arc<P>,
    pub(crate) host: Host,
}

type Answer<T> = std::result::Result<Response<T>, Status>;

/// Runs a handler; its panic becomes an error with a fixed text. Where it panicked is the panic hook's line (`log.rs`).
pub(crate) async fn guarded<T>(call: &'static str, handler: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(handler).catch_unwind().await.unwrap_or_else(|panic| {
        error!(call, panic = panic_text(&*panic), "the plugin's handler panicked");
        Err(Error::internal("the plugin's handler panicked; its log says where"))
    })
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

#[tonic::async_trait]
impl<P: Plugin> plugin_server::Plugin for Service<P> {
    async fn deliver_event(&self, request: Request<v1::Event>) -> Answer<v1::EventAck> {
        guarded("DeliverEvent", self.plugin.on_event(&self.host, request.into_inner().into())).await?;
        Ok(Response::new(v1::EventAck {}))
    }

    async fn handle_webhook(&self, request: Request<v1::WebhookRequest>) -> Answer<v1::WebhookResponse> {
        let handler = self.plugin.handle_webhook(&self.host, request.into_inner().into());
        Ok(Response::new(guarded("HandleWebhook", handler).await?.into()))
    }

    async fn handle_action(&self, request: Request<v1::PluginActionRequest>) -> Answer<v1::PluginActionResponse> {
        let handler = self.plugin.handle_action(&self.host, request.into_inner().into());
        let answer = guarded("HandleAction", handler).await.or_else(ActionResponse::of_error)?;
        Ok(Response::new(answer.into()))
    }

    async fn search_entity_references(
        &self,
        request: Request<v1::SearchEntityReferencesRequest>,
    ) -> Answer<v1::SearchEntityReferencesResponse> {
        let handler = self.plugin.search_references(&self.host, request.into_inner().into());
        let found = guarded("SearchEntityReferences", handler).await?;
        let candidates = found.into_iter().map(Into::into).collect();
        Ok(Response::new(v1::SearchEntityReferencesResponse { candidates }))
    }

    async fn authorize_entity_reference(
        &self,
        request: Request<v1::AuthorizeEntityReferenceRequest>,
    ) -> Answer<v1::AuthorizeEntityReferenceResponse> {
        let handler = self.plugin.authorize_reference(&self.host, request.into_inner().into());
        Ok(Response::new(guarded("AuthorizeEntityReference", handler).await?.into()))
    }

    async fn resolve_git_credential(
        &self,
        request: Request<v1::ResolveGitCredentialRequest>,
    ) -> Answer<v1::ResolveGitCredentialResponse> {
        let handler = self.plugin.resolve_git_credential(&self.host, request.into_inner().into());
        Ok(Response::new(guarded("ResolveGitCredential", handler).await?.into()))
    }

    async fn get_git_credential_binding(
        &self,
        request: Request<v1::GitCredentialBindingRequest>,
    ) -> Answer<v1::GitCredentialBindingResponse> {
        let handler = self.plugin.git_credential_binding(&self.host, request.into_inner().into());
        let binding = guarded("GetGitCredentialBinding", handler).await?.unwrap_or_default();
        Ok(Response::new(v1::GitCredentialBindingResponse { binding }))
    }

    async fn invoke_agent_tool(&self, request: Request<v1::AgentToolRequest>) -> Answer<v1::AgentToolResponse> {
        let handler = self.plugin.invoke_tool(&self.host, request.into_inner().into());
        Ok(Response::new(guarded("InvokeAgentTool", handler).await?.into()))
    }
}
