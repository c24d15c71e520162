//! The life of one plugin as a pure state machine (contract/lifecycle.md §1–3, with §10 rows 2, 4, 6, 34 and 35
//! mended).
//!
//! [`Lifecycle::step`] takes one input and answers with the effects to run. It holds no clock, no process and no
//! waiting caller: the plugin actor runs the effects and reports what came of them. Every start is a new *generation*;
//! an input that names another generation than the present one is a late message and changes nothing. Its words
//! (states, inputs, effects) are in `model`.
//!
//! ```text
//!            enable, boot                launched
//!    Down ─────────────────▶ Starting ─────────────▶ Up
//!     ▲ ▲                     │   ▲                   │ exited, 3 failed pings
//!     │ └── row used up ──────┤   │ delay over        ▼
//!     │                       └─▶ Waiting ◀───────────┘
//!     └──────── Stopping ◀── disable, hold, remove, host stopping (from any state with a process)
//! ```

mod model;

pub use model::{Cause, Effect, Input, Next, Policy, Settlement, State};

use super::record::Status;

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    status: Status,
    state: State,
    generation: u64,
    /// Attempts used in the present restart row.
    row: usize,
    /// Automatic attempts go on by themselves. Outlives the host's stop: the next one keeps the promise.
    promised: bool,
    policy: Policy,
}

impl Lifecycle {
    /// A plugin without a process. `restarting` is the record's: automatic attempts were going on.
    pub fn new(status: Status, restarting: bool, policy: Policy) -> Self {
        Self { status, state: State::Down, generation: 0, row: 0, promised: restarting, policy }
    }

    /// The status to show and to store.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Where the process is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// A held plugin got another record: of its new version, or of its old one when the upgrade did not come about. It
    /// has no process, so it is not active, whatever the record says.
    pub fn replaced(&mut self, status: Status, restarting: bool) {
        self.status = if status == Status::Active { Status::Registered } else { status };
        self.promised = restarting;
        self.row = 0;
    }

    /// The present generation.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether automatic restart attempts remain or are under way: what a host restart must continue.
    pub fn restarting(&self) -> bool {
        self.promised && self.status == Status::Error
    }

