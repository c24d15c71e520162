//! The restart row, its record and its late timers.

use std::time::Duration;

use kandev_host::{actors::RegistryError, domain::record::Status};

use crate::support::{Launch, run};

const CRASH: &str = "exited with code 3";

#[test]
fn restarts_come_after_1_2_4_8_and_16_seconds_and_then_no_more() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Up]);
        world.fakes.launches("acme", vec![Launch::Fails("no line"); 5]);
        world.registry.enable("acme").await.unwrap();
        world.fakes.crash("acme");
        world.at(30.0).await;
        assert_eq!(world.on_disk("acme").await, (Status::Error, true, 0, Some("no line".into())));
        world.at(4000.0).await;
        let expected =
            ["0 launch 1", "0 end 1", "1 launch 2", "3 launch 3", "7 launch 4", "15 launch 5", "31 launch 6"];
        assert_eq!(world.fakes.calls("acme"), expected);
        let why = "gave up after 5 restarts in a row; enable the plugin to try again: no line";
        assert_eq!(world.on_disk("acme").await, (Status::Error, false, 0, Some(why.into())));
    });
}

#[test]
fn what_no_attempt_can_mend_ends_the_row_at_once_with_its_own_text() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Up, Launch::Fails("no line"), Launch::FailsForGood("another file")]);
        world.registry.enable("acme").await.unwrap();
        world.fakes.crash("acme");
        world.at(4000.0).await;
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "0 end 1", "1 launch 2", "3 launch 3"]);
        assert_eq!(world.on_disk("acme").await, (Status::Error, false, 0, Some("another file".into())));
    });
}

#[test]
fn a_crash_one_second_before_the_stability_time_goes_on_with_the_row_and_one_second_after_it_begins_anew() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        for crash in [10.0, 11.0 + 59.0, 72.0 + 61.0] {
            world.at(crash).await;
            world.fakes.crash("acme");
        }
        world.at(200.0).await;
        let launches = ["0 launch 1", "11 launch 2", "72 launch 3", "134 launch 4"];
        assert_eq!(world.fakes.calls_with("acme", "launch"), launches);
    });
}

#[test]
fn the_stability_timer_of_an_earlier_generation_does_not_end_the_row() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        // Generation 1 would have been stable at 60.
        for crash in [55.0, 70.0] {
            world.at(crash).await;
            world.fakes.crash("acme");
        }
        world.at(100.0).await;
        assert_eq!(world.fakes.calls_with("acme", "launch"), ["0 launch 1", "56 launch 2", "72 launch 3"]);
    });
}

#[test]
fn the_restart_timer_of_an_earlier_generation_starts_nothing() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        world.at(10.0).await;
        world.fakes.crash("acme");
        world.at(10.5).await;
        world.registry.enable("acme").await.unwrap();
        world.at(10.7).await;
        world.fakes.crash("acme");
        world.at(20.0).await;
        // The timer of the first crash is over at 11, while generation 2 waits for its own.
        let launches = ["0 launch 1", "10.5 launch 2", "11.7 launch 3"];
        assert_eq!(world.fakes.calls_with("acme", "launch"), launches);
    });
}

#[test]
fn the_record_tells_of_a_crash_and_of_the_good_restart_and_keeps_the_count() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
        world.at(10.0).await;
        world.fakes.crash("acme");
        assert_eq!(world.on_disk("acme").await, (Status::Error, true, 0, Some(CRASH.into())));
        world.at(12.0).await;
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 1, None));
        world.registry.disable("acme").await.unwrap();
        assert_eq!(world.on_disk("acme").await, (Status::Disabled, false, 1, None));
        world.registry.enable("acme").await.unwrap();
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 1, None));
    });
}

#[test]
fn enable_during_the_last_restart_is_answered_with_its_failure() {
    run(async |world| {
        world.fakes.launches("acme", [Launch::Up]);
        world.fakes.launches("acme", vec![Launch::Fails("no line"); 4]);
        world.fakes.launches("acme", [Launch::FailsLate(Duration::from_secs(20))]);
        world.registry.enable("acme").await.unwrap();
        world.fakes.crash("acme");
        world.at(40.0).await;
        let (at, answer) = world.command(async |registry| registry.enable("acme").await).await.unwrap();
        assert!(
            matches!(&answer, Err(RegistryError::StartFailed { reason, .. }) if reason == "no handshake line"),
            "{answer:?}"
        );
        assert_eq!(at, 51.0);
        world.at(500.0).await;
        assert_eq!(world.fakes.calls_with("acme", "launch").last().unwrap(), "31 launch 6");
        assert_eq!(world.on_disk("acme").await, (Status::Error, false, 0, Some("no handshake line".into())));
    });
}
