//! The promises of the sources, each a function over a [`Db`], so that every database runs the same suite.

use time::{Duration, macros::datetime};

use super::*;
use crate::store::db::tests::on_both_databases;

const AT: OffsetDateTime = datetime!(2026-11-29 12:00:00.25 UTC);

fn store(db: Db) -> MarketplaceStore {
    MarketplaceStore::new(db, &Limits { marketplace_sources: 3, ..Limits::default() })
}

fn new(id: &str, minute: i64) -> Source {
    Source {
        id: id.to_owned(),
        name: format!("Source {id}"),
        url: format!("https://{id}.test/"),
        enabled: true,
        builtin: false,
        created_at: AT + Duration::minutes(minute),
    }
}

async fn ids(store: &MarketplaceStore) -> Vec<String> {
    store.list().await.unwrap().into_iter().map(|source| source.id).collect()
}

async fn sources_come_in_the_order_in_which_they_count(db: Db) {
    let store = store(db);
    assert_eq!(store.list().await.unwrap(), []);
    for source in [new("b", 1), new("a", 2)] {
        assert_eq!(store.add(&source).await.unwrap(), source);
        // As after an answer that was lost.
        assert_eq!(store.add(&source).await.unwrap(), source);
    }
    store.set_builtin(Some("https://main.test/"), AT + Duration::hours(1)).await.unwrap();
    let listed = store.list().await.unwrap();
    assert_eq!(listed[1..], [new("b", 1), new("a", 2)]);
    let main = Source {
        id: BUILTIN_ID.to_owned(),
        name: BUILTIN_NAME.to_owned(),
        url: "https://main.test/".to_owned(),
        builtin: true,
        ..new("x", 60)
    };
    assert_eq!(listed[0], main);
}

async fn an_address_is_there_once_and_sources_have_a_bound(db: Db) {
    let store = store(db);
    store.set_builtin(Some("https://main.test/"), AT).await.unwrap();
    store.add(&new("a", 0)).await.unwrap();
    for url in ["https://a.test/", "https://main.test/"] {
        let twice = Source { url: url.to_owned(), ..new("b", 1) };
        assert_eq!(store.add(&twice).await, Err(SourceStoreError::Exists));
    }
    store.add(&new("b", 1)).await.unwrap();
    store.add(&new("c", 2)).await.unwrap();
    assert_eq!(store.add(&new("d", 3)).await, Err(SourceStoreError::Full(3)));
    assert_eq!(ids(&store).await, [BUILTIN_ID, "a", "b", "c"]);
}

async fn a_source_is_renamed_switched_and_deleted(db: Db) {
    let store = store(db);
    store.add(&new("a", 0)).await.unwrap();
    let changed = store.change("a", Some("Other"), None).await.unwrap();
    assert_eq!(changed, Source { name: "Other".to_owned(), ..new("a", 0) });
    let changed = store.change("a", None, Some(false)).await.unwrap();
    assert_eq!(changed, Source { name: "Other".to_owned(), enabled: false, ..new("a", 0) });
    assert_eq!(store.list().await.unwrap(), [changed]);
    assert_eq!(store.change("none", None, None).await, Err(SourceStoreError::NotFound));
    store.remove("a").await.unwrap();
    assert_eq!(store.remove("a").await, Err(SourceStoreError::NotFound));
    assert_eq!(ids(&store).await, [""; 0]);
}

async fn the_built_in_source_follows_the_settings_and_cannot_be_deleted(db: Db) {
    let store = store(db);
    store.set_builtin(None, AT).await.unwrap();
    store.set_builtin(Some("https://main.test/"), AT).await.unwrap();
    assert_eq!(store.remove(BUILTIN_ID).await, Err(SourceStoreError::BuiltIn));
    store.change(BUILTIN_ID, Some("Ours"), Some(false)).await.unwrap();
    store.add(&new("a", 0)).await.unwrap();
    // It moves to where the operator has a source: there is one of them.
    store.set_builtin(Some("https://a.test/"), AT + Duration::hours(1)).await.unwrap();
    let listed = store.list().await.unwrap();
    let [main] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((main.url.as_str(), main.name.as_str()), ("https://a.test/", "Ours"));
    assert_eq!((main.enabled, main.created_at), (false, AT));
    store.set_builtin(None, AT).await.unwrap();
    assert_eq!(ids(&store).await, [""; 0]);
}

async fn automatic_updates_are_off_until_somebody_says_so(db: Db) {
    let store = store(db);
    assert_eq!(store.auto_update_default().await, Ok(false));
    for on in [true, true, false] {
        store.set_auto_update_default(on).await.unwrap();
        assert_eq!(store.auto_update_default().await, Ok(on));
    }
}

on_both_databases!(
    sources_come_in_the_order_in_which_they_count,
    an_address_is_there_once_and_sources_have_a_bound,
    a_source_is_renamed_switched_and_deleted,
    the_built_in_source_follows_the_settings_and_cannot_be_deleted,
    automatic_updates_are_off_until_somebody_says_so,
);
