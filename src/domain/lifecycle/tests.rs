use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn policy() -> Policy {
    Policy { restart_delays: [1, 2, 4].map(Duration::from_secs).to_vec(), ping_failures: 3 }
}

fn fresh(status: Status) -> Lifecycle {
    Lifecycle::new(status, false, policy())
}

/// A machine in each state there is, by name.
fn every_state() -> Vec<(&'static str, Lifecycle)> {
    let mut states = Vec::new();
    let mut add = |name, machine: &Lifecycle| states.push((name, machine.clone()));
    add("down", &fresh(Status::Disabled));
    let mut machine = fresh(Status::Registered);
    machine.step(Input::Enable);
    add("starting", &machine);
    let mut aborted = machine.clone();
    aborted.step(Input::Disable);
    add("stopping a launch", &aborted);
    machine.step(Input::Launched(1));
    add("up", &machine);
    for (name, input) in [
        ("stopping for disable", Input::Disable),
        ("stopping for hold", Input::Hold),
        ("stopping to renew", Input::Renew),
        ("stopping for remove", Input::Remove),
        ("stopping for the host", Input::HostStopping),
    ] {
        let mut stopping = machine.clone();
        stopping.step(input);
        add(name, &stopping);
    }
    let mut restarted = machine.clone();
    restarted.step(Input::Disable);
    restarted.step(Input::Enable);
    add("stopping, then start", &restarted);
    let mut frozen = machine.clone();
    for _ in 0..3 {
        frozen.step(Input::PingFailed(1, "late".into()));
    }
    add("stopping a frozen process", &frozen);
    machine.step(Input::Exited(1, "code 3".into()));
    add("waiting", &machine);
    machine.step(Input::RestartDue(1));
    add("restarting", &machine);
    let mut gone = fresh(Status::Active);
    gone.step(Input::Remove);
    add("gone", &gone);
    states
}

fn every_input(generation: u64) -> Vec<(&'static str, Input)> {
    vec![
        ("enable", Input::Enable),
        ("disable", Input::Disable),
        ("hold", Input::Hold),
        ("renew", Input::Renew),
        ("remove", Input::Remove),
        ("host stopping", Input::HostStopping),
        ("boot", Input::Boot),
        ("broken", Input::Broken("b".into())),
        ("launched", Input::Launched(generation)),
        ("launch failed", Input::LaunchFailed(generation, "f".into())),
        ("unlaunchable", Input::Unlaunchable(generation, "u".into())),
        ("exited", Input::Exited(generation, "x".into())),
        ("ping ok", Input::PingOk(generation)),
        ("ping failed", Input::PingFailed(generation, "p".into())),
        ("restart due", Input::RestartDue(generation)),
        ("stable", Input::Stable(generation)),
    ]
}

fn short(state: &State) -> String {
    match state {
        State::Down => "Down".into(),
        State::Starting { cause } => format!("Starting({cause:?})"),
        State::Up { .. } => "Up".into(),
        State::Stopping { next: Next::Restart { .. } } => "Stopping(Restart)".into(),
        State::Stopping { next } => format!("Stopping({next:?})"),
        State::Waiting => "Waiting".into(),
        State::Gone => "Gone".into(),
    }
}

/// One row for each (state, input) pair: what becomes of it. `=` means that nothing changes.
const TABLE: &str = include_str!("transitions.txt");

#[test]
fn every_pair_of_state_and_input_has_the_documented_result() {
    let mut table = String::new();
    for (name, machine) in every_state() {
        for (input_name, input) in every_input(machine.generation()) {
            let mut after = machine.clone();
            let effects = after.step(input);
            let effects: Vec<String> = effects.iter().map(|effect| format!("{effect:?}")).collect();
            let result = if after == machine {
                "=".to_owned()
            } else {
                format!(
                    "{} {:?}{}",
                    short(after.state()),
                    after.status(),
                    if after.restarting() { " restarting" } else { "" }
                )
            };
            table += &format!("{name} + {input_name} -> {result} [{}]\n", effects.join(", "));
        }
    }
    if std::env::var_os("UPDATE_TABLE").is_some() {
        println!("{table}");
    }
    assert_eq!(table, TABLE);
}

#[test]
fn a_late_report_of_an_earlier_generation_changes_nothing() {
    for (name, machine) in every_state() {
        for (input_name, input) in every_input(machine.generation() + 7).split_off(8) {
            let mut after = machine.clone();
            assert_eq!(after.step(input), [], "{name} + {input_name}");
            assert_eq!(after, machine, "{name} + {input_name}");
        }
    }
}

fn crash(machine: &mut Lifecycle) -> Vec<Effect> {
    let generation = machine.generation();
    machine.step(Input::Exited(generation, "code 3".into()))
}

fn come_up(machine: &mut Lifecycle) {
    let generation = machine.generation();
    machine.step(Input::RestartDue(generation));
    let generation = machine.generation();
    machine.step(Input::Launched(generation));
}

#[test]
fn a_row_of_crashes_grows_the_delay_and_ends_in_error_until_an_operator_enables() {
    let mut machine = fresh(Status::Registered);
    machine.step(Input::Enable);
    machine.step(Input::Launched(1));
    for delay in [1, 2, 4] {
        let generation = machine.generation();
        assert!(crash(&mut machine).contains(&Effect::ScheduleRestart(generation, Duration::from_secs(delay))));
        assert_eq!((machine.status(), machine.restarting()), (Status::Error, true));
        come_up(&mut machine);
        assert_eq!((machine.status(), machine.restarting()), (Status::Active, false));
    }
    let why = "gave up after 3 restarts in a row; enable the plugin to try again: code 3".to_owned();
    assert_eq!(crash(&mut machine), [Effect::Failed(why.clone()), Effect::Settle(Settlement::NotStarted(why))]);
    assert_eq!((machine.status(), machine.restarting()), (Status::Error, false));
}

