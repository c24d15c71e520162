//! What the registry does about versions: the note of a change, and keeping out what wants a newer host.

use actix::{ActorFutureExt, Context, Handler, Message, ResponseActFuture, WrapFuture, fut};

use super::{Registry, RegistryError};
use crate::{
    actors::{
        PluginView,
        plugin::{Condemn, Want},
        spawn::post,
    },
    domain::{id::PluginId, upgrade::LastUpgrade, version::check_minimum},
};

/// Notes how a change of the version stands; answered when it is on disk.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct NoteUpgrade {
    /// Whose.
    pub id: PluginId,
    /// How it stands; `None` when there has never been one.
    pub note: Option<LastUpgrade>,
}

/// Notes an operator's word on automatic updates; answered when it is on disk.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct SetAutoUpdate {
    /// Whose.
    pub id: String,
    /// The word; `None` follows the host's setting.
    pub word: Option<bool>,
}

impl Registry {
    /// Has the record written; answers with the plugin as it is then.
    fn write_then_view(
        &mut self,
        id: PluginId,
        ctx: &mut Context<Self>,
    ) -> ResponseActFuture<Self, Result<PluginView, RegistryError>> {
        let Some(saved) = self.save(&id, ctx) else {
            return Box::pin(fut::ready(Err(RegistryError::NotFound(id.as_str().to_owned()))));
        };
        Box::pin(saved.into_actor(self).map(move |written, actor, _| match written {
            Ok(Ok(())) => actor.entry(id.as_str()).map(Self::view),
            Ok(Err(error)) => Err(RegistryError::Storage(error)),
            Err(_) => Err(RegistryError::Stopping),
        }))
    }

    /// Keeps a plugin down whose manifest wants a newer host than this one says it is (contract/lifecycle.md §10 row
    /// 38): the setting may have changed since it was installed. One that should run goes to `error` and stays there.
    pub(super) fn check_host(&self, id: &PluginId, want: Want) -> Result<(), RegistryError> {
        let Some(entry) = self.entries.get(id).filter(|_| matches!(want, Want::Started | Want::Booted)) else {
            return Ok(());
        };
        let checked = check_minimum(&entry.record.manifest.min_kandev_version, &self.config.compat_version);
        checked.map_err(|error| {
            post(&entry.addr, Condemn(error.to_string()));
            error.into()
        })
    }
}

impl Handler<NoteUpgrade> for Registry {
    type Result = ResponseActFuture<Self, Result<PluginView, RegistryError>>;

    fn handle(&mut self, NoteUpgrade { id, note }: NoteUpgrade, ctx: &mut Context<Self>) -> Self::Result {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.record.state.last_upgrade = note;
        }
        self.write_then_view(id, ctx)
    }
}

impl Handler<SetAutoUpdate> for Registry {
    type Result = ResponseActFuture<Self, Result<PluginView, RegistryError>>;

    fn handle(&mut self, SetAutoUpdate { id, word }: SetAutoUpdate, ctx: &mut Context<Self>) -> Self::Result {
        let id = match self.entry(&id) {
            Ok(entry) => entry.record.id().clone(),
            Err(error) => return Box::pin(fut::ready(Err(error))),
        };
        // A change of version that is undone brings the record before back, with the word of before.
        if self.claims.is_held(&id) {
            return Box::pin(fut::ready(Err(RegistryError::Busy(id))));
        }
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.record.state.auto_update = word;
        }
        self.write_then_view(id, ctx)
    }
}
