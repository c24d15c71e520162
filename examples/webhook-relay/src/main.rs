//! Example plugin: verifies a signed webhook and relays it as an event (see README.md).

mod relay;
mod signature;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kandev_plugin_sdk::serve(relay::Relay).await
}
