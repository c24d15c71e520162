//! The promises of what plugins keep for users, each a function over a [`Db`], so that every database runs the same
//! suite.

use serde_json::{Value, json};
use time::macros::datetime;

use super::*;
use crate::{
    store::db::tests::on_both_databases,
    vault::{KeySource, Vault},
};

fn limits() -> Limits {
    Limits { user_state_bytes: 600, ..Limits::default() }
}

fn plugin(id: &str) -> PluginId {
    PluginId::new(id).unwrap()
}

fn place(key: &str) -> Place {
    Place::new("task", "t1", key).unwrap()
}

/// Writes without an event.
impl UserStateStore {
    async fn alone(&self, write: &EntryWrite) -> Result<Option<Stamp>, UserStateError> {
        let work = async || {
            let transaction = self.db.begin_write().await?;
            let written = write.run(&transaction).await?;
            transaction.commit().await?;
            Ok::<_, UserStateError>(written)
        };
        self.db.repeat(work).await
    }

    pub(in crate::store) async fn put(
        &self,
        owner: Owner<'_>,
        place: &Place,
        value: &Value,
        since: Option<Stamp>,
        tenancy: &Tenancy,
    ) -> Result<Stamp, UserStateError> {
        let written = self.alone(&self.prepare(owner, place, &value.to_string(), since)).await?;
        self.outcome(owner, place, since, written, tenancy).await
    }
}

/// A store with one user of one plugin.
struct World {
    store: UserStateStore,
    plugin: PluginId,
    tenancy: Tenancy,
}

impl World {
    fn new(db: Db) -> Self {
        let store = UserStateStore::new(db, &limits());
        Self { store, plugin: plugin("acme"), tenancy: Tenancy::default() }
    }

    fn owner(&self) -> Owner<'_> {
        Owner { plugin: &self.plugin, user: "u1" }
    }

    async fn put(&self, key: &str, value: Value, since: Option<Stamp>) -> Result<Stamp, UserStateError> {
        self.store.put(self.owner(), &place(key), &value, since, &self.tenancy).await
    }

    async fn get(&self, key: &str) -> Option<(Value, Stamp)> {
        let found = self.store.get(self.owner(), &place(key)).await.unwrap();
        found.map(|(text, stamp)| (serde_json::from_str(&text).unwrap(), stamp))
    }
}

async fn every_part_of_a_place_tells_entries_apart(db: Db) {
    let world = World::new(db);
    let (acme, other) = (plugin("acme"), plugin("other"));
    let places = [("task", "t1", "k"), ("task", "t1", "K"), ("task", "t2", "k"), ("session", "t1", "k")];
    let mut all = Vec::new();
    for (plugin, user) in [(&acme, "u1"), (&acme, "u2"), (&other, "u1")] {
        all.extend(places.map(|(kind, id, key)| (Owner { plugin, user }, Place::new(kind, id, key).unwrap())));
    }
    for (n, (owner, place)) in all.iter().enumerate() {
        world.store.put(*owner, place, &json!(n), None, &world.tenancy).await.unwrap();
    }
    for (n, (owner, place)) in all.iter().enumerate() {
        let (value, _) = world.store.get(*owner, place).await.unwrap().unwrap();
        assert_eq!(value, n.to_string());
    }
    assert_eq!(world.get("none").await, None);
}

async fn any_json_survives(db: Db) {
    let world = World::new(db);
    for value in [json!(null), json!(false), json!("\u{0}é\u{1F600}'\"%$1"), json!([1.5, {"b": 1, "a": [{}]}])] {
        let stamp = world.put("k", value.clone(), None).await.unwrap();
        assert_eq!(world.get("k").await, Some((value, stamp)));
    }
}

async fn a_values_text_is_kept_to_the_byte(db: Db) {
    let world = World::new(db);
    let text = r#"{"b":123456789012345678901234567890,"a":1.10E+2,"b":"\u0000\ud800"}"#;
    let write = world.store.prepare(world.owner(), &place("k"), text, None);
    let stamp = world.store.alone(&write).await.unwrap().unwrap();
    let kept = Some((text.to_owned(), stamp));
    assert_eq!(world.store.get(world.owner(), &place("k")).await, Ok(kept));
    let entry = UserEntry { key: "k".to_owned(), value: text.to_owned(), updated_at: stamp };
    assert_eq!(world.store.list(world.owner(), &place("k").scope).await, Ok(vec![entry]));
}

