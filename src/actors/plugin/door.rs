//! The way for calls into a plugin's process. The plugin's actor opens and closes it; whoever holds the plugin's handle
//! passes without a message to the actor, because a webhook would pay for two changes of thread otherwise
//! (docs/performance.md).

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::{TaskTracker, task_tracker::TaskTrackerToken};

use crate::grpc::client::PluginClient;

/// Passed by calls; clones are the same door.
#[derive(Clone)]
pub struct Door {
    open: Arc<RwLock<Option<Open>>>,
    slots: Arc<Semaphore>,
}

/// Numbers the openings of all doors, so that no two have one number while the host runs.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// Where the calls go, and what a stop waits for.
struct Open {
    opening: u64,
    client: Arc<dyn PluginClient>,
    calls: TaskTracker,
}

/// Everything an edge needs for one call into the plugin.
pub struct CallPermit {
    client: Arc<dyn PluginClient>,
    _slot: OwnedSemaphorePermit,
    _in_flight: TaskTrackerToken,
}

/// Why no call can be made now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CallRefused {
    /// Not started, stopping, or waiting for a restart.
    #[error("the plugin is not running")]
    NotRunning,
    /// `limits.webhook_concurrency` calls are under way.
    #[error("the plugin has too many calls under way")]
    TooMany,
}

impl Door {
    /// A closed door; once open, `calls` may be under way at once.
    pub fn new(calls: usize) -> Self {
        Self { open: Arc::default(), slots: Arc::new(Semaphore::new(calls)) }
    }

    /// Lets calls pass to this process.
    pub fn open(&self, client: &Arc<dyn PluginClient>, calls: &TaskTracker) {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        // Said again of the same process it is the same opening.
        let opening = match open.as_ref() {
            Some(before) if Arc::ptr_eq(&before.client, client) => before.opening,
            _ => OPENINGS.fetch_add(1, Ordering::Relaxed),
        };
        *open = Some(Open { opening, client: Arc::clone(client), calls: calls.clone() });
    }

    /// Lets no further call pass. When this returns, every call that passed is among those a stop waits for.
    pub fn close(&self) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The number of this opening, which no other opening of any door has; `None` while it is closed.
    pub fn opening(&self) -> Option<u64> {
        self.open.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|open| open.opening)
    }

    /// Asks to make one call.
    pub fn enter(&self) -> Result<CallPermit, CallRefused> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let Open { client, calls, .. } = open.as_ref().ok_or(CallRefused::NotRunning)?;
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| CallRefused::TooMany)?;
        Ok(CallPermit { client: Arc::clone(client), _slot: slot, _in_flight: calls.token() })
    }
}

/// Closes the door when the actor ends, however it ends.
pub struct DoorKeeper(pub Door);

impl Drop for DoorKeeper {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl CallPermit {
    /// The plugin's calls. The permit must live until the answer was taken: a stop waits for it.
    pub fn client(&self) -> &dyn PluginClient {
        &*self.client
    }
}

impl fmt::Debug for CallPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPermit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use kandev_proto::v1;

    use super::*;
    use crate::grpc::client::CallError;

    struct Deaf;

    #[async_trait]
    impl PluginClient for Deaf {
        async fn deliver_event(&self, _: v1::Event, deadline: Duration) -> Result<(), CallError> {
            Err(CallError::TimedOut(deadline))
        }

        async fn handle_webhook(
            &self,
            _: v1::WebhookRequest,
            deadline: Duration,
        ) -> Result<v1::WebhookResponse, CallError> {
            Err(CallError::TimedOut(deadline))
        }
    }

    fn opened(door: &Door) -> TaskTracker {
        let calls = TaskTracker::new();
        door.open(&(Arc::new(Deaf) as Arc<dyn PluginClient>), &calls);
        calls
    }

    #[test]
    fn only_an_open_door_lets_pass() {
        let door = Door::new(1);
        assert_eq!(door.enter().unwrap_err(), CallRefused::NotRunning);
        opened(&door);
        drop(door.enter().unwrap());
        door.close();
        assert_eq!(door.enter().unwrap_err(), CallRefused::NotRunning);
    }

    #[test]
    fn each_opening_has_a_number_of_its_own() {
        let (door, other) = (Door::new(1), Door::new(1));
        assert_eq!(door.opening(), None);
        let client: Arc<dyn PluginClient> = Arc::new(Deaf);
        let calls = TaskTracker::new();
        door.open(&client, &calls);
        let first = door.opening().unwrap();
        door.open(&client, &calls);
        assert_eq!(door.opening(), Some(first));
        opened(&other);
        door.close();
        assert_eq!(door.opening(), None);
        door.open(&client, &calls);
        assert!(![Some(first), other.opening(), None].contains(&door.opening()));
    }

    #[test]
    fn as_many_calls_pass_at_once_as_there_are_slots() {
        let door = Door::new(2);
        opened(&door);
        let (first, _second) = (door.enter().unwrap(), door.enter().unwrap());
        assert_eq!(door.enter().unwrap_err(), CallRefused::TooMany);
        drop(first);
        door.enter().unwrap();
    }

    #[tokio::test]
    async fn a_stop_waits_for_a_call_that_passed_before_the_door_was_closed() {
        let door = Door::new(1);
        let calls = opened(&door);
        let call = door.enter().unwrap();
        door.close();
        calls.close();
        assert!(futures_util::FutureExt::now_or_never(calls.wait()).is_none());
        drop(call);
        calls.wait().await;
    }

    #[test]
    fn the_end_of_the_actor_closes_the_door() {
        let door = Door::new(1);
        opened(&door);
        drop(DoorKeeper(door.clone()));
        assert_eq!(door.enter().unwrap_err(), CallRefused::NotRunning);
    }
}
