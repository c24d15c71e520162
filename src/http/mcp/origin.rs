//! Whether a browser's page may ask (MCP specification, Transports: "servers MUST validate the Origin header").
//!
//! The gate has turned away the pages of other origins, as everywhere. Left is DNS rebinding: a page of somebody else whose
//! name leads to this machine sends its own name as `Origin` and as `Host`. So an `Origin` is lawful here only when it is
//! written as one that no name server can lend: an IP address or `localhost`. Programs send none.

use actix_web::http::header::{self, HeaderMap};
use url::{Host, Url};

use super::Refused;
use crate::domain::clean;

/// Longest origin in a message, in bytes.
const SHOWN_BYTES: usize = 128;

/// # Errors
/// [`Refused::Origin`] when there is an `Origin` whose name may be lent.
pub fn check(headers: &HeaderMap) -> Result<(), Refused> {
    let mut texts = headers.get_all(header::ORIGIN).map(|origin| String::from_utf8_lossy(origin.as_bytes()));
    match texts.find(|text| !is_fixed(text)) {
        Some(text) => Err(Refused::Origin(clean::single_line(&text, SHOWN_BYTES))),
        None => Ok(()),
    }
}

fn is_fixed(origin: &str) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    match origin.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn allowed(origins: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(&headers).is_ok()
    }

    #[test]
    fn a_program_sends_no_origin() {
        assert!(allowed(&[]));
    }

    #[test]
    fn pages_may_ask_at_addresses_that_nobody_can_lend() {
        for origin in [
            "http://127.0.0.1:38429",
            "http://localhost:38429",
            "http://[::1]:38429",
            "http://192.0.2.7",
            "https://127.0.0.1",
        ] {
            assert!(allowed(&[origin]), "{origin}");
        }
    }

    #[test]
    fn names_that_may_lead_here_are_refused() {
        for origin in [
            "http://evil.example.test",
            "http://evil.example.test:38429",
            "http://localhost.example.test",
            "http://127.0.0.1@evil.example.test",
            "http://127.0.0.1.example.test",
            "file://",
            "null",
            "",
        ] {
            assert!(!allowed(&[origin]), "{origin}");
        }
        assert!(!allowed(&["http://127.0.0.1", "http://evil.example.test"]), "one of two");
    }
}
