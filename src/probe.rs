//! Asking a running host whether it is ready, for `kandev-host health`: a container's health check without a shell.
//!
//! Knows the host by its address only. What ready means is the host's own word (`GET /ready`).

use std::time::Duration;

/// Why a host does not count as ready.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No host has told where it is.
    #[error("no host announces itself in {0}; start it, or pass --host")]
    NoAddress(String),
    /// The question could not be asked.
    #[error("cannot ask {url}: {source}; check that the host runs and listens there")]
    Unreachable {
        /// What was asked.
        url: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// It answered no.
    #[error("{url} answered {status}: see the host's log")]
    NotReady {
        /// What was asked.
        url: String,
        /// HTTP status.
        status: u16,
    },
}

impl ProbeError {
    /// How the host is, in a word for programs: one that answers is told from one that does not.
    pub fn word(&self) -> &'static str {
        match self {
            Self::NoAddress(_) | Self::Unreachable { .. } => "not_reached",
            Self::NotReady { .. } => "not_ready",
        }
    }
}

/// Asks `<base>/ready`, past any proxy and without following redirects; the whole question has `timeout`.
///
/// # Errors
/// [`ProbeError`] for every answer but 200.
pub async fn ready(base: &str, timeout: Duration) -> Result<(), ProbeError> {
    let url = format!("{}/ready", base.trim_end_matches('/'));
    let unreachable =
        |source: reqwest::Error| ProbeError::Unreachable { url: url.clone(), source: source.without_url() };
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(timeout);
    let response = client.build().map_err(unreachable)?.get(&url).send().await.map_err(unreachable)?;
    match response.status().as_u16() {
        200 => Ok(()),
        status => Err(ProbeError::NotReady { url, status }),
    }
}
