//! Reading an index: `{schema_version, generated_at, source, plugins: […]}` (contract/rest.md §9).
//!
//! Each entry is judged by itself: one that breaks a rule is skipped with its reason and spoils nothing else. Fields
//! that are not known are passed over. What the document's author wrote is bounded and cleaned here; how many bytes it
//! may have is the caller's business.

use std::{collections::BTreeSet, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::{Number, value::RawValue};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use utoipa::ToSchema;

use super::source::{self, SourceError};
use crate::domain::{
    clean,
    id::{IdError, PluginId},
    misread,
    package::{Digest, digest, hex},
    version::{MinVersionError, check_minimum_form},
};

/// The `schema_version` of the indexes that are read. One that says none counts as it: existing hosts never ask.
const SCHEMA_VERSION: &str = "1";

/// Most entries of an index that are read; the rest is counted as skipped.
pub const MAX_ENTRIES: usize = 5000;

/// Most skipped entries that are told one by one.
const MAX_SKIPPED: usize = 20;

/// Bounds of an entry's texts, in bytes; longer ones are cut.
const MAX_NAME_BYTES: usize = 200;
const MAX_DESCRIPTION_BYTES: usize = 2000;
const MAX_CATEGORY_BYTES: usize = 60;

/// Most categories of an entry; more are left out.
const MAX_CATEGORIES: usize = 20;

/// Longest version, in bytes; a longer one is refused, as a manifest's is.
const MAX_VERSION_BYTES: usize = 128;

/// Longest link, in bytes; a longer one is left out.
const MAX_LINK_BYTES: usize = 2048;

/// Longest reason, in bytes.
const MAX_REASON_BYTES: usize = 300;

/// Longest foreign `schema_version` that is shown, in bytes.
const MAX_SHOWN_VERSION_BYTES: usize = 40;

/// One plugin of an index, as REST shows it. A text that the index lacks is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = MarketplaceEntry)]
pub struct Entry {
    /// The plugin's id.
    #[schema(value_type = String)]
    pub id: PluginId,
    /// For people; the id when the index has none.
    pub name: String,
    /// Plain text.
    pub description: String,
    /// Who made it.
    pub author: String,
    /// For choosing among many.
    pub categories: Vec<String>,
    /// An http(s) address.
    pub icon_url: String,
    /// An http(s) address.
    pub repo_url: String,
    /// The version that the package has.
    pub version: String,
    /// What the package needs of a host.
    pub min_kandev_version: String,
    /// Where the package is: https, or this machine.
    pub package_url: String,
    /// SHA-256 of the package, lower-case hexadecimal; empty when the index does not say.
    #[serde(serialize_with = "digest_text")]
    #[schema(value_type = String)]
    pub package_sha256: Option<Digest>,
    /// How well it is liked; `null` when nobody knows.
    pub stars: Option<u64>,
    /// When this version was published, RFC 3339; empty when nobody knows.
    #[serde(serialize_with = "moment_text")]
    #[schema(value_type = String)]
    pub updated_at: Option<OffsetDateTime>,
}

/// An entry that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SkippedEntry)]
pub struct Skipped {
    /// Its place in the list, from 0.
    pub entry: usize,
    /// Which rule it breaks: one line.
    pub reason: String,
}

/// What an index lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Index {
    /// In its order.
    pub entries: Vec<Entry>,
    /// The first of those that are not offered.
    pub skipped: Vec<Skipped>,
    /// How many are not offered.
    pub skipped_count: usize,
}

/// Why the bytes are not read as an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexFault {
    /// They are none.
    #[error("what it serves is no plugin index: {0}")]
    NoIndex(String),
    /// They are one of another time, whose entries may mean something else.
    #[error(
        "its index has the schema_version {0}, and this host reads {SCHEMA_VERSION}: ask who publishes it for one, or \
         look for a newer host"
    )]
    Schema(String),
}

