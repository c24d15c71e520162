//! The event log: with its change or not at all, in the order of the commits, published once and kept for a time.

use std::time::Duration;

use sea_orm::ConnectionTrait;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::*;
use crate::{
    actors::events::{EventBusHandle, Heard, Listener},
    config::{Limits, Timing},
    domain::platform::{event::NewEvent, text::MAX_NAME_BYTES, whole_micros},
    platform::{housekeeping::Housekeeping, publisher::Publisher},
    store::{
        db::tests::{on_both_databases, postgres, sqlite, tamper},
        platform::{Entry, EventFilter, Retention},
    },
};

const POLL: Duration = Duration::from_millis(20);
const DEADLINE: Duration = Duration::from_secs(20);

async fn what_fails_is_neither_kept_nor_told(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let seen = world.log().await.len();
    // The rows are written, then the log refuses its own.
    tamper(&db, "ALTER TABLE event_log RENAME TO elsewhere").await;
    let failed = world.platform.tasks.create(&By::operator(), &titled("x")).await;
    assert!(matches!(failed, Err(PlatformError::Database(_))), "{failed:?}");
    tamper(&db, "ALTER TABLE elsewhere RENAME TO event_log").await;
    let list = world.platform.tasks.list(&Scope::All, &Default::default(), &PageRequest::default()).await.unwrap();
    assert_eq!((list.items.len(), world.log().await.len()), (0, seen));
}

