//! `plugin check`: installs a package on a throw-away host, runs it, and tells how it behaves as a guest.
//!
//! Owns the arguments, the order of the checks, and that nothing is left: host, processes, home. What is looked at is
//! in the files below, one a subject; why the host is a child process is decision 0027.

mod api;
mod events;
mod host;
mod package;
mod processes;
mod quiet;
mod report;
mod session;
mod start;
mod stop;
mod tools;
mod ui;
mod webhooks;

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::spawn_blocking,
    time::Instant,
};

use self::{host::CheckHost, processes::Mark, report::Report, session::Session};
use super::config::{SettingError, file};
use crate::{
    cli::{error::CliError, output::Output, secret::read_value},
    config::{CheckTiming, parse_duration},
    domain::manifest::Manifest,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin check my-plugin-0.1.0.tar.gz
  kandev-host plugin check my-plugin-0.1.0.tar.gz --config settings.yaml --secret token=token.txt
  kandev-host plugin check my-plugin-0.1.0.tar.gz --timeout 5s --call-tools
  kandev-host plugin check my-plugin-0.1.0.tar.gz --json | jq '.checks[] | select(.verdict == \"fail\")'

Needs no running host: it starts one for itself, with a home of its own, and removes both. Exit code 0: nothing failed,
warnings included; 8: something did; 1: the check itself could not be made, or Ctrl-C ended it.";

/// `check`.
#[derive(Args)]
pub struct Check {
    /// The package file
    #[arg(value_name = "FILE")]
    package: PathBuf,
    /// The plugin's settings: a YAML or JSON file of fields to values
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A setting whose value is what the file holds, without its final line break; may be given several times
    #[arg(long, value_name = "FIELD=FILE")]
    secret: Vec<String>,
    /// Also calls the tools that take no arguments: they may do what they are made for
    #[arg(long)]
    call_tools: bool,
    /// Longest wait for the plugin at each step, like 5s [default: what a host waits]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Keeps the home, with the host's log and what the plugin wrote, and tells where it is
    #[arg(long)]
    keep: bool,
}

/// Why nothing can be said, or that something failed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The throw-away home.
    #[error("cannot write the throw-away home of the check: {0}; TMPDIR says where it is made")]
    Home(#[source] io::Error),
    /// The package went away.
    #[error("cannot read the package: {0}")]
    Package(#[source] io::Error),
    /// This program.
    #[error("cannot start a host for the check: {0}")]
    Program(#[source] io::Error),
    /// It ended at its start.
    #[error("the host for the check ended at its start ({status}): {reason}")]
    Ended {
        /// How.
        status: String,
        /// Its last word.
        reason: String,
    },
    /// It does not come up.
    #[error("the host for the check was not ready within {} s; run it again, with --keep to see its log", .after.as_secs())]
    NotReady {
        /// The deadline.
        after: Duration,
    },
    /// It does not answer as it should.
    #[error("the host for the check failed: {0}; run it again, with --keep to see its log")]
    Host(String),
    /// Ctrl-C, SIGTERM, or SIGHUP.
    #[error("the check was interrupted; what it had started is stopped")]
    Interrupted,
    /// The verdict.
    #[error("{failed} of the checks failed; each says what to do")]
    Failed {
        /// How many.
        failed: usize,
    },
}

/// Checks and tells.
pub async fn run(arguments: Check, output: &Output) -> Result<(), CliError> {
    let begin = Instant::now();
    let settings = settings(&arguments)?;
    let mut report = Report::default();
    output.progress("reading the package");
    let manifest = tokio::select! {
        manifest = package::examine(&arguments.package, &mut report) => manifest?,
        () = interrupted() => return Err(CheckError::Interrupted.into()),
    };
    let kept = match &manifest {
        Some(manifest) => in_a_home(&arguments, manifest, &settings, output, &mut report).await?,
        None => None,
    };
    report.finish(match manifest {
        Some(_) => "the plugin does not run",
        None => "no host would install the package here",
    });
    let duration = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    report.show(&arguments.package, duration, kept.as_deref(), output)?;
    if let Some(home) = kept {
        output.note(&format!("the home is kept: {}", home.display()));
    }
    match report.failed() {
        0 => Ok(()),
        failed => Err(CheckError::Failed { failed }.into()),
    }
}

/// The settings of the plugin: the file's, and secrets from files of their own.
fn settings(arguments: &Check) -> Result<Map<String, Value>, CliError> {
    let mut settings = match &arguments.config {
        Some(path) => file(path)?,
        None => Map::new(),
    };
    for secret in &arguments.secret {
        let (field, path) = secret.split_once('=').ok_or(SettingError::SecretForm)?;
        let value = read_value("secret", Some(Path::new(path)))?;
        settings.insert(field.to_owned(), value.expose_secret().into());
    }
    Ok(settings)
}

/// Runs the checks on a host in a home that is gone afterwards, however they end; the home, when it is to be kept.
async fn in_a_home(
    arguments: &Check,
    manifest: &Manifest,
    settings: &Map<String, Value>,
    output: &Output,
    report: &mut Report,
) -> Result<Option<PathBuf>, CheckError> {
    let timing = CheckTiming::new(arguments.timeout);
    let folder = tempfile::Builder::new().prefix("kandev-check-").tempdir().map_err(CheckError::Home)?;
    // As the host's processes have it in their environment.
    let home = folder.path().canonicalize().map_err(CheckError::Home)?;
    let mut running = None;
    let done = tokio::select! {
        done = on_a_host(&mut running, &home, &timing, arguments, manifest, settings, output, report) => done,
        () = interrupted() => Err(CheckError::Interrupted),
    };
    output.progress("cleaning up");
    if let Some(host) = running {
        host.end(&timing).await;
    }
    let mark = Mark::of(&home);
    // What is not killed here is nobody's any more; a panic has been told.
    let _ = spawn_blocking(move || mark.kill()).await;
    if arguments.keep {
        let kept = folder.keep();
        // Told here as well: without a result nothing else does.
        if done.is_err() {
            output.note(&format!("the home is kept: {}", kept.display()));
        }
        return done.map(|()| Some(kept));
    }
    if let Err(error) = folder.close() {
        output.note(&format!("warning: the throw-away home was not removed: {error}"));
    }
    done.map(|()| None)
}

#[expect(clippy::too_many_arguments, reason = "everything that a check is made of, joined here and nowhere else")]
async fn on_a_host(
    running: &mut Option<CheckHost>,
    home: &Path,
    timing: &CheckTiming,
    arguments: &Check,
    manifest: &Manifest,
    settings: &Map<String, Value>,
    output: &Output,
    report: &mut Report,
) -> Result<(), CheckError> {
    output.progress("starting a host");
    let host = running.insert(CheckHost::start(home, timing).await?);
    let mut session = Session { api: &host.api, manifest, timing, output, report, home };
    let board = events::Board::make(&session).await?;
    if !start::start(&mut session, &arguments.package, settings).await? {
        return Ok(());
    }
    if !quiet::rest(&mut session).await? && !session.runs().await? {
        return Ok(());
    }
    let memory = session.view().await?.process.memory_bytes;
    events::check(&mut session, &board).await?;
    webhooks::check(&mut session).await?;
    ui::check(&mut session).await?;
    tools::check(&mut session, arguments.call_tools).await?;
    if session.runs().await? {
        quiet::afterwards(&mut session, memory, !arguments.secret.is_empty()).await?;
    }
    stop::check(&mut session).await
}

/// Ctrl-C, SIGTERM, or a terminal that goes away: the host has a process group of its own and would live on.
async fn interrupted() {
    let (Ok(mut term), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = term.recv() => {}
        _ = hangup.recv() => {}
    }
}
