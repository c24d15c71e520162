//! `secret …`: the secrets that the operator keeps in a running host, and the plugins that may reveal each.
//!
//! A value comes from a file or from standard input, never as an argument: other users see arguments, and shells keep
//! them.

use std::{
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use reqwest::Method;
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    client::Client,
    error::CliError,
    output::{Output, table},
    plugin::{Host, part},
    runtime,
};
use crate::{config::Lookup, domain::id::PluginId};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host secret set deploy-key --file key.pem
  kandev-host secret share deploy-key my-plugin
  kandev-host secret list
  kandev-host secret remove deploy-key

Secrets are named by their id or, when it is the only one, their name. No command prints a value.";

const SET_EXAMPLES: &str = "\
Examples:
  kandev-host secret set deploy-key --file key.pem
  printf %s \"$TOKEN\" | kandev-host secret set api-token
  kandev-host secret set api-token --workspace ws-1 --file token --json

Keeps a new secret, or gives the one of that name and workspace a new value. One line break at the end is not part of
the value.";

const LIST_EXAMPLES: &str = "\
Examples:
  kandev-host secret list
  kandev-host secret list --json | jq -r '.[].id'";

const SHARE_EXAMPLES: &str = "\
Examples:
  kandev-host secret share deploy-key my-plugin

The plugin reveals it by its id, which this prints; its manifest must declare the capability `secrets`.";

const UNSHARE_EXAMPLES: &str = "\
Examples:
  kandev-host secret unshare deploy-key my-plugin

What the plugin has revealed before, it may still know: change the secret where it counts.";

const REMOVE_EXAMPLES: &str = "\
Examples:
  kandev-host secret remove deploy-key

There is no way back, and no plugin can reveal it any more.";

/// Largest value that is read, in bytes; the host has a limit of its own (`limits.secret_value_bytes`).
const MAX_VALUE_BYTES: u64 = 16 * 1024 * 1024;

/// The group's commands.
#[derive(Subcommand)]
pub enum SecretCommand {
    /// Keeps a secret, or gives it a new value
    #[command(after_help = SET_EXAMPLES)]
    Set(Set),
    /// Lists the secrets and who may reveal them
    #[command(after_help = LIST_EXAMPLES)]
    List(Host),
    /// Lets a plugin reveal a secret
    #[command(after_help = SHARE_EXAMPLES)]
    Share(OneShare),
    /// Takes a plugin's right to a secret away
    #[command(after_help = UNSHARE_EXAMPLES)]
    Unshare(OneShare),
    /// Removes a secret
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(OneSecret),
}

/// `set`.
#[derive(Args)]
pub struct Set {
    /// The secret's name, or the id of one that is there
    name: String,
    /// File with the value; `-` or nothing is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The workspace it belongs to [default: the whole host]
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    #[command(flatten)]
    host: Host,
}

/// One secret of one host.
#[derive(Args)]
pub struct OneSecret {
    /// The secret's id or name
    secret: String,
    #[command(flatten)]
    host: Host,
}

/// One secret and one plugin.
#[derive(Args)]
pub struct OneShare {
    /// The secret's id or name
    secret: String,
    /// The plugin's id
    plugin: String,
    #[command(flatten)]
    host: Host,
}

/// What the texts need of a secret (docs/api.md, "Secrets").
#[derive(Deserialize)]
struct Item {
    id: String,
    name: String,
    #[serde(default)]
    workspace_id: Option<String>,
    #[serde(default)]
    has_value: bool,
    #[serde(default)]
    plugins: Vec<String>,
    #[serde(default)]
    updated_at: String,
}

/// Runs a command of the group.
pub fn run(command: SecretCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        SecretCommand::Set(Set { name, file, workspace, host }) => {
            let value = read_value("secret", file.as_deref())?;
            let client = host.client(env)?;
            runtime.block_on(set(&name, workspace.as_deref(), &value, &client, output))
        }
        SecretCommand::List(host) => {
            let client = host.client(env)?;
            runtime.block_on(list(&client, output))
        }
        SecretCommand::Share(OneShare { secret, plugin, host }) => {
            let (plugin, client) = (PluginId::new(&plugin)?, host.client(env)?);
            runtime.block_on(share(&secret, &plugin, &client, output))
        }
        SecretCommand::Unshare(OneShare { secret, plugin, host }) => {
            let (plugin, client) = (PluginId::new(&plugin)?, host.client(env)?);
            runtime.block_on(unshare(&secret, &plugin, &client, output))
        }
        SecretCommand::Remove(OneSecret { secret, host }) => {
            let client = host.client(env)?;
            runtime.block_on(remove(&secret, &client, output))
        }
    }
}

