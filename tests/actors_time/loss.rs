//! A plugin's actor that panics.

use kandev_host::domain::record::Status;

use crate::support::{Answer, Launch, record, run, run_with};

#[test]
fn a_panicked_plugin_actor_is_replaced_and_its_plugin_comes_back() {
    let found = ["acme", "beta"].map(|id| record(id, Status::Active));
    run_with(
        found.into(),
        |_| {},
        async |world| {
            world.registry.boot().await.unwrap();
            world.fakes.launches("acme", [Launch::Panics]);
            world.at(10.0).await;
            world.fakes.crash("acme");
            world.at(20.0).await;
            // The restart after one second panics; after one more the new actor counts its generations anew.
            assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "10 end 1", "11 panic", "12 launch 1"]);
            assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
            world.publish_all([1]).await;
            world.settled().await;
            assert_eq!(world.fakes.calls_with("acme", "deliver"), ["20 deliver task.1 #1"]);
            assert_eq!(world.fakes.calls("beta"), ["0 launch 1", "20 deliver task.1 #1"]);
        },
    );
}

#[test]
fn an_actor_that_panics_again_and_again_is_replaced_after_growing_delays() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        world.fakes.launches("acme", vec![Launch::Panics; 3]);
        world.at(10.0).await;
        world.fakes.crash("acme");
        world.at(60.0).await;
        let expected = ["0 launch 1", "10 end 1", "11 panic", "12 panic", "14 panic", "18 launch 1"];
        assert_eq!(world.fakes.calls("acme"), expected);
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
    });
}

#[test]
fn a_command_whose_actor_panics_is_answered_and_the_next_one_works() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Panics]);
        assert!(world.registry.enable("acme").await.is_err());
        assert_eq!(world.now(), 0.0);
        world.at(2.0).await;
        world.registry.enable("acme").await.unwrap();
        assert_eq!(world.fakes.calls("acme"), ["0 panic", "2 launch 1"]);
    });
}

#[test]
fn the_process_of_a_lost_actor_is_gone_before_the_next_one_is_launched() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        world.fakes.pings("acme", vec![Answer::Bad; 3]);
        world.fakes.panic_at_kill("acme");
        world.at(100.0).await;
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "90 kill 1", "90 end 1", "91 launch 1"]);
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
    });
}
