//! The layer in front of every Host RPC: capability, concurrency, a deadline, and a net for panics.
//!
//! It judges by the request's path and the plugin the service was made for, before a byte of the body is decoded.
//! What an RPC does is the handlers' part; the authority of a request means nothing and is not looked at.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::Semaphore, time::timeout};
use tonic::{
    Code, Status,
    body::Body,
    codegen::{
        Service,
        http::{Request, Response},
    },
    server::NamedService,
};
use tower::ServiceExt;
use tracing::{Instrument, debug_span, error, warn};

use super::{status, table};
use crate::domain::{capability::CapabilitySet, id::PluginId};

/// Wraps the generated service of one plugin.
#[derive(Clone, Debug)]
pub struct Gate<S> {
    inner: S,
    plugin: PluginId,
    capabilities: CapabilitySet,
    /// Shared by all connections of the plugin. A call that finds no permit waits in its connection, unread, so that
    /// the plugin's flow control is the bound.
    permits: Arc<Semaphore>,
    timeout: Duration,
    message_bytes: u64,
}

/// How much a plugin may ask at once, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Calls worked on at once.
    pub calls: usize,
    /// One call, from its head to its answer, its turn among the others included.
    pub timeout: Duration,
    /// The limit that messages are decoded with; the gate only names it in the refusal.
    pub message_bytes: u64,
}

impl<S> Gate<S> {
    /// A gate for `plugin`.
    pub fn new(inner: S, plugin: PluginId, capabilities: CapabilitySet, bounds: Bounds) -> Self {
        let Bounds { calls, timeout, message_bytes } = bounds;
        Self { inner, plugin, capabilities, permits: Arc::new(Semaphore::new(calls)), timeout, message_bytes }
    }

    /// Order as wire.md §4: capability first, then whether the host serves the RPC.
    fn admit(&self, rpc: &str) -> Result<&'static str, Status> {
        let rule = table::rule(rpc).ok_or_else(|| Status::unimplemented("the Host service has no such method"))?;
        match rule.needs {
            Some(needed) if !self.capabilities.allows(needed) => {
                Err(Status::permission_denied(format!("capability '{needed}' not declared")))
            }
            _ => rule.served.map(|()| rule.rpc).map_err(status::not_served),
        }
    }
}

impl<S: NamedService> NamedService for Gate<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Readiness is the permit, and waiting for it must not depend on who polls.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let rpc = match self.admit(request.uri().path().rsplit('/').next().unwrap_or_default()) {
            Ok(rpc) => rpc,
            Err(refusal) => return Box::pin(async move { Ok(refusal.into_http()) }),
        };
        let span = debug_span!("host_call", plugin.id = %self.plugin, rpc);
        let plugin = self.plugin.clone();
        let (inner, permits, limit) = (self.inner.clone(), self.permits.clone(), self.message_bytes);
        let serve = async move {
            let _permit = permits.acquire().await;
            // The message is received in here too: a plugin that sends half of one holds its turn no longer.
            AssertUnwindSafe(inner.oneshot(request)).catch_unwind().await
        };
        let served = timeout(self.timeout, serve);
        let handle = async move {
            match served.await {
                Ok(Ok(Ok(response))) => Ok(settle(response, limit, &plugin, rpc)),
                Ok(Ok(Err(never))) => match never {},
                Err(_) => {
                    warn!(plugin.id = %plugin, rpc, "a host call took too long");
                    Ok(status::too_late().into_http())
                }
                Ok(Err(panic)) => {
                    error!(plugin.id = %plugin, rpc, cause = status::panic_text(&*panic), "a host call panicked");
                    Ok(status::internal().into_http())
                }
            }
        };
        Box::pin(handle.instrument(span))
    }
}

/// Tells of a fault of the host whose call it was; the cause is in the line before. tonic refuses a message beyond its
/// decoding limit with `OutOfRange`, which no handler uses; gRPC's own code for it, and what Go plugins look for, is
/// `ResourceExhausted`.
fn settle(response: Response<Body>, limit: u64, plugin: &PluginId, rpc: &str) -> Response<Body> {
    match Status::from_header_map(response.headers()).map(|refused| refused.code()) {
        Some(Code::OutOfRange) => {
            Status::resource_exhausted(format!("the message is larger than {limit} bytes")).into_http()
        }
        Some(code @ (Code::Internal | Code::Unavailable | Code::DataLoss)) => {
            warn!(plugin.id = %plugin, rpc, ?code, "a host call failed");
            response
        }
        _ => response,
    }
}
