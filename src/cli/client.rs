//! A client of a running host's REST API: finding the host and the token, requests, and what went wrong.
//!
//! The token of a home is sent to the host that announces itself in that home, and to no other address.

use std::{path::PathBuf, time::Duration};

use futures_util::StreamExt as _;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode, Url,
    header::{ETAG, HeaderValue},
    redirect::Policy,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use super::serve::install_tls;
use crate::{
    config::{ClientSettings, ClientTiming},
    domain::clean,
    store::{
        admin_token::{self, AdminTokenError},
        fs::FileError,
        run_folder::{self, Announced},
    },
};

/// Largest answer, in bytes: a list of many plugins with long manifests.
const MAX_ANSWER_BYTES: usize = 256 * 1024 * 1024;

/// Longest foreign text in a message, in bytes.
const SHOWN_BYTES: usize = 300;

/// Why the host could not be asked, or what it refused.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// `host.json` cannot be read.
    #[error("cannot tell where the host is: {0}; name it with --host or KANDEV_URL")]
    Announcement(FileError),
    /// No `host.json`.
    #[error("no host runs on {home}: start it with `kandev-host serve`, or name another one with --home, --host or KANDEV_URL", home = .home.display())]
    NoHost {
        /// The home looked at.
        home: PathBuf,
    },
    /// An address that is none.
    #[error("the host's address \"{shown}\" cannot be used: {reason}; write it like http://127.0.0.1:38429")]
    Address {
        /// What was given, cleaned.
        shown: String,
        /// Why not.
        reason: String,
    },
    /// No token for this host.
    #[error(
        "no token for the host at {url}: set KANDEV_ADMIN_TOKEN or KANDEV_ADMIN_TOKEN_FILE (the host's own is in its <home>/admin-token)"
    )]
    NoToken {
        /// Which host.
        url: Url,
    },
    /// The home's token cannot be had.
    #[error(transparent)]
    TokenFile(#[from] AdminTokenError),
    /// The host does not know the token.
    #[error(
        "the host at {url} does not accept the token from {origin}: the right one is what KANDEV_ADMIN_TOKEN was when it started, else in its <home>/admin-token"
    )]
    Token {
        /// Which host.
        url: Url,
        /// Where the token comes from.
        origin: &'static str,
    },
    /// Nobody there, or the connection broke.
    #[error(
        "the host at {url} cannot be reached: {reason}; check that it runs (`kandev-host serve`) and that the address is right"
    )]
    NotReached {
        /// Which host.
        url: Url,
        /// What the system says.
        reason: String,
    },
    /// No answer in time.
    #[error("the host at {url} did not answer within {} s; what was asked may still take effect, see its log, or give it more --timeout", .after.as_secs_f64())]
    TimedOut {
        /// Which host.
        url: Url,
        /// The deadline.
        after: Duration,
    },
    /// Something else answers there.
    #[error("what answers at {url} is no kandev-host (status {status}); check the address")]
    NotAHost {
        /// Which address.
        url: Url,
        /// What it answered.
        status: u16,
    },
    /// The host's own text.
    #[error("{text}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Stable code, docs/api.md.
        code: String,
        /// For people.
        text: String,
        /// For programs; `null` when the host has none.
        details: Box<Value>,
    },
    /// The HTTP library cannot be set up.
    #[error("cannot set up the client: {0}")]
    Library(String),
}

/// The body of the host's error answers.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    code: String,
    /// Of a config: every broken rule, of which the text may name the first only.
    #[serde(default)]
    violations: Vec<Violation>,
    #[serde(default)]
    details: Value,
}

#[derive(Deserialize)]
struct Violation {
    path: String,
    message: String,
}

/// One host, one operator.
pub struct Client {
    http: reqwest::Client,
    url: Url,
    token: SecretString,
    token_from: &'static str,
    timing: ClientTiming,
}

