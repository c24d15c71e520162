//! The task that writes events: gathers what waits, commits it in one transaction, answers.
//!
//! When the database is away, those who wait are told so, and lifecycle events, whose tellers do not wait, are kept and
//! go first as soon as it is back. An event that the database refuses for itself does not take its neighbours with it.

use std::{
    collections::VecDeque,
    slice,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kandev_proto::json_from_struct;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{Request, whose};
use crate::{
    actors::events::{Changes, Relayed},
    domain::{platform::event, user_state::Stamp},
    store::{
        db::DbFault,
        platform::{Entry, PlatformStore},
        user_state::EntryWrite,
    },
};

/// Most events of one transaction.
const GROUP_EVENTS: usize = 256;

/// Their payloads together, as encoded for the wire; a larger one goes alone.
const GROUP_BYTES: u64 = 4 << 20;

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Figures {
    groups: AtomicU64,
    events: AtomicU64,
    dropped: AtomicU64,
}

/// What a writer has done since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Transactions.
    pub groups: u64,
    /// Events that were committed by them.
    pub events: u64,
    /// Lifecycle events that were told and did not get into the log.
    pub dropped: u64,
}

impl Figures {
    pub(super) fn committed(&self, events: u64) {
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Written {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Written { groups: read(&self.groups), events: read(&self.events), dropped: read(&self.dropped) }
    }
}

type Answer = oneshot::Sender<Result<Option<Stamp>, DbFault>>;

/// Writes events to the log until it is stopped.
pub struct Writing {
    store: PlatformStore,
    requests: mpsc::Receiver<Request>,
    changes: Changes,
    /// Lifecycle events of a transaction that failed, or came to an unknown end.
    kept: VecDeque<Entry>,
    /// Did not fit into the group before.
    next: Option<Request>,
    retry: Duration,
    figures: Arc<Figures>,
    stop: CancellationToken,
    told: bool,
}

/// What goes into one transaction; what is done with an entry, and who waits for it, is at its place.
#[derive(Default)]
struct Group {
    entries: Vec<Entry>,
    writes: Vec<Option<EntryWrite>>,
    answers: Vec<Option<Answer>>,
    bytes: u64,
    /// Some were tried before and may be in the log.
    again: bool,
    /// Room is given back when the group is done.
    rooms: Vec<OwnedSemaphorePermit>,
}

impl Group {
    fn has_room(&self) -> bool {
        self.entries.len() < GROUP_EVENTS && self.bytes < GROUP_BYTES
    }

    fn add(&mut self, entry: Entry, write: Option<EntryWrite>, answer: Option<Answer>) {
        self.entries.push(entry);
        self.writes.push(write);
        self.answers.push(answer);
    }

    /// Gives the request back when it does not fit.
    fn add_request(&mut self, request: Request) -> Option<Request> {
        if request.answer.is_closed() {
            return None;
        }
        if !self.entries.is_empty() && self.bytes + request.size > GROUP_BYTES {
            return Some(request);
        }
        let Request { entry, write, size, answer, room } = request;
        self.bytes += size;
        self.rooms.push(room);
        self.add(entry, write, Some(answer));
        None
    }
}

impl Writing {
    pub(super) fn new(
        store: PlatformStore,
        requests: mpsc::Receiver<Request>,
        changes: Changes,
        retry: Duration,
        figures: Arc<Figures>,
        stop: CancellationToken,
    ) -> Self {
        Self { store, requests, changes, kept: VecDeque::new(), next: None, retry, figures, stop, told: false }
    }

