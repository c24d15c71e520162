//! Rules a setting must keep beyond its type. A key without a rule of its own falls under the general one of its
//! section, so that a new key is checked from its first day.
//!
//! Zero is refused where a wait of nothing or room for nothing would stop the host from working. It is lawful for the
//! graces of a stop (do not wait there) and for redirects (follow none). An empty `restart_delays` is lawful: a crash
//! is then final until an operator enables the plugin. So is an empty `delivery_retries`: one attempt, no repetition.

use std::{ops::RangeInclusive, time::Duration};

use serde::Serialize;
use serde_json::Value;

use super::{Http, Limits, Plugins, Telemetry, Timing, duration};
use crate::domain::{marketplace, origin};

/// A violated rule: the dotted key and the reason.
pub type Violation = (String, String);

/// Longest accepted duration; keeps every sum and every instant far from overflow.
const MAX_DURATION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest accepted list of waits.
const MAX_WAITS: usize = 100;

/// Most origins whose pages may ask: a request of a page is held against each.
const MAX_ORIGINS: usize = 100;

/// Longest name of this service.
const MAX_NAME_BYTES: usize = 255;

/// Durations that may be zero.
const ZERO_LAWFUL: [&str; 5] = ["drain_grace", "lease_grace", "stop_grace", "term_grace", "pipe_grace"];

/// What a count may be.
const COUNT: RangeInclusive<u64> = 1..=1_000_000;
/// What a size in bytes may be: up to 1 TiB.
const BYTES: RangeInclusive<u64> = 1..=1 << 40;

/// What a number may be, by its key.
fn lawful_numbers(key: &str) -> RangeInclusive<u64> {
    match key {
        // The protocol's own messages must fit, and a frame's length has 32 bits.
        "message_bytes" => 64 * 1024..=1 << 30,
        "http_workers" => 1..=256,
        "download_redirects" => 0..=20,
        "log_files" => 1..=100,
        // A whole line must fit, as JSON: 16 KiB of text, each byte at most six.
        "log_file_bytes" => 128 * 1024..=1 << 40,
        "database_connections" => 1..=1000,
        "package_compressed" | "package_expanded" => BYTES,
        key if key.ends_with("_bytes") => BYTES,
        _ => COUNT,
    }
}

/// The first violated rule of `[timing]`.
pub fn check_timing(timing: &Timing) -> Result<(), Violation> {
    check("timing", timing)?;
    // A client is heard of once a ping, when it has nothing to say: every quiet one would be ended.
    if timing.ws_pong_wait <= timing.ws_ping {
        let reason = format!("it must be longer than timing.ws_ping, {}", duration::format(timing.ws_ping));
        return Err(("timing.ws_pong_wait".to_owned(), reason));
    }
    Ok(())
}

/// The first violated rule of `[limits]`.
pub fn check_limits(limits: &Limits) -> Result<(), Violation> {
    check("limits", limits)
}

/// The first violated rule of `[http]`.
pub fn check_http(http: &Http) -> Result<(), Violation> {
    let violated = |reason: String| ("http.allowed_origins".to_owned(), reason);
    if http.allowed_origins.len() > MAX_ORIGINS {
        return Err(violated(format!("it must have at most {MAX_ORIGINS} items")));
    }
    let mut origins = (1..).zip(&http.allowed_origins);
    origins
        .try_for_each(|(number, text)| origin::check(text).map_err(|error| violated(format!("item {number}: {error}"))))
}

/// The first violated rule of `[telemetry]`. The endpoint is not quoted: it may hold a password.
pub fn check_telemetry(telemetry: &Telemetry) -> Result<(), Violation> {
    let endpoint = &telemetry.otlp_endpoint;
    let lawful = || {
        let url = url::Url::parse(endpoint).ok()?;
        let plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        (plain && url.password().is_none() && url.has_host() && matches!(url.scheme(), "http" | "https")).then_some(())
    };
    if !endpoint.is_empty() && lawful().is_none() {
        let reason = "it must be an http or https address without user and query, like http://127.0.0.1:4318";
        return Err(("telemetry.otlp_endpoint".to_owned(), reason.to_owned()));
    }
    if !(0.0..=1.0).contains(&telemetry.sample_ratio) {
        return Err(("telemetry.sample_ratio".to_owned(), "it must be between 0 and 1".to_owned()));
    }
    if telemetry.service_name.is_empty() || telemetry.service_name.len() > MAX_NAME_BYTES {
        let reason = format!("it must have between 1 and {MAX_NAME_BYTES} bytes");
        return Err(("telemetry.service_name".to_owned(), reason));
    }
    Ok(())
}

/// The first violated rule of `[plugins]`. The address is not quoted: it may hold a password.
pub fn check_plugins(plugins: &Plugins) -> Result<(), Violation> {
    if plugins.marketplace_url.is_empty() {
        return Ok(());
    }
    let checked = marketplace::address(&plugins.marketplace_url);
    checked.map(drop).map_err(|error| ("plugins.marketplace_url".to_owned(), error.to_string()))
}

