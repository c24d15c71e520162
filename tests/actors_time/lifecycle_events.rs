//! The events `plugin.lifecycle.<state>`: one for each change, in order.

use kandev_host::{
    actors::events::{Heard, Listener},
    domain::{
        lifecycle_event::{Change, PATTERN, Phase},
        record::Status,
    },
};
use kandev_proto::json_from_struct;

use crate::support::{Launch, World, record, run, run_with};

async fn listen(world: &World) -> Listener {
    let listener = world.bus.listen(PATTERN, 100);
    world.settled().await;
    listener
}

/// The changes heard so far; each must be under its own subject.
async fn changes(world: &World, listener: &mut Listener) -> Vec<Change> {
    world.settled().await;
    let mut changes = Vec::new();
    while let Some(heard) = listener.waiting() {
        let Heard::Event(event) = heard else { panic!("nothing was missed") };
        let payload = json_from_struct(event.payload.clone().expect("a payload"));
        let change: Change = serde_json::from_value(payload.into()).expect("a change");
        assert_eq!(event.subject, format!("plugin.lifecycle.{}", change.to.as_str()));
        changes.push(change);
    }
    changes
}

fn phases(changes: &[Change]) -> Vec<(Option<Phase>, Phase)> {
    changes.iter().map(|change| (change.from, change.to)).collect()
}

#[test]
fn a_whole_row_of_restarts_is_told_in_order_and_once() {
    run(async |world| {
        let mut listener = listen(world).await;
        world.fakes.launches("acme", [Launch::Up, Launch::Fails("no line"), Launch::Up]);
        world.registry.enable("acme").await.unwrap();
        world.registry.enable("acme").await.unwrap();
        world.fakes.crash("acme");
        world.at(20.0).await;
        world.registry.disable("acme").await.unwrap();
        world.registry.disable("acme").await.unwrap();
        let changes = changes(world, &mut listener).await;
        let (disabled, active, error) = (Phase::Disabled, Phase::Active, Phase::Error);
        let expected = [
            (Some(disabled), active),
            (Some(active), error),
            (Some(error), Phase::Restarting),
            (Some(error), active),
            (Some(active), disabled),
        ];
        assert_eq!(phases(&changes), expected);
        let told: Vec<_> = changes.iter().map(|c| (c.reason.as_deref(), c.restarting, c.restart_count)).collect();
        let crash = Some("exited with code 3");
        let failed = Some("no line");
        assert_eq!(told, [(None, false, 0), (crash, true, 0), (failed, true, 0), (None, false, 1), (None, false, 1)]);
    });
}

#[test]
fn a_row_that_is_used_up_ends_in_an_error_for_good() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Up]);
        world.fakes.launches("acme", vec![Launch::Fails("no line"); 5]);
        world.registry.enable("acme").await.unwrap();
        let mut listener = listen(world).await;
        world.fakes.crash("acme");
        world.at(100.0).await;
        let changes = changes(world, &mut listener).await;
        let tos: Vec<_> = changes.iter().map(|change| change.to).collect();
        let again = Phase::Restarting;
        assert_eq!(tos, [Phase::Error, again, again, again, again, Phase::Error]);
        let last = changes.last().unwrap();
        assert!(!last.restarting && last.reason.as_ref().unwrap().starts_with("gave up after 5 restarts"), "{last:?}");
    });
}

#[test]
fn at_the_hosts_start_only_what_changes_is_told() {
    let found = vec![record("on", Status::Active), record("off", Status::Disabled), record("bad", Status::Error)];
    run_with(
        found,
        |_| {},
        async |world| {
            let mut listener = listen(world).await;
            world.registry.boot().await.unwrap();
            let changes = changes(world, &mut listener).await;
            let told: Vec<_> = changes.iter().map(|change| (change.plugin_id.as_str(), change.to)).collect();
            assert_eq!(told, [("on", Phase::Active)]);
        },
    );
}

#[test]
fn at_the_hosts_start_a_plugin_whose_folder_is_gone_is_in_error_and_not_started() {
    let found = vec![record("gone", Status::Active), record("off", Status::Disabled), record("on", Status::Active)];
    run_with(
        found,
        |_| {},
        async |world| {
            for id in ["gone", "off"] {
                std::fs::remove_dir_all(world.plugins().join(id)).unwrap();
            }
            let mut listener = listen(world).await;
            world.registry.boot().await.unwrap();
            let why = |id: &str| {
                let path = world.plugins().join(id).join("1.0.0");
                Some(format!("plugin install path \"{}\" is missing", path.display()))
            };
            assert_eq!(world.on_disk("gone").await, (Status::Error, false, 0, why("gone")));
            assert_eq!(world.on_disk("off").await, (Status::Error, false, 0, why("off")));
            assert_eq!(world.status("on").await, Status::Active);
            assert_eq!(world.fakes.calls("gone"), Vec::<String>::new());
            let mut told: Vec<_> = changes(world, &mut listener)
                .await
                .into_iter()
                .map(|change| (change.plugin_id.as_str().to_owned(), change.to))
                .collect();
            told.sort_by(|a, b| a.0.cmp(&b.0));
            let expected = [("gone", Phase::Error), ("off", Phase::Error), ("on", Phase::Active)];
            assert_eq!(told, expected.map(|(id, phase)| (id.to_owned(), phase)));
        },
    );
}

#[test]
fn a_running_plugin_whose_folder_is_gone_is_stopped_and_another_sync_tells_nothing_new() {
    run_with(
        vec![record("acme", Status::Active)],
        |_| {},
        async |world| {
            world.registry.boot().await.unwrap();
            std::fs::remove_dir_all(world.plugins().join("acme")).unwrap();
            let report = world.registry.sync().await.unwrap();
            assert_eq!((report.missing.len(), report.errors.len()), (1, 0), "{report:?}");
            assert_eq!(world.status("acme").await, Status::Error);
            assert_eq!(world.fakes.alive(), Vec::<String>::new());
            let mut listener = listen(world).await;
            assert_eq!(world.registry.sync().await.unwrap(), report);
            assert_eq!(changes(world, &mut listener).await, []);
        },
    );
}
