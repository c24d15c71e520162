//! `plugin logs`: a plugin's newest lines, and with `--follow` those that come.
//!
//! A stream that breaks is taken up again behind the last line seen; the host is looked for anew each time, since it
//! may have come back at another port.

use clap::{Args, ValueEnum};
use futures_util::StreamExt as _;
use reqwest::{Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::time::{sleep, timeout};

use super::{OnePlugin, operate::part};
use crate::{
    cli::{
        client::{Client, ClientError},
        error::CliError,
        output::Output,
        sse::{Event, EventReader},
    },
    config::Lookup,
    domain::{clean, id::PluginId},
};

pub const EXAMPLES: &str = "\
Examples:
  kandev-host plugin logs event-logger
  kandev-host plugin logs event-logger --lines 20 --level warn
  kandev-host plugin logs event-logger --follow
  kandev-host plugin logs event-logger --since 2026-11-29T09:00:00Z --json | jq -r '.lines[].message'

With --follow and --json each line is an object of its own. A connection that breaks is taken up again; Ctrl-C ends it.
The host keeps the newest lines in memory (`limits.log_buffer_lines`), more of them in <home>/logs.";

/// Longest line that is shown, in bytes.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// `logs`.
#[derive(Args)]
pub struct Logs {
    #[command(flatten)]
    plugin: OnePlugin,
    /// Prints at most so many lines, the newest [default: `limits.log_lines` of the host]
    #[arg(short = 'n', long, value_name = "NUMBER")]
    lines: Option<usize>,
    /// Goes on with the lines that come
    #[arg(short, long)]
    follow: bool,
    /// Leaves finer lines out
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LevelFlag>,
    /// Leaves lines before this time out, like 2026-11-29T09:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<String>,
}

/// A level by its name.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LevelFlag {
    /// All lines
    Trace,
    /// Also lines that name no level
    Debug,
    /// Ordinary news and worse
    Info,
    /// What looks wrong and worse
    Warn,
    /// What is wrong
    Error,
}

/// A time as the host takes it.
fn time(text: &str) -> Result<String, &'static str> {
    let read = OffsetDateTime::parse(text, &Rfc3339);
    read.map(|_| text.to_owned()).map_err(|_| "write a time like 2026-11-29T09:00:00Z")
}