async fn set(
    name: &str,
    workspace: Option<&str>,
    value: &SecretString,
    client: &Client,
    output: &Output,
) -> Result<(), CliError> {
    let found = find(name, client).await?.into_iter();
    let mut there: Vec<Item> =
        found.filter(|item| item.id == name || item.workspace_id.as_deref() == workspace).collect();
    let value = value.expose_secret();
    let request = match (there.pop(), there.is_empty()) {
        (Some(_), false) => return Err(CliError::AmbiguousSecret(name.to_owned())),
        (Some(item), true) => {
            client.request(Method::PUT, &["api", "v1", "secrets", &item.id]).json(&json!({"value": value}))
        }
        (None, _) => {
            let body = json!({"name": name, "value": value, "workspace_id": workspace});
            client.request(Method::POST, &["api", "v1", "secrets"]).json(&body)
        }
    };
    let answer = client.send(request).await?;
    let item: Item = part(&answer)?;
    output.result(&answer, || format!("{} is kept, its id is {}", item.name, item.id))
}

async fn list(client: &Client, output: &Output) -> Result<(), CliError> {
    let answer = client.get(&["api", "v1", "secrets"]).await?;
    let items: Vec<Item> = part(&answer)?;
    output.result(&answer, || match items.is_empty() {
        true => "no secret is kept".to_owned(),
        false => {
            let rows = items.into_iter().map(|item| {
                let value = if item.has_value { "set" } else { "empty" }.to_owned();
                let workspace = item.workspace_id.unwrap_or_default();
                [item.id, item.name, workspace, value, item.plugins.join(", "), item.updated_at]
            });
            table(["ID", "NAME", "WORKSPACE", "VALUE", "PLUGINS", "UPDATED"], rows)
        }
    })
}

async fn share(secret: &str, plugin: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    let Item { id, name, .. } = one(secret, client).await?;
    let path = ["api", "v1", "secrets", &id, "plugins", plugin.as_str()];
    let answer = client.send(client.request(Method::PUT, &path)).await?;
    output.result(&answer, || format!("{plugin} may reveal {name} by its id {id}"))
}

async fn unshare(secret: &str, plugin: &PluginId, client: &Client, output: &Output) -> Result<(), CliError> {
    let Item { id, name, .. } = one(secret, client).await?;
    let path = ["api", "v1", "secrets", &id, "plugins", plugin.as_str()];
    client.send(client.request(Method::DELETE, &path)).await?;
    output.result(&json!({"id": id, "plugin": plugin, "shared": false}), || format!("{plugin} may not reveal {name}"))
}

async fn remove(secret: &str, client: &Client, output: &Output) -> Result<(), CliError> {
    let Item { id, name, .. } = one(secret, client).await?;
    client.send(client.request(Method::DELETE, &["api", "v1", "secrets", &id])).await?;
    output.result(&json!({"id": id, "removed": true}), || format!("{name} is removed"))
}

/// The secrets of this id or name.
async fn find(wanted: &str, client: &Client) -> Result<Vec<Item>, CliError> {
    let answer: Value = client.get(&["api", "v1", "secrets"]).await?;
    let items: Vec<Item> = part(&answer)?;
    Ok(items.into_iter().filter(|item| item.id == wanted || item.name == wanted).collect())
}

async fn one(wanted: &str, client: &Client) -> Result<Item, CliError> {
    let mut found = find(wanted, client).await?;
    match (found.pop(), found.is_empty()) {
        (Some(item), true) => Ok(item),
        (Some(_), false) => Err(CliError::AmbiguousSecret(wanted.to_owned())),
        (None, _) => Err(CliError::NoSecret(wanted.to_owned())),
    }
}

/// What errors call `what`, from a file or standard input, without one line break at its end.
pub fn read_value(what: &'static str, file: Option<&Path>) -> Result<SecretString, CliError> {
    let from = file.filter(|path| *path != Path::new("-"));
    let shown = from.unwrap_or(Path::new("standard input")).to_owned();
    let failed = |source| CliError::SecretFile { what, path: shown.clone(), source };
    let mut text = Zeroizing::new(String::new());
    let read = match from {
        Some(path) => {
            std::fs::File::open(path).and_then(|file| file.take(MAX_VALUE_BYTES + 1).read_to_string(&mut text))
        }
        None => {
            let input = io::stdin().lock();
            if input.is_terminal() {
                let _ = io::Write::write_all(&mut io::stderr(), b"the value, then control-D: ");
            }
            input.take(MAX_VALUE_BYTES + 1).read_to_string(&mut text)
        }
    };
    if read.map_err(failed)? as u64 > MAX_VALUE_BYTES {
        return Err(failed(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {MAX_VALUE_BYTES} bytes"),
        )));
    }
    let value = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    // Mostly the output of a command that failed.
    if value.is_empty() {
        return Err(CliError::EmptySecret { what, path: shown });
    }
    Ok(value.to_owned().into())
}
