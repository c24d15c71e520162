//! Holding a package against the digest that somebody says it has, before anything of it is read (field case 44).

use std::fmt;

use super::{index::Entry, offers::Stock, source::same_address};
use crate::domain::{
    id::PluginId,
    package::{Digest, hex},
};

/// What a source says of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The SHA-256 of the package.
    pub digest: Digest,
    /// The source's name.
    pub source: String,
}

/// Which plugin a source says that a package is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAs {
    /// The plugin.
    pub plugin: PluginId,
    /// The source's name.
    pub source: String,
}

impl ListedAs {
    /// Whether the package is of that plugin. Its version may be another one than the index has: an address may lead to
    /// the newest.
    ///
    /// # Errors
    /// [`OtherPlugin`].
    pub fn check(&self, found: &PluginId) -> Result<(), OtherPlugin> {
        match *found == self.plugin {
            true => Ok(()),
            false => Err(OtherPlugin { found: found.clone(), listed: self.clone() }),
        }
    }
}

/// A package of another plugin than was said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the package is of the plugin {found}, the marketplace source \"{}\" lists it as {}; nothing was installed, ask whoever \
     keeps the source", .listed.source, .listed.plugin
)]
pub struct OtherPlugin {
    /// Whose the package is.
    pub found: PluginId,
    /// What was said.
    pub listed: ListedAs,
}

/// The package is not what was said. Both digests are in the text, so that a stale list can be told from an attack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the package has the sha256 {found}, {by} says {wanted}: {}", .by.remedy())]
pub struct DigestFault {
    /// What came, in hexadecimal.
    pub found: String,
    /// What was said, in hexadecimal.
    pub wanted: String,
    /// Who said it.
    pub by: SaidBy,
}

/// Who says which digest a package has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaidBy {
    /// Whoever asks for the install.
    Request,
    /// The marketplace source of this name.
    Source(String),
}

impl SaidBy {
    /// What may be wrong when the package has another one, and the next step.
    fn remedy(&self) -> &'static str {
        match self {
            Self::Request => {
                "the request is about another package, or the package was changed; nothing was installed, compare both \
                 with what the plugin's author publishes"
            }
            Self::Source(_) => {
                "the list is old, or the package was changed; nothing was installed, ask the plugin's author which one \
                 is right"
            }
        }
    }
}

impl fmt::Display for SaidBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request => f.write_str("the request"),
            Self::Source(name) => write!(f, "the marketplace source \"{name}\""),
        }
    }
}