/// The request's query (docs/api.md, "Logs").
struct Query(Vec<(&'static str, String)>);

impl Query {
    fn new(limit: Option<usize>, level: Option<LevelFlag>, since: Option<String>, follow: bool) -> Self {
        let level = level.as_ref().and_then(LevelFlag::to_possible_value);
        let pairs = [
            ("limit", limit.map(|limit| limit.to_string())),
            ("level", level.map(|level| level.get_name().to_owned())),
            ("since", since),
            ("follow", follow.then(|| "true".to_owned())),
        ];
        Self(pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    fn request(&self, client: &Client, id: &PluginId) -> RequestBuilder {
        client.request_with(Method::GET, &["api", "plugins", id.as_str(), "logs"], &self.0)
    }
}

/// A line of a plugin's output (docs/api.md, "Logs").
#[derive(Deserialize)]
struct Line {
    time: String,
    level: String,
    stream: String,
    message: String,
}

impl Line {
    fn text(&self) -> String {
        let Self { time, level, stream, message } = self;
        clean::single_line(&format!("{time} {level} {stream} {message}"), MAX_LINE_BYTES)
    }
}

/// Prints a plugin's output, oldest line first.
pub async fn run(logs: Logs, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
    let Logs { plugin, lines: limit, follow, level, since } = logs;
    let query = Query::new(limit, level, since, follow);
    if follow {
        return Follower { plugin, query, seen: None, connected: false }.run(output, env).await;
    }
    let (id, client) = plugin.open(env)?;
    let mut answer = client.send(query.request(&client, &id)).await?;
    // A host of an older version gives all it has.
    if let (Some(limit), Some(lines)) = (limit, answer["lines"].as_array_mut()) {
        lines.drain(..lines.len().saturating_sub(limit));
    }
    let lines: Vec<Line> = part(&answer["lines"])?;
    if lines.is_empty() {
        output.note("there is no such line");
    }
    output.result(&answer, || lines.iter().map(Line::text).collect::<Vec<_>>().join("\n"))
}

/// A log being followed.
struct Follower {
    plugin: OnePlugin,
    query: Query,
    /// The last line seen, as the host names it.
    seen: Option<String>,
    /// Whether the host was reached at all: before that a failure is final.
    connected: bool,
}

/// Why a stream ended.
enum Ended {
    /// For good: the plugin was uninstalled, or nobody reads what is printed.
    Done,
    /// The connection broke or the host stops.
    Broken,
}

impl Follower {
    async fn run(mut self, output: &Output, env: Lookup<'_>) -> Result<(), CliError> {
        loop {
            let (id, client) = match self.plugin.clone().open(env) {
                Err(error) if !self.may_come_back(&error) => return Err(error),
                Err(_) => {
                    sleep(crate::config::ClientTiming::default().reconnect).await;
                    continue;
                }
                Ok(opened) => opened,
            };
            match self.stream(&id, &client, output).await {
                Ok(Ended::Done) => return Ok(()),
                Ok(Ended::Broken) => output.note("the connection to the host is lost, it is tried again"),
                Err(error) if self.may_come_back(&error) => {}
                Err(error) => return Err(error),
            }
            sleep(client.timing().reconnect).await;
        }
    }

    /// A host that was there may be restarting.
    fn may_come_back(&self, error: &CliError) -> bool {
        let away = matches!(
            error,
            CliError::Client(
                ClientError::NoHost { .. }
                    | ClientError::NotReached { .. }
                    | ClientError::TimedOut { .. }
                    | ClientError::NotAHost { .. }
            )
        );
        let stopping = matches!(error, CliError::Client(ClientError::Refused { code, .. }) if code == "stopping");
        self.connected && (away || stopping)
    }

    async fn stream(&mut self, id: &PluginId, client: &Client, output: &Output) -> Result<Ended, CliError> {
        let mut request = self.query.request(client, id);
        if let Some(seen) = &self.seen {
            request = request.header("last-event-id", seen);
        }
        let answer = client.open(request).await?;
        self.connected = true;
        self.read(answer, client, output).await
    }

    /// The host says something at least every `timing.log_keep_alive`; one that is silent for `--timeout` is lost.
    async fn read(&mut self, answer: Response, client: &Client, output: &Output) -> Result<Ended, CliError> {
        let mut reader = EventReader::default();
        let mut pieces = answer.bytes_stream();
        while let Ok(Some(Ok(piece))) = timeout(client.timing().answer, pieces.next()).await {
            let Ok(events) = reader.take(&piece) else { return Ok(Ended::Broken) };
            for event in events {
                if let Some(ended) = self.show(event, output)? {
                    return Ok(ended);
                }
            }
        }
        Ok(Ended::Broken)
    }

    fn show(&mut self, event: Event, output: &Output) -> Result<Option<Ended>, CliError> {
        let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
        match event.name.as_str() {
            "line" => {
                self.seen = event.id.or(self.seen.take());
                let line: Line = part(&data)?;
                let read = output.line(&data, || line.text())?;
                Ok((!read).then_some(Ended::Done))
            }
            "skipped" => {
                let count = data["count"].as_u64().unwrap_or_default();
                let text = || format!("({count} lines were skipped: they came faster than they could be shown)");
                let read = output.line(&json!({"skipped": count}), text)?;
                Ok((!read).then_some(Ended::Done))
            }
            "end" if data["reason"] == "uninstalled" => {
                output.note("the plugin was uninstalled");
                Ok(Some(Ended::Done))
            }
            "end" => Ok(Some(Ended::Broken)),
            _ => Ok(None),
        }
    }
}
