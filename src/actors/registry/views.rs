//! What can be seen of the plugins: of those that are known, and of those whose record could not be read.
//!
//! A record that cannot be read is shown in `error` and left alone: nothing is started, changed or written for it until
//! its operator has repaired it, installed the package again or uninstalled the plugin.

use std::{collections::BTreeMap, sync::Arc};

use actix::{Context, Handler, Message, MessageResult};

use super::{
    RegistryError,
    actor::{Entry, Registry},
    messages::{Get, List, Records, Show},
};
use crate::{
    actors::PluginView,
    domain::{
        id::PluginId,
        record::{PluginRecord, Status},
    },
};

/// Plugins whose record could not be read when the host started.
#[derive(Default)]
pub(super) struct Unreadable(BTreeMap<PluginId, PluginView>);

impl Unreadable {
    /// These, as they are to be shown.
    pub(super) fn new(records: Vec<PluginRecord>) -> Self {
        let view = |record: PluginRecord| (record.id().clone(), PluginView { record, vitals: Arc::default() });
        Self(records.into_iter().map(view).collect())
    }

    pub(super) fn get(&self, id: &str) -> Option<&PluginView> {
        self.0.get(id)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &PluginRecord> {
        self.0.values().map(|view| &view.record)
    }

    /// A record of the plugin was written, or its file is gone.
    pub(super) fn forget(&mut self, id: &PluginId) {
        self.0.remove(id);
    }
}

/// The unreadable record of a plugin is gone, with everything else of it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ForgetUnreadable(pub PluginId);

impl Registry {
    pub(super) fn entry(&self, id: &str) -> Result<&Entry, RegistryError> {
        self.entries.get(id).ok_or_else(|| match self.unreadable.get(id) {
            Some(view) => RegistryError::RecordUnreadable(view.record.id().clone()),
            None => RegistryError::NotFound(id.to_owned()),
        })
    }

    /// A plugin that an earlier host has left running has no process before its actor says so.
    pub(super) fn view(entry: &Entry) -> PluginView {
        let mut record = entry.record.clone();
        if record.state.status == Status::Active && entry.is_unheard() {
            record.state.status = Status::Registered;
        }
        PluginView { record, vitals: Arc::clone(&entry.vitals) }
    }
}

impl Handler<List> for Registry {
    type Result = MessageResult<List>;

    fn handle(&mut self, _: List, _: &mut Context<Self>) -> Self::Result {
        let unreadable = self.unreadable.0.iter().map(|(id, view)| (id, view.clone()));
        let known = self.entries.iter().map(|(id, entry)| (id, Self::view(entry)));
        // One that was installed again is known.
        let views: BTreeMap<_, _> = unreadable.chain(known).collect();
        MessageResult(views.into_values().collect())
    }
}

impl Handler<Records> for Registry {
    type Result = MessageResult<Records>;

    fn handle(&mut self, _: Records, _: &mut Context<Self>) -> Self::Result {
        MessageResult(self.entries.values().map(|entry| entry.record.clone()).collect())
    }
}

impl Handler<Get> for Registry {
    type Result = Result<PluginView, RegistryError>;

    fn handle(&mut self, Get(id): Get, _: &mut Context<Self>) -> Self::Result {
        self.entry(&id).map(Self::view)
    }
}

impl Handler<Show> for Registry {
    type Result = Result<PluginView, RegistryError>;

    fn handle(&mut self, Show(id): Show, _: &mut Context<Self>) -> Self::Result {
        let unreadable = || self.unreadable.get(&id).cloned();
        self.entry(&id).map(Self::view).or_else(|error| unreadable().ok_or(error))
    }
}

impl Handler<ForgetUnreadable> for Registry {
    type Result = ();

    fn handle(&mut self, ForgetUnreadable(id): ForgetUnreadable, _: &mut Context<Self>) {
        self.unreadable.forget(&id);
    }
}
