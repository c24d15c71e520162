//! The promises of the inbox, each a function over a [`Db`], so that every database runs the same suite.

use std::sync::Arc;

use time::{Duration, macros::datetime};

use super::*;
use crate::{
    domain::inbox::{End, Incident, PLUGIN_UPDATE, Update, UpdateEnd, UpdateNews},
    store::db::tests::on_both_databases,
};

const AT: OffsetDateTime = datetime!(2026-11-29 12:00:00.25 UTC);

fn store(db: Db) -> InboxStore {
    InboxStore::new(db, &Limits { inbox_resolved: 3, ..Limits::default() })
}

fn plugin(id: &str) -> PluginId {
    PluginId::new(id).unwrap()
}

fn failed(reason: &str, minute: i64) -> News {
    let at = AT + Duration::minutes(minute);
    let (version, reason) = ("1.0.0".to_owned(), Some(reason.to_owned()));
    News::Failed(Incident { version, reason, restarting: true, restart_count: 0, at })
}

fn over(minute: i64) -> News {
    News::Over(End::Recovered, AT + Duration::minutes(minute))
}

async fn all(store: &InboxStore) -> Vec<Item> {
    store.list(Filter::All, None, 100).await.unwrap().items
}

async fn an_incident_has_one_item_however_often_it_is_told(db: Db) {
    let store = store(db);
    let acme = plugin("acme");
    store.apply(&acme, &over(0), Uuid::now_v7()).await.unwrap();
    assert_eq!(all(&store).await, []);
    let first = Uuid::now_v7();
    store.apply(&acme, &failed("one", 0), first).await.unwrap();
    store.apply(&acme, &failed("one", 0), first).await.unwrap();
    store.apply(&acme, &failed("two", 1), Uuid::now_v7()).await.unwrap();
    store.apply(&plugin("other"), &failed("its own", 1), Uuid::now_v7()).await.unwrap();
    assert_eq!(store.lasting().await.unwrap().len(), 2);
    let items = all(&store).await;
    let [other, item] = &items[..] else { panic!("{items:?}") };
    assert_eq!((other.entity_id.as_str(), item.id, item.status), ("other", first, ItemStatus::Open));
    assert_eq!((item.description.as_deref(), item.created_at), (Some("two"), AT));
    assert_eq!(item.updated_at, AT + Duration::minutes(1));
    store.apply(&acme, &over(2), Uuid::now_v7()).await.unwrap();
    store.apply(&acme, &over(3), Uuid::now_v7()).await.unwrap();
    let ended = all(&store).await.pop().unwrap();
    assert_eq!((ended.status, ended.resolved_at), (ItemStatus::Resolved, Some(AT + Duration::minutes(2))));
    assert_eq!(store.lasting().await.unwrap(), [plugin("other")]);
    store.apply(&acme, &failed("anew", 4), Uuid::now_v7()).await.unwrap();
    assert_eq!(all(&store).await.len(), 3, "another incident has another item");
}

async fn reading_and_dismissing_are_kept_while_the_incident_goes_on(db: Db) {
    let store = store(db);
    let (acme, id) = (plugin("acme"), Uuid::now_v7());
    store.apply(&acme, &failed("one", 0), id).await.unwrap();
    let read = store.mark_read(id).await.unwrap();
    assert_eq!((read.read, read.status), (true, ItemStatus::Open));
    let dismissed = store.dismiss(id, AT).await.unwrap();
    assert_eq!(dismissed.status, ItemStatus::Dismissed);
    assert_eq!(store.dismiss(id, AT + Duration::minutes(9)).await.unwrap(), dismissed);
    store.apply(&acme, &failed("two", 1), Uuid::now_v7()).await.unwrap();
    store.apply(&acme, &over(2), Uuid::now_v7()).await.unwrap();
    let [item] = &all(&store).await[..] else { panic!("one item") };
    assert_eq!((item.status, item.description.as_deref()), (ItemStatus::Dismissed, Some("two")));
    assert!(item.read && !item.lasts());
    let unknown = Uuid::now_v7();
    assert_eq!(store.mark_read(unknown).await, Err(InboxError::NotFound));
    assert_eq!(store.dismiss(unknown, AT).await, Err(InboxError::NotFound));
}

