//! Example plugin: counts and logs the events it is sent (see README.md).
//!
//! This file owns serving: the handshake constants of every kandev plugin, and the search for the host beside it.

mod counter;
mod host;

use std::process::ExitCode;

use goplugin::guest::{ServeConfig, serve};
use kandev_proto::v1::plugin_server::PluginServer;
use tonic::service::Routes;

/// A webhook body of 16 MiB, the most a manifest can ask for, and some headroom.
const MAX_MESSAGE_BYTES: usize = 17 << 20;

#[tokio::main]
async fn main() -> ExitCode {
    let config = ServeConfig {
        cookie: ("KANDEV_PLUGIN".into(), "kandev-plugin-v1".into()),
        protocol_version: 1,
        max_message_bytes: MAX_MESSAGE_BYTES,
    };
    let served = serve(config, |broker| {
        let counter = counter::EventCounter::new(host::find(broker));
        Routes::new(PluginServer::new(counter).max_decoding_message_size(MAX_MESSAGE_BYTES))
    });
    match served.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("event-logger: {error}");
            ExitCode::FAILURE
        }
    }
}
