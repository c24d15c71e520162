//! Measures the host's own overhead: baseline and host take turns in one run, on the same machine, runtime, sockets and
//! plugin processes (docs/performance.md). One file below `rows` for each kind of measurement.
//!
//! The figures are only worth something in a release build on an otherwise idle machine; `make bench` sees to the
//! first.

mod bare;
mod bare_state;
mod bare_task;
mod bare_user_state;
mod client;
mod data;
mod load;
mod nginx;
mod package;
mod rows;
mod served;
mod sockets;
mod tap;
mod world;

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use kandev_benches::{Outcome, flame, report, rounds};
use kandev_host::{cli::log, config::Timing};

use crate::{report::Line, rounds::Rounds};

/// Measures the host against bare baselines.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Command {
    /// Sends requests (used by the bench itself)
    #[command(hide = true)]
    Load(load::Load),
    /// Listens to live connections (used by the bench itself)
    #[command(hide = true)]
    Sockets(sockets::Sockets),
    /// Draws a flame graph from `perf script` on standard input; see scripts/flame.sh
    Flame(flame::Flame),
}

/// What to measure, and with what.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Rows to run; all when none is named
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Rounds that count
    #[arg(long, default_value_t = 15)]
    pub rounds: usize,
    /// Rounds before them that do not count
    #[arg(long, default_value_t = 2)]
    pub warm_up: usize,
    /// Length of the row `memory-load`, in minutes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(3..))]
    pub minutes: u64,
    /// From one task of a client of `memory-load` to its next, in milliseconds: seventeen requests each
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub pace: u64,
    /// Leaves the baselines out, for a profile of the host alone
    #[arg(long)]
    pub host_only: bool,
    /// Prints JSON instead of the table
    #[arg(long)]
    pub json: bool,
    /// Folder of the programs kandev-host and bench-guest; default: the bench's own
    #[arg(long)]
    pub programs: Option<PathBuf>,
    /// Folder for raw rounds and large packages
    #[arg(long, default_value = "target/bench")]
    pub output: PathBuf,
}

impl Options {
    /// The number of rounds.
    pub fn rounds(&self) -> Rounds {
        Rounds { counted: self.rounds, warm_up: self.warm_up, host_only: self.host_only }
    }

    /// A program beside the bench. One without symbols is preferred: packages of it are smaller.
    pub fn program(&self, name: &str) -> Outcome<PathBuf> {
        let stripped = self.output.join(name);
        if stripped.exists() {
            return Ok(fs::canonicalize(stripped)?);
        }
        let folder = match &self.programs {
            Some(folder) => folder.clone(),
            None => std::env::current_exe()?.parent().ok_or("no folder")?.to_owned(),
        };
        Ok(fs::canonicalize(folder.join(name))?)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match &cli.command {
        Some(Command::Load(load)) => load::run(load).map(|()| true),
        Some(Command::Sockets(sockets)) => sockets::run(sockets).map(|()| true),
        Some(Command::Flame(flame)) => flame::run(flame).map(|()| true),
        None => measure(&cli.options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the rows; true when every bound holds.
fn measure(options: &Options) -> Outcome<bool> {
    fs::create_dir_all(&options.output)?;
    fs::write(options.output.join("pid"), std::process::id().to_string())?;
    let _log = log_to_file(options)?;
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    goplugin::warm_up_crypto();
    let mut told = Vec::new();
    for row in rows::chosen(&options.rows)? {
        eprintln!("bench: {}", row.name);
        // As the host makes its own: one runtime for each row, actors on its main thread.
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let system = actix::System::with_tokio_rt(move || runtime);
        for line in system.block_on((row.run)(options.clone()))? {
            save(options, &line)?;
            told.push(line.told());
            eprintln!("{}", report::table(&told[told.len() - 1..]).lines().last().unwrap_or_default());
        }
    }
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&told)?),
        false => print!("{}", report::table(&told)),
    }
    Ok(told.iter().all(report::Told::pass))
}

/// The raw rounds, for whoever wants to see more than medians.
fn save(options: &Options, line: &Line) -> Outcome<()> {
    Ok(fs::write(options.output.join(format!("{}.json", line.row)), serde_json::to_vec_pretty(line)?)?)
}

/// The host logs a line for each request; so does the host in this process, in the same way into a file.
fn log_to_file(options: &Options) -> Outcome<log::Written> {
    let filter = std::env::var("KANDEV_LOG").unwrap_or_else(|_| "info".to_owned());
    let file = fs::File::create(options.output.join("host.log"))?;
    Ok(log::start(&filter, log::Form::Text { colours: false }, file, &Timing::default(), None)?)
}
