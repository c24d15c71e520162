//! Whose turn it is to save a plugin's config: one save at a time for each plugin, the others wait in order.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::OwnedMutexGuard, time::timeout};

use crate::domain::id::PluginId;

/// Turns of all plugins; clones share them.
#[derive(Clone)]
pub(super) struct Turns {
    waiting: Arc<Mutex<HashMap<PluginId, Arc<tokio::sync::Mutex<()>>>>>,
    limit: usize,
    patience: Duration,
}

/// Why there is no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// `limits.config_saves` of this plugin are under way or wait.
    TooMany,
    /// It did not come in `timing.config_wait`.
    TooLate,
}

/// Ends the turn when it is dropped.
pub(super) struct Turn {
    turns: Turns,
    plugin: PluginId,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// At most `limit` at once for each plugin, each of which waits at most `patience`.
    pub fn new(limit: usize, patience: Duration) -> Self {
        Self { waiting: Arc::default(), limit, patience }
    }

    /// Waits for the turn of one more save.
    pub async fn take(&self, plugin: &PluginId) -> Result<Turn, NoTurn> {
        let line = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let line = Arc::clone(waiting.entry(plugin.clone()).or_default());
            // One count is the map's, one is this caller's.
            if Arc::strong_count(&line) - 2 >= self.limit {
                return Err(NoTurn::TooMany);
            }
            line
        };
        // From here on the turn tidies up, also when its caller is gone.
        let mut turn = Turn { turns: self.clone(), plugin: plugin.clone(), guard: None };
        turn.guard = Some(timeout(self.patience, line.lock_owned()).await.map_err(|_| NoTurn::TooLate)?);
        Ok(turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut waiting = self.turns.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.guard = None;
        if waiting.get(&self.plugin).is_some_and(|line| Arc::strong_count(line) == 1) {
            waiting.remove(&self.plugin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> PluginId {
        PluginId::new(text).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn saves_of_one_plugin_wait_for_each_other_and_others_do_not() {
        let (turns, a) = (Turns::new(2, Duration::from_secs(5)), id("a"));
        let first = turns.take(&a).await.ok().unwrap();
        turns.take(&id("b")).await.ok().unwrap();
        let mut second = Box::pin(turns.take(&a));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert_eq!(turns.take(&id("a")).await.err(), Some(NoTurn::TooMany));
        drop(first);
        let second = second.await.ok().unwrap();
        let waited = tokio::time::Instant::now();
        assert_eq!(turns.take(&id("a")).await.err(), Some(NoTurn::TooLate));
        assert_eq!(waited.elapsed(), Duration::from_secs(5));
        drop(second);
        assert!(turns.waiting.lock().unwrap().is_empty(), "nothing is kept of plugins that nobody saves");
    }

    #[tokio::test]
    async fn a_caller_that_goes_leaves_no_trace() {
        let (turns, a) = (Turns::new(5, Duration::from_secs(5)), id("a"));
        let first = turns.take(&a).await.ok().unwrap();
        let mut gone = Box::pin(turns.take(&a));
        assert!(futures_util::poll!(&mut gone).is_pending());
        drop(gone);
        drop(first);
        assert!(turns.waiting.lock().unwrap().is_empty());
    }
}
