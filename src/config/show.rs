//! What `config show` prints: one row a key with value, default, unit and source. Secrets appear as a fixed text.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    Config, Features, Http, Install, Limits, Loaded, Metrics, Plugins, Source, Telemetry, Timing,
    load::{DEFAULT_COMPAT_VERSION, DEFAULT_HOME, DEFAULT_LISTEN, DEFAULT_LOG},
};

/// Stands for a secret that is set.
const HIDDEN: &str = "(set, not shown)";

/// One key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Dotted name, as in `host.toml`; `home`, `admin_token` and `vault_key` are not in the file.
    pub key: String,
    /// What counts now.
    pub value: Value,
    /// What would count if nobody set it.
    pub default: Value,
    /// What a bare number or text means.
    pub unit: &'static str,
    /// Who set it: `default`, `host.toml`, a variable or a flag.
    pub source: String,
}

/// Every key of the settings.
pub fn rows(loaded: &Loaded) -> Vec<Row> {
    let Config {
        listen,
        home,
        database_url: _,
        admin_token,
        vault_key,
        log,
        compat_version,
        timing,
        limits,
        http,
        install,
        plugins,
        features,
        metrics,
        telemetry,
    } = &loaded.config;
    let source = |key: &str| loaded.sources.get(key).copied().unwrap_or(Source::Default).to_string();
    let row = |key: &str, value: Value, default: Value, unit: &'static str| Row {
        key: key.to_owned(),
        value,
        default,
        unit,
        source: source(key),
    };
    let token = if admin_token.is_some() { HIDDEN } else { "<home>/admin-token" };
    let key = if vault_key.is_some() { HIDDEN } else { "<home>/vault.key" };
    let database = if loaded.sources.contains_key("database_url") { HIDDEN } else { "sqlite file <home>/kandev.db" };
    let mut rows = vec![
        row("listen", json!(listen.to_string()), json!(DEFAULT_LISTEN), "address:port"),
        row("home", json!(home.display().to_string()), json!(DEFAULT_HOME), "folder"),
        row("database_url", json!(database), json!("sqlite file <home>/kandev.db"), "address"),
        row("admin_token", json!(token), json!("<home>/admin-token"), "secret"),
        row("vault_key", json!(key), json!("<home>/vault.key"), "secret"),
        row("log", json!(log), json!(DEFAULT_LOG), "filter"),
        row("compat_version", json!(compat_version), json!(DEFAULT_COMPAT_VERSION), "version"),
    ];
    let sections = [
        ("timing", section(timing), section(&Timing::default())),
        ("limits", section(limits), section(&Limits::default())),
        ("http", section(http), section(&Http::default())),
        ("install", section(install), section(&Install::default())),
        ("plugins", section(plugins), section(&Plugins::default())),
        ("features", section(features), section(&Features::default())),
        ("metrics", section(metrics), section(&Metrics::default())),
        ("telemetry", section(telemetry), section(&Telemetry::default())),
    ];
    for (name, values, defaults) in sections {
        for (key, value) in values {
            let default = defaults.get(&key).cloned().unwrap_or(Value::Null);
            let dotted = format!("{name}.{key}");
            let unit = unit(name, &key, &value);
            rows.push(row(&dotted, value, default, unit));
        }
    }
    rows
}

fn section(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn unit(section: &str, key: &str, value: &Value) -> &'static str {
    match (section, value) {
        ("timing", Value::String(_) | Value::Array(_)) => "duration",
        ("telemetry", Value::Number(_)) => "part of 1",
        ("telemetry", Value::String(_)) if key == "otlp_endpoint" => "address",
        (_, Value::Number(_))
            if key.ends_with("_bytes") || matches!(key, "package_compressed" | "package_expanded") =>
        {
            "bytes"
        }
        (_, Value::Number(_)) => "count",
        (_, Value::Bool(_)) => "true or false",
        ("http", Value::Array(_)) => "origins",
        ("plugins", Value::Array(_)) => "names of variables",
        ("plugins", _) => "address",
        (_, Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_)) => "text",
    }
}