#[test]
fn a_crash_before_the_stability_time_continues_the_row_and_one_after_it_begins_anew() {
    let mut machine = fresh(Status::Registered);
    machine.step(Input::Enable);
    machine.step(Input::Launched(1));
    crash(&mut machine);
    come_up(&mut machine);
    let generation = machine.generation();
    assert!(crash(&mut machine).contains(&Effect::ScheduleRestart(generation, Duration::from_secs(2))));
    come_up(&mut machine);
    let generation = machine.generation();
    machine.step(Input::Stable(generation));
    assert!(crash(&mut machine).contains(&Effect::ScheduleRestart(generation, Duration::from_secs(1))));
}

#[test]
fn a_plugin_that_freezes_again_and_again_uses_up_its_row() {
    let mut machine = fresh(Status::Registered);
    machine.step(Input::Enable);
    machine.step(Input::Launched(1));
    for _ in 0..3 {
        let generation = machine.generation();
        machine.step(Input::PingFailed(generation, "late".into()));
        // The stability time is over while the plugin is freezing: it begins anew.
        assert_eq!(machine.step(Input::Stable(generation)), [Effect::Watch(generation)]);
        machine.step(Input::PingFailed(generation, "late".into()));
        machine.step(Input::PingFailed(generation, "late".into()));
        machine.step(Input::Exited(generation, "signal 9".into()));
        assert_eq!(machine.state(), &State::Waiting);
        come_up(&mut machine);
    }
    let generation = machine.generation();
    for _ in 0..3 {
        machine.step(Input::PingFailed(generation, "late".into()));
    }
    machine.step(Input::Exited(generation, "signal 9".into()));
    assert_eq!((machine.status(), machine.restarting()), (Status::Error, false));
}

#[test]
fn a_host_that_stops_in_the_middle_of_a_row_leaves_the_promise_on_the_record() {
    let mut machine = fresh(Status::Registered);
    machine.step(Input::Enable);
    machine.step(Input::Launched(1));
    crash(&mut machine);
    machine.step(Input::HostStopping);
    assert_eq!((machine.status(), machine.restarting()), (Status::Error, true));
    let mut next = Lifecycle::new(Status::Error, true, policy());
    assert_eq!(next.step(Input::Boot), [Effect::Launch(1)]);
    assert_eq!((next.status(), next.restarting()), (Status::Error, true));
}

#[test]
fn the_exit_of_a_process_after_the_host_began_to_stop_is_not_a_crash() {
    let mut machine = fresh(Status::Registered);
    machine.step(Input::Enable);
    machine.step(Input::Launched(1));
    assert_eq!(machine.step(Input::HostStopping), [Effect::Stop(1)]);
    assert_eq!(crash(&mut machine), [Effect::Paused, Effect::Settle(Settlement::HostStopped)]);
    assert_eq!(machine.status(), Status::Active);
}

/// A world that runs the effects: at most one launch or process may exist, and commands end.
#[derive(Default)]
struct World {
    launching: Option<u64>,
    process: Option<u64>,
}

impl World {
    fn run(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Launch(generation) => {
                    assert_eq!((self.launching, self.process), (None, None), "a second process");
                    self.launching = Some(*generation);
                }
                Effect::AbortLaunch(generation) => assert_eq!(self.launching, Some(*generation)),
                Effect::Stop(generation) | Effect::Kill(generation) => assert_eq!(self.process, Some(*generation)),
                _ => {}
            }
        }
    }
}

fn any_choice() -> impl Strategy<Value = u8> {
    0u8..15
}

proptest! {
    #[test]
    fn whatever_operators_and_processes_do_there_is_at_most_one_process_and_active_means_up(
        choices in prop::collection::vec(any_choice(), 0..120),
    ) {
        let mut machine = fresh(Status::Disabled);
        let mut world = World::default();
        for choice in choices {
            let input = match choice {
                0 => Input::Enable,
                1 => Input::Disable,
                2 => Input::Hold,
                3 => Input::Boot,
                4 => Input::RestartDue(machine.generation()),
                5 => Input::Stable(machine.generation()),
                6 | 7 => match world.launching.take() {
                    Some(generation) => {
                        world.process = Some(generation);
                        Input::Launched(generation)
                    }
                    None => continue,
                },
                8 => match world.launching.take() {
                    Some(generation) => Input::LaunchFailed(generation, "f".into()),
                    None => continue,
                },
                9 | 10 => match world.process.take() {
                    Some(generation) => Input::Exited(generation, "x".into()),
                    None => continue,
                },
                11 | 12 => match world.process {
                    Some(generation) => Input::PingFailed(generation, "p".into()),
                    None => continue,
                },
                13 => Input::Renew,
                _ => Input::PingOk(machine.generation()),
            };
            let effects = machine.step(input);
            world.run(&effects);
            if machine.status() == Status::Active {
                prop_assert!(world.process.is_some() || matches!(machine.state(), State::Gone));
            }
            if machine.is_at_rest() {
                prop_assert_eq!((world.launching, world.process), (None, None));
            }
        }
    }
}
