//! Downloads packages from addresses an operator names, without being led into the operator's own network.
//!
//! Owns the rules of the way there: http and https only, a few redirects, each checked anew, public addresses only,
//! size and time. What arrives is staged by `store::packages`; nothing is verified or unpacked here. `index` fetches
//! what sources of the marketplace publish, by the same way.

mod body;
mod index;
mod resolver;

use std::{error::Error, fmt, net::IpAddr, sync::Arc, time::Duration};

use body::Body;
pub use index::{IndexError, IndexFetcher};
use reqwest::{
    Client, Response, Url,
    header::{LOCATION, USER_AGENT},
    redirect::Policy,
};
use resolver::{GuardedResolver, Refused};
pub use resolver::{Lookup, SystemLookup};
use tokio::time::{Instant, timeout_at};

use crate::{
    config::{Install, Limits, Timing},
    domain::{
        address::{NotPublic, PUBLIC_ONLY, check_public, literal},
        clean, marketplace, package,
    },
    store::packages::{PackageStore, StageError, Staged},
};

/// Longest extract of foreign text in a message, in bytes.
const SHOWN_BYTES: usize = 200;

/// Fetches packages; one for the whole host. Clones share the client.
#[derive(Clone)]
pub struct Downloader {
    client: Client,
    rule: AddressRule,
    https_only: bool,
    timeout: Duration,
    max_bytes: u64,
    max_redirects: usize,
}

/// Says which addresses may be connected to.
type AddressRule = Arc<dyn Fn(IpAddr) -> Result<(), NotPublic> + Send + Sync>;

/// Why a download failed. The texts are for the operator (rest.md §3, manifest.md §5); none holds credentials or a
/// query of an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The text is no URL.
    #[error("plugins: invalid install URL: {0}")]
    Malformed(String),
    /// Neither http nor https; a redirect may lead here too.
    #[error("plugins: invalid install URL: unsupported scheme \"{0}\" (must be http or https)")]
    Scheme(String),
    /// No host in it.
    #[error("plugins: invalid install URL: missing host")]
    MissingHost,
    /// The host is, or has only, addresses that are not public.
    #[error("plugins: download package: {0}; {PUBLIC_ONLY}")]
    NotPublic(String),
    /// More redirects than allowed.
    #[error("plugins: download package: more than {0} redirects")]
    TooManyRedirects(usize),
    /// A redirect that leads nowhere.
    #[error("plugins: download package: server responded {0} without a usable Location")]
    BadRedirect(u16),
    /// The server did not answer 2xx.
    #[error("plugins: download package: server responded {0}")]
    Status(u16),
    /// More bytes than `limits.package_compressed`, announced or sent.
    #[error("plugins: package exceeds max download size of {0} bytes")]
    TooLarge(u64),
    /// Not done within `timing.download_timeout`.
    #[error("plugins: download package: not complete after {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// No connection, or it broke.
    #[error("plugins: download package: {0}; check the address and this machine's network")]
    Connection(String),
    /// The disk is full; which file it was is for the log.
    #[error("no space is left on the disk for the downloaded package; free some below the host's home, and try again")]
    DiskFull(String),
    /// The archive could not be kept; the text is for the log.
    #[error("plugins: the downloaded package could not be kept: {0}")]
    Staging(String),
}

