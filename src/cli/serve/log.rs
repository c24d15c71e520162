//! The host's log: which lines, in which form, written by whom (docs/logging.md).

use std::{io, thread, time::Duration};

use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::{
    Layer as _,
    filter::{ParseError, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use super::telemetry::Traces;

/// What is silent unless the filter names it. The HTTP library reports every malformed request at level error, so that
/// any stranger could fill the log; the database library makes a span for each statement, which costs as much as a
/// small one.
const QUIET: &str = "actix_http::h1::dispatcher=off,sea_orm=warn,sqlx=warn";

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
/// dropped.
///
/// # Errors
/// The filter's mistake.
///
/// # Panics
/// When the process has a log already.
pub fn start(
    filter: &str,
    form: Form,
    output: impl io::Write + Send + 'static,
    rest: Duration,
    traces: Option<&Traces>,
) -> Result<WorkerGuard, ParseError> {
    let filter: Targets = format!("{QUIET},{filter}").parse()?;
    let (writer, guard) = tracing_appender::non_blocking(Restful { output: io::BufWriter::new(output), rest });
    let log = tracing_subscriber::fmt::layer().with_writer(writer);
    let log = match form {
        Form::Json => log.json().flatten_event(true).boxed(),
        Form::Text { colours } => log.with_ansi(colours).boxed(),
    };
    match traces {
        None => tracing_subscriber::registry().with(log).with(filter).init(),
        Some(traces) => tracing_subscriber::registry().with(log.with_filter(filter)).with(traces.layer()).init(),
    }
    Ok(guard)
}

/// Writes in batches: the thread flushes whenever no line waits, and then rests. A line that comes meanwhile need not wake
/// it, which would cost more than the line.
struct Restful<W: io::Write> {
    output: io::BufWriter<W>,
    rest: Duration,
}

impl<W: io::Write> io::Write for Restful<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    #[expect(clippy::disallowed_methods, reason = "on the log's own thread, which has nothing else to do")]
    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()?;
        thread::sleep(self.rest);
        Ok(())
    }
}