async fn pages_hold_every_item_of_the_filter_once_the_newest_first(db: Db) {
    let store = InboxStore::new(db, &Limits::default());
    for n in 0..7 {
        let (id, plugin) = (Uuid::now_v7(), plugin(&format!("p{n}")));
        store.apply(&plugin, &failed("x", n), id).await.unwrap();
        match n % 3 {
            0 => store.apply(&plugin, &over(n + 1), Uuid::now_v7()).await.unwrap(),
            1 => drop(store.dismiss(id, AT).await.unwrap()),
            _ => {}
        }
    }
    for (filter, expected) in [
        (Filter::All, vec!["p6", "p5", "p4", "p3", "p2", "p1", "p0"]),
        (Filter::Shown, vec!["p6", "p5", "p3", "p2", "p0"]),
        (Filter::Of(ItemStatus::Resolved), vec!["p6", "p3", "p0"]),
        (Filter::Of(ItemStatus::Open), vec!["p5", "p2"]),
        (Filter::Of(ItemStatus::Dismissed), vec!["p4", "p1"]),
    ] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.list(filter, after, 2).await.unwrap();
            assert_eq!(page.total_count, expected.len() as u64);
            after = page.items.last().map(|item| item.id);
            found.extend(page.items.into_iter().map(|item| item.entity_id));
            if !page.has_more {
                break;
            }
        }
        assert_eq!(found, expected, "{filter:?}");
    }
    let empty = store.list(Filter::All, Some(Uuid::nil()), 10).await.unwrap();
    assert_eq!(empty, Page { items: Vec::new(), total_count: 7, has_more: false });
}

async fn of_the_items_that_are_over_the_newest_are_kept(db: Db) {
    let store = store(db);
    store.apply(&plugin("lasting"), &failed("x", 0), Uuid::now_v7()).await.unwrap();
    for n in 0..6 {
        let plugin = plugin(&format!("p{n}"));
        store.apply(&plugin, &failed("x", n), Uuid::now_v7()).await.unwrap();
        store.apply(&plugin, &over(n), Uuid::now_v7()).await.unwrap();
    }
    let kept: Vec<_> = all(&store).await.into_iter().map(|item| item.entity_id).collect();
    assert_eq!(kept, ["p5", "p4", "p3", "lasting"]);
}

async fn news_and_dismissals_at_once_lose_nothing(db: Db) {
    let store = Arc::new(store(db));
    let (acme, id) = (plugin("acme"), Uuid::now_v7());
    store.apply(&acme, &failed("first", 0), id).await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    for n in 1..=20 {
        let (store, acme) = (Arc::clone(&store), acme.clone());
        running.spawn(async move {
            match n % 4 {
                0 => drop(store.mark_read(id).await.unwrap()),
                1 => drop(store.dismiss(id, AT).await.unwrap()),
                _ => store.apply(&acme, &failed("more", n), Uuid::now_v7()).await.unwrap(),
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    let [item] = &all(&store).await[..] else { panic!("one item") };
    assert_eq!((item.id, item.status, item.description.as_deref()), (id, ItemStatus::Dismissed, Some("more")));
    assert!(item.read && item.lasts());
}

async fn a_newer_version_has_one_item_until_it_is_installed_or_another_one_is_offered(db: Db) {
    let store = store(db);
    let acme = plugin("acme");
    let offered = |version: &str, obstacle: Option<&str>| {
        let text = str::to_owned;
        let (installed, offered, source) = (text("1.0.0"), text(version), text("Acme"));
        UpdateNews::Offered(Update { installed, offered, source, obstacle: obstacle.map(text), at: AT })
    };
    let over = |end| UpdateNews::Over(end, AT + Duration::minutes(1));
    let apply = async |news: &UpdateNews| store.apply_update(&acme, news, Uuid::now_v7()).await.unwrap();
    assert!(!apply(&over(UpdateEnd::Updated)).await);
    assert!(apply(&offered("1.1.0", None)).await);
    assert!(!apply(&offered("1.1.0", None)).await, "once for each version");
    assert!(apply(&offered("1.1.0", Some("it is unsigned"))).await);
    assert!(!apply(&offered("1.1.0", Some("it is unsigned"))).await);
    assert!(apply(&offered("1.2.0", None)).await);
    assert_eq!(store.awaiting_update().await.unwrap(), [(acme.clone(), "1.2.0".to_owned())]);
    // An incident of the plugin is another matter.
    store.apply(&acme, &failed("boom", 0), Uuid::now_v7()).await.unwrap();
    store.apply(&acme, &self::over(1), Uuid::now_v7()).await.unwrap();
    assert_eq!(store.lasting().await.unwrap(), []);
    assert!(apply(&over(UpdateEnd::Updated)).await);
    assert_eq!(store.awaiting_update().await.unwrap(), []);
    let items = all(&store).await;
    let shown: Vec<_> = items
        .iter()
        .filter(|item| item.kind == PLUGIN_UPDATE)
        .map(|item| (item.payload["offered"].as_str().unwrap(), item.payload["resolution"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, [("1.2.0", "updated"), ("1.1.0", "superseded")]);
}

on_both_databases!(
    a_newer_version_has_one_item_until_it_is_installed_or_another_one_is_offered,
    an_incident_has_one_item_however_often_it_is_told,
    reading_and_dismissing_are_kept_while_the_incident_goes_on,
    pages_hold_every_item_of_the_filter_once_the_newest_first,
    of_the_items_that_are_over_the_newest_are_kept,
    news_and_dismissals_at_once_lose_nothing,
);
