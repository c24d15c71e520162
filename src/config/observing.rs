//! Who may look at the host, and where it sends what it sees of itself.

use serde::{Deserialize, Serialize};

/// Who may read `GET /metrics`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// Whether no token is needed. The figures name the installed plugins. Default false.
    pub public: bool,
}

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Telemetry {
    /// Base address of an OpenTelemetry collector that takes OTLP over HTTP; `/v1/traces` is appended. Default empty:
    /// nothing is collected or sent.
    pub otlp_endpoint: String,
    /// Part of the traces that is sent, 0 to 1; of a webhook that brings a trace along, its caller decides. Default 1.
    pub sample_ratio: f64,
    /// The host's name among other services. Default `kandev-host`.
    pub service_name: String,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self { otlp_endpoint: String::new(), sample_ratio: 1.0, service_name: "kandev-host".to_owned() }
    }
}

impl Telemetry {
    /// Whether spans are collected and sent.
    pub fn is_on(&self) -> bool {
        !self.otlp_endpoint.is_empty()
    }
}
