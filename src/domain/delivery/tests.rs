use proptest::prelude::*;

use super::*;

fn policy() -> Policy {
    Policy {
        queue_events: 5,
        buffer_events: 3,
        buffer_ttl: Duration::from_secs(300),
        retries: [5, 15, 45].map(Duration::from_secs).to_vec(),
    }
}

fn start() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests need some starting point; they never compare it with the clock"
    )]
    Instant::now()
}

fn live() -> (DeliveryQueue<u32>, Instant) {
    let now = start();
    let mut queue = DeliveryQueue::new(policy());
    queue.resume(now);
    (queue, now)
}

fn drain(queue: &mut DeliveryQueue<u32>) -> Vec<u32> {
    let mut seen = Vec::new();
    while let Some(attempt) = queue.next_attempt() {
        seen.push(attempt.event);
        assert!(queue.acknowledged(attempt.ticket));
    }
    seen
}

#[test]
fn one_event_at_a_time_is_in_flight() {
    let (mut queue, now) = live();
    queue.push(1, now);
    queue.push(2, now);
    assert_eq!(queue.next_attempt(), Some(Attempt { event: 1, ticket: 0, number: 1 }));
    assert_eq!(queue.next_attempt(), None);
    assert!(queue.acknowledged(0));
    assert_eq!(queue.next_attempt(), Some(Attempt { event: 2, ticket: 1, number: 1 }));
}

#[test]
fn a_failing_event_is_tried_four_times_with_the_documented_waits_and_then_given_up() {
    let (mut queue, now) = live();
    queue.push(1, now);
    queue.push(2, now);
    for (number, wait) in [(1, 5), (2, 15), (3, 45)] {
        let attempt = queue.next_attempt().unwrap();
        assert_eq!((attempt.event, attempt.number), (1, number));
        assert_eq!(queue.failed(attempt.ticket), AfterFailure::RetryAfter(Duration::from_secs(wait), attempt.ticket));
        assert_eq!(queue.next_attempt(), None, "nothing overtakes an event that waits for its retry");
        queue.retry_due(attempt.ticket);
    }
    let last = queue.next_attempt().unwrap();
    assert_eq!((last.event, last.number), (1, 4));
    assert_eq!(queue.failed(last.ticket), AfterFailure::GaveUp(1));
    assert_eq!(drain(&mut queue), [2]);
    assert_eq!(queue.counters(), Counters { delivered: 1, failed: 1, ..Counters::default() });
}

#[test]
fn a_late_outcome_of_an_earlier_process_changes_nothing() {
    let (mut queue, now) = live();
    queue.push(1, now);
    let attempt = queue.next_attempt().unwrap();
    assert_eq!(queue.suspend(true, now), None);
    assert!(!queue.acknowledged(attempt.ticket));
    assert_eq!(queue.failed(attempt.ticket), AfterFailure::Stale);
    queue.resume(now);
    assert_eq!(queue.next_attempt().map(|a| (a.event, a.number)), Some((1, 2)));
}

#[test]
fn an_event_that_crashes_the_plugin_on_every_delivery_is_given_up_after_the_fourth() {
    let (mut queue, now) = live();
    queue.push(1, now);
    queue.push(2, now);
    for _ in 0..3 {
        queue.next_attempt().unwrap();
        assert_eq!(queue.suspend(true, now), None);
        queue.resume(now);
    }
    queue.next_attempt().unwrap();
    assert_eq!(queue.suspend(true, now), Some(1));
    queue.resume(now);
    assert_eq!(drain(&mut queue), [2]);
}

#[test]
fn a_deliberate_stop_does_not_count_as_an_attempt() {
    let (mut queue, now) = live();
    queue.push(1, now);
    queue.next_attempt().unwrap();
    assert_eq!(queue.suspend(false, now), None);
    queue.resume(now);
    assert_eq!(queue.next_attempt().map(|a| a.number), Some(1));
}

