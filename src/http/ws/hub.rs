//! Who is connected by `/ws`, and the one task that tells them of events.
//!
//! A frame is written once and shared by all that get it. Each connection has a line of bounded length; one whose line
//! is full is let go, since what it would miss nobody could tell it. The hub itself listens with a bound too: what did
//! not fit there everyone is told of, by number.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytestring::ByteString;
use prost_types::{Struct, value::Kind};
use serde_json::json;
use time::OffsetDateTime;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    actors::{
        EventBusHandle,
        events::{Heard, Listener},
    },
    config::Limits,
    domain::gateway::{
        frame::notification,
        interest::{About, Full, Interests, Topic},
        notice::{Audience, notice},
    },
};

/// Told when the hub itself missed events.
const MISSED: &str = "gateway.events_missed";

/// All connections; clones are the same one.
#[derive(Clone, Debug)]
pub struct Hub {
    members: Arc<Mutex<HashMap<u64, Member>>>,
    last: Arc<AtomicU64>,
    most: usize,
    line: usize,
    closed: Arc<AtomicBool>,
    slow: Arc<AtomicU64>,
    _task: Arc<AbortOnDropHandle<()>>,
}

#[derive(Debug)]
struct Member {
    user: String,
    interests: Interests,
    line: mpsc::Sender<ByteString>,
}

/// The place of one connection; dropped, it is free again.
pub struct Seat {
    hub: Hub,
    number: u64,
    /// Frames for it. Ends when it fell behind, and when the hub is closed.
    pub frames: mpsc::Receiver<ByteString>,
}

impl Hub {
    /// Follows the bus from now on. At most `limits.ws_connections` sit in it, each with a line of `limits.ws_queue`
    /// frames; `limits.ws_hub_queue` events wait to be handed out. Must be called on a tokio runtime.
    pub fn start(bus: &EventBusHandle, limits: &Limits) -> Self {
        let members = Arc::default();
        let task = tokio::spawn(follow(Arc::clone(&members), bus.listen(">", limits.ws_hub_queue)));
        Self {
            members,
            last: Arc::default(),
            most: limits.ws_connections,
            line: limits.ws_queue,
            closed: Arc::default(),
            slow: Arc::default(),
            _task: Arc::new(AbortOnDropHandle::new(task)),
        }
    }

    /// A place for a connection of `user`; none when all are taken, or when the host stops.
    pub fn sit(&self, user: &str) -> Option<Seat> {
        let mut members = lock(&self.members);
        if members.len() >= self.most || self.is_closed() {
            return None;
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let (line, frames) = mpsc::channel(self.line);
        members.insert(number, Member { user: user.to_owned(), interests: Interests::default(), line });
        Some(Seat { hub: self.clone(), number, frames })
    }

    /// Connections now, and how many were let go since the start because they did not read.
    pub fn figures(&self) -> (usize, u64) {
        (lock(&self.members).len(), self.slow.load(Ordering::Relaxed))
    }

    /// Every connection is to end, and none begins: their lines end, so that each learns of it where it waits anyway.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        lock(&self.members).clear();
    }

    /// Whether every connection is to end.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

impl Seat {
    /// Is told of this too.
    ///
    /// # Errors
    /// [`Full`] when it follows as much as it may.
    pub fn follow(&self, topic: Topic, id: &str) -> Result<(), Full> {
        match lock(&self.hub.members).get_mut(&self.number) {
            Some(member) => member.interests.follow(topic, id),
            None => Ok(()),
        }
    }

    /// Is told of it no longer.
    pub fn leave(&self, topic: Topic, id: &str) {
        if let Some(member) = lock(&self.hub.members).get_mut(&self.number) {
            member.interests.leave(topic, id);
        }
    }

    /// Counts this connection among those that did not read.
    pub fn let_go(&self) {
        self.hub.slow.fetch_add(1, Ordering::Relaxed);
    }

    /// Where it sits.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.hub.members).remove(&self.number);
    }
}

fn lock(members: &Mutex<HashMap<u64, Member>>) -> MutexGuard<'_, HashMap<u64, Member>> {
    members.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow(members: Arc<Mutex<HashMap<u64, Member>>>, mut listener: Listener) {
    while let Some(heard) = listener.next().await {
        match heard {
            Heard::Event(event) => tell(&members, &event.subject, event.payload.as_ref()),
            Heard::Missed(count) => {
                tracing::warn!(count, "the connections of /ws missed events");
                let frame = notification(MISSED, &json!({"count": count}), OffsetDateTime::now_utc());
                hand_out(&members, &frame.into(), Audience::Everyone, About::default());
            }
        }
    }
}

fn tell(members: &Mutex<HashMap<u64, Member>>, subject: &str, payload: Option<&Struct>) {
    let Some((action, audience)) = notice(subject) else { return };
    let text = |key: &str| match payload.and_then(|payload| payload.fields.get(key)).map(|value| &value.kind) {
        Some(Some(Kind::StringValue(text))) => text.as_str(),
        _ => "",
    };
    let about = About { task: text("task_id"), session: text("session_id"), user: text("user_id") };
    let wanted = lock(members).values().any(|member| member.interests.wants(&member.user, audience, about));
    if !wanted {
        return;
    }
    let payload = payload.map(|payload| kandev_proto::json_from_struct(payload.clone()));
    let frame = notification(&action, &payload, OffsetDateTime::now_utc());
    hand_out(members, &frame.into(), audience, about);
}

