//! The words of the lifecycle machine: where a process is, what can happen to it, and what the actor must do then. No
//! rule is in here; those are the machine's.

use std::time::Duration;

/// Numbers the machine works with; from `config::Timing`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Wait before each automatic restart of a row; their count is the number of attempts.
    pub restart_delays: Vec<Duration>,
    /// Failed pings in a row that make a failure.
    pub ping_failures: u32,
}

/// Where the process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// No process and none coming by itself.
    Down,
    /// A launch is under way.
    Starting {
        /// Who asked.
        cause: Cause,
    },
    /// A process that answered its health check.
    Up {
        /// Failed pings since the last good one.
        failed_pings: u32,
        /// No ping failed since the present stability time began.
        steady: bool,
    },
    /// A process or a launch is being ended.
    Stopping {
        /// What follows.
        next: Next,
    },
    /// The delay before an automatic restart.
    Waiting,
    /// Uninstalled, or the host is ending: nothing is accepted any more.
    Gone,
}

/// Who asked for a start. Only automatic starts are repeated by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Install, upgrade or enable: the caller is told when it fails, and nothing is repeated.
    Operator,
    /// The host started and the record says the plugin should run.
    Boot,
    /// An attempt of a restart row.
    Restart,
}

/// What follows when a process has been ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// `disabled`.
    Disabled,
    /// Wait for the new version of an upgrade.
    Held,
    /// A start that an operator asked for meanwhile.
    Start,
    /// A start with the settings that were saved.
    Renew,
    /// The restart row goes on: the process was killed because it did not answer its pings.
    Restart {
        /// Why it was killed.
        diagnostic: String,
    },
    /// Uninstalled.
    Removed,
    /// The host ends.
    HostStopped,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// An operator wants it to run (enable, and the start after an install).
    Enable,
    /// An operator wants it off.
    Disable,
    /// An upgrade wants the process ended and the plugin kept waiting.
    Hold,
    /// The settings were saved: what runs, or is being launched, may have read the old ones.
    Renew,
    /// An operator uninstalls it.
    Remove,
    /// The host ends.
    HostStopping,
    /// The host started and the record says it should run.
    Boot,
    /// What is installed was found broken when the host started; it must not run.
    Broken(String),
    /// The launch of this generation gave a healthy process.
    Launched(u64),
    /// The launch of this generation failed or was aborted; nothing of the process is left.
    LaunchFailed(u64, String),
    /// The same, and another launch of what is installed would fail like this one: nothing is repeated.
    Unlaunchable(u64, String),
    /// The process of this generation has ended and was reaped.
    Exited(u64, String),
    /// A health ping of this generation was answered.
    PingOk(u64),
    /// A health ping of this generation failed.
    PingFailed(u64, String),
    /// The restart delay of this generation is over.
    RestartDue(u64),
    /// The process of this generation was healthy for the stability time.
    Stable(u64),
}

/// What the actor must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Launch a process as this generation.
    Launch(u64),
    /// Abort the launch of this generation; `LaunchFailed` or `Launched` follows.
    AbortLaunch(u64),
    /// Begin the stop ladder of this generation; `Exited` follows.
    Stop(u64),
    /// Kill this generation at once; `Exited` follows.
    Kill(u64),
    /// Report `RestartDue` of this generation after the delay.
    ScheduleRestart(u64, Duration),
    /// Report `Stable` of this generation after the stability time, and ping it from now on.
    Watch(u64),
    /// It is healthy: deliver what waits. Clears the last error.
    Healthy,
    /// It is not healthy any more, or still not: keep events. The text becomes the last error.
    Failed(String),
    /// It is off or gone: forget what waits.
    Forget,
    /// It is down for an upgrade or before its next start: keep events; nothing failed.
    Paused,
    /// An automatic restart succeeded.
    CountRestart,
    /// Tell whoever waits for this.
    Settle(Settlement),
}

/// What a waiting caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// It runs.
    Started,
    /// A start was tried and failed, for this reason.
    NotStarted(String),
    /// No start was tried, or it was called off: another order came in between.
    Overtaken(String),
    /// It is disabled.
    Disabled,
    /// It is down and waits for its new version.
    Held,
    /// No process has read the old settings: whatever is started next reads the new ones.
    Renewed,
    /// Its process is gone for good.
    Removed,
    /// Its process is gone because the host ends.
    HostStopped,
}
