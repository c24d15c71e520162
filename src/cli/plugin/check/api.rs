//! Asking the throw-away host: its answers as they are, refusals and files included, which the other commands' client
//! does not give.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url, header::CONTENT_TYPE, redirect::Policy};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::CheckError;
use crate::domain::clean;

/// Longest foreign text in a message, in bytes.
const SHOWN_BYTES: usize = 300;

/// The host's address and its operator's token.
pub struct Api {
    http: reqwest::Client,
    url: Url,
    token: SecretString,
}

/// An answer, read to its end.
pub struct Answer {
    pub status: u16,
    /// `Content-Type`, empty without one.
    pub kind: String,
    pub body: Vec<u8>,
    pub took: Duration,
}

/// The body of the host's own refusals (docs/api.md).
#[derive(Deserialize)]
struct Refusal {
    error: String,
    code: String,
}

impl Answer {
    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Code and text, when it is a refusal.
    pub fn refusal(&self) -> Option<(String, String)> {
        let read: Option<Refusal> = (self.status >= 400).then(|| serde_json::from_slice(&self.body).ok()).flatten();
        read.map(|Refusal { error, code }| (code, clean::single_line(&error, SHOWN_BYTES)))
    }

    /// What went wrong, in a few words.
    pub fn fault(&self) -> String {
        self.refusal().map_or_else(|| format!("status {}", self.status), |(_, text)| text)
    }
}

impl Api {
    /// The host at this address.
    pub fn new(url: &str, token: SecretString) -> Result<Self, CheckError> {
        let bad = |reason: String| CheckError::Host(clean::single_line(&reason, SHOWN_BYTES));
        let url = Url::parse(url).map_err(|error| bad(error.to_string()))?;
        let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build();
        Ok(Self { http: http.map_err(|error| bad(error.to_string()))?, url, token })
    }

    /// A request with the token. Each element of `path` is one segment.
    pub fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.request_with(method, path, &[])
    }

    /// [`Self::request`] with a query.
    pub fn request_with(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request(method, url).bearer_auth(self.token.expose_secret())
    }

    /// A request with the token for an address that the host gave, as a browser resolves and sends it.
    pub fn request_at(&self, method: Method, address: &str) -> Result<RequestBuilder, CheckError> {
        let bad = |error: url::ParseError| CheckError::Host(clean::single_line(&error.to_string(), SHOWN_BYTES));
        let url = self.url.join(address).map_err(bad)?;
        Ok(self.http.request(method, url).bearer_auth(self.token.expose_secret()))
    }

    /// Sends it; the whole answer must be there within `limit`.
    pub async fn send(&self, request: RequestBuilder, limit: Duration) -> Result<Answer, CheckError> {
        let lost =
            |error: reqwest::Error| CheckError::Host(clean::single_line(&error.without_url().to_string(), SHOWN_BYTES));
        let begin = Instant::now();
        let response = request.timeout(limit).send().await.map_err(lost)?;
        let status = response.status().as_u16();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.to_owned();
        let body = response.bytes().await.map_err(lost)?.to_vec();
        Ok(Answer { status, kind, body, took: begin.elapsed() })
    }

    /// GET of JSON that the host must give.
    pub async fn get(&self, path: &[&str], limit: Duration) -> Result<Value, CheckError> {
        let answer = self.send(self.request(Method::GET, path), limit).await?;
        match answer.status {
            200 => Ok(answer.json()),
            _ => Err(CheckError::Host(answer.fault())),
        }
    }
}
