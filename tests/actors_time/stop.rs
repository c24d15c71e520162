//! The host's stop.

use std::time::Duration;

use kandev_host::{actors::RegistryError, domain::record::Status};

use crate::support::{Launch, Stop, record, run, run_with};

#[test]
fn the_stop_returns_when_all_are_down_and_exits_meanwhile_are_no_crashes() {
    let found = ["acme", "beta", "crashy"].map(|id| record(id, Status::Active));
    run_with(
        found.into(),
        |_| {},
        async |world| {
            world.fakes.stops("acme", [Stop::Ends(Duration::from_secs(2))]);
            world.fakes.stops("beta", [Stop::Ends(Duration::from_secs(4))]);
            world.fakes.stops("crashy", [Stop::Ends(Duration::from_secs(3))]);
            world.registry.boot().await.unwrap();
            let stopped = world.command(async |registry| registry.stop().await);
            world.at(1.0).await;
            world.fakes.crash("crashy");
            let (at, left) = stopped.await.unwrap();
            assert_eq!((at, left.unwrap()), (4.0, vec![]));
            world.at(100.0).await;
            assert_eq!(world.fakes.calls("crashy"), ["0 launch 1", "0 stop 1", "1 end 1"]);
            for id in ["acme", "beta", "crashy"] {
                assert_eq!(world.on_disk(id).await, (Status::Active, false, 0, None), "{id}");
            }
        },
    );
}

#[test]
fn a_plugin_in_a_restart_row_keeps_the_promise_of_its_restart() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        world.fakes.crash("acme");
        world.settled().await;
        assert_eq!(world.registry.stop().await.unwrap(), []);
        world.at(100.0).await;
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "0 end 1"]);
        assert_eq!(world.on_disk("acme").await, (Status::Error, true, 0, Some("exited with code 3".into())));
    });
}

#[test]
fn a_start_under_way_is_aborted_and_later_commands_are_refused() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(25))]);
        let enabled = world.command(async |registry| registry.enable("acme").await);
        world.at(5.0).await;
        assert_eq!((world.registry.stop().await.unwrap(), world.now()), (vec![], 5.0));
        let (at, answer) = enabled.await.unwrap();
        assert!(
            matches!(&answer, Err(RegistryError::Overtaken { reason, .. })
                if reason == "the start was aborted: the host is stopping"),
            "{answer:?}"
        );
        assert_eq!(at, 5.0);
        assert!(matches!(world.registry.enable("acme").await, Err(RegistryError::Stopping)));
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1"]);
    });
}

#[test]
fn a_boot_that_is_not_done_when_the_host_stops_starts_nothing_more() {
    let found = ["acme", "beta"].map(|id| record(id, Status::Active));
    run_with(
        found.into(),
        |config| config.limits.boot_parallelism = 1,
        async |world| {
            world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(10))]);
            let boot = world.command(async |registry| registry.boot().await);
            world.at(5.0).await;
            assert_eq!(world.registry.stop().await.unwrap(), []);
            assert_eq!(boot.await.unwrap().0, 5.0);
            assert_eq!(world.fakes.calls("beta"), Vec::<String>::new());
            assert_eq!(world.on_disk("beta").await, (Status::Active, false, 0, None));
        },
    );
}
