//! The way for calls into a plugin's process. The plugin's actor opens and closes it; whoever holds the plugin's handle
//! passes without a message to the actor, because a webhook would pay for two changes of thread otherwise
//! (docs/performance.md).
//!
//! A permit is a lease on the process: a stop closes the door and then waits for the permits, for those of people and
//! agents longer than for others ([`UnderWay`]).

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::calls::{CallKind, UnderWay};
use crate::grpc::client::PluginClient;

/// Passed by calls; clones are the same door.
#[derive(Clone)]
pub struct Door {
    open: Arc<RwLock<Option<Open>>>,
    /// By kind, so that none takes another's.
    slots: Arc<[Arc<Semaphore>; CallKind::ALL.len()]>,
}

/// Numbers the openings of all doors, so that no two have one number while the host runs.
static OPENINGS: AtomicU64 = AtomicU64::new(0);

/// Where the calls go, and what a stop waits for.
struct Open {
    opening: u64,
    client: Arc<dyn PluginClient>,
    calls: UnderWay,
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
    /// As many calls of this kind are under way as may be.
    #[error("the plugin has too many {} under way", .0.noun())]
    TooMany(CallKind),
}

impl Door {
    /// A closed door; once open, so many calls of each kind may be under way at once.
    pub fn new(bounds: [usize; CallKind::ALL.len()]) -> Self {
        Self { open: Arc::default(), slots: Arc::new(bounds.map(|bound| Arc::new(Semaphore::new(bound)))) }
    }

    /// Lets calls pass to this process.
    pub fn open(&self, client: &Arc<dyn PluginClient>, calls: &UnderWay) {
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
    pub fn enter(&self, kind: CallKind) -> Result<CallPermit, CallRefused> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let Open { client, calls, .. } = open.as_ref().ok_or(CallRefused::NotRunning)?;
        let slots = Arc::clone(&self.slots[kind as usize]);
        let slot = slots.try_acquire_owned().map_err(|_| CallRefused::TooMany(kind))?;
        Ok(CallPermit { client: Arc::clone(client), _slot: slot, _in_flight: calls.of(kind).token() })
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

        async fn handle_action(
            &self,
            _: v1::PluginActionRequest,
            deadline: Duration,
        ) -> Result<v1::PluginActionResponse, CallError> {
            Err(CallError::TimedOut(deadline))
        }

        async fn invoke_agent_tool(
            &self,
            _: v1::AgentToolRequest,
            deadline: Duration,
        ) -> Result<v1::AgentToolResponse, CallError> {
            Err(CallError::TimedOut(deadline))
        }
    }

    fn opened(door: &Door) -> UnderWay {
        let calls = UnderWay::default();
        door.open(&(Arc::new(Deaf) as Arc<dyn PluginClient>), &calls);
        calls
    }

    #[test]
    fn only_an_open_door_lets_pass() {
        let door = Door::new([1; CallKind::ALL.len()]);
        for kind in CallKind::ALL {
            assert_eq!((door.opening(), door.enter(kind).unwrap_err()), (None, CallRefused::NotRunning));
        }
        opened(&door);
        for kind in CallKind::ALL {
            drop(door.enter(kind).unwrap());
        }
        door.close();
        assert_eq!(door.enter(CallKind::Webhook).unwrap_err(), CallRefused::NotRunning);
    }

    #[test]
    fn each_opening_has_a_number_of_its_own() {
        let (door, other) = (Door::new([1; CallKind::ALL.len()]), Door::new([1; CallKind::ALL.len()]));
        assert_eq!(door.opening(), None);
        let client: Arc<dyn PluginClient> = Arc::new(Deaf);
        let calls = UnderWay::default();
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
    fn as_many_calls_of_a_kind_pass_at_once_as_it_has_slots() {
        let door = Door::new([2, 1, 1, 1, 1]);
        opened(&door);
        let (first, _second) = (door.enter(CallKind::Webhook).unwrap(), door.enter(CallKind::Webhook).unwrap());
        assert_eq!(door.enter(CallKind::Webhook).unwrap_err(), CallRefused::TooMany(CallKind::Webhook));
        let _action = door.enter(CallKind::Action).unwrap();
        assert_eq!(door.enter(CallKind::Action).unwrap_err(), CallRefused::TooMany(CallKind::Action));
        drop(first);
        door.enter(CallKind::Webhook).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_for_a_call_that_passed_before_the_door_was_closed() {
        for kind in CallKind::ALL {
            let door = Door::new([1; CallKind::ALL.len()]);
            let calls = opened(&door);
            let call = door.enter(kind).unwrap();
            door.close();
            calls.close();
            let (long, begin) = (Duration::from_secs(60), tokio::time::Instant::now());
            let ended = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                drop(call);
            };
            tokio::join!(calls.drain(long, long), ended);
            assert_eq!(begin.elapsed().as_secs(), 1, "{kind:?}");
        }
    }

    #[test]
    fn the_end_of_the_actor_closes_the_door() {
        let door = Door::new([1; CallKind::ALL.len()]);
        opened(&door);
        drop(DoorKeeper(door.clone()));
        assert_eq!(door.enter(CallKind::Tool).unwrap_err(), CallRefused::NotRunning);
    }
}
