//! `db …`: the configured database without a running host. Here are its schema's commands, `migrate` and `status`.

mod backup;
mod restore;
mod seed;

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt};

use clap::Subcommand;
use serde::Serialize;
use time::format_description::well_known::Rfc3339;

use super::{
    StoreSettings,
    error::CliError,
    output::{Output, table},
    runtime,
    serve::install_tls,
};
use crate::{
    config::{self, Config, Lookup},
    store::{
        db::{ConnectError, Db},
        run_folder::RunFolder,
        schema::{self, Step, StepState},
    },
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host db status
  kandev-host db migrate
  kandev-host db backup kandev.db.backup
  kandev-host db seed --tasks 200 --home /tmp/demo";

const MIGRATE_EXAMPLES: &str = "\
Examples:
  kandev-host db migrate
  DATABASE_URL_FILE=/run/secrets/database kandev-host db migrate --json

`serve` does the same at its start; this is for doing it beforehand. No host may run on the same home. Steps go forward
only and each is done whole or not at all.";

const STATUS_EXAMPLES: &str = "\
Examples:
  kandev-host db status
  kandev-host db status --home /var/lib/kandev --json

A step is `applied`, `pending` (the next start applies it) or `unknown` (a newer kandev-host made it, and this one
refuses to start). Nothing is changed; a SQLite file that does not exist is not made.";

/// The group's commands.
#[derive(Subcommand)]
pub enum DbCommand {
    /// Brings the database's schema up to date
    #[command(after_help = MIGRATE_EXAMPLES)]
    Migrate(StoreSettings),
    /// Shows which steps of the schema the database has
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StoreSettings),
    /// Copies a SQLite database into one file, also while a host runs
    #[command(after_help = backup::EXAMPLES)]
    Backup(backup::Backup),
    /// Puts such a copy in the database's place
    #[command(after_help = restore::EXAMPLES)]
    Restore(restore::Restore),
    /// Fills a database with data for demos, tests and benchmarks
    #[command(after_help = seed::EXAMPLES)]
    Seed(seed::Seed),
}

/// JSON of both commands.
#[derive(Serialize)]
struct Report<'a> {
    /// Steps that this run applied; `db status` applies none.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_now: Option<&'a [String]>,
    /// Whether the database has exactly the steps that this host knows.
    up_to_date: bool,
    steps: &'a [Step],
}

/// Runs a command of the group.
pub fn run(command: DbCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    install_tls();
    let load = |settings: StoreSettings| config::load(settings.into(), env);
    match command {
        DbCommand::Migrate(settings) => migrate(&load(settings)?, output),
        DbCommand::Status(settings) => {
            let steps = runtime()?.block_on(look(&load(settings)?))?;
            show(None, &steps, output)
        }
        DbCommand::Backup(backup) => backup::run(backup, output, load),
        DbCommand::Restore(restore) => restore::run(restore, output, load),
        DbCommand::Seed(seed) => seed::run(&seed.plan(), seed.add, &load(seed.store)?, output),
    }
}

/// Takes the home for itself, making it when it is missing; refused while a host runs there.
fn claim(config: &Config) -> Result<RunFolder, CliError> {
    DirBuilder::new().recursive(true).mode(0o700).create(&config.home)?;
    Ok(RunFolder::claim(&config.run_dir())?)
}

fn migrate(config: &Config, output: &Output) -> Result<(), CliError> {
    let _alone = claim(config)?;
    let (before, after) = runtime()?.block_on(async {
        let before = look(config).await?;
        let db = Db::connect(&config.database_url, &config.timing, &config.limits).await?;
        let after = look(config).await?;
        // Everything is written; what remains is closing, which a broken connection may refuse.
        let _ = db.close().await;
        Ok::<_, ConnectError>((before, after))
    })?;
    let pending = before.into_iter().filter(|step| step.state == StepState::Pending);
    let applied: Vec<String> = pending.map(|step| step.name).collect();
    show(Some(&applied), &after, output)
}

async fn look(config: &Config) -> Result<Vec<Step>, ConnectError> {
    schema::steps(&config.database_url, config.timing.database_timeout).await
}

fn show(applied_now: Option<&[String]>, steps: &[Step], output: &Output) -> Result<(), CliError> {
    let count = |state| steps.iter().filter(|step| step.state == state).count();
    let (pending, unknown) = (count(StepState::Pending), count(StepState::Unknown));
    let report = Report { applied_now, up_to_date: pending + unknown == 0, steps };
    output.result(&report, || {
        let rows = steps.iter().map(|step| {
            let at = step.applied_at.and_then(|at| at.format(&Rfc3339).ok()).unwrap_or_default();
            [step.name.clone(), word(step.state).to_owned(), at]
        });
        let table = table(["STEP", "STATE", "APPLIED"], rows);
        let verdict = match (applied_now, pending, unknown) {
            (_, _, 1..) => "a newer kandev-host has used this database: start that version or newer".to_owned(),
            (_, 1.., _) => format!("{pending} pending: `kandev-host db migrate` or the next start applies them"),
            (Some([_, ..]), ..) => format!("{} applied now, up to date", applied_now.map_or(0, <[String]>::len)),
            _ => "up to date".to_owned(),
        };
        format!("{table}\n{verdict}")
    })
}

fn word(state: StepState) -> &'static str {
    match state {
        StepState::Applied => "applied",
        StepState::Pending => "pending",
        StepState::Unknown => "unknown",
    }
}
