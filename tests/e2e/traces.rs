//! Spans: in the JSON log, and exported to an OpenTelemetry collector (docs/logging.md, docs/operations.md).

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value as AnyValue},
    trace::v1::Span,
};
use prost::Message as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::support::{
    Guest, Host, Package, Settings, callable, eventually, eventually_some,
    host::TOKEN,
    mcp::{Session, message, post},
};

/// A collector that keeps what it gets.
pub struct Collector {
    /// Where it listens.
    pub url: String,
    requests: Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Collector {
    /// Listens on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept)));
            }
        });
        Self { url, requests, task }
    }

    /// Everything it got, as text.
    pub fn text(&self) -> String {
        format!("{:?}", self.requests.lock().unwrap())
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests.lock().unwrap();
        let resources = requests.iter().flat_map(|(_, request)| &request.resource_spans);
        resources.flat_map(|resource| &resource.scope_spans).flat_map(|scope| scope.spans.clone()).collect()
    }

    /// The first span of this name with this attribute.
    async fn span(&self, name: &str, attribute: (&str, &str)) -> Span {
        eventually_some(&format!("a span {name} with {attribute:?}"), || async {
            let has =
                |span: &Span| attributes(&span.attributes).get(attribute.0).map(String::as_str) == Some(attribute.1);
            self.spans().into_iter().find(|span| span.name == name && has(span))
        })
        .await
    }
}

async fn serve(mut stream: TcpStream, kept: Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>) {
    let mut bytes = Vec::new();
    loop {
        let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(head_end) = head_end else {
            match stream.read_buf(&mut bytes).await {
                Ok(count) if count > 0 => continue,
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&bytes[..head_end]).to_lowercase();
        let length: usize =
            head.split("content-length: ").nth(1).unwrap().lines().next().unwrap().trim().parse().unwrap();
        while bytes.len() < head_end + 4 + length {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0);
        }
        let body: Vec<u8> = bytes.drain(..head_end + 4 + length).skip(head_end + 4).collect();
        let request = ExportTraceServiceRequest::decode(&body[..]).expect("an export in protobuf");
        kept.lock().unwrap().push((head.lines().next().unwrap().to_owned(), request));
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(AnyValue::StringValue(text)) => text.clone(),
        Some(AnyValue::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.clone(), text(attribute))).collect()
}