    /// Whether nothing of a process is left and none is being launched.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Down | State::Waiting | State::Gone)
    }

    /// Takes one input. A late input (other generation) and one that asks for what is already so give no effects
    /// beyond telling the caller.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Enable => self.enable(),
            Input::Disable => self.disable(),
            Input::Hold => self.end(Next::Held),
            Input::Renew => self.renew(),
            Input::Remove => self.end(Next::Removed),
            Input::HostStopping => self.end(Next::HostStopped),
            Input::Boot => self.boot(),
            Input::Broken(why) => self.broken(why),
            Input::Launched(generation) if generation == self.generation => self.launched(),
            Input::LaunchFailed(generation, why) if generation == self.generation => self.launch_failed(why),
            Input::Unlaunchable(generation, why) if generation == self.generation => self.unlaunchable(why),
            Input::Exited(generation, why) if generation == self.generation => self.exited(why),
            Input::PingOk(generation) if generation == self.generation => self.ping_ok(),
            Input::PingFailed(generation, why) if generation == self.generation => self.ping_failed(why),
            Input::RestartDue(generation) if generation == self.generation => self.restart_due(),
            Input::Stable(generation) if generation == self.generation => self.stable(),
            Input::Launched(_)
            | Input::LaunchFailed(..)
            | Input::Unlaunchable(..)
            | Input::Exited(..)
            | Input::PingOk(_)
            | Input::PingFailed(..)
            | Input::RestartDue(_)
            | Input::Stable(_) => Vec::new(),
        }
    }

    fn enable(&mut self) -> Vec<Effect> {
        match &mut self.state {
            State::Down | State::Waiting => self.start(Cause::Operator),
            // The caller is told when the launch that is under way ends; its failure is the caller's now.
            State::Starting { cause } => {
                *cause = Cause::Operator;
                self.row = 0;
                self.promised = false;
                Vec::new()
            }
            State::Up { .. } => vec![Effect::Settle(Settlement::Started)],
            State::Stopping { next } => match next {
                Next::Disabled | Next::Restart { .. } => {
                    *next = Next::Start;
                    Vec::new()
                }
                Next::Start | Next::Renew => Vec::new(),
                Next::Held | Next::Removed | Next::HostStopped => refuse(reason(next)),
            },
            State::Gone => refuse("the plugin is gone or the host is stopping"),
        }
    }

    /// Whoever waits for a launch that is aborted here waits on: the one that follows is theirs too.
    fn renew(&mut self) -> Vec<Effect> {
        let generation = self.generation;
        match &self.state {
            State::Starting { .. } => {
                self.state = State::Stopping { next: Next::Renew };
                vec![Effect::AbortLaunch(generation)]
            }
            State::Up { .. } => {
                self.state = State::Stopping { next: Next::Renew };
                vec![Effect::Stop(generation)]
            }
            State::Stopping { next: Next::Start | Next::Renew } => Vec::new(),
            State::Stopping {
                next: Next::Disabled | Next::Held | Next::Restart { .. } | Next::Removed | Next::HostStopped,
            }
            | State::Down
            | State::Waiting
            | State::Gone => vec![Effect::Settle(Settlement::Renewed)],
        }
    }

    fn disable(&mut self) -> Vec<Effect> {
        match &self.state {
            State::Stopping { next: Next::Start | Next::Renew } => {
                self.state = State::Stopping { next: Next::Disabled };
                refuse("disabled before it was started")
            }
            State::Down
            | State::Starting { .. }
            | State::Up { .. }
            | State::Stopping { .. }
            | State::Waiting
            | State::Gone => self.end(Next::Disabled),
        }
    }

    /// Ends what runs, or what is coming, for the sake of `next`.
    fn end(&mut self, next: Next) -> Vec<Effect> {
        let generation = self.generation;
        match &self.state {
            State::Down | State::Waiting => self.arrive(next),
            State::Gone => vec![Effect::Settle(settlement(&next))],
            State::Starting { .. } => {
                let why = format!("the start was aborted: {}", reason(&next));
                self.state = State::Stopping { next };
                vec![Effect::AbortLaunch(generation), Effect::Settle(Settlement::Overtaken(why))]
            }
            State::Up { .. } => {
                self.state = State::Stopping { next };
                vec![Effect::Stop(generation)]
            }
            State::Stopping { next: present } => {
                if rank(&next) >= rank(present) {
                    self.state = State::Stopping { next };
                }
                Vec::new()
            }
        }
    }

    /// Operators may have been faster than the host's start: what they made of the plugin stays.
    fn boot(&mut self) -> Vec<Effect> {
        match &self.state {
            State::Down if self.should_run() => {
                if self.status == Status::Active {
                    self.status = Status::Registered;
                }
                self.start(Cause::Boot)
            }
            State::Down => refuse("the plugin is not to be started by itself"),
            State::Up { .. } => vec![Effect::Settle(Settlement::Started)],
            State::Starting { .. } | State::Stopping { next: Next::Start | Next::Renew } => Vec::new(),
            State::Waiting => refuse("the plugin waits for its automatic restart"),
            State::Stopping { next } => refuse(reason(next)),
            State::Gone => refuse("the plugin is gone or the host is stopping"),
        }
    }

    /// Whether a host that starts should start it, as `status` and the record's `restarting` say.
    fn should_run(&self) -> bool {
        match self.status {
            Status::Registered | Status::Active => true,
            Status::Error => self.promised,
            Status::Disabled => false,
        }
    }

    fn broken(&mut self, why: String) -> Vec<Effect> {
        match self.state {
            State::Down if self.status != Status::Disabled => self.give_up(why),
            State::Down
            | State::Starting { .. }
            | State::Up { .. }
            | State::Stopping { .. }
            | State::Waiting
            | State::Gone => Vec::new(),
        }
    }

    fn start(&mut self, cause: Cause) -> Vec<Effect> {
        if cause != Cause::Restart {
            self.row = 0;
        }
        if cause == Cause::Operator {
            self.promised = false;
        }
        self.generation += 1;
        self.state = State::Starting { cause };
        vec![Effect::Launch(self.generation)]
    }

    fn launched(&mut self) -> Vec<Effect> {
        let generation = self.generation;
        match &self.state {
            State::Starting { cause } => {
                let mut effects = Vec::new();
                if *cause == Cause::Restart {
                    effects.push(Effect::CountRestart);
                }
                self.status = Status::Active;
                self.state = State::Up { failed_pings: 0, steady: true };
                self.promised = false;
                effects.extend([Effect::Watch(generation), Effect::Healthy, Effect::Settle(Settlement::Started)]);
                effects
            }
            // The launch won the race against its abort.
            State::Stopping { .. } => vec![Effect::Stop(generation)],
            State::Down | State::Up { .. } | State::Waiting | State::Gone => Vec::new(),
        }
    }

    fn launch_failed(&mut self, why: String) -> Vec<Effect> {
        match &self.state {
            State::Starting { cause: Cause::Operator } => self.give_up(why),
            State::Starting { cause: Cause::Boot | Cause::Restart } => self.next_attempt(why),
            State::Stopping { next } => {
                let next = next.clone();
                self.arrive(next)
            }
            State::Down | State::Up { .. } | State::Waiting | State::Gone => Vec::new(),
        }
    }

    /// Whoever asked: the restart row would only put off that an operator is needed.
    fn unlaunchable(&mut self, why: String) -> Vec<Effect> {
        match &self.state {
            State::Starting { .. } => self.give_up(why),
            State::Down | State::Up { .. } | State::Stopping { .. } | State::Waiting | State::Gone => {
                self.launch_failed(why)
            }
        }
    }

    fn exited(&mut self, why: String) -> Vec<Effect> {
        match &self.state {
            State::Up { .. } => self.next_attempt(why),
            State::Stopping { next } => {
                let next = next.clone();
                self.arrive(next)
            }
            State::Down | State::Starting { .. } | State::Waiting | State::Gone => Vec::new(),
        }
    }

    fn ping_ok(&mut self) -> Vec<Effect> {
        match &mut self.state {
            State::Up { failed_pings, .. } => *failed_pings = 0,
            State::Down | State::Starting { .. } | State::Stopping { .. } | State::Waiting | State::Gone => {}
        }
        Vec::new()
    }

    fn ping_failed(&mut self, why: String) -> Vec<Effect> {
        let State::Up { failed_pings, steady } = &mut self.state else { return Vec::new() };
        *failed_pings += 1;
        *steady = false;
        if *failed_pings < self.policy.ping_failures {
            return Vec::new();
        }
        let diagnostic = format!("{failed_pings} health pings in a row failed, the process was killed: {why}");
        self.status = Status::Error;
        self.promised = true;
        self.state = State::Stopping { next: Next::Restart { diagnostic: diagnostic.clone() } };
        vec![Effect::Failed(diagnostic), Effect::Kill(self.generation)]
    }

    fn restart_due(&mut self) -> Vec<Effect> {
        match self.state {
            State::Waiting => self.start(Cause::Restart),
            State::Down | State::Starting { .. } | State::Up { .. } | State::Stopping { .. } | State::Gone => {
                Vec::new()
            }
        }
    }

    /// The row ends only after a stability time without a failed ping; after one, a new stability time begins.
    fn stable(&mut self) -> Vec<Effect> {
        let State::Up { failed_pings, steady } = &mut self.state else { return Vec::new() };
        if *steady {
            self.row = 0;
            return Vec::new();
        }
        *steady = *failed_pings == 0;
        vec![Effect::Watch(self.generation)]
    }

    /// The process is down and the restart row goes on, or is used up.
    fn next_attempt(&mut self, why: String) -> Vec<Effect> {
        let Some(delay) = self.policy.restart_delays.get(self.row).copied() else {
            let attempts = self.row;
            return self.give_up(match attempts {
                0 => why,
                n => format!("gave up after {n} restarts in a row; enable the plugin to try again: {why}"),
            });
        };
        self.row += 1;
        self.promised = true;
        self.status = Status::Error;
        self.state = State::Waiting;
        vec![
            Effect::Failed(why.clone()),
            Effect::ScheduleRestart(self.generation, delay),
            Effect::Settle(Settlement::NotStarted(why)),
        ]
    }

    fn give_up(&mut self, why: String) -> Vec<Effect> {
        self.status = Status::Error;
        self.state = State::Down;
        self.promised = false;
        vec![Effect::Failed(why.clone()), Effect::Settle(Settlement::NotStarted(why))]
    }

    /// Nothing of the process is left: `next` becomes true.
    fn arrive(&mut self, next: Next) -> Vec<Effect> {
        match next {
            Next::Disabled => {
                self.status = Status::Disabled;
                self.state = State::Down;
                self.promised = false;
                vec![Effect::Forget, Effect::Settle(Settlement::Disabled)]
            }
            Next::Held => {
                // A plugin that was off or had failed is still so, should the upgrade not come about.
                if self.status == Status::Active {
                    self.status = Status::Registered;
                }
                self.state = State::Down;
                vec![Effect::Paused, Effect::Settle(Settlement::Held)]
            }
            Next::Start => {
                // Whoever asked to disable it before got what he asked for, if only for a moment.
                let events = if self.status == Status::Active {
                    self.status = Status::Disabled;
                    Effect::Forget
                } else {
                    Effect::Paused
                };
                let mut effects = vec![events, Effect::Settle(Settlement::Disabled)];
                effects.extend(self.start(Cause::Operator));
                effects
            }
            Next::Renew => {
                if self.status == Status::Active {
                    self.status = Status::Registered;
                }
                let mut effects = vec![Effect::Paused];
                effects.extend(self.start(Cause::Operator));
                effects
            }
            Next::Restart { diagnostic } => {
                let mut effects = self.next_attempt(diagnostic);
                if self.state == State::Waiting {
                    // The failure was told when the process was killed.
                    effects[0] = Effect::Paused;
                }
                effects
            }
            Next::Removed => {
                self.state = State::Gone;
                vec![Effect::Forget, Effect::Settle(Settlement::Removed)]
            }
            Next::HostStopped => {
                self.state = State::Gone;
                vec![Effect::Paused, Effect::Settle(Settlement::HostStopped)]
            }
        }
    }
}

/// Which end wins when two are asked for: the one that leaves less.
fn rank(next: &Next) -> u8 {
    match next {
        Next::Start | Next::Renew | Next::Restart { .. } => 0,
        Next::Disabled => 1,
        Next::Held => 2,
        Next::HostStopped => 3,
        Next::Removed => 4,
    }
}

fn reason(next: &Next) -> &'static str {
    match next {
        Next::Start | Next::Renew | Next::Restart { .. } => "the plugin is being started",
        Next::Disabled => "the plugin was disabled",
        Next::Held => "an upgrade of the plugin is under way",
        Next::Removed => "the plugin is being uninstalled",
        Next::HostStopped => "the host is stopping",
    }
}

fn settlement(next: &Next) -> Settlement {
    match next {
        Next::Disabled | Next::Held | Next::Start | Next::Renew | Next::Restart { .. } | Next::HostStopped => {
            Settlement::HostStopped
        }
        Next::Removed => Settlement::Removed,
    }
}

fn refuse(why: &str) -> Vec<Effect> {
    vec![Effect::Settle(Settlement::Overtaken(why.to_owned()))]
}

#[cfg(test)]
mod tests;
