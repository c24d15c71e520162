//! The repository providers that a plugin claims. Claiming none is something else than saying nothing: a plugin that
//! says nothing may register any in the browser, one that claims `[]` none (contract/frontend.md §1.1).

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize};

/// The claimed ids; as a list it is empty when nothing was said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct RepositoryProviders(Option<Vec<String>>);

impl RepositoryProviders {
    /// What was said, if anything was.
    pub fn declared(&self) -> Option<&[String]> {
        self.0.as_deref()
    }

    /// Whether the manifest says nothing of providers.
    pub fn is_undeclared(&self) -> bool {
        self.0.is_none()
    }
}

impl Deref for RepositoryProviders {
    type Target = [String];

    fn deref(&self) -> &[String] {
        self.declared().unwrap_or_default()
    }
}

impl<'a> IntoIterator for &'a RepositoryProviders {
    type Item = &'a String;
    type IntoIter = std::slice::Iter<'a, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Vec<String>> for RepositoryProviders {
    fn from(ids: Vec<String>) -> Self {
        Self(Some(ids))
    }
}

impl<'de> Deserialize<'de> for RepositoryProviders {
    /// `null` says nothing, and elements that are `null` are left out.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let elements = Option::<Vec<Option<String>>>::deserialize(deserializer)?;
        Ok(Self(elements.map(|list| list.into_iter().flatten().collect())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Manifest, parse};

    fn manifest(more: &str) -> Manifest {
        let text = format!(
            "{{id: a, api_version: 1, version: 1.0, runtime: {{type: binary, executables: {{linux-amd64: p}}}}{more}}}"
        );
        parse(text.as_bytes()).unwrap().manifest
    }

    #[test]
    fn claiming_none_and_saying_nothing_differ_and_survive_the_record() {
        for (more, declared) in [
            ("", None),
            (", repository_providers: null", None),
            (", repository_providers: []", Some(vec![])),
            (", repository_providers: [git-acme, null]", Some(vec!["git-acme".to_owned()])),
        ] {
            let manifest = manifest(more);
            assert_eq!(manifest.repository_providers.declared(), declared.as_deref(), "{more}");
            let json = serde_json::to_value(&manifest).unwrap();
            assert_eq!(json.get("repository_providers").is_some(), declared.is_some(), "{more}");
            let again: Manifest = serde_json::from_value(json).unwrap();
            assert_eq!(again.repository_providers, manifest.repository_providers, "{more}");
        }
    }
}
