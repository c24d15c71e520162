//! Keeps a runtime's next timer near, so that the deadline of a call wakes nobody.
//!
//! A thread that waits for the network sleeps until the runtime's next timer. Whoever sets an earlier one has to wake it,
//! so that it sleeps shorter. A host at rest has pings in half a minute as its next timers: the deadline of every delivery,
//! webhook or Host call would be earlier, and cost a change of thread that nobody needs (docs/performance.md). Beside a
//! timer that is always nearer than those deadlines they cost nothing.

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
