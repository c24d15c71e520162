//! The event log between two hosts: what the one committed and did not publish, the next one does.

use kandev_host::{
    config::{Limits, Timing},
    domain::platform::{task::NewTask, workspace::WorkspaceDraft},
    platform::{By, Platform},
    store::{db::Db, platform::PlatformStore},
};
use serde_json::{Value, json};

use crate::{
    on_both,
    support::{Host, Package},
};

/// Commits a workspace and tasks with these titles as a host does that is killed before it publishes them.
async fn commit_unpublished(host: &Host, titles: &[&str]) {
    let url = format!("sqlite://{}", host.home().join("kandev.db").display());
    let db = Db::connect(&url.into(), &Timing::default(), &Limits::default()).await.expect("the host's database");
    let (platform, by) = (Platform::new(&PlatformStore::new(db.clone())), By::operator());
    let draft = WorkspaceDraft { name: Some("one".to_owned()), ..WorkspaceDraft::default() };
    platform.workspaces.create(&by, &draft).await.expect("a workspace");
    for title in titles {
        let new = NewTask { title: (*title).to_owned(), ..NewTask::default() };
        platform.tasks.create(&by, &new).await.expect("a task");
    }
    db.close().await.expect("the database is closed");
}

on_both!(what_a_host_committed_and_did_not_publish_reaches_the_plugins_of_the_next_one_in_order_and_once, |guest| {
    let mut host = Host::start().await;
    host.install(&Package::of(guest, "demo", "1.0.0")).await;
    host.kill();
    let titles = ["a", "b", "c", "d", "e"];
    commit_unpublished(&host, &titles).await;
    host.spawn().await;
    let told = |events: &[Value]| {
        let of = |event: &Value| (event["event_type"].clone(), event["payload"]["title"].clone());
        events.iter().map(of).collect::<Vec<_>>()
    };
    let expected: Vec<_> = titles.iter().map(|title| (json!("task.created"), json!(title))).collect();
    assert_eq!(told(&host.events("demo", titles.len()).await), expected);

    assert_eq!(host.stop().await, Some(0));
    host.spawn().await;
    host.publish("test.later", json!({})).await;
    let all = host.events("demo", titles.len() + 1).await;
    assert_eq!(told(&all)[titles.len()..], [(json!("test.later"), Value::Null)]);
});
