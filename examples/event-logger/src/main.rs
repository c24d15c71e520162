//! Example plugin: counts and logs the events it is sent (see README.md).

mod counter;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kandev_plugin_sdk::serve(counter::EventCounter).await
}
