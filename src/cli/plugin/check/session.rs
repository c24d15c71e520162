//! The plugin on the throw-away host, as every check after the install needs it.

use std::{path::Path, time::Duration};

use reqwest::Method;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    CheckError,
    api::{Answer, Api},
    report::{Finding, Report},
};
use crate::{
    cli::{output::Output, plugin::view::PluginView},
    config::CheckTiming,
    domain::{
        clean,
        log_line::{LogLine, Stream},
        manifest::Manifest,
    },
};

/// Longest foreign text in a message, in bytes.
const SHOWN_BYTES: usize = 300;

/// One check of one plugin.
pub struct Session<'a> {
    pub api: &'a Api,
    pub manifest: &'a Manifest,
    pub timing: &'a CheckTiming,
    pub output: &'a Output,
    pub report: &'a mut Report,
    /// The host's home.
    pub home: &'a Path,
}

impl Session<'_> {
    /// The plugin's id.
    pub fn id(&self) -> &str {
        &self.manifest.id
    }

    /// Takes a finding.
    pub fn add(&mut self, finding: Finding) {
        self.report.add(finding);
    }

    /// Asks for something about the plugin: a method, and what follows its id.
    pub async fn ask(&self, method: Method, rest: &[&str]) -> Result<Answer, CheckError> {
        let path = [&["api", "plugins", self.id()][..], rest].concat();
        self.api.send(self.api.request(method, &path), self.timing.answer).await
    }

    /// Asks for a file at the address that the page has for it.
    pub async fn fetch(&self, address: &str) -> Result<Answer, CheckError> {
        self.api.send(self.api.request_at(Method::GET, address)?, self.timing.answer).await
    }

    /// How the plugin is.
    pub async fn view(&self) -> Result<PluginView, CheckError> {
        let record = self.api.get(&["api", "plugins", self.id()], self.timing.answer).await?;
        PluginView::deserialize(&record).map_err(|error| foreign(&error))
    }

    /// Everything the plugin printed and the host noted of it, oldest first.
    pub async fn log(&self) -> Result<Vec<LogLine>, CheckError> {
        let limit = self.timing.limits.log_buffer_lines.to_string();
        let path = ["api", "plugins", self.id(), "logs"];
        let request = self.api.request_with(Method::GET, &path, &[("limit", limit.as_str())]);
        let mut json = self.api.send(request, self.timing.answer).await?.json();
        let lines = json.get_mut("lines").map(Value::take).unwrap_or_default();
        Vec::<LogLine>::deserialize(lines).map_err(|error| foreign(&error))
    }

    /// The newest note of the host about the plugin that holds this word.
    pub async fn note(&self, word: &str) -> Result<Option<String>, CheckError> {
        let lines = self.log().await?.into_iter().rev();
        let mut notes = lines.filter(|line| line.stream == Stream::Host).map(|line| line.message);
        Ok(notes.find(|message| message.contains(word)))
    }

    /// Whether the plugin runs; one that has ended is started again, since what follows is about other things.
    pub async fn runs(&self) -> Result<bool, CheckError> {
        if self.view().await?.is_active() {
            return Ok(true);
        }
        Ok(self.ask(Method::POST, &["enable"]).await?.status == 200)
    }

    /// After a call that the plugin may have died of: waits a moment until the host knows, which is later than that the
    /// call failed. What comes next would be blamed for it.
    pub async fn settle(&self) -> Result<(), CheckError> {
        let deadline = Instant::now() + self.timing.farewell;
        while self.view().await?.is_active() && Instant::now() < deadline {
            sleep(self.timing.look).await;
        }
        Ok(())
    }

    /// Why it does not run.
    pub async fn last_error(&self) -> Result<String, CheckError> {
        let view = self.view().await?;
        Ok(view.last_error.unwrap_or_else(|| format!("it is {}", view.status)))
    }
}

fn foreign(error: &serde_json::Error) -> CheckError {
    CheckError::Host(clean::single_line(&error.to_string(), SHOWN_BYTES))
}

/// A duration for people: `12 ms`, `1.5 s`.
pub fn span(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// A duration in a finding's facts.
pub fn millis(duration: Duration) -> Value {
    Value::from(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
