//! `marketplace …`, `plugin search` and `plugin auto-update`: what others offer, where from, and what is updated by
//! itself.

use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    client::{Client, ClientError},
    error::CliError,
    output::{Output, table},
    plugin::{self, Host, OnePlugin, operate::part},
    runtime,
};
use crate::config::Lookup;

pub const EXAMPLES: &str = "\
Examples:
  kandev-host marketplace add https://plugins.example.test/index.json --name Example
  kandev-host marketplace search mail
  kandev-host marketplace install acme-mail
  kandev-host marketplace sources

A source is an index that somebody publishes; what it lists is what its publisher says. Of two sources that list one plugin
the first counts.";

pub const SEARCH_EXAMPLES: &str = "\
Examples:
  kandev-host plugin search mail
  kandev-host plugin search --category connector --sort recent
  kandev-host plugin search mail --json | jq -r '.plugins[].package_url'

Every word must be in the id, name, description, author or categories. A source that cannot be reached is told as a warning;
what it listed before is shown.";

const SOURCES_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace sources
  kandev-host marketplace sources --json | jq -r '.sources[].url'";

const ADD_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace add https://plugins.example.test/index.json --name Example
  kandev-host marketplace add http://127.0.0.1:8080/index.json

An address is https, or on the host's own machine. Adding does not fetch it: search then.";

const REMOVE_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace remove 0192f3a0-0000-7000-8000-000000000000

What was installed from it stays, and is no longer updated from it.";

const ENABLE_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace enable builtin";

const DISABLE_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace disable builtin

A disabled source is neither fetched nor searched.";

const REFRESH_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace refresh

Fetches every index now instead of when it is five minutes old, then looks for updates.";

const INSTALL_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace install acme-mail
  kandev-host marketplace install acme-mail --accept capabilities

As `plugin install` with the address that the marketplace lists. The host refuses a package that is not the listed one, by
its SHA-256, when the list has it.";

const AUTO_UPDATE_EXAMPLES: &str = "\
Examples:
  kandev-host marketplace auto-update
  kandev-host marketplace auto-update on

What holds for plugins without a word of their own (`plugin auto-update`). Off until you say otherwise. A plugin is updated
only while it runs, by a package of the same trusted signer that asks for nothing more; the inbox tells what was not.";

pub const PLUGIN_AUTO_UPDATE_EXAMPLES: &str = "\
Examples:
  kandev-host plugin auto-update acme-mail on
  kandev-host plugin auto-update acme-mail default

`default` has the plugin follow `marketplace auto-update`.";

/// The group's commands.
#[derive(Subcommand)]
pub enum MarketplaceCommand {
    /// Looks for plugins
    #[command(after_help = SEARCH_EXAMPLES)]
    Search(Search),
    /// Installs a plugin that the marketplace lists
    #[command(after_help = INSTALL_EXAMPLES)]
    Install(Install),
    /// Lists the sources, in the order in which they count
    #[command(after_help = SOURCES_EXAMPLES)]
    Sources(Host),
    /// Adds a source
    #[command(after_help = ADD_EXAMPLES)]
    Add(Add),
    /// Deletes a source
    #[command(after_help = REMOVE_EXAMPLES)]
    Remove(OneSource),
    /// Asks a source again
    #[command(after_help = ENABLE_EXAMPLES)]
    Enable(OneSource),
    /// Asks a source no more
    #[command(after_help = DISABLE_EXAMPLES)]
    Disable(OneSource),
    /// Fetches every index anew
    #[command(after_help = REFRESH_EXAMPLES)]
    Refresh(Host),
    /// Shows or says whether plugins are updated automatically
    #[command(after_help = AUTO_UPDATE_EXAMPLES)]
    AutoUpdate(HostAutoUpdate),
}

/// `search`.
#[derive(Args)]
pub struct Search {
    /// Words to look for; none shows everything
    words: Vec<String>,
    /// Only plugins of this category
    #[arg(long)]
    category: Option<String>,
    /// Order: stars, name or recent [default: stars]
    #[arg(long, value_parser = ["stars", "name", "recent"])]
    sort: Option<String>,
    #[command(flatten)]
    host: Host,
}

/// `install`.
#[derive(Args)]
pub struct Install {
    /// The plugin's id
    id: String,
    #[command(flatten)]
    how: plugin::How,
}

/// `add`.
#[derive(Args)]
pub struct Add {
    /// Where the index is
    url: String,
    /// What to call the source [default: the host of its address]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    host: Host,
}

