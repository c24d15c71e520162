//! A workspace that is too large for one transaction is deleted in many, and others write meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{
    domain::platform::{message::MessageFilter, refusal::Class, session::SessionFilter, task::TaskFilter},
    platform::seed::{Plan, seed},
    store::{db::tests::on_both_databases, platform::Once},
};

/// Small enough for a hundred transactions and more.
const ROWS: u64 = 40;

/// Tasks, sessions and messages of a workspace.
async fn sizes(world: &World, workspace: &Workspace) -> [u64; 3] {
    let (scope, ids) = (Scope::Workspaces(vec![workspace.id.clone()]), vec![workspace.id.clone()]);
    let tasks = TaskFilter { workspace_ids: ids.clone(), ..TaskFilter::default() };
    let sessions = SessionFilter { workspace_ids: ids, ..SessionFilter::default() };
    [
        world.store.count_tasks(&scope, &tasks).await.unwrap(),
        world.store.count_sessions(&scope, &sessions).await.unwrap(),
        world.store.count_messages(&scope, &MessageFilter::default()).await.unwrap(),
    ]
}

/// Its largest workspace, and another one.
async fn seeded(db: Db) -> (World, Workspace, Workspace) {
    let world = World::new(db);
    let plan = Plan { messages: 8, ..Plan::of(400) };
    seed(&world.store, &plan, false, |_| {}).await.unwrap();
    let mut all = world.store.workspaces(&Scope::All, &PageRequest::default()).await.unwrap().items;
    let mut sized = Vec::new();
    for workspace in all.drain(..) {
        sized.push((sizes(&world, &workspace).await[0], workspace));
    }
    sized.sort_by_key(|(tasks, _)| std::cmp::Reverse(*tasks));
    assert!(sized[0].0 > ROWS, "{sized:?}");
    let mut workspaces = sized.into_iter().map(|(_, workspace)| workspace);
    let (large, other) = (workspaces.next().unwrap(), workspaces.next().unwrap());
    (world, large, other)
}

async fn a_large_workspace_goes_in_many_transactions_and_others_write_meanwhile(db: Db) {
    let (world, large, other) = seeded(db.clone()).await;
    let (workspaces, by) = (&world.platform.workspaces, By::operator());
    let kept = sizes(&world, &other).await;
    let written = AtomicUsize::new(0);
    let new = NewTask { workspace_id: other.id.clone(), ..titled("meanwhile") };
    let write = async {
        loop {
            world.platform.tasks.create(&By::operator(), &new).await.unwrap();
            written.fetch_add(1, Ordering::Relaxed);
        }
    };
    tokio::select! {
        done = workspaces.delete_by(&by, &large.id, &large.name, Some(large.version), ROWS) => done.unwrap(),
        () = write => {}
    }
    let written = written.into_inner();
    assert!(written >= 10, "{written} tasks were written meanwhile");
    assert_eq!(refused(workspaces.get(&Scope::All, &large.id).await).class(), Class::NotFound);
    assert_eq!(sizes(&world, &large).await, [0, 0, 0]);
    let [tasks, sessions, messages] = sizes(&world, &other).await;
    assert!(tasks >= kept[0] + written as u64, "{tasks}");
    assert_eq!([sessions, messages], kept[1..]);
    let told: Vec<_> = world.told(0).await.into_iter().filter(|subject| subject != "task.created").collect();
    assert_eq!(told, ["workspace.deleted"]);
}

async fn a_deletion_that_was_cut_off_is_finished_by_the_same_request(db: Db) {
    let (world, large, _) = seeded(db).await;
    let workspaces = &world.platform.workspaces;
    let before = sizes(&world, &large).await;
    let once = Once { scope: "operator".to_owned(), key: "k".to_owned(), fingerprint: "f".to_owned() };
    let by = By::operator().with(Some(once.clone()));
    let shrunk = async {
        while sizes(&world, &large).await[0] == before[0] {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = workspaces.delete_by(&by, &large.id, &large.name, Some(large.version), ROWS) => panic!("too fast to be cut off"),
        () = shrunk => {}
    }
    assert_eq!(workspaces.get(&Scope::All, &large.id).await.unwrap(), large);
    assert_eq!(world.told(0).await, [""; 0]);
    for _ in 0..2 {
        let done = workspaces.delete_by(&by, &large.id, &large.name, Some(large.version), ROWS).await;
        assert_eq!(done, Ok(()), "done once, answered twice");
    }
    assert_eq!(world.told(0).await, ["workspace.deleted"]);
}

async fn a_large_workspace_loses_nothing_to_a_deletion_that_is_refused(db: Db) {
    let (world, large, _) = seeded(db).await;
    let workspaces = &world.platform.workspaces;
    let before = sizes(&world, &large).await;
    let once = |fingerprint: &str| {
        let (scope, key) = ("operator".to_owned(), "used".to_owned());
        Some(Once { scope, key, fingerprint: fingerprint.to_owned() })
    };
    world.platform.workspaces.create(&By::operator().with(once("f1")), &draft("new")).await.unwrap();
    let delete = async |by: By, name: &str, expected: i64| {
        refused(workspaces.delete_by(&by, &large.id, name, Some(expected), ROWS).await).class()
    };
    assert_eq!(delete(By::operator(), "another name", large.version).await, Class::Invalid);
    assert_eq!(delete(By::operator(), &large.name, large.version + 1).await, Class::Stale);
    assert_eq!(delete(By::operator().with(once("f2")), &large.name, large.version).await, Class::Conflict);
    let elsewhere = By::operator().within(Scope::Workspaces(vec!["another".to_owned()]));
    assert_eq!(delete(elsewhere, &large.name, large.version).await, Class::NotFound);
    assert_eq!(sizes(&world, &large).await, before);
}

fn draft(name: &str) -> WorkspaceDraft {
    WorkspaceDraft { name: Some(name.to_owned()), ..WorkspaceDraft::default() }
}

on_both_databases!(
    a_large_workspace_goes_in_many_transactions_and_others_write_meanwhile,
    a_deletion_that_was_cut_off_is_finished_by_the_same_request,
    a_large_workspace_loses_nothing_to_a_deletion_that_is_refused,
);
