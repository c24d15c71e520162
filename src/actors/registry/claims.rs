//! Claims: an install, upgrade, rollback, uninstall or save of settings reserves its plugin's id while it works.
//!
//! A closed claim keeps every other command about the id out. An open one, while a new version is being started, lets
//! an operator overrule the start: enable, disable and uninstall pass, another install does not. What a claim is good
//! for is the business of the sequences in `installer`.

use std::{collections::BTreeMap, time::Duration};

use actix::{Addr, AsyncContext, Context, Handler, Message};

use super::{Registry, RegistryError};
use crate::{
    actors::{
        PluginView,
        spawn::{ask, post},
    },
    domain::id::PluginId,
};

/// Reserves an id. While the claim is held every other one of the id answers `Busy`.
#[derive(Message)]
#[rtype(result = "Result<Claimed, RegistryError>")]
pub struct Claim(pub PluginId);

/// [`Claim`] for an uninstall: takes an open claim over from its holder.
#[derive(Message)]
#[rtype(result = "Result<Claimed, RegistryError>")]
pub struct Seize(pub PluginId);

/// Opens or closes a claim. Answers with the plugin as it is now; an error when the claim was taken over.
#[derive(Message)]
#[rtype(result = "Result<PluginView, RegistryError>")]
pub struct SetOpen {
    id: PluginId,
    ticket: u64,
    open: bool,
}

/// Ends a claim.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Release {
    id: PluginId,
    ticket: u64,
}

/// A granted claim.
pub struct Claimed {
    /// Ends the claim when it is dropped.
    pub guard: ClaimGuard,
    /// The plugin as it is installed now.
    pub present: Option<PluginView>,
}

/// Ends a claim when it is dropped.
pub struct ClaimGuard {
    addr: Addr<Registry>,
    id: PluginId,
    ticket: u64,
}

impl ClaimGuard {
    /// From here on an operator may overrule what its holder does.
    pub fn open(&self) {
        post(&self.addr, SetOpen { id: self.id.clone(), ticket: self.ticket, open: true });
    }

    /// Nobody may any more; answers with what the operators have made of the plugin meanwhile.
    pub async fn close(&self, deadline: Duration) -> Result<PluginView, RegistryError> {
        ask(&self.addr, SetOpen { id: self.id.clone(), ticket: self.ticket, open: false }, deadline).await?
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        post(&self.addr, Release { id: self.id.clone(), ticket: self.ticket });
    }
}

/// Who holds what. A ticket tells a claim from a later one of the same id.
#[derive(Default)]
pub(super) struct Claims {
    held: BTreeMap<PluginId, Held>,
    tickets: u64,
}

struct Held {
    ticket: u64,
    open: bool,
}

impl Claims {
    /// The ticket of a new claim; `None` when another one is in the way.
    fn take(&mut self, id: &PluginId, over_open: bool) -> Option<u64> {
        if self.held.get(id).is_some_and(|held| !(over_open && held.open)) {
            return None;
        }
        self.tickets += 1;
        self.held.insert(id.clone(), Held { ticket: self.tickets, open: false });
        Some(self.tickets)
    }

    /// Whether the claim is still the ticket's.
    fn set_open(&mut self, id: &PluginId, ticket: u64, open: bool) -> bool {
        let held = self.held.get_mut(id).filter(|held| held.ticket == ticket);
        held.map(|held| held.open = open).is_some()
    }

    fn release(&mut self, id: &PluginId, ticket: u64) {
        if self.held.get(id).is_some_and(|held| held.ticket == ticket) {
            self.held.remove(id);
        }
    }

    /// Whether somebody holds the id, open or closed.
    pub(super) fn is_held(&self, id: &PluginId) -> bool {
        self.held.contains_key(id)
    }

    /// Whether commands about the id are kept out.
    pub(super) fn is_closed(&self, id: &PluginId) -> bool {
        self.held.get(id).is_some_and(|held| !held.open)
    }
}

impl Registry {
    fn claim(&mut self, id: PluginId, over_open: bool, ctx: &Context<Self>) -> Result<Claimed, RegistryError> {
        if self.stopping {
            return Err(RegistryError::Stopping);
        }
        let Some(ticket) = self.claims.take(&id, over_open) else {
            return Err(RegistryError::Busy(id));
        };
        let present = self.entries.get(&id).map(Self::view);
        Ok(Claimed { guard: ClaimGuard { addr: ctx.address(), id, ticket }, present })
    }
}

impl Handler<Claim> for Registry {
    type Result = Result<Claimed, RegistryError>;

    fn handle(&mut self, Claim(id): Claim, ctx: &mut Context<Self>) -> Self::Result {
        self.claim(id, false, ctx)
    }
}

impl Handler<Seize> for Registry {
    type Result = Result<Claimed, RegistryError>;

    fn handle(&mut self, Seize(id): Seize, ctx: &mut Context<Self>) -> Self::Result {
        self.claim(id, true, ctx)
    }
}

impl Handler<SetOpen> for Registry {
    type Result = Result<PluginView, RegistryError>;

    fn handle(&mut self, SetOpen { id, ticket, open }: SetOpen, _: &mut Context<Self>) -> Self::Result {
        if self.stopping {
            return Err(RegistryError::Stopping);
        }
        match (self.claims.set_open(&id, ticket, open), self.entries.get(&id)) {
            (true, Some(entry)) => Ok(Self::view(entry)),
            _ => Err(RegistryError::Overtaken { id, reason: "the plugin was uninstalled meanwhile".into() }),
        }
    }
}

impl Handler<Release> for Registry {
    type Result = ();

    fn handle(&mut self, Release { id, ticket }: Release, ctx: &mut Context<Self>) {
        self.claims.release(&id, ticket);
        self.make_up(&id, ctx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_claim_at_a_time_and_only_an_open_one_can_be_taken_over() {
        let (mut claims, id) = (Claims::default(), PluginId::new("acme").unwrap());
        let first = claims.take(&id, false).unwrap();
        assert!(claims.is_closed(&id));
        assert_eq!((claims.take(&id, false), claims.take(&id, true)), (None, None));
        assert!(claims.set_open(&id, first, true) && !claims.is_closed(&id));
        assert_eq!(claims.take(&id, false), None, "another install waits for the start");
        let second = claims.take(&id, true).unwrap();
        assert!(claims.is_closed(&id));
        assert!(!claims.set_open(&id, first, true), "the first holder has lost it");
        claims.release(&id, first);
        assert!(claims.is_closed(&id), "and cannot end the second's");
        claims.release(&id, second);
        assert!(!claims.is_closed(&id) && claims.take(&id, false).is_some());
    }
}
