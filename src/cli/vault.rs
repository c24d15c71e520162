//! `vault …`: the key of a running host's vault.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    client::Client,
    error::CliError,
    output::{Output, fields},
    plugin::{Host, part},
    runtime,
    secret::read_value,
};
use crate::config::Lookup;

pub const EXAMPLES: &str = "\
Examples:
  kandev-host vault status
  kandev-host vault rotate

Back the key up apart from the database: one without the other gives no secret back.";

const STATUS_EXAMPLES: &str = "\
Examples:
  kandev-host vault status
  kandev-host vault status --json | jq .pending

`pending` counts secrets that are not sealed with the current key yet.";

const ROTATE_EXAMPLES: &str = "\
Examples:
  kandev-host vault rotate
  openssl rand -hex 32 > new.key && kandev-host vault rotate --key-file new.key

Changes the key in <home>/vault.key and seals every secret anew, while the host runs. It can be interrupted at any
moment: the next start goes on. Back the new key up afterwards; backups of the database need the key of their time.";

/// The group's commands.
#[derive(Subcommand)]
pub enum VaultCommand {
    /// Shows where the key comes from and what is sealed with it
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Host),
    /// Changes the key
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate(Rotate),
}

/// `rotate`.
#[derive(Args)]
pub struct Rotate {
    /// File with the new key, 32 bytes as 64 hexadecimal digits or in base64; `-` is standard input
    /// [default: a random one]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[command(flatten)]
    host: Host,
}

/// What the text needs of the status (docs/api.md, "Vault").
#[derive(Deserialize)]
struct Status {
    key_from: String,
    key_id: String,
    #[serde(default)]
    secrets: Map<String, Value>,
    #[serde(default)]
    pending: u64,
}

/// What the text needs of a rotation.
#[derive(Deserialize)]
struct Rotated {
    key_id: String,
    #[serde(default)]
    resealed: u64,
}

/// Runs a command of the group.
pub fn run(command: VaultCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        VaultCommand::Status(host) => {
            let client = host.client(env)?;
            runtime.block_on(status(&client, output))
        }
        VaultCommand::Rotate(Rotate { key_file, host }) => {
            let key = key_file.map(|path| read_value("key", Some(&path))).transpose()?;
            let client = host.client(env)?;
            let body = json!({"key": key.as_ref().map(ExposeSecret::expose_secret)});
            runtime.block_on(rotate(&body, &client, output))
        }
    }
}

async fn status(client: &Client, output: &Output) -> Result<(), CliError> {
    let answer = client.get(&["api", "v1", "vault"]).await?;
    let Status { key_from, key_id, secrets, pending } = part(&answer)?;
    output.result(&answer, || {
        let secrets: Vec<_> = secrets.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        fields(&[
            ("key from", key_from),
            ("key", key_id),
            ("secrets", secrets.join("\n")),
            ("pending", pending.to_string()),
        ])
    })
}

async fn rotate(body: &Value, client: &Client, output: &Output) -> Result<(), CliError> {
    output.progress("sealing every secret with a new key");
    let request = client.request(Method::POST, &["api", "v1", "vault", "rotate"]).json(body);
    let answer = client.send(request).await?;
    let Rotated { key_id, resealed } = part(&answer)?;
    output.result(&answer, || {
        format!("the vault's key is now {key_id}, {resealed} secrets are sealed with it; back the key file up")
    })
}
