//! Builds the server around the routes, and stops it: the HTTP part of the stop ladder (architecture.md §6).

use std::{
    io,
    net::{SocketAddr, TcpListener},
    pin::pin,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix_web::{
    App, Error, HttpServer,
    body::{BoxBody, MessageBody},
    dev::{ServerHandle, ServiceRequest, ServiceResponse},
    middleware::{Next, from_fn},
    web::{Data, ServiceConfig},
};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Mcp, OperatorToken, Services, Stop, Tasks, linger, routes, trace,
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
    stop: Stop,
    drain_grace: Duration,
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
    let (stop, hub, mcp) = (services.stop.clone(), services.hub.clone(), services.mcp.clone());
    let (services, token) = (Data::from(services), Data::new(token));
    let configure = move |config: &mut ServiceConfig| {
        let inside = Rc::new(Inside::new(services.clone()));
        let stop = services.stop.of_worker();
        config.app_data(services.clone()).app_data(token.clone()).app_data(inside).app_data(stop);
        config.configure(routes::configure);
    };
    let mut running = run(listener, &timing, &limits, tasks, stop, configure)?;
    (running.hub, running.mcp) = (Some(hub), Some(mcp));
    Ok(running)
}

/// The server around whatever `configure` registers.
fn run(
    listener: TcpListener,
    timing: &Timing,
    limits: &Limits,
    tasks: Tasks,
    stop: Stop,
    configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Running> {
    let address = listener.local_addr()?;
    let pace = timing.timer_pace;
    let app = move || {
        #[expect(clippy::disallowed_methods, reason = "one for each worker, and it ends with the worker's runtime")]
        actix_web::rt::spawn(pace::keep(pace));
        App::new().configure(configure.clone()).wrap(from_fn(around))
    };
    let server = HttpServer::new(app)
        .workers(limits.http_workers)
        .max_connections(limits.http_connections)
        .keep_alive(timing.keep_alive)
        .client_request_timeout(timing.header_timeout)
        .client_disconnect_timeout(timing.linger)
        // A client that has closed its side is gone: what it asked for is dropped, calls into plugins included.
        .h1_allow_half_closed(false)
        .shutdown_timeout(seconds_to_answer(timing.drain_grace))
        .disable_signals()
        .listen(listener)?
        .run();
    let handle = server.handle();
    let (server, drain_grace) = (tokio::spawn(server), timing.drain_grace);
    Ok(Running { address, handle, server, tasks, stop, drain_grace, hub: None, mcp: None })
}

/// What stands around every route. It is one layer, because each has a future and a body in boxes of its own.
async fn around(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    trace::request(request, |request| linger::hold_unread_body(request, next)).await
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

    /// Takes no more connections and ends streams, gives open requests `timing.drain_grace` to end, answers those that
    /// have not, closes every connection, then waits until commands whose clients may be gone are finished. All of it
    /// within `deadline`; what is not finished by then is counted.
    pub async fn stop(self, deadline: Duration) -> Stopped {
        let begin = tokio::time::Instant::now();
        // They would go on for ever.
        self.stop.begin();
        self.hub.iter().for_each(Hub::close);
        // At the deadline nobody is answered any more.
        let grace = self.drain_grace.min(deadline / 8 * 7);
        let mut stopping = pin!(timeout(deadline, self.handle.stop(true)));
        let in_time = match timeout(grace, stopping.as_mut()).await {
            Ok(stopped) => stopped.is_ok(),
            Err(_) => {
                self.stop.end_grace();
                stopping.await.is_ok()
            }
        };
        if !in_time {
            tracing::warn!("the server did not stop in time");
            self.server.abort();
        }
        self.mcp.iter().for_each(Mcp::end);
        let unfinished = self.tasks.close(deadline.saturating_sub(begin.elapsed())).await;
        Stopped { unfinished }
    }
}

/// What is left at least for the answers to those whom the grace did not suffice; milliseconds.
const ANSWERING_MS: u128 = 250;

/// When the server closes what is open, counted from the begin of its stop: behind the grace, when all were answered.
/// It counts in seconds; a part of one counts as a whole.
fn seconds_to_answer(grace: Duration) -> u64 {
    (grace.as_millis() + ANSWERING_MS).div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
