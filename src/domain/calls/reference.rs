//! References to entities of other systems (contract/wire.md §2.1, manifest.md `reference_sources`): what may be asked,
//! what of a plugin's candidates is taken, and the one form in which the host writes a reference.
//!
//! A plugin gives facts about an entity; the reference is the host's: provider and kind are the manifest's, the scope
//! is where the search was made, and `ref` follows from them. What a client hands in later must be that very form.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use crate::domain::{clean, manifest::ReferenceSource, percent::encoded};

/// The form of references. Others are refused.
pub const VERSION: u32 = 1;

/// Longest text that is searched for, in bytes.
pub const MAX_QUERY_BYTES: usize = 256;

/// Candidates wanted of a search that does not say how many.
pub const DEFAULT_LIMIT: u32 = 10;

/// Most candidates that may be wanted, and most references that may be handed in at once.
pub const MAX_LIMIT: u32 = 50;

/// Most candidates that a plugin may answer; of more none is looked at.
pub const MAX_CANDIDATES: usize = 200;

/// Largest answer to a search, in bytes on the wire.
pub const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Longest id of an entity, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Longest key, in bytes.
const MAX_KEY_BYTES: usize = 64;

/// Longest title, in bytes; a longer one is cut.
const MAX_TITLE_BYTES: usize = 300;

/// Longest address, in bytes.
const MAX_URL_BYTES: usize = 2048;

/// Longest reason that is shown, in bytes.
const MAX_REASON_BYTES: usize = 300;

/// What a reference is asked about for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be shown among the results of a search.
    Search,
    /// To be handed in with something a user writes.
    Submission,
}

impl Purpose {
    /// The word of the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Submission => "submission",
        }
    }
}

/// A reference in the host's form; the keys are the contract's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EntityReference)]
pub struct Reference {
    /// [`VERSION`].
    pub version: u32,
    /// Names the entity: provider, kind and id, divided by `/`.
    #[serde(rename = "ref")]
    pub name: String,
    /// Of the manifest.
    pub provider: String,
    /// Of the manifest.
    pub kind: String,
    /// The provider's id of it.
    pub id: String,
    /// What people call it; its id when the provider has no other word.
    pub key: String,
    /// What people read.
    pub title: String,
    /// Where it is seen, `http` or `https`; may be empty.
    pub url: String,
    /// Where it may be used: `workspace:<id>`.
    pub scope: String,
}

/// What a plugin says of an entity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidate {
    /// Its id at the provider.
    pub id: String,
    /// What people read.
    pub title: String,
    /// Where it is seen.
    pub url: String,
    /// Anything else; of it only the text `key` is taken.
    pub attributes: Map<String, Value>,
}

/// Why a candidate is left out, or a reference refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not the present form.
    #[error("version must be {VERSION}")]
    Version,
    /// Empty, too long, or with characters that cannot be seen.
    #[error("id must be 1 to {MAX_ID_BYTES} bytes without control characters")]
    Id,
    /// The same of the key.
    #[error("key must be 1 to {MAX_KEY_BYTES} bytes without control characters, or the id")]
    Key,
    /// Nothing to read, or not in one cleaned line.
    #[error("title must be one line of 1 to {MAX_TITLE_BYTES} bytes")]
    Title,
    /// Neither empty nor an address that a browser may open.
    #[error(
        "url must be empty, or an http or https address of at most {MAX_URL_BYTES} bytes without user and password"
    )]
    Url,
    /// It was not made by a search in this workspace.
    #[error("ref and scope must be as a search in this workspace answered them")]
    Foreign,
}

