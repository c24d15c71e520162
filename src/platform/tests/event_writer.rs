//! The way into the log of events that belong to no change: together, bounded, answered when they are committed, with
//! the workspace they belong to; and what becomes of lifecycle events when the database is away or the host stops.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use kandev_proto::struct_from_json;
use sea_orm::sqlx::{ConnectOptions, Connection, query, sqlite::SqliteConnectOptions};
use time::OffsetDateTime;
use tokio::task::{JoinHandle, unconstrained};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::*;
use crate::{
    actors::{
        NewEvent, PublishError,
        events::{EventBusHandle, Heard},
    },
    config::{Limits, Timing},
    domain::{
        lifecycle_event::{Change, PATTERN, Phase},
        platform::session::NewSession,
        subject::Subject,
    },
    platform::{
        Once,
        event_writer::{EventWriter, WriteError, Writing, Written},
    },
    store::db::{
        DbFault,
        tests::{on_both_databases, sqlite, tamper},
    },
};

const DEADLINE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(5);

/// A writer over a world, with its task not yet running.
struct Desk {
    world: World,
    bus: EventBusHandle,
    writer: EventWriter,
    writing: Option<Writing>,
    stop: CancellationToken,
}

impl Desk {
    fn new(db: Db) -> Self {
        Self::with(db, &Timing::default(), &Limits::default())
    }

    fn with(db: Db, timing: &Timing, limits: &Limits) -> Self {
        let (world, bus, stop) = (World::new(db), EventBusHandle::new(limits.event_bytes), CancellationToken::new());
        let (writer, writing) = EventWriter::new(world.store.clone(), bus.clone(), timing, limits, stop.clone());
        Self { world, bus, writer, writing: Some(writing), stop }
    }

    /// The task runs from now on.
    fn run(&mut self) -> JoinHandle<()> {
        tokio::spawn(self.writing.take().expect("a task that does not run yet").run())
    }

    /// So many events are published at once and wait for the task.
    fn wait_in_line(&self, count: usize) -> Vec<JoinHandle<Result<Uuid, WriteError>>> {
        self.put_in_line((0..count).map(|n| event("test.one", json!({"n": n}))))
    }

    /// Each is in the queue when this returns, not only on its way there: there is room.
    fn put_in_line(&self, events: impl Iterator<Item = NewEvent>) -> Vec<JoinHandle<Result<Uuid, WriteError>>> {
        let publish = |event| {
            let writer = self.writer.clone();
            let mut publish = Box::pin(async move { writer.publish(event).await });
            let mut first = Box::pin(unconstrained(&mut publish));
            assert!(first.as_mut().now_or_never().is_none(), "it waits");
            drop(first);
            tokio::spawn(publish)
        };
        events.map(publish).collect()
    }

    async fn subjects(&self) -> Vec<String> {
        self.world.told(0).await
    }
}

async fn until(what: &str, condition: impl AsyncFn() -> bool) {
    let reached = async {
        while !condition().await {
            tokio::time::sleep(STEP).await;
        }
    };
    tokio::time::timeout(DEADLINE, reached).await.expect(what);
}

fn event(subject: &str, payload: Value) -> NewEvent {
    let payload = Some(struct_from_json(map(payload)));
    NewEvent { subject: Subject::new(subject).unwrap(), workspace_id: String::new(), payload }
}

fn change(id: &str, to: Phase) -> Change {
    let at = OffsetDateTime::now_utc();
    let (version, reason) = ("1.0.0".to_owned(), None);
    Change { plugin_id: plugin(id), version, from: None, to, restarting: false, restart_count: 0, reason, at }
}

async fn what_waits_goes_into_the_log_together(db: Db) {
    let mut desk = Desk::new(db);
    let asked = desk.wait_in_line(300);
    let running = desk.run();
    let mut ids = Vec::new();
    for answer in asked {
        ids.push(answer.await.unwrap().unwrap());
    }
    // Whoever is answered finds its event there.
    let log: Vec<_> = desk.world.log().await.into_iter().map(|event| event.id).collect();
    ids.sort();
    let mut sorted = log.clone();
    sorted.sort();
    assert_eq!(sorted, ids);
    assert_eq!(desk.writer.written(), Written { groups: 2, events: 300, dropped: 0 }, "256, and the rest");
    desk.stop.cancel();
    running.await.unwrap();
    assert_eq!(desk.writer.publish(event("test.late", json!({}))).await, Err(WriteError::Stopping));
}