/// One source.
#[derive(Args)]
pub struct OneSource {
    /// The source's id, as the list shows it
    id: String,
    #[command(flatten)]
    host: Host,
}

/// `auto-update` of the host.
#[derive(Args)]
pub struct HostAutoUpdate {
    /// What is to hold; nothing shows what holds
    word: Option<OnOff>,
    #[command(flatten)]
    host: Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOff {
    On,
    Off,
}

/// `plugin auto-update`.
#[derive(Args)]
pub struct PluginAutoUpdate {
    #[command(flatten)]
    plugin: OnePlugin,
    /// Whether the plugin is updated automatically
    word: Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Word {
    On,
    Off,
    Default,
}

/// What the table needs of an offer (docs/api.md, "Marketplace").
#[derive(Deserialize)]
struct OfferView {
    id: String,
    #[serde(default)]
    name: String,
    version: String,
    package_url: String,
    #[serde(default)]
    stars: Option<u64>,
    #[serde(default)]
    install_state: String,
    #[serde(default)]
    installed_version: Option<String>,
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    source_name: String,
}

/// What is told of a source.
#[derive(Deserialize)]
struct SourceView {
    id: String,
    name: String,
    url: String,
    enabled: bool,
    #[serde(default)]
    error: Option<String>,
}

/// Runs a command of the group.
pub fn run(command: MarketplaceCommand, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let runtime = runtime()?;
    match command {
        MarketplaceCommand::Search(arguments) => runtime.block_on(search(arguments, output, env)),
        MarketplaceCommand::Install(arguments) => runtime.block_on(install(arguments, output, env)),
        MarketplaceCommand::Sources(host) => runtime.block_on(sources(host, output, env)),
        MarketplaceCommand::Add(arguments) => runtime.block_on(add(arguments, output, env)),
        MarketplaceCommand::Remove(source) => runtime.block_on(remove(source, output, env)),
        MarketplaceCommand::Enable(source) => runtime.block_on(switch(source, true, output, env)),
        MarketplaceCommand::Disable(source) => runtime.block_on(switch(source, false, output, env)),
        MarketplaceCommand::Refresh(host) => runtime.block_on(refresh(host, output, env)),
        MarketplaceCommand::AutoUpdate(word) => runtime.block_on(auto_update(word, output, env)),
    }
}

/// `plugin search`, `marketplace search`.
pub async fn search(
    Search { words, category, sort, host }: Search,
    output: &Output,
    env: Lookup<'_>,
) -> Result<(), CliError> {
    let client = host.client(env)?;
    let text = (!words.is_empty()).then(|| words.join(" "));
    let query: Vec<_> = [("q", text), ("category", category), ("sort", sort)]
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect();
    let answer = client.send(client.request_with(Method::GET, &["api", "plugins", "marketplace"], &query)).await?;
    warn(&answer, output)?;
    let offers: Vec<OfferView> = part(&answer["plugins"])?;
    output.result(&answer, || match offers.is_empty() {
        true => "no plugin is found".to_owned(),
        false => listed(&offers),
    })
}

/// Tells which sources cannot be had; how many.
fn warn(answer: &Value, output: &Output) -> Result<usize, CliError> {
    let sources: Vec<SourceView> = part(&answer["sources"])?;
    if sources.is_empty() {
        output.note("warning: the marketplace has no source: `kandev-host marketplace add URL` adds one");
    } else if sources.iter().all(|source| !source.enabled) {
        output.note("warning: every source is disabled: `kandev-host marketplace enable ID` enables one");
    }
    let mut failed = 0;
    for SourceView { name, error, .. } in sources {
        if let Some(error) = error {
            output.note(&format!("warning: {name}: {error}"));
            failed += 1;
        }
    }
    Ok(failed)
}

fn listed(offers: &[OfferView]) -> String {
    let rows = offers.iter().map(|offer| {
        let stars = offer.stars.map(|stars| stars.to_string()).unwrap_or_default();
        let state = match (offer.install_state.as_str(), &offer.installed_version) {
            ("update_available", Some(installed)) => format!("update of {installed}"),
            ("installed", Some(installed)) => format!("installed {installed}"),
            _ => String::new(),
        };
        let note = offer.note.clone().unwrap_or_default();
        let OfferView { id, version, name, source_name, .. } = offer;
        [id.clone(), version.clone(), stars, state, source_name.clone(), name.clone(), note]
    });
    table(["ID", "VERSION", "STARS", "STATE", "SOURCE", "NAME", "NOTE"], rows)
}

async fn install(Install { id, how }: Install, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let client = how.client(env)?;
    let answer = client.get(&["api", "plugins", "marketplace"]).await?;
    warn(&answer, output)?;
    let offers: Vec<OfferView> = part(&answer["plugins"])?;
    let offer = offers.into_iter().find(|offer| offer.id == id).ok_or(CliError::NotListed { id })?;
    plugin::install_address(offer.package_url, how, output, env).await
}

async fn sources(host: Host, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let answer = host.client(env)?.get(&["api", "plugins", "marketplace", "sources"]).await?;
    let sources: Vec<SourceView> = part(&answer["sources"])?;
    output.result(&answer, || match sources.is_empty() {
        true => "the marketplace has no source".to_owned(),
        false => {
            let rows = sources.into_iter().map(|SourceView { id, name, url, enabled, .. }| {
                let state = if enabled { "enabled" } else { "disabled" };
                [id, state.to_owned(), name, url]
            });
            table(["ID", "STATE", "NAME", "URL"], rows)
        }
    })
}

async fn add(Add { url, name, host }: Add, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let client = host.client(env)?;
    let body = json!({"name": name, "url": url});
    let request = client.request(Method::POST, &["api", "plugins", "marketplace", "sources"]).json(&body);
    let answer = client.send(request).await?;
    let added: SourceView = part(&answer)?;
    output.result(&answer, || format!("{} is added as {}", added.name, added.id))
}

async fn remove(OneSource { id, host }: OneSource, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let client = host.client(env)?;
    let answer = send_to_source(&client, of_source(&client, Method::DELETE, &id), &id).await?;
    output.result(&answer, || format!("{id} is removed"))
}

async fn switch(
    OneSource { id, host }: OneSource,
    enabled: bool,
    output: &Output,
    env: Lookup<'_>,
) -> Result<(), CliError> {
    let client = host.client(env)?;
    let request = of_source(&client, Method::PATCH, &id).json(&json!({"enabled": enabled}));
    let answer = send_to_source(&client, request, &id).await?;
    let source: SourceView = part(&answer)?;
    output.result(&answer, || format!("{} is {}", source.name, if source.enabled { "enabled" } else { "disabled" }))
}

fn of_source(client: &Client, method: Method, id: &str) -> reqwest::RequestBuilder {
    client.request(method, &["api", "plugins", "marketplace", "sources", id])
}

/// Sends what is about one source. Names look like ids to people: what was given is told when it is none.
async fn send_to_source(client: &Client, request: reqwest::RequestBuilder, id: &str) -> Result<Value, CliError> {
    client.send(request).await.map_err(|error| match error {
        ClientError::Refused { code, .. } if code == "source_not_found" => CliError::NoSource(id.to_owned()),
        other => other.into(),
    })
}

async fn refresh(host: Host, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let client = host.client(env)?;
    output.progress("the host fetches every index");
    let answer = client.send(client.request(Method::POST, &["api", "plugins", "marketplace", "refresh"])).await?;
    let failed = warn(&client.get(&["api", "plugins", "marketplace"]).await?, output)?;
    output.result(&answer, || match failed {
        0 => "the marketplace is fresh".to_owned(),
        1 => "one source could not be had and shows what it had; the others are fresh".to_owned(),
        _ => format!("{failed} sources could not be had and show what they had; the others are fresh"),
    })
}

async fn auto_update(
    HostAutoUpdate { word, host }: HostAutoUpdate,
    output: &Output,
    env: Lookup<'_>,
) -> Result<(), CliError> {
    let client = host.client(env)?;
    let path = ["api", "plugins", "settings"];
    let answer = match word {
        None => client.get(&path).await?,
        Some(word) => {
            let body = json!({"auto_update_default": word == OnOff::On});
            client.send(client.request(Method::PUT, &path).json(&body)).await?
        }
    };
    let on: bool = part(&answer["auto_update_default"])?;
    output.result(&answer, || format!("automatic updates are {}", if on { "on" } else { "off" }))
}

/// `plugin auto-update`.
pub async fn plugin_auto_update(
    PluginAutoUpdate { plugin, word }: PluginAutoUpdate,
    output: &Output,
    env: Lookup<'_>,
) -> Result<(), CliError> {
    let (id, client) = plugin.open(env)?;
    let (value, text) = match word {
        Word::On => (json!(true), "is updated automatically"),
        Word::Off => (json!(false), "is not updated automatically"),
        Word::Default => (Value::Null, "follows the host's setting"),
    };
    let request = client.request(Method::PUT, &["api", "plugins", id.as_str(), "auto-update"]);
    let answer = client.send(request.json(&json!({"auto_update": value}))).await?;
    output.result(&answer, || format!("{id} {text}"))
}