async fn numbers_of_events_are_in_the_order_of_the_commits(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    let done = CancellationToken::new();
    // A reader that walks by number while others write: what it misses it would never see.
    let (store, stop) = (world.store.clone(), done.clone());
    let reader = tokio::spawn(async move {
        let (mut after, mut seen) = (0, Vec::new());
        loop {
            let last_round = stop.is_cancelled();
            let (events, last) = store.events_after(after, 1000).await.unwrap();
            after = last.unwrap_or(after);
            seen.extend(events.into_iter().map(|event| event.id));
            if last_round {
                return seen;
            }
        }
    });
    let writers = (0..8).map(|writer| {
        let platform = world.platform.clone();
        tokio::spawn(async move {
            for n in 0..15 {
                platform.tasks.create(&By::operator(), &titled(&format!("{writer}-{n}"))).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    done.cancel();
    let seen = reader.await.unwrap();
    let all: Vec<_> = world.log().await.into_iter().map(|event| event.id).collect();
    assert_eq!((seen.len(), seen), (126, all), "120 tasks, and the six events of a new workspace");
}

async fn heard(listener: &mut Listener, count: usize) -> Vec<(Uuid, String)> {
    let mut events = Vec::new();
    while events.len() < count {
        match tokio::time::timeout(DEADLINE, listener.next()).await.unwrap() {
            Some(Heard::Event(event)) => events.push((event.id, event.subject.clone())),
            other => panic!("{other:?}"),
        }
    }
    events
}

async fn the_log_reaches_the_bus(db: Db) {
    let world = World::new(db);
    let workspace = world.workspace("one").await;
    // What an earlier host committed and did not publish.
    let early = world.log().await;
    let bus = EventBusHandle::new(1 << 20);
    let (mut all, mut tasks) = (bus.listen(">", 1000), bus.listen("task.*", 1000));
    let stop = CancellationToken::new();
    let publisher = tokio::spawn(Publisher::new(world.store.clone(), bus.clone(), POLL, stop.clone()).run());
    let ids = |events: Vec<Logged>| events.into_iter().map(|event| (event.id, event.subject)).collect::<Vec<_>>();
    assert_eq!(heard(&mut all, early.len()).await, ids(early));
    let task = world.task("x").await;
    world.platform.tasks.delete(&By::operator(), &task.id, false, None).await.unwrap();
    assert_eq!(heard(&mut all, 2).await, ids(world.log().await.split_off(6)));
    let Some(Heard::Event(created)) = tasks.next().await else { panic!("an event") };
    assert_eq!((created.subject.as_str(), created.workspace_id.as_str()), ("task.created", workspace.id.as_str()));
    stop.cancel();
    publisher.await.unwrap();
    let last = world.store.last_event().await.unwrap();
    assert_eq!(world.store.event_cursor("bus").await.unwrap(), last);
    // The next host goes on where this one ended.
    world.task("y").await;
    let stop = CancellationToken::new();
    let publisher = tokio::spawn(Publisher::new(world.store.clone(), bus.clone(), POLL, stop.clone()).run());
    assert_eq!(heard(&mut all, 1).await, ids(world.log().await.split_off(8)));
    stop.cancel();
    publisher.await.unwrap();
}

#[actix::test]
async fn what_was_committed_is_published_in_order_by_this_host_or_the_next_on_sqlite() {
    let (_folder, db) = sqlite().await;
    the_log_reaches_the_bus(db).await;
}

#[actix::test]
async fn what_was_committed_is_published_in_order_by_this_host_or_the_next_on_postgres() {
    if let Some(db) = postgres().await {
        the_log_reaches_the_bus(db).await;
    }
}

async fn events_of_no_change_are_in_the_log_too(db: Db) {
    let world = World::new(db);
    let event = |subject: &str| NewEvent {
        subject: subject.to_owned(),
        workspace_id: "w".to_owned(),
        payload: map(json!({"a": [1]})),
    };
    let ids = [Uuid::now_v7(), Uuid::now_v7()];
    let about = Some("acme".to_owned());
    let at = whole_micros(OffsetDateTime::now_utc());
    let entries = [
        Entry { id: ids[0], event: event("plugin.acme.x"), about: None, at },
        Entry { id: ids[1], event: event("y"), about: about.clone(), at },
    ];
    world.store.append(&entries[..1], false).await.unwrap();
    world.store.append(&[], false).await.unwrap();
    // The first may have been committed before: it is not written twice.
    world.store.append(&entries, true).await.unwrap();
    assert_eq!(world.store.append(&entries, true).await, Ok(()));
    let log = world.log().await;
    assert_eq!(log.iter().map(|event| event.id).collect::<Vec<_>>(), ids);
    assert_eq!(
        (log[1].about.clone(), log[1].workspace_id.as_str(), Value::from(log[1].payload.clone()), log[1].created_at),
        (about, "w", json!({"a": [1]}), at)
    );
}

async fn the_log_is_read_page_by_page(db: Db) {
    let world = World::new(db);
    world.workspace("one").await;
    for n in 0..3 {
        world.task(&n.to_string()).await;
    }
    let events = &world.platform.events;
    let created = EventFilter { subjects: vec!["task.created".to_owned()], ..EventFilter::default() };
    let first = events.list(&Scope::All, &created, &PageRequest::new(2, "")).await.unwrap();
    assert_eq!((first.items.len(), first.has_more), (2, true));
    assert_eq!(first.cursor, Some(events.cursor_after(&first.items[1])));
    let rest = events.list(&Scope::All, &created, &PageRequest::new(2, &first.cursor.unwrap())).await.unwrap();
    assert_eq!((rest.items.len(), rest.has_more), (1, false));
    let end = events.cursor_after(&rest.items[0]);
    assert_eq!(rest.cursor.as_ref(), Some(&end));
    let after = async || events.list(&Scope::All, &created, &PageRequest::new(2, &end)).await.unwrap().items.len();
    assert_eq!(after().await, 0);
    world.task("later").await;
    assert_eq!(after().await, 1, "the end of the log goes on");
    assert_eq!(refused(events.list(&Scope::All, &created, &PageRequest::new(2, "7")).await), Refusal::BadCursor);
}

/// Many events of a subject that nobody asks for.
async fn put(db: &Db, count: u32) {
    tamper(
        db,
        &format!(
            "INSERT INTO event_log (event_id, subject, workspace_id, size_bytes, created_at, payload) \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) \
             SELECT 'filler ' || i, 'filler', '', 10, 1, '{{}}' FROM n"
        ),
    )
    .await;
}

async fn a_filter_that_matches_little_goes_on_behind_what_was_looked_at(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let events = &world.platform.events;
    let of = |subject: &str| EventFilter { subjects: vec![subject.to_owned()], ..EventFilter::default() };
    let page = async |filter: &EventFilter, cursor: &str| {
        let page = events.list(&Scope::All, filter, &PageRequest::new(50, cursor)).await.unwrap();
        (page.items.len(), page.cursor.unwrap_or_default(), page.has_more)
    };
    assert_eq!(events.list(&Scope::All, &of("x"), &PageRequest::default()).await.unwrap().items, []);
    put(&db, 12_000).await;
    world.workspace("two").await;
    let (found, cursor, has_more) = page(&of("workspace.created"), "").await;
    assert_eq!((found, has_more), (1, true), "the second is far behind");
    let (found, cursor, has_more) = page(&of("workspace.created"), &cursor).await;
    assert_eq!((found, has_more), (1, false));
    assert_eq!(page(&of("workspace.created"), &cursor).await, (0, cursor.clone(), false));
    let workspace = world.workspace("three").await;
    world.made(&By::operator(), &NewTask { workspace_id: workspace.id, ..titled("behind the end") }).await;
    assert_eq!(page(&of("task.created"), &cursor).await.0, 1);

    // Subjects and workspaces are no ids: plugins choose them, up to 512 bytes.
    let subject = format!("plugin.acme.{}", "x".repeat(400));
    let event = NewEvent { subject: subject.clone(), workspace_id: "w".repeat(300), payload: Map::new() };
    let entry = Entry { id: Uuid::now_v7(), event, about: None, at: OffsetDateTime::now_utc() };
    world.store.append(&[entry], false).await.unwrap();
    let long = EventFilter { workspace_ids: vec!["w".repeat(300), "a\0".to_owned()], ..of(&subject) };
    assert_eq!(page(&long, &cursor).await.0, 1);
    assert_eq!(page(&of("a\0"), &cursor).await.0, 0);
    let flood = EventFilter { subjects: vec!["x".to_owned(); 5001], ..EventFilter::default() };
    let refusal = text(events.list(&Scope::All, &flood, &PageRequest::default()).await);
    assert_eq!(refusal, "subject has 5001 entries, at most 5000 are allowed");
}

async fn an_event_that_cannot_be_read_holds_no_reader_up(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    tamper(&db, "UPDATE event_log SET payload = 'x' WHERE seq = 2").await;
    tamper(&db, "UPDATE event_log SET event_id = 'x' WHERE seq = 6").await;
    let events = &world.platform.events;
    let page = PageRequest::new(2, "");
    let first = events.list(&Scope::All, &EventFilter::default(), &page).await.unwrap();
    assert_eq!(first.items.iter().map(|event| event.seq).collect::<Vec<_>>(), [1]);
    let page = PageRequest::new(50, &first.cursor.unwrap());
    let rest = events.list(&Scope::All, &EventFilter::default(), &page).await.unwrap();
    assert_eq!(rest.items.iter().map(|event| event.seq).collect::<Vec<_>>(), [3, 4, 5]);
    let end = events.list(&Scope::All, &EventFilter::default(), &PageRequest::new(50, &rest.cursor.unwrap())).await;
    assert_eq!(end.unwrap().items, [], "the last one is passed too");
}

async fn a_reader_that_retention_has_overtaken_is_told(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let (events, log) = (&world.platform.events, world.log().await);
    let list = async |cursor: &str, filter: &EventFilter| {
        let page = events.list(&Scope::All, filter, &PageRequest::new(50, cursor)).await?;
        Ok::<_, PlatformError>(page.items.iter().map(|event| event.seq).collect::<Vec<_>>())
    };
    let (all, some) = (
        EventFilter::default(),
        EventFilter { subjects: vec!["workflow_step.created".to_owned()], ..EventFilter::default() },
    );
    world.store.delete_events(3, 100).await.unwrap();
    let oldest = events.cursor_after(&log[2]);
    for filter in [&all, &some] {
        let expired = refused(list(&events.cursor_after(&log[1]), filter).await);
        assert_eq!(expired, Refusal::CursorExpired { oldest: oldest.clone() });
        assert_eq!(list(&oldest, filter).await.unwrap(), [4, 5, 6], "it has seen all that is gone");
        assert_eq!(list("", filter).await.unwrap(), [4, 5, 6], "from the oldest that is kept");
    }
    world.store.delete_events(6, 100).await.unwrap();
    let expired = refused(list(&oldest, &all).await);
    assert_eq!(expired, Refusal::CursorExpired { oldest: events.cursor_after(&log[5]) }, "also of an empty log");
    assert_eq!(list(&events.cursor_after(&log[5]), &all).await.unwrap(), [0i64; 0]);
}

/// A publisher whose database does not answer ends when it is told to.
#[actix::test]
async fn a_publisher_ends_while_it_waits_for_the_database() {
    let Some(db) = postgres().await else { return };
    let world = World::new(db.clone());
    // Something to read, or the pause is not come to.
    world.workspace("one").await;
    let hang = "ALTER TABLE event_log RENAME TO elsewhere; \
                CREATE VIEW event_log AS SELECT elsewhere.* FROM pg_sleep(25) AS pause, elsewhere";
    tamper(&db, hang).await;
    let stop = CancellationToken::new();
    let publisher = Publisher::new(world.store.clone(), EventBusHandle::new(1 << 20), POLL, stop.clone());
    let publisher = tokio::spawn(publisher.run());
    let waits = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    let waits = sea_orm::Statement::from_string(sea_orm::DbBackend::Postgres, waits);
    let begun = tokio::time::Instant::now();
    while db.reader().query_one_raw(waits.clone()).await.unwrap().is_none() {
        assert!(begun.elapsed() < DEADLINE, "the publisher does not read");
        tokio::time::sleep(POLL).await;
    }
    stop.cancel();
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, publisher).await.expect("long before the read ends").unwrap();
}

async fn old_events_go_by_age_and_by_size_and_none_before_it_is_published(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let store = &world.store;
    let now = OffsetDateTime::now_utc();
    let keep = Retention { before: now - time::Duration::hours(1), bytes: 1 << 20, limit: 2 };
    let prune = async |keep: Retention, published: i64| match store.prunable_until(keep).await.unwrap() {
        Some(until) => store.delete_events(until.min(published), keep.limit).await.unwrap(),
        None => 0,
    };
    assert_eq!(prune(keep, i64::MAX).await, 0);
    tamper(&db, "UPDATE event_log SET created_at = 0 WHERE seq <= 3").await;
    assert_eq!(prune(keep, 0).await, 0, "not published yet");
    assert_eq!(prune(keep, i64::MAX).await, 2);
    assert_eq!(prune(keep, i64::MAX).await, 1);
    assert_eq!(prune(keep, i64::MAX).await, 0);
    let sizes: Vec<_> = world.log().await.iter().map(|event| (event.seq, event.subject.len())).collect();
    assert_eq!(sizes.len(), 3);
    let last = &world.log().await[2];
    let size = (last.subject.len() + Value::from(last.payload.clone()).to_string().len()) as u64;
    assert_eq!(prune(Retention { bytes: size, ..keep }, i64::MAX).await, 2);
    assert_eq!(world.log().await.iter().map(|event| event.seq).collect::<Vec<_>>(), [last.seq]);
    let next = world.workspace("two").await;
    assert!(world.log().await.iter().skip(1).all(|event| event.seq > last.seq && event.workspace_id == next.id));
}

async fn housekeeping_deletes_what_was_published_and_is_too_old(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let housekeeping =
        Housekeeping::new(world.store.clone(), &Timing::default(), &Limits::default(), CancellationToken::new());
    let later = OffsetDateTime::now_utc() + time::Duration::days(30);
    assert!(housekeeping.round(later).await.unwrap(), "there is more to do when they are published");
    assert_eq!(world.log().await.len(), 6);
    world.store.move_event_cursor("bus", 6).await.unwrap();
    world.store.move_event_cursor("bus", 4).await.unwrap();
    housekeeping.round(later).await.unwrap();
    assert_eq!(world.log().await.iter().map(|event| event.seq).collect::<Vec<_>>(), [5, 6]);
}

async fn much_that_is_written_is_looked_through_early(db: Db) {
    let world = World::new(db);
    let timing = Timing { event_poll: POLL, ..Timing::default() };
    let limits = Limits { event_log_bytes: 20_000, ..Limits::default() };
    let stop = CancellationToken::new();
    let housekeeping = Housekeeping::new(world.store.clone(), &timing, &limits, stop.clone());
    let housekeeping = tokio::spawn(housekeeping.run());
    let publisher = Publisher::new(world.store.clone(), EventBusHandle::new(1 << 20), POLL, stop.clone());
    let publisher = tokio::spawn(publisher.run());
    let payload = map(json!({"x": "x".repeat(1000)}));
    let event = NewEvent { subject: "y".to_owned(), workspace_id: String::new(), payload };
    for _ in 0..50 {
        let entry = Entry { id: Uuid::now_v7(), event: event.clone(), about: None, at: OffsetDateTime::now_utc() };
        world.store.append(&[entry], false).await.unwrap();
    }
    let smaller = async {
        // 19 fit; what is less than an eighth more waits for the next round.
        while world.log().await.len() > 22 {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::time::timeout(DEADLINE, smaller).await.expect("a round long before timing.housekeeping_interval");
    stop.cancel();
    housekeeping.await.unwrap();
    publisher.await.unwrap();
}

async fn the_largest_event_a_writer_can_cause_fits_the_bus(db: Db) {
    use crate::domain::platform::text::{MAX_OBJECT_BYTES, MAX_TEXT_BYTES};
    let world = World::new(db);
    world.workspace("one").await;
    let new = NewTask {
        description: "x".repeat(MAX_TEXT_BYTES),
        metadata: map(json!({ "a": "x".repeat(MAX_OBJECT_BYTES - 10) })),
        external_id: "x".repeat(MAX_NAME_BYTES),
        ..titled("x")
    };
    world.made(&By::operator(), &new).await;
    let event = world.log().await.pop().unwrap();
    let size = Value::from(event.payload).to_string().len() as u64;
    assert!(size < Limits::default().event_bytes, "{size}");
}

on_both_databases!(
    what_fails_is_neither_kept_nor_told,
    numbers_of_events_are_in_the_order_of_the_commits,
    events_of_no_change_are_in_the_log_too,
    the_log_is_read_page_by_page,
    a_filter_that_matches_little_goes_on_behind_what_was_looked_at,
    an_event_that_cannot_be_read_holds_no_reader_up,
    a_reader_that_retention_has_overtaken_is_told,
    old_events_go_by_age_and_by_size_and_none_before_it_is_published,
    housekeeping_deletes_what_was_published_and_is_too_old,
    much_that_is_written_is_looked_through_early,
    the_largest_event_a_writer_can_cause_fits_the_bus,
);