impl Client {
    /// Finds host and token; does not connect yet. Blocks: reads small files.
    pub fn new(settings: ClientSettings) -> Result<Self, ClientError> {
        let ClientSettings { url, token, home, timing } = settings;
        let announced = run_folder::announced(&home.join("run"));
        let (url, local) = match url {
            Some(url) => {
                let url = address(&url)?;
                let local = matches!(&announced, Ok(Some(found)) if address(&found.url).is_ok_and(|own| own == url));
                (url, local)
            }
            None => match announced.map_err(ClientError::Announcement)? {
                Some(Announced { url, .. }) => (address(&url)?, true),
                None => return Err(ClientError::NoHost { home }),
            },
        };
        let (token, token_from) = match token {
            Some(token) => (token, "--token or KANDEV_ADMIN_TOKEN"),
            None => {
                let own = if local { admin_token::read_existing(&home)? } else { None };
                (own.ok_or_else(|| ClientError::NoToken { url: url.clone() })?, "<home>/admin-token")
            }
        };
        install_tls();
        let mut http = reqwest::Client::builder()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(timing.connect)
            .user_agent(concat!("kandev-host/", env!("CARGO_PKG_VERSION")));
        if local {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| ClientError::Library(deepest(&error)))?;
        Ok(Self { http, url, token, token_from, timing })
    }

    /// Waits of this client.
    pub fn timing(&self) -> ClientTiming {
        self.timing
    }

    /// A request with the token. Each element of `path` is one segment.
    pub fn request(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.request_with(method, path, &[] as &[(&str, &str)])
    }

    /// [`Self::request`] with a query.
    pub fn request_with(&self, method: Method, path: &[&str], query: &[(&str, impl AsRef<str>)]) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request(method, url).bearer_auth(self.token.expose_secret())
    }

    /// GET, the answer's JSON.
    pub async fn get(&self, path: &[&str]) -> Result<Value, ClientError> {
        self.send(self.request(Method::GET, path)).await
    }

    /// As [`Self::get`], with the answer's `ETag`.
    pub async fn get_tagged(&self, path: &[&str]) -> Result<(Value, Option<HeaderValue>), ClientError> {
        let request = self.request(Method::GET, path);
        let receive = async {
            let response = request.send().await.map_err(|error| self.not_reached(&error))?;
            let tag = response.headers().get(ETAG).cloned();
            Ok((self.read(response).await?, tag))
        };
        timeout(self.timing.answer, receive).await.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// Sends a request that has no large body; the whole answer must be there within [`ClientTiming::answer`].
    pub async fn send(&self, request: RequestBuilder) -> Result<Value, ClientError> {
        let after = self.timing.answer;
        match timeout(after, self.receive(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.timed_out()),
        }
    }

    /// Sends without a deadline, for a caller that has its own.
    pub async fn receive(&self, request: RequestBuilder) -> Result<Value, ClientError> {
        let response = request.send().await.map_err(|error| self.not_reached(&error))?;
        self.read(response).await
    }

    /// Sends a request whose answer goes on for long; the caller reads it. The answer's head must be there within
    /// [`ClientTiming::answer`].
    pub async fn open(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = match timeout(self.timing.answer, request.send()).await {
            Ok(sent) => sent.map_err(|error| self.not_reached(&error))?,
            Err(_) => return Err(self.timed_out()),
        };
        let type_is = |wanted: &str| {
            let found = response.headers().get(reqwest::header::CONTENT_TYPE);
            found.and_then(|found| found.to_str().ok()).is_some_and(|found| found.starts_with(wanted))
        };
        match response.status().is_success() {
            true if type_is("text/event-stream") => Ok(response),
            true => Err(ClientError::NotAHost { url: self.url.clone(), status: response.status().as_u16() }),
            false => match self.read(response).await {
                Ok(_) => Err(self.timed_out()),
                Err(refused) => Err(refused),
            },
        }
    }

    /// The error of a deadline that passed.
    pub fn timed_out(&self) -> ClientError {
        ClientError::TimedOut { url: self.url.clone(), after: self.timing.answer }
    }

    async fn read(&self, response: Response) -> Result<Value, ClientError> {
        let status = response.status();
        let not_a_host = || ClientError::NotAHost { url: self.url.clone(), status: status.as_u16() };
        let plugin = plugin_in(&self.url, response.url()).map(str::to_owned);
        let mut body = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|error| self.not_reached(&error))?);
            if body.len() > MAX_ANSWER_BYTES {
                return Err(not_a_host());
            }
        }
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|_| not_a_host());
        }
        match serde_json::from_slice(&body) {
            Ok(Refusal { code, .. }) if code == "unauthenticated" => {
                Err(ClientError::Token { url: self.url.clone(), origin: self.token_from })
            }
            Ok(Refusal { error, code, violations, details }) => {
                let mut error = error;
                for Violation { path, message } in violations.iter().filter(|_| violations.len() > 1) {
                    error += &format!("\n  {path}: {message}");
                }
                // The host's text is the contract's, and names no plugin.
                if let Some(id) = plugin.filter(|id| code == "plugin_not_found" && !error.contains(id.as_str())) {
                    error += &format!(": {id}");
                }
                let next = match code.as_str() {
                    "plugin_not_found" => "; `kandev-host plugin list` shows what is installed",
                    "already_installed" => "; `kandev-host plugin remove` it first, or pack another version",
                    "consent_needed" => " (on the command line: --accept with the same words)",
                    _ => "",
                };
                Err(ClientError::Refused {
                    status: status.as_u16(),
                    code,
                    text: error + next,
                    details: Box::new(details),
                })
            }
            Err(_) => Err(not_a_host()),
        }
    }

    fn not_reached(&self, error: &reqwest::Error) -> ClientError {
        let reason = clean::single_line(&deepest(error), SHOWN_BYTES);
        ClientError::NotReached { url: self.url.clone(), reason }
    }
}

