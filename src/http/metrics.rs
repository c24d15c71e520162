//! `GET /metrics`: the host's figures in Prometheus' text format, put together when they are asked for.
//!
//! What a plugin's actor, the database and the server count is theirs; here are the names. Labels are bounded: ids of
//! installed plugins, patterns of routes, fixed words. docs/operations.md has the table.

use std::fmt;

use actix_web::{HttpRequest, HttpResponse, web};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet, prometheus_text},
    metrics::{MetricType, histogram::Histogram},
    registry::Registry,
};

use super::{
    ApiError, Services,
    endpoint::{Content, Endpoint, get},
    gate,
};
use crate::{
    actors::{CallKind, CallOutcome, Figures, PluginView, Vitals},
    domain::{action::Action, record::Status},
    platform::event_writer::Written,
    process::usage::{OwnUsage, Usage},
    store::{db::FaultCounts, log_files::LostLines},
};

/// The handler asks for `MetricsRead`, unless `metrics.public` is set.
pub static ROUTES: &[Endpoint] = &[get("/metrics", Action::HealthRead, || web::to(read))
    .about("The host's figures in Prometheus' text format; needs `metrics:read` unless `metrics.public` is set")
    .may_need_login()
    .gives_of(200, Content::Media(prometheus_text::CONTENT_TYPE))
    .refuses(&[504])];

/// The handler. Open to everyone only when `metrics.public` says so.
pub async fn read(services: web::Data<Services>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    if !services.public_metrics {
        gate::require_for(&request, Action::MetricsRead)?;
    }
    let plugins = services.registry.list().await?;
    let sample = services.usage.sample(None).await;
    let plugins = plugins.into_iter().map(|view| {
        let figures = view.vitals.figures();
        let usage = figures.process.as_ref().and_then(|process| sample.of_group(process.pid));
        Plugin { id: view.record.id().as_str().to_owned(), view, figures, usage }
    });
    let collected = Collected {
        plugins: plugins.collect(),
        own: sample.own,
        started_at: services.started_at.unix_timestamp(),
        database: services.registry.database_faults(),
        lost_lines: services.registry.lost_lines(),
        written: services.events.written(),
        unwritten: services.events.waiting(),
        live: services.hub.figures(),
        mcp: services.mcp.count(),
        followers: services.limits.log_followers.saturating_sub(services.follow_slots.available_permits()),
    };
    let text = text(&services, collected).map_err(ApiError::internal)?;
    Ok(HttpResponse::Ok().content_type(prometheus_text::CONTENT_TYPE).body(text))
}

fn text(services: &Services, collected: Collected) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    services.requests.register(&mut registry);
    registry.register_collector(Box::new(collected));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

/// One plugin at the moment of the scrape.
#[derive(Debug)]
struct Plugin {
    id: String,
    view: PluginView,
    figures: Figures,
    usage: Option<Usage>,
}

impl Plugin {
    fn vitals(&self) -> &Vitals {
        &self.view.vitals
    }
}

/// Everything of one scrape beside the requests.
#[derive(Debug)]
struct Collected {
    plugins: Vec<Plugin>,
    own: OwnUsage,
    started_at: i64,
    database: FaultCounts,
    lost_lines: LostLines,
    written: Written,
    unwritten: usize,
    followers: usize,
    live: (usize, u64),
    mcp: usize,
}

type Encoded = Result<(), fmt::Error>;

/// A label and its value.
type Label<'a> = (&'static str, &'a str);

impl Collector for Collected {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Encoded {
        let mut metrics = Writer(encoder);
        self.host(&mut metrics)?;
        self.log(&mut metrics)?;
        self.states(&mut metrics)?;
        self.processes(&mut metrics)?;
        self.events(&mut metrics)?;
        CallKind::ALL.into_iter().try_for_each(|kind| self.calls(kind, &mut metrics))
    }
}