impl From<serde_json::Error> for IndexFault {
    fn from(error: serde_json::Error) -> Self {
        Self::NoIndex(clean::single_line(&misread::told(&error), MAX_REASON_BYTES))
    }
}

/// Why an entry is not offered.
#[derive(Debug, thiserror::Error)]
enum EntryFault {
    #[error("{}", misread::told(.0))]
    Shape(#[from] serde_json::Error),
    #[error("{0}")]
    Id(#[from] IdError),
    #[error("version must be 1 to {MAX_VERSION_BYTES} bytes without spaces, slashes and control characters")]
    Version,
    #[error("{0}")]
    Minimum(#[from] MinVersionError),
    #[error("package_url: {0}")]
    Package(SourceError),
    #[error("package_sha256 must be 64 hexadecimal digits")]
    Digest,
    #[error("the index lists {0} more than once: the first counts")]
    Twice(PluginId),
}

/// Reads the bytes of an index.
///
/// # Errors
/// [`IndexFault`] when they are not one JSON object with a list `plugins`, or one of another `schema_version`.
pub fn parse(bytes: &[u8]) -> Result<Index, IndexFault> {
    // First: the rest of an index of another version need not look like one of this.
    if let Some(version) = serde_json::from_slice::<Head<'_>>(bytes)?.schema_version.map(RawValue::get)
        && version != SCHEMA_VERSION
    {
        return Err(IndexFault::Schema(clean::single_line(version, MAX_SHOWN_VERSION_BYTES)));
    }
    let Listed { kept, beyond } = serde_json::from_slice::<Document>(bytes)?.plugins.unwrap_or_default();
    let mut index = Index::default();
    let mut ids = BTreeSet::new();
    for (place, raw) in kept.iter().enumerate() {
        match entry(raw).and_then(|entry| unlisted(entry, &mut ids)) {
            Ok(entry) => index.entries.push(entry),
            Err(fault) => index.skip(place, &fault.to_string()),
        }
    }
    if beyond > 0 {
        index.skip(MAX_ENTRIES, &format!("{beyond} entries too many: {MAX_ENTRIES} are read"));
        index.skipped_count += beyond - 1;
    }
    Ok(index)
}

impl Index {
    fn skip(&mut self, entry: usize, reason: &str) {
        self.skipped_count += 1;
        if self.skipped.len() < MAX_SKIPPED {
            self.skipped.push(Skipped { entry, reason: clean::single_line(reason, MAX_REASON_BYTES) });
        }
    }
}

/// What says how the rest is to be read. `null` is as good as left out.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    schema_version: Option<&'a RawValue>,
}

/// The document, as far as it matters.
#[derive(Deserialize)]
struct Document {
    // `null` is an empty list, nothing at all is another document.
    #[serde(deserialize_with = "Option::deserialize")]
    plugins: Option<Listed>,
}

/// The entries as they are written, no more than are read.
#[derive(Default)]
struct Listed {
    kept: Vec<Box<RawValue>>,
    beyond: usize,
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = Listed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of plugins")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Listed, A::Error> {
                let mut listed = Listed::default();
                while listed.kept.len() < MAX_ENTRIES {
                    match items.next_element()? {
                        Some(item) => listed.kept.push(item),
                        None => return Ok(listed),
                    }
                }
                while items.next_element::<IgnoredAny>()?.is_some() {
                    listed.beyond += 1;
                }
                Ok(listed)
            }
        }

        deserializer.deserialize_seq(List)
    }
}

/// An entry as it is written. `null` is as good as left out.
#[derive(Deserialize)]
struct Raw {
    id: String,
    name: Option<String>,
    description: Option<String>,
    author: Option<String>,
    categories: Option<Vec<String>>,
    icon_url: Option<String>,
    repo_url: Option<String>,
    version: String,
    min_kandev_version: Option<String>,
    package_url: String,
    package_sha256: Option<String>,
    stars: Option<Number>,
    updated_at: Option<String>,
}

