//! The guest half: [`serve`] is what a plugin's `main` calls.
//!
//! Owns the cookie check, the socket, the handshake line and go-plugin's own services: health, broker, controller and
//! stdio. The plugin's services are the caller's, as `Routes`. Absent on purpose: serving in clear (a host that did not
//! ask for mutual TLS is refused), and announcing services of the plugin's own on the broker.

mod broker;
mod controller;
mod health;
mod socket;
mod stdio;

use std::env;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

pub use broker::{Broker, DialError};
pub use health::Health;

use crate::handshake::{self, Handshake};
use crate::owned::Owner;
use crate::proto::grpc_broker_server::GrpcBrokerServer;
use crate::proto::grpc_controller_server::GrpcControllerServer;
use crate::proto::grpc_stdio_server::GrpcStdioServer;
use crate::serve::serve as serve_routes;
use crate::tls::{Identity, TlsError};

/// How long calls in flight may go on after Shutdown; then their connections are cut. go-plugin itself cuts them at
/// once, and its host waits 2 s for the exit.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);

/// How far away the next timer is at most.
const PACE: Duration = Duration::from_secs(5);

/// How long a peer may take for its TLS handshake.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a plugin and its host must agree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeConfig {
    /// The magic cookie: name and value of the variable by which the program knows that it was started as a plugin.
    pub cookie: (String, String),
    /// The application protocol version that is announced.
    pub protocol_version: u32,
    /// The largest message, in bytes, that go-plugin's own services take from the host. The limits of the plugin's
    /// services are set on their generated servers.
    pub max_message_bytes: usize,
}

/// Why a plugin does not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The cookie is missing or wrong: somebody started the program by hand. A text for that person was printed.
    #[error("this program is a plugin: it is started by its host, not by hand")]
    NotStartedByHost,
    /// The host did not ask for mutual TLS.
    #[error("the host sent no certificate in PLUGIN_CLIENT_CERT; let it turn automatic mutual tls on")]
    NoClientCertificate,
    /// The host's certificate cannot be read.
    #[error("the host's certificate in PLUGIN_CLIENT_CERT is not PEM: {0}")]
    BadClientCertificate(rustls::pki_types::pem::Error),
    /// The own certificate could not be made, or the host's not be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No socket could be bound.
    #[error("cannot bind the socket {}: {source}; its folder must exist and its path have at most 107 bytes", .path.display())]
    Socket {
        /// The socket's path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Standard output or a signal handler could not be set up.
    #[error("cannot set up the plugin process: {0}")]
    Process(#[source] io::Error),
}

/// Serves until the host calls Shutdown: prints the handshake line and runs the `Routes` that `build` makes, with
/// go-plugin's services beside them. From before `build` on, what the program prints on stdout goes to the host's log.
///
/// On [`ServeError::NotStartedByHost`] a text was printed on stderr; `main` should then exit with code 1. SIGINT is
/// ignored, since a terminal sends it to the host's plugins too.
pub async fn serve(config: ServeConfig, build: impl FnOnce(Broker) -> Routes) -> Result<(), ServeError> {
    serve_with_goodbye(config, build, std::future::ready(())).await
}

/// As [`serve`], and after Shutdown runs `goodbye` beside the calls that are still in flight. Connections to the host
/// stay until it is done, so that it can save what it must. It has no limit here: give it one well below the host's
/// patience, which is 2 s with go-plugin's own host.
pub async fn serve_with_goodbye(
    config: ServeConfig,
    build: impl FnOnce(Broker) -> Routes,
    goodbye: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    check_cookie(&config)?;
    let pem = env::var("PLUGIN_CLIENT_CERT").map_err(|_| ServeError::NoClientCertificate)?;
    let host = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(ServeError::BadClientCertificate)?;
    let identity = Identity::generate()?;
    let tls = identity.server_config(&host)?;
    let socket = socket::Socket::bind()?;
    // tokio's handler stays for the process's life and does nothing when nobody listens.
    let _interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Process)?;
    let (mut stdout, printed) = stdio::Redirected::begin().map_err(ServeError::Process)?;

    let owner = Owner::default();
    let stop = CancellationToken::new();
    let health = Health::default();
    let broker = Broker::new(Arc::new(identity), host.to_vec(), health.clone(), owner.clone());
    let routes = build(broker.clone())
        .add_service(HealthServer::new(health))
        .add_service(
            GrpcBrokerServer::new(broker.service(stop.clone())).max_decoding_message_size(config.max_message_bytes),
        )
        .add_service(GrpcControllerServer::new(controller::Controller { stop: stop.clone() }))
        .add_service(GrpcStdioServer::new(stdio::Stdio::new(printed)));

    let certificate = broker.certificate().to_vec();
    let line = handshake::format(&Handshake { socket: socket.path().into(), certificate }, config.protocol_version);
    let server = serve_routes(socket.listener()?, tls, routes, ACCEPT_TIMEOUT, &owner, stop.clone().cancelled_owned());
    stdout.original().and_then(|mut original| writeln!(original, "{line}")).map_err(ServeError::Process)?;
    let cut = async {
        stop.cancelled().await;
        stdout.end();
        sleep(SHUTDOWN_GRACE).await;
    };
    let calls = async {
        tokio::select! {
            () = server => {}
            () = cut => {}
            () = keep_pace() => {}
        }
    };
    let goodbye = async {
        stop.cancelled().await;
        goodbye.await;
    };
    tokio::join!(calls, goodbye);
    owner.end(SHUTDOWN_GRACE).await;
    Ok(())
}

/// Runs for ever, so that the runtime always has a timer that is nearer than the deadlines that come with calls: for a
/// timer before all others tokio wakes the thread that waits for the network, and without this each call's would be
/// one.
async fn keep_pace() {
    let mut ticks = interval(PACE);
    loop {
        ticks.tick().await;
    }
}

fn check_cookie(config: &ServeConfig) -> Result<(), ServeError> {
    let (name, value) = &config.cookie;
    if env::var(name).is_ok_and(|found| found == *value) {
        return Ok(());
    }
    let text = "This binary is a plugin. These are not meant to be executed directly.\n\
                Please execute the program that consumes these plugins, which will\n\
                load any plugins automatically\n";
    // Without a stderr there is nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
    Err(ServeError::NotStartedByHost)
}
