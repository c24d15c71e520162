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
fn one_of_thirty_plugins_that_hangs_at_its_handshake_delays_no_other() {
    let ids: Vec<_> = (0..30).map(|number| format!("plugin{number:02}")).collect();
    run_with(
        ids.iter().map(|id| record(id, Status::Active)).collect(),
        |_| {},
        async |world| {
            let others: Vec<_> = ids.iter().filter(|id| *id != "plugin03").collect();
            for id in &others {
                world.fakes.launches(id, [Launch::Slow(Duration::from_secs(1))]);
            }
            let limit = world.timing.start_timeout;
            world.fakes.launches("plugin03", [Launch::FailsLate(limit)]);
            let boot = world.command(async |registry| registry.boot().await);
            // Three of the four places are left to the others.
            world.at(10.5).await;
            for id in others {
                assert_eq!(world.status(id).await, Status::Active, "{id}");
            }
            assert_eq!(world.status("plugin03").await, Status::Registered);
            assert_eq!(boot.await.unwrap().0, limit.as_secs_f64());
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
fn a_plugin_is_registered_until_its_process_is_healthy_whatever_an_earlier_host_has_left() {
    let found = vec![record("acme", Status::Active), record("zeta", Status::Active)];
    run_with(
        found,
        |config| config.limits.boot_parallelism = 1,
        async |world| {
            let shown = async || {
                let list = world.registry.list().await.unwrap();
                let listed: Vec<_> = list.iter().map(|view| view.record.state.status).collect();
                assert_eq!(
                    listed,
                    [world.status("acme").await, world.status("zeta").await],
                    "every view says the same"
                );
                listed
            };
            assert_eq!(shown().await, [Status::Registered, Status::Registered]);
            for id in ["acme", "zeta"] {
                world.fakes.launches(id, [Launch::Slow(Duration::from_secs(10))]);
            }
            let boot = world.command(async |registry| registry.boot().await);
            world.at(5.0).await;
            assert_eq!(shown().await, [Status::Registered, Status::Registered]);
            world.at(15.0).await;
            assert_eq!(shown().await, [Status::Active, Status::Registered]);
            boot.await.unwrap().1.unwrap();
            assert_eq!(shown().await, [Status::Active, Status::Active]);
        },
    );
}

#[test]
fn a_plugin_that_is_claimed_at_its_turn_is_started_when_the_claim_ends() {
    run_with(
        vec![record("acme", Status::Active), record("off", Status::Disabled)],
        |_| {},
        async |world| {
            // The host's own look at the folder claims both, to remove these.
            for id in ["acme", "off"] {
                std::fs::create_dir(world.plugins().join(id).join(".tmp-left")).unwrap();
            }
            world.registry.boot().await.unwrap();
            world.settled().await;
            let left = |id: &str| world.plugins().join(id).join(".tmp-left").exists();
            assert_eq!((left("acme"), left("off")), (false, false));
            assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
            assert_eq!(world.on_disk("off").await, (Status::Disabled, false, 0, None));
            let launched = ["acme", "off"].map(|id| world.fakes.calls(id));
            assert_eq!(launched, [vec!["0 launch 1".to_owned()], vec![]]);
        },
    );
}

#[test]
fn an_interrupted_start_is_verified_before_it_is_repeated_unless_the_plugin_was_taken_over_from_its_folder() {
    let mut taken_over = record("put", Status::Registered);
    taken_over.state.sideloaded = true;
    run_with(
        vec![record("acme", Status::Registered), taken_over],
        |_| {},
        async |world| {
            // Neither folder has checksums to compare with.
            world.registry.boot().await.unwrap();
            assert_eq!(world.on_disk("acme").await.0, Status::Error);
            assert_eq!(world.on_disk("put").await, (Status::Active, false, 0, None));
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
