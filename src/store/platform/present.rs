//! Workspaces that were found lately: whether there is one is asked with every call into a plugin, and the answer
//! seldom changes.
//!
//! Only that there is one is kept, and nothing of what is in its row. All changes go by this host (one host has one
//! database), so it is enough that each commit that takes a workspace away empties this before it is answered. How a
//! commit ended of which no answer came nobody knows: from then on everything is looked up.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{PlatformError, PlatformStore};
use crate::domain::platform::{Scope, workspace::Workspace};

/// Most workspaces that are kept; with one more it begins anew.
const MOST: usize = 1000;

/// The ids; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Present(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    ids: HashSet<String>,
    /// How often it was emptied because workspaces went.
    emptied: u64,
    off: bool,
}

/// Held over a commit that takes workspaces away.
pub(super) struct Leaving {
    present: Present,
    ended: bool,
}

impl PlatformStore {
    /// Whether there is this workspace and the scope sees it: refused as not found when not.
    pub async fn see_workspace(&self, scope: &Scope, id: &str) -> Result<(), PlatformError> {
        let of_all = *scope == Scope::All;
        if of_all && self.present.has(id) {
            return Ok(());
        }
        let moment = self.present.moment();
        // In a box, since the future is large and seldom needed.
        Box::pin(self.find::<Workspace>(scope, id)).await?;
        if of_all {
            self.present.add(id, moment);
        }
        Ok(())
    }
}

impl Present {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, id: &str) -> bool {
        self.lock().ids.contains(id)
    }

    /// To be asked before the database is.
    fn moment(&self) -> u64 {
        self.lock().emptied
    }

    /// The database had it when it was asked, after this moment.
    fn add(&self, id: &str, moment: u64) {
        let mut state = self.lock();
        if state.off || state.emptied != moment {
            return;
        }
        if state.ids.len() >= MOST {
            state.ids.clear();
        }
        state.ids.insert(id.to_owned());
    }

    /// A commit that takes workspaces away begins.
    pub(super) fn leaving(&self) -> Leaving {
        Leaving { present: self.clone(), ended: false }
    }
}

impl Leaving {
    /// It is committed.
    pub(super) fn done(mut self) {
        self.ended = true;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut state = self.present.lock();
        state.ids.clear();
        state.emptied += 1;
        state.off |= !self.ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(present: &Present, id: &str) {
        present.add(id, present.moment());
    }

    #[test]
    fn what_was_found_is_known_until_a_workspace_goes() {
        let present = Present::default();
        found(&present, "a");
        assert_eq!((present.has("a"), present.has("b")), (true, false));
        let leaving = present.leaving();
        assert!(present.has("a"), "it may still come to nothing");
        leaving.done();
        assert!(!present.has("a"));
        found(&present, "a");
        assert!(present.has("a"));
    }

    #[test]
    fn what_was_looked_up_before_a_workspace_went_is_not_kept() {
        let present = Present::default();
        let before = present.moment();
        present.leaving().done();
        present.add("a", before);
        assert!(!present.has("a"));
    }

    #[test]
    fn nothing_is_kept_any_more_when_nobody_knows_how_a_commit_ended() {
        let present = Present::default();
        found(&present, "a");
        drop(present.leaving());
        found(&present, "a");
        assert!(!present.has("a"));
    }

    #[test]
    fn the_number_of_ids_is_bounded() {
        let present = Present::default();
        (0..=MOST).for_each(|n| found(&present, &n.to_string()));
        assert_eq!(present.lock().ids, HashSet::from([MOST.to_string()]));
    }
}
