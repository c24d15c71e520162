//! Operators' commands: stops with their graces, aborted starts, claims.

use std::time::Duration;

use kandev_host::{
    actors::{CallKind, CallRefused, RegistryError},
    domain::record::Status,
};

use crate::support::{Launch, Stop, record, run, run_with};

#[test]
fn a_stop_waits_for_calls_in_flight_and_takes_no_new_ones() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        let plugin = world.registry.plugin("acme").unwrap();
        let call = plugin.begin(CallKind::Webhook).unwrap();
        let disabled = world.command(async |registry| registry.disable("acme").await);
        world.at(1.0).await;
        assert_eq!(plugin.begin(CallKind::Webhook).unwrap_err(), CallRefused::NotRunning);
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1"]);
        drop(call);
        let (at, answer) = disabled.await.unwrap();
        assert_eq!((at, answer.unwrap().record.state.status), (1.0, Status::Disabled));
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "1 stop 1", "1 end 1"]);
    });
}

#[test]
fn a_stop_waits_for_a_call_that_hangs_no_longer_than_the_drain_grace() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        let plugin = world.registry.plugin("acme").unwrap();
        let _call = plugin.begin(CallKind::Webhook).unwrap();
        world.registry.disable("acme").await.unwrap();
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "3 stop 1", "3 end 1"]);
    });
}

#[test]
fn disable_aborts_a_start_and_tells_whoever_waits_for_it() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(25))]);
        let enabled = world.command(async |registry| registry.enable("acme").await);
        world.at(5.0).await;
        let plugin = world.registry.disable("acme").await.unwrap();
        assert_eq!((world.now(), plugin.record.state.status), (5.0, Status::Disabled));
        let (at, answer) = enabled.await.unwrap();
        assert!(
            matches!(&answer, Err(RegistryError::Overtaken { reason, .. })
                if reason == "the start was aborted: the plugin was disabled"),
            "{answer:?}"
        );
        assert_eq!(at, 5.0);
        world.at(100.0).await;
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1"]);
        assert_eq!(world.on_disk("acme").await, (Status::Disabled, false, 0, None));
    });
}

#[test]
fn enable_during_a_stop_starts_the_plugin_when_the_old_process_is_gone() {
    run(async |world| {
        world.fakes.stops("acme", [Stop::Ends(Duration::from_secs(4))]);
        world.registry.enable("acme").await.unwrap();
        let disabled = world.command(async |registry| registry.disable("acme").await);
        world.at(1.0).await;
        world.registry.enable("acme").await.unwrap();
        assert_eq!((world.now(), disabled.await.unwrap().1.is_ok()), (4.0, true));
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "0 stop 1", "4 end 1", "4 launch 2"]);
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
    });
}

#[test]
fn a_claimed_id_is_busy_while_another_is_served_and_the_uninstall_of_a_frozen_process_ends_with_its_ladder() {
    let found = ["acme", "beta"].map(|id| record(id, Status::Disabled));
    run_with(
        found.into(),
        |_| {},
        async |world| {
            let timing = &world.timing;
            let ladder = timing.stop_grace + timing.term_grace + timing.pipe_grace;
            world.fakes.stops("acme", [Stop::Ends(ladder)]);
            world.registry.enable("acme").await.unwrap();
            let _call = world.registry.plugin("acme").unwrap().begin(CallKind::Webhook).unwrap();
            let removed = world.command(async |registry| registry.uninstall("acme").await);
            world.at(1.0).await;
            for busy in [world.registry.enable("acme").await.err(), world.registry.uninstall("acme").await.err()] {
                assert!(matches!(&busy, Some(RegistryError::Busy(id)) if id.as_str() == "acme"), "{busy:?}");
            }
            world.registry.enable("beta").await.unwrap();
            assert_eq!((world.now(), world.status("beta").await), (1.0, Status::Active));

            let ended = (timing.drain_grace + ladder).as_secs_f64();
            world.at(ended - 0.1).await;
            assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "3 stop 1"]);
            // What follows asks the database, whose threads do not hold the clock.
            world.fakes.until_ended("acme").await;
            let clock = world.hold_clock();
            let (at, answer) = removed.await.unwrap();
            drop(clock);
            answer.unwrap();
            assert_eq!(at, ended);
            assert!(matches!(world.registry.get("acme").await, Err(RegistryError::NotFound(_))));
        },
    );
}
