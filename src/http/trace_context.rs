//! Taking over the trace that a caller has begun: `traceparent` and `tracestate` (W3C Trace Context). Without an export
//! (`telemetry.otlp_endpoint`) it has no effect.

use actix_web::http::header::HeaderMap;
use opentelemetry::{
    propagation::{Extractor, TextMapPropagator as _},
    trace::TraceContextExt as _,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}

/// Makes the caller's span the parent of `span`, which was not entered yet. A header that is malformed, or there twice,
/// is no trace.
pub fn take_over(headers: &HeaderMap, span: &Span) {
    if headers.get_all("traceparent").count() != 1 {
        return;
    }
    let parent = TraceContextPropagator::new().extract_with_context(&opentelemetry::Context::new(), &Headers(headers));
    if parent.span().span_context().is_valid() {
        // Fails when no export is set up.
        let _ = span.set_parent(parent);
    }
}

/// What a span of a request says beside its name, in OpenTelemetry's words.
pub fn describe(span: &Span, method: &str, route: &str, status: u16) {
    span.set_attribute("http.request.method", method.to_owned());
    span.set_attribute("http.route", route.to_owned());
    span.set_attribute("http.response.status_code", i64::from(status));
}