async fn large_events_share_a_transaction_up_to_its_bytes(db: Db) {
    let mut desk = Desk::new(db);
    let large = "x".repeat(1_000_000);
    let asked = desk.put_in_line((0..10).map(|_| event("test.large", json!({ "x": large }))));
    let running = desk.run();
    for answer in asked {
        answer.await.unwrap().unwrap();
    }
    assert_eq!(desk.writer.written(), Written { groups: 3, events: 10, dropped: 0 }, "4 MiB hold four of 1 MB");
    desk.stop.cancel();
    running.await.unwrap();
}

async fn the_workspace_is_the_envelopes_the_payloads_the_tasks_or_the_sessions(db: Db) {
    let mut desk = Desk::new(db);
    let workspace = desk.world.workspace("one").await;
    let task = desk.world.task("x").await;
    let new = NewSession { task_id: task.id.clone(), ..NewSession::default() };
    let session = desk.world.platform.sessions.create(&By::operator(), &new).await.unwrap();
    let seen = desk.world.log().await.len();
    let own = || workspace.id.clone();
    let cases = [
        ("envelope", json!({"workspace_id": "other"}), "w", "w".to_owned()),
        ("payload", json!({"workspace_id": "w2", "task_id": task.id}), "", "w2".to_owned()),
        ("task", json!({"task_id": task.id}), "", own()),
        ("session", json!({"session_id": session.id}), "", own()),
        ("session of an unknown task", json!({"session_id": session.id, "task_id": "gone"}), "", own()),
        ("nobody", json!({"session_id": "gone", "task_id": "gone"}), "", String::new()),
        ("unlawful", json!({"session_id": "a\u{0}", "task_id": 7, "workspace_id": "\u{0}"}), "", String::new()),
    ];
    let running = desk.run();
    for (_, payload, envelope, _) in &cases {
        let event = NewEvent { workspace_id: (*envelope).to_owned(), ..event("test.whose", payload.clone()) };
        desk.writer.publish(event).await.unwrap();
    }
    let log = desk.world.log().await.split_off(seen);
    for ((what, _, _, expected), logged) in cases.iter().zip(&log) {
        assert_eq!(logged.workspace_id, *expected, "{what}");
    }
    assert_eq!(log.len(), cases.len());
    desk.stop.cancel();
    running.await.unwrap();
}

async fn an_event_with_a_key_is_published_once_and_is_the_workspaces_that_its_payload_names(db: Db) {
    let desk = Desk::new(db);
    let workspace = desk.world.workspace("one").await;
    let task = desk.world.task("x").await;
    let seen = desk.world.log().await.len();
    let once = |key: &str, fingerprint: &str| Once {
        scope: "operator".to_owned(),
        key: key.to_owned(),
        fingerprint: fingerprint.to_owned(),
    };
    let about_task = || event("test.once", json!({"task_id": task.id}));
    // Without the task that writes groups: it does not need it.
    let key = once("k", "a");
    let asked = futures_util::future::join_all((0..8).map(|_| desk.writer.publish_once(about_task(), &key))).await;
    let id = asked[0].clone().unwrap();
    assert_eq!(asked, vec![Ok(id); 8]);
    assert_eq!(desk.writer.publish_once(about_task(), &once("k", "b")).await, Err(WriteError::Key(Refusal::KeyReused)));
    let second = desk.writer.publish_once(about_task(), &once("l", "a")).await.unwrap();
    let log = desk.world.log().await.split_off(seen);
    let rows: Vec<_> =
        log.iter().map(|event| (event.id, event.subject.as_str(), event.workspace_id.as_str())).collect();
    assert_eq!(rows, [id, second].map(|id| (id, "test.once", workspace.id.as_str())));
    assert_eq!(log[0].payload, map(json!({"task_id": task.id})));
}

async fn an_event_without_room_is_refused_and_one_that_nobody_waits_for_any_more_is_not_written(db: Db) {
    let timing = Timing { event_timeout: Duration::from_secs(2), ..Timing::default() };
    let limits = Limits { event_queue: 2, event_queue_bytes: 8 * 1024, ..Limits::default() };
    let mut desk = Desk::with(db, &timing, &limits);
    let asked = desk.wait_in_line(2);
    let full = desk.writer.publish(event("test.full", json!({}))).await;
    assert_eq!(full, Err(WriteError::Full), "no place");
    for answer in asked {
        assert_eq!(answer.await.unwrap(), Err(WriteError::TooLate(timing.event_timeout)));
    }
    let running = desk.run();
    desk.writer.publish(event("test.after", json!({}))).await.unwrap();
    // Larger than the whole room: it has that for itself.
    desk.writer.publish(event("test.large", json!({"x": "x".repeat(20_000)}))).await.unwrap();
    assert_eq!(desk.subjects().await, ["test.after", "test.large"]);
    desk.stop.cancel();
    running.await.unwrap();
}

