//! `db seed`: data for demos, tests and benchmarks. What it is made of is `platform::seed`'s part.

use clap::Args;
use serde::Serialize;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::Instant;

use super::{CliError, Output, claim};
use crate::{
    cli::{StoreSettings, runtime},
    config::Config,
    platform::seed::{self, Made, Plan},
    store::{db::Db, platform::PlatformStore},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host db seed --tasks 200 --until now --home /tmp/demo && kandev-host serve --home /tmp/demo
  kandev-host db seed --tasks 100000 --json
  kandev-host db seed --tasks 50 --seed 2 --add

Three workspaces with boards, repositories and agents; tasks of 120 days with sessions and what was said and done in them.
The same numbers, seed and moment give the same rows, ids and times included, on SQLite and PostgreSQL. No host may run on
the home, and the database must have no data yet unless --add is given. Nobody is told: the event log stays as it is, and
plugins see the data by their lists.";

/// Arguments.
#[derive(Args)]
pub struct Seed {
    /// Tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(seed::MAX_TASKS)))]
    tasks: u32,
    /// Messages of each task
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(seed::MAX_MESSAGES)))]
    messages: u32,
    /// Commits of each session that changed code
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(seed::MAX_CODE)))]
    commits: u32,
    /// Snapshots of uncommitted work of each such session
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(seed::MAX_CODE)))]
    snapshots: u32,
    /// Other data than with another number
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Moment that the data ends with, as `2026-11-01T00:00:00Z`, or `now`
    #[arg(long, value_name = "TIME", default_value = "2026-11-01T00:00:00Z", value_parser = moment)]
    until: OffsetDateTime,
    /// Adds to a database that has data
    #[arg(long)]
    pub add: bool,
    #[command(flatten)]
    pub store: StoreSettings,
}

fn moment(text: &str) -> Result<OffsetDateTime, String> {
    match text {
        "now" => Ok(OffsetDateTime::now_utc().replace_nanosecond(0).unwrap_or_else(|_| OffsetDateTime::now_utc())),
        text => {
            let moment = OffsetDateTime::parse(text, &Rfc3339)
                .map_err(|_| "write a moment like 2026-11-01T00:00:00Z, or `now`".to_owned())?;
            // Ids of version 7 hold no earlier time, and four digits no later year.
            match moment.year() {
                1971..=9998 => Ok(moment),
                _ => Err("take a year between 1971 and 9998".to_owned()),
            }
        }
    }
}

impl Seed {
    /// What is to be made.
    pub fn plan(&self) -> Plan {
        let Self { tasks, messages, commits, snapshots, seed, until, .. } = *self;
        Plan { tasks, messages, commits, snapshots, seed, until }
    }
}

/// JSON of the command.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    made: Made,
    seed: u64,
    #[serde(with = "time::serde::rfc3339")]
    until: OffsetDateTime,
    seconds: f64,
}

/// Runs the command.
pub fn run(plan: &Plan, add: bool, config: &Config, output: &Output) -> Result<(), CliError> {
    let _alone = claim(config)?;
    let began = Instant::now();
    let made = runtime()?.block_on(fill(plan, add, config, output))?;
    let seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
    let report = Report { made, seed: plan.seed, until: plan.until, seconds };
    output.result(&report, || {
        let Made { workspaces, tasks, sessions, turns, messages, commits, snapshots } = made;
        format!(
            "made {workspaces} workspaces, {tasks} tasks, {sessions} sessions, {turns} turns, {messages} messages, \
             {commits} commits and {snapshots} snapshots in {seconds} s\n`kandev-host serve` shows them"
        )
    })
}

async fn fill(plan: &Plan, add: bool, config: &Config, output: &Output) -> Result<Made, CliError> {
    let db = Db::connect(&config.database_url, &config.timing, &config.limits).await?;
    let mut tenth = 0;
    let progress = |done: u32| {
        let now = u64::from(done) * 10 / u64::from(plan.tasks.max(1));
        output.step(now > tenth, &format!("{done} of {} tasks", plan.tasks));
        tenth = now;
    };
    let made = seed::seed(&PlatformStore::new(db.clone()), plan, add, progress).await?;
    // Everything is written; what remains is closing, which a broken connection may refuse.
    let _ = db.close().await;
    Ok(made)
}