impl Reference {
    /// The reference to a candidate that a search in this source and workspace found.
    pub fn of(source: &ReferenceSource, workspace: &str, candidate: Candidate) -> Result<Self, Malformed> {
        let Candidate { id, title, url, attributes } = candidate;
        check_id(&id)?;
        let key = attributes.get("key").and_then(Value::as_str).filter(|key| is_plain(key, MAX_KEY_BYTES));
        let title = clean::single_line(&title, MAX_TITLE_BYTES);
        if title.is_empty() {
            return Err(Malformed::Title);
        }
        Ok(Self {
            version: VERSION,
            name: name(&source.provider, &source.kind, &id),
            provider: source.provider.clone(),
            kind: source.kind.clone(),
            key: key.map_or_else(|| id.clone(), str::to_owned),
            id,
            title,
            url: address(&url)?,
            scope: scope(workspace),
        })
    }

    /// Whether a reference that somebody hands in is one that [`Self::of`] could have made.
    pub fn check(&self, workspace: &str) -> Result<(), Malformed> {
        if self.version != VERSION {
            return Err(Malformed::Version);
        }
        check_id(&self.id)?;
        if self.key != self.id && !is_plain(&self.key, MAX_KEY_BYTES) {
            return Err(Malformed::Key);
        }
        if self.title.is_empty() || clean::single_line(&self.title, MAX_TITLE_BYTES) != self.title {
            return Err(Malformed::Title);
        }
        if address(&self.url)? != self.url {
            return Err(Malformed::Url);
        }
        let same = self.name == name(&self.provider, &self.kind, &self.id) && self.scope == scope(workspace);
        if same { Ok(()) } else { Err(Malformed::Foreign) }
    }

    /// Whether this source finds such references.
    pub fn is_of(&self, source: &ReferenceSource) -> bool {
        self.provider == source.provider && self.kind == source.kind
    }
}

/// A plugin's reason, as it is shown.
pub fn reason(text: &str) -> String {
    clean::single_line(text, MAX_REASON_BYTES)
}

fn check_id(id: &str) -> Result<(), Malformed> {
    if is_plain(id, MAX_ID_BYTES) { Ok(()) } else { Err(Malformed::Id) }
}

/// One line that says what it shows.
fn is_plain(text: &str, max: usize) -> bool {
    !text.is_empty() && text.len() <= max && clean::single_line(text, max) == text
}

fn scope(workspace: &str) -> String {
    format!("workspace:{workspace}")
}

/// Provider and kind have no `/` (manifest.md), and of the id none is left: no two entities have one name.
fn name(provider: &str, kind: &str, id: &str) -> String {
    format!("{provider}/{kind}/{}", encoded(id))
}

