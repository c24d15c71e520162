//! The promises of plugin state, each a function over a [`Db`], so that every database runs the same suite.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use time::macros::datetime;

use super::*;

const NOW: OffsetDateTime = datetime!(2026-11-29 12:00:00.75 UTC);

fn limits() -> Limits {
    Limits {
        state_key_bytes: 16,
        state_value_bytes: 64,
        state_plugin_bytes: 200,
        message_bytes: 150,
        ..Limits::default()
    }
}

fn plugin(id: &str) -> PluginId {
    PluginId::new(id).unwrap()
}

fn scope(name: &str, id: &str) -> Scope {
    Scope { name: name.to_owned(), id: id.to_owned() }
}

async fn all_four_parts_tell_entries_apart(db: Db) {
    let store = StateStore::new(db, &limits());
    let places =
        [("a", "", "", "k"), ("a", "task", "", "k"), ("a", "", "task", "k"), ("a", "", "", "k2"), ("b", "", "", "k")];
    for (n, (id, name, scope_id, key)) in places.iter().enumerate() {
        store.set(&plugin(id), &scope(name, scope_id), key, &json!({"n": n}), NOW).await.unwrap();
    }
    for (n, (id, name, scope_id, key)) in places.iter().enumerate() {
        let value = store.get(&plugin(id), &scope(name, scope_id), key).await.unwrap();
        assert_eq!(value, Some(json!({"n": n})));
    }
    assert_eq!(store.get(&plugin("a"), &scope("A", ""), "k").await.unwrap(), None);
}

async fn an_entry_without_a_value_is_found_with_none(db: Db) {
    let store = StateStore::new(db, &limits());
    let (id, scope) = (plugin("a"), scope("instance", ""));
    store.set(&id, &scope, "k", &Value::Null, NOW).await.unwrap();
    assert_eq!(store.get(&id, &scope, "k").await.unwrap(), Some(Value::Null));
}

async fn any_text_of_json_survives(db: Db) {
    let store = StateStore::new(db, &limits());
    let (id, scope) = (plugin("a"), scope("weird \u{1F600} word", ""));
    let value = json!({"\u{0}": "\u{0}\n\"'%", "é": 1.5});
    store.set(&id, &scope, "k'\"%", &value, NOW).await.unwrap();
    assert_eq!(store.get(&id, &scope, "k'\"%").await.unwrap(), Some(value));
}

async fn a_list_has_one_scope_in_byte_order_with_whole_seconds(db: Db) {
    let store = StateStore::new(db, &limits());
    let (id, here) = (plugin("a"), scope("s", "1"));
    for key in ["b", "a", "B", "é", "10", "9"] {
        store.set(&id, &here, key, &json!({}), NOW).await.unwrap();
    }
    store.set(&id, &scope("s", "2"), "other", &json!({}), NOW).await.unwrap();
    let entries = store.list(&id, &here).await.unwrap();
    let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["10", "9", "B", "a", "b", "é"]);
    assert!(entries.iter().all(|entry| entry.updated_at == datetime!(2026-11-29 12:00:00 UTC)));
    assert_eq!(store.list(&id, &scope("none", "")).await.unwrap(), []);
}

async fn a_list_beyond_one_message_is_refused_and_its_keys_stay_readable(db: Db) {
    let store = StateStore::new(db, &limits());
    let (id, scope) = (plugin("a"), scope("s", ""));
    for key in ["1", "2", "3"] {
        store.set(&id, &scope, key, &json!({"v": "x".repeat(50)}), NOW).await.unwrap();
    }
    assert_eq!(store.list(&id, &scope).await, Err(StateError::ListTooLarge { size: 180, limit: 150 }));
    assert!(store.get(&id, &scope, "3").await.unwrap().is_some());
}

async fn deleting_is_idempotent_and_gives_the_bytes_back(db: Db) {
    let store = StateStore::new(db, &limits());
    let (id, scope) = (plugin("a"), scope("s", ""));
    let big = json!({"v": "x".repeat(50)});
    for _ in 0..10 {
        for key in ["1", "2", "3"] {
            store.set(&id, &scope, key, &big, NOW).await.unwrap();
        }
        for key in ["1", "2", "3", "3", "never"] {
            store.delete(&id, &scope, key).await.unwrap();
        }
    }
    assert_eq!(store.list(&id, &scope).await.unwrap(), []);
}