    /// Runs until it is stopped and everything that waits is written, or was tried once more.
    pub async fn run(mut self) {
        while let Some(group) = self.gather().await {
            let last = self.stop.is_cancelled();
            if self.write(group).await {
                continue;
            }
            if last {
                self.drop_changes(self.kept.len() as u64, "the host stops while the database is not available");
                self.kept.clear();
            }
            // Who waits was answered; the others are tried again after a pause.
            tokio::select! {
                () = tokio::time::sleep(self.retry) => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    /// Waits for what is next to be written; `None` when nothing is and nothing will be.
    async fn gather(&mut self) -> Option<Group> {
        loop {
            let group = self.gather_waiting();
            if !group.entries.is_empty() {
                return Some(group);
            }
            if self.stop.is_cancelled() {
                // Nobody gets room any more; whoever has it comes still.
                self.requests.close();
                self.next = Some(self.requests.recv().await?);
                continue;
            }
            tokio::select! {
                Some(request) = self.requests.recv() => self.next = Some(request),
                () = self.changes.arrived() => {}
                () = self.stop.cancelled() => {}
            }
        }
    }

    fn gather_waiting(&mut self) -> Group {
        let mut group = Group { again: !self.kept.is_empty(), ..Group::default() };
        for entry in self.kept.drain(..) {
            group.add(entry, None, None);
        }
        match self.changes.take_dropped() {
            0 => {}
            count => self.drop_changes(count, "more waited than limits.lifecycle_queue"),
        }
        while group.has_room() {
            let Some(change) = self.changes.take() else { break };
            group.add(entry_of(change), None, None);
        }
        while group.has_room() {
            let Some(request) = self.next.take().or_else(|| self.requests.try_recv().ok()) else { break };
            self.next = group.add_request(request);
            if self.next.is_some() {
                break;
            }
        }
        group
    }

    /// Commits a group and answers; false when the database is away.
    async fn write(&mut self, mut group: Group) -> bool {
        match self.commit(&mut group.entries, &group.writes, group.again).await {
            Err(DbFault::Statement(cause) | DbFault::Conflict(cause)) if group.entries.len() > 1 => {
                tracing::error!(cause, "events cannot be written together; each is tried alone");
                self.write_each(group).await
            }
            result => self.settle(result, group.entries, group.answers),
        }
    }

    async fn write_each(&mut self, group: Group) -> bool {
        let mut away = None;
        for ((mut entry, write), answer) in group.entries.into_iter().zip(group.writes).zip(group.answers) {
            let result = match &away {
                Some(fault) => Err(DbFault::clone(fault)),
                None => self.commit(slice::from_mut(&mut entry), slice::from_ref(&write), group.again).await,
            };
            if let Err(fault @ (DbFault::Lost(_) | DbFault::Unavailable(_))) = &result {
                away = Some(fault.clone());
            }
            self.settle(result, vec![entry], vec![answer]);
        }
        away.is_none()
    }

    /// The stamps of the writes that passed, at their places.
    async fn commit(
        &self,
        entries: &mut [Entry],
        writes: &[Option<EntryWrite>],
        again: bool,
    ) -> Result<Vec<Option<Stamp>>, DbFault> {
        let events = entries.iter_mut().map(|entry| &mut entry.event);
        whose::name_workspaces(&self.store, events.collect()).await?;
        let stamps = self.store.append_with(entries, writes, again).await?;
        let refused = writes.iter().zip(&stamps).filter(|(write, stamp)| write.is_some() && stamp.is_none()).count();
        self.figures.committed((entries.len() - refused) as u64);
        Ok(stamps)
    }

    /// Answers those who wait, and keeps the lifecycle events that are to be tried again.
    fn settle(
        &mut self,
        result: Result<Vec<Option<Stamp>>, DbFault>,
        entries: Vec<Entry>,
        answers: Vec<Option<Answer>>,
    ) -> bool {
        let away = matches!(result, Err(DbFault::Lost(_) | DbFault::Unavailable(_)));
        match &result {
            Ok(_) => self.told = false,
            Err(error) if away && !std::mem::replace(&mut self.told, true) => {
                tracing::warn!(%error, "events cannot be written to the log");
            }
            Err(_) => {}
        }
        for (at, (entry, answer)) in entries.into_iter().zip(answers).enumerate() {
            match (answer, &result) {
                // Whoever is gone meanwhile hears nothing.
                (Some(answer), Ok(stamps)) => {
                    let _ = answer.send(Ok(stamps.get(at).copied().flatten()));
                }
                (Some(answer), Err(error)) => {
                    let _ = answer.send(Err(error.clone()));
                }
                (None, Ok(_)) => {}
                (None, Err(_)) if away => self.kept.push_back(entry),
                (None, Err(error)) => self.drop_changes(1, &error.to_string()),
            }
        }
        !away
    }

    fn drop_changes(&self, count: u64, cause: &str) {
        if count > 0 {
            self.figures.dropped.fetch_add(count, Ordering::Relaxed);
            tracing::error!(count, cause, "lifecycle events were dropped; plugins will not get them");
        }
    }
}

fn entry_of(Relayed { id, subject, workspace_id, payload, at, about }: Relayed) -> Entry {
    let payload = json_from_struct(payload.unwrap_or_default());
    Entry { id, event: event::NewEvent { subject, workspace_id, payload }, about, at }
}
