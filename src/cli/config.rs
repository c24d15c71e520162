//! `config show`: the settings as they count now.

use clap::Subcommand;
use serde_json::Value;

use super::{
    Settings,
    error::CliError,
    output::{Output, table},
};
use crate::config::{self, Lookup};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host config show
  kandev-host config show --json --home /var/lib/kandev";

/// Longest list that the table shows; the JSON form has them whole.
const MAX_LIST: usize = 5;

/// The group's commands.
#[derive(Subcommand)]
pub enum ConfigCommand {
    /// Prints every key with its value, default, unit and source; secrets are not shown
    #[command(after_help = EXAMPLES)]
    Show(Settings),
}

/// Runs a command of the group.
pub fn run(ConfigCommand::Show(settings): ConfigCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let rows = config::rows(&config::load_explained(settings.into(), env)?);
    output.result(&rows, || {
        let lines = rows.iter().map(|row| {
            [row.key.clone(), cell(&row.value), cell(&row.default), row.unit.to_owned(), row.source.clone()]
        });
        table(["KEY", "VALUE", "DEFAULT", "UNIT", "SOURCE"], lines)
    })
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.len() > MAX_LIST => format!("({} items, see --json)", items.len()),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
