//! Idempotency keys.

use sea_orm::{EntityTrait, QueryOrder};
use time::{Duration, OffsetDateTime};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    config::{Limits, Timing},
    domain::platform::refusal::Class,
    entities::idempotency_key,
    platform::housekeeping::Housekeeping,
    store::{
        db::tests::{on_both_databases, tamper},
        platform::Once,
    },
};

fn key(key: &str, fingerprint: &str) -> Option<Once> {
    let (key, fingerprint) = (key.to_owned(), fingerprint.to_owned());
    Some(Once { scope: "operator".to_owned(), key, fingerprint })
}

async fn a_request_with_a_key_is_done_once_and_answered_the_same(db: Db) {
    let world = World::new(db);
    let tasks = &world.platform.tasks;
    world.workspace("one").await;
    let by = By::operator().with(key("k1", "f1"));
    let first = tasks.create(&by, &titled("x")).await.unwrap();
    let told = world.log().await.len();
    assert_eq!(tasks.create(&by, &titled("x")).await.unwrap(), first);
    assert_eq!(world.log().await.len(), told);
    let other = By::operator().with(key("k1", "f2"));
    let refusal = refused(tasks.create(&other, &titled("y")).await);
    assert_eq!((refusal.clone(), refusal.class()), (Refusal::KeyReused, Class::Conflict));

    let by = By::operator().with(key("k2", "f1"));
    let new = titled("at once");
    let attempts = futures_util::future::join_all((0..8).map(|_| tasks.create(&by, &new))).await;
    let made: Vec<_> = attempts.into_iter().map(Result::unwrap).collect();
    assert!(made.iter().all(|created| *created == made[0]));

    let by = By::operator().with(key("k3", "f1"));
    assert_eq!(
        text(tasks.create(&by, &NewTask { parent_id: "none".to_owned(), ..titled("x") }).await),
        "invalid parent_id: no such task"
    );
    assert!(tasks.create(&by, &titled("x")).await.is_ok(), "a refused request does not use its key up");

    let by = By::operator().with(key("k4", "f1"));
    tasks.delete(&by, &first.task.id, false, None).await.unwrap();
    tasks.delete(&by, &first.task.id, false, None).await.unwrap();
}

async fn a_key_is_forgotten_when_it_is_old(db: Db) {
    let world = World::new(db);
    let tasks = &world.platform.tasks;
    world.workspace("one").await;
    let by = By::operator().with(key("k1", "f1"));
    let first = tasks.create(&by, &titled("x")).await.unwrap();
    let now = OffsetDateTime::now_utc();
    assert_eq!(world.store.forget_keys(now - Duration::hours(24), 100).await.unwrap(), 0);
    assert_eq!(world.store.forget_keys(now + Duration::hours(1), 100).await.unwrap(), 1);
    assert_ne!(tasks.create(&by, &titled("x")).await.unwrap().task.id, first.task.id);
}

/// Puts keys there: their number is their age, their answers have 1000 bytes.
async fn put(db: &Db, count: usize) {
    let answer = "x".repeat(1000);
    let rows: Vec<_> = (1..=count).map(|n| format!("('operator', 'k{n:04}', 'f', '{answer}', {})", n * 10)).collect();
    let columns = "scope, key, fingerprint, result, created_at";
    tamper(db, &format!("INSERT INTO idempotency_key ({columns}) VALUES {}", rows.join(", "))).await;
}

async fn kept(db: &Db) -> Vec<String> {
    let keys = idempotency_key::Entity::find().order_by_asc(idempotency_key::Column::CreatedAt);
    keys.all(db.reader()).await.unwrap().into_iter().map(|row| row.key).collect()
}

async fn keys_are_forgotten_in_sets_the_oldest_first(db: Db) {
    let world = World::new(db.clone());
    put(&db, 25).await;
    tamper(&db, "UPDATE idempotency_key SET created_at = 100 WHERE created_at BETWEEN 60 AND 120").await;
    let before = OffsetDateTime::UNIX_EPOCH + Duration::microseconds(200);
    let mut forgotten = Vec::new();
    for _ in 0..4 {
        forgotten.push(world.store.forget_keys(before, 8).await.unwrap());
    }
    assert_eq!(forgotten, [12, 7, 0, 0], "keys 6 to 12 are of one moment");
    assert_eq!(kept(&db).await.first().map(String::as_str), Some("k0020"));
}

async fn answers_have_a_bound_in_bytes_and_the_oldest_go(db: Db) {
    let world = World::new(db.clone());
    assert_eq!(world.store.excess_keys(1).await.unwrap(), None, "there are none");
    put(&db, 30).await;
    // Each has its answer, 8 bytes of scope, 5 of key and 1 of fingerprint.
    assert_eq!(world.store.excess_keys(30 * 1014).await.unwrap(), None);
    let limits = Limits { idempotency_bytes: 10 * 1014, ..Limits::default() };
    let timing = Timing { idempotency_age: std::time::Duration::from_secs(3600), ..Timing::default() };
    let housekeeping = Housekeeping::new(world.store.clone(), &timing, &limits, CancellationToken::new());
    housekeeping.round(OffsetDateTime::UNIX_EPOCH).await.unwrap();
    let expected: Vec<_> = (21..=30).map(|n| format!("k{n:04}")).collect();
    assert_eq!(kept(&db).await, expected);
}

async fn answers_that_are_written_fast_are_looked_through_early(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let poll = std::time::Duration::from_millis(20);
    let timing = Timing { event_poll: poll, ..Timing::default() };
    let limits = Limits { idempotency_bytes: 8000, ..Limits::default() };
    let stop = CancellationToken::new();
    let housekeeping = Housekeeping::new(world.store.clone(), &timing, &limits, stop.clone());
    let housekeeping = tokio::spawn(housekeeping.run());
    for n in 0..30 {
        world.made(&By::operator().with(key(&n.to_string(), "f")), &titled("x")).await;
    }
    let smaller = async {
        while kept(&db).await.len() > 15 {
            tokio::time::sleep(poll).await;
        }
    };
    let deadline = std::time::Duration::from_secs(20);
    tokio::time::timeout(deadline, smaller).await.expect("a round long before timing.housekeeping_interval");
    stop.cancel();
    housekeeping.await.unwrap();
}

on_both_databases!(
    a_request_with_a_key_is_done_once_and_answered_the_same,
    a_key_is_forgotten_when_it_is_old,
    keys_are_forgotten_in_sets_the_oldest_first,
    answers_have_a_bound_in_bytes_and_the_oldest_go,
    answers_that_are_written_fast_are_looked_through_early,
);
