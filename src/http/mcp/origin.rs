//! Whether a browser's page may ask (MCP specification, Transports: "servers MUST validate the Origin header").
//!
//! Against DNS rebinding: a page of somebody else whose name leads to this machine sends its own name as `Origin` and as
//! `Host`. So an `Origin` is lawful only when it is the host's own address and written as one that no name server can
//! lend: an IP address or `localhost`. Programs send none.

use actix_web::http::header::{self, HeaderMap};
use url::{Host, Url};

use super::Refused;
use crate::domain::clean;

/// Longest origin in a message, in bytes.
const SHOWN_BYTES: usize = 128;

/// # Errors
/// [`Refused::Origin`] when there is an `Origin` and it is not the host's own.
pub fn check(headers: &HeaderMap) -> Result<(), Refused> {
    let mut origins = headers.get_all(header::ORIGIN);
    let Some(origin) = origins.next() else { return Ok(()) };
    let text = String::from_utf8_lossy(origin.as_bytes());
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match origins.next().is_none() && is_own(&text, host) {
        true => Ok(()),
        false => Err(Refused::Origin(clean::single_line(&text, SHOWN_BYTES))),
    }
}

fn is_own(origin: &str, host: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    let fixed = match origin.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    };
    let own = Url::parse(&format!("{}://{host}", origin.scheme()));
    fixed && own.is_ok_and(|own| own.origin() == origin.origin())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn allowed(host: &str, origins: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&headers).is_ok()
    }

    #[test]
    fn a_program_sends_no_origin_and_may_ask_by_any_name() {
        assert!(allowed("127.0.0.1:1", &[]) && allowed("kandev.example.test", &[]));
    }

    #[test]
    fn the_hosts_own_pages_may_ask_at_addresses_that_nobody_can_lend() {
        for (host, origin) in [
            ("127.0.0.1:38429", "http://127.0.0.1:38429"),
            ("localhost:38429", "http://localhost:38429"),
            ("[::1]:38429", "http://[::1]:38429"),
            ("192.0.2.7", "http://192.0.2.7"),
            ("127.0.0.1", "https://127.0.0.1"),
        ] {
            assert!(allowed(host, &[origin]), "{host} {origin}");
        }
    }

    #[test]
    fn other_pages_and_names_that_lead_here_are_refused() {
        for (host, origin) in [
            ("127.0.0.1:38429", "http://evil.example.test"),
            ("evil.example.test:38429", "http://evil.example.test:38429"),
            ("127.0.0.1:38429", "http://127.0.0.1:1"),
            ("127.0.0.1:38429", "http://localhost:38429"),
            ("127.0.0.1", "null"),
            ("127.0.0.1", ""),
            ("", "http://127.0.0.1"),
        ] {
            assert!(!allowed(host, &[origin]), "{host} {origin}");
        }
        assert!(!allowed("127.0.0.1", &["http://127.0.0.1", "http://127.0.0.1"]), "two origins");
    }
}