/// The plugin that an address names, below the host's own path. An id needs no escapes.
fn plugin_in<'a>(host: &Url, asked: &'a Url) -> Option<&'a str> {
    let path = asked.path().strip_prefix(host.path().trim_end_matches('/'))?;
    path.split('/').skip_while(|segment| *segment != "plugins").nth(1)
}

/// The cause at the end of the chain: the one that says something.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn address(text: &str) -> Result<Url, ClientError> {
    let bad =
        |reason: &str| ClientError::Address { shown: clean::single_line(text, SHOWN_BYTES), reason: reason.to_owned() };
    let url = Url::parse(text.trim()).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        let shown = "(not shown)".to_owned();
        return Err(ClientError::Address { shown, reason: "it holds a user or a password; use the token".to_owned() });
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad("it must not have a query or a fragment"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    /// A home whose host announces itself at this address and made a token.
    fn home(url: &str) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("run")).unwrap();
        let announced = serde_json::json!({"pid": 1, "url": url}).to_string();
        fs::write(home.path().join("run/host.json"), announced).unwrap();
        let token = home.path().join("admin-token");
        fs::write(&token, "secret\n").unwrap();
        fs::set_permissions(token, fs::Permissions::from_mode(0o600)).unwrap();
        home
    }

    fn client(url: Option<&str>, home: &Path) -> Result<Client, ClientError> {
        let timing = ClientTiming::default();
        Client::new(ClientSettings { url: url.map(str::to_owned), token: None, home: home.to_owned(), timing })
    }

    #[test]
    fn a_homes_token_goes_to_its_own_host_only() {
        let home = home("http://127.0.0.1:5");
        for url in [None, Some("http://127.0.0.1:5"), Some("http://127.0.0.1:5/")] {
            assert_eq!(client(url, home.path()).unwrap().token.expose_secret(), "secret");
        }
        for url in ["http://127.0.0.1:6", "https://127.0.0.1:5", "http://example.test"] {
            assert!(matches!(client(Some(url), home.path()), Err(ClientError::NoToken { .. })), "{url}");
        }
    }

    #[test]
    fn addresses_that_cannot_be_used_are_told_without_their_password() {
        let home = tempfile::tempdir().unwrap();
        for url in ["127.0.0.1:5", "ftp://x", "http://", "http://u:hunter2@x", "http://x?y", "http://x#y"] {
            let error = client(Some(url), home.path()).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("cannot be used") && !error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn the_plugin_that_was_asked_for_is_told_from_the_address() {
        for (host, path, expected) in [
            ("http://a.test/", "/api/plugins/zz", Some("zz")),
            ("http://a.test/", "/api/plugins/zz/config", Some("zz")),
            ("http://a.test/", "/api/v1/secrets/s/plugins/zz", Some("zz")),
            ("http://a.test/plugins/here/", "/plugins/here/api/plugins/zz", Some("zz")),
            ("http://a.test/", "/api/plugins", None),
            ("http://a.test/", "/api/v1/inbox/i", None),
        ] {
            let host = Url::parse(host).unwrap();
            let asked = host.join(path).unwrap();
            assert_eq!(plugin_in(&host, &asked), expected, "{path}");
        }
    }

    #[test]
    fn an_id_is_one_segment_below_the_hosts_own_path() {
        let home = home("http://127.0.0.1:5/behind/proxy/");
        let request = client(None, home.path()).unwrap().request(Method::GET, &["api", "plugins", "a/b?c"]);
        let url = request.build().unwrap().url().to_string();
        assert_eq!(url, "http://127.0.0.1:5/behind/proxy/api/plugins/a%2Fb%3Fc");
    }
}
