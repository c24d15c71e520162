//! What an offered package would change for an operator, and what of that needs an explicit word.
//!
//! Pure: compares what is installed with what is offered. Only three kinds of change need consent: wider capabilities,
//! another signer, an older version. Who asks, and when, is `actors::installer`'s.

mod signed;
mod unattended;

use std::{collections::BTreeSet, fmt};

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::{
    clean,
    manifest::{Capabilities, Manifest},
    marketplace::ListedAs,
    package::Digest,
    subject, version,
};

pub use signed::{Signed, signed_by};
pub use unattended::{Unattended, Unfit, check_unattended};

/// Longest word of a difference, in bytes; the plugin's author chose it.
const MAX_WORD_BYTES: usize = 200;

/// Most words of a list; the rest is counted.
const MAX_WORDS: usize = 50;

/// Most subject patterns of a manifest that are compared by what they match; longer lists are compared as text.
const MAX_PATTERNS: usize = 200;

/// A change that needs an operator's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ConsentKind)]
pub enum Kind {
    /// The plugin asks for more than it had.
    Capabilities,
    /// The signature of the installed version is missing, or another's.
    Signer,
    /// The version goes back.
    Downgrade,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Capabilities, Self::Signer, Self::Downgrade];

    /// The word of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capabilities => "capabilities",
            Self::Signer => "signer",
            Self::Downgrade => "downgrade",
        }
    }
}

/// A set of kinds: what is needed, or what an operator accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kinds(BTreeSet<Kind>);

/// A text that is no list of kinds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("accept={0} is not understood: name one or more of capabilities, signer, downgrade, separated by commas")]
pub struct KindsError(String);

impl Kinds {
    /// Reads `capabilities,signer`; an empty text is an empty set.
    ///
    /// # Errors
    /// [`KindsError`] for any other word.
    pub fn parse(text: &str) -> Result<Self, KindsError> {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let kind = |word: &str| Kind::ALL.into_iter().find(|kind| kind.name() == word);
        words.map(|word| kind(word).ok_or_else(|| KindsError(clean::quote(text)))).collect()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether everything of `needed` is in it.
    pub fn holds(&self, needed: &Self) -> bool {
        needed.0.is_subset(&self.0)
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        Self(kinds.into_iter().collect())
    }
}

/// The form of the request's parameter: `capabilities,signer`.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|kind| kind.name()).collect();
        f.write_str(&words.join(","))
    }
}

impl Serialize for Kinds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

/// What a request says about the package it hands in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// What the operator accepts.
    pub accept: Kinds,
    /// The package the operator means; any when there is none.
    pub sha256: Option<Digest>,
    /// Whose a source of the marketplace says that the package is; anybody's when none does.
    pub listed_as: Option<ListedAs>,
    /// What the upgrade was announced as, when no operator looks at it.
    pub unattended: Option<Unattended>,
}

/// One side of the comparison.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// The manifest.
    pub manifest: &'a Manifest,
    /// Whose signature it carries.
    pub signed: Signed,
}

/// Where the offered version lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Nothing is installed.
    First,
    /// Newer.
    Upgrade,
    /// The very version that is installed.
    Same,
    /// Another name of equal rank, like another build.
    Equal,
    /// Older.
    Downgrade,
}

/// What becomes of the signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SignerChange {
    /// As it was.
    None,
    /// The offered package is the first with one.
    Added,
    /// The installed version had one.
    Dropped,
    /// Another one.
    Changed,
}

/// The difference an operator is shown. Texts are cleaned and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Difference {
    /// The version that is installed; `null` when none is.
    pub installed: Option<String>,
    /// The version that is offered.
    pub offered: String,
    /// Where it lies.
    pub direction: Direction,
    /// What the offered version asks for beyond the installed one, as `events:<pattern>`, `api_read:<word>`,
    /// `api_write:<word>`, `state` …; all it asks for when nothing is installed.
    pub widened: Vec<String>,
    /// What it asks for no more.
    pub narrowed: Vec<String>,
    /// The name of the trusted key that signed the installed version, as it was called then.
    pub signer_installed: Option<String>,
    /// The key itself, base64.
    pub signer_key_installed: Option<String>,
    /// The name of the trusted key that signed the offered one.
    pub signer_offered: Option<String>,
    /// The key itself; also one that is not trusted for the plugin.
    pub signer_key_offered: Option<String>,
    /// `absent`, `unknown_key` or `trusted`.
    pub signature_offered: &'static str,
    /// What becomes of the signer.
    pub signer_change: SignerChange,
    /// What needs the operator's word.
    #[schema(value_type = Vec<Kind>)]
    pub needs: Kinds,
}

