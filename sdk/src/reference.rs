//! References to entities of another system (`reference_sources` of the manifest): finding them, and whether one may
//! be used.

use kandev_proto::{struct_from_json, v1};

use crate::json::{self, Object};

/// A search in one source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReferenceSearch {
    /// The source in the manifest.
    pub source: String,
    /// The workspace that is searched from.
    pub workspace_id: String,
    /// What the user typed.
    pub query: String,
    /// The most candidates to answer.
    pub limit: usize,
}

impl From<v1::SearchEntityReferencesRequest> for ReferenceSearch {
    fn from(wire: v1::SearchEntityReferencesRequest) -> Self {
        Self {
            source: wire.source,
            workspace_id: wire.workspace_id,
            query: wire.query,
            limit: usize::try_from(wire.limit).unwrap_or(0),
        }
    }
}

/// An entity found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReferenceCandidate {
    /// Its id in the other system.
    pub provider_local_id: String,
    /// What the user reads.
    pub title: String,
    /// Where it is seen.
    pub url: String,
    /// Anything else.
    pub attributes: Object,
}

impl From<ReferenceCandidate> for v1::EntityReferenceCandidate {
    fn from(own: ReferenceCandidate) -> Self {
        Self {
            provider_local_id: own.provider_local_id,
            title: own.title,
            url: own.url,
            attributes: Some(struct_from_json(own.attributes)),
        }
    }
}

/// The question whether a reference may be used.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ReferenceUse {
    /// The source in the manifest.
    pub source: String,
    /// The workspace it is used from.
    pub workspace_id: String,
    /// `search` or `submission`.
    pub purpose: String,
    /// Keys version, ref, provider, kind, id, key, title, url, scope.
    pub reference: Object,
}

impl From<v1::AuthorizeEntityReferenceRequest> for ReferenceUse {
    fn from(wire: v1::AuthorizeEntityReferenceRequest) -> Self {
        Self {
            source: wire.source,
            workspace_id: wire.workspace_id,
            purpose: wire.purpose,
            reference: json::to_object(wire.reference),
        }
    }
}

/// Whether a reference may be used. An error, or none within 1.5 s, counts as denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// It may.
    Allowed,
    /// It may not, with the reason.
    Denied(String),
}

impl From<Authorization> for v1::AuthorizeEntityReferenceResponse {
    fn from(own: Authorization) -> Self {
        match own {
            Authorization::Allowed => Self { allowed: true, reason: String::new() },
            Authorization::Denied(reason) => Self { allowed: false, reason },
        }
    }
}
