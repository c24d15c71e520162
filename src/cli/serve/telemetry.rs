//! Sending spans to an OpenTelemetry collector, by OTLP over HTTP. Built only when `telemetry.otlp_endpoint` is set.
//!
//! Spans wait in a bounded queue for a thread that sends them in batches over a connection of its own; a collector that
//! is slow or away costs spans, never a request.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider},
};
use tokio::runtime::{Builder, Runtime};
use tracing::{Level, Subscriber, subscriber};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::config::{Limits, Telemetry, Timing};

/// Largest answer of a collector that is read, in bytes.
const ANSWER_BYTES: usize = 1024 * 1024;

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// No runtime for the connection.
    #[error("cannot start the exporter's runtime")]
    Runtime(#[source] io::Error),
    /// The HTTP library cannot be set up.
    #[error("cannot set up the exporter's connection")]
    Client(#[source] reqwest::Error),
    /// The exporter refuses its settings.
    #[error("cannot set up the exporter for telemetry.otlp_endpoint")]
    Exporter(#[source] ExporterBuildError),
}

/// The export at work; what waits is sent when it is dropped, within `timing.telemetry_timeout` and
/// [`Self::finish_within`].
pub struct Traces {
    provider: SdkTracerProvider,
    deadline: Duration,
}

impl Traces {
    /// Starts the export. Must not be called on a runtime.
    pub fn start(telemetry: &Telemetry, timing: &Timing, limits: &Limits) -> Result<Self, TelemetryError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Connection::new(timing)?)
            .with_endpoint(format!("{}/v1/traces", telemetry.otlp_endpoint.trim_end_matches('/')))
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(timing.telemetry_timeout)
            .build()
            .map_err(TelemetryError::Exporter)?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(limits.telemetry_spans)
            .with_max_export_batch_size(limits.telemetry_spans.min(MAX_BATCH))
            .with_scheduled_delay(timing.telemetry_interval)
            .build();
        let resource = Resource::builder()
            .with_service_name(telemetry.service_name.clone())
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(telemetry.sample_ratio)));
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
            .with_sampler(sampler)
            .with_resource(resource)
            .build();
        Ok(Self { provider, deadline: timing.telemetry_timeout })
    }

    /// The end may take this long: what the host's stop has left of `timing.shutdown_timeout`.
    pub fn finish_within(&mut self, left: Duration) {
        self.deadline = self.deadline.min(left);
    }

    /// Takes the host's own spans. Log lines are not sent: they may hold words of plugins.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let spans = filter_fn(|metadata| {
            metadata.is_span() && *metadata.level() <= Level::DEBUG && metadata.target().starts_with("kandev_host")
        });
        let tracer = self.provider.tracer("kandev-host");
        tracing_opentelemetry::layer().with_tracer(tracer).with_location(false).with_threads(false).with_filter(spans)
    }
}

/// Most spans in one request.
const MAX_BATCH: usize = 512;

impl Drop for Traces {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown_with_timeout(self.deadline) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

/// The exporter's own connection. It has a runtime of its own, since the export runs on a thread outside of the host's.
#[derive(Debug)]
struct Connection {
    http: reqwest::Client,
    runtime: Runtime,
    failing: AtomicBool,
}

impl Connection {
    fn new(timing: &Timing) -> Result<Self, TelemetryError> {
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(timing.telemetry_timeout)
            .connect_timeout(timing.connect_timeout)
            .build()
            .map_err(TelemetryError::Client)?;
        let runtime = Builder::new_current_thread().enable_all().build().map_err(TelemetryError::Runtime)?;
        Ok(Self { http, runtime, failing: AtomicBool::new(false) })
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut answer = self.http.execute(request.try_into()?).await?;
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.extend(answer.headers().clone());
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            body.extend_from_slice(&piece);
            if body.len() > ANSWER_BYTES {
                return Err("the collector's answer is too large".into());
            }
        }
        Ok(response.body(body.into())?)
    }

    /// One line when it begins to fail, one when it works again. Without a span, or it would be exported too.
    fn tell(&self, failure: Option<String>) {
        match failure {
            Some(error) if !self.failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(error, "spans cannot be sent and are lost; check telemetry.otlp_endpoint");
            }
            None if self.failing.swap(false, Ordering::Relaxed) => tracing::info!("spans are sent again"),
            Some(_) | None => {}
        }
    }
}

#[async_trait]
impl HttpClient for Connection {
    /// Blocks the exporter's thread, which has nothing else to do.
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // What the HTTP library traces of this request must not become a span to send.
        let result =
            subscriber::with_default(subscriber::NoSubscriber::new(), || self.runtime.block_on(self.exchange(request)));
        self.tell(match &result {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answered {}", answer.status())),
            Err(error) => Some(error.to_string()),
        });
        result
    }
}