async fn a_list_has_one_scope_in_the_order_of_bytes(db: Db) {
    let mut world = World::new(db);
    world.store.quota = 10_000;
    for key in ["b", "a", "B", "10", "9", "a-b", "a.b"] {
        world.put(key, json!({}), None).await.unwrap();
    }
    let elsewhere = Place::new("task", "t2", "x").unwrap();
    world.store.put(world.owner(), &elsewhere, &json!(1), None, &world.tenancy).await.unwrap();
    let entries = world.store.list(world.owner(), &place("k").scope).await.unwrap();
    let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["10", "9", "B", "a", "a-b", "a.b", "b"]);
    assert_eq!(world.get("b").await, Some((json!({}), entries[6].updated_at)));
    let empty = Scope::new("instance", "x").unwrap();
    assert_eq!(world.store.list(world.owner(), &empty).await.unwrap(), []);
}

async fn a_write_after_what_was_seen_is_a_conflict_and_changes_nothing(db: Db) {
    let world = World::new(db);
    let first = world.put("k", json!(1), None).await.unwrap();
    let second = world.put("k", json!(2), Some(first)).await.unwrap();
    assert!(second > first);
    assert_eq!(world.put("k", json!(3), Some(first)).await, Err(UserStateError::Conflict));
    assert_eq!(world.get("k").await, Some((json!(2), second)));
    let long_ago = Stamp::of(datetime!(2020-01-01 00:00 UTC));
    assert_eq!(world.put("k", json!(3), Some(long_ago)).await, Err(UserStateError::Conflict));
    world.put("k", json!(3), None).await.unwrap();
    world.put("new", json!(1), Some(long_ago)).await.unwrap();
    world.put("k", json!(4), Some(Stamp(i64::MAX))).await.unwrap();
}

async fn of_many_writers_that_saw_the_same_one_wins(db: Db) {
    let world = Arc::new(World::new(db));
    for round in 0..10 {
        let seen = world.put("k", json!(round), None).await.unwrap();
        let writers = (0..20).map(|n| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { (n, world.put("k", json!({"writer": n}), Some(seen)).await) })
        });
        let outcomes = futures_util::future::join_all(writers).await;
        let outcomes: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
        let won: Vec<_> = outcomes.iter().filter_map(|(n, outcome)| Some((*n, outcome.clone().ok()?))).collect();
        let [(winner, stamp)] = won[..] else { panic!("{outcomes:?}") };
        assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, Ok(_) | Err(UserStateError::Conflict))));
        assert_eq!(world.get("k").await, Some((json!({"writer": winner}), stamp)));
    }
}

async fn a_stamp_grows_when_the_clock_goes_back(db: Db) {
    let world = World::new(db);
    let ahead = Stamp(world.put("k", json!(1), None).await.unwrap().0 + 3_600_000_000_000);
    world.store.last.store(ahead.0, Ordering::Relaxed);
    let future = world.put("k", json!(2), None).await.unwrap();
    assert!(future > ahead);
    world.store.last.store(i64::MIN, Ordering::Relaxed);
    assert_eq!(world.put("k", json!(3), None).await, Ok(Stamp(future.0 + 1)));
    assert_eq!(world.put("k", json!(4), Some(future)).await, Err(UserStateError::Conflict));
}

async fn a_write_that_is_repeated_after_a_lost_answer_is_no_conflict_with_itself(db: Db) {
    let world = World::new(db);
    let seen = world.put("k", json!(1), None).await.unwrap();
    let write = world.store.prepare(world.owner(), &place("k"), "2", Some(seen));
    for _ in 0..2 {
        assert_eq!(world.store.alone(&write).await, Ok(Some(write.at())));
    }
    assert_eq!(world.get("k").await, Some((json!(2), write.at())));
}

