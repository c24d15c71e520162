//! Installs the plugin, gives it its settings, and tells how its start went.

use std::path::Path;

use reqwest::{Method, multipart};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    CheckError,
    report::{Finding, Topic},
    session::{Session, millis, span},
};

/// How the host tells a plugin that spoke its line and did not answer the first ping.
const FIRST_PING: &str = "first health check failed";

const HANDSHAKE: &str = "start the binary by hand with KANDEV_PLUGIN=kandev-plugin-v1: it must print one handshake \
                         line on stdout, nothing before it, and stay; logs belong on stderr";
const HEALTH: &str = "serve grpc.health.v1 and answer SERVING for the service `plugin`; the SDKs and go-plugin do";
const SETTINGS: &str = "give settings that the config_schema takes, with --config FILE and --secret FIELD=FILE";

/// True when the plugin runs; otherwise it is told why not.
pub async fn start(
    session: &mut Session<'_>,
    package: &Path,
    settings: &Map<String, Value>,
) -> Result<bool, CheckError> {
    session.output.progress("the host installs and starts the plugin");
    let begin = Instant::now();
    let bytes = tokio::fs::read(package).await.map_err(CheckError::Package)?;
    let part = multipart::Part::bytes(bytes).file_name("package.tar.gz");
    let form = multipart::Form::new().part("package", part);
    let request = session.api.request(Method::POST, &["api", "plugins", "install"]).multipart(form);
    let answer = session.api.send(request, session.timing.answer).await?;
    if answer.status != 201 {
        let advice = "the host refuses the package for the reason it names";
        session.add(Finding::fail(Topic::Archive, answer.fault(), advice));
        return Ok(false);
    }
    if !configure(session, settings).await? {
        return Ok(false);
    }
    // Without its settings it may have failed at first.
    let active = session.view().await?.is_active() || (!settings.is_empty() && session.runs().await?);
    let took = begin.elapsed();
    match active {
        true => {
            let text = format!("it started and shook hands, {} after the upload began", span(took));
            session.add(Finding::pass(Topic::Handshake, text).fact("start_ms", millis(took)));
        }
        false => failed(session).await?,
    }
    Ok(active)
}

/// False when the host refuses the settings.
async fn configure(session: &mut Session<'_>, settings: &Map<String, Value>) -> Result<bool, CheckError> {
    let schema = &session.manifest.config_schema;
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if settings.is_empty() {
        session.report.add(match (schema.is_empty(), required.as_slice()) {
            (true, _) => Finding::skipped(Topic::Settings, "it has none"),
            (false, []) => Finding::pass(Topic::Settings, "it needs none to be set"),
            (false, names) => {
                let text = format!("it requires {}, and was checked without", names.join(", "));
                Finding::warn(Topic::Settings, text, SETTINGS).fact("required", names.to_vec())
            }
        });
        return Ok(true);
    }
    let path = ["api", "plugins", session.id()];
    let request = session.api.request(Method::PATCH, &path).json(&json!({ "config": settings }));
    let answer = session.api.send(request, session.timing.answer).await?;
    let refusal = answer.refusal();
    match &refusal {
        Some((code, text)) if code != "restart_failed" => {
            session.add(Finding::fail(Topic::Settings, text, SETTINGS));
            Ok(false)
        }
        // Whether it runs with them is the next question.
        _ => {
            session.add(Finding::pass(Topic::Settings, format!("the host took {} of them", settings.len())));
            Ok(true)
        }
    }
}

async fn failed(session: &mut Session<'_>) -> Result<(), CheckError> {
    let why = session.last_error().await?;
    if why.contains(FIRST_PING) {
        session.add(Finding::pass(Topic::Handshake, "it started and shook hands"));
        session.add(Finding::fail(Topic::Health, why, HEALTH));
    } else {
        session.add(Finding::fail(Topic::Handshake, why, HANDSHAKE));
    }
    Ok(())
}
