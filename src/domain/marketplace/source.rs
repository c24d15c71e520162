//! A source of the marketplace: its shape, and where an index, or a package that one lists, may be.

use serde::Serialize;
use time::OffsetDateTime;
use url::{Host, Url};
use utoipa::ToSchema;

use crate::domain::clean;

/// The id of the source that a setting names; other ids are UUIDs.
pub const BUILTIN_ID: &str = "builtin";

/// What that source is called.
pub const BUILTIN_NAME: &str = "Built-in";

/// Longest address, in bytes.
const MAX_ADDRESS_BYTES: usize = 2048;

/// Longest name of a source, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// A source, as REST shows it (contract/rest.md §9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MarketplaceSource)]
pub struct Source {
    /// A UUID, or `builtin`.
    pub id: String,
    /// For people.
    pub name: String,
    /// Where its index is.
    pub url: String,
    /// Whether its index is fetched and its plugins are offered.
    pub enabled: bool,
    /// Whether the settings name it; it cannot be deleted then.
    pub builtin: bool,
    /// When it was added, UTC.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// Why an address or a name cannot be taken. The texts are for the operator; none quotes a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// Nothing, or no URL.
    #[error("url must be an address like https://example.test/index.json")]
    Malformed,
    /// Longer than a URL reasonably is.
    #[error("url must be at most {MAX_ADDRESS_BYTES} bytes")]
    TooLong,
    /// Anyone on the way could change what comes.
    #[error("url must begin with https://; http:// is for this machine (127.0.0.1, ::1, localhost)")]
    NotHttps,
    /// It would be shown to whoever reads the list.
    #[error("url must not hold a user or a password")]
    Credentials,
    /// Nothing to call it by.
    #[error("name must say something")]
    Nameless,
}

/// Whether the URL's host is this machine, by its own spelling: no name is looked up.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// Checks an address and gives its one spelling: https, or http to this machine; no credentials; a fragment is dropped.
///
/// # Errors
/// [`SourceError`] for any other text.
pub fn address(text: &str) -> Result<String, SourceError> {
    let text = text.trim();
    if text.len() > MAX_ADDRESS_BYTES {
        return Err(SourceError::TooLong);
    }
    let mut url = Url::parse(text).map_err(|_| SourceError::Malformed)?;
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&url) => {}
        _ => return Err(SourceError::NotHttps),
    }
    if !url.has_host() {
        return Err(SourceError::Malformed);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SourceError::Credentials);
    }
    url.set_fragment(None);
    let url = String::from(url);
    // The one spelling escapes what the other did not.
    if url.len() > MAX_ADDRESS_BYTES { Err(SourceError::TooLong) } else { Ok(url) }
}

/// The one spelling of any URL, for telling whether two lead to the same place; `None` for a text that is none.
pub fn same_address(text: &str) -> Option<String> {
    let mut url = Url::parse(text.trim()).ok()?;
    url.set_fragment(None);
    Some(url.into())
}

/// Checks a source's name; without one it is called by the host of its address.
///
/// # Errors
/// [`SourceError::Nameless`] when the name has only characters that cannot be seen.
pub fn name(text: Option<&str>, address: &str) -> Result<String, SourceError> {
    let of_host = || Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    let text = text.filter(|text| !text.is_empty()).map_or_else(of_host, str::to_owned);
    match clean::single_line(&text, MAX_NAME_BYTES) {
        name if name.is_empty() => Err(SourceError::Nameless),
        name => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_https_or_leads_to_this_machine() {
        for (text, expected) in [
            ("https://Example.TEST", Ok("https://example.test/")),
            (" https://a.test/i.json?x=1#y ", Ok("https://a.test/i.json?x=1")),
            ("http://127.0.0.1:8080/i", Ok("http://127.0.0.1:8080/i")),
            ("http://127.1/i", Ok("http://127.0.0.1/i")),
            ("http://[::1]/i", Ok("http://[::1]/i")),
            ("http://localhost/i", Ok("http://localhost/i")),
            ("http://a.test/i", Err(SourceError::NotHttps)),
            ("http://10.0.0.1/i", Err(SourceError::NotHttps)),
            ("http://localhost.a.test/i", Err(SourceError::NotHttps)),
            ("ftp://127.0.0.1/i", Err(SourceError::NotHttps)),
            ("file:///etc/passwd", Err(SourceError::NotHttps)),
            ("https://me:hunter2@a.test/", Err(SourceError::Credentials)),
            ("", Err(SourceError::Malformed)),
            ("index.json", Err(SourceError::Malformed)),
        ] {
            assert_eq!(address(text), expected.map(str::to_owned), "{text}");
        }
        assert_eq!(address(&format!("https://a.test/{}", "x".repeat(2048))), Err(SourceError::TooLong));
    }

    #[test]
    fn a_source_without_a_name_is_called_by_its_host() {
        assert_eq!(name(Some("Acme\n plugins"), "https://a.test/").as_deref(), Ok("Acme plugins"));
        assert_eq!(name(None, "https://a.test:444/i").as_deref(), Ok("a.test"));
        assert_eq!(name(Some(""), "https://a.test/").as_deref(), Ok("a.test"));
        assert_eq!(name(Some(" \u{200b}\n"), "https://a.test/"), Err(SourceError::Nameless));
    }

    proptest! {
        #[test]
        fn what_is_accepted_stays_as_it_is(text in "(https?|ftp)://[a-z0-9.\\[\\]:@%#?/ ]{0,40}") {
            if let Ok(accepted) = address(&text) {
                prop_assert_eq!(address(&accepted), Ok(accepted.clone()));
                prop_assert_eq!(same_address(&text), Some(accepted));
            }
        }
    }
}
