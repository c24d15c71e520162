//! `trust …`: the keys whose signatures count on a running host.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    error::CliError,
    output::{Output, table},
    plugin::{Host, keys, operate::part},
    runtime,
};
use crate::{config::Lookup, domain::trust::KeyName};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host trust add acme acme.pub --plugins acme-chat,acme-mail
  kandev-host trust list
  kandev-host trust remove acme

A key counts from the next install on. The host keeps it as trust/NAME.pub below its home; a file put there by hand counts
as well.";

const ADD_EXAMPLES: &str = "\
Examples:
  kandev-host trust add acme acme.pub --plugins acme-chat,acme-mail
  kandev-host trust add us release.pub --plugins '*'

Before you trust a key, compare it with what its owner publishes elsewhere. What the file itself says about plugins does
not count.";

const LIST_EXAMPLES: &str = "\
Examples:
  kandev-host trust list
  kandev-host trust list --json | jq -r '.keys[].name'";

const REMOVE_EXAMPLES: &str = "\
Examples:
  kandev-host trust remove acme

Plugins that the key signed stay as they are, and run on.";

/// The group's commands.
#[derive(Subcommand)]
pub enum TrustCommand {
    /// Trusts a key for some plugins
    #[command(after_help = ADD_EXAMPLES)]
    Add(Add),
    /// Lists the trusted keys
    #[command(after_help = LIST_EXAMPLES)]
    List(Host),
    /// Trusts a key no longer
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(Remove),
}

/// `add`.
#[derive(Args)]
pub struct Add {
    /// What to call the key; records name their signer so
    name: String,
    /// Its public key: PEM, or base64 of the 32 bytes
    #[arg(value_name = "FILE")]
    key: PathBuf,
    /// The plugins it may sign, separated by commas; * is every plugin
    #[arg(long, value_name = "IDS", required = true, value_delimiter = ',')]
    plugins: Vec<String>,
    #[command(flatten)]
    host: Host,
}

/// `remove`.
#[derive(Args)]
pub struct Remove {
    /// The key's name
    name: String,
    #[command(flatten)]
    host: Host,
}

/// What the table needs of a key (docs/api.md, "Trusted keys").
#[derive(Deserialize)]
struct Key {
    name: String,
    key: String,
    plugins: Vec<String>,
}

/// A file that does not count.
#[derive(Deserialize)]
struct Skipped {
    file: String,
    error: String,
}

/// Runs a command of the group.
pub fn run(command: TrustCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        TrustCommand::Add(arguments) => runtime.block_on(add(arguments, output, env)),
        TrustCommand::List(host) => runtime.block_on(list(host, output, env)),
        TrustCommand::Remove(arguments) => runtime.block_on(remove(arguments, output, env)),
    }
}

async fn add(Add { name, key, plugins, host }: Add, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let key = keys::public(&key)?.key;
    let client = host.client(env)?;
    let body = json!({"name": name, "key": key, "plugins": plugins});
    let answer = client.send(client.request(Method::POST, &["api", "v1", "trust", "keys"]).json(&body)).await?;
    let added: Key = part(&answer)?;
    output.result(&answer, || format!("{} may sign {}", added.name, added.plugins.join(", ")))
}

async fn list(host: Host, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let answer = host.client(env)?.get(&["api", "v1", "trust", "keys"]).await?;
    let keys: Vec<Key> = part(&answer["keys"])?;
    let skipped: Vec<Skipped> = part(&answer["skipped"])?;
    for Skipped { file, error } in skipped {
        output.note(&format!("warning: {file} is skipped: {error}"));
    }
    output.result(&answer, || match keys.is_empty() {
        true => "no key is trusted".to_owned(),
        false => {
            let rows = keys.iter().map(|key| [key.name.clone(), key.key.clone(), key.plugins.join(", ")]);
            table(["NAME", "KEY", "PLUGINS"], rows)
        }
    })
}

async fn remove(Remove { name, host }: Remove, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let name = KeyName::new(&name)?;
    let client = host.client(env)?;
    let request = client.request(Method::DELETE, &["api", "v1", "trust", "keys", name.as_str()]);
    let answer: Value = client.send(request).await?;
    output.result(&answer, || match answer["trusted"].as_bool() {
        Some(false) => format!("the file {name}.pub is removed; it was no usable key and never counted"),
        Some(true) | None => format!("{name} is no longer trusted"),
    })
}