fn entry(raw: &RawValue) -> Result<Entry, EntryFault> {
    let raw: Raw = serde_json::from_str(raw.get())?;
    let id = PluginId::new(&raw.id)?;
    // Checked as it is shown: what is cut is no version any more.
    let min_kandev_version = clean::single_line(&raw.min_kandev_version.unwrap_or_default(), MAX_VERSION_BYTES);
    check_minimum_form(&min_kandev_version)?;
    let line = |text: Option<String>| clean::single_line(&text.unwrap_or_default(), MAX_NAME_BYTES);
    let name = match line(raw.name) {
        name if name.is_empty() => id.to_string(),
        name => name,
    };
    let package_sha256 = match raw.package_sha256.as_deref().map(str::trim) {
        None | Some("") => None,
        Some(text) => Some(digest(text).ok_or(EntryFault::Digest)?),
    };
    Ok(Entry {
        name,
        description: clean::plain_text(&raw.description.unwrap_or_default(), MAX_DESCRIPTION_BYTES),
        author: line(raw.author),
        categories: categories(raw.categories.unwrap_or_default()),
        icon_url: link(raw.icon_url),
        repo_url: link(raw.repo_url),
        version: version(raw.version)?,
        min_kandev_version,
        package_url: source::address(&raw.package_url).map_err(EntryFault::Package)?,
        package_sha256,
        // What a client can hold.
        stars: raw.stars.and_then(|stars| stars.as_u64()).filter(|stars| i64::try_from(*stars).is_ok()),
        updated_at: raw.updated_at.and_then(|text| OffsetDateTime::parse(text.trim(), &Rfc3339).ok()),
        id,
    })
}

fn unlisted(entry: Entry, ids: &mut BTreeSet<PluginId>) -> Result<Entry, EntryFault> {
    match ids.insert(entry.id.clone()) {
        true => Ok(entry),
        false => Err(EntryFault::Twice(entry.id)),
    }
}

fn version(version: String) -> Result<String, EntryFault> {
    let lawful = |c: char| !(c.is_whitespace() || c.is_control() || clean::is_invisible(c) || matches!(c, '/' | '\\'));
    match (1..=MAX_VERSION_BYTES).contains(&version.len()) && version.chars().all(lawful) {
        true => Ok(version),
        false => Err(EntryFault::Version),
    }
}

fn categories(words: Vec<String>) -> Vec<String> {
    let words = words.iter().map(|word| clean::single_line(word, MAX_CATEGORY_BYTES));
    words.filter(|word| !word.is_empty()).take(MAX_CATEGORIES).collect()
}

/// An http(s) address that a page may link to; anything else is as good as none.
fn link(text: Option<String>) -> String {
    let url = text.and_then(|text| url::Url::parse(text.trim()).ok());
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host()).map(String::from);
    url.filter(|url| url.len() <= MAX_LINK_BYTES).unwrap_or_default()
}

fn digest_text<S: Serializer>(digest: &Option<Digest>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&digest.as_ref().map(hex).unwrap_or_default())
}

