//! What the sources offer together: of two that list the same plugin the first counts; searching, sorting, and how each
//! plugin compares with what is installed.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use super::{
    index::Entry,
    source::{Source, is_loopback},
};
use crate::domain::{
    address::{NotPublic, PUBLIC_ONLY, check_public, literal},
    version::{check_minimum, compare},
};

/// Most words that are searched for; more are passed over.
const MAX_WORDS: usize = 20;

/// How offers are ordered. What has no stars or no date comes last; names decide among equals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// The best liked first.
    #[default]
    Stars,
    /// By name, without regard to case.
    Name,
    /// The newest first.
    Recent,
}

impl Sort {
    /// The order of this word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "stars" => Some(Self::Stars),
            "name" => Some(Self::Name),
            "recent" => Some(Self::Recent),
            _ => None,
        }
    }
}

/// Which offers, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    words: Vec<String>,
    category: Option<String>,
    sort: Sort,
}

impl Search {
    /// Those that have every word of `text` somewhere in id, name, description, author or categories, and that are of
    /// this category, if it is not empty; case does not matter.
    pub fn new(text: &str, category: &str, sort: Sort) -> Self {
        let words = text.split_whitespace().take(MAX_WORDS).map(str::to_lowercase).collect();
        let category = category.trim().to_lowercase();
        Self { words, category: (!category.is_empty()).then_some(category), sort }
    }

    fn finds(&self, entry: &Entry) -> bool {
        let of_category = |wanted: &String| entry.categories.iter().any(|word| word.to_lowercase() == *wanted);
        if !self.category.as_ref().is_none_or(of_category) {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        let texts = [entry.id.as_str(), &entry.name, &entry.description, &entry.author];
        let texts = texts.into_iter().chain(entry.categories.iter().map(String::as_str));
        let text = texts.collect::<Vec<_>>().join("\n").to_lowercase();
        self.words.iter().all(|word| text.contains(word))
    }
}

/// How an offer compares with what is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstallState {
    /// The plugin is not installed.
    Available,
    /// It is, in this version or a newer one.
    Installed,
    /// It is, in an older version.
    UpdateAvailable,
}

/// Compares the version that is offered with the one that is installed.
pub fn install_state(offered: &str, installed: Option<&str>) -> InstallState {
    match installed {
        None => InstallState::Available,
        Some(installed) if compare(offered, installed).is_gt() => InstallState::UpdateAvailable,
        Some(_) => InstallState::Installed,
    }
}

/// A plugin that a source offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MarketplaceOffer)]
pub struct Offer {
    /// What the index says.
    #[serde(flatten)]
    pub entry: Entry,
    /// How it compares with what is installed.
    pub install_state: InstallState,
    /// The version that is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_version: Option<String>,
    /// Why this host would refuse it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The source's id.
    pub source_id: String,
    /// The source's name.
    pub source_name: String,
}

/// What one source has.
#[derive(Debug, Clone, Copy)]
pub struct Stock<'a> {
    /// Whose.
    pub source: &'a Source,
    /// In the order of its index.
    pub entries: &'a [Entry],
}

/// What this host takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRules {
    /// What `min_kandev_version` is compared with.
    pub compat_version: String,
    /// Whether a package may come from this machine or a private network.
    pub private_addresses: bool,
}

impl HostRules {
    /// Why the host would refuse the package, as far as its entry tells: no name is looked up for a list.
    fn refuses(&self, entry: &Entry) -> Option<String> {
        let too_old = check_minimum(&entry.min_kandev_version, &self.compat_version).err();
        too_old.map(|error| error.to_string()).or_else(|| self.refuses_address(&entry.package_url))
    }

    fn refuses_address(&self, address: &str) -> Option<String> {
        let url = Url::parse(address).ok().filter(|_| !self.private_addresses)?;
        let (host, why) = match literal(&url) {
            Some(address) => (address.to_string(), check_public(address).err()?),
            // The one name that needs no look-up.
            None if is_loopback(&url) => ("localhost".to_owned(), NotPublic::Loopback),
            None => return None,
        };
        Some(format!("plugins: download package: {host} is {why}; {PUBLIC_ONLY}"))
    }
}

