//! Who owns what only one active plugin may: repository providers and reference sources (contract/manifest.md §6 step
//! 7, lifecycle.md §9).
//!
//! Pure. Which plugins count as active is the registry's knowledge; the text of a collision is the contract's.

use super::{id::PluginId, manifest::Manifest};

/// Something that another active plugin owns already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Collision {
    /// A repository provider.
    #[error("plugins: repository provider \"{provider}\" is already owned by active plugin \"{owner}\"")]
    Provider {
        /// Which.
        provider: String,
        /// Whose it is.
        owner: PluginId,
    },
    /// A reference source.
    #[error("plugins: reference source \"{source_name}\" is already owned by active plugin \"{owner}\"")]
    Source {
        /// Which.
        source_name: String,
        /// Whose it is.
        owner: PluginId,
    },
    /// The entities that a reference source is about.
    #[error("plugins: references to \"{kind}\" of \"{provider}\" are already owned by active plugin \"{owner}\"")]
    Entities {
        /// Of which provider.
        provider: String,
        /// Of which kind.
        kind: String,
        /// Whose they are.
        owner: PluginId,
    },
}

/// What of `manifest` the plugin `owner` with the manifest `owned` has already; providers first, each in the order of
/// the first manifest.
pub fn collision(manifest: &Manifest, owner: &PluginId, owned: &Manifest) -> Option<Collision> {
    let provider = manifest.repository_providers.iter().find(|wanted| owned.repository_providers.contains(wanted));
    if let Some(provider) = provider {
        return Some(Collision::Provider { provider: provider.clone(), owner: owner.clone() });
    }
    manifest.reference_sources.iter().find_map(|wanted| {
        let mut sources = owned.reference_sources.iter();
        let taken = sources.find(|source| {
            source.source == wanted.source || (source.provider == wanted.provider && source.kind == wanted.kind)
        })?;
        let owner = owner.clone();
        Some(if taken.source == wanted.source {
            Collision::Source { source_name: wanted.source.clone(), owner }
        } else {
            Collision::Entities { provider: wanted.provider.clone(), kind: wanted.kind.clone(), owner }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::manifest::parse;

    fn manifest(more: &str) -> Manifest {
        let text = format!(
            "{{id: a, api_version: 1, version: 1.0, runtime: {{type: binary, executables: {{linux-amd64: p}}}}{more}}}"
        );
        parse(text.as_bytes()).unwrap().manifest
    }

    fn source(source: &str, provider: &str, kind: &str) -> String {
        format!(
            ", reference_sources: [{{source: {source}, provider: {provider}, kind: {kind}, display_name: D, kind_label: K}}]"
        )
    }

    fn told(wanted: &str, owned: &str) -> Option<String> {
        let owner = PluginId::new("first").unwrap();
        collision(&manifest(wanted), &owner, &manifest(owned)).map(|collision| collision.to_string())
    }

    #[test]
    fn a_provider_has_one_owner_and_the_text_is_the_contracts() {
        let text = "plugins: repository provider \"forge\" is already owned by active plugin \"first\"".to_owned();
        let (one, both) = (", repository_providers: [forge]", ", repository_providers: [other, forge]");
        assert_eq!(told(one, both), Some(text.clone()));
        assert_eq!(told(both, one), Some(text));
        assert_eq!(told(one, ", repository_providers: [forge2]"), None);
        assert_eq!(told("", both), None);
        assert_eq!(told(one, ", repository_providers: []"), None);
    }

    #[test]
    fn a_source_collides_by_its_name_and_by_what_it_is_about() {
        let owned = source("issues", "forge", "issue");
        let by_name = "plugins: reference source \"issues\" is already owned by active plugin \"first\"";
        assert_eq!(told(&source("issues", "tracker", "card"), &owned).as_deref(), Some(by_name));
        let by_entities = "plugins: references to \"issue\" of \"forge\" are already owned by active plugin \"first\"";
        assert_eq!(told(&source("tickets", "forge", "issue"), &owned).as_deref(), Some(by_entities));
        assert_eq!(told(&source("pulls", "forge", "pull"), &owned), None);
        assert_eq!(told(&source("issues2", "tracker", "issue"), &owned), None);
    }
}
