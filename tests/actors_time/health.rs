//! Health pings.

use kandev_host::domain::record::Status;

use crate::support::{Answer, run};

#[test]
fn an_active_plugin_is_pinged_every_30_seconds() {
    run(async |world| {
        world.registry.enable("acme").await.unwrap();
        world.at(100.0).await;
        assert_eq!(world.fakes.pinged("acme"), ["30 ping 1", "60 ping 1", "90 ping 1"]);
    });
}

#[test]
fn three_failed_pings_in_a_row_kill_and_count_as_a_crash() {
    run(async |world| {
        world.fakes.pings("acme", vec![Answer::Bad; 3]);
        world.registry.enable("acme").await.unwrap();
        world.at(90.5).await;
        let why = "3 health pings in a row failed, the process was killed: the plugin says it is not serving";
        assert_eq!(world.on_disk("acme").await, (Status::Error, true, 0, Some(why.into())));
        world.at(100.0).await;
        assert_eq!(world.fakes.pinged("acme"), ["30 ping 1", "60 ping 1", "90 ping 1", "90 kill 1"]);
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1", "90 kill 1", "90 end 1", "91 launch 2"]);
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 1, None));
    });
}

#[test]
fn two_failed_pings_and_a_good_one_begin_the_count_anew() {
    run(async |world| {
        let good_third = [Answer::Bad, Answer::Bad, Answer::Good];
        world.fakes.pings("acme", good_third.iter().chain(&good_third).cloned());
        world.registry.enable("acme").await.unwrap();
        world.at(200.0).await;
        assert_eq!(world.fakes.calls("acme"), ["0 launch 1"]);
        assert_eq!(world.on_disk("acme").await, (Status::Active, false, 0, None));
    });
}

#[test]
fn a_ping_that_hangs_has_failed_after_its_deadline() {
    run(async |world| {
        world.fakes.pings("acme", vec![Answer::Hangs; 3]);
        world.registry.enable("acme").await.unwrap();
        world.at(110.0).await;
        assert_eq!(world.fakes.pinged("acme"), ["30 ping 1", "65 ping 1", "100 ping 1", "105 kill 1"]);
    });
}

#[test]
fn a_ping_under_way_when_its_process_ends_does_not_count_for_the_next_one() {
    run(async |world| {
        world.fakes.pings("acme", vec![Answer::Hangs, Answer::Bad, Answer::Bad, Answer::Good]);
        world.registry.enable("acme").await.unwrap();
        world.at(31.0).await;
        world.fakes.crash("acme");
        world.at(150.0).await;
        assert_eq!(world.fakes.pinged("acme"), ["30 ping 1", "62 ping 2", "92 ping 2", "122 ping 2"]);
    });
}
