//! Turns many drops into few warnings: at most one in an interval, with the counts since the last one
//! (contract/lifecycle.md §7). Overflow and expiry share it.

use std::{
    fmt,
    time::{Duration, Instant},
};

/// How many events were dropped, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Because the queue or the ring buffer was full.
    pub overflowed: u64,
    /// Because they were buffered longer than their life.
    pub expired: u64,
}

impl Drops {
    /// Both causes together.
    pub fn total(self) -> u64 {
        self.overflowed + self.expired
    }
}

impl fmt::Display for Drops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FULL: &str = "the plugin's queue is full";
        const OLD: &str = "they waited longer than timing.buffer_ttl";
        let Self { overflowed, expired } = self;
        let total = self.total();
        match (overflowed, expired) {
            (_, 0) => write!(f, "{total} events dropped, oldest first: {FULL}"),
            (0, _) => write!(f, "{total} events dropped: {OLD}"),
            _ => {
                write!(f, "{total} events dropped, oldest first: {overflowed} because {FULL}, {expired} because {OLD}")
            }
        }
    }
}

/// Collects drops and says when to warn.
#[derive(Debug)]
pub struct DropReport {
    interval: Duration,
    last_warning: Option<Instant>,
    unreported: Drops,
}

/// What to do about a drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing new to say.
    Quiet,
    /// Warn now about these drops.
    Warn(Drops),
    /// Ask [`DropReport::due`] again after this time; asked for once an interval.
    Later(Duration),
}

impl DropReport {
    /// Nothing dropped yet.
    pub fn new(interval: Duration) -> Self {
        Self { interval, last_warning: None, unreported: Drops::default() }
    }

    /// More events were dropped. The first drop warns at once.
    pub fn add(&mut self, more: Drops, now: Instant) -> Verdict {
        if more.total() == 0 {
            return Verdict::Quiet;
        }
        let already_waiting = self.unreported.total() > 0;
        self.unreported.overflowed += more.overflowed;
        self.unreported.expired += more.expired;
        match self.last_warning.map(|last| now.saturating_duration_since(last)) {
            Some(passed) if passed < self.interval => {
                if already_waiting {
                    Verdict::Quiet
                } else {
                    Verdict::Later(self.interval - passed)
                }
            }
            Some(_) | None => self.warn(now),
        }
    }

    /// The time asked for has passed.
    pub fn due(&mut self, now: Instant) -> Verdict {
        if self.unreported.total() == 0 { Verdict::Quiet } else { self.warn(now) }
    }

    fn warn(&mut self, now: Instant) -> Verdict {
        self.last_warning = Some(now);
        Verdict::Warn(std::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_drop_warns_at_once_and_the_rest_of_the_minute_together() {
        #[expect(clippy::disallowed_methods, reason = "some starting point")]
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        let mut report = DropReport::new(Duration::from_secs(60));
        let drops = |overflowed, expired| Drops { overflowed, expired };
        assert_eq!(report.add(drops(0, 0), at(0)), Verdict::Quiet);
        assert_eq!(report.add(drops(1, 0), at(0)), Verdict::Warn(drops(1, 0)));
        assert_eq!(report.add(drops(2, 0), at(10)), Verdict::Later(Duration::from_secs(50)));
        assert_eq!(report.add(drops(1, 3), at(20)), Verdict::Quiet);
        assert_eq!(report.due(at(60)), Verdict::Warn(drops(3, 3)));
        assert_eq!(report.due(at(61)), Verdict::Quiet);
        assert_eq!(report.add(drops(0, 1), at(200)), Verdict::Warn(drops(0, 1)));
    }
}
