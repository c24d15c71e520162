//! What a client of the Model Context Protocol may ask: who this is, the list of tools, a call, and being told that the
//! list changed. One [`Server`] for each session, or for each request of clients without sessions; all share a
//! [`Desk`].
//!
//! Who asks and where its agent works comes with each HTTP request, as a [`Caller`] among the request's extensions.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult, ErrorCode, Extensions,
        Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter,
        Tool,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tracing::{Instrument, Span};

use super::shapes;
use crate::{
    actors::{OfferedTool, RegistryHandle, ToolChanges},
    domain::{
        action::Action,
        authorize::{Decision, authorize},
        calls::{
            exposed::{exposed_name, is_exposed_name},
            place::Named,
            tool::Surface,
        },
        platform::Scope,
        principal::Principal,
    },
    http::{ApiError, Stop},
    platform::Platform,
};

/// For the model that gets the tools.
const INSTRUCTIONS: &str = "Tools of the plugins that run on this kandev host, each named <plugin>__<tool>. The list \
                            changes when plugins start and stop. Give task_id or session_id in the endpoint's address \
                            when the tools are for the work on one task.";

/// Who asks, and where its agent works, as the request says.
#[derive(Debug, Clone)]
pub struct Caller {
    pub principal: Principal,
    pub scope: Scope,
    pub named: Named,
    /// Of the request: a session's own work is in none, and a call belongs to the request that asks for it.
    pub span: Span,
}

impl Caller {
    /// Of the HTTP request that brought a message.
    fn of(extensions: &Extensions) -> Result<&Self, ErrorData> {
        let caller = extensions.get::<::http::request::Parts>().and_then(|parts| parts.extensions.get::<Self>());
        caller.ok_or_else(|| shapes::refusal(&ApiError::Unauthenticated))
    }

    fn require(&self, action: Action) -> Result<(), ErrorData> {
        match authorize(self.principal, action) {
            Decision::Allow => Ok(()),
            Decision::Unauthenticated => Err(shapes::refusal(&ApiError::Unauthenticated)),
            Decision::Forbidden => Err(shapes::refusal(&ApiError::Forbidden)),
        }
    }

    /// An agent at a task sees what is offered there.
    fn surface(&self) -> Option<Surface> {
        let somewhere = !(self.named.task.is_empty() && self.named.session.is_empty());
        somewhere.then_some(Surface::KanbanTask)
    }
}

/// What all clients are served from.
pub struct Desk {
    pub registry: RegistryHandle,
    pub platform: Platform,
    /// Streams without an end end with its begin, calls with its grace.
    pub stop: Stop,
}

impl Desk {
    fn find(&self, name: &str) -> Option<OfferedTool> {
        if !is_exposed_name(name) {
            return None;
        }
        self.registry.tools(None).into_iter().find(|tool| exposed_name(&tool.plugin, &tool.tool().name) == name)
    }

    fn list(&self, caller: &Caller, cursor: &str) -> Result<ListToolsResult, ErrorData> {
        caller.require(Action::ToolRead)?;
        if !cursor.is_empty() && !is_exposed_name(cursor) {
            return Err(ErrorData::invalid_params("the cursor is not one that tools/list gave", None));
        }
        Ok(shapes::page(self.registry.tools(caller.surface()), cursor))
    }

    async fn call(&self, request: CallToolRequestParams, caller: &Caller) -> Result<CallToolResult, ErrorData> {
        caller.require(Action::ToolCall)?;
        let tool = self.find(&request.name).ok_or_else(|| shapes::unknown(&request.name))?;
        let wanted = caller.named.clone().for_tool();
        let place = self.platform.place(&caller.scope, &wanted).await;
        let place = place.map_err(|error| shapes::refusal(&ApiError::Place(error)))?;
        let arguments = request.arguments.unwrap_or_default();
        let called = self.registry.call_tool(tool.plugin.as_str(), &tool.tool().name, arguments, place).await;
        called.map_or_else(shapes::no_result, |called| Ok(shapes::result(called)))
    }
}

/// One client's side of the desk.
pub struct Server {
    desk: Arc<Desk>,
    /// Cancelled when the session has ended.
    ended: CancellationToken,
    /// The list as it was before a subscription was confirmed.
    changes: Mutex<Option<ToolChanges>>,
    /// Tells the session of changes; ends with it.
    news: OnceLock<AbortOnDropHandle<()>>,
}

impl Server {
    pub fn new(desk: Arc<Desk>, ended: CancellationToken) -> Self {
        Self { desk, ended, changes: Mutex::default(), news: OnceLock::new() }
    }
}

/// Methods that there are.
const KNOWN: [&str; 6] = ["initialize", "server/discover", "ping", "tools/list", "tools/call", "subscriptions/listen"];

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let host = Implementation::new("kandev-host", env!("CARGO_PKG_VERSION")).with_title("kandev host");
        ServerConfig::new(tools).with_server_info(host).with_instructions(INSTRUCTIONS)
    }

    /// The library gives what it cannot read as its own request to this, also of methods that there are.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match KNOWN.contains(&request.method.as_str()) {
            true => Err(shapes::misread(&request.method)),
            false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor).unwrap_or_default();
        self.desk.list(Caller::of(&context.extensions)?, &cursor)
    }

    /// Dropping the call cancels it in the plugin. Nobody gets the error then.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = Caller::of(&context.extensions)?;
        let call = self.desk.call(request, caller).instrument(caller.span.clone());
        tokio::select! {
            called = call => called.map(CallToolResponse::from),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
            () = self.ended.cancelled() => Err(ErrorData::internal_error("the session has ended", None)),
            // The head of the answer may have been sent: so it must be told here too.
            () = self.desk.stop.over() => Err(shapes::refusal(&ApiError::Stopping)),
        }
    }

    /// For the check of headers that repeat arguments.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.desk.find(name).map(|tool| shapes::tool(name.to_owned(), &tool))
    }

    /// Of a client with a session; it hears of changes on the session's own stream.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let changes = self.desk.registry.tool_changes();
        let _news = self.news.get_or_init(|| AbortOnDropHandle::new(tokio::spawn(tell(changes, context.peer))));
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // Here and not when it is confirmed: a change between the two would be told to nobody.
        let changes = self.desk.registry.tool_changes();
        *self.changes.lock().unwrap_or_else(PoisonError::into_inner) = Some(changes);
        Some(SubscriptionFilter::builder().tools_list_changed().build())
    }

    /// Of a client without a session: one stream for each subscription.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut changes = changes.unwrap_or_else(|| self.desk.registry.tool_changes());
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.desk.stop.begun() => return Ok(()),
                changed = changes.changed() => {
                    if changed.is_none() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Until the session or the host ends. Changes that come while the client does not read become one.
async fn tell(mut changes: ToolChanges, peer: Peer<RoleServer>) {
    while changes.changed().await.is_some() {
        if peer.notify_tool_list_changed().await.is_err() {
            return;
        }
    }
}
