//! `db seed` on the real binary: what it says, what it makes, and when it refuses.

use serde_json::{Value, json};

use crate::{command::Desk, support::Host};

#[test]
fn a_seed_says_what_it_made_and_shows_its_progress_in_lines() {
    let desk = Desk::new();
    let done = desk.run(&["db", "seed", "--tasks", "500", "--messages", "1", "--home", "home"]).expect(0);
    assert!(done.out.starts_with("made 3 workspaces, 500 tasks, "), "{}", done.out);
    assert!(done.out.contains(" 500 messages, ") && done.out.ends_with("\n`kandev-host serve` shows them\n"));
    assert_eq!(done.err, "250 of 500 tasks\n500 of 500 tasks\n");
    let done = desk.run(&["db", "seed", "--tasks", "30", "--commits", "0", "--json", "--home", "other"]).expect(0);
    let report = done.json();
    assert_eq!((&report["tasks"], &report["messages"], &report["commits"]), (&json!(30), &json!(300), &json!(0)));
    assert_eq!((&report["seed"], &report["until"]), (&json!(1), &json!("2026-11-01T00:00:00Z")));
    assert!(report["seconds"].is_f64() && done.err.is_empty(), "{done:?}");
}

#[test]
fn data_that_is_there_is_not_mixed_with_other_data_unasked() {
    let desk = Desk::new();
    let run = |more: &[&str]| desk.run(&[&["db", "seed", "--tasks", "4", "--home", "home"], more].concat());
    run(&[]).expect(0);
    let next = "the database has data already; name an empty one by --home or DATABASE_URL, or add to it with --add";
    assert_eq!(run(&[]).expect(1).err, format!("kandev-host: {next}\n"));
    let next = "the data of seed 1 is in this database already; add other data with another --seed";
    assert_eq!(run(&["--add", "--json"]).expect(1).error()["error"], next);
    run(&["--add", "--seed", "2"]).expect(0);
    for wrong in
        [["--tasks", "-1"], ["--messages", "100001"], ["--until", "yesterday"], ["--until", "1969-01-01T00:00:00Z"]]
    {
        let done = desk.run(&[&["db", "seed", "--tasks", "1"][..2], &wrong, &["--home", "x"]].concat()).expect(2);
        assert!(done.err.contains(wrong[0]), "{}", done.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_shows_seeded_tasks_and_none_may_run_meanwhile() {
    let mut host = Host::start().await;
    let desk = Desk::new();
    let home = host.home().to_str().unwrap().to_owned();
    let arguments = ["db", "seed", "--tasks", "12", "--until", "now", "--home", &home];
    let refused = desk.run(&arguments).expect(1);
    assert!(refused.err.contains(&format!("another kandev-host (pid {})", host.pid())), "{}", refused.err);
    assert_eq!(host.stop().await, Some(0));
    desk.run(&arguments).expect(0);
    host.spawn().await;
    let status = desk.run(&["db", "status", "--json", "--home", &home]).expect(0).json();
    assert_eq!((&status["up_to_date"], host.stop().await), (&Value::Bool(true), Some(0)));
}