/// Only `stars` may be `null` (contract/rest.md §9).
fn moment_text<S: Serializer>(moment: &Option<OffsetDateTime>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = moment.and_then(|moment| moment.format(&Rfc3339).ok());
    serializer.serialize_str(&text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn least(id: &str) -> Value {
        json!({"id": id, "version": "1.0.0", "package_url": "https://a.test/p.tar.gz"})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut entry = least("acme");
        entry[key] = value;
        entry
    }

    fn read(plugins: Value) -> Index {
        parse(json!({"schema_version": 1, "plugins": plugins}).to_string().as_bytes()).unwrap()
    }

    /// The one reason for which the entry is skipped.
    fn refused(entry: Value) -> String {
        let index = read(json!([entry, least("good")]));
        assert_eq!(index.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), ["good"]);
        let [Skipped { entry: 0, reason }] = &index.skipped[..] else { panic!("{:?}", index.skipped) };
        assert_eq!(index.skipped_count, 1);
        reason.clone()
    }

    #[test]
    fn an_entry_is_shown_with_every_field_of_the_contract() {
        let whole = json!({"id": "acme", "name": "Acme", "description": "Does\nthings", "author": "A. C. Me",
            "categories": ["tools"], "icon_url": "https://a.test/i.png", "repo_url": "https://a.test/r",
            "version": "1.2.0", "min_kandev_version": "0.90", "package_url": "https://a.test/p.tar.gz",
            "package_sha256": "ab".repeat(32), "stars": 7, "updated_at": "2026-11-01T10:00:00Z"});
        let mut sent = whole.clone();
        sent["unknown"] = json!({"of": "a later version"});
        sent["package_sha256"] = json!("AB".repeat(32));
        let document = json!({"schema_version": 1, "generated_at": 1, "source": null, "plugins": [sent], "more": []});
        let index = parse(document.to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(&index.entries).unwrap(), json!([whole]));
        assert_eq!(index.skipped, []);
    }

    #[test]
    fn what_is_missing_or_null_is_empty_and_the_name_is_the_id() {
        let nulls =
            ["name", "description", "author", "categories", "icon_url", "package_sha256", "stars", "updated_at"];
        let all_null = nulls.iter().fold(least("acme"), |mut entry, key| {
            entry[*key] = Value::Null;
            entry
        });
        let index = read(json!([all_null]));
        assert_eq!(index, read(json!([least("acme")])));
        let entry = &index.entries[0];
        assert_eq!((entry.name.as_str(), entry.description.as_str(), entry.stars), ("acme", "", None));
        assert_eq!((entry.package_sha256, entry.updated_at), (None, None));
        let shown = json!({"id": "acme", "name": "acme", "description": "", "author": "", "categories": [],
            "icon_url": "", "repo_url": "", "version": "1.0.0", "min_kandev_version": "",
            "package_url": "https://a.test/p.tar.gz", "package_sha256": "", "stars": null, "updated_at": ""});
        assert_eq!(serde_json::to_value(entry).unwrap(), shown, "only stars may be null");
    }

    #[test]
    fn one_bad_entry_is_skipped_with_its_reason() {
        for (entry, reason) in [
            (json!(7), "invalid type: integer `7`, expected an object"),
            (json!({"id": "acme"}), "missing field `version`"),
            (with("id", json!("Acme!")), "invalid plugin id \"Acme!\""),
            (with("id", json!("marketplace")), "the word is reserved"),
            (with("version", json!("")), "version must be"),
            (with("version", json!("1 0")), "version must be"),
            (with("version", json!("v".repeat(129))), "version must be"),
            (with("min_kandev_version", json!("soon")), "is not a release version"),
            (with("min_kandev_version", json!(format!("1.0.0-{}", "a".repeat(200)))), "is not a release version"),
            (with("package_url", json!("http://a.test/p")), "package_url: url must begin with https://"),
            (with("package_url", json!("../p")), "package_url: url must be an address"),
            (with("package_sha256", json!("abc")), "64 hexadecimal digits"),
            (with("stars", json!("many")), "invalid type"),
            (with("categories", json!("tools")), "invalid type"),
        ] {
            let told = refused(entry.clone());
            assert!(told.contains(reason), "{entry}: {told}");
        }
        let index = read(json!([least("acme"), with("version", json!("2.0.0"))]));
        assert_eq!((index.entries.len(), index.entries[0].version.as_str()), (1, "1.0.0"));
        assert_eq!(index.skipped[0].reason, "the index lists acme more than once: the first counts");
    }

    #[test]
    fn texts_are_cleaned_and_cut_and_bad_links_and_numbers_left_out() {
        let of = |key: &str, value: Value| read(json!([with(key, value)])).entries.remove(0);
        assert_eq!(of("name", json!("A\u{202e}c\nme")).name, "Ac me");
        assert_eq!(of("description", json!("é".repeat(2000))).description.len(), 1999);
        assert_eq!(of("categories", json!(vec!["x"; 50])).categories.len(), MAX_CATEGORIES);
        assert_eq!(of("icon_url", json!("javascript:alert(1)")).icon_url, "");
        assert_eq!(of("repo_url", json!("/relative")).repo_url, "");
        assert_eq!(of("updated_at", json!("yesterday")).updated_at, None);
        for stars in [json!(-1), json!(1.5), json!(u64::MAX)] {
            assert_eq!(of("stars", stars).stars, None);
        }
    }

    #[test]
    fn another_document_is_no_index() {
        for text in
            ["", "<html>", "[]", "{}", "{\"plugins\":{}}", "{\"plugins\":[]} x", "{\"plugins\":[}", "\u{feff}{}"]
        {
            let fault = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(fault.starts_with("what it serves is no plugin index: "), "{text}: {fault}");
        }
        assert_eq!(parse(b"{\"plugins\":null}"), Ok(Index::default()));
        let deep = format!("{{\"plugins\":[{}]}}", "[".repeat(100_000));
        assert!(parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn an_index_of_another_schema_version_is_not_read_and_one_without_is() {
        for version in [json!(2), json!(0), json!("1"), json!(1.5), json!({"a": 1})] {
            for plugins in [json!([least("acme")]), json!({"acme": least("acme")})] {
                let document = json!({"schema_version": version, "plugins": plugins}).to_string();
                let text = format!(
                    "its index has the schema_version {version}, and this host reads 1: ask who publishes it for one, \
                     or look for a newer host"
                );
                assert_eq!(parse(document.as_bytes()).map_err(|fault| fault.to_string()), Err(text));
            }
        }
        let long = json!({"schema_version": "x".repeat(1000), "plugins": []}).to_string();
        assert!(parse(long.as_bytes()).unwrap_err().to_string().len() < 200);
        let listed = read(json!([least("acme")]));
        for document in
            [json!({"plugins": [least("acme")]}), json!({"schema_version": null, "plugins": [least("acme")]})]
        {
            assert_eq!(parse(document.to_string().as_bytes()), Ok(listed.clone()), "{document}");
        }
    }

    #[test]
    fn entries_beyond_the_bound_are_counted() {
        let index = read(json!(vec![json!(0); MAX_ENTRIES + 30]));
        assert_eq!((index.entries.len(), index.skipped_count, index.skipped.len()), (0, MAX_ENTRIES + 30, MAX_SKIPPED));
        let many: Vec<_> = (0..MAX_ENTRIES + 2).map(|n| least(&format!("p{n}"))).collect();
        let index = read(json!(many));
        assert_eq!((index.entries.len(), index.skipped_count), (MAX_ENTRIES, 2));
        assert_eq!(index.skipped, [Skipped { entry: MAX_ENTRIES, reason: "2 entries too many: 5000 are read".into() }]);
    }

    proptest! {
        #[test]
        fn any_bytes_get_a_verdict_and_what_is_offered_keeps_the_rules(
            ids in prop::collection::vec("[a-zA-Z0-9._-]{0,6}", 0..8), text in "\\PC{0,30}", url in "[a-z:/.@ ]{0,20}",
        ) {
            let entry = |id: &String| json!({"id": id, "name": text, "version": text, "package_url": url});
            let document = json!({"plugins": ids.iter().map(entry).collect::<Vec<_>>()}).to_string();
            let index = parse(document.as_bytes()).unwrap();
            prop_assert_eq!(index.entries.len() + index.skipped_count, ids.len());
            for entry in &index.entries {
                prop_assert!(source::address(&entry.package_url).is_ok());
            }
            let _ = parse(&document.as_bytes()[..document.len() / 2]);
            let _ = parse(text.as_bytes());
        }
    }
}
