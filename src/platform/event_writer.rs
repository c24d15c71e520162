//! The way of an event into the log when no service writes it with a change: what plugins emit, what the operator
//! publishes, and the lifecycle events of plugins.
//!
//! [`EventWriter`] is for those who wait: they are answered when their event is committed, and a fast one is slowed by
//! that. [`Writing`] is the one task that writes. What waits goes into the log together: the more write at once, the
//! fewer transactions each costs. Publishing is the publisher's part, which reads the log; what may be published is the
//! bus's decision.

mod group;
mod whose;

use std::{sync::Arc, time::Duration};

use kandev_proto::json_from_struct;
use prost::Message as _;
use prost_types::Struct;
use time::OffsetDateTime;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::group::Figures;
pub use self::group::{Writing, Written};
use crate::{
    actors::events::{EventBusHandle, NewEvent, PublishError},
    config::{Limits, Timing},
    domain::{
        id::PluginId,
        platform::{Scope, event, refusal::Refusal},
        subject::Subject,
        user_state::Stamp,
    },
    store::{
        db::DbFault,
        platform::{Entry, Once, PlatformError, PlatformStore, Work},
        user_state::EntryWrite,
    },
};

/// A part of the queue's bytes: permits are counted in these.
const KIB: u64 = 1024;

/// Why an event is not known to be in the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// It may not be published.
    #[error(transparent)]
    Refused(#[from] PublishError),
    /// There was no room among the events that wait to be written.
    #[error(
        "too many events wait to be written, try again later (limits.event_queue, limits.event_queue_bytes); this one is \
         not published"
    )]
    Full,
    /// It had room and was not written in time.
    #[error(
        "the event was not written within {} ms (timing.event_timeout), try again; it may be published nevertheless",
        .0.as_millis()
    )]
    TooLate(Duration),
    /// The host ends.
    #[error("the host is stopping")]
    Stopping,
    /// Its idempotency key came with another request before.
    #[error(transparent)]
    Key(#[from] Refusal),
    /// The database failed. When it is not available the event may be published nevertheless.
    #[error(transparent)]
    Database(#[from] DbFault),
}

/// Takes events and answers when they are in the log; clones are the same one.
#[derive(Clone)]
pub struct EventWriter {
    bus: EventBusHandle,
    store: PlatformStore,
    queue: mpsc::Sender<Request>,
    bytes: Arc<Semaphore>,
    all_bytes: u32,
    timeout: Duration,
    figures: Arc<Figures>,
}

/// An event that waits, and who waits for it.
struct Request {
    entry: Entry,
    /// What it tells of, when that is done together with it.
    write: Option<EntryWrite>,
    size: u64,
    answer: oneshot::Sender<Result<Option<Stamp>, DbFault>>,
    /// Given back when it is written.
    room: OwnedSemaphorePermit,
}

impl EventWriter {
    /// A writer and the task of it, which must be run. From now on lifecycle events of this bus go to the log; what is
    /// told before must have no follower.
    ///
    /// `stop` has the task write what waits and end; whoever comes later is told that the host is stopping.
    pub fn new(
        store: PlatformStore,
        bus: EventBusHandle,
        timing: &Timing,
        limits: &Limits,
        stop: CancellationToken,
    ) -> (Self, Writing) {
        let (queue, requests) = mpsc::channel(limits.event_queue);
        let all_bytes = u32::try_from(limits.event_queue_bytes.div_ceil(KIB)).unwrap_or(u32::MAX);
        let figures = Arc::<Figures>::default();
        let changes = bus.record_changes(limits.lifecycle_queue);
        let writing = Writing::new(store.clone(), requests, changes, timing.database_retry, Arc::clone(&figures), stop);
        let bytes = Arc::new(Semaphore::new(all_bytes as usize));
        (Self { bus, store, queue, bytes, all_bytes, timeout: timing.event_timeout, figures }, writing)
    }

    /// Publishes an event; its id when it is in the log.
    pub async fn publish(&self, event: NewEvent) -> Result<Uuid, WriteError> {
        self.bus.check(event.payload.as_ref())?;
        self.write(event, None).await.map(|(id, _)| id)
    }

    /// Does a write and publishes the event that tells of it, both or neither. The write's stamp when both are
    /// committed; none when the write did not pass.
    pub async fn publish_with(&self, event: NewEvent, write: EntryWrite) -> Result<Option<Stamp>, WriteError> {
        self.bus.check(event.payload.as_ref())?;
        self.write(event, Some(write)).await.map(|(_, stamp)| stamp)
    }

    /// Publishes an event once for a key; its id when it is in the log, and the same id when it is asked again. It is
    /// written by itself, together with the key.
    pub async fn publish_once(&self, event: NewEvent, once: &Once) -> Result<Uuid, WriteError> {
        self.bus.check(event.payload.as_ref())?;
        let mut event = logged(event.subject, event.workspace_id, event.payload.unwrap_or_default());
        let written = async {
            whose::name_workspaces(&self.store, vec![&mut event]).await?;
            let work = |work: Work| {
                work.tell(event.clone());
                async move { Ok(work.first_event()) }
            };
            self.store.write(&Scope::All, Some(once), work).await
        };
        match timeout(self.timeout, written).await {
            Ok(Ok(id)) => {
                self.figures.committed(1);
                Ok(id)
            }
            Ok(Err(PlatformError::Refused(refusal))) => Err(WriteError::Key(refusal)),
            Ok(Err(PlatformError::Database(fault))) => Err(WriteError::Database(fault)),
            Err(_) => Err(WriteError::TooLate(self.timeout)),
        }
    }

    /// Publishes `plugin.<emitter>.<name>` for a plugin (wire.md `EmitEvent`); its id when it is in the log.
    pub async fn emit(&self, emitter: &PluginId, name: &str, payload: Option<Struct>) -> Result<Uuid, WriteError> {
        let subject = self.bus.subject_of(emitter, name)?;
        self.bus.check(payload.as_ref())?;
        self.write(NewEvent { subject, workspace_id: String::new(), payload }, None).await.map(|(id, _)| id)
    }

    /// What was done since the start.
    pub fn written(&self) -> Written {
        self.figures.read()
    }

    /// Events that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    async fn write(&self, event: NewEvent, write: Option<EntryWrite>) -> Result<(Uuid, Option<Stamp>), WriteError> {
        let NewEvent { subject, workspace_id, payload } = event;
        let deadline = Instant::now() + self.timeout;
        let payload = payload.unwrap_or_default();
        let size = (subject.as_str().len() + payload.encoded_len()) as u64;
        let size = size + write.as_ref().map_or(0, EntryWrite::size);
        // One that is larger than all room has it for itself.
        let cost = u32::try_from(size.div_ceil(KIB)).unwrap_or(u32::MAX).min(self.all_bytes);
        let room = async {
            let bytes = Arc::clone(&self.bytes).acquire_many_owned(cost).await.map_err(|_| WriteError::Stopping)?;
            let place = self.queue.reserve().await.map_err(|_| WriteError::Stopping)?;
            Ok::<_, WriteError>((bytes, place))
        };
        let (bytes, place) = timeout_at(deadline, room).await.map_err(|_| WriteError::Full)??;
        let id = Uuid::now_v7();
        let event = logged(subject, workspace_id, payload);
        let entry = Entry { id, event, about: None, at: OffsetDateTime::now_utc() };
        let (answer, answered) = oneshot::channel();
        place.send(Request { entry, write, size, answer, room: bytes });
        match timeout_at(deadline, answered).await {
            Ok(Ok(result)) => Ok(result.map(|stamp| (id, stamp))?),
            Ok(Err(_)) => Err(WriteError::Stopping),
            Err(_) => Err(WriteError::TooLate(self.timeout)),
        }
    }
}

/// As the log has it.
fn logged(subject: Subject, workspace_id: String, payload: Struct) -> event::NewEvent {
    event::NewEvent { subject: subject.as_str().to_owned(), workspace_id, payload: json_from_struct(payload) }
}
