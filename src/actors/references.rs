//! References to entities of other systems: which sources active plugins have, searching one, and asking whether
//! references may be used.
//!
//! What a plugin finds is its word; what a reference is, `domain::calls::reference` decides. Each reference is asked
//! about before it is shown and again before it is used, and whatever goes wrong with the question is a no.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, stream};
use kandev_proto::{json_from_struct, struct_from_json, v1};
use prost::Message;
use serde_json::Value;

use super::{CallKind, CallOutcome, CallPermit, CallRefused, PluginHandle, RegistryHandle};
use crate::{
    domain::{
        calls::reference::{self, Candidate, MAX_ANSWER_BYTES, MAX_CANDIDATES, Purpose, Reference},
        clean,
        id::PluginId,
        manifest::ReferenceSource,
        redaction,
    },
    grpc::client::CallError,
};

/// References of one call that are asked about at the same time.
const AT_ONCE: usize = 8;

/// Longest part of a foreign name in a message, in bytes.
const SHOWN_NAME_BYTES: usize = 128;

/// Longest `ref` that is answered, in bytes; the host's own are shorter.
const MAX_REF_BYTES: usize = 2048;

/// A source of an active plugin.
#[derive(Debug, Clone)]
pub struct OfferedSource {
    /// Whose.
    pub plugin: PluginId,
    /// What its manifest says of it.
    pub source: ReferenceSource,
}

/// What a search came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// What may be used, in the plugin's order.
    pub references: Vec<Reference>,
    /// Candidates that were no entity that could be referred to.
    pub malformed: usize,
    /// References that may not be used.
    pub denied: usize,
}

/// Whether a reference may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `ref` as it was asked about.
    pub name: String,
    /// Whether it may.
    pub allowed: bool,
    /// Why not; the plugin's words, or the host's. Empty of one that may.
    pub reason: String,
}

/// Why nothing was found out.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// No active plugin has such a source.
    #[error("no active plugin has the reference source \"{0}\"")]
    NoSource(String),
    /// The plugin takes no call now.
    #[error("plugin \"{0}\": {1}")]
    Refused(PluginId, CallRefused),
    /// No answer.
    #[error("plugin \"{0}\": {1}")]
    Call(PluginId, CallError),
    /// So large an answer that it is not looked at.
    #[error("plugin \"{0}\" answered more than {MAX_CANDIDATES} candidates or {MAX_ANSWER_BYTES} bytes to a search")]
    TooLarge(PluginId),
}

impl ReferenceError {
    fn outcome(&self) -> CallOutcome {
        match self {
            Self::NoSource(_) | Self::Refused(..) => CallOutcome::Refused,
            Self::Call(_, CallError::TimedOut(_)) => CallOutcome::TimedOut,
            Self::Call(..) | Self::TooLarge(_) => CallOutcome::Failed,
        }
    }
}

/// One source of one plugin, with the leave to call it.
struct Desk<'a> {
    registry: &'a RegistryHandle,
    plugin: PluginHandle,
    source: ReferenceSource,
    workspace: &'a str,
    /// One for all questions of a request.
    permit: Arc<CallPermit>,
}

/// The leaves of one request, by plugin.
type Permits = BTreeMap<PluginId, Result<Arc<CallPermit>, CallRefused>>;

impl RegistryHandle {
    /// The sources of all active plugins, by their `order`, then by name.
    pub fn reference_sources(&self) -> Vec<OfferedSource> {
        let of = |plugin: PluginHandle| {
            let sources = plugin.manifest().reference_sources.clone();
            sources.into_iter().map(move |source| OfferedSource { plugin: plugin.id().clone(), source })
        };
        let mut all: Vec<_> = self.active().into_iter().flat_map(of).collect();
        all.sort_by(|a, b| (a.source.order, &a.source.source).cmp(&(b.source.order, &b.source.source)));
        all
    }

    /// Searches one source from a workspace, which was verified; at most `limit` references that may be used there.
    /// Query and limit are bounded by the caller. Dropped, it cancels the calls.
    pub async fn search_references(
        &self,
        source: &str,
        workspace: &str,
        query: &str,
        limit: u32,
    ) -> Result<Found, ReferenceError> {
        let Some((plugin, source)) = self.source(|offered| offered.source == source) else {
            return Err(ReferenceError::NoSource(clean::single_line(source, SHOWN_NAME_BYTES)));
        };
        let watch = plugin.vitals().begin(CallKind::Reference);
        let found = match self.begin(&plugin, CallKind::Reference) {
            Ok(permit) => {
                let (plugin, permit) = (plugin.clone(), Arc::new(permit));
                Desk { registry: self, plugin, source, workspace, permit }.search(query, limit).await
            }
            Err(refused) => Err(ReferenceError::Refused(plugin.id().clone(), refused)),
        };
        watch.end(found.as_ref().map_or_else(ReferenceError::outcome, |_| CallOutcome::Answered));
        found
    }

    /// Asks about references that somebody hands in, in their order. Those that no search in this workspace can have
    /// answered, and those of nobody, are denied without asking. Their number is bounded by the caller.
    pub async fn authorize_references(&self, workspace: &str, references: Vec<Reference>) -> Vec<Verdict> {
        let mut permits = Permits::new();
        let questions = references.into_iter().map(|reference| {
            let desk = self.desk(workspace, &reference, &mut permits);
            async move {
                match desk {
                    Ok(desk) => desk.submit(&reference).await,
                    Err(reason) => denied(&reference, &reason),
                }
            }
        });
        let questions: Vec<_> = questions.collect();
        drop(permits);
        stream::iter(questions).buffered(AT_ONCE).collect().await
    }

