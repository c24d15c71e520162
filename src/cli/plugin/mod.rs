//! `plugin …`: what can be asked about plugins. `new`, `pack` and `inspect` work on files alone; the others ask a
//! running host.

mod inspect;
mod install;
mod logs;
pub mod new;
mod operate;
pub mod pack;
mod view;

use clap::{Args, Subcommand};
use secrecy::SecretString;

use super::{client::Client, error::CliError, output::Output, runtime, secret};
use crate::{
    config::{self, ClientFlags, Lookup},
    domain::id::PluginId,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin new my-plugin --lang go
  kandev-host plugin pack dist
  kandev-host plugin install my-plugin-0.1.0.tar.gz
  kandev-host plugin list
  kandev-host plugin logs my-plugin

`new`, `pack` and `inspect` need no host. The others find a host that runs on this machine by its home; another one by
--host and --token, or KANDEV_URL and KANDEV_ADMIN_TOKEN.";

/// The group's commands.
#[derive(Subcommand)]
pub enum PluginCommand {
    /// Makes a project that packs and installs at once
    #[command(after_help = new::EXAMPLES)]
    New(new::New),
    /// Makes a package of a folder, checked as a host checks it
    #[command(after_help = pack::EXAMPLES)]
    Pack(pack::Pack),
    /// Shows what is in a package, without installing it
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::Inspect),
    /// Installs or upgrades a plugin, and waits until it runs
    #[command(after_help = install::EXAMPLES)]
    Install(install::Install),
    /// Lists the installed plugins
    #[command(after_help = operate::LIST_EXAMPLES)]
    List(Host),
    /// Shows one plugin
    #[command(after_help = operate::SHOW_EXAMPLES)]
    Show(OnePlugin),
    /// Prints the last lines of a plugin's output, and those that come
    #[command(after_help = logs::EXAMPLES)]
    Logs(logs::Logs),
    /// Starts a plugin that is disabled or failed
    #[command(after_help = operate::ENABLE_EXAMPLES)]
    Enable(OnePlugin),
    /// Stops a plugin until it is enabled again
    #[command(after_help = operate::DISABLE_EXAMPLES)]
    Disable(OnePlugin),
    /// Removes a plugin with all it has: process, versions, settings, files, stored state
    #[command(after_help = operate::REMOVE_EXAMPLES)]
    Remove(OnePlugin),
}

/// Which host to ask.
#[derive(Args, Clone)]
pub struct Host {
    /// The host's address [env: KANDEV_URL] [default: what run/host.json below home says]
    #[arg(long, value_name = "URL")]
    host: Option<String>,
    /// The operator's token; other users see a flag's value, so prefer the variable
    /// [env: KANDEV_ADMIN_TOKEN, KANDEV_ADMIN_TOKEN_FILE] [default: admin-token below home]
    #[arg(long, value_name = "TOKEN", value_parser = secret)]
    token: Option<SecretString>,
    /// The host's folder, to find address and token [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Longest wait for the host, like 30s or 5m [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = config::parse_duration)]
    timeout: Option<std::time::Duration>,
}

/// One plugin of one host.
#[derive(Args, Clone)]
pub struct OnePlugin {
    /// The plugin's id
    id: String,
    #[command(flatten)]
    host: Host,
}

impl Host {
    fn client(self, env: Lookup<'_>) -> Result<Client, CliError> {
        let Self { host, token, home, timeout } = self;
        let settings = config::load_client(ClientFlags { host, token, home, timeout }, env)?;
        Ok(Client::new(settings)?)
    }
}

impl OnePlugin {
    /// Checked before anything is asked: only an id can be a part of an address.
    fn open(self, env: Lookup<'_>) -> Result<(PluginId, Client), CliError> {
        Ok((PluginId::new(&self.id)?, self.host.client(env)?))
    }
}

/// Runs a command of the group.
pub fn run(command: PluginCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        PluginCommand::New(new) => new::run(new, output),
        PluginCommand::Pack(pack) => runtime.block_on(pack::run(pack, output)),
        PluginCommand::Inspect(inspect) => runtime.block_on(inspect::run(inspect, output)),
        PluginCommand::Install(install) => runtime.block_on(install::run(install, output, env)),
        PluginCommand::List(host) => {
            let client = host.client(env)?;
            runtime.block_on(operate::list(&client, output))
        }
        PluginCommand::Logs(logs) => runtime.block_on(logs::run(logs, output, env)),
        PluginCommand::Show(plugin) => {
            let (id, client) = plugin.open(env)?;
            runtime.block_on(operate::show(&id, &client, output))
        }
        PluginCommand::Enable(plugin) => {
            let (id, client) = plugin.open(env)?;
            runtime.block_on(operate::enable(&id, &client, output))
        }
        PluginCommand::Disable(plugin) => {
            let (id, client) = plugin.open(env)?;
            runtime.block_on(operate::disable(&id, &client, output))
        }
        PluginCommand::Remove(plugin) => {
            let (id, client) = plugin.open(env)?;
            runtime.block_on(operate::remove(&id, &client, output))
        }
    }
}
