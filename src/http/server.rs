//! Builds the server around the routes, and stops it: the HTTP part of the stop ladder (architecture.md §6).

use std::{
    io,
    net::{SocketAddr, TcpListener},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix_web::{
    App, HttpServer,
    dev::ServerHandle,
    middleware::from_fn,
    web::{Data, ServiceConfig},
};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Mcp, OperatorToken, Services, Tasks, linger, routes, trace,
    ws::{Hub, Inside},
};
use crate::{
    config::{Limits, Timing},
    pace,
};

/// Takes the address. Port 0 takes a free one; the listener's own address tells which.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// A server at work.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    handle: ServerHandle,
    server: JoinHandle<io::Result<()>>,
    tasks: Tasks,
    hub: Option<Hub>,
    mcp: Option<Mcp>,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Commands that were still not finished at the deadline.
    pub unfinished: usize,
}

/// Starts to serve. `token` tells who is the operator. Must be called on a tokio runtime.
///
/// # Errors
/// When the listener cannot be used or the workers cannot be started.
pub fn start(listener: TcpListener, services: Arc<Services>, token: OperatorToken) -> io::Result<Running> {
    let (timing, limits, tasks) = (services.timing.clone(), services.limits.clone(), services.tasks.clone());
    let (hub, mcp) = (services.hub.clone(), services.mcp.clone());
    let (services, token) = (Data::from(services), Data::new(token));
    let configure = move |config: &mut ServiceConfig| {
        let inside = Rc::new(Inside::new(services.clone()));
        config.app_data(services.clone()).app_data(token.clone()).app_data(inside).configure(routes::configure);
    };
    let mut running = run(listener, &timing, &limits, tasks, configure)?;
    (running.hub, running.mcp) = (Some(hub), Some(mcp));
    Ok(running)
}

/// The server around whatever `configure` registers.
fn run(
    listener: TcpListener,
    timing: &Timing,
    limits: &Limits,
    tasks: Tasks,
    configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Running> {
    let address = listener.local_addr()?;
    let pace = timing.timer_pace;
    let app = move || {
        #[expect(clippy::disallowed_methods, reason = "one for each worker, and it ends with the worker's runtime")]
        actix_web::rt::spawn(pace::keep(pace));
        App::new().configure(configure.clone()).wrap(from_fn(linger::hold_unread_body)).wrap(from_fn(trace::request))
    };
    let server = HttpServer::new(app)
        .workers(limits.http_workers)
        .max_connections(limits.http_connections)
        .keep_alive(timing.keep_alive)
        .client_request_timeout(timing.header_timeout)
        .client_disconnect_timeout(timing.linger)
        // A client that has closed its side is gone: what it asked for is dropped, calls into plugins included.
        .h1_allow_half_closed(false)
        .shutdown_timeout(whole_seconds(timing.drain_grace))
        .disable_signals()
        .listen(listener)?
        .run();
    let handle = server.handle();
    Ok(Running { address, handle, server: tokio::spawn(server), tasks, hub: None, mcp: None })
}

impl Running {
    /// Where it listens; the port is the real one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resolves when the server ended by itself, which is a fault: it should end by [`Running::stop`] only.
    pub async fn failed(&mut self) -> io::Error {
        match (&mut self.server).await {
            Ok(Ok(())) => io::Error::other("the server ended without being asked"),
            Ok(Err(error)) => error,
            Err(error) => io::Error::other(error),
        }
    }

    /// Takes no more connections, gives open requests `timing.drain_grace` (rounded up to seconds) to end, closes
    /// every connection, then waits until commands whose clients may be gone are finished. All of it within
    /// `deadline`; what is not finished by then is counted.
    pub async fn stop(self, deadline: Duration) -> Stopped {
        let begin = tokio::time::Instant::now();
        // They would go on for ever.
        self.hub.iter().for_each(Hub::close);
        self.mcp.iter().for_each(Mcp::close);
        if timeout(deadline, self.handle.stop(true)).await.is_err() {
            tracing::warn!("the server did not stop in time");
            self.server.abort();
        }
        self.mcp.iter().for_each(Mcp::end);
        let unfinished = self.tasks.close(deadline.saturating_sub(begin.elapsed())).await;
        Stopped { unfinished }
    }
}

/// The server counts in seconds; a part of one counts as a whole.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