/// What these sources offer, of two offers of one plugin the first. `installed` has the versions by id.
pub fn offers(
    stock: &[Stock<'_>],
    installed: &BTreeMap<String, String>,
    host: &HostRules,
    search: &Search,
) -> Vec<Offer> {
    let mut seen = BTreeSet::new();
    let listed = stock.iter().flat_map(|stock| stock.entries.iter().map(|entry| (stock.source, entry)));
    // Who is first is settled before anything is searched for: a search must not find what is not offered.
    let first = listed.filter(|(_, entry)| seen.insert(&entry.id));
    let mut found: Vec<_> = first
        .filter(|(_, entry)| search.finds(entry))
        .map(|(source, entry)| offer(source, entry, installed, host))
        .collect();
    found.sort_by_cached_key(|offer| (Reverse(rank(search.sort, &offer.entry)), folded(offer), offer.entry.id.clone()));
    found
}

fn offer(source: &Source, entry: &Entry, installed: &BTreeMap<String, String>, host: &HostRules) -> Offer {
    let installed = installed.get(entry.id.as_str());
    Offer {
        install_state: install_state(&entry.version, installed.map(String::as_str)),
        installed_version: installed.cloned(),
        note: host.refuses(entry),
        source_id: source.id.clone(),
        source_name: source.name.clone(),
        entry: entry.clone(),
    }
}

/// The greater comes first, nothing last.
fn rank(sort: Sort, entry: &Entry) -> Option<i128> {
    match sort {
        Sort::Stars => entry.stars.map(i128::from),
        Sort::Recent => entry.updated_at.map(time::OffsetDateTime::unix_timestamp_nanos),
        Sort::Name => None,
    }
}

fn folded(offer: &Offer) -> String {
    offer.entry.name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use time::macros::datetime;

    use super::*;
    use crate::domain::marketplace::parse;

    fn source(id: &str) -> Source {
        Source {
            id: id.to_owned(),
            name: format!("Source {id}"),
            url: format!("https://{id}.test/"),
            enabled: true,
            builtin: false,
            created_at: datetime!(2026-11-29 12:00 UTC),
        }
    }

    fn host(compat_version: &str) -> HostRules {
        HostRules { compat_version: compat_version.to_owned(), private_addresses: false }
    }

    fn entries(plugins: &serde_json::Value) -> Vec<Entry> {
        let index = parse(json!({"plugins": plugins}).to_string().as_bytes()).unwrap();
        assert_eq!(index.skipped, []);
        index.entries
    }

    fn plugin(id: &str, name: &str, stars: Option<u64>, day: Option<u8>) -> serde_json::Value {
        json!({"id": id, "name": name, "version": "1.0.0", "package_url": "https://a.test/p", "stars": stars,
            "updated_at": day.map(|day| format!("2026-11-{day:02}T00:00:00Z"))})
    }

    fn ids(offers: &[Offer]) -> Vec<&str> {
        offers.iter().map(|offer| offer.entry.id.as_str()).collect()
    }

    fn found(entries: &[Entry], search: &Search) -> Vec<String> {
        let one = source("one");
        let offers = offers(&[Stock { source: &one, entries }], &BTreeMap::new(), &host("0.91.0"), search);
        ids(&offers).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn orders_put_what_has_no_value_last_and_let_names_decide() {
        let entries = entries(&json!([
            plugin("a", "zeta", Some(5), None),
            plugin("b", "Beta", None, Some(3)),
            plugin("c", "alpha", Some(5), Some(9)),
            plugin("d", "Alpha", Some(0), Some(3)),
            plugin("e", "omega", Some(70), None),
            plugin("f", "Delta", None, None),
        ]));
        for (word, expected) in [
            ("stars", ["e", "c", "a", "d", "b", "f"]),
            ("name", ["c", "d", "b", "f", "e", "a"]),
            ("recent", ["c", "d", "b", "f", "e", "a"]),
        ] {
            assert_eq!(found(&entries, &Search::new("", "", Sort::of(word).unwrap())), expected, "{word}");
        }
        assert_eq!((Sort::of("Stars"), Sort::default()), (None, Sort::Stars));
    }

    #[test]
    fn a_search_finds_every_word_anywhere_without_regard_to_case() {
        let mut entry = plugin("acme-mail", "Post office", None, None);
        entry["description"] = json!("Sends Über-letters");
        entry["author"] = json!("Ann Bee");
        entry["categories"] = json!(["Connector"]);
        let entries = entries(&json!([entry, plugin("other", "Other", None, None)]));
        let finds = |text: &str, category: &str| found(&entries, &Search::new(text, category, Sort::Name));
        for text in ["ACME", "post", "über", "bee ann", "connector mail", " office  acme "] {
            assert_eq!(finds(text, ""), ["acme-mail"], "{text}");
        }
        assert_eq!(finds("acme none", ""), Vec::<String>::new());
        assert_eq!(finds("", "connector"), ["acme-mail"]);
        assert_eq!(finds("", "connect"), Vec::<String>::new());
        assert_eq!(finds("", " "), ["other", "acme-mail"]);
    }

    #[test]
    fn the_first_source_wins_also_when_only_the_second_is_searched_for() {
        let (one, two) = (source("one"), source("two"));
        let first = entries(&json!([plugin("acme", "First", None, None)]));
        let second = entries(&json!([plugin("acme", "Second", Some(9), None), plugin("more", "More", None, None)]));
        let stock = [Stock { source: &one, entries: &first }, Stock { source: &two, entries: &second }];
        let all = |text: &str| offers(&stock, &BTreeMap::new(), &host("0.91.0"), &Search::new(text, "", Sort::Name));
        let both = all("");
        assert_eq!(ids(&both), ["acme", "more"]);
        assert_eq!((both[0].source_id.as_str(), both[1].source_name.as_str()), ("one", "Source two"));
        assert_eq!(ids(&all("second")), [""; 0]);
    }

    #[test]
    fn the_state_compares_versions_as_versions() {
        for (offered, installed, state) in [
            ("1.0.0", None, InstallState::Available),
            ("1.0.0", Some("1.0.0"), InstallState::Installed),
            ("1.9.0", Some("1.10.0"), InstallState::Installed),
            ("1.10.0", Some("1.9.0"), InstallState::UpdateAvailable),
            ("1.0.0", Some("1.0.0-rc.1"), InstallState::UpdateAvailable),
            ("1.0.0-rc.1", Some("1.0.0"), InstallState::Installed),
            ("1.0.0+b", Some("1.0.0+a"), InstallState::Installed),
        ] {
            assert_eq!(install_state(offered, installed), state, "{offered} {installed:?}");
        }
    }

    #[test]
    fn an_offer_has_the_shape_of_the_contract_and_says_why_this_host_would_refuse_it() {
        let one = source("one");
        let mut entry = plugin("acme", "Acme", None, None);
        entry["min_kandev_version"] = json!("9.0.0");
        let entries = entries(&json!([entry]));
        let installed = BTreeMap::from([("acme".to_owned(), "0.9.0".to_owned())]);
        let stock = [Stock { source: &one, entries: &entries }];
        let shown = serde_json::to_value(offers(&stock, &installed, &host("0.91.0"), &Search::default())).unwrap();
        let note =
            "plugins: requires kandev >= 9.0.0, running 0.91.0: update this host, or raise its setting compat_version";
        assert_eq!(
            shown,
            json!([{"id": "acme", "name": "Acme", "description": "", "author": "", "categories": [], "icon_url": "",
                "repo_url": "", "version": "1.0.0", "min_kandev_version": "9.0.0", "package_url": "https://a.test/p",
                "package_sha256": "", "stars": null, "updated_at": "", "install_state": "update_available",
                "installed_version": "0.9.0", "note": note, "source_id": "one", "source_name": "Source one"}])
        );
        let shown = serde_json::to_value(offers(&stock, &BTreeMap::new(), &host("dev"), &Search::default())).unwrap();
        assert_eq!((shown[0].get("installed_version"), shown[0].get("note")), (None, None));
    }

    #[test]
    fn a_package_that_the_downloader_would_refuse_by_its_address_is_told_unless_the_host_takes_it() {
        let note = |address: &str, private_addresses: bool| {
            let mut entry = plugin("acme", "Acme", None, None);
            entry["package_url"] = json!(address);
            let (one, entries) = (source("one"), entries(&json!([entry])));
            let rules = HostRules { private_addresses, ..host("0.91.0") };
            let stock = [Stock { source: &one, entries: &entries }];
            offers(&stock, &BTreeMap::new(), &rules, &Search::default()).remove(0).note
        };
        for (address, why) in [
            ("http://127.1:8080/p", "127.0.0.1 is a loopback address"),
            ("http://[::1]/p", "::1 is a loopback address"),
            ("http://localhost/p", "localhost is a loopback address"),
            ("https://10.0.0.7/p", "10.0.0.7 is a private address"),
            ("https://[fd00::1]/p", "fd00::1 is a private address"),
            ("https://169.254.169.254/p", "169.254.169.254 is a link-local address"),
        ] {
            let text = format!(
                "plugins: download package: {why}; packages are fetched from public addresses only, unless \
                 install.allow_private_addresses is set"
            );
            assert_eq!((note(address, false), note(address, true)), (Some(text), None), "{address}");
        }
        for address in ["https://1.1.1.1/p", "https://a.test/p", "https://localhost.a.test/p"] {
            assert_eq!(note(address, false), None, "{address}");
        }
    }

    proptest! {
        #[test]
        fn every_order_has_the_same_offers_each_plugin_once(
            listed in prop::collection::vec(("[a-e]", "[a-cA-C]{0,2}", prop::option::of(0u64..3), prop::option::of(1u8..4)), 0..12)
        ) {
            let (one, two) = (source("one"), source("two"));
            let plugins: Vec<_> = listed.iter().map(|(id, name, stars, day)| plugin(id, name, *stars, *day)).collect();
            let (left, right) = plugins.split_at(plugins.len() / 2);
            let read = |plugins: &[serde_json::Value]| parse(json!({"plugins": plugins}).to_string().as_bytes()).unwrap();
            let (left, right) = (read(left).entries, read(right).entries);
            let stock = [Stock { source: &one, entries: &left }, Stock { source: &two, entries: &right }];
            let distinct: BTreeSet<_> = listed.iter().map(|(id, ..)| id.as_str()).collect();
            for sort in [Sort::Stars, Sort::Name, Sort::Recent] {
                let offers = offers(&stock, &BTreeMap::new(), &host("0.91.0"), &Search::new("", "", sort));
                prop_assert_eq!(ids(&offers).len(), distinct.len());
                prop_assert_eq!(ids(&offers).into_iter().collect::<BTreeSet<_>>(), distinct.clone());
                let ranks: Vec<_> = offers.iter().map(|offer| rank(sort, &offer.entry)).collect();
                prop_assert!(ranks.is_sorted_by(|a, b| a >= b));
            }
        }
    }
}
