//! The command line: what can be asked, and the way from arguments to an exit code (docs/cli.md).
//!
//! One file a group of commands; `output` alone writes to the standard streams, `error` alone knows exit codes.

mod client;
mod completions;
mod config;
mod db;
mod error;
mod git_credential;
mod health;
mod inbox;
mod marketplace;
mod output;
mod plugin;
mod secret;
mod serve;
mod sse;
mod token_file;
mod trust;
mod vault;

use std::{ffi::OsString, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use error::CliError;
use output::Output;
use secrecy::SecretString;
pub use serve::log;

use crate::config::Overrides;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  wrong usage or settings
  3  no host reached
  4  refused by the host
  5  the plugin is installed but not running
  6  the package is sound, but not signed by a trusted key
  7  another version did not come up, the one before is installed again
  8  the plugin failed its check

Examples:
  kandev-host serve
  kandev-host plugin new my-plugin --lang go
  kandev-host plugin install my-plugin-0.1.0.tar.gz
  kandev-host plugin list --json";

/// Hosts third-party plugins as supervised processes.
#[derive(Parser)]
#[command(name = "kandev-host", version, about, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    /// Prints results on standard output and errors on standard error as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the host until it gets SIGINT or SIGTERM
    #[command(after_help = serve::EXAMPLES)]
    Serve(Settings),
    /// Asks a running host whether it is ready
    #[command(after_help = health::EXAMPLES)]
    Health(health::Health),
    /// Makes, packs, installs and operates plugins
    #[command(subcommand, after_help = plugin::EXAMPLES)]
    Plugin(plugin::PluginCommand),
    /// Looks for plugins that others offer, and says where to look
    #[command(subcommand, after_help = marketplace::EXAMPLES)]
    Marketplace(marketplace::MarketplaceCommand),
    /// Keeps secrets and says which plugins may reveal them
    #[command(subcommand, after_help = secret::EXAMPLES)]
    Secret(secret::SecretCommand),
    /// Looks after the key that secrets are encrypted with
    #[command(subcommand, after_help = vault::EXAMPLES)]
    Vault(vault::VaultCommand),
    /// Looks after the keys whose signatures count
    #[command(subcommand, after_help = trust::EXAMPLES)]
    Trust(trust::TrustCommand),
    /// Is a credential helper of git: asks a running host for the credential of one repository
    #[command(after_help = git_credential::EXAMPLES)]
    GitCredential(git_credential::GitCredential),
    /// Shows what the host has to tell its operator
    #[command(after_help = inbox::EXAMPLES)]
    Inbox(inbox::Inbox),
    /// Looks after the database: its schema, copies of it, data for demos
    #[command(subcommand, after_help = db::EXAMPLES)]
    Db(db::DbCommand),
    /// Tells about the settings
    #[command(subcommand, after_help = config::EXAMPLES)]
    Config(config::ConfigCommand),
    /// Prints a completion script for a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Shell),
}

impl Command {
    /// Whether the operator's token goes to a host with it.
    fn speaks_as_operator(&self) -> bool {
        match self {
            Self::Plugin(_)
            | Self::Marketplace(_)
            | Self::Secret(_)
            | Self::Vault(_)
            | Self::Trust(_)
            | Self::Inbox(_) => true,
            Self::Serve(_)
            | Self::Health(_)
            | Self::GitCredential(_)
            | Self::Db(_)
            | Self::Config(_)
            | Self::Completions(_) => false,
        }
    }
}

/// Settings of the host itself.
#[derive(Args)]
struct Settings {
    /// Address and port of the REST interface; port 0 takes a free one [env: KANDEV_LISTEN] [default: 127.0.0.1:38429]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    #[command(flatten)]
    store: StoreSettings,
}

/// Settings of what the host keeps.
#[derive(Args)]
struct StoreSettings {
    /// Folder of everything the host keeps on disk [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Database; other users see a flag's value, so prefer the variable when it holds a password
    /// [env: DATABASE_URL, DATABASE_URL_FILE] [default: a SQLite file below home]
    #[arg(long, value_name = "URL", value_parser = secret_text)]
    database_url: Option<SecretString>,
}

impl From<Settings> for Overrides {
    fn from(Settings { listen, store }: Settings) -> Self {
        Self { listen, ..store.into() }
    }
}

impl From<StoreSettings> for Overrides {
    fn from(StoreSettings { home, database_url }: StoreSettings) -> Self {
        Self { listen: None, home, database_url }
    }
}

fn secret_text(text: &str) -> Result<SecretString, std::convert::Infallible> {
    Ok(text.to_owned().into())
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let Cli { json, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    let output = Output::new(json);
    let env = |name: &str| std::env::var_os(name);
    if command.speaks_as_operator() {
        token_file::look_at_operators(&output, &env);
    }
    let done = match command {
        Command::Serve(settings) => serve::run(settings.into(), &env),
        Command::Health(arguments) => health::run(arguments, &output, &env),
        Command::Plugin(command) => plugin::run(command, &output, &env),
        Command::Marketplace(command) => marketplace::run(command, &output, &env),
        Command::Secret(command) => secret::run(command, &output, &env),
        Command::Vault(command) => vault::run(command, &output, &env),
        Command::Trust(command) => trust::run(command, &output, &env),
        Command::GitCredential(command) => git_credential::run(command, &output, &env),
        Command::Inbox(inbox) => inbox::run(inbox, &output, &env),
        Command::Db(command) => db::run(command, &output, &env),
        Command::Config(command) => config::run(command, &output, &env),
        Command::Completions(shell) => completions::run(&shell, &output),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.fail(&error),
    }
}

/// Help and the version, which are results, or what is wrong with the arguments. For programs that is an error like any
/// other; whether one asks is looked up here, since nothing was parsed.
fn not_parsed(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && wants_json(std::env::args_os().skip(1)) {
        return Output::new(true).fail(&usage(error));
    }
    error.exit()
}

fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let asks = |argument: OsString| argument == "--json" || argument.as_encoded_bytes().starts_with(b"--json=");
    arguments.take_while(|argument| argument != "--").any(asks)
}

/// clap's text without what `kandev-host: ` stands for elsewhere.
fn usage(error: &clap::Error) -> CliError {
    let text = error.to_string();
    CliError::Usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned())
}

/// The runtime of commands that wait for something; one thread does.
fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)
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
    fn every_command_shows_examples_in_its_help() {
        fn check(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{path} has no examples");
            command.get_subcommands().for_each(|child| check(child, &path));
        }
        check(&Cli::command(), "");
    }

    #[test]
    fn json_is_wanted_by_the_flag_alone_wherever_it_stands() {
        let wants = |line: &str| wants_json(line.split(' ').map(OsString::from));
        assert!(wants("kandev-host --json plugin nope") && wants("kandev-host plugin list --nope --json"));
        assert!(wants("kandev-host plugin list --json=1"));
        assert!(!wants("kandev-host plugin list --jsonl") && !wants("kandev-host plugin show -- --json"));
    }

    #[test]
    fn flags_become_overrides() {
        let cli = Cli::try_parse_from(["kandev-host", "serve", "--listen", "127.0.0.1:0", "--home", "/h"]).unwrap();
        let Command::Serve(settings) = cli.command else { unreachable!() };
        let Overrides { listen, home, database_url } = settings.into();
        assert_eq!((listen.as_deref(), home.as_deref()), (Some("127.0.0.1:0"), Some("/h")));
        assert!(database_url.is_none());
    }
}