/// An address as the standard writes it.
fn address(text: &str) -> Result<String, Malformed> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let url = Url::parse(text).map_err(|_| Malformed::Url)?;
    let plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    if plain && url.has_host() && url.as_str().len() <= MAX_URL_BYTES { Ok(url.into()) } else { Err(Malformed::Url) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn source(provider: &str, kind: &str) -> ReferenceSource {
        ReferenceSource { provider: provider.to_owned(), kind: kind.to_owned(), ..ReferenceSource::default() }
    }

    fn candidate(id: &str, title: &str, url: &str) -> Candidate {
        Candidate { id: id.to_owned(), title: title.to_owned(), url: url.to_owned(), ..Candidate::default() }
    }

    fn made(candidate: Candidate) -> Result<Reference, Malformed> {
        Reference::of(&source("forge", "issue"), "w1", candidate)
    }

    #[test]
    fn the_host_writes_the_reference_and_its_keys_are_the_contracts() {
        let attributes = Map::from_iter([("key".to_owned(), json!("APP-7")), ("provider".to_owned(), json!("evil"))]);
        let found =
            Candidate { attributes, ..candidate("7/a", "  Fix\nit \u{202e}", "HTTPS://Forge.example.test/x y") };
        let expected = json!({
            "version": 1, "ref": "forge/issue/7%2Fa", "provider": "forge", "kind": "issue", "id": "7/a",
            "key": "APP-7", "title": "Fix it", "url": "https://forge.example.test/x%20y", "scope": "workspace:w1",
        });
        let reference = made(found).unwrap();
        assert_eq!(serde_json::to_value(&reference).unwrap(), expected);
        assert_eq!((reference.check("w1"), reference.check("w2")), (Ok(()), Err(Malformed::Foreign)));
    }

    #[test]
    fn a_key_that_is_no_key_is_left_out() {
        for key in [json!(""), json!("a\nb"), json!(7), json!("x".repeat(65)), json!(null)] {
            let attributes = Map::from_iter([("key".to_owned(), key.clone())]);
            let reference = made(Candidate { attributes, ..candidate("7", "t", "") }).unwrap();
            assert_eq!(reference.key, "7", "{key}");
        }
    }

    #[test]
    fn a_candidate_that_cannot_be_named_read_or_opened_is_left_out() {
        let long = "x".repeat(257);
        for id in ["", " a", "a\u{0}", "a\nb", "a\u{200b}", &long] {
            assert_eq!(made(candidate(id, "t", "")), Err(Malformed::Id), "{id:?}");
        }
        for title in ["", " \n", "\u{200b}"] {
            assert_eq!(made(candidate("7", title, "")), Err(Malformed::Title), "{title:?}");
        }
        let far = format!("https://x/{}", "x".repeat(2048));
        for url in [
            "javascript:alert(1)",
            "data:text/html,x",
            "/relative",
            "ftp://x/",
            "https://u@x/",
            "https://u:hunter2@x/",
            "https://",
            &far,
        ] {
            assert_eq!(made(candidate("7", "t", url)), Err(Malformed::Url), "{url}");
        }
    }

    #[test]
    fn what_was_changed_since_the_search_is_refused() {
        let good = made(candidate("7", "Fix it", "https://x/7")).unwrap();
        let with = |change: fn(&mut Reference)| {
            let mut changed = good.clone();
            change(&mut changed);
            changed.check("w1")
        };
        assert_eq!(with(|r| r.version = 2), Err(Malformed::Version));
        assert_eq!(with(|r| r.id = "8".to_owned()), Err(Malformed::Foreign));
        assert_eq!(with(|r| r.kind = "pull".to_owned()), Err(Malformed::Foreign));
        assert_eq!(with(|r| r.name = "forge/issue/8".to_owned()), Err(Malformed::Foreign));
        assert_eq!(with(|r| r.scope = "workspace:w2".to_owned()), Err(Malformed::Foreign));
        assert_eq!(with(|r| r.key = "a\nb".to_owned()), Err(Malformed::Key));
        assert_eq!(with(|r| r.title = "a\nb".to_owned()), Err(Malformed::Title));
        assert_eq!(with(|r| r.url = "javascript:x".to_owned()), Err(Malformed::Url));
    }

    proptest! {
        #[test]
        fn what_the_host_makes_it_takes_again(id in "(?s:.{0,12})", title in "(?s:.{0,12})", path in "(?s:.{0,12})") {
            if let Ok(reference) = made(candidate(&id, &title, &format!("https://x/{path}"))) {
                prop_assert_eq!(reference.check("w1"), Ok(()));
                prop_assert!(reference.name.is_ascii() && !reference.title.is_empty());
                let again: Reference = serde_json::from_str(&serde_json::to_string(&reference).unwrap()).unwrap();
                prop_assert_eq!(again, reference);
            }
        }

        #[test]
        fn two_entities_never_have_one_name(a in "[a-z0-9._:-]{1,4}", b in "[a-z0-9._:-]{1,4}", one in "[a-c/%. ]{1,4}",
            c in "[a-z0-9._:-]{1,4}", d in "[a-z0-9._:-]{1,4}", other in "[a-c/%. ]{1,4}") {
            let same = (&a, &b, &one) == (&c, &d, &other);
            prop_assert_eq!(name(&a, &b, &one) == name(&c, &d, &other), same);
        }
    }
}
