//! Keeps a runtime's next timer near, so that the deadline of a call wakes nobody.
//!
//! A thread that waits for the network sleeps until the runtime's next timer. Whoever sets an earlier one has to wake
//! it, so that it sleeps shorter. A host at rest has pings in half a minute as its next timers: the deadline of every
//! delivery, webhook or Host call would be earlier, and cost a change of thread that nobody needs
//! (docs/performance.md). Beside a timer that is always nearer than those deadlines they cost nothing.

use std::{convert::Infallible, time::Duration};

use tokio::time::{self, MissedTickBehavior};

/// Runs for ever; each runtime on which calls are made needs one.
pub async fn keep(pace: Duration) -> Infallible {
    let mut ticks = time::interval(pace);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::FutureExt;
    use tokio::runtime::Builder;

    use super::*;

    const LATER: Duration = Duration::from_secs(20);

    /// How often the only worker went to sleep while so many deadlines were set from outside, one by one.
    fn naps(paced: bool, deadlines: u32) -> u64 {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let metrics = runtime.metrics();
        let _others = runtime.spawn(async { time::sleep(LATER * 2).await });
        if paced {
            runtime.spawn(keep(LATER / 4));
        }
        let asleep_again = |naps: u64, within: Duration| {
            let begin = time::Instant::now();
            while metrics.worker_park_count(0) <= naps && begin.elapsed() < within {
                thread::yield_now();
            }
        };
        // Until it has looked at what was spawned, and sleeps.
        let mut before = u64::MAX;
        while before != metrics.worker_park_count(0) || before == 0 {
            before = metrics.worker_park_count(0);
            asleep_again(before, Duration::from_millis(500));
        }
        for _ in 0..deadlines {
            let naps = metrics.worker_park_count(0);
            runtime.block_on(async { assert!(time::sleep(LATER).now_or_never().is_none()) });
            asleep_again(naps, if paced { Duration::from_millis(5) } else { LATER });
        }
        metrics.worker_park_count(0) - before
    }

    #[test]
    fn a_deadline_behind_the_next_timer_wakes_nobody_and_one_before_it_does() {
        let (paced, unpaced) = (naps(true, 20), naps(false, 20));
        assert!(paced <= 1 && unpaced >= 20, "{paced}, {unpaced}");
    }
}