    /// Who is to be asked about a reference; else why nobody is.
    fn desk<'a>(
        &'a self,
        workspace: &'a str,
        reference: &Reference,
        permits: &mut Permits,
    ) -> Result<Desk<'a>, String> {
        reference.check(workspace).map_err(|malformed| malformed.to_string())?;
        let nobody = || "no active plugin has references of this kind".to_owned();
        let (plugin, source) = self.source(|offered| reference.is_of(offered)).ok_or_else(nobody)?;
        let begin = || self.begin(&plugin, CallKind::Reference).map(Arc::new);
        match permits.entry(plugin.id().clone()).or_insert_with(begin).clone() {
            Ok(permit) => Ok(Desk { registry: self, plugin, source, workspace, permit }),
            Err(refused) => {
                plugin.vitals().begin(CallKind::Reference).end(CallOutcome::Refused);
                Err(refused.to_string())
            }
        }
    }

    fn source(&self, wanted: impl Fn(&ReferenceSource) -> bool) -> Option<(PluginHandle, ReferenceSource)> {
        self.active().into_iter().find_map(|plugin| {
            let source = plugin.manifest().reference_sources.iter().find(|source| wanted(source))?.clone();
            Some((plugin, source))
        })
    }
}

impl Desk<'_> {
    async fn submit(&self, reference: &Reference) -> Verdict {
        let watch = self.plugin.vitals().begin(CallKind::Reference);
        let (verdict, outcome) = self.authorize(reference, Purpose::Submission).await;
        watch.end(outcome);
        verdict
    }

    async fn search(&self, query: &str, limit: u32) -> Result<Found, ReferenceError> {
        let request = v1::SearchEntityReferencesRequest {
            source: self.source.source.clone(),
            workspace_id: self.workspace.to_owned(),
            query: query.to_owned(),
            limit: i32::try_from(limit).unwrap_or(i32::MAX),
        };
        let deadline = self.registry.shared.config.timing.reference_search_timeout;
        let answer = self.permit.client().search_entity_references(request, deadline).await;
        let failed = |error| ReferenceError::Call(self.plugin.id().clone(), self.plugin.without_secrets(error));
        let answer = answer.map_err(failed)?;
        if answer.candidates.len() > MAX_CANDIDATES || answer.encoded_len() > MAX_ANSWER_BYTES {
            return Err(ReferenceError::TooLarge(self.plugin.id().clone()));
        }
        let (references, malformed) = self.references(answer.candidates, limit);
        let asked = references.into_iter().map(|reference| async move {
            let (verdict, _) = self.authorize(&reference, Purpose::Search).await;
            verdict.allowed.then_some(reference)
        });
        let verdicts: Vec<Option<Reference>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        let denied = verdicts.iter().filter(|verdict| verdict.is_none()).count();
        Ok(Found { references: verdicts.into_iter().flatten().collect(), malformed, denied })
    }

    /// The first `limit` references to different entities, and how many candidates were none.
    fn references(&self, candidates: Vec<v1::EntityReferenceCandidate>, limit: u32) -> (Vec<Reference>, usize) {
        let (mut references, mut malformed) = (Vec::<Reference>::new(), 0);
        for candidate in candidates {
            let v1::EntityReferenceCandidate { provider_local_id: id, title, url, attributes } = candidate;
            let attributes = attributes.map(json_from_struct).unwrap_or_default();
            match Reference::of(&self.source, self.workspace, Candidate { id, title, url, attributes }) {
                Ok(reference) if references.iter().any(|known| known.name == reference.name) => {}
                Ok(reference) => references.push(reference),
                Err(_) => malformed += 1,
            }
        }
        references.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        (references, malformed)
    }

    /// No answer in time, an error, and a no are the same to whoever wants to use it (wire.md §2.1).
    async fn authorize(&self, reference: &Reference, purpose: Purpose) -> (Verdict, CallOutcome) {
        let object = match serde_json::to_value(reference) {
            Ok(Value::Object(object)) => object,
            Ok(_) | Err(_) => return (denied(reference, "the reference cannot be sent"), CallOutcome::Failed),
        };
        let request = v1::AuthorizeEntityReferenceRequest {
            source: self.source.source.clone(),
            workspace_id: self.workspace.to_owned(),
            purpose: purpose.word().to_owned(),
            reference: Some(struct_from_json(object)),
        };
        let deadline = self.registry.shared.config.timing.reference_authorize_timeout;
        match self.permit.client().authorize_entity_reference(request, deadline).await {
            Ok(answer) if answer.allowed => {
                let verdict = Verdict { name: reference.name.clone(), allowed: true, reason: String::new() };
                (verdict, CallOutcome::Answered)
            }
            Ok(answer) => match reference::reason(&answer.reason) {
                none if none.is_empty() => (denied(reference, "the plugin denies it"), CallOutcome::Answered),
                reason => (denied(reference, &reason), CallOutcome::Answered),
            },
            Err(error) => {
                let error = self.plugin.without_secrets(error);
                // The plugin's text may hold what it should not tell (field case 57).
                let shown = redaction::diagnostic(error.to_string(), &self.registry.shared.user_home);
                tracing::debug!(plugin.id = %self.plugin.id(), error = %shown, "a reference was not asked about, it counts as denied");
                match error {
                    CallError::TimedOut(_) => {
                        (denied(reference, "the plugin did not answer in time"), CallOutcome::TimedOut)
                    }
                    CallError::Disconnected | CallError::Refused { .. } | CallError::TooLarge(_) => {
                        (denied(reference, "the plugin failed to answer"), CallOutcome::Failed)
                    }
                }
            }
        }
    }
}

fn denied(reference: &Reference, reason: &str) -> Verdict {
    Verdict { name: clean::single_line(&reference.name, MAX_REF_BYTES), allowed: false, reason: reason.to_owned() }
}