impl Collected {
    fn host(&self, metrics: &mut Writer<'_>) -> Encoded {
        let Self { own, database, lost_lines, .. } = self;
        let version = env!("CARGO_PKG_VERSION");
        metrics.gauge("kandev_build_info", "The version that runs; always 1", [([("version", version)], 1.0)])?;
        metrics.gauge("process_resident_memory_bytes", "Memory of the host in RAM", one(own.resident_bytes))?;
        metrics.gauge("kandev_host_anonymous_memory_bytes", "Of it without files", one(own.anonymous_bytes))?;
        metrics.counter("process_cpu_seconds", "Processor time of the host", one_f64(own.cpu_seconds))?;
        metrics.gauge("process_open_fds", "Open files and sockets of the host", one(own.open_files))?;
        metrics.gauge("process_threads", "Threads of the host", one(own.threads))?;
        metrics.gauge("process_start_time_seconds", "Start of the host, Unix time", one_f64(self.started_at as f64))?;
        let kinds = [("lost", database.lost), ("unavailable", database.unavailable), ("statement", database.statement)];
        let faults = kinds.map(|(kind, count)| ([("kind", kind)], count as f64));
        metrics.counter(
            "kandev_database_errors",
            "Database work that failed, and connections that were lost",
            faults,
        )?;
        let causes = [("overflow", lost_lines.overflowed), ("disk", lost_lines.failed)];
        let lost = causes.map(|(cause, count)| ([("cause", cause)], count as f64));
        metrics.counter("kandev_log_lines_lost", "Plugins' log lines that are not on disk", lost)?;
        metrics.gauge("kandev_log_followers", "Clients that follow a log", one(self.followers as u64))?;
        let (connections, let_go) = self.live;
        metrics.gauge("kandev_ws_connections", "Live connections of /ws", one(connections as u64))?;
        metrics.gauge("kandev_mcp_sessions", "Sessions and subscriptions of /mcp", one(self.mcp as u64))?;
        let about = "Live connections that were ended because their clients did not read";
        metrics.counter("kandev_ws_let_go", about, one(let_go))
    }

    fn log(&self, metrics: &mut Writer<'_>) -> Encoded {
        let Self { written, unwritten, .. } = self;
        let about = "Events of plugins, of the operator and of lifecycles that were written to the log";
        metrics.counter("kandev_event_writer_events", about, one(written.events))?;
        let about = "Transactions that wrote them";
        metrics.counter("kandev_event_writer_transactions", about, one(written.groups))?;
        let about = "Lifecycle events that are not in the log and do not get there";
        metrics.counter("kandev_event_writer_events_lost", about, one(written.dropped))?;
        let about = "Events of plugins and of the operator that wait to be written to the log";
        metrics.gauge("kandev_event_writer_queue_events", about, one(*unwritten as u64))
    }

    fn states(&self, metrics: &mut Writer<'_>) -> Encoded {
        let states = self.plugins.iter().flat_map(|plugin| {
            Status::ALL.map(|status| {
                let is = plugin.view.record.state.status == status;
                ([("plugin", plugin.id.as_str()), ("status", status.as_str())], f64::from(u8::from(is)))
            })
        });
        metrics.gauge("kandev_plugin_status", "1 for the status that the plugin has", states)?;
        let restarting = self.each(|plugin| f64::from(u8::from(plugin.view.record.state.restarting)));
        metrics.gauge("kandev_plugin_restarting", "1 while the host starts the plugin again by itself", restarting)?;
        let restarts = self.each(|plugin| plugin.figures.restarts as f64);
        metrics.counter("kandev_plugin_restarts", "Automatic restarts that succeeded", restarts)
    }

    fn processes(&self, metrics: &mut Writer<'_>) -> Encoded {
        let started = self.some(|plugin| Some(plugin.figures.process.as_ref()?.started_at.unix_timestamp() as f64));
        metrics.gauge("kandev_plugin_start_time_seconds", "Start of the plugin's process, Unix time", started)?;
        let memory = self.some(|plugin| Some(plugin.usage?.memory_bytes as f64));
        metrics.gauge("kandev_plugin_memory_bytes", "Anonymous memory of the plugin's process group in RAM", memory)?;
        let cpu = self.some(|plugin| Some(plugin.usage?.cpu_seconds));
        metrics.counter("kandev_plugin_cpu_seconds", "Processor time of the plugin's process group", cpu)?;
        let processes = self.some(|plugin| Some(plugin.usage?.processes as f64));
        metrics.gauge("kandev_plugin_processes", "Processes of the plugin's group", processes)?;
        let calls = self.some(|plugin| Some(plugin.figures.process.as_ref()?.calls_in_flight() as f64));
        metrics.gauge("kandev_plugin_calls_in_flight", "Calls and events the plugin works on", calls)
    }

