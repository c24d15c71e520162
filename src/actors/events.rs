//! The event bus: matches a published event with the plugins' subscriptions and puts it into their lines, one delivery
//! for each plugin however many of its patterns match (contract/lifecycle.md §10 row 11).
//!
//! It is fed from the event log alone ([`EventBusHandle::relay`], `platform::publisher`); what may be written there it
//! decides, since it knows the plugins. It keeps no event and waits for no plugin: queues, order and retries are the
//! plugin actors'. The host's own services follow it by a [`Listener`].

mod changes;
mod listener;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prost::Message as _;
use prost_types::{Struct, Value, value::Kind};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use uuid::Uuid;

pub use changes::Changes;
pub use listener::{Heard, Listener};

use super::plugin::Inlet;
use crate::domain::{
    id::PluginId,
    lifecycle_event::{self, Change},
    subject::{Pattern, Subject, matches, owner_conflict, plugin_event_name},
};

/// An event to be written to the log and published.
#[derive(Debug, Clone)]
pub struct NewEvent {
    /// Concrete subject.
    pub subject: Subject,
    /// Empty when unknown: then it is derived from the payload, when that says.
    pub workspace_id: String,
    /// The event's data.
    pub payload: Option<Struct>,
}

/// A published event, shared by all its deliveries.
#[derive(Debug, PartialEq)]
pub struct Event {
    /// The same in every delivery and retry.
    pub id: Uuid,
    /// Concrete subject.
    pub subject: String,
    /// When it was published: RFC 3339, UTC, whole seconds.
    pub occurred_at: String,
    /// Empty when unknown.
    pub workspace_id: String,
    /// The event's data.
    pub payload: Option<Struct>,
    /// When it was published, for its age.
    pub published: std::time::Instant,
}

/// An event that the log has, on its way to the bus; or a lifecycle event on its way to the log.
#[derive(Debug, Clone)]
pub struct Relayed {
    /// Its id in the log.
    pub id: Uuid,
    /// Concrete subject.
    pub subject: String,
    /// Whose; empty when nobody's.
    pub workspace_id: String,
    /// The event's data.
    pub payload: Option<Struct>,
    /// When it happened.
    pub at: OffsetDateTime,
    /// The plugin that does not get it.
    pub about: Option<String>,
}

/// Why an event was not published.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// A plugin's event name breaks the rule.
    #[error(
        "event name \"{0}\" is not allowed: use 1 to 128 letters, digits, dots, underscores or hyphens, beginning with \
         a letter or digit"
    )]
    InvalidName(String),
    /// The subject would look like another plugin's event.
    #[error("event name \"{name}\" falls under the events of plugin \"{owner}\"; choose another name")]
    ForeignPrefix {
        /// The refused name.
        name: String,
        /// Whose events it would look like.
        owner: String,
    },
    /// The subject would be one of the host's own.
    #[error(
        "event name \"{0}\" falls under \"plugin.lifecycle.\", where the host alone publishes; choose another name or id"
    )]
    Reserved(String),
    /// The payload is larger than `limits.event_bytes`.
    #[error("the event payload has {size} bytes, at most {limit} are accepted (limits.event_bytes)")]
    TooLarge {
        /// Bytes as encoded for the wire.
        size: u64,
        /// The bound.
        limit: u64,
    },
    /// The payload's objects and lists are nested deeper than every plugin's library can read.
    #[error("the event payload is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// The bus; clones are the same one.
///
/// Publishing is done where it is asked for, under one short lock, so that all plugins see all events in one order; a
/// message to an actor for each event would cost more than handing it out (docs/performance.md).
#[derive(Clone)]
pub struct EventBusHandle {
    followers: Arc<Mutex<Followers>>,
    max_bytes: u64,
}

/// Who is told of events.
#[derive(Default)]
struct Followers {
    subscriptions: BTreeMap<PluginId, Subscription>,
    ears: Vec<listener::Ear>,
    log: Option<changes::Line>,
}

struct Subscription {
    patterns: Vec<Pattern>,
    inlet: Inlet,
}

impl EventBusHandle {
    /// A bus without followers. `max_bytes` bounds a payload, as it is encoded for the wire.
    pub fn new(max_bytes: u64) -> Self {
        Self { followers: Arc::default(), max_bytes }
    }

    /// Whether a payload may be published: its size and its depth.
    pub fn check(&self, payload: Option<&Struct>) -> Result<(), PublishError> {
        if payload.is_some_and(|payload| payload.fields.values().any(|value| deeper_than(value, MAX_DEPTH - 1))) {
            return Err(PublishError::TooDeep);
        }
        let size = payload.map_or(0, |payload| payload.encoded_len() as u64);
        if size > self.max_bytes {
            return Err(PublishError::TooLarge { size, limit: self.max_bytes });
        }
        Ok(())
    }

