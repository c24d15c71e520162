//! The ring buffer of a plugin that is not healthy, and the warnings about what it drops.

use std::time::Duration;

use kandev_host::{config::Config, domain::record::Status};

use crate::support::{Answer, Launch, World, record, run_with};

/// A plugin that takes `seconds` to come up after the host's start.
fn starting(seconds: u64, test: impl AsyncFnOnce(&World)) {
    run_with(
        vec![record("acme", Status::Active)],
        |_| {},
        async |world| {
            world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(seconds))]);
            let boot = world.command(async |registry| registry.boot().await);
            world.settled().await;
            test(world).await;
            boot.await.unwrap().1.unwrap();
        },
    );
}

fn subjects(world: &World) -> Vec<String> {
    let delivered = world.fakes.calls_with("acme", "deliver");
    delivered.iter().map(|call| call.split(' ').nth(2).unwrap().to_owned()).collect()
}

fn tasks(numbers: impl IntoIterator<Item = usize>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("task.{number}")).collect()
}

#[test]
fn the_100_newest_events_are_kept_and_delivered_in_order_before_what_comes_later() {
    starting(20, async |world| {
        world.fakes.deliveries("acme", [Answer::Slow(Duration::from_secs(5))]);
        world.publish_all(0..150).await;
        world.at(22.0).await;
        assert_eq!(subjects(world), tasks([50]));
        world.publish_all([900]).await;
        world.at(60.0).await;
        assert_eq!(subjects(world), tasks((50..150).chain([900])));
    });
}

#[test]
fn a_buffered_event_lives_5_minutes_from_its_publishing() {
    let slow_restart = |config: &mut Config| config.timing.restart_delays = vec![Duration::from_secs(299)];
    run_with(vec![record("acme", Status::Active)], slow_restart, async |world| {
        world.fakes.deliveries("acme", [Answer::Bad]);
        world.registry.boot().await.unwrap();
        // Published while the plugin was healthy: 299 of their 301 seconds were in the buffer.
        world.publish_all([1, 2]).await;
        world.at(2.0).await;
        world.fakes.crash("acme");
        world.at(50.0).await;
        world.publish_all([3]).await;
        world.at(320.0).await;
        assert_eq!(world.fakes.calls_with("acme", "deliver"), ["0 deliver task.1 #1", "301 deliver task.3 #2"]);
        assert_eq!(
            world.notes("acme").await.last().unwrap(),
            "2 events dropped: they waited longer than timing.buffer_ttl"
        );
    });
}

#[test]
fn overflow_warns_at_once_and_then_once_a_minute_with_the_count() {
    starting(200, async |world| {
        let note = |count: u64| format!("{count} events dropped, oldest first: the plugin's queue is full");
        world.publish_all(0..150).await;
        for (at, first) in [(10.0, 200), (30.0, 210)] {
            world.at(at).await;
            world.publish_all(first..first + 10).await;
        }
        world.at(59.0).await;
        assert_eq!(world.notes("acme").await, [note(1)]);
        world.at(61.0).await;
        assert_eq!(world.notes("acme").await, [note(1), note(69)]);
        world.at(190.0).await;
        assert_eq!(world.notes("acme").await, [note(1), note(69)]);
    });
}

#[test]
fn expiry_shares_the_warning_of_the_minute_with_overflow() {
    let short_life = |config: &mut Config| config.timing.buffer_ttl = Duration::from_secs(20);
    run_with(vec![record("acme", Status::Active)], short_life, async |world| {
        world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(100))]);
        let boot = world.command(async |registry| registry.boot().await);
        world.settled().await;
        world.publish_all(0..110).await;
        world.at(25.0).await;
        world.publish_all([500]).await;
        world.at(59.0).await;
        let first = "1 events dropped, oldest first: the plugin's queue is full";
        assert_eq!(world.notes("acme").await, [first]);
        world.at(110.0).await;
        let second = "109 events dropped, oldest first: 9 because the plugin's queue is full, 100 because they waited \
                      longer than timing.buffer_ttl";
        let third = "1 events dropped: they waited longer than timing.buffer_ttl";
        assert_eq!(world.notes("acme").await, [first, second]);
        world.at(125.0).await;
        assert_eq!(world.notes("acme").await, [first, second, third]);
        boot.await.unwrap().1.unwrap();
    });
}