async fn whoever_finds_no_room_waits_for_it(db: Db) {
    let mut desk = Desk::with(db, &Timing::default(), &Limits { event_queue: 1, ..Limits::default() });
    let running = desk.run();
    let publish = |_| {
        let writer = desk.writer.clone();
        tokio::spawn(async move { writer.emit(&plugin("acme"), "fast", None).await })
    };
    for answer in (0..100).map(publish).collect::<Vec<_>>() {
        answer.await.unwrap().unwrap();
    }
    assert_eq!(desk.world.log().await.len(), 100);
    desk.stop.cancel();
    running.await.unwrap();
}

async fn bytes_that_wait_are_bounded(db: Db) {
    let timing = Timing { event_timeout: Duration::from_secs(2), ..Timing::default() };
    let limits = Limits { event_queue_bytes: 8 * 1024, ..Limits::default() };
    let mut desk = Desk::with(db, &timing, &limits);
    let large = || event("test.large", json!({"x": "x".repeat(5000)}));
    let first = tokio::spawn({
        let (writer, event) = (desk.writer.clone(), large());
        async move { writer.publish(event).await }
    });
    until("it waits", async || desk.writer.waiting() == 1).await;
    assert_eq!(desk.writer.publish(large()).await, Err(WriteError::Full));
    assert_eq!(first.await.unwrap(), Err(WriteError::TooLate(timing.event_timeout)));
    let running = desk.run();
    desk.writer.publish(large()).await.unwrap();
    desk.stop.cancel();
    running.await.unwrap();
}

async fn names_and_sizes_are_refused_before_the_log(db: Db) {
    let limits = Limits { event_bytes: 100, ..Limits::default() };
    let mut desk = Desk::with(db, &Timing::default(), &limits);
    let running = desk.run();
    let refused = desk.writer.publish(event("test.large", json!({"x": "x".repeat(100)}))).await;
    assert!(matches!(refused, Err(WriteError::Refused(PublishError::TooLarge { limit: 100, .. }))), "{refused:?}");
    let refused = desk.writer.emit(&plugin("acme"), ".bad", None).await;
    assert_eq!(refused, Err(PublishError::InvalidName(".bad".to_owned()).into()));
    let refused = desk.writer.emit(&plugin("lifecycle.x"), "x", None).await;
    assert_eq!(refused, Err(PublishError::Reserved("x".to_owned()).into()));
    desk.writer.emit(&plugin("acme"), "done", None).await.unwrap();
    let log = desk.world.log().await;
    assert_eq!((log.len(), log[0].subject.as_str(), log[0].payload.len()), (1, "plugin.acme.done", 0));
    desk.stop.cancel();
    running.await.unwrap();
}

async fn lifecycle_events_keep_their_order_and_their_plugin_and_a_stop_writes_the_last(db: Db) {
    let mut desk = Desk::new(db);
    let mut listener = desk.bus.listen(PATTERN, 100);
    let told = [("a", Phase::Registered), ("b", Phase::Disabled), ("a", Phase::Active), ("a", Phase::Uninstalled)];
    for (id, to) in told {
        desk.bus.announce(change(id, to));
    }
    // Listeners hear it now, and not again from the log.
    for (_, to) in told {
        let Some(Heard::Event(heard)) = listener.waiting() else { panic!("an event") };
        assert_eq!(heard.subject, format!("plugin.lifecycle.{}", to.as_str()));
    }
    desk.stop.cancel();
    desk.run().await.unwrap();
    let log = desk.world.log().await;
    let found: Vec<_> =
        log.iter().map(|event| (event.about.as_deref().unwrap(), event.payload["to"].clone())).collect();
    assert_eq!(found, told.map(|(id, to)| (id, json!(to.as_str()))));
    assert_eq!(listener.waiting(), None);
    assert_eq!(desk.writer.written(), Written { groups: 1, events: 4, dropped: 0 });
}

async fn of_too_many_lifecycle_events_the_newest_stay(db: Db) {
    let limits = Limits { lifecycle_queue: 3, ..Limits::default() };
    let mut desk = Desk::with(db, &Timing::default(), &limits);
    for id in ["a", "b", "c", "d", "e"] {
        desk.bus.announce(change(id, Phase::Active));
    }
    desk.stop.cancel();
    desk.run().await.unwrap();
    let about: Vec<_> = desk.world.log().await.into_iter().filter_map(|event| event.about).collect();
    assert_eq!(about, ["c", "d", "e"]);
    assert_eq!(desk.writer.written(), Written { groups: 1, events: 3, dropped: 2 });
}

