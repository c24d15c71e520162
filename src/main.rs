//! The command line: `serve` and `config show`. Sets up what is global to the process (log, TLS provider, panic log)
//! and leaves the rest to `app`.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use kandev_host::{
    app,
    config::{self, Config, ConfigError, Overrides, Row},
};
use secrecy::SecretString;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::EnvFilter;

const SERVE_EXAMPLES: &str = "\
Examples:
  kandev-host serve
  kandev-host serve --listen 0.0.0.0:8080 --home /var/lib/kandev
  KANDEV_LOG=debug KANDEV_LOG_FORMAT=json kandev-host serve

The operator's token is taken from KANDEV_ADMIN_TOKEN or KANDEV_ADMIN_TOKEN_FILE, else made on the first start and kept
in <home>/admin-token. Everything else can be set in <home>/host.toml; `kandev-host config show` lists the keys.";

const SHOW_EXAMPLES: &str = "\
Examples:
  kandev-host config show
  kandev-host config show --json --home /var/lib/kandev";

/// Hosts third-party plugins as supervised processes.
#[derive(Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the host until it gets SIGINT or SIGTERM
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Settings),
    /// Tells about the settings
    #[command(subcommand)]
    Config(ConfigCommand),
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Prints every key with its value, default, unit and source; secrets are not shown
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Prints JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        settings: Settings,
    },
}

#[derive(Args)]
struct Settings {
    /// Address and port of the REST interface; port 0 takes a free one [env: KANDEV_LISTEN] [default: 127.0.0.1:38429]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Folder of everything the host keeps on disk [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Database; other users see a flag's value, so prefer the variable when it holds a password
    /// [env: DATABASE_URL, DATABASE_URL_FILE] [default: a SQLite file below home]
    #[arg(long, value_name = "URL", value_parser = secret)]
    database_url: Option<SecretString>,
}

impl From<Settings> for Overrides {
    fn from(Settings { listen, home, database_url }: Settings) -> Self {
        Self { listen, home, database_url }
    }
}

fn secret(text: &str) -> Result<SecretString, std::convert::Infallible> {
    Ok(text.to_owned().into())
}

/// Exit code for settings that cannot be used, as clap has for arguments; other failures are 1.
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    let env = |name: &str| std::env::var_os(name);
    match Cli::parse().command {
        Command::Serve(settings) => match config::load(settings.into(), &env) {
            Ok(config) => serve(config),
            Err(error) => fail(BAD_SETTINGS, &error),
        },
        Command::Config(ConfigCommand::Show { json, settings }) => show(json, settings.into(), &env),
    }
}

fn serve(config: Config) -> ExitCode {
    let _written_at_the_end = match start_log(&config.log) {
        Ok(guard) => guard,
        Err(error) => return fail(BAD_SETTINGS, &error),
    };
    log_panics();
    // Already installed only when two hosts share a process, which then share the provider too.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    goplugin::warm_up_crypto();
    match app::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

fn show(json: bool, overrides: Overrides, env: config::Lookup<'_>) -> ExitCode {
    let loaded = match config::load_explained(overrides, env) {
        Ok(loaded) => loaded,
        Err(error) => return fail(BAD_SETTINGS, &error),
    };
    let rows = config::rows(&loaded);
    let text = if json { serde_json::to_string_pretty(&rows).unwrap_or_default() } else { table(&rows) };
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        // `config show | head` is no failure.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

/// Columns as wide as their widest cell; the last one is not padded.
fn table(rows: &[Row]) -> String {
    let header = ["KEY", "VALUE", "DEFAULT", "UNIT", "SOURCE"].map(String::from);
    let cells = rows
        .iter()
        .map(|row| [row.key.clone(), cell(&row.value), cell(&row.default), row.unit.to_owned(), row.source.clone()]);
    let lines: Vec<[String; 5]> = std::iter::once(header).chain(cells).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    let render = |[key, value, default, unit, source]: &[String; 5]| {
        let [a, b, c, d] = widths;
        format!("{key:a$}  {value:b$}  {default:c$}  {unit:d$}  {source}")
    };
    lines.iter().map(render).collect::<Vec<_>>().join("\n")
}

/// Lists can be long; the JSON form has them whole.
fn cell(value: &serde_json::Value) -> String {
    const MAX_LIST: usize = 5;
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(items) if items.len() > MAX_LIST => format!("({} items, see --json)", items.len()),
        serde_json::Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// What is silent unless the filter names it: the HTTP library reports every malformed request at level error, so that
/// any stranger could fill the log.
const QUIET: &str = "actix_http::h1::dispatcher=off";

/// Log lines go to standard error: as text, in colour on a terminal, or one JSON object a line. A thread of its own writes
/// them: when nobody reads them, lines are dropped and the host goes on. The guard writes what is left when it is dropped.
fn start_log(filter: &str) -> Result<WorkerGuard, ConfigError> {
    let bad = |key: &str, variable, reason: String| ConfigError::BadValue {
        key: key.to_owned(),
        origin: config::Source::Environment(variable),
        reason,
    };
    let filter =
        EnvFilter::try_new(format!("{QUIET},{filter}")).map_err(|error| bad("log", "KANDEV_LOG", error.to_string()))?;
    let (writer, guard) = tracing_appender::non_blocking(io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    match std::env::var("KANDEV_LOG_FORMAT").as_deref() {
        Ok("json") => log.json().flatten_event(true).init(),
        Ok("" | "text") | Err(std::env::VarError::NotPresent) => log.with_ansi(io::stderr().is_terminal()).init(),
        Ok(_) | Err(std::env::VarError::NotUnicode(_)) => {
            return Err(bad("log format", "KANDEV_LOG_FORMAT", "it must be text or json".to_owned()));
        }
    }
    Ok(guard)
}

/// A panic becomes a line of the log, so that a JSON log stays one.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        tracing::error!(location, message = panic.payload_as_str().unwrap_or("no text"), "panic");
    }));
}

fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    let mut text = format!("kandev-host: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    // Nobody is left to tell when standard error is gone.
    let _ = writeln!(io::stderr(), "{text}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_become_overrides() {
        let cli = Cli::try_parse_from(["kandev-host", "serve", "--listen", "127.0.0.1:0", "--home", "/h"]).unwrap();
        let Command::Serve(settings) = cli.command else { unreachable!() };
        let Overrides { listen, home, database_url } = settings.into();
        assert_eq!((listen.as_deref(), home.as_deref()), (Some("127.0.0.1:0"), Some("/h")));
        assert!(database_url.is_none());
    }

    #[test]
    fn the_table_has_a_line_for_each_key_in_columns() {
        let row = |key: &str, value: serde_json::Value| Row {
            key: key.to_owned(),
            value: value.clone(),
            default: value,
            unit: "duration",
            source: "default".to_owned(),
        };
        let text = table(&[row("timing.a", "1s".into()), row("b", serde_json::json!(["1s", "2s"]))]);
        assert_eq!(
            text,
            "KEY       VALUE  DEFAULT  UNIT      SOURCE\n\
             timing.a  1s     1s       duration  default\n\
             b         1s 2s  1s 2s    duration  default"
        );
    }
}