async fn a_plugin_is_held_to_its_quota_and_others_are_not_touched(db: Db) {
    let store = StateStore::new(db, &limits());
    let (id, scope) = (plugin("a"), scope("s", ""));
    let big = json!({"v": "x".repeat(50)});
    for key in ["1", "2", "3"] {
        store.set(&id, &scope, key, &big, NOW).await.unwrap();
    }
    let refused = store.set(&id, &scope, "4", &big, NOW).await;
    assert_eq!(refused, Err(StateError::QuotaExceeded { size: 240, limit: 200 }));
    assert_eq!(store.get(&id, &scope, "4").await.unwrap(), None);
    store.set(&id, &scope, "3", &big, NOW).await.unwrap();
    store.set(&plugin("b"), &scope, "1", &big, NOW).await.unwrap();
}

async fn a_quota_made_smaller_still_lets_a_plugin_shrink(db: Db) {
    let store = StateStore::new(db.clone(), &limits());
    let (id, scope) = (plugin("a"), scope("s", ""));
    for key in ["1", "2", "3"] {
        store.set(&id, &scope, key, &json!({"v": "x".repeat(50)}), NOW).await.unwrap();
    }
    let smaller = StateStore::new(db, &Limits { state_plugin_bytes: 10, ..limits() });
    smaller.set(&id, &scope, "1", &json!({}), NOW).await.unwrap();
    let grown = smaller.set(&id, &scope, "1", &json!({"v": 1}), NOW).await;
    assert_eq!(grown, Err(StateError::QuotaExceeded { size: 129, limit: 10 }));
}

async fn each_part_at_its_limit_passes_and_one_byte_more_is_named(db: Db) {
    let store = StateStore::new(db, &limits());
    let id = plugin("a");
    let (fits, long) = ("x".repeat(16), "x".repeat(17));
    store.set(&id, &scope(&fits, &fits), &fits, &json!({"v": "x".repeat(56)}), NOW).await.unwrap();
    let refusals = [
        (scope(&long, ""), "k", "scope has 17 bytes, at most 16 are allowed"),
        (scope("", &long), "k", "scope_id has 17 bytes, at most 16 are allowed"),
        (scope("", ""), long.as_str(), "key has 17 bytes, at most 16 are allowed"),
        (scope("", ""), "", "key is empty"),
        (scope("\0", ""), "k", "scope contains a zero byte"),
    ];
    for (scope, key, text) in refusals {
        let set = store.set(&id, &scope, key, &json!({}), NOW).await.unwrap_err().to_string();
        let get = store.get(&id, &scope, key).await.unwrap_err().to_string();
        let delete = store.delete(&id, &scope, key).await.unwrap_err().to_string();
        assert_eq!([set.as_str(), get.as_str(), delete.as_str()], [text; 3]);
    }
    let value = store.set(&id, &scope("", ""), "k", &json!({"v": "x".repeat(57)}), NOW).await;
    assert_eq!(value, Err(StateError::ValueTooLarge { size: 65, limit: 64 }));
}

/// As the vault does it, without the secrets.
async fn uninstall(store: &StateStore, plugin: &PluginId) {
    let transaction = store.db.begin_write().await.unwrap();
    delete_all(&transaction, plugin).await.unwrap();
    transaction.commit().await.unwrap();
}