/// Compares. `ask_capabilities` is the setting `install.capability_consent`.
pub fn compare(installed: Option<Side<'_>>, offered: Side<'_>, ask_capabilities: bool) -> Difference {
    let none = Capabilities::default();
    let before = installed.as_ref().map_or(&none, |side| &side.manifest.capabilities);
    let after = &offered.manifest.capabilities;
    let (widened, narrowed) = (beyond(after, before), beyond(before, after));
    let direction = installed.as_ref().map_or(Direction::First, |side| direction(side.manifest, offered.manifest));
    let signer_change = signer_change(installed.as_ref().map(|side| &side.signed), &offered.signed);
    let present = installed.is_some() && direction != Direction::Same;
    let asks = [
        (Kind::Capabilities, ask_capabilities && !widened.is_empty()),
        (Kind::Signer, matches!(signer_change, SignerChange::Dropped | SignerChange::Changed)),
        (Kind::Downgrade, direction == Direction::Downgrade),
    ];
    let needs = asks.into_iter().filter_map(|(kind, asks)| (present && asks).then_some(kind)).collect();
    let installed_version = installed.as_ref().map(|side| side.manifest.version.clone());
    let (signer_installed, signer_key_installed) =
        installed.map_or((None, None), |side| (side.signed.name, side.signed.key));
    Difference {
        installed: installed_version,
        offered: offered.manifest.version.clone(),
        direction,
        widened: shown(widened),
        narrowed: shown(narrowed),
        signer_installed,
        signer_key_installed,
        signer_offered: offered.signed.name,
        signer_key_offered: offered.signed.key,
        signature_offered: offered.signed.word,
        signer_change,
        needs,
    }
}

/// Signers are trusted keys: a signature that does not count is none.
fn signer_change(installed: Option<&Signed>, offered: &Signed) -> SignerChange {
    let before = installed.filter(|signed| signed.name.is_some());
    match (before, &offered.name) {
        (None, None) => SignerChange::None,
        (None, Some(_)) => SignerChange::Added,
        (Some(_), None) => SignerChange::Dropped,
        (Some(before), Some(_)) if before.is_of_the_same_key(offered) => SignerChange::None,
        (Some(_), Some(_)) => SignerChange::Changed,
    }
}

fn direction(installed: &Manifest, offered: &Manifest) -> Direction {
    if installed.version == offered.version {
        return Direction::Same;
    }
    match version::compare(&offered.version, &installed.version) {
        std::cmp::Ordering::Greater => Direction::Upgrade,
        std::cmp::Ordering::Equal => Direction::Equal,
        std::cmp::Ordering::Less => Direction::Downgrade,
    }
}

/// What `one` asks for that `other` does not, kind by kind. Words that this host does not know count: a later host may.
fn beyond(one: &Capabilities, other: &Capabilities) -> Vec<String> {
    let mut found = Vec::new();
    let (wanted, known) = (patterns(one), patterns(other));
    let known_list: Vec<_> = known.iter().copied().collect();
    let compared = wanted.len() <= MAX_PATTERNS && known.len() <= MAX_PATTERNS;
    let new = wanted.difference(&known).filter(|pattern| !(compared && subject::covered(pattern, &known_list)));
    found.extend(new.map(|pattern| format!("events:{pattern}")));
    for (kind, one, other) in
        [("api_read", &one.api_read, &other.api_read), ("api_write", &one.api_write, &other.api_write)]
    {
        let (one, other): (BTreeSet<_>, BTreeSet<_>) = (one.iter().collect(), other.iter().collect());
        found.extend(one.difference(&other).map(|word| format!("{kind}:{word}")));
    }
    for (word, one, other) in [
        ("state", one.state, other.state),
        ("secrets", one.secrets, other.secrets),
        ("agent_invoke", one.agent_invoke, other.agent_invoke),
        ("auth", one.auth, other.auth),
        ("user_state", one.user_state, other.user_state),
    ] {
        found.extend((one && !other).then(|| word.to_owned()));
    }
    found
}

/// The patterns that can match a subject at all.
fn patterns(capabilities: &Capabilities) -> BTreeSet<&str> {
    let patterns = capabilities.events.iter().map(String::as_str);
    patterns.filter(|pattern| pattern.len() <= subject::MAX_SUBJECT_BYTES).collect()
}

fn shown(words: Vec<String>) -> Vec<String> {
    let more = words.len().saturating_sub(MAX_WORDS);
    let mut words: Vec<_> = words.iter().take(MAX_WORDS).map(|word| clean::single_line(word, MAX_WORD_BYTES)).collect();
    if more > 0 {
        words.push(format!("… and {more} more"));
    }
    words
}

/// What needs consent, in one sentence without its subject: `goes back from 2.0.0 to 1.0.0, asks for secrets`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let installed = self.installed.as_deref().unwrap_or_default();
        let parts = self.needs.0.iter().map(|kind| match kind {
            Kind::Capabilities => format!("asks for more than {installed}: {}", self.widened.join(", ")),
            Kind::Signer => format!(
                "is signed by {}, the installed version by {}",
                signed_by(self.signature_offered, self.signer_offered.as_deref(), self.signer_key_offered.as_deref()),
                signed_by("trusted", self.signer_installed.as_deref(), self.signer_key_installed.as_deref())
            ),
            Kind::Downgrade => format!("goes back from {installed}"),
        });
        f.write_str(&parts.collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests;
