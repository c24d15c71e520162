//! Whether a browser's page may ask (contract/rest.md §1; field case 81). Pages of other places cannot read answers,
//! but they can send forms and open WebSockets.
//!
//! Two questions, and the operator's list (`http.allowed_origins`) answers both. Everywhere: was the page loaded from
//! where the host was asked? At `/mcp` besides (MCP specification, Transports: "servers MUST validate the Origin
//! header"): could somebody else have lent its name this machine's address? A page that does so (DNS rebinding) sends
//! its own name as `Origin` and as `Host`, and passes the first one.
//!
//! Nothing here is CORS: it says who may ask, not which page may read the answer.

use url::{Host, Url};

/// Why a text is no origin that may be listed. The text is not quoted, it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOrigin {
    /// It is something else, or a pattern.
    #[error("it must be one origin, scheme://host[:port] with http or https, like \"https://kandev.example.test\"")]
    Other,
    /// Browsers write it as it stands here.
    #[error("it must be as browsers write it, here \"{0}\"")]
    Spelling(String),
}

/// Whether a page of this origin, which is the header `Origin`, may ask a host that was asked as `host`.
pub fn may_ask(origin: &[u8], host: &str, allowed: &[String]) -> bool {
    is_own(origin, host) || is_listed(origin, allowed)
}

/// Whether nobody but the operator can have given this machine the origin's name: it is written as one that no name
/// server can lend, an IP address or `localhost`, or it is the operator's own word.
pub fn is_certain(origin: &[u8], allowed: &[String]) -> bool {
    is_fixed(origin) || is_listed(origin, allowed)
}

/// Whether the operator may list this. It is compared byte by byte, so it must be what browsers send.
///
/// # Errors
/// [`BadOrigin`] when it is no origin, or written otherwise.
pub fn check(text: &str) -> Result<(), BadOrigin> {
    let url = Url::parse(text).map_err(|_| BadOrigin::Other)?;
    if !matches!(url.scheme(), "http" | "https") || text.contains('*') {
        return Err(BadOrigin::Other);
    }
    match url.origin().ascii_serialization() {
        written if written == text => Ok(()),
        written => Err(BadOrigin::Spelling(written)),
    }
}

/// Whether the page was loaded from `host`. The scheme does not count: TLS may end in front of the host. A page that
/// keeps its origin to itself (`null`) is none of the host's own.
fn is_own(origin: &[u8], host: &str) -> bool {
    let place = [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| origin.strip_prefix(scheme));
    place.is_some_and(|place| !place.is_empty() && place.eq_ignore_ascii_case(host.as_bytes()))
}

fn is_listed(origin: &[u8], allowed: &[String]) -> bool {
    allowed.iter().any(|allowed| allowed.as_bytes() == origin)
}

fn is_fixed(origin: &[u8]) -> bool {
    let Some(origin) = std::str::from_utf8(origin).ok().and_then(|text| Url::parse(text).ok()) else { return false };
    match origin.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_hosts_own_when_it_came_from_the_same_name_and_port() {
        for (origin, host, own) in [
            ("https://kandev.test", "kandev.test", true),
            ("http://127.0.0.1:38429", "127.0.0.1:38429", true),
            ("http://[::1]:38429", "[::1]:38429", true),
            ("https://KANDEV.test", "kandev.TEST", true),
            ("http://127.0.0.1:1", "127.0.0.1:38429", false),
            ("https://evil.test", "kandev.test", false),
            ("https://kandev.test.evil.test", "kandev.test", false),
            ("https://kandev.test@evil.test", "kandev.test", false),
            ("https://kandev.test/", "kandev.test", false),
            ("kandev.test", "kandev.test", false),
            ("file://", "", false),
            ("http://", "", false),
            ("null", "null", false),
            ("", "", false),
        ] {
            assert_eq!(may_ask(origin.as_bytes(), host, &[]), own, "{origin} {host}");
        }
        assert!(!may_ask(b"http://\xff", "kandev.test", &[]));
    }

    #[test]
    fn a_page_of_a_listed_origin_may_ask_whatever_the_host_was_asked_as() {
        let allowed = ["https://kandev.test".to_owned(), "http://kandev.test:8080".to_owned()];
        for (origin, may) in [
            ("https://kandev.test", true),
            ("http://kandev.test:8080", true),
            ("http://kandev.test", false),
            ("https://kandev.test:8080", false),
            ("https://kandev.test.evil.test", false),
            ("https://evil.kandev.test", false),
            ("https://kandev.test/", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(may_ask(origin.as_bytes(), "127.0.0.1:38429", &allowed), may, "{origin}");
            assert_eq!(is_certain(origin.as_bytes(), &allowed), may, "{origin}");
        }
        assert!(may_ask(b"http://127.0.0.1:38429", "127.0.0.1:38429", &allowed), "the host's own pages still may");
    }

    #[test]
    fn a_name_is_certain_when_it_is_an_address_that_nobody_can_lend() {
        for origin in [
            "http://127.0.0.1:38429",
            "http://localhost:38429",
            "http://[::1]:38429",
            "http://192.0.2.7",
            "https://127.0.0.1",
        ] {
            assert!(is_certain(origin.as_bytes(), &[]), "{origin}");
        }
    }

    #[test]
    fn names_that_may_lead_here_are_not_certain() {
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
            assert!(!is_certain(origin.as_bytes(), &[]), "{origin}");
        }
        assert!(!is_certain(b"http://127.0.0.1/\xff", &[]));
    }

    #[test]
    fn only_what_browsers_send_may_be_listed() {
        for origin in
            ["https://kandev.test", "http://kandev.test:8080", "http://192.0.2.7", "https://[2001:db8::1]:8443"]
        {
            assert_eq!(check(origin), Ok(()), "{origin}");
        }
        for other in
            ["", "*", "null", "kandev.test", "https://", "https://*.kandev.test", "ftp://kandev.test", "file:///"]
        {
            assert_eq!(check(other), Err(BadOrigin::Other), "{other}");
        }
        for (text, written) in [
            ("https://kandev.test/", "https://kandev.test"),
            ("https://kandev.test:443", "https://kandev.test"),
            ("http://kandev.test:80/ui?x#y", "http://kandev.test"),
            ("HTTPS://Kandev.test", "https://kandev.test"),
            ("https://me:hunter2@kandev.test", "https://kandev.test"),
            ("https://b\u{fc}cher.test", "https://xn--bcher-kva.test"),
            (" https://kandev.test", "https://kandev.test"),
        ] {
            assert_eq!(check(text), Err(BadOrigin::Spelling(written.to_owned())), "{text}");
        }
    }
}
