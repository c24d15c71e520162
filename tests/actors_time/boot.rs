//! The host's start.

use std::time::Duration;

use kandev_host::domain::record::{PluginRecord, Status};

use crate::support::{Launch, record, run_with};

fn restarting(id: &str) -> PluginRecord {
    let mut record = record(id, Status::Error);
    record.state.restarting = true;
    record
}

#[test]
fn at_most_four_plugins_start_side_by_side() {
    let ids = ["aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj"];
    run_with(
        ids.map(|id| record(id, Status::Active)).into(),
        |_| {},
        async |world| {
            for id in ids {
                world.fakes.launches(id, [Launch::Slow(Duration::from_secs(5))]);
            }
            world.registry.boot().await.unwrap();
            assert_eq!((world.now(), world.fakes.most_launching()), (15.0, 4));
            for id in ids {
                assert_eq!(world.on_disk(id).await, (Status::Active, false, 0, None), "{id}");
            }
        },
    );
}

#[test]
fn active_and_restarting_plugins_are_started_and_disabled_and_given_up_ones_left_alone() {
    let found = vec![
        record("active", Status::Active),
        record("disabled", Status::Disabled),
        record("given-up", Status::Error),
        restarting("restarting"),
    ];
    run_with(
        found,
        |_| {},
        async |world| {
            world.registry.boot().await.unwrap();
            world.at(100.0).await;
            let launched = ["active", "disabled", "given-up", "restarting"].map(|id| world.fakes.calls(id));
            assert_eq!(launched, [vec!["0 launch 1".to_owned()], vec![], vec![], vec!["0 launch 1".to_owned()]]);
        },
    );
}

#[test]
fn a_start_that_fails_at_boot_begins_a_restart_row() {
    run_with(
        vec![record("acme", Status::Active)],
        |_| {},
        async |world| {
            world.fakes.launches("acme", [Launch::Fails("no line"), Launch::Fails("no line")]);
            world.registry.boot().await.unwrap();
            assert_eq!(world.on_disk("acme").await, (Status::Error, true, 0, Some("no line".into())));
            world.at(10.0).await;
            assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "1 launch 2", "3 launch 3"]);
            assert_eq!(world.on_disk("acme").await, (Status::Active, false, 1, None));
        },
    );
}

#[test]
fn a_plugin_disabled_before_its_turn_stays_off() {
    let found = vec![record("acme", Status::Active), record("zeta", Status::Active)];
    run_with(
        found,
        |config| config.limits.boot_parallelism = 1,
        async |world| {
            world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(10))]);
            let boot = world.command(async |registry| registry.boot().await);
            world.at(5.0).await;
            world.registry.disable("zeta").await.unwrap();
            let (at, answer) = boot.await.unwrap();
            assert_eq!((at, answer.is_ok()), (10.0, true));
            world.at(100.0).await;
            assert_eq!(world.fakes.calls("zeta"), Vec::<String>::new());
            assert_eq!(world.on_disk("zeta").await, (Status::Disabled, false, 0, None));
        },
    );
}

#[test]
fn a_plugin_enabled_before_its_turn_does_not_hold_up_the_boot() {
    let found = vec![record("acme", Status::Active), record("zeta", Status::Active)];
    run_with(
        found,
        |config| config.limits.boot_parallelism = 1,
        async |world| {
            world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(10))]);
            let boot = world.command(async |registry| registry.boot().await);
            world.at(5.0).await;
            world.registry.enable("zeta").await.unwrap();
            let (at, answer) = boot.await.unwrap();
            assert_eq!((at, answer.is_ok()), (10.0, true));
            assert_eq!(world.fakes.calls("zeta"), ["5 launch 1"]);
        },
    );
}

#[test]
fn a_plugin_that_waits_for_its_restart_does_not_hold_up_the_boot() {
    let found = vec![record("acme", Status::Active), record("zeta", Status::Active)];
    let slow = |config: &mut kandev_host::config::Config| {
        config.limits.boot_parallelism = 1;
        config.timing.restart_delays = vec![Duration::from_secs(40)];
    };
    run_with(found, slow, async |world| {
        world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(10))]);
        let boot = world.command(async |registry| registry.boot().await);
        world.at(5.0).await;
        world.registry.enable("zeta").await.unwrap();
        world.fakes.crash("zeta");
        let (at, answer) = boot.await.unwrap();
        assert_eq!((at, answer.is_ok()), (10.0, true));
        world.at(60.0).await;
        assert_eq!(world.fakes.calls("zeta"), ["5 launch 1", "5 end 1", "45 launch 2"]);
    });
}
