//! A webhook's request and answer.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use kandev_proto::v1;
use serde::{Serialize, de::DeserializeOwned};
use url::form_urlencoded;

use crate::{Error, Result, json};

/// An HTTP request that the host relays. The host neither checks the method against the manifest nor any signature.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct WebhookRequest {
    /// The webhook's key in the manifest.
    pub key: String,
    /// `GET` or `POST`.
    pub method: String,
    /// What follows the key in the address, with its leading slash; empty when nothing follows.
    pub path: String,
    /// Raw, without `?`.
    pub query: String,
    /// Names as the host wrote them; [`WebhookRequest::header`] finds one whatever its case. Several values of one name
    /// are joined by `, `.
    pub headers: BTreeMap<String, String>,
    /// The bytes as they came: a signature over the body can be verified.
    pub body: Bytes,
}

impl WebhookRequest {
    /// The header's value; the name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The first value of a query parameter, decoded.
    pub fn query_value(&self, name: &str) -> Option<String> {
        let mut pairs = form_urlencoded::parse(self.query.as_bytes());
        pairs.find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
    }

    /// The body as JSON of your type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T> {
        json::parse_bytes("the webhook's body", &self.body)
    }
}

impl From<v1::WebhookRequest> for WebhookRequest {
    fn from(wire: v1::WebhookRequest) -> Self {
        Self {
            key: wire.webhook_key,
            method: wire.method,
            path: wire.path,
            query: wire.query,
            headers: wire.headers.into_iter().collect(),
            body: wire.body,
        }
    }
}

/// The answer to a webhook.
///
/// ```
/// use kandev_plugin_sdk::WebhookResponse;
///
/// let answer = WebhookResponse::json(&serde_json::json!({"ok": true}))?.with_header("Cache-Control", "no-store");
/// assert_eq!((answer.status(), answer.body()), (200, br#"{"ok":true}"#.as_slice()));
/// assert_eq!(WebhookResponse::new(404).body(), b"");
/// # Ok::<(), kandev_plugin_sdk::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookResponse {
    status: u16,
    headers: HashMap<String, String>,
    body: Bytes,
}

impl WebhookResponse {
    /// An empty answer. The host refuses (502) a status that no HTTP answer can have.
    pub fn new(status: u16) -> Self {
        Self { status, headers: HashMap::new(), body: Bytes::new() }
    }

    /// 200 with plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(200).with_header("Content-Type", "text/plain; charset=utf-8").with_body(text.into())
    }

    /// 200 with JSON.
    pub fn json(value: &impl Serialize) -> Result<Self> {
        Ok(Self::new(200).with_header("Content-Type", "application/json").with_body(serde_json::to_vec(value)?))
    }

    /// The same with this status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same with this header, whose earlier value it replaces.
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.headers.retain(|found, _| !found.eq_ignore_ascii_case(&name));
        self.headers.insert(name, value.into());
        self
    }

    /// The same with this body.
    pub fn with_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404)
    }
}

impl From<WebhookResponse> for v1::WebhookResponse {
    fn from(answer: WebhookResponse) -> Self {
        Self { status: answer.status.into(), headers: answer.headers, body: answer.body }
    }
}

/// The plugin's own refusals are answers too: `Err` would make the host say 502.
impl From<&Error> for WebhookResponse {
    /// The error's text as plain text, with the HTTP status of its code: 400 for an invalid argument, 404 for what is
    /// not there, 500 for what is not the caller's business (without the text).
    fn from(error: &Error) -> Self {
        match error.code().http_status() {
            Some(status) if !error.is_from_host() => Self::text(error.to_string()).with_status(status),
            _ => Self::new(500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_query_values_are_found() {
        let request = WebhookRequest {
            query: "a=1&b=x%20y&a=2".into(),
            headers: BTreeMap::from([("X-Hub-Signature".into(), "sha256=00".into())]),
            ..Default::default()
        };
        assert_eq!(request.header("x-hub-signature"), Some("sha256=00"));
        assert_eq!(request.header("x-other"), None);
        assert_eq!(request.query_value("a").as_deref(), Some("1"));
        assert_eq!(request.query_value("b").as_deref(), Some("x y"));
        assert_eq!(request.query_value("c"), None);
    }

    #[test]
    fn a_header_is_there_once_whatever_its_case() {
        let answer = WebhookResponse::text("x").with_header("content-type", "text/html");
        assert_eq!(answer.headers, HashMap::from([("content-type".into(), "text/html".into())]));
    }

    #[test]
    fn an_error_of_the_plugin_shows_its_text_and_one_of_the_host_does_not() {
        let own = WebhookResponse::from(&Error::not_found("no such board"));
        assert_eq!((own.status(), own.body()), (404, b"no such board".as_slice()));
        let host = WebhookResponse::from(&Error::from(tonic::Status::not_found("task \"t\" not found")));
        assert_eq!((host.status(), host.body()), (500, b"".as_slice()));
    }
}
