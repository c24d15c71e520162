//! `db restore`: a copy of `db backup` takes the place of the SQLite database, which is kept aside.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use time::OffsetDateTime;

use super::{CliError, Output, backup::quoted, claim};
use crate::{
    app,
    cli::{StoreSettings, output::size, runtime},
    config::{Config, ConfigError},
    store::{
        backup::{self, Copied, Settled},
        db::Db,
    },
    vault::Vault,
};

pub const EXAMPLES: &str = "\
Examples:
  systemctl stop kandev-host && kandev-host db restore /backups/kandev-2026-11-30.db
  kandev-host db restore /backups/kandev.db --home /var/lib/kandev --json

SQLite only, and no host may run on the home. The file is copied and checked before anything is changed; the present
database stays beside as kandev.db.before-restore-<time>, to be deleted by you. The vault's key must be the one of the
backup's time: the command says whether it is. For PostgreSQL it prints what to do with pg_restore.";

/// Arguments.
#[derive(Args)]
pub struct Restore {
    /// A file that `kandev-host db backup` made
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    store: StoreSettings,
}

/// JSON of the command.
#[derive(Serialize)]
struct Report<'a> {
    database: &'a Path,
    /// Where the database of before is; `null` when there was none.
    kept: Option<&'a Path>,
    #[serde(flatten)]
    copied: &'a Copied,
    /// Why the vault's key of this home does not open what was restored; `null` when it does.
    vault_problem: Option<String>,
}

/// Runs the command.
pub fn run(
    Restore { file, store }: Restore,
    output: &Output,
    load: impl FnOnce(StoreSettings) -> Result<Config, ConfigError>,
) -> Result<(), CliError> {
    let config = load(store)?;
    let command = || {
        let flags = "--clean --if-exists --no-owner --single-transaction --exit-on-error";
        format!("stop the host, then pg_restore {flags} --dbname=\"$DATABASE_URL\" {}", quoted(&file))
    };
    let database = backup::file_of(&config.database_url, command)?;
    let _alone = claim(&config)?;
    let runtime = runtime()?;
    output.progress("copying");
    let new = backup::incoming(&file, &database)?;
    output.progress("checking the copy");
    let copied = runtime.block_on(backup::check(new.path(), &file))?;
    let settled = runtime.block_on(backup::settle(&database, config.timing.database_timeout))?;
    if settled == Settled::Unreadable {
        output.note("the present database cannot be read; it is kept as it is");
    }
    let kept = backup::exchange(&database, new, OffsetDateTime::now_utc())?;
    let vault_problem = runtime.block_on(vault_problem(&config))?;
    let report =
        Report { database: &database, kept: kept.as_deref(), copied: &copied, vault_problem: vault_problem.clone() };
    output.result(&report, || {
        let kept = match &kept {
            Some(kept) => format!("\nthe database of before is {}; delete it when you are content", kept.display()),
            None => String::new(),
        };
        let next = match &vault_problem {
            Some(problem) => format!("before you start the host: {problem}"),
            None => "next: `kandev-host serve`, which brings its schema up to date".to_owned(),
        };
        format!("{}: restored, {}, schema {}{kept}\n{next}", database.display(), size(copied.bytes), copied.schema)
    })
}

/// Why the start would be refused, when it would. Asked of the restored database as it is: no schema step is applied.
async fn vault_problem(config: &Config) -> Result<Option<String>, CliError> {
    let open = Db::open(&config.database_url, &config.timing, &config.limits).await?;
    let refused = Vault::refuse_foreign_key(open.as_found(), &app::key_source(config)).await;
    // It was only looked at.
    let _ = open.as_found().clone().close().await;
    Ok(refused.err().map(|error| error.to_string()))
}