fn hand_out(members: &Mutex<HashMap<u64, Member>>, frame: &ByteString, audience: Audience, about: About<'_>) {
    lock(members).retain(|_, member| {
        if !member.interests.wants(&member.user, audience, about) {
            return true;
        }
        // Without its end of the line the connection learns of it when it has sent what there was.
        member.line.try_send(frame.clone()).is_ok()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::actors::Relayed;

    fn hub(connections: usize, line: usize) -> (Hub, EventBusHandle) {
        let bus = EventBusHandle::new(1 << 20);
        let limits = Limits { ws_connections: connections, ws_queue: line, ..Limits::default() };
        (Hub::start(&bus, &limits), bus)
    }

    fn event(subject: &str, payload: Value) -> Relayed {
        Relayed {
            id: uuid::Uuid::nil(),
            subject: subject.to_owned(),
            workspace_id: String::new(),
            payload: payload.as_object().cloned().map(kandev_proto::struct_from_json),
            at: OffsetDateTime::UNIX_EPOCH,
            about: None,
        }
    }

    async fn next(seat: &mut Seat) -> Option<(String, Value)> {
        let frame: Value = serde_json::from_str(&seat.frames.recv().await?).unwrap();
        Some((frame["action"].as_str().unwrap().to_owned(), frame["payload"].clone()))
    }

    #[tokio::test]
    async fn everyone_hears_of_tasks_and_a_follower_of_what_is_in_its_session() {
        let (hub, bus) = hub(10, 10);
        let (mut one, mut two) = (hub.sit("me").unwrap(), hub.sit("me").unwrap());
        one.follow(Topic::Session, "s").unwrap();
        bus.relay(event("message.added", json!({"session_id": "s", "n": 1})));
        bus.relay(event("message.added", json!({"session_id": "else"})));
        bus.relay(event("task.created", json!({"task_id": "t"})));
        let message = ("session.message.added".to_owned(), json!({"session_id": "s", "n": 1}));
        let task = ("task.created".to_owned(), json!({"task_id": "t"}));
        assert_eq!((next(&mut one).await, next(&mut one).await), (Some(message), Some(task.clone())));
        assert_eq!(next(&mut two).await, Some(task));
    }

    #[tokio::test]
    async fn a_frame_is_written_once_for_all_that_get_it() {
        let (hub, bus) = hub(10, 10);
        let (mut one, mut two) = (hub.sit("me").unwrap(), hub.sit("you").unwrap());
        bus.relay(event("task.created", json!({"task_id": "t"})));
        let (first, second) = (one.frames.recv().await.unwrap(), two.frames.recv().await.unwrap());
        assert_eq!((first.as_ptr(), first.len()), (second.as_ptr(), second.len()), "the same bytes in memory");
    }

    #[tokio::test]
    async fn what_is_a_users_own_reaches_all_of_that_users_connections_and_no_other() {
        let (hub, bus) = hub(10, 10);
        let (mut one, mut two, mut other) = (hub.sit("me").unwrap(), hub.sit("me").unwrap(), hub.sit("you").unwrap());
        bus.relay(event("plugin.user-state.updated", json!({"user_id": "me"})));
        bus.relay(event("task.deleted", json!({})));
        for mine in [&mut one, &mut two] {
            assert_eq!(next(mine).await.unwrap().0, "plugin.user-state.updated");
        }
        assert_eq!(next(&mut other).await.unwrap().0, "task.deleted");
    }

    #[tokio::test]
    async fn a_connection_that_does_not_read_is_let_go_after_what_it_was_sent() {
        let (hub, bus) = hub(10, 2);
        let (mut slow, mut quick) = (hub.sit("me").unwrap(), hub.sit("me").unwrap());
        for n in 0..3 {
            bus.relay(event("task.created", json!({"n": n})));
            assert_eq!(next(&mut quick).await.unwrap().1, json!({"n": n}));
        }
        assert_eq!(next(&mut slow).await.unwrap().1, json!({"n": 0}));
        assert_eq!(next(&mut slow).await.unwrap().1, json!({"n": 1}));
        assert_eq!(next(&mut slow).await, None);
        slow.let_go();
        assert_eq!(hub.figures(), (1, 1));
    }

    #[tokio::test]
    async fn places_are_bounded_and_free_again_when_a_connection_ends() {
        let (hub, _bus) = hub(1, 1);
        let seat = hub.sit("me").unwrap();
        assert!(hub.sit("me").is_none());
        drop(seat);
        assert!(hub.sit("me").is_some());
    }

    #[tokio::test]
    async fn a_close_ends_every_line_and_nobody_sits_down_any_more() {
        let (hub, _bus) = hub(10, 10);
        let mut seats = [hub.sit("me").unwrap(), hub.sit("you").unwrap()];
        assert!(!hub.is_closed());
        hub.close();
        for seat in &mut seats {
            assert_eq!(next(seat).await, None);
            assert!(seat.hub().is_closed());
        }
        assert!(hub.sit("me").is_none());
    }
}
