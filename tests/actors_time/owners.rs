//! The ownership lock: a repository provider has one owner, the first that came, however starts, crashes and commands
//! fall together.

use std::time::Duration;

use kandev_host::{
    actors::{PluginView, RegistryError},
    domain::record::{PluginRecord, Status},
};

use crate::support::{Launch, record, run_with};

/// A plugin that claims the provider `forge`.
fn owner(id: &str, status: Status) -> PluginRecord {
    let mut record = record(id, status);
    record.manifest.repository_providers = vec!["forge".to_owned()].into();
    record
}

fn text(owner: &str) -> String {
    format!("plugins: repository provider \"forge\" is already owned by active plugin \"{owner}\"")
}

#[track_caller]
fn assert_owned_by(owner: &str, answer: Result<PluginView, RegistryError>) {
    match answer {
        Err(error @ RegistryError::Owned(_)) => assert_eq!(error.to_string(), text(owner)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn of_two_at_the_hosts_start_the_first_gets_it_and_the_second_is_in_error() {
    run_with(
        vec![owner("acme", Status::Active), owner("beta", Status::Active), record("other", Status::Active)],
        |_| {},
        async |world| {
            world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(5))]);
            world.registry.boot().await.unwrap();
            world.settled().await;
            assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
            assert_eq!(world.on_disk("beta").await, (Status::Error, false, 0, Some(text("acme"))));
            assert_eq!(world.status("other").await, Status::Active);
            assert_eq!(world.fakes.calls("beta"), Vec::<String>::new(), "it had no process");
        },
    );
}

#[test]
fn a_start_owns_from_its_beginning_and_a_disable_frees() {
    run_with(
        vec![owner("acme", Status::Disabled), owner("beta", Status::Disabled)],
        |_| {},
        async |world| {
            world.fakes.launches("acme", [Launch::Slow(Duration::from_secs(25))]);
            let enabled = world.command(async |registry| registry.enable("acme").await);
            world.at(5.0).await;
            assert_owned_by("acme", world.registry.enable("beta").await);
            assert_eq!((world.now(), world.status("beta").await), (5.0, Status::Disabled), "nobody waited");
            world.registry.disable("acme").await.unwrap();
            assert!(enabled.await.unwrap().1.is_err());
            world.registry.enable("beta").await.unwrap();
            assert_owned_by("beta", world.registry.enable("acme").await);
        },
    );
}

#[test]
fn a_plugin_that_is_restarted_stays_the_owner() {
    run_with(
        vec![owner("acme", Status::Disabled), owner("beta", Status::Disabled)],
        |_| {},
        async |world| {
            world.registry.enable("acme").await.unwrap();
            world.fakes.crash("acme");
            world.settled().await;
            assert_eq!(world.status("acme").await, Status::Error);
            assert_owned_by("acme", world.registry.enable("beta").await);
            world.at(world.now() + 2.0).await;
            assert_eq!(world.status("acme").await, Status::Active);
            assert_owned_by("acme", world.registry.enable("beta").await);
        },
    );
}
