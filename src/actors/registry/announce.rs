//! Telling the bus what changed: one event for each change of a plugin's status, in order.
//!
//! What is worth an event is `domain::lifecycle_event`'s decision. The registry is the right place since every change
//! passes through it, once and in order.

use std::collections::BTreeMap;

use actix::{Context, Handler};
use time::OffsetDateTime;

use super::{actor::Registry, messages::Departed};
use crate::domain::{
    id::PluginId,
    lifecycle_event::{Change, Standing},
    record::{PluginRecord, Status},
};

/// How each plugin stands as far as the world was told.
#[derive(Default)]
pub(super) struct Told(BTreeMap<PluginId, Standing>);

impl Told {
    /// What an earlier host has told. A plugin that this one will start has no process yet, whatever its record says.
    pub(super) fn remember(&mut self, record: &PluginRecord) {
        let mut standing = Standing::from(record);
        if standing.status == Status::Active {
            standing.status = Status::Registered;
        }
        self.0.insert(record.id().clone(), standing);
    }

    /// The plugin stands so now (`None`: it is gone); the change to tell.
    fn change(&mut self, id: &PluginId, now: Option<Standing>) -> Option<Change> {
        let at = OffsetDateTime::now_utc();
        let before = match &now {
            Some(now) => self.0.insert(id.clone(), now.clone()),
            None => self.0.remove(id),
        };
        Change::between(id, before.as_ref(), now.as_ref(), at)
    }
}

impl Registry {
    /// The plugin's record may have changed.
    pub(super) fn announce(&mut self, id: &PluginId) {
        let Some(entry) = self.entries.get(id) else { return };
        let now = Standing::from(&entry.record);
        if let Some(change) = self.told.change(id, Some(now)) {
            self.directory.has_changed();
            self.bus.announce(change);
        }
    }
}

impl Registry {
    /// Plugins whose record cannot be read are in `error` from the host's start on; the world learns how they go on.
    pub(super) fn tell_unreadable(&mut self) {
        self.unreadable.records().for_each(|record| self.told.remember(record));
    }
}

impl Handler<Departed> for Registry {
    type Result = ();

    fn handle(&mut self, Departed(id): Departed, _: &mut Context<Self>) {
        // An install that failed over an unreadable record leaves that as it was.
        let now = self.unreadable.get(id.as_str()).map(|view| Standing::from(&view.record));
        if let Some(change) = self.told.change(&id, now) {
            self.bus.announce(change);
        }
    }
}
