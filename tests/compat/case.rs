//! The cases as they lie in `cases/`: `<name>.yaml`, the manifest, and `<name>.toml`, its verdict.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use serde::Deserialize;
use serde_json::Value;

use crate::support::{Package, package::executable_path};

/// The platform that the cases are written for.
pub const PLATFORM: &str = "linux-amd64";

/// What a manifest must get.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// What the case is there for.
    pub shows: String,
    /// Files of the package beside manifest and checksums.
    #[serde(default = "executable_only")]
    pub files: Vec<String>,
    /// It is installed, with these effects.
    pub accepted: Option<Accepted>,
    /// It is refused, so.
    pub refused: Option<Refused>,
}

/// What an accepted manifest gives.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Accepted {
    /// Every capability that is granted.
    pub granted: Vec<String>,
    /// Everything that is told of the manifest, in order.
    pub warnings: Vec<String>,
    /// JSON pointers into the record, and what is there.
    pub record: BTreeMap<String, Value>,
    /// JSON pointers that lead nowhere.
    pub absent: Vec<String>,
}

/// How a manifest is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The stable code, docs/api.md.
    pub code: String,
    /// The whole text.
    pub text: Option<String>,
    /// A word of the text, where the rest is the YAML reader's.
    pub contains: Option<String>,
}

fn executable_only() -> Vec<String> {
    vec![format!("server/plugin-{PLATFORM}")]
}

/// A manifest with its verdict.
pub struct Case {
    pub name: String,
    platform: String,
    pub manifest: String,
    pub verdict: Verdict,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/compat/cases")
}

/// Names of the files with this ending, without it.
fn names(ending: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder()).expect("tests/compat/cases");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"));
    names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every case, by name, as if it were written for this platform.
pub fn cases(platform: &str) -> Vec<Case> {
    let read = |name: String| {
        let manifest = text(&format!("{name}.yaml")).replace(PLATFORM, platform);
        let verdict = text(&format!("{name}.toml")).replace(PLATFORM, platform);
        let verdict = toml::from_str(&verdict).unwrap_or_else(|error| panic!("{name}: {error}"));
        Case { name, platform: platform.to_owned(), manifest, verdict }
    };
    names(".yaml").into_iter().map(read).collect()
}

impl Case {
    /// The package; every file beside the manifest is this program.
    pub fn package(&self, program: &[u8]) -> Package {
        let package = Package::with_program(program, &self.name, "1").without(&executable_path());
        let package = package.manifest(|_| self.manifest.clone());
        // The default is of the platform that the cases are written for.
        let platform = self.platform.as_str();
        let files = self.verdict.files.iter().map(|file| file.replace(PLATFORM, platform));
        files.fold(package, |package, file| package.file(&file, program))
    }
}

impl Accepted {
    /// Fails unless the manifest, as JSON, says what the verdict does.
    #[track_caller]
    pub fn check_record(&self, name: &str, record: &Value) {
        for (pointer, value) in &self.record {
            assert_eq!(record.pointer(pointer), Some(value), "{name}: {pointer}");
        }
        for pointer in &self.absent {
            assert_eq!(record.pointer(pointer), None, "{name}: {pointer}");
        }
    }
}

impl Refused {
    /// Fails unless this is the refusal.
    #[track_caller]
    pub fn check(&self, name: &str, code: &str, text: &str) {
        assert_eq!(code, self.code, "{name}: {text}");
        if let Some(whole) = &self.text {
            assert_eq!(text, whole, "{name}");
        }
        if let Some(word) = &self.contains {
            assert!(text.to_lowercase().contains(word), "{name}: \"{word}\" is not in: {text}");
        }
    }
}

#[test]
fn every_manifest_has_a_verdict_and_every_verdict_a_manifest() {
    let (manifests, verdicts) = (names(".yaml"), names(".toml"));
    assert_eq!(manifests, verdicts);
    assert!(manifests.len() > 100, "{} cases", manifests.len());
    let all = fs::read_dir(folder()).expect("tests/compat/cases").count();
    assert_eq!(all, manifests.len() + verdicts.len(), "nothing else lies there");
}

#[test]
fn every_verdict_is_one_of_two_and_says_what_it_shows() {
    for Case { name, verdict, .. } in cases(PLATFORM) {
        assert!(!verdict.shows.is_empty(), "{name}");
        assert!(verdict.accepted.is_some() != verdict.refused.is_some(), "{name}: accepted or refused");
        if let Some(refused) = verdict.refused {
            assert!(refused.text.is_some() != refused.contains.is_some(), "{name}: the text, or a word of it");
        }
    }
}
