//! The trait that an author writes: one method for every call of the host, each with the contract's default answer
//! (wire.md §2). How it is reached is `service.rs`, how it starts and stops `serve.rs`.

use std::future::Future;

use crate::{
    ActionRequest, ActionResponse, Authorization, Error, Event, GitCredential, GitRequest, Host, ReferenceCandidate,
    ReferenceSearch, ReferenceUse, Result, ToolRequest, ToolResponse, WebhookRequest, WebhookResponse,
};

/// A plugin. Write the methods you need as `async fn`; the others answer what the contract says.
///
/// Calls come concurrently, except events: those come one at a time, in order. A call of `host` waits a while when the
/// host has not announced itself yet. A panic is answered as an error and logged; the process lives on.
///
/// ```
/// use kandev_plugin_sdk::{Event, Host, Plugin, Result};
///
/// struct Greeter;
///
/// impl Plugin for Greeter {
///     async fn on_event(&self, _host: &Host, event: Event) -> Result<()> {
///         tracing::info!(kind = event.kind, "seen");
///         Ok(())
///     }
/// }
/// ```
#[expect(unused_variables, reason = "the names are for the documentation; the defaults need none of them")]
pub trait Plugin: Send + Sync + 'static {
    /// Runs once, beside the calls, as soon as the host can be called. An error is logged.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Host, Plugin, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn on_start(&self, host: &Host) -> Result<()> {
    ///         let config = host.config().await?;
    ///         tracing::info!(boards = config.get::<u32>("boards")?, "ready");
    ///         Ok(())
    ///     }
    /// }
    /// ```
    fn on_start(&self, host: &Host) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// Runs once when the host stops the plugin, beside the calls still in flight; the host can still be called. It is
    /// given [`Settings::stop_limit`](crate::Settings::stop_limit). A plugin that is killed does not see it.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Host, Plugin, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn on_stop(&self, host: &Host) -> Result<()> {
    ///         host.state("runs").set("last", &serde_json::json!({"clean": true})).await
    ///     }
    /// }
    /// ```
    fn on_stop(&self, host: &Host) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// `DeliverEvent`: an event that the manifest subscribes to. `Ok` acknowledges it; after an error it comes again
    /// with the same id, four times in all. By default every event is acknowledged.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Event, Host, Plugin, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn on_event(&self, host: &Host, event: Event) -> Result<()> {
    ///         host.state("seen").set(&event.kind, &event.payload).await
    ///     }
    /// }
    /// ```
    fn on_event(&self, host: &Host, event: Event) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }

    /// `HandleWebhook`: an HTTP request to a webhook of the manifest. An error makes the host answer 502. By default
    /// 404 with an empty body.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Host, Plugin, Result, WebhookRequest, WebhookResponse};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn handle_webhook(&self, _host: &Host, request: WebhookRequest) -> Result<WebhookResponse> {
    ///         match request.key.as_str() {
    ///             "ping" => Ok(WebhookResponse::text("pong")),
    ///             _ => Ok(WebhookResponse::new(404)),
    ///         }
    ///     }
    /// }
    /// ```
    fn handle_webhook(
        &self,
        host: &Host,
        request: WebhookRequest,
    ) -> impl Future<Output = Result<WebhookResponse>> + Send {
        async { Ok(WebhookResponse::not_found()) }
    }

    /// `HandleAction`: a user's action. An error of the plugin's own becomes an HTTP answer with the status of its code
    /// and `{"error": text}`; a bug, or a failed call of the host, becomes 503.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{ActionRequest, ActionResponse, Error, Host, Plugin, Result};
    /// # struct Mine;
    /// # #[derive(serde::Deserialize)]
    /// struct Rename { title: String }
    ///
    /// impl Plugin for Mine {
    ///     async fn handle_action(&self, _host: &Host, request: ActionRequest) -> Result<ActionResponse> {
    ///         let Rename { title } = request.json()?; // HTTP 400 when it does not fit
    ///         if title.is_empty() {
    ///             return Err(Error::invalid_argument("title is required"));
    ///         }
    ///         ActionResponse::json(&serde_json::json!({"title": title, "by": request.context.actor_id}))
    ///     }
    /// }
    /// ```
    fn handle_action(
        &self,
        host: &Host,
        request: ActionRequest,
    ) -> impl Future<Output = Result<ActionResponse>> + Send {
        async { Err(Error::not_implemented("action handler")) }
    }

    /// `SearchEntityReferences`: candidates for what a user types.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Host, Plugin, ReferenceCandidate, ReferenceSearch, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn search_references(&self, _: &Host, search: ReferenceSearch) -> Result<Vec<ReferenceCandidate>> {
    ///         let found = ReferenceCandidate {
    ///             provider_local_id: "ABC-1".into(),
    ///             title: format!("A match for {}", search.query),
    ///             url: "https://tracker.example/ABC-1".into(),
    ///             ..Default::default()
    ///         };
    ///         Ok(vec![found])
    ///     }
    /// }
    /// ```
    fn search_references(
        &self,
        host: &Host,
        search: ReferenceSearch,
    ) -> impl Future<Output = Result<Vec<ReferenceCandidate>>> + Send {
        async { Err(Error::not_implemented("entity reference searcher")) }
    }

    /// `AuthorizeEntityReference`: whether a reference may be used. The host waits 1.5 s; an error counts as denied.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Authorization, Host, Plugin, ReferenceUse, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn authorize_reference(&self, _: &Host, request: ReferenceUse) -> Result<Authorization> {
    ///         Ok(match request.reference.get("scope").and_then(|scope| scope.as_str()) {
    ///             Some("public") => Authorization::Allowed,
    ///             _ => Authorization::Denied("only public issues".into()),
    ///         })
    ///     }
    /// }
    /// ```
    fn authorize_reference(
        &self,
        host: &Host,
        request: ReferenceUse,
    ) -> impl Future<Output = Result<Authorization>> + Send {
        async { Err(Error::not_implemented("entity reference authorizer")) }
    }

    /// `ResolveGitCredential`: user name and secret for a repository.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Error, GitCredential, GitRequest, Host, Plugin, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn resolve_git_credential(&self, host: &Host, _request: GitRequest) -> Result<GitCredential> {
    ///         let secret = host.secret("git-token").await?;
    ///         let secret = secret.ok_or_else(|| Error::failed_precondition("connect the account first"))?;
    ///         Ok(GitCredential { username: "x-access-token".into(), secret, expires_at: None })
    ///     }
    /// }
    /// ```
    fn resolve_git_credential(
        &self,
        host: &Host,
        request: GitRequest,
    ) -> impl Future<Output = Result<GitCredential>> + Send {
        async { Err(Error::not_implemented("git credential resolver")) }
    }

    /// `GetGitCredentialBinding`: the revision of what [`Plugin::resolve_git_credential`] would answer; a new one makes
    /// the host ask again, `None` says that access was revoked.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{GitRequest, Host, Plugin, Result};
    /// # struct Mine;
    /// impl Plugin for Mine {
    ///     async fn git_credential_binding(&self, _: &Host, request: GitRequest) -> Result<Option<String>> {
    ///         Ok((request.host == "git.example").then(|| "account-7".to_owned()))
    ///     }
    /// }
    /// ```
    fn git_credential_binding(
        &self,
        host: &Host,
        request: GitRequest,
    ) -> impl Future<Output = Result<Option<String>>> + Send {
        async { Err(Error::not_implemented("git credential binder")) }
    }

    /// `InvokeAgentTool`: an agent calls a tool of the manifest. The host waits 30 s and does not repeat it. What the
    /// agent should read is [`ToolResponse::error`], not `Err`.
    ///
    /// ```
    /// # use kandev_plugin_sdk::{Host, Plugin, Result, ToolRequest, ToolResponse};
    /// # struct Mine;
    /// # #[derive(serde::Deserialize)]
    /// struct Weather { city: String }
    ///
    /// impl Plugin for Mine {
    ///     async fn invoke_tool(&self, _: &Host, request: ToolRequest) -> Result<ToolResponse> {
    ///         let Weather { city } = request.parse()?;
    ///         Ok(ToolResponse::text(format!("rain in {city}")))
    ///     }
    /// }
    /// ```
    fn invoke_tool(&self, host: &Host, request: ToolRequest) -> impl Future<Output = Result<ToolResponse>> + Send {
        async { Err(Error::not_implemented("agent tool invocation")) }
    }
}
