//! The host's log: which lines, in which form, written by whom (docs/logging.md).

mod backlog;
mod fields;

use std::io;

use tracing_subscriber::{
    Layer as _,
    filter::{ParseError, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

pub use backlog::Written;
use fields::Fields;

use super::telemetry::Traces;
use crate::config::Timing;

/// What is silent unless the filter names it. The HTTP library reports every malformed request at level error, so that
/// any stranger could fill the log; the MCP library writes whole messages, with the arguments of tools; the database
/// library makes a span for each statement, which costs as much as a small one.
const QUIET: &str = "actix_http::h1::dispatcher=off,rmcp=off,sea_orm=warn,sqlx=warn";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter cannot be read.
    #[error(transparent)]
    Filter(#[from] ParseError),
    /// The system gives no thread.
    #[error("the log's thread cannot be started: {0}")]
    Thread(#[from] io::Error),
}

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text {
        /// With the terminal's colours.
        colours: bool,
    },
    /// One JSON object a line.
    Json,
}

/// Starts the log of this process. The filter, levels by target, is for the log alone: which spans are exported does
/// not depend on it.
///
/// A thread of its own writes: when nobody reads the lines, they are dropped and the host goes on. Lines that are ready
/// together are written together, then the thread rests (`timing.log_rest`). The guard writes what is left when it is
/// dropped, for at most `timing.log_close`.
///
/// # Errors
/// The filter's mistake, or a thread that cannot be started.
///
/// # Panics
/// When the process has a log already.
pub fn start(
    filter: &str,
    form: Form,
    output: impl io::Write + Send + 'static,
    timing: &Timing,
    traces: Option<&Traces>,
) -> Result<Written, LogError> {
    let filter: Targets = format!("{QUIET},{filter}").parse()?;
    let (backlog, written) = backlog::start(output, timing, |count| {
        tracing::warn!(count, "lines of the log were dropped: nobody took them in time");
    })?;
    let log = tracing_subscriber::fmt::layer().with_writer(backlog);
    let log = match form {
        Form::Json => log.json().flatten_event(true).boxed(),
        Form::Text { colours } => log.with_ansi(colours).fmt_fields(Fields).boxed(),
    };
    match traces {
        None => tracing_subscriber::registry().with(log).with(filter).init(),
        Some(traces) => tracing_subscriber::registry().with(log.with_filter(filter)).with(traces.layer()).init(),
    }
    Ok(written)
}
