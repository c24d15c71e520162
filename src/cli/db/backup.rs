//! `db backup`: one file with everything that a SQLite database holds at one moment.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tokio::time::Instant;

use super::{CliError, Output};
use crate::{
    app,
    cli::{StoreSettings, output::size, runtime},
    config::{Config, ConfigError},
    store::backup::{self, BackupError, Copied, Pending},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host db backup /backups/kandev-2026-11-30.db
  kandev-host db backup /backups/kandev.db --overwrite --json

SQLite only, while the host runs or not: nobody waits for it. The file (mode 0600) is checked before it gets its name.
It is a part of a backup: the key of the vault and the files of plugins belong to it, see docs/operations.md. For
PostgreSQL the command prints what to do with pg_dump.";

/// Arguments.
#[derive(Args)]
pub struct Backup {
    /// Where the copy goes
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replaces a file that is there
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    store: StoreSettings,
}

/// JSON of the command.
#[derive(Serialize)]
struct Report<'a> {
    file: &'a Path,
    #[serde(flatten)]
    copied: &'a Copied,
    /// Where the key is that the vault's entries need.
    vault_key: String,
    seconds: f64,
}

/// Runs the command.
pub fn run(
    Backup { file, overwrite, store }: Backup,
    output: &Output,
    load: impl FnOnce(StoreSettings) -> Result<Config, ConfigError>,
) -> Result<(), CliError> {
    let config = load(store)?;
    let command = || format!("pg_dump --format=custom --no-owner --file={} \"$DATABASE_URL\"", quoted(&file));
    let database = backup::file_of(&config.database_url, command)?;
    let began = Instant::now();
    let copied = make(&database, &file, overwrite, &config, output)?;
    let seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    let vault_key = app::key_source(&config).place();
    output.result(&Report { file: &file, copied: &copied, vault_key: vault_key.clone(), seconds }, || {
        let key = match copied.vault_entries {
            0 => String::new(),
            entries => format!(
                "\nits {entries} vault entries need the key from {vault_key}: back that up too, and not beside this file"
            ),
        };
        format!("{}: {} in {seconds} s, checked, schema {}{key}", file.display(), size(copied.bytes), copied.schema)
    })
}

fn make(database: &Path, file: &Path, overwrite: bool, config: &Config, output: &Output) -> Result<Copied, CliError> {
    let same =
        std::fs::canonicalize(file).ok().is_some_and(|path| std::fs::canonicalize(database).is_ok_and(|it| it == path));
    if same {
        return Err(BackupError::Itself(file.to_owned()).into());
    }
    let runtime = runtime()?;
    let new = Pending::beside(file, overwrite)?;
    output.progress("copying");
    runtime.block_on(backup::copy(database, &new, config.timing.database_timeout))?;
    output.progress("checking the copy");
    let copied = runtime.block_on(backup::check(new.path(), file))?;
    new.place(overwrite)?;
    Ok(copied)
}

/// A path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ',' | ':' | '@');
    match !text.is_empty() && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