async fn a_user_is_held_to_the_quota_and_others_are_not_touched(db: Db) {
    let world = World::new(db);
    let full = Err(UserStateError::QuotaExceeded { limit: 600 });
    for key in ["1", "2", "3", "4"] {
        world.put(key, json!("x".repeat(70)), None).await.unwrap();
    }
    assert_eq!(world.put("5", json!("x"), None).await, full);
    assert_eq!(world.put("4", json!("x".repeat(100)), None).await, full);
    assert_eq!(world.put("4", json!("x".repeat(100)), Some(Stamp(i64::MAX))).await, full);
    assert_eq!(world.get("5").await, None);
    world.put("4", json!("y".repeat(70)), None).await.unwrap();
    let neighbour = Owner { plugin: &world.plugin, user: "u2" };
    world.store.put(neighbour, &place("5"), &json!("x".repeat(70)), None, &world.tenancy).await.unwrap();
    world.store.delete(world.owner(), &place("1")).await.unwrap();
    world.put("5", json!("x"), None).await.unwrap();
}

async fn a_quota_made_smaller_still_lets_entries_shrink(db: Db) {
    let mut world = World::new(db);
    for key in ["1", "2", "3"] {
        world.put(key, json!("x".repeat(70)), None).await.unwrap();
    }
    world.store.quota = 10;
    world.put("1", json!("x".repeat(70)), None).await.unwrap();
    world.put("1", json!("x"), None).await.unwrap();
    assert_eq!(world.put("1", json!("xy"), None).await, Err(UserStateError::QuotaExceeded { limit: 10 }));
}

async fn writers_at_once_do_not_overrun_the_quota(db: Db) {
    let world = Arc::new(World::new(db));
    let writers = (0..20).map(|n| {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.put(&n.to_string(), json!("x".repeat(70)), None).await })
    });
    let outcomes = futures_util::future::join_all(writers).await;
    let written = outcomes.into_iter().filter(|outcome| outcome.as_ref().unwrap().is_ok()).count();
    assert_eq!(written, 4);
    assert_eq!(world.store.list(world.owner(), &place("k").scope).await.unwrap().len(), 4);
}

async fn deleting_is_the_same_when_nothing_is_there(db: Db) {
    let world = World::new(db);
    let written = world.put("k", json!(1), None).await.unwrap();
    let deleted = world.store.delete(world.owner(), &place("k")).await.unwrap();
    assert!(deleted > written);
    assert!(world.store.delete(world.owner(), &place("k")).await.unwrap() > deleted);
    assert_eq!(world.get("k").await, None);
}

async fn an_uninstall_leaves_nothing_and_a_write_that_comes_late_neither(db: Db) {
    let folder = tempfile::tempdir().unwrap();
    let source = KeySource::File(folder.path().join("key"));
    let vault = Vault::open(db.clone(), source, &Limits::default()).await.unwrap();
    let world = World::new(db);
    let other = plugin("other");
    let others = Owner { plugin: &other, user: "u1" };
    world.put("k", json!(1), None).await.unwrap();
    world.store.put(others, &place("k"), &json!(1), None, &Tenancy::default()).await.unwrap();
    world.tenancy.end();
    vault.delete_plugin(&world.plugin).await.unwrap();
    assert_eq!(world.get("k").await, None);
    assert_eq!(world.put("k", json!(2), None).await, Err(UserStateError::Uninstalled));
    assert_eq!(world.get("k").await, None);
    assert!(world.store.get(others, &place("k")).await.unwrap().is_some());
}

on_both_databases!(
    every_part_of_a_place_tells_entries_apart,
    any_json_survives,
    a_values_text_is_kept_to_the_byte,
    a_list_has_one_scope_in_the_order_of_bytes,
    a_write_after_what_was_seen_is_a_conflict_and_changes_nothing,
    of_many_writers_that_saw_the_same_one_wins,
    a_stamp_grows_when_the_clock_goes_back,
    a_write_that_is_repeated_after_a_lost_answer_is_no_conflict_with_itself,
    a_user_is_held_to_the_quota_and_others_are_not_touched,
    a_quota_made_smaller_still_lets_entries_shrink,
    writers_at_once_do_not_overrun_the_quota,
    deleting_is_the_same_when_nothing_is_there,
    an_uninstall_leaves_nothing_and_a_write_that_comes_late_neither,
);
