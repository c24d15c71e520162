//! Fetches the indexes of marketplace sources: as a package is fetched, but https only unless the host is this machine,
//! small enough to be held in memory, and within a shorter time.
//!
//! An index on this machine is lawful when the operator names it so; a source elsewhere cannot lead there by a redirect
//! or a name. What comes is only bytes: reading them is `domain::marketplace`'s part.

use std::{net::IpAddr, sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use url::Url;

use super::{AddressRule, Downloader, FetchError, Lookup, address_rule};
use crate::{
    config::{Install, Limits, Timing},
    domain::marketplace,
};

/// Fetches indexes; one for the whole host. Clones share the clients.
#[derive(Debug, Clone)]
pub struct IndexFetcher {
    /// For sources elsewhere.
    public: Downloader,
    /// For sources whose address names this machine.
    local: Downloader,
}

/// Why an index did not come. The texts are for the operator; none holds credentials or a query of an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The address, or one that a redirect leads to, may not be asked.
    #[error(
        "{0}; an index is fetched by https from public addresses, and by http from this machine if its url says so"
    )]
    Refused(String),
    /// No connection, or an answer without an index.
    #[error("{0}; check the address and this machine's network")]
    Unreachable(String),
    /// More bytes than `limits.marketplace_index_bytes`, announced or sent.
    #[error("the index is larger than {0} bytes (limits.marketplace_index_bytes)")]
    TooLarge(u64),
    /// Not there within `timing.marketplace_timeout`.
    #[error("the index did not come within {} s (timing.marketplace_timeout)", .0.as_secs_f64())]
    TimedOut(Duration),
}

impl From<FetchError> for IndexError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Malformed(reason) => Self::Refused(format!("no address: {reason}")),
            FetchError::Scheme(scheme) => Self::Refused(format!("it leads to an address with the scheme {scheme}")),
            FetchError::MissingHost => Self::Refused("it leads to an address without a host".to_owned()),
            FetchError::NotPublic(which) => Self::Refused(which),
            FetchError::TooManyRedirects(most) => Self::Unreachable(format!("more than {most} redirects")),
            FetchError::BadRedirect(status) => {
                Self::Unreachable(format!("the server responded {status} without a usable Location"))
            }
            FetchError::Status(status) => Self::Unreachable(format!("the server responded {status}")),
            FetchError::Connection(reason) | FetchError::Staging(reason) | FetchError::DiskFull(reason) => {
                Self::Unreachable(reason)
            }
            FetchError::TooLarge(most) => Self::TooLarge(most),
            FetchError::TimedOut(limit) => Self::TimedOut(limit),
        }
    }
}

