//! Idempotency keys.

use time::{Duration, OffsetDateTime};

use super::*;
use crate::{
    domain::platform::refusal::Class,
    store::{db::tests::on_both_databases, platform::Once},
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

on_both_databases!(a_request_with_a_key_is_done_once_and_answered_the_same, a_key_is_forgotten_when_it_is_old);