    fn events(&self, metrics: &mut Writer<'_>) -> Encoded {
        let waiting = |healthy: bool| {
            self.each(move |plugin| if plugin.figures.healthy == healthy { plugin.figures.waiting as f64 } else { 0.0 })
        };
        metrics.gauge("kandev_plugin_queue_events", "Events that wait for a healthy plugin", waiting(true))?;
        metrics.gauge("kandev_plugin_buffer_events", "Events kept for a plugin that is down", waiting(false))?;
        let ends = self.words("outcome", |plugin| {
            let counters = plugin.figures.counters;
            vec![("delivered", counters.delivered as f64), ("failed", counters.failed as f64)]
        });
        metrics.counter("kandev_plugin_events", "Events acknowledged, and given up after the last attempt", ends)?;
        let drops = self.words("cause", |plugin| {
            let counters = plugin.figures.counters;
            vec![("overflow", counters.overflowed as f64), ("expired", counters.expired as f64)]
        });
        metrics.counter("kandev_plugin_events_dropped", "Events dropped before they were acknowledged", drops)?;
        let attempts = self.plugins.iter().flat_map(|plugin| {
            let vitals = plugin.vitals();
            [("acknowledged", &vitals.acknowledged), ("failed", &vitals.unacknowledged)]
                .map(|(outcome, histogram)| ([("plugin", plugin.id.as_str()), ("outcome", outcome)], histogram))
        });
        metrics.histogram("kandev_plugin_delivery_duration_seconds", "Delivery attempts of events", attempts)
    }

    fn calls(&self, kind: CallKind, metrics: &mut Writer<'_>) -> Encoded {
        let (counter, ends, histogram, latency) = names(kind);
        let ended = self.words("outcome", |plugin| {
            let figures = plugin.vitals().calls(kind);
            CallOutcome::ALL.map(|outcome| (outcome.name(), figures.ended(outcome) as f64)).to_vec()
        });
        metrics.counter(counter, ends, ended)?;
        let reached =
            self.plugins.iter().map(|plugin| ([("plugin", plugin.id.as_str())], &plugin.vitals().calls(kind).latency));
        metrics.histogram(histogram, latency, reached)
    }

    /// A value of every plugin.
    fn each(&self, value: impl Fn(&Plugin) -> f64) -> impl Iterator<Item = ([Label<'_>; 1], f64)> {
        self.some(move |plugin| Some(value(plugin)))
    }

    /// A value of those plugins that have one.
    fn some(&self, value: impl Fn(&Plugin) -> Option<f64>) -> impl Iterator<Item = ([Label<'_>; 1], f64)> {
        self.plugins.iter().filter_map(move |plugin| Some(([("plugin", plugin.id.as_str())], value(plugin)?)))
    }

    /// Several values of every plugin, told apart by a word.
    fn words(
        &self,
        label: &'static str,
        values: impl Fn(&Plugin) -> Vec<(&'static str, f64)>,
    ) -> impl Iterator<Item = ([Label<'_>; 2], f64)> {
        self.plugins.iter().flat_map(move |plugin| {
            let values = values(plugin).into_iter();
            values.map(move |(word, value)| ([("plugin", plugin.id.as_str()), (label, word)], value))
        })
    }
}

/// Counter and histogram of a kind of calls, each with what it is.
fn names(kind: CallKind) -> (&'static str, &'static str, &'static str, &'static str) {
    match kind {
        CallKind::Webhook => (
            "kandev_plugin_webhooks",
            "Webhook calls by their end",
            "kandev_plugin_webhook_duration_seconds",
            "Webhook calls that reached the plugin",
        ),
        CallKind::Action => (
            "kandev_plugin_actions",
            "Actions by their end",
            "kandev_plugin_action_duration_seconds",
            "Actions that reached the plugin",
        ),
        CallKind::Tool => (
            "kandev_plugin_tools",
            "Tool calls by their end",
            "kandev_plugin_tool_duration_seconds",
            "Tool calls that reached the plugin",
        ),
        CallKind::Reference => (
            "kandev_plugin_references",
            "Searches for references and questions about them by their end",
            "kandev_plugin_reference_duration_seconds",
            "Searches for references and questions about them that reached the plugin",
        ),
        CallKind::Credential => (
            "kandev_plugin_git_credentials",
            "Git credentials asked for by their end",
            "kandev_plugin_git_credential_duration_seconds",
            "Git credentials asked for that reached the plugin",
        ),
    }
}

/// A value without labels.
fn one(value: u64) -> [([Label<'static>; 0], f64); 1] {
    one_f64(value as f64)
}

fn one_f64(value: f64) -> [([Label<'static>; 0], f64); 1] {
    [([], value)]
}

/// Writes whole families.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn gauge<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([Label<'l>; N], f64)>,
    ) -> Encoded {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values.into_iter().try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_gauge(&value))
    }

    /// The format's `_total` is appended to the name.
    fn counter<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([Label<'l>; N], f64)>,
    ) -> Encoded {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values.into_iter().try_for_each(|(labels, value)| {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)
        })
    }

    fn histogram<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([Label<'l>; N], &'l Histogram)>,
    ) -> Encoded {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        values.into_iter().try_for_each(|(labels, histogram)| histogram.encode(metric.encode_family(&labels)?))
    }
}
