//! The host's log: which lines, in which form, written by whom (docs/logging.md).

mod backlog;
mod visible;

use std::{fmt, io};

pub use backlog::Written;
use tracing::field::Field;
use tracing_subscriber::{
    Layer as _,
    field::MakeExt as _,
    filter::{ParseError, Targets},
    fmt::format::{Writer, debug_fn},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use visible::Visible;

use super::telemetry::Traces;
use crate::config::Timing;

/// What is silent unless the filter names it. The HTTP library reports every malformed request at level error, so that
/// any stranger could fill the log; the MCP library writes whole messages, with the arguments of tools; the database library
/// makes a span for each statement, which costs as much as a small one.
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

/// A field as the library writes it without colours.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(writer, "{value:?}"),
        name => write!(writer, "{name}={value:?}"),
    }
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
    let log = tracing_subscriber::fmt::layer();
    let log = match form {
        Form::Json => log.with_writer(backlog).json().flatten_event(true).boxed(),
        Form::Text { colours: true } => log.with_writer(backlog).with_ansi(true).boxed(),
        // The library writes each name and value in a style of its own, also when there are no colours, and looks at each
        // character of each value: together a good part of what a line costs. Here the whole line is looked at once.
        Form::Text { colours: false } => {
            let fields = debug_fn(write_field).delimited(" ");
            log.with_writer(Visible(backlog)).with_ansi(false).fmt_fields(fields).boxed()
        }
    };
    match traces {
        None => tracing_subscriber::registry().with(log).with(filter).init(),
        Some(traces) => tracing_subscriber::registry().with(log.with_filter(filter)).with(traces.layer()).init(),
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Subscriber;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written of fields of every kind.
    fn written<S: Subscriber + Send + Sync + 'static>(subscriber: impl FnOnce(Lines) -> S) -> String {
        let lines = Lines::default();
        tracing::subscriber::with_default(subscriber(lines.clone()), || {
            let span = tracing::info_span!("request", request.id = %"0190", principal = ?"operator", late = tracing::field::Empty);
            span.record("late", 7);
            span.in_scope(|| {
                let none: Option<&str> = None;
                tracing::info!(http.status = 200, route = "/a", ok = true, ratio = 0.5, none, "request {}", "served");
                tracing::warn!("a \"message\" alone");
                tracing::error!(error = %"no\nmore");
            });
        });
        let text = lines.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_line_without_colours_has_the_fields_as_the_library_writes_them() {
        let usual = written(|lines| {
            tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || lines.clone()).finish()
        });
        let own = written(|lines| {
            let fields = debug_fn(write_field).delimited(" ");
            let own = tracing_subscriber::fmt().with_ansi(false).without_time().fmt_fields(fields);
            own.with_writer(move || lines.clone()).finish()
        });
        assert!(usual.lines().count() >= 3, "{usual}");
        assert_eq!(own, usual);
    }
}
