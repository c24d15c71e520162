//! `plugin install`: uploads a package or names its address, shows how far it is, and waits until the plugin runs.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::Args;
use futures_util::TryStreamExt as _;
use reqwest::{Body, Method, RequestBuilder, multipart};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::io::ReaderStream;

use super::{Host, difference, operate::part, view::PluginView};
use crate::{
    cli::{
        client::{Client, ClientError},
        error::CliError,
        output::{Output, size},
    },
    config::Lookup,
    domain::consent::Kinds,
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin install my-plugin-0.1.0.tar.gz
  kandev-host plugin install https://example.test/my-plugin-0.1.0.tar.gz
  kandev-host plugin install my-plugin-0.1.0.tar.gz --json | jq -r .plugin.status
  kandev-host plugin upgrade my-plugin-0.2.0.tar.gz --dry-run
  kandev-host plugin upgrade my-plugin-0.2.0.tar.gz --accept capabilities,signer

Another version over an installed plugin is an upgrade, or a downgrade. One that asks for more capabilities, drops or
changes its signer, or goes back in version is installed with your consent only: you are shown the difference and asked;
without a terminal name what you accept. One that does not come up is undone. An address is fetched by the host, not
from here. Exit code 4: the host refuses the package; 5: it is installed and the plugin does not run; 7: the upgrade was
undone.";

/// Bytes read from the file at once.
const PIECE_BYTES: usize = 64 * 1024;

/// `install`.
#[derive(Args)]
pub struct Install {
    /// A package file, or an http(s) address of one
    #[arg(value_name = "FILE|URL")]
    package: String,
    #[command(flatten)]
    how: How,
}

/// On which terms, and where.
#[derive(Args)]
pub struct How {
    /// Only looks: the host checks the package and tells what it would change
    #[arg(long)]
    dry_run: bool,
    /// What you accept of the difference: capabilities, signer, downgrade
    #[arg(long, value_name = "KINDS", value_parser = Kinds::parse)]
    accept: Option<Kinds>,
    /// Takes this package only, by its SHA-256
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    #[command(flatten)]
    host: Host,
}

impl How {
    /// A client of the host it is installed on.
    pub fn client(&self, env: Lookup<'_>) -> Result<Client, CliError> {
        self.host.clone().client(env)
    }
}

/// What goes with the package.
#[derive(Clone, Default)]
pub struct Query {
    pub dry_run: bool,
    pub accept: Option<String>,
    pub sha256: Option<String>,
}

impl Query {
    fn pairs(&self) -> Vec<(&'static str, &str)> {
        let dry_run = self.dry_run.then_some(("dry_run", "true"));
        let accept = self.accept.as_deref().map(|accept| ("accept", accept));
        let sha256 = self.sha256.as_deref().map(|sha256| ("sha256", sha256));
        [dry_run, accept, sha256].into_iter().flatten().collect()
    }
}

/// What the host answers (docs/api.md, "Install").
#[derive(Deserialize)]
struct Answer {
    plugin: PluginView,
    #[serde(default)]
    warning: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Installs and waits, or only looks.
pub async fn run(Install { package, how }: Install, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    install(package, how, output, env).await
}

/// Installs this file or address.
pub async fn install(package: String, how: How, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let How { dry_run, accept, sha256, host } = how;
    let client = host.client(env)?;
    let query = Query { dry_run, accept: accept.map(|kinds| kinds.to_string()), sha256 };
    let mut answer = match send(&client, &package, &query, output).await {
        Err(CliError::Client(refused)) => {
            let consent = difference::consent(&refused, output).ok_or(refused)?;
            send(&client, &package, &consent, output).await?
        }
        answer => answer?,
    };
    if dry_run {
        return difference::show(&answer, output);
    }
    let installed: Answer = part(&answer)?;
    let plugin = settle(&client, installed.plugin, &mut answer, output).await?;
    for warning in &installed.warnings {
        output.note(&format!("warning: {warning}"));
    }
    finish(plugin, installed.warning, &answer, output)
}

/// Prints where a plugin stands; an error unless it runs.
pub fn finish(plugin: PluginView, warning: Option<String>, answer: &Value, output: &Output) -> Result<(), CliError> {
    output.result(answer, || format!("{} {} is {}", plugin.id, plugin.version, plugin.state()))?;
    match plugin.is_active() {
        true => Ok(()),
        false => {
            let reason = plugin.last_error.or(warning).unwrap_or_else(|| format!("it is {}", plugin.status));
            Err(CliError::NotRunning { id: plugin.id, reason })
        }
    }
}

/// Hands a package in: uploads the file, or names the address.
pub async fn send(client: &Client, package: &str, query: &Query, output: &Output) -> Result<Value, CliError> {
    let request = client.request_with(Method::POST, &["api", "plugins", "install"], &query.pairs());
    let is_address = ["http://", "https://"]
        .iter()
        .any(|scheme| package.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let (request, steps) = match is_address {
        true => (request.json(&json!({"url": package})), Steps::default()),
        false => upload(request, Path::new(package)).await?,
    };
    Ok(watch(client, request, &steps, output).await?)
}

/// How far an upload is.
#[derive(Default)]
struct Steps {
    total: u64,
    sent: Arc<AtomicU64>,
}

impl Steps {
    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sent() {
            sent if sent < self.total => {
                write!(f, "uploading {} of {} ({} %)", size(sent), size(self.total), sent * 100 / self.total)
            }
            _ => f.write_str("the host verifies, unpacks and starts it"),
        }
    }
}

/// The package as a form, read while it is sent.
async fn upload(request: RequestBuilder, path: &Path) -> Result<(RequestBuilder, Steps), CliError> {
    let wanted = "a package file or an http(s) address";
    let failed = |source| CliError::PackageFile { path: path.to_owned(), wanted, source };
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let metadata = file.metadata().await.map_err(failed)?;
    if !metadata.is_file() {
        return Err(failed(std::io::Error::other("it is not a regular file")));
    }
    let steps = Steps { total: metadata.len(), sent: Arc::default() };
    let sent = steps.sent.clone();
    let pieces = ReaderStream::with_capacity(file, PIECE_BYTES).inspect_ok(move |piece| {
        sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
    });
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let part = multipart::Part::stream_with_length(Body::wrap_stream(pieces), metadata.len()).file_name(name);
    Ok((request.multipart(multipart::Form::new().part("package", part)), steps))
}

/// Waits for the answer. The deadline begins anew with each piece the host takes: a large package on a slow line may
/// last, a host that stands still may not.
async fn watch(client: &Client, request: RequestBuilder, steps: &Steps, output: &Output) -> Result<Value, ClientError> {
    let timing = client.timing();
    let mut answer = std::pin::pin!(client.receive(request));
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        output.progress(&steps.to_string());
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::sleep(timing.look) => {}
        }
        let sent = steps.sent();
        if sent != seen {
            (seen, since) = (sent, Instant::now());
        } else if since.elapsed() >= timing.answer {
            return Err(client.timed_out());
        }
    }
}

/// Waits while the host is about to start the plugin again; the newest record goes into the answer.
async fn settle(
    client: &Client,
    mut plugin: PluginView,
    answer: &mut Value,
    output: &Output,
) -> Result<PluginView, CliError> {
    let timing = client.timing();
    let deadline = Instant::now() + timing.come_up;
    while !plugin.is_active() && plugin.restarting && Instant::now() < deadline {
        let reason = plugin.last_error.as_deref().unwrap_or("it did not start");
        output.progress(&format!("{} is started again: {reason}", plugin.id));
        tokio::time::sleep(timing.look).await;
        let record = client.get(&["api", "plugins", &plugin.id]).await?;
        plugin = part(&record)?;
        answer["plugin"] = record;
    }
    Ok(plugin)
}
