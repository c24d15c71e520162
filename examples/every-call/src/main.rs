//! Example plugin: answers every call that the host makes today, and makes every call that it serves (see README.md).

mod tour;

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kandev_plugin_sdk::serve(tour::Tour).await
}