    /// The subject `plugin.<emitter>.<name>` of what a plugin emits (wire.md `EmitEvent`), when it may use that name.
    pub fn subject_of(&self, emitter: &PluginId, name: &str) -> Result<Subject, PublishError> {
        if !plugin_event_name(name) {
            return Err(PublishError::InvalidName(crate::domain::clean::single_line(name, 128)));
        }
        let followers = self.followers();
        let installed = followers.subscriptions.keys().map(PluginId::as_str);
        if let Some(owner) = owner_conflict(emitter.as_str(), name, installed) {
            return Err(PublishError::ForeignPrefix { name: name.to_owned(), owner: owner.to_owned() });
        }
        let Some(subject) = Subject::of_plugin(emitter, name) else {
            return Err(PublishError::InvalidName(name.to_owned()));
        };
        if lifecycle_event::is_reserved(subject.as_str()) {
            return Err(PublishError::Reserved(name.to_owned()));
        }
        Ok(subject)
    }

    /// Tells of a change of a plugin's status: every listener at once, and every subscribed plugin but the one it is
    /// about when the log has it. An event about itself could crash a plugin each time it starts.
    ///
    /// Actors call this, so it waits for nothing: see [`Self::record_changes`].
    pub fn announce(&self, change: Change) {
        let (subject, payload) = match (change.subject(), serde_json::to_value(&change)) {
            (Ok(subject), Ok(serde_json::Value::Object(payload))) => (subject, payload),
            (subject, payload) => {
                tracing::error!(plugin.id = %change.plugin_id, ?subject, ?payload, "a lifecycle event has no form");
                return;
            }
        };
        let relayed = Relayed {
            id: Uuid::now_v7(),
            subject: subject.as_str().to_owned(),
            workspace_id: String::new(),
            payload: Some(kandev_proto::struct_from_json(payload)),
            at: OffsetDateTime::now_utc(),
            about: Some(change.plugin_id.as_str().to_owned()),
        };
        let mut followers = self.followers();
        let event = Event::of(relayed.clone());
        followers.tell_listeners(&event);
        match &followers.log {
            Some(line) => line.put(relayed),
            None => followers.hand_out(&event, relayed.about.as_deref()),
        }
    }

    /// From now on lifecycle events go into this line, whose end is the log: plugins get them when they come back from
    /// there ([`Self::relay`]). At most `room` wait; then the oldest goes. Without a log plugins get them at once.
    pub fn record_changes(&self, room: usize) -> Changes {
        let (line, changes) = changes::new(room);
        self.followers().log = Some(line);
        changes
    }

    /// Publishes an event of the log: every subscribed plugin's queue has it when this returns. Its size and depth were
    /// bounded when it was written. Listeners have heard of a lifecycle event when it happened.
    pub fn relay(&self, event: Relayed) {
        let about = event.about.clone();
        let event = Event::of(event);
        let mut followers = self.followers();
        if !lifecycle_event::is_reserved(&event.subject) {
            followers.tell_listeners(&event);
        }
        followers.hand_out(&event, about.as_deref());
    }

    /// Follows every event that matches `pattern` and is published from now on. At most `room` wait to be taken; more
    /// are counted, not kept.
    ///
    /// A listener hears lifecycle events of this host when they happen, whether the log can be written or not, and none
    /// of an earlier host: whoever follows how plugins stand does so now.
    pub fn listen(&self, pattern: &str, room: usize) -> Listener {
        let (ear, listener) = listener::new(Pattern::new(pattern), room);
        self.followers().ears.push(ear);
        listener
    }

    /// Tells the bus of an installed plugin; replaces what it knew of it.
    pub(super) fn subscribe(&self, id: PluginId, patterns: Vec<Pattern>, inlet: Inlet) {
        self.followers().subscriptions.insert(id, Subscription { patterns, inlet });
    }

    /// The plugin is uninstalled.
    pub(super) fn unsubscribe(&self, id: &PluginId) {
        self.followers().subscriptions.remove(id);
    }

    fn followers(&self) -> MutexGuard<'_, Followers> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followers {
    fn tell_listeners(&mut self, event: &Arc<Event>) {
        self.ears.retain(|ear| ear.hear(event));
    }

    /// `about` gets nothing.
    fn hand_out(&self, event: &Arc<Event>, about: Option<&str>) {
        for (id, subscription) in &self.subscriptions {
            if about != Some(id.as_str())
                && subscription.patterns.iter().any(|pattern| matches(pattern.as_str(), &event.subject))
            {
                subscription.inlet.put(Arc::clone(event));
            }
        }
    }
}

impl Event {
    /// It is published now.
    fn of(Relayed { id, subject, workspace_id, payload, at, about: _ }: Relayed) -> Arc<Self> {
        let published = tokio::time::Instant::now().into_std();
        Arc::new(Self { id, subject, occurred_at: whole_seconds(at), workspace_id, payload, published })
    }
}

/// Protobuf libraries bound the nesting of a message, prost at 100: a JSON level costs three of them.
const MAX_DEPTH: usize = 32;

/// Whether objects and lists are nested in `value` more than `levels` deep, itself included.
fn deeper_than(value: &Value, levels: usize) -> bool {
    let deeper = |value: &Value| deeper_than(value, levels - 1);
    match &value.kind {
        Some(Kind::StructValue(inner)) => levels == 0 || inner.fields.values().any(deeper),
        Some(Kind::ListValue(inner)) => levels == 0 || inner.values.iter().any(deeper),
        _ => false,
    }
}

/// RFC 3339, UTC.
fn whole_seconds(at: OffsetDateTime) -> String {
    at.replace_nanosecond(0).unwrap_or(OffsetDateTime::UNIX_EPOCH).format(&Rfc3339).unwrap_or_default()
}
