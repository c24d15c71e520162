//! The hashicorp/go-plugin gRPC protocol for Rust: handshake line, one-time mutual TLS, broker, stdio, controller and
//! health. [`host`] spawns and supervises a plugin process, [`guest`] is what such a process serves.
//!
//! Interoperates with the real Go library, version 1.5.1 or newer, in both roles (tests/life.rs, tests/go_host.rs).
//! What is absent on purpose: the old net/rpc protocol, TCP sockets, the multiplexed broker, reattaching, Windows and
//! macOS, and any knowledge of the services that run over the connection.
//!
//! A host:
//!
//! ```no_run
//! # use std::{sync::Arc, time::Duration};
//! # use goplugin::host::{Forker, LaunchSpec, StopLadder, Timing, launch};
//! # async fn host() -> Result<(), Box<dyn std::error::Error>> {
//! let forker = Forker::start()?; // once for each program
//! let spec = LaunchSpec {
//!     executable: "/opt/plugins/echo".into(),
//!     program: None,
//!     working_dir: "/opt/plugins".into(),
//!     env: vec![("PATH".into(), "/usr/bin:/bin".into())],
//!     cookie: ("ECHO_PLUGIN".into(), "v1".into()),
//!     protocol_version: 1,
//!     socket_root: "/run/echo".into(),
//!     max_message_bytes: 4 << 20,
//! };
//! let timing = Timing {
//!     start_timeout: Duration::from_secs(30),
//!     dial_timeout: Duration::from_secs(5),
//!     ping_timeout: Duration::from_secs(5),
//!     accept_timeout: Duration::from_secs(10),
//!     pipe_grace: Duration::from_millis(500),
//! };
//! let services_for_the_plugin = tonic::service::Routes::default();
//! let plugin = launch(&forker, spec, timing, services_for_the_plugin, Arc::new(|line| println!("{line:?}"))).await?;
//! // … generated clients on `plugin.channel()` …
//! let ladder = StopLadder { stop_grace: Duration::from_secs(2), term_grace: Duration::from_secs(1) };
//! println!("{}", plugin.stop(ladder).await);
//! # Ok(())
//! # }
//! ```
//!
//! A plugin:
//!
//! ```no_run
//! use goplugin::guest::{ServeConfig, serve};
//!
//! #[tokio::main]
//! async fn main() -> std::process::ExitCode {
//!     let config = ServeConfig {
//!         cookie: ("ECHO_PLUGIN".into(), "v1".into()),
//!         protocol_version: 1,
//!         max_message_bytes: 4 << 20,
//!     };
//!     // `broker.dial(1)` connects to the host's services; the plugin's own go into the routes.
//!     match serve(config, |_broker| tonic::service::Routes::default()).await {
//!         Ok(()) => std::process::ExitCode::SUCCESS,
//!         Err(_) => std::process::ExitCode::FAILURE,
//!     }
//! }
//! ```

#[cfg(not(target_os = "linux"))]
compile_error!(
    "goplugin runs on Linux only: a host's promise that no plugin outlives it rests on the parent-death signal and on \
     pidfds, which other systems lack"
);

pub mod guest;
pub mod handshake;
pub mod host;

mod dial;
mod owned;
mod serve;
mod text;
mod tls;

pub use tls::warm_up_crypto;

/// go-plugin's own services, generated from proto/goplugin.proto.
mod proto {
    #![expect(clippy::all, unused_qualifications, reason = "generated")]
    tonic::include_proto!("plugin");
}

/// The service name that go-plugin's health check asks for.
const HEALTH_SERVICE: &str = "plugin";
