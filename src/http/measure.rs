//! What the server counts of requests: number and latency by route. A label is a route's pattern, never a raw path, so
//! that strangers cannot make new ones.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// Bounds of the latency histogram, in seconds.
const BUCKETS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0, 150.0];

/// Methods with a label of their own; a client may invent others.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    route: &'static str,
    method: &'static str,
    status: u16,
}

/// The figures of one server; clones share them.
#[derive(Debug, Clone)]
pub struct RequestFigures {
    answers: Family<AnswerLabels, Counter>,
    latency: Family<RouteLabels, Histogram, fn() -> Histogram>,
}

impl Default for RequestFigures {
    fn default() -> Self {
        Self { answers: Family::default(), latency: Family::new_with_constructor(|| Histogram::new(BUCKETS)) }
    }
}

impl RequestFigures {
    /// Counts an answer whose head was sent after this time.
    pub fn answered(&self, route: &'static str, method: &str, status: u16, after: Duration) {
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        self.answers.get_or_create(&AnswerLabels { route, method, status }).inc();
        self.latency.get_or_create(&RouteLabels { route, method }).observe(after.as_secs_f64());
    }

    /// Offers the figures to a scrape.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("kandev_http_requests", "Requests answered", self.answers.clone());
        registry.register(
            "kandev_http_request_duration_seconds",
            "Time from a request's head to its answer's head",
            self.latency.clone(),
        );
    }
}