async fn what_is_under_way_at_an_uninstall_leaves_nothing(db: Db) {
    let (id, here, tenancy) = (plugin("a"), scope("s", ""), Tenancy::default());
    let store = StateStore::new(db, &limits()).under(&tenancy);
    // Under way before the end: the uninstall waits for it, and takes what it wrote.
    let (transaction, _) = store.begin(&id).await.unwrap();
    tenancy.end();
    let row = plugin_state::ActiveModel {
        plugin_id: Set("a".to_owned()),
        scope: Set("s".to_owned()),
        scope_id: Set(String::new()),
        key: Set("k".to_owned()),
        value: Set("{}".to_owned()),
        size_bytes: Set(4),
        updated_at: Set(NOW),
    };
    plugin_state::Entity::insert(row).exec_without_returning(&transaction).await.unwrap();
    let removing = tokio::spawn({
        let (store, id) = (store.clone(), id.clone());
        async move { uninstall(&store, &id).await }
    });
    tokio::task::yield_now().await;
    transaction.commit().await.unwrap();
    removing.await.unwrap();
    // After it: refused, the row of its bytes included.
    assert_eq!(store.set(&id, &here, "k", &json!({}), NOW).await, Err(StateError::Uninstalled));
    assert_eq!(store.delete(&id, &here, "k").await, Err(StateError::Uninstalled));
    assert_eq!(store.get(&id, &here, "k").await.unwrap(), None);
    assert_eq!(plugin_state_usage::Entity::find().all(store.db.reader()).await.unwrap(), []);
    let again = store.under(&Tenancy::default());
    again.set(&id, &here, "k", &json!({}), NOW).await.unwrap();
}

async fn removing_a_plugin_removes_its_rows_and_its_usage_only(db: Db) {
    let store = StateStore::new(db, &limits());
    let here = scope("s", "");
    for id in ["a", "b"] {
        store.set(&plugin(id), &here, "k", &json!({"v": "x".repeat(50)}), NOW).await.unwrap();
    }
    uninstall(&store, &plugin("a")).await;
    assert_eq!(store.get(&plugin("a"), &here, "k").await.unwrap(), None);
    assert!(store.get(&plugin("b"), &here, "k").await.unwrap().is_some());
    for key in ["1", "2", "3"] {
        store.set(&plugin("a"), &here, key, &json!({"v": "x".repeat(50)}), NOW).await.unwrap();
    }
}

/// Field case 85.
async fn fifty_writers_at_once_all_succeed_and_the_last_write_of_each_stays(db: Db) {
    let store = Arc::new(StateStore::new(db, &Limits::default()));
    let writers = (0..50).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let (id, scope) = (plugin("a"), scope("s", ""));
            for round in 0..10 {
                store.set(&id, &scope, &format!("k{writer:02}"), &json!({"round": round}), NOW).await.unwrap();
                store.set(&id, &scope, "shared", &json!({"writer": writer}), NOW).await.unwrap();
                store.get(&id, &scope, "shared").await.unwrap().unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let entries = store.list(&plugin("a"), &scope("s", "")).await.unwrap();
    let values: BTreeMap<_, _> = entries.into_iter().map(|entry| (entry.key, entry.value)).collect();
    assert_eq!(values.len(), 51);
    assert!((0..50).all(|writer| values[&format!("k{writer:02}")] == json!({"round": 9})));
}

async fn writers_at_once_cannot_pass_the_quota_together(db: Db) {
    let store = Arc::new(StateStore::new(db, &limits()));
    let writers = (0..20).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let value = json!({"v": "x".repeat(50)});
            store.set(&plugin("a"), &scope("s", ""), &format!("{writer:02}"), &value, NOW).await.is_ok()
        })
    });
    let mut written = 0;
    for writer in writers.collect::<Vec<_>>() {
        written += usize::from(writer.await.unwrap());
    }
    assert_eq!(written, 3);
}

crate::store::db::tests::on_both_databases!(
    all_four_parts_tell_entries_apart,
    an_entry_without_a_value_is_found_with_none,
    any_text_of_json_survives,
    a_list_has_one_scope_in_byte_order_with_whole_seconds,
    a_list_beyond_one_message_is_refused_and_its_keys_stay_readable,
    deleting_is_idempotent_and_gives_the_bytes_back,
    a_plugin_is_held_to_its_quota_and_others_are_not_touched,
    a_quota_made_smaller_still_lets_a_plugin_shrink,
    each_part_at_its_limit_passes_and_one_byte_more_is_named,
    removing_a_plugin_removes_its_rows_and_its_usage_only,
    what_is_under_way_at_an_uninstall_leaves_nothing,
    fifty_writers_at_once_all_succeed_and_the_last_write_of_each_stays,
    writers_at_once_cannot_pass_the_quota_together,
);
