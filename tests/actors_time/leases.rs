//! Leases: what a stop waits for, and the list of tools as its followers see it.

use std::time::Duration;

use futures_util::FutureExt;
use kandev_host::{
    actors::{CallKind, CallRefused},
    domain::{manifest::AgentTool, record::Status},
};

use crate::support::{record, run, run_with};

#[test]
fn a_stop_waits_for_leases_as_long_as_their_grace_and_for_others_as_long_as_theirs() {
    for (kind, seconds) in CallKind::ALL.map(|kind| (kind, if kind == CallKind::Webhook { 3 } else { 15 })) {
        run(async move |world| {
            world.registry.enable("acme").await.unwrap();
            let plugin = world.registry.plugin("acme").unwrap();
            let _call = plugin.begin(kind).unwrap();
            let disabled = world.command(async |registry| registry.disable("acme").await);
            world.at(1.0).await;
            for kind in CallKind::ALL {
                assert_eq!(plugin.begin(kind).unwrap_err(), CallRefused::NotRunning);
            }
            let (at, answer) = disabled.await.unwrap();
            assert_eq!((at, answer.unwrap().record.state.status), (f64::from(seconds), Status::Disabled));
            let expected = ["0 launch 1".to_owned(), format!("{seconds} stop 1"), format!("{seconds} end 1")];
            assert_eq!(world.fakes.calls("acme"), expected);
        });
    }
}

#[test]
fn a_stop_goes_on_when_the_last_lease_is_given_back() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        let lease = world.registry.plugin("acme").unwrap().begin(CallKind::Action).unwrap();
        let disabled = world.command(async |registry| registry.disable("acme").await);
        world.at(7.0).await;
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1"]);
        drop(lease);
        assert_eq!(disabled.await.unwrap().0, 7.0);
    });
}

#[test]
fn the_hosts_stop_cuts_a_wait_for_leases_short() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        let _lease = world.registry.plugin("acme").unwrap().begin(CallKind::Tool).unwrap();
        let disabled = world.command(async |registry| registry.disable("acme").await);
        world.at(2.0).await;
        assert_eq!(world.registry.stop().await.unwrap(), []);
        assert_eq!(world.now(), 5.0, "timing.drain_grace from then on");
        assert!(disabled.await.unwrap().1.is_err(), "overtaken");
    });
}

#[test]
fn a_call_checked_by_another_version_is_refused() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        let known = world.registry.plugin("acme").unwrap();
        assert!(world.registry.begin(&known, CallKind::Action).is_ok());
        let removed = world.command(async |registry| registry.uninstall("acme").await);
        // What follows asks the database, whose threads do not hold the clock.
        world.fakes.until_ended("acme").await;
        let clock = world.hold_clock();
        removed.await.unwrap().1.unwrap();
        drop(clock);
        assert_eq!(world.registry.begin(&known, CallKind::Action).unwrap_err(), CallRefused::NotRunning);
    });
}

#[test]
fn followers_of_the_tools_are_told_of_another_list_once_and_of_nothing_else() {
    let with_tool = |id: &str| {
        let mut record = record(id, Status::Disabled);
        record.manifest.agent_tools = vec![AgentTool { name: "look_up".to_owned(), ..AgentTool::default() }];
        record
    };
    let found = vec![record("bare", Status::Disabled), with_tool("acme"), with_tool("beta")];
    run_with(
        found,
        |_| {},
        async |world| {
            let mut changes = world.registry.tool_changes();
            let names = |offered: Vec<kandev_host::actors::OfferedTool>| {
                offered.iter().map(|tool| tool.plugin.to_string()).collect::<Vec<_>>()
            };
            world.registry.enable("bare").await.unwrap();
            world.settled().await;
            assert!(changes.changed().now_or_never().is_none(), "its list has not changed");

            world.registry.enable("acme").await.unwrap();
            world.registry.enable("beta").await.unwrap();
            world.settled().await;
            assert_eq!(names(changes.changed().await.unwrap()), ["acme", "beta"], "both at once");
            assert!(changes.changed().now_or_never().is_none());

            world.fakes.crash("acme");
            world.settled().await;
            assert_eq!(names(changes.changed().await.unwrap()), ["beta"]);
            world.at(world.now() + Duration::from_secs(2).as_secs_f64()).await;
            assert_eq!(names(changes.changed().await.unwrap()), ["acme", "beta"], "restarted");

            world.registry.disable("beta").await.unwrap();
            assert_eq!(names(changes.changed().await.unwrap()), ["acme"]);
            assert_eq!(names(world.registry.tools(None)), ["acme"]);
        },
    );
}