impl IndexFetcher {
    /// A fetcher that resolves names with `lookup`. Fails when the TLS library finds no usable set-up.
    pub fn new(
        timing: &Timing,
        limits: &Limits,
        install: &Install,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, FetchError> {
        Self::with_rule(timing, limits, address_rule(install), lookup)
    }

    fn with_rule(
        timing: &Timing,
        limits: &Limits,
        rule: AddressRule,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, FetchError> {
        let timing = Timing { download_timeout: timing.marketplace_timeout, ..timing.clone() };
        let limits = Limits { package_compressed: limits.marketplace_index_bytes, ..limits.clone() };
        let elsewhere = Arc::clone(&rule);
        let near: AddressRule = Arc::new(move |address: IpAddr| match address.to_canonical().is_loopback() {
            true => Ok(()),
            false => elsewhere(address),
        });
        Ok(Self {
            public: Downloader::with_rule(&timing, &limits, rule, Arc::clone(&lookup))?.strict(),
            local: Downloader::with_rule(&timing, &limits, near, lookup)?.strict(),
        })
    }

    /// The bytes of the index at `url`.
    pub async fn fetch(&self, url: &str) -> Result<Vec<u8>, IndexError> {
        let is_local = Url::parse(url).is_ok_and(|url| marketplace::is_loopback(&url));
        let downloader = if is_local { &self.local } else { &self.public };
        let pieces = downloader.open(url).await?.into_stream();
        let join = |mut all: Vec<u8>, piece: bytes::Bytes| async move {
            all.extend_from_slice(&piece);
            Ok(all)
        };
        Ok(pieces.try_fold(Vec::new(), join).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::{io, net::Ipv4Addr};

    use async_trait::async_trait;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;
    use crate::domain::address::check_public;

    /// Plays the public Internet.
    const PUBLIC: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

    /// Every name leads to this machine.
    struct Here;

    #[async_trait]
    impl Lookup for Here {
        async fn lookup(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            Ok(vec![Ipv4Addr::LOCALHOST.into()])
        }
    }

    fn fetcher() -> IndexFetcher {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let timing = Timing { marketplace_timeout: Duration::from_secs(1), ..Timing::default() };
        let limits = Limits { marketplace_index_bytes: 1000, ..Limits::default() };
        IndexFetcher::with_rule(&timing, &limits, Arc::new(check_public), Arc::new(Here)).unwrap()
    }

    /// A server that answers everyone the same.
    async fn server(address: Ipv4Addr, answer: String) -> u16 {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") && connection.read_buf(&mut request).await.is_ok_and(|n| n > 0) {}
                let _ = connection.write_all(answer.as_bytes()).await;
            }
        });
        port
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    fn redirect(to: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
    }

    #[tokio::test]
    async fn an_index_on_this_machine_comes_by_http_when_its_address_says_so() {
        let port = server(Ipv4Addr::LOCALHOST, ok("{}")).await;
        let near = server(Ipv4Addr::LOCALHOST, redirect(&format!("http://127.0.0.1:{port}/"))).await;
        for url in
            [format!("http://127.0.0.1:{port}/"), format!("http://localhost:{port}/"), format!("http://127.1:{near}/")]
        {
            assert_eq!(fetcher().fetch(&url).await, Ok(b"{}".to_vec()), "{url}");
        }
    }

    #[tokio::test]
    async fn plain_http_elsewhere_and_names_that_lead_here_are_refused() {
        let port = server(PUBLIC, ok("{}")).await;
        let away = server(Ipv4Addr::LOCALHOST, redirect(&format!("http://pkg.test:{port}/"))).await;
        for url in ["http://pkg.test/".to_owned(), "ftp://127.0.0.1/".to_owned(), format!("http://127.0.0.1:{away}/")] {
            let error = fetcher().fetch(&url).await.unwrap_err();
            assert!(matches!(&error, IndexError::Refused(why) if why.contains("scheme")), "{url}: {error}");
        }
        let error = fetcher().fetch("https://pkg.test/").await.unwrap_err();
        assert!(matches!(&error, IndexError::Refused(why) if why.contains("loopback")), "{error}");
    }

    #[tokio::test]
    async fn what_is_too_large_too_slow_or_no_answer_is_told_with_its_setting() {
        let large = server(Ipv4Addr::LOCALHOST, ok(&"x".repeat(1001))).await;
        let endless = server(Ipv4Addr::LOCALHOST, format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1001))).await;
        for port in [large, endless] {
            let error = fetcher().fetch(&format!("http://127.0.0.1:{port}/")).await.unwrap_err();
            assert_eq!(error.to_string(), "the index is larger than 1000 bytes (limits.marketplace_index_bytes)");
        }
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let error = fetcher().fetch(&format!("http://{}/", silent.local_addr().unwrap())).await.unwrap_err();
        assert_eq!(error.to_string(), "the index did not come within 1 s (timing.marketplace_timeout)");
        let gone = server(Ipv4Addr::LOCALHOST, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
        let error = fetcher().fetch(&format!("http://127.0.0.1:{gone}/")).await.unwrap_err();
        assert!(error.to_string().starts_with("the server responded 410; "), "{error}");
    }
}