async fn an_event_that_the_database_refuses_takes_no_other_with_it(db: Db) {
    let mut desk = Desk::new(db.clone());
    // A rule that no event of this version breaks by itself.
    tamper(&db, "CREATE UNIQUE INDEX subject_once ON event_log (subject)").await;
    let asked = desk.wait_in_line(2);
    desk.bus.announce(change("a", Phase::Active));
    desk.bus.announce(change("b", Phase::Active));
    let running = desk.run();
    let mut written = 0;
    for answer in asked {
        match answer.await.unwrap() {
            Ok(_) => written += 1,
            other => assert!(matches!(other, Err(WriteError::Database(DbFault::Conflict(_)))), "{other:?}"),
        }
    }
    assert_eq!(written, 1);
    assert_eq!(desk.subjects().await, ["plugin.lifecycle.active", "test.one"]);
    assert_eq!(desk.writer.written(), Written { groups: 2, events: 2, dropped: 1 });
    desk.stop.cancel();
    running.await.unwrap();
}

on_both_databases!(
    what_waits_goes_into_the_log_together,
    large_events_share_a_transaction_up_to_its_bytes,
    the_workspace_is_the_envelopes_the_payloads_the_tasks_or_the_sessions,
    an_event_with_a_key_is_published_once_and_is_the_workspaces_that_its_payload_names,
    an_event_without_room_is_refused_and_one_that_nobody_waits_for_any_more_is_not_written,
    whoever_finds_no_room_waits_for_it,
    bytes_that_wait_are_bounded,
    names_and_sizes_are_refused_before_the_log,
    lifecycle_events_keep_their_order_and_their_plugin_and_a_stop_writes_the_last,
    of_too_many_lifecycle_events_the_newest_stay,
    an_event_that_the_database_refuses_takes_no_other_with_it,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_away_who_waits_is_told_and_lifecycle_events_come_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kandev.db");
    let timing = Timing { database_timeout: Duration::from_secs(2), ..Timing::default() };
    let url = format!("sqlite://{}", file.display());
    let db = Db::connect(&url.into(), &timing, &Limits::default()).await.unwrap();
    let mut desk = Desk::with(db, &timing, &Limits::default());
    let running = desk.run();
    let mut other = SqliteConnectOptions::new().filename(&file).connect().await.unwrap();
    query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    desk.bus.announce(change("a", Phase::Error));
    let refused = desk.writer.publish(event("test.down", json!({}))).await;
    assert!(matches!(refused, Err(WriteError::Database(DbFault::Unavailable(_)))), "{refused:?}");
    desk.bus.announce(change("b", Phase::Error));
    query("COMMIT").execute(&mut other).await.unwrap();
    until("they are written", async || desk.world.log().await.len() == 2).await;
    desk.writer.publish(event("test.back", json!({}))).await.unwrap();
    let log = desk.world.log().await;
    let about: Vec<_> = log.iter().map(|event| event.about.as_deref()).collect();
    assert_eq!((about, log[2].subject.as_str()), (vec![Some("a"), Some("b"), None], "test.back"));
    assert_eq!(desk.writer.written().dropped, 0);
    other.close().await.unwrap();
    desk.stop.cancel();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_without_a_database_ends_and_counts_what_is_lost() {
    let (_folder, db) = sqlite().await;
    let mut desk = Desk::new(db.clone());
    db.close().await.unwrap();
    let asked = desk.wait_in_line(1);
    desk.bus.announce(change("a", Phase::Active));
    desk.stop.cancel();
    tokio::time::timeout(DEADLINE, desk.run()).await.expect("it ends").unwrap();
    for answer in asked {
        let answer = answer.await.unwrap();
        assert!(matches!(answer, Err(WriteError::Database(DbFault::Unavailable(_)))), "{answer:?}");
    }
    assert_eq!(desk.writer.written(), Written { groups: 0, events: 0, dropped: 1 });
}

#[test]
fn writers_can_be_asked_from_any_task() {
    fn send<T: Send>(_: T) {}
    fn never_called(writer: &Arc<EventWriter>, event: NewEvent) {
        send(writer.publish(event));
        send(writer.emit(&plugin("acme"), "x", None));
    }
    let _ = never_called;
}
