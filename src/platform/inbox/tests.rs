//! The keeper on a real database, fed by a real bus.

use sea_orm::sqlx::{ConnectOptions, Connection, query, sqlite::SqliteConnectOptions};
use serde_json::json;
use tempfile::TempDir;
use time::macros::datetime;

use super::*;
use crate::{
    actors::EventBusHandle,
    config::{Limits, Timing},
    domain::{inbox::ItemStatus, lifecycle_event::PATTERN, record::Status},
    store::db::Db,
};

const RETRY: Duration = Duration::from_millis(20);

struct Fixed(Standings);

#[async_trait]
impl Plugins for Fixed {
    async fn standings(&self) -> Option<Standings> {
        Some(self.0.clone())
    }
}

struct World {
    folder: TempDir,
    db: Db,
    store: InboxStore,
    bus: EventBusHandle,
    stop: CancellationToken,
}

fn id(text: &str) -> PluginId {
    PluginId::new(text).unwrap()
}

fn standing(status: Status) -> Standing {
    let failed = status == Status::Error;
    Standing {
        version: "1.0.0".to_owned(),
        status,
        restarting: false,
        restart_count: 0,
        last_error: failed.then(|| "boom".to_owned()),
        last_error_at: failed.then_some(datetime!(2026-11-29 12:00 UTC)),
    }
}

fn standings<const N: usize>(all: [(&str, Status); N]) -> Standings {
    all.map(|(name, status)| (id(name), standing(status))).into_iter().collect()
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("kandev.db").display());
        let timing = Timing { database_timeout: Duration::from_millis(1500), ..Timing::default() };
        let db = Db::connect(&url.into(), &timing, &Limits::default()).await.unwrap();
        let store = InboxStore::new(db.clone(), &Limits::default());
        let bus = EventBusHandle::new(1 << 20);
        Self { folder, db, store, bus, stop: CancellationToken::new() }
    }

    fn keeper(&self, room: usize, now: Standings) -> Keeper {
        let listener = self.bus.listen(PATTERN, room);
        Keeper::new(self.store.clone(), listener, Arc::new(Fixed(now)), RETRY, self.stop.clone())
    }

    async fn tell(&self, plugin: &str, to: &str, reason: Option<&str>) {
        let payload = json!({"plugin_id": plugin, "version": "1.0.0", "from": null, "to": to, "restarting": false,
            "restart_count": 0, "reason": reason, "at": "2026-11-29T12:00:00Z"});
        self.bus.announce(serde_json::from_value(payload).unwrap());
    }

    /// Status, plugin and description of every item, the oldest first.
    async fn items(&self) -> Vec<(ItemStatus, String, Option<String>)> {
        let items = self.store.list(Filter::All, None, 100).await.unwrap().items;
        items.into_iter().rev().map(|item| (item.status, item.entity_id, item.description)).collect()
    }
}

fn item(status: ItemStatus, plugin: &str, reason: &str) -> (ItemStatus, String, Option<String>) {
    (status, plugin.to_owned(), Some(reason.to_owned()))
}

#[actix::test]
async fn an_incident_is_one_item_from_its_failure_to_its_end() {
    let world = World::new().await;
    let keeper = world.keeper(100, Standings::new());
    for (to, reason) in [("active", None), ("error", Some("one")), ("restarting", Some("two")), ("registered", None)] {
        world.tell("acme", to, reason).await;
    }
    for end in ["active", "disabled", "uninstalled"] {
        world.tell(end, "error", Some("x")).await;
        world.tell(end, end, None).await;
    }
    world.stop.cancel();
    keeper.run(Standings::new()).await;
    let resolved = |plugin| item(ItemStatus::Resolved, plugin, "x");
    let expected =
        [item(ItemStatus::Open, "acme", "two"), resolved("active"), resolved("disabled"), resolved("uninstalled")];
    assert_eq!(world.items().await, expected, "a keeper that is stopped writes what waits");
}

#[actix::test]
async fn what_began_and_ended_while_no_host_ran_is_found_at_the_start() {
    let world = World::new().await;
    for plugin in ["active", "off", "gone", "bad"] {
        let news = News::of_standing(Some(&standing(Status::Error)), false, OffsetDateTime::now_utc()).unwrap();
        world.store.apply(&id(plugin), &news, Uuid::now_v7()).await.unwrap();
    }
    let found = standings([
        ("active", Status::Active),
        ("off", Status::Disabled),
        ("bad", Status::Error),
        ("new", Status::Error),
        ("fine", Status::Disabled),
    ]);
    world.stop.cancel();
    world.keeper(100, Standings::new()).run(found).await;
    let expected = [
        // It is about to be started; that will tell.
        item(ItemStatus::Open, "active", "boom"),
        item(ItemStatus::Resolved, "off", "boom"),
        item(ItemStatus::Resolved, "gone", "boom"),
        item(ItemStatus::Open, "bad", "boom"),
        item(ItemStatus::Open, "new", "boom"),
    ];
    assert_eq!(world.items().await, expected);
}

#[actix::test]
async fn news_beyond_the_queue_are_replaced_by_a_look_at_the_plugins() {
    let world = World::new().await;
    let keeper = world.keeper(1, standings([("a", Status::Active), ("b", Status::Error)]));
    for (plugin, to) in [("a", "error"), ("a", "active"), ("b", "error"), ("c", "error"), ("c", "uninstalled")] {
        world.tell(plugin, to, Some("told")).await;
    }
    world.stop.cancel();
    keeper.run(Standings::new()).await;
    assert_eq!(world.items().await, [item(ItemStatus::Open, "b", "boom")]);
}

#[actix::test]
async fn a_database_that_is_down_delays_the_news_and_loses_none() {
    let world = World::new().await;
    let file = world.folder.path().join("kandev.db");
    let mut other = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let keeper = tokio::spawn(world.keeper(100, Standings::new()).run(Standings::new()));
    world.tell("acme", "error", Some("one")).await;
    world.tell("acme", "active", None).await;
    world.tell("acme", "error", Some("two")).await;
    let refused = async {
        while world.db.fault_counts().unavailable == 0 {
            tokio::time::sleep(RETRY).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), refused).await.expect("the keeper tries, and is refused");
    assert_eq!(world.items().await, []);
    query("COMMIT").execute(&mut other).await.unwrap();
    let expected = [item(ItemStatus::Resolved, "acme", "one"), item(ItemStatus::Open, "acme", "two")];
    tokio::time::timeout(Duration::from_secs(20), async {
        while world.items().await != expected {
            tokio::time::sleep(RETRY).await;
        }
    })
    .await
    .unwrap();
    other.close().await.unwrap();
    world.stop.cancel();
    keeper.await.unwrap();
}