fn check(section: &str, keys: &impl Serialize) -> Result<(), Violation> {
    let Ok(Value::Object(keys)) = serde_json::to_value(keys) else { return Ok(()) };
    keys.iter()
        .try_for_each(|(key, value)| check_value(key, value).map_err(|reason| (format!("{section}.{key}"), reason)))
}

/// Durations are text, lists are waits and may hold zeros: "at once".
fn check_value(key: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Number(number) => {
            let lawful = lawful_numbers(key);
            match number.as_u64().is_some_and(|number| lawful.contains(&number)) {
                true => Ok(()),
                false => Err(format!("it must be between {} and {}", lawful.start(), lawful.end())),
            }
        }
        Value::String(text) => check_duration(text, ZERO_LAWFUL.contains(&key)),
        Value::Array(waits) if waits.len() > MAX_WAITS => Err(format!("it must have at most {MAX_WAITS} items")),
        Value::Array(waits) => waits.iter().filter_map(Value::as_str).try_for_each(|text| check_duration(text, true)),
        Value::Null | Value::Bool(_) | Value::Object(_) => Ok(()),
    }
}

fn check_duration(text: &str, may_be_zero: bool) -> Result<(), String> {
    match duration::parse(text)? {
        Duration::ZERO if !may_be_zero => Err("it must be longer than zero".to_owned()),
        longer if longer > MAX_DURATION => Err(format!("it must be at most {}", duration::format(MAX_DURATION))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_keep_every_rule() {
        assert_eq!(check_timing(&Timing::default()), Ok(()));
        assert_eq!(check_limits(&Limits::default()), Ok(()));
    }

    #[test]
    fn a_collectors_address_must_be_usable_and_is_never_quoted() {
        let check =
            |endpoint: &str| check_telemetry(&Telemetry { otlp_endpoint: endpoint.to_owned(), ..Telemetry::default() });
        for endpoint in ["", "http://127.0.0.1:4318", "https://collector.example.test/otlp/"] {
            assert_eq!(check(endpoint), Ok(()), "{endpoint}");
        }
        for endpoint in ["collector:4318", "grpc://x", "http://", "http://u:hunter2@x", "http://x?y=hunter2"] {
            let (key, reason) = check(endpoint).unwrap_err();
            assert!(key == "telemetry.otlp_endpoint" && !reason.contains("hunter2"), "{endpoint}: {reason}");
        }
        let half = Telemetry { sample_ratio: 1.5, ..Telemetry::default() };
        assert_eq!(check_telemetry(&half).unwrap_err().0, "telemetry.sample_ratio");
    }

    #[test]
    fn the_built_in_source_is_reached_by_https_or_on_this_machine() {
        let check = |url: &str| check_plugins(&Plugins { marketplace_url: url.to_owned(), ..Plugins::default() });
        for url in ["", "https://a.test/index.json", "http://127.0.0.1:8080/index.json"] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in ["a.test", "http://a.test/", "https://me:hunter2@a.test/"] {
            let (key, reason) = check(url).unwrap_err();
            assert!(key == "plugins.marketplace_url" && !reason.contains("hunter2"), "{url}: {reason}");
        }
    }

    #[test]
    fn an_origin_that_may_ask_is_written_as_browsers_write_it_and_its_place_is_told() {
        let check = |origins: &[&str]| {
            check_http(&Http { allowed_origins: origins.iter().map(|origin| (*origin).to_owned()).collect() })
        };
        let violated = |reason: &str| Err(("http.allowed_origins".to_owned(), reason.to_owned()));
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&["https://kandev.test", "http://127.0.0.1:8080"]), Ok(()));
        assert_eq!(
            check(&["https://kandev.test", "https://me:hunter2@kandev.test/"]),
            violated("item 2: it must be as browsers write it, here \"https://kandev.test\"")
        );
        assert_eq!(
            check(&["*"]),
            violated(
                "item 1: it must be one origin, scheme://host[:port] with http or https, like \
                 \"https://kandev.example.test\""
            )
        );
        assert_eq!(check(&["https://kandev.test"; 101]), violated("it must have at most 100 items"));
    }

    #[test]
    fn a_broken_rule_is_told_with_its_key() {
        let verdict = check_timing(&Timing { ping_timeout: Duration::ZERO, ..Timing::default() });
        assert_eq!(verdict, Err(("timing.ping_timeout".to_owned(), "it must be longer than zero".to_owned())));
        let (ws_ping, ws_pong_wait) = (Duration::from_secs(60), Duration::from_secs(60));
        let verdict = check_timing(&Timing { ws_ping, ws_pong_wait, ..Timing::default() });
        let reason = format!("it must be longer than timing.ws_ping, {}", duration::format(ws_ping));
        assert_eq!(verdict, Err(("timing.ws_pong_wait".to_owned(), reason)));
        let verdict = check_timing(&Timing { delivery_retries: vec![Duration::ZERO; 101], ..Timing::default() });
        assert_eq!(verdict, Err(("timing.delivery_retries".to_owned(), "it must have at most 100 items".to_owned())));
        let verdict = check_limits(&Limits { message_bytes: 1, ..Limits::default() });
        let reason = "it must be between 65536 and 1073741824".to_owned();
        assert_eq!(verdict, Err(("limits.message_bytes".to_owned(), reason)));
    }
}
