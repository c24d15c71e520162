//! How fields stand in a line for people: `name=value`, so that no value ends its line, begins another one, or says
//! anything to the terminal on which somebody reads it.

use std::{error::Error, fmt, fmt::Write as _};

use tracing::field::{Field, Visit};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{FormatFields, format::Writer},
};

use crate::domain::clean::is_invisible;

/// Of the terminal: for a name, for what stands behind it, and for what comes then.
const STYLES: [&str; 3] = ["\x1b[3m", "\x1b[0m\x1b[2m", "\x1b[0m"];

/// The form of the library's own lines, but with values whose every piece is looked at; the library does so for a few.
pub struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = Line { writer, empty: true, result: Ok(()) };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'writer> {
    writer: Writer<'writer>,
    empty: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn write(&mut self, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
        if !self.empty {
            self.writer.write_char(' ')?;
        }
        self.empty = false;
        if name != "message" {
            let [italic, dimmed, plain] = if self.writer.has_ansi_escapes() { STYLES } else { [""; 3] };
            for piece in [italic, name.strip_prefix("r#").unwrap_or(name), dimmed, "=", plain] {
                self.writer.write_str(piece)?;
            }
        }
        Visible(&mut self.writer).write_fmt(value)
    }

    fn record(&mut self, name: &str, value: fmt::Arguments<'_>) {
        // What the library tells of a line that came by the `log` crate; it stands in the line already.
        if self.result.is_ok() && !name.starts_with("log.") {
            self.result = self.write(name, value);
        }
    }
}

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field.name(), format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.record("message", format_args!("{value}")),
            name => self.record(name, format_args!("{value:?}")),
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.record(field.name(), format_args!("{value}"));
        let mut cause = value.source();
        while let Some(error) = cause {
            self.record("cause", format_args!("{error}"));
            cause = error.source();
        }
    }
}

/// Passes text on; what a terminal obeys, an end of a line among it, and what is not seen is written as Rust writes it
/// in a text.
struct Visible<'a, W>(&'a mut W);

impl<W: fmt::Write> fmt::Write for Visible<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Nearly every text.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return self.0.write_str(text);
        }
        for c in text.chars() {
            match c {
                '\t' => self.0.write_char(c)?,
                c if c.is_control() || is_invisible(c) => write!(self.0, "{}", c.escape_default())?,
                c => self.0.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use proptest::prelude::*;
    use tracing_subscriber::fmt::{
        MakeWriter, SubscriberBuilder,
        format::{DefaultFields, Format, Full},
    };

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

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    type Builder<F> = SubscriberBuilder<F, Format<Full, ()>>;

    /// What is written while `work` runs.
    fn written<F>(form: impl FnOnce(Builder<DefaultFields>) -> Builder<F>, ansi: bool, work: fn()) -> String
    where
        F: for<'w> FormatFields<'w> + Send + Sync + 'static,
    {
        let lines = Lines::default();
        let all = tracing_subscriber::fmt().without_time().with_ansi(ansi);
        let subscriber = form(all).with_writer(lines.clone()).finish();
        tracing::subscriber::with_default(subscriber, work);
        let text = lines.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    fn every_kind() {
        let span =
            tracing::info_span!("request", request.id = %"0190", principal = ?"operator", late = tracing::field::Empty);
        span.record("late", 7);
        span.in_scope(|| {
            let none: Option<&str> = None;
            tracing::info!(http.status = 200, route = "/a", ok = true, ratio = 0.5, none, "request {}", "served");
            tracing::warn!(r#type = "t", "a \"message\" alone");
            tracing::info!(message = "a field", log.target = "elsewhere", log.line = 7, after = 1);
        });
    }

    #[test]
    fn a_line_has_the_fields_as_the_library_writes_them_with_colours_and_without() {
        for ansi in [false, true] {
            let usual = written(|all| all, ansi, every_kind);
            let own = written(|all| all.fmt_fields(Fields), ansi, every_kind);
            assert_eq!((usual.lines().count(), usual.contains("log.")), (3, false), "{usual}");
            assert_eq!(own, usual);
        }
    }

    fn hostile() {
        let home = std::path::Path::new("a\x1b[31m\n2026 INFO forged").display();
        tracing::info_span!("request", %home).in_scope(|| {
            tracing::info!(%home, text = "\u{9b}2J", "begun\r\n{home}");
            let error = io::Error::other("no\u{202e}\nmore");
            tracing::error!(error = &error as &(dyn Error + 'static));
        });
    }

    #[test]
    fn no_value_ends_its_line_or_speaks_to_the_terminal() {
        let text = written(|all| all.fmt_fields(Fields), false, hostile);
        let home = "a\\u{1b}[31m\\n2026 INFO forged";
        let target = module_path!();
        let expected = format!(
            " INFO request{{home={home}}}: {target}: begun\\r\\n{home} home={home} text=\"\\u{{9b}}2J\"\n\
             ERROR request{{home={home}}}: {target}: error=no\\u{{202e}}\\nmore\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_an_error_came_of_is_told_behind_it() {
        let text = written(
            |all| all.fmt_fields(Fields),
            false,
            || {
                #[derive(Debug, thiserror::Error)]
                #[error("outer")]
                struct Outer(#[source] io::Error);
                let error = Outer(io::Error::other("inner"));
                tracing::error!(error = &error as &(dyn Error + 'static), "it failed");
            },
        );
        assert!(text.ends_with(": it failed error=outer cause=inner\n"), "{text}");
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_is_obeyed_or_not_seen_and_nothing_is_lost(text in "(?s:.{0,40})") {
            let mut shown = String::new();
            Visible(&mut shown).write_str(&text).unwrap();
            let obeyed = |c: char| (c != '\t' && c.is_control()) || is_invisible(c);
            prop_assert!(!shown.chars().any(obeyed), "{shown:?}");
            let plain: String = text.chars().filter(|c| !obeyed(*c)).collect();
            let mut rest = shown.chars();
            prop_assert!(plain.chars().all(|c| rest.any(|other| other == c)), "{shown:?}");
        }
    }
}