fn settings(url: &str) -> Settings {
    let toml = format!("[telemetry]\notlp_endpoint = \"{url}\"\n[timing]\ntelemetry_interval = \"100ms\"\n");
    // What is exported does not depend on what is logged.
    Settings::toml(&toml).env("KANDEV_LOG", "warn")
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_events_and_host_calls_are_exported_and_a_callers_trace_goes_on() {
    let collector = Collector::start().await;
    let host = Host::start_with(settings(&collector.url)).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;

    let url = format!("{}/api/plugins/demo/webhooks/echo?token=hunter2", host.url());
    let call = host.client().post(url).header("traceparent", format!("00-{TRACE}-{CALLER}-01"));
    assert_eq!(call.send().await.unwrap().status(), 200);
    let webhook = collector.span("webhook", ("plugin.id", "demo")).await;
    assert_eq!(hex(&webhook.trace_id), TRACE);
    assert_eq!(attributes(&webhook.attributes)["webhook.key"], "echo");
    let route = ("http.route", "/api/plugins/{id}/webhooks/{key}");
    let request = collector.span("request", route).await;
    assert_eq!((hex(&request.trace_id).as_str(), hex(&request.parent_span_id).as_str()), (TRACE, CALLER));
    assert_eq!(webhook.parent_span_id, request.span_id);
    let shown = attributes(&request.attributes);
    assert_eq!((shown["http.request.method"].as_str(), shown["http.response.status_code"].as_str()), ("POST", "200"));

    let event = host.publish("test.one", json!({"secret": "hunter2"})).await;
    let delivery = collector.span("deliver_event", ("event.id", &event)).await;
    let shown = attributes(&delivery.attributes);
    assert_eq!((shown["plugin.id"].as_str(), shown["event.subject"].as_str()), ("demo", "test.one"));
    assert_eq!((shown["attempt"].as_str(), shown["outcome"].as_str()), ("1", "acknowledged"));

    host.host_calls("demo", json!([{"rpc": "GetState", "request": {"key": "k"}}])).await;
    let call = collector.span("host_call", ("rpc", "GetState")).await;
    assert_eq!(attributes(&call.attributes)["plugin.id"], "demo");

    let requests = collector.requests.lock().unwrap().clone();
    assert!(requests.iter().all(|(line, _)| line == "post /v1/traces http/1.1"), "{requests:?}");
    let resource = requests[0].1.resource_spans[0].resource.clone().unwrap();
    assert_eq!(attributes(&resource.attributes)["service.name"], "kandev-host");
    let all = format!("{requests:?}");
    assert!(!all.contains("hunter2") && !all.contains(TOKEN), "no query, payload or token is exported");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_in_an_mcp_session_belongs_to_its_own_request_and_none_lasts_as_long_as_the_session() {
    let collector = Collector::start().await;
    let host = Host::start_with(settings(&collector.url)).await;
    host.install(&callable(Guest::Rust, "demo", "1.0.0")).await;
    let session = Session::begin(&host, "").await;
    let call = session.request(Method::POST).header("traceparent", format!("00-{TRACE}-{CALLER}-01"));
    let echo = json!({"name": "demo__echo", "arguments": {"text": "hunter2"}});
    assert_eq!(post(call, &message(1, "tools/call", echo)).await.status, 200);
    let tool = collector.span("tool", ("plugin.id", "demo")).await;
    assert_eq!((hex(&tool.trace_id).as_str(), attributes(&tool.attributes)["tool.name"].as_str()), (TRACE, "echo"));
    eventually("all three requests are exported while the session is open", || async {
        let route = |span: &Span| attributes(&span.attributes).get("http.route").cloned();
        collector.spans().iter().filter(|span| route(span).as_deref() == Some("/mcp")).count() == 3
    })
    .await;
    assert!(!collector.text().contains("hunter2"), "no argument is exported");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_trace_is_no_trace_and_the_last_spans_are_sent_at_the_end() {
    let collector = Collector::start().await;
    let toml = settings(&collector.url).toml.replace("100ms", "1h");
    let mut host = Host::start_with(Settings::toml(&toml)).await;
    for value in ["", "00-zz-1-01", "00-00000000000000000000000000000000-0000000000000000-01", &"x".repeat(5000)] {
        let answer = host.client().get(format!("{}/health", host.url())).header("traceparent", value).send().await;
        assert_eq!(answer.unwrap().status(), 200);
    }
    assert_eq!(collector.spans(), [], "nothing is sent before its time");
    assert_eq!(host.stop().await, Some(0));
    let health = collector.span("request", ("http.route", "/health")).await;
    assert_eq!((health.trace_id.len(), health.parent_span_id), (16, Vec::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_is_told_once_and_costs_nothing_else() {
    let mut host = Host::start_with(settings("http://127.0.0.1:1")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let text = "spans cannot be sent and are lost; check telemetry.otlp_endpoint";
    eventually("the host says so", || async { host.log().contains(text) }).await;
    for _ in 0..20 {
        host.post("/api/plugins/demo/webhooks/echo", json!({})).await.expect(200);
    }
    assert_eq!(host.stop().await, Some(0));
    assert_eq!(host.log().matches(text).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_hangs_does_not_lengthen_the_stop_beyond_its_limit() {
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let toml = format!("{}telemetry_timeout = \"1h\"\nshutdown_timeout = \"2s\"\n", settings(&url).toml);
    let mut host = Host::start_with(Settings::toml(&toml)).await;
    host.get("/health").await.expect(200);
    let (_stream, _) = collector.accept().await.unwrap();
    let asked = tokio::time::Instant::now();
    assert_eq!(host.stop().await, Some(0));
    let took = asked.elapsed();
    assert!(took < std::time::Duration::from_secs(4), "{took:?}");
    assert!(host.log().contains("the last spans were not sent"), "it is told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_of_the_json_log_carry_the_plugin_and_the_event() {
    let host = Host::start_with(Settings::default().env("KANDEV_LOG_FORMAT", "json")).await;
    host.install(&Package::of(Guest::Rust, "demo", "1.0.0")).await;
    let event = host.publish("test.one", json!({})).await;
    let line = eventually_some("a line about the delivery", || async {
        let log = host.log();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
        lines.into_iter().find(|line| line["message"] == "delivery attempt ended")
    })
    .await;
    assert_eq!(
        (&line["span"]["name"], &line["span"]["plugin.id"]),
        (&json!("deliver_event"), &json!("demo")),
        "{line}"
    );
    assert_eq!((&line["span"]["event.id"], &line["outcome"]), (&json!(event), &json!("acknowledged")), "{line}");
    assert!(line["duration_ms"].is_u64(), "{line}");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