#[test]
fn the_buffer_keeps_the_newest_and_counts_the_rest() {
    let now = start();
    let mut queue = DeliveryQueue::new(policy());
    for event in 1..=10 {
        queue.push(event, now);
    }
    queue.resume(now);
    assert_eq!(drain(&mut queue), [8, 9, 10]);
    assert_eq!(queue.counters(), Counters { delivered: 3, overflowed: 7, ..Counters::default() });
}

#[test]
fn a_buffered_event_expires_by_its_age_since_publishing() {
    let now = start();
    let mut queue = DeliveryQueue::new(policy());
    queue.push(1, now);
    queue.push(2, now + Duration::from_secs(1));
    queue.resume(now + Duration::from_secs(300));
    assert_eq!(drain(&mut queue), [2]);
    assert_eq!(queue.counters(), Counters { delivered: 1, expired: 1, ..Counters::default() });
}

#[test]
fn a_slow_plugin_loses_the_oldest_waiting_event_but_never_the_one_in_flight() {
    let (mut queue, now) = live();
    queue.push(1, now);
    let attempt = queue.next_attempt().unwrap();
    for event in 2..=7 {
        queue.push(event, now);
    }
    assert!(queue.acknowledged(attempt.ticket));
    assert_eq!(drain(&mut queue), [4, 5, 6, 7]);
    assert_eq!(queue.counters(), Counters { delivered: 5, overflowed: 2, ..Counters::default() });
}

#[test]
fn what_was_buffered_is_delivered_before_what_came_later() {
    let (mut queue, now) = live();
    queue.push(1, now);
    queue.next_attempt().unwrap();
    queue.push(2, now);
    queue.suspend(false, now);
    queue.push(3, now);
    queue.resume(now);
    queue.push(4, now);
    assert_eq!(drain(&mut queue), [1, 2, 3, 4]);
}

#[derive(Debug, Clone)]
enum Step {
    Push,
    Send,
    Acknowledge,
    Fail,
    RetryDue,
    Suspend(bool),
    Resume,
    Wait(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Push),
        4 => Just(Step::Send),
        3 => Just(Step::Acknowledge),
        1 => Just(Step::Fail),
        2 => Just(Step::RetryDue),
        1 => any::<bool>().prop_map(Step::Suspend),
        2 => Just(Step::Resume),
        1 => (0u64..400).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn first_attempts_keep_the_order_bounds_hold_and_every_event_is_accounted_for(
        steps in prop::collection::vec(any_step(), 0..200),
    ) {
        let mut now = start();
        let mut queue = DeliveryQueue::new(policy());
        let (mut pushed, mut last_sent, mut ticket) = (0u32, 0u32, None);
        for step in steps {
            match step {
                Step::Push => {
                    pushed += 1;
                    queue.push(pushed, now);
                }
                Step::Send => {
                    let due = queue.is_due();
                    let attempt = queue.next_attempt();
                    prop_assert_eq!(due, attempt.is_some());
                    if let Some(attempt) = attempt {
                        prop_assert!(attempt.event >= last_sent, "{} after {}", attempt.event, last_sent);
                        prop_assert!(attempt.number <= 4);
                        last_sent = attempt.event;
                        ticket = Some(attempt.ticket);
                    }
                }
                Step::Acknowledge => {
                    if let Some(ticket) = ticket {
                        queue.acknowledged(ticket);
                    }
                }
                Step::Fail => {
                    if let Some(ticket) = ticket {
                        queue.failed(ticket);
                    }
                }
                Step::RetryDue => {
                    if let Some(ticket) = ticket {
                        queue.retry_due(ticket);
                    }
                }
                Step::Suspend(crashed) => {
                    queue.suspend(crashed, now);
                }
                Step::Resume => queue.resume(now),
                Step::Wait(secs) => now += Duration::from_secs(secs),
            }
            prop_assert!(queue.len() <= 5);
            let Counters { delivered, failed, overflowed, expired } = queue.counters();
            prop_assert_eq!(
                delivered + failed + overflowed + expired + queue.len() as u64,
                u64::from(pushed)
            );
        }
    }
}
