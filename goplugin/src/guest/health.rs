//! The health service: whether the plugin says that it serves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::HEALTH_SERVICE;

/// What the plugin answers to its host's pings: at first that it serves.
#[derive(Clone)]
pub struct Health {
    serving: Arc<watch::Sender<bool>>,
    probe: Arc<OnceLock<Probe>>,
}

type Probe = Box<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

impl Default for Health {
    fn default() -> Self {
        Health { serving: Arc::new(watch::Sender::new(true)), probe: Arc::default() }
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").field("serving", &*self.serving.borrow()).finish_non_exhaustive()
    }
}

impl Health {
    /// Answers SERVING from now on, or NOT_SERVING. A host treats the latter as a failed ping, and at the start it
    /// refuses the plugin.
    pub fn set_serving(&self, serving: bool) {
        self.serving.send_replace(serving);
    }

    /// Asks `probe` at every ping from now on, and answers SERVING only when it says true (and `set_serving` did not
    /// say otherwise). A ping takes as long as its probe; the host's deadline cuts both. The first probe stays.
    pub fn set_probe<F, A>(&self, probe: F)
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = bool> + Send + 'static,
    {
        let _ = self.probe.set(Box::new(move || Box::pin(probe())));
    }

    async fn probed(&self) -> bool {
        match self.probe.get() {
            Some(probe) => probe().await,
            None => true,
        }
    }
}

fn response(serving: bool) -> HealthCheckResponse {
    let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

/// The empty name stands for the whole server.
fn check_name(request: &Request<HealthCheckRequest>) -> Result<(), Status> {
    match request.get_ref().service.as_str() {
        "" | HEALTH_SERVICE => Ok(()),
        _ => Err(Status::not_found("unknown service")),
    }
}

#[tonic::async_trait]
impl health_server::Health for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        check_name(&request)?;
        let probed = self.probed().await;
        Ok(Response::new(response(probed && *self.serving.borrow())))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        check_name(&request)?;
        let changes = WatchStream::new(self.serving.subscribe());
        Ok(Response::new(Box::pin(changes.map(|serving| Ok(response(serving))))))
    }
}
