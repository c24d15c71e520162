//! Deliveries to a healthy plugin: order, deadlines, retries, the queue's bound.

use std::time::Duration;

use kandev_host::domain::record::Status;

use crate::support::{Answer, Stop, record, run, run_with};

#[test]
fn a_refused_event_is_repeated_after_5_15_and_45_seconds_under_one_id_and_then_dropped() {
    run(async |world| {
        world.fakes.deliveries("acme", vec![Answer::Bad; 4]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all([1, 2]).await;
        world.at(100.0).await;
        let expected = [
            "0 deliver task.1 #1",
            "5 deliver task.1 #1",
            "20 deliver task.1 #1",
            "65 deliver task.1 #1",
            "65 deliver task.2 #2",
        ];
        assert_eq!(world.fakes.calls_with("acme", "deliver"), expected);
        let notes = world.notes("acme").await;
        let [repeated @ .., note] = &notes[..] else { panic!("{notes:?}") };
        let waits = [5, 15, 45].map(|wait| {
            format!("an event was not accepted, tried again after {wait} s: the plugin answered Internal: scripted")
        });
        assert_eq!(repeated, waits);
        let end = " (task.1) failed and was dropped: the plugin answered Internal: scripted";
        assert!(note.starts_with("event ") && note.ends_with(end), "{note}");
    });
}

#[test]
fn a_delivery_that_hangs_has_failed_after_10_seconds() {
    run(async |world| {
        world.fakes.deliveries("acme", [Answer::Hangs]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all([1]).await;
        world.at(60.0).await;
        assert_eq!(world.fakes.calls_with("acme", "deliver"), ["0 deliver task.1 #1", "15 deliver task.1 #1"]);
    });
}

#[test]
fn events_wait_behind_a_slow_one_and_keep_their_order() {
    run(async |world| {
        world.fakes.deliveries("acme", [Answer::Slow(Duration::from_secs(8)), Answer::Slow(Duration::from_secs(2))]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all(1..=3).await;
        world.at(60.0).await;
        let expected = ["0 deliver task.1 #1", "8 deliver task.2 #2", "10 deliver task.3 #3"];
        assert_eq!(world.fakes.calls_with("acme", "deliver"), expected);
    });
}

#[test]
fn a_hanging_plugin_delays_no_other() {
    let found = ["acme", "beta"].map(|id| record(id, Status::Active));
    run_with(
        found.into(),
        |_| {},
        async |world| {
            world.fakes.deliveries("acme", [Answer::Hangs]);
            world.registry.boot().await.unwrap();
            world.publish_all([1, 2]).await;
            world.at(1.0).await;
            assert_eq!(world.fakes.calls_with("acme", "deliver"), ["0 deliver task.1 #1"]);
            assert_eq!(world.fakes.calls_with("beta", "deliver"), ["0 deliver task.1 #1", "0 deliver task.2 #2"]);
        },
    );
}

#[test]
fn the_queue_of_a_slow_plugin_keeps_1000_events_and_drops_the_oldest() {
    run(async |world| {
        world.fakes.deliveries("acme", [Answer::Slow(Duration::from_secs(9))]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all(0..1200).await;
        world.at(100.0).await;
        let delivered = world.fakes.calls_with("acme", "deliver");
        let subjects: Vec<_> = delivered.iter().map(|call| call.split(' ').nth(2).unwrap()).collect();
        let expected: Vec<_> = [0].into_iter().chain(201..1200).map(|n| format!("task.{n}")).collect();
        assert_eq!(subjects, expected);
        let notes = [1, 199].map(|count| format!("{count} events dropped, oldest first: the plugin's queue is full"));
        assert_eq!(world.notes("acme").await, notes);
    });
}

#[test]
fn a_poison_event_that_crashes_the_plugin_is_given_up_after_four_attempts() {
    run(async |world| {
        world.fakes.deliveries("acme", vec![Answer::Hangs; 4]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all([1, 2]).await;
        for crash in [1.0, 3.0, 6.0, 11.0] {
            world.at(crash).await;
            world.fakes.crash("acme");
        }
        world.at(60.0).await;
        let expected = [
            "0 deliver task.1 #1",
            "2 deliver task.1 #1",
            "5 deliver task.1 #1",
            "10 deliver task.1 #1",
            "19 deliver task.2 #2",
        ];
        assert_eq!(world.fakes.calls_with("acme", "deliver"), expected);
    });
}

#[test]
fn disabling_forgets_what_waits_and_the_next_process_is_not_held_up_by_a_retry_of_the_last() {
    run(async |world| {
        world.fakes.deliveries("acme", [Answer::Bad]);
        world.fakes.stops("acme", [Stop::Ends(Duration::from_secs(4))]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all([1, 2]).await;
        // The retry of the first comes due at 5, during the stop.
        world.at(3.0).await;
        let disabled = world.command(async |registry| registry.disable("acme").await);
        world.at(4.0).await;
        world.registry.enable("acme").await.unwrap();
        assert_eq!((world.now(), disabled.await.unwrap().1.is_ok()), (7.0, true));
        world.publish_all([3]).await;
        world.at(60.0).await;
        assert_eq!(world.fakes.calls_with("acme", "deliver"), ["0 deliver task.1 #1", "7 deliver task.3 #2"]);
    });
}

#[test]
fn a_delivery_cut_off_by_a_stop_does_not_hold_up_the_next_process() {
    run(async |world| {
        world.fakes.deliveries("acme", [Answer::Hangs]);
        world.registry.enable("acme").await.unwrap();
        world.publish_all([1]).await;
        world.at(1.0).await;
        let disabled = world.command(async |registry| registry.disable("acme").await);
        world.settled().await;
        world.registry.enable("acme").await.unwrap();
        assert!(disabled.await.unwrap().1.is_ok());
        world.publish_all([2]).await;
        world.at(60.0).await;
        assert_eq!(world.fakes.calls_with("acme", "deliver"), ["0 deliver task.1 #1", "4 deliver task.2 #2"]);
    });
}
