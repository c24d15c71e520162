//! Waits of `plugin check`, and the settings of the host that it starts: those of every host, except that nothing is
//! tried again, so that a plugin's first failure is the one that is told.

use std::time::Duration;

use super::{Limits, Timing};

/// Log lines of the plugin that the host keeps, so that none of a check is missed.
const LOG_LINES: usize = 100_000;

/// Their texts together, in bytes.
const LOG_BYTES: u64 = 64 * 1024 * 1024;

/// Shortest wait that `--timeout` can ask for.
const SHORTEST: Duration = Duration::from_millis(1);

/// Waits of the check.
#[derive(Debug, Clone)]
pub struct CheckTiming {
    /// Of the host: the deadlines that a plugin is held to.
    pub host: Timing,
    /// Bounds of the host.
    pub limits: Limits,
    /// From the host's start until it is ready. 30 s.
    pub host_start: Duration,
    /// One question whether it is. 1 s.
    pub probe: Duration,
    /// Its whole answer: a minute more than the longest command or call of a plugin can take.
    pub answer: Duration,
    /// What comes on top of a plugin's deadline until the host says so. 5 s.
    pub margin: Duration,
    /// Between two looks at something that is waited for. 20 ms.
    pub look: Duration,
    /// How long the plugin is left alone, to see what it does then. 3 s.
    pub idle: Duration,
    /// How long processes of the plugin may take to go after it was stopped. 1 s.
    pub farewell: Duration,
    /// How long the host's stop may take before it is killed: its own `timing.shutdown_timeout` and 5 s.
    pub host_stop: Duration,
}

impl CheckTiming {
    /// The waits; with `most`, none for the plugin is longer, except the steps of its stop.
    pub fn new(most: Option<Duration>) -> Self {
        let secs = Duration::from_secs;
        let mut host = Timing {
            ping_interval: secs(1),
            restart_delays: Vec::new(),
            delivery_retries: Vec::new(),
            usage_age: Duration::from_millis(100),
            ..Timing::default()
        };
        let of_the_plugin = [
            &mut host.start_timeout,
            &mut host.dial_timeout,
            &mut host.ping_timeout,
            &mut host.delivery_timeout,
            &mut host.webhook_timeout,
            &mut host.webhook_timeout_authenticated,
            &mut host.tool_timeout,
        ];
        if let Some(most) = most {
            of_the_plugin.into_iter().for_each(|wait| *wait = (*wait).min(most.max(SHORTEST)));
        }
        let limits = Limits { log_buffer_lines: LOG_LINES, log_buffer_bytes: LOG_BYTES, ..Limits::default() };
        let answer = host.command_timeout().max(host.webhook_timeout_authenticated) + secs(60);
        Self {
            host_stop: host.shutdown_timeout + secs(5),
            host,
            limits,
            host_start: secs(30),
            probe: secs(1),
            answer,
            margin: secs(5),
            look: Duration::from_millis(20),
            idle: secs(3),
            farewell: secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::rules::{check_limits, check_timing};

    #[test]
    fn every_timeout_gives_settings_that_a_host_takes() {
        for most in [None, Some(Duration::ZERO), Some(Duration::from_secs(2)), Some(Duration::from_secs(10_000))] {
            let timing = CheckTiming::new(most);
            assert_eq!((check_timing(&timing.host), check_limits(&timing.limits)), (Ok(()), Ok(())), "{most:?}");
            assert!(timing.answer > timing.host.command_timeout(), "{most:?}");
        }
    }

    #[test]
    fn a_timeout_shortens_the_waits_for_the_plugin_and_lengthens_none() {
        let (usual, short) = (CheckTiming::new(None), CheckTiming::new(Some(Duration::from_secs(2))));
        assert_eq!(
            (short.host.webhook_timeout, short.host.start_timeout),
            (Duration::from_secs(2), Duration::from_secs(2))
        );
        assert_eq!(CheckTiming::new(Some(Duration::from_secs(10_000))).host, usual.host);
        assert_eq!(short.host.stop_grace, usual.host.stop_grace);
    }
}
