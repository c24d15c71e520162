//! `plugin …`: what can be asked about plugins. `new`, `pack`, `inspect`, `verify` and `keygen` work on files alone,
//! `check` starts a host for itself; the others ask a running host.

pub mod check;
mod config;
mod difference;
mod inspect;
mod install;
mod keygen;
pub mod keys;
mod logs;
pub mod new;
pub mod operate;
pub mod pack;
mod sync;
mod verify;
mod view;

pub use operate::part;

use clap::{Args, Subcommand};
pub use config::SettingError;
pub use install::{How, install as install_address};
use secrecy::SecretString;

use super::{client::Client, error::CliError, marketplace, output::Output, runtime, secret_text};
use crate::{
    config::{ClientFlags, Lookup, load_client, parse_duration},
    domain::id::PluginId,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin new my-plugin --lang go
  kandev-host plugin pack dist
  kandev-host plugin check my-plugin-0.1.0.tar.gz
  kandev-host plugin install my-plugin-0.1.0.tar.gz
  kandev-host plugin list
  kandev-host plugin logs my-plugin
  kandev-host plugin config get my-plugin

`new`, `pack`, `check`, `inspect`, `verify` and `keygen` need no host. The others find a host that runs on this machine by its home; another one by
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
    /// Runs a package on a throw-away host and tells how it behaves
    #[command(after_help = check::EXAMPLES)]
    Check(check::Check),
    /// Shows what is in a package, without installing it
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::Inspect),
    /// Tells whether a package is sound and who signed it
    #[command(after_help = verify::EXAMPLES)]
    Verify(verify::Verify),
    /// Makes a pair of keys to sign packages with
    #[command(after_help = keygen::EXAMPLES)]
    Keygen(keygen::Keygen),
    /// Looks for plugins in the marketplace
    #[command(after_help = marketplace::SEARCH_EXAMPLES)]
    Search(marketplace::Search),
    /// Installs or upgrades a plugin, and waits until it runs
    #[command(visible_alias = "upgrade", after_help = install::EXAMPLES)]
    Install(install::Install),
    /// Takes over folders and packages that were put into the host's plugins folder
    #[command(after_help = sync::EXAMPLES)]
    Sync(Host),
    /// Lists the installed plugins
    #[command(after_help = operate::LIST_EXAMPLES)]
    List(Host),
    /// Shows one plugin
    #[command(after_help = operate::SHOW_EXAMPLES)]
    Show(OnePlugin),
    /// Prints the last lines of a plugin's output, and those that come
    #[command(after_help = logs::EXAMPLES)]
    Logs(logs::Logs),
    /// Shows and changes a plugin's settings
    #[command(subcommand, after_help = config::EXAMPLES)]
    Config(config::PluginConfigCommand),
    /// Says whether a plugin is updated automatically
    #[command(after_help = marketplace::PLUGIN_AUTO_UPDATE_EXAMPLES)]
    AutoUpdate(marketplace::PluginAutoUpdate),
    /// Starts a plugin that is disabled or failed
    #[command(after_help = operate::ENABLE_EXAMPLES)]
    Enable(OnePlugin),
    /// Stops a plugin until it is enabled again
    #[command(after_help = operate::DISABLE_EXAMPLES)]
    Disable(OnePlugin),
    /// Goes back to the version that the last upgrade replaced
    #[command(after_help = operate::ROLLBACK_EXAMPLES)]
    Rollback(OnePlugin),
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
    #[arg(long, value_name = "TOKEN", value_parser = secret_text)]
    token: Option<SecretString>,
    /// The host's folder, to find address and token [env: KANDEV_HOME] [default: ~/.kandev]
    #[arg(long, value_name = "FOLDER")]
    home: Option<String>,
    /// Longest wait for the host, like 30s or 5m [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
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
    /// A client of it.
    pub fn client(self, env: Lookup<'_>) -> Result<Client, CliError> {
        let Self { host, token, home, timeout } = self;
        let settings = load_client(ClientFlags { host, token, home, timeout }, env)?;
        Ok(Client::new(settings)?)
    }
}

impl OnePlugin {
    /// Checked before anything is asked: only an id can be a part of an address.
    pub fn open(self, env: Lookup<'_>) -> Result<(PluginId, Client), CliError> {
        Ok((PluginId::new(&self.id)?, self.host.client(env)?))
    }
}

/// Runs a command of the group.
pub fn run(command: PluginCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        PluginCommand::New(new) => new::run(new, output),
        PluginCommand::Pack(pack) => runtime.block_on(pack::run(pack, output)),
        PluginCommand::Check(check) => runtime.block_on(check::run(check, output)),
        PluginCommand::Inspect(inspect) => runtime.block_on(inspect::run(inspect, output, env)),
        PluginCommand::Verify(verify) => runtime.block_on(verify::run(verify, output, env)),
        PluginCommand::Keygen(keygen) => keygen::run(keygen, output),
        PluginCommand::Search(search) => runtime.block_on(marketplace::search(search, output, env)),
        PluginCommand::AutoUpdate(word) => runtime.block_on(marketplace::plugin_auto_update(word, output, env)),
        PluginCommand::Install(install) => runtime.block_on(install::run(install, output, env)),
        PluginCommand::List(host) => {
            let client = host.client(env)?;
            runtime.block_on(operate::list(&client, output))
        }
        PluginCommand::Config(command) => runtime.block_on(config::run(command, output, env)),
        PluginCommand::Sync(host) => {
            let client = host.client(env)?;
            runtime.block_on(sync::run(&client, output))
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
        PluginCommand::Rollback(plugin) => {
            let (id, client) = plugin.open(env)?;
            runtime.block_on(operate::rollback(&id, &client, output))
        }
        PluginCommand::Remove(plugin) => {
            let (id, client) = plugin.open(env)?;
            runtime.block_on(operate::remove(&id, &client, output))
        }
    }
}