/// What the first of these sources says of the package at this address; `None` when none of them says anything.
pub fn listed(stock: &[Stock<'_>], address: &str) -> Option<Listed> {
    let address = same_address(address)?;
    let said = |entry: &Entry| entry.package_sha256.filter(|_| entry.package_url == address);
    stock.iter().find_map(|stock| {
        let digest = stock.entries.iter().find_map(said)?;
        Some(Listed { digest, source: stock.source.name.clone() })
    })
}

/// Which plugin the first source that lists this address says it is of.
pub fn listed_as(stock: &[Stock<'_>], address: &str) -> Option<ListedAs> {
    let address = same_address(address)?;
    stock.iter().find_map(|stock| {
        let entry = stock.entries.iter().find(|entry| entry.package_url == address)?;
        Some(ListedAs { plugin: entry.id.clone(), source: stock.source.name.clone() })
    })
}

/// Holds what came against what the request and the marketplace say; nobody need say anything.
///
/// # Errors
/// [`DigestFault`] of the first that says otherwise.
pub fn verify(found: &Digest, requested: Option<&Digest>, listed: Option<&Listed>) -> Result<(), DigestFault> {
    let requested = requested.map(|wanted| (wanted, SaidBy::Request));
    let listed = listed.map(|said| (&said.digest, SaidBy::Source(said.source.clone())));
    match requested.into_iter().chain(listed).find(|(wanted, _)| *wanted != found) {
        None => Ok(()),
        Some((wanted, by)) => Err(DigestFault { found: hex(found), wanted: hex(wanted), by }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use time::macros::datetime;

    use super::*;
    use crate::domain::marketplace::{Source, parse};

    fn source(name: &str) -> Source {
        Source {
            id: name.to_owned(),
            name: name.to_owned(),
            url: "https://a.test/".to_owned(),
            enabled: true,
            builtin: false,
            created_at: datetime!(2026-11-29 12:00 UTC),
        }
    }

    fn entries(url: &str, digest: Option<&str>) -> Vec<Entry> {
        let entry = json!({"id": "acme", "version": "1.0.0", "package_url": url, "package_sha256": digest});
        parse(json!({"plugins": [entry]}).to_string().as_bytes()).unwrap().entries
    }

    #[test]
    fn the_first_source_that_says_something_of_the_address_counts_however_it_is_spelt() {
        let (silent, one, two) = (source("silent"), source("one"), source("two"));
        let url = "https://a.test/p.tar.gz";
        let (nothing, first) = (entries(url, None), entries(url, Some(&"0A".repeat(32))));
        let second = entries(url, Some(&"0b".repeat(32)));
        let stock = [(&silent, &nothing), (&one, &first), (&two, &second)];
        let stock = stock.map(|(source, entries)| Stock { source, entries });
        let said = Some(Listed { digest: [10; 32], source: "one".to_owned() });
        for spelt in [url, " HTTPS://A.test:443/x/../p.tar.gz#top "] {
            assert_eq!(listed(&stock, spelt), said, "{spelt}");
        }
        for other in ["https://a.test/p.tar.gz?x", "http://a.test/p.tar.gz", "p.tar.gz", ""] {
            assert_eq!(listed(&stock, other), None, "{other}");
        }
    }

    #[test]
    fn a_package_of_another_plugin_than_is_listed_at_its_address_is_refused() {
        let (one, two) = (source("one"), source("two"));
        let url = "https://a.test/p.tar.gz";
        let (first, second) = (entries(url, None), entries(url, None));
        let stock = [(&one, &first), (&two, &second)].map(|(source, entries)| Stock { source, entries });
        let said = listed_as(&stock, " HTTPS://A.test:443/p.tar.gz ").unwrap();
        assert_eq!(said, ListedAs { plugin: PluginId::new("acme").unwrap(), source: "one".to_owned() });
        assert_eq!(listed_as(&stock, "https://a.test/q.tar.gz"), None);
        assert_eq!(said.check(&PluginId::new("acme").unwrap()), Ok(()));
        let text = said.check(&PluginId::new("other").unwrap()).unwrap_err().to_string();
        assert!(
            text.starts_with("the package is of the plugin other, the marketplace source \"one\" lists it as acme; "),
            "{text}"
        );
    }

    #[test]
    fn whoever_says_otherwise_is_named_with_both_digests() {
        let (found, other) = ([1; 32], [2; 32]);
        let say = |digest| Listed { digest, source: "Acme".to_owned() };
        assert_eq!(verify(&found, None, None), Ok(()));
        assert_eq!(verify(&found, Some(&found), Some(&say(found))), Ok(()));
        let acme = || SaidBy::Source("Acme".to_owned());
        for (requested, listed, by) in [
            (Some(&other), None, SaidBy::Request),
            (Some(&other), Some(say(found)), SaidBy::Request),
            (None, Some(say(other)), acme()),
            (Some(&found), Some(say(other)), acme()),
        ] {
            let fault = verify(&found, requested, listed.as_ref()).unwrap_err();
            assert_eq!(fault, DigestFault { found: hex(&found), wanted: hex(&other), by });
        }
    }

    #[test]
    fn an_old_list_is_blamed_for_what_a_list_says_only() {
        let text = |by| DigestFault { found: "aa".to_owned(), wanted: "bb".to_owned(), by }.to_string();
        assert_eq!(
            text(SaidBy::Request),
            "the package has the sha256 aa, the request says bb: the request is about another package, or the package \
             was changed; nothing was installed, compare both with what the plugin's author publishes"
        );
        assert_eq!(
            text(SaidBy::Source("Acme".to_owned())),
            "the package has the sha256 aa, the marketplace source \"Acme\" says bb: the list is old, or the package \
             was changed; nothing was installed, ask the plugin's author which one is right"
        );
    }
}
