//! `inbox …`: what the host has to tell its operator.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use super::{
    client::{Client, ClientError},
    error::CliError,
    output::{Output, table},
    plugin::{Host, operate::part},
    runtime,
};
use crate::config::Lookup;

pub const EXAMPLES: &str = "\
Examples:
  kandev-host inbox
  kandev-host inbox --status open
  kandev-host inbox read 0192f3a0-0000-7000-8000-000000000000
  kandev-host inbox dismiss 0192f3a0-0000-7000-8000-000000000000

An item is made when a plugin fails and resolved when it is active again, disabled or removed.";

const LIST_EXAMPLES: &str = "\
Examples:
  kandev-host inbox list
  kandev-host inbox list --status all --json | jq -r '.items[].title'

Without --status: everything that was not dismissed. The newest item comes first.";

const READ_EXAMPLES: &str = "\
Examples:
  kandev-host inbox read 0192f3a0-0000-7000-8000-000000000000";

const DISMISS_EXAMPLES: &str = "\
Examples:
  kandev-host inbox dismiss 0192f3a0-0000-7000-8000-000000000000

The item is out of sight, however long its incident lasts; the next incident has an item of its own.";

/// `inbox`, which lists when nothing else is said.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Inbox {
    #[command(subcommand)]
    command: Option<InboxCommand>,
    #[command(flatten)]
    list: List,
}

/// The group's commands.
#[derive(Subcommand)]
enum InboxCommand {
    /// Lists the items, the newest first
    #[command(after_help = LIST_EXAMPLES)]
    List(List),
    /// Marks an item as read
    #[command(after_help = READ_EXAMPLES)]
    Read(OneItem),
    /// Takes an item out of sight
    #[command(after_help = DISMISS_EXAMPLES)]
    Dismiss(OneItem),
}

/// `inbox list`.
#[derive(Args)]
struct List {
    /// Only these items: open, resolved, dismissed or all [default: open and resolved]
    #[arg(long, value_name = "STATUS", value_parser = ["open", "resolved", "dismissed", "all"])]
    status: Option<String>,
    /// At most so many items, the newest; the host gives up to 200 at once [default: 50]
    #[arg(short = 'n', long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=200))]
    limit: Option<u64>,
    /// The next_cursor of an earlier answer, for the items after it
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    #[command(flatten)]
    host: Host,
}

/// One item.
#[derive(Args)]
struct OneItem {
    /// The item's id, as the list shows it
    id: String,
    #[command(flatten)]
    host: Host,
}

/// An item as the host tells it (docs/api.md, "Inbox").
#[derive(Deserialize)]
struct ItemView {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    status: String,
    #[serde(default)]
    read: bool,
    #[serde(default)]
    created_at: String,
}

/// Runs a command of the group.
pub fn run(Inbox { command, list: listed }: Inbox, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        None => runtime.block_on(list(listed, output, env)),
        Some(InboxCommand::List(listed)) => runtime.block_on(list(listed, output, env)),
        Some(InboxCommand::Read(item)) => runtime.block_on(change(item, "read", output, env)),
        Some(InboxCommand::Dismiss(item)) => runtime.block_on(change(item, "dismiss", output, env)),
    }
}

async fn list(List { status, limit, cursor, host }: List, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let client = host.client(env)?;
    let limit = limit.map(|limit| limit.to_string());
    let query: Vec<_> = [("status", status), ("limit", limit), ("cursor", cursor)]
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect();
    let answer = client.send(client.request_with(Method::GET, &["api", "v1", "inbox"], &query)).await?;
    let items: Vec<ItemView> = part(&answer["items"])?;
    if let Some(cursor) = answer["next_cursor"].as_str() {
        output.note(&format!("there are older items: --cursor {cursor}"));
    }
    output.result(&answer, || match items.is_empty() {
        true => "the inbox is empty".to_owned(),
        false => text(&items),
    })
}

fn text(items: &[ItemView]) -> String {
    let rows = items.iter().map(|item| {
        let state = if item.read { item.status.clone() } else { format!("{} (new)", item.status) };
        let description = item.description.clone().unwrap_or_default();
        [item.id.clone(), item.created_at.clone(), state, item.title.clone(), description]
    });
    table(["ID", "SINCE", "STATUS", "TITLE", "DESCRIPTION"], rows)
}

async fn change(
    OneItem { id, host }: OneItem,
    verb: &'static str,
    output: &Output,
    env: Lookup<'_>,
) -> Result<(), CliError> {
    let client: Client = host.client(env)?;
    let request = client.request(Method::POST, &["api", "v1", "inbox", id.as_str(), verb]);
    let answer: Value = client.send(request).await.map_err(|error| match error {
        ClientError::Refused { code, .. } if code == "inbox_item_not_found" => CliError::NoInboxItem(id.clone()),
        other => other.into(),
    })?;
    let done = if verb == "read" { "read" } else { "dismissed" };
    output.result(&answer, || format!("{id} is {done}"))
}