impl Downloader {
    /// A downloader that resolves names with `lookup`. Proxies of the environment are not used: behind one the host
    /// could not know which address it is connected to. Fails when the TLS library finds no usable set-up.
    pub fn new(
        timing: &Timing,
        limits: &Limits,
        install: &Install,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, FetchError> {
        Self::with_rule(timing, limits, address_rule(install), lookup)
    }

    /// The same for packages that nobody looks at, which the marketplace lists: https, or this machine, at every step.
    pub fn strict(&self) -> Self {
        Self { https_only: true, ..self.clone() }
    }

    fn with_rule(
        timing: &Timing,
        limits: &Limits,
        rule: AddressRule,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, FetchError> {
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(timing.connect_timeout)
            // A connection is made for one download, so that every hop is resolved and checked itself.
            .pool_max_idle_per_host(0)
            .dns_resolver(Arc::new(GuardedResolver::new(lookup, rule.clone())))
            .build()
            .map_err(|error| FetchError::Connection(describe(&error)))?;
        Ok(Self {
            client,
            rule,
            https_only: false,
            timeout: timing.download_timeout,
            max_bytes: limits.package_compressed,
            max_redirects: limits.download_redirects,
        })
    }

    /// Downloads the package at `url` into a staging folder of `packages`. Nothing is left of one that fails, or when
    /// the future is dropped.
    pub async fn download(&self, url: &str, packages: &PackageStore) -> Result<Staged, FetchError> {
        let body = self.open(url).await?.into_stream();
        let limits = package::Limits { compressed: self.max_bytes, ..package::Limits::default() };
        packages.stage(body, &limits).await.map_err(|error| match error {
            StageError::Source(cause) => cause,
            StageError::TooLarge(_) => FetchError::TooLarge(self.max_bytes),
            StageError::File(cause) if cause.is_full() => FetchError::DiskFull(cause.to_string()),
            StageError::File(cause) => FetchError::Staging(cause.to_string()),
            StageError::Interrupted(cause) => FetchError::Staging(cause.to_string()),
        })
    }

    /// Opens `url` and follows its redirects. The answer's body ends with an error when it passes the size or the
    /// time, which counts from here.
    async fn open(&self, url: &str) -> Result<Body, FetchError> {
        let deadline = Instant::now() + self.timeout;
        let mut url = self.check(Url::parse(url).map_err(|error| FetchError::Malformed(error.to_string()))?)?;
        for _ in 0..=self.max_redirects {
            let response = self.request(url.clone(), deadline).await?;
            match response.status() {
                status if status.is_success() => return Body::new(response, self.max_bytes, deadline, self.timeout),
                status if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) => {
                    url = self.check(target(&url, &response)?)?;
                }
                status => return Err(FetchError::Status(status.as_u16())),
            }
        }
        Err(FetchError::TooManyRedirects(self.max_redirects))
    }

    async fn request(&self, url: Url, deadline: Instant) -> Result<Response, FetchError> {
        let request = self.client.get(url).header(USER_AGENT, concat!("kandev-host/", env!("CARGO_PKG_VERSION")));
        let response = timeout_at(deadline, request.send())
            .await
            .map_err(|_| FetchError::TimedOut(self.timeout))?
            .map_err(classify)?;
        // The resolver has checked it already; this is the address the kernel says we talk to.
        match response.remote_addr() {
            Some(peer) => self.check_address(peer.ip()).map(|()| response),
            None => Ok(response),
        }
    }

    /// Checks what can be told from the address itself.
    fn check(&self, url: Url) -> Result<Url, FetchError> {
        let lawful = match url.scheme() {
            "https" => true,
            "http" => !self.https_only || marketplace::is_loopback(&url),
            _ => false,
        };
        if !lawful {
            return Err(FetchError::Scheme(clean::single_line(url.scheme(), SHOWN_BYTES)));
        }
        if !url.has_host() {
            return Err(FetchError::MissingHost);
        }
        literal(&url).map_or(Ok(()), |address| self.check_address(address)).map(|()| url)
    }

    fn check_address(&self, address: IpAddr) -> Result<(), FetchError> {
        (self.rule)(address).map_err(|why| FetchError::NotPublic(format!("{address} is {why}")))
    }
}

impl fmt::Debug for Downloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downloader")
            .field("timeout", &self.timeout)
            .field("max_bytes", &self.max_bytes)
            .finish_non_exhaustive()
    }
}

fn address_rule(install: &Install) -> AddressRule {
    match install.allow_private_addresses {
        true => Arc::new(|_| Ok(())),
        false => Arc::new(check_public),
    }
}

fn target(from: &Url, response: &Response) -> Result<Url, FetchError> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    location.and_then(|location| from.join(location).ok()).ok_or(FetchError::BadRedirect(response.status().as_u16()))
}

fn classify(error: reqwest::Error) -> FetchError {
    match causes(&error).find_map(|cause| cause.downcast_ref::<Refused>()) {
        Some(refused) => FetchError::NotPublic(refused.to_string()),
        None => FetchError::Connection(describe(&error)),
    }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// The innermost cause: the outer ones repeat the address, credentials and query included.
fn describe(error: &reqwest::Error) -> String {
    let cause = causes(error).last().map(ToString::to_string).unwrap_or_default();
    clean::single_line(&cause, SHOWN_BYTES)
}

#[cfg(test)]
mod tests;
