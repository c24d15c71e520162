//! Whether a browser's page that sends something is the host's own (contract/rest.md §1; field case 81). Pages of other
//! places cannot read answers, but they can send forms and open WebSockets.

/// Whether the page that `origin` (the header `Origin`) tells of was loaded from where the host was asked, `host`. The
/// scheme does not count: TLS may end in front of the host. A page that keeps its origin to itself (`null`) is none of
/// the host's own.
pub fn is_own(origin: &[u8], host: &str) -> bool {
    let place = [b"http://".as_slice(), b"https://"].into_iter().find_map(|scheme| origin.strip_prefix(scheme));
    place.is_some_and(|place| !place.is_empty() && place.eq_ignore_ascii_case(host.as_bytes()))
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
            assert_eq!(is_own(origin.as_bytes(), host), own, "{origin} {host}");
        }
        assert!(!is_own(b"http://\xff", "kandev.test"));
    }
}
