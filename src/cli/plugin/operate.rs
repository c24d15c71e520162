//! `list`, `show`, `enable`, `disable`, `remove`: one request each.

use reqwest::Method;
use serde_json::Value;

use super::view::{self, PluginView};
use crate::{
    cli::{client::Client, error::CliError, output::Output},
    domain::{clean, id::PluginId},
};

pub const LIST_EXAMPLES: &str = "\
Examples:
  kandev-host plugin list
  KANDEV_URL=https://plugins.example.test KANDEV_ADMIN_TOKEN_FILE=token kandev-host plugin list --json";

pub const SHOW_EXAMPLES: &str = "\
Examples:
  kandev-host plugin show event-logger
  kandev-host plugin show event-logger --json | jq -r .status";

pub const ENABLE_EXAMPLES: &str = "\
Examples:
  kandev-host plugin enable event-logger

Waits until the plugin is healthy; exit code 5 when its start failed. A plugin that runs is left alone.";

pub const DISABLE_EXAMPLES: &str = "\
Examples:
  kandev-host plugin disable event-logger

Waits until its process has ended. Events published meanwhile are not kept for it.";

pub const ROLLBACK_EXAMPLES: &str = "\
Examples:
  kandev-host plugin rollback event-logger

The host keeps the version that the last upgrade replaced. Its files are compared with their checksums, then it takes
the place of the present one, which is kept in turn: a second rollback returns to it. What the plugin stored stays as it
is. Exit code 4: there is no version to go back to; 7: it did not come up, the present one is installed again.";

pub const REMOVE_EXAMPLES: &str = "\
Examples:
  kandev-host plugin remove event-logger

There is no way back: what the plugin stored is gone as well.";

/// Longest foreign text in a message, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Prints every plugin.
pub async fn list(client: &Client, output: &Output) -> Result<(), CliError> {
    let answer = client.get(&["api", "plugins"]).await?;
    let plugins: Vec<PluginView> = part(&answer["plugins"])?;
    output.result(&answer, || match plugins.is_empty() {
        true => "no plugin is installed".to_owned(),
        false => view::list(&plugins),
    })
}

/// Prints one plugin.
pub async fn show(id: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    let answer = client.get(&["api", "plugins", id.as_str()]).await?;
    let plugin: PluginView = part(&answer)?;
    output.result(&answer, || plugin.text())
}

/// Starts a plugin.
pub async fn enable(id: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    output.progress(&format!("starting {id}"));
    let answer = client.send(client.request(Method::POST, &["api", "plugins", id.as_str(), "enable"])).await?;
    output.result(&answer, || format!("{id} is active"))
}

/// Stops a plugin.
pub async fn disable(id: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    output.progress(&format!("stopping {id}"));
    let answer = client.send(client.request(Method::POST, &["api", "plugins", id.as_str(), "disable"])).await?;
    output.result(&answer, || format!("{id} is disabled"))
}

/// Goes back to the version before.
pub async fn rollback(id: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    output.progress(&format!("going back to the version of {id} before"));
    let answer = client.send(client.request(Method::POST, &["api", "plugins", id.as_str(), "rollback"])).await?;
    let plugin: PluginView = part(&answer["plugin"])?;
    output.result(&answer, || format!("{} {} is {}", plugin.id, plugin.version, plugin.state()))
}

/// Uninstalls a plugin.
pub async fn remove(id: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    output.progress(&format!("removing {id}"));
    let answer = client.send(client.request(Method::DELETE, &["api", "plugins", id.as_str()])).await?;
    output.result(&answer, || format!("{id} is removed"))
}

/// A part of the answer in the form it should have.
pub fn part<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T, CliError> {
    let read = T::deserialize(value);
    read.map_err(|error| CliError::Answer(clean::single_line(&error.to_string(), MAX_LINE_BYTES)))
}
