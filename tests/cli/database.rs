//! `db status` and `db migrate` on SQLite, without a host and beside one.

use serde_json::json;

use crate::{command::Desk, support::Host};

#[test]
fn status_shows_pending_steps_and_makes_nothing_until_migrate_applies_them() {
    let desk = Desk::new();
    let home = desk.path().join("home");
    let arguments =
        |command: &'static str| ["db", command, "--json", "--home", home.to_str().unwrap()].map(String::from);
    let run = |command| {
        let arguments = arguments(command);
        desk.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).expect(0).json()
    };
    let before = run("status");
    assert_eq!(before["up_to_date"], false);
    let steps: Vec<_> = before["steps"].as_array().unwrap().iter().map(|step| step["name"].clone()).collect();
    assert!(!steps.is_empty() && before["steps"].as_array().unwrap().iter().all(|step| step["state"] == "pending"));
    assert!(!home.exists());

    let migrated = run("migrate");
    assert_eq!((&migrated["applied_now"], &migrated["up_to_date"]), (&json!(steps), &json!(true)));
    assert_eq!(run("migrate")["applied_now"], json!([]));
    let after = run("status");
    assert_eq!((&after["steps"], &after["up_to_date"]), (&migrated["steps"], &json!(true)));
    let text = desk.run(&["db", "status", "--home", home.to_str().unwrap()]).expect(0).out;
    assert!(text.starts_with("STEP ") && text.ends_with("\nup to date\n"), "{text}");
}

#[test]
fn a_database_that_cannot_be_used_is_exit_code_1_with_the_reason() {
    let desk = Desk::new();
    let url = format!("sqlite://{}/no/such/folder.db?mode=rwc", desk.path().display());
    let done = desk.run(&["db", "migrate", "--database-url", &url]).expect(1);
    assert!(done.err.contains("cannot open the database"), "{}", done.err);
    let file = desk.path().join("text.db");
    std::fs::write(&file, "this is no database, whatever its name says").unwrap();
    let done =
        desk.run(&["db", "status", "--json", "--database-url", &format!("sqlite://{}", file.display())]).expect(1);
    assert_eq!(done.error()["exit"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_beside_a_running_host_is_refused_and_status_is_not() {
    let host = Host::start().await;
    let desk = Desk::new();
    let home = host.home().to_str().unwrap();
    let done = desk.run(&["db", "migrate", "--home", home]).expect(1);
    assert!(done.err.contains(&format!("another kandev-host (pid {})", host.pid())), "{}", done.err);
    assert_eq!(desk.run(&["db", "status", "--json", "--home", home]).expect(0).json()["up_to_date"], true);
}
