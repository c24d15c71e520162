//! A workspace that is too large for one transaction is deleted in many, and others write meanwhile.

use std::{
    mem,
    sync::atomic::{AtomicUsize, Ordering},
};

use sea_orm::ConnectionTrait as _;
use time::{Duration, OffsetDateTime};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    config::{Limits, Timing},
    domain::platform::{
        message::MessageFilter,
        refusal::Class,
        session::{Session, SessionFilter},
        task::{Show, TaskFilter, TaskPatch},
    },
    platform::{
        clearing,
        housekeeping::Housekeeping,
        seed::{Plan, seed},
    },
    store::{
        db::{
            DbFault,
            tests::{on_both_databases, tamper},
        },
        platform::{Holder, Once, Work},
    },
};

/// Small enough for a hundred transactions and more.
const ROWS: u64 = 40;

/// Tasks, sessions and messages of a workspace.
async fn sizes(world: &World, workspace: &Workspace) -> [u64; 3] {
    let (scope, ids) = (Scope::Workspaces(vec![workspace.id.clone()]), vec![workspace.id.clone()]);
    let tasks = TaskFilter {
        workspace_ids: ids.clone(),
        ephemeral: Show::With,
        archived: Show::With,
        internal: Show::With,
        ..TaskFilter::default()
    };
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

/// How often each subject but `task.created` was told, in the order of the first time.
async fn told(world: &World) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for subject in world.told(0).await.into_iter().filter(|subject| subject != "task.created") {
        match counts.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, count)) => *count += 1,
            None => counts.push((subject, 1)),
        }
    }
    counts
}

fn counts(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
    counts.iter().map(|(subject, count)| ((*subject).to_owned(), *count)).collect()
}

async fn a_large_workspace_goes_in_many_transactions_and_others_write_meanwhile(db: Db) {
    let (world, large, other) = seeded(db.clone()).await;
    let (workspaces, by) = (&world.platform.workspaces, By::operator());
    let (kept, tasks) = (sizes(&world, &other).await, sizes(&world, &large).await[0]);
    let (written, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let new = |workspace: &Workspace| NewTask { workspace_id: workspace.id.clone(), ..titled("meanwhile") };
    let (elsewhere, inside) = (new(&other), new(&large));
    let write = async {
        loop {
            world.platform.tasks.create(&By::operator(), &elsewhere).await.unwrap();
            written.fetch_add(1, Ordering::Relaxed);
            if !workspaces.get(&Scope::All, &large.id).await.is_ok_and(|workspace| workspace.deleting) {
                continue;
            }
            let created = refused(world.platform.tasks.create(&By::operator(), &inside).await);
            let renamed = refused(workspaces.update(&By::operator(), &large.id, &draft("kept"), None).await);
            let busy = Refusal::BeingDeleted(large.id.clone());
            closed.fetch_add(usize::from(created == busy && renamed == busy), Ordering::Relaxed);
        }
    };
    tokio::select! {
        done = workspaces.delete_by(&by, &large.id, &large.name, Some(large.version), ROWS) => done.unwrap(),
        () = write => {}
    }
    let written = written.into_inner();
    assert!(written >= 10 && closed.into_inner() >= 1, "{written} tasks were written meanwhile");
    assert_eq!(refused(workspaces.get(&Scope::All, &large.id).await).class(), Class::NotFound);
    assert_eq!(sizes(&world, &large).await, [0, 0, 0]);
    let [others, sessions, messages] = sizes(&world, &other).await;
    assert!(others >= kept[0] + written as u64, "{others}");
    assert_eq!([sessions, messages], kept[1..]);
    let gone = told(&world).await;
    let one_by_one = gone[0].1;
    assert!((1..=tasks).contains(&one_by_one), "{one_by_one} of {tasks}");
    assert_eq!(gone, counts(&[("task.deleted", one_by_one), ("workspace.deleted", 1)]));
}

/// Begins to delete a workspace, and ends in the middle; its tasks and sessions before and after.
async fn cut_off(world: &World, large: &Workspace, by: &By) -> [[u64; 3]; 2] {
    let before = sizes(world, large).await;
    let shrunk = async {
        while sizes(world, large).await[0] == before[0] {
            tokio::task::yield_now().await;
        }
    };
    let workspaces = &world.platform.workspaces;
    tokio::select! {
        _ = workspaces.delete_by(by, &large.id, &large.name, Some(large.version), ROWS) => panic!("too fast to be cut off"),
        () = shrunk => {}
    }
    let marked = Workspace { deleting: true, ..large.clone() };
    assert_eq!(workspaces.get(&Scope::All, &large.id).await.unwrap(), marked);
    let after = sizes(world, large).await;
    assert_eq!(told(world).await, counts(&[("task.deleted", before[0] - after[0])]), "what is gone was told");
    [before, after]
}

async fn a_deletion_that_was_cut_off_is_finished_by_the_same_request(db: Db) {
    let (world, large, _) = seeded(db).await;
    let workspaces = &world.platform.workspaces;
    let once = Once { scope: "operator".to_owned(), key: "k".to_owned(), fingerprint: "f".to_owned() };
    let by = By::operator().with(Some(once.clone()));
    cut_off(&world, &large, &by).await;
    for _ in 0..2 {
        let done = workspaces.delete_by(&by, &large.id, &large.name, Some(large.version), ROWS).await;
        assert_eq!(done, Ok(()), "done once, answered twice");
    }
    assert_eq!(told(&world).await.last(), counts(&[("workspace.deleted", 1)]).last());
}

async fn a_deletion_that_was_cut_off_is_finished_by_itself(db: Db) {
    let (world, large, _) = seeded(db).await;
    cut_off(&world, &large, &By::operator()).await;
    world.platform.workspaces.finish_deletions().await.unwrap();
    assert_eq!(sizes(&world, &large).await, [0, 0, 0]);
    assert_eq!(told(&world).await.last(), counts(&[("workspace.deleted", 1)]).last());
    world.platform.workspaces.finish_deletions().await.unwrap();
}

async fn a_host_that_stops_ends_a_large_deletion_between_two_transactions(db: Db) {
    let (world, large, _) = seeded(db).await;
    let (workspaces, by) = (&world.platform.workspaces, By::operator());
    world.store.close();
    let ended = workspaces.delete_by(&by, &large.id, &large.name, None, ROWS).await;
    assert!(matches!(ended, Err(PlatformError::Database(DbFault::Unavailable(_)))), "{ended:?}");
    assert!(workspaces.get(&Scope::All, &large.id).await.unwrap().deleting);
}

/// A session of the task, with so many messages and one.
async fn filled(db: &Db, world: &World, task: &Task, messages: u64) -> Session {
    let session = super::sessions::session_of(world, &task.id).await;
    let message = super::sessions::message_in(&session.id, "x");
    let message = world.platform.messages.add(&By::operator(), &message).await.unwrap();
    let many = format!(
        "INSERT INTO session_message (id, session_id, task_id, turn_id, author_type, author_id, type, raw_content, \
         requests_input, metadata, created_at, updated_at, version) WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL \
         SELECT n + 1 FROM n WHERE n < {messages}) SELECT '{}' || n, session_id, task_id, turn_id, author_type, \
         author_id, type, raw_content, requests_input, metadata, created_at, updated_at, version FROM \
         session_message, n WHERE id = '{}'",
        task.id, message.id
    );
    tamper(db, &many).await;
    session
}

/// More than go in one transaction.
async fn a_task_with_very_many_messages_goes_with_its_parts_and_others_write_meanwhile(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let whole = world.task("whole").await;
    let part = world.made(&By::operator(), &NewTask { parent_id: whole.id.clone(), ..titled("part") }).await;
    let session = filled(&db, &world, &whole, 4500).await;
    filled(&db, &world, &part, 4500).await;
    assert_eq!(sizes(&world, &workspace).await, [2, 2, 9002]);
    let seen = world.log().await.len();
    world.platform.sessions.delete(&By::operator(), &session.id, None).await.unwrap();
    assert_eq!(sizes(&world, &workspace).await, [2, 1, 4501]);
    world.platform.tasks.delete(&By::operator(), &whole.id, true, None).await.unwrap();
    assert_eq!(sizes(&world, &workspace).await, [0, 0, 0]);
    assert_eq!(world.told(seen).await, ["task.updated", "task.deleted", "task.deleted"]);
}

/// Otherwise the messages would be gone and the task be there.
async fn a_deletion_that_has_begun_is_not_refused_because_the_task_changes(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let task = world.task("whole").await;
    filled(&db, &world, &task, 4500).await;
    let found = tasks.get(&Scope::All, &task.id).await.unwrap();
    let stale = refused(tasks.delete_by(&by, &task.id, false, Some(found.version + 1), ROWS).await);
    assert_eq!((stale.class(), sizes(&world, &workspace).await), (Class::Stale, [1, 1, 4501]), "nothing is lost");

    let changed = AtomicUsize::new(0);
    let change = async {
        loop {
            let title = format!("change {}", changed.load(Ordering::Relaxed));
            let patch = TaskPatch { title: Some(title), ..TaskPatch::default() };
            if sizes(&world, &workspace).await[2] < 4501 && tasks.update(&by, &task.id, &patch, None).await.is_ok() {
                changed.fetch_add(1, Ordering::Relaxed);
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = tasks.delete_by(&by, &task.id, false, Some(found.version), ROWS) => assert_eq!(done, Ok(())),
        () = change => {}
    }
    assert!(changed.into_inner() > 0, "it was not changed meanwhile");
    assert_eq!(sizes(&world, &workspace).await, [0, 0, 0]);
    assert_eq!(world.told(0).await.last().map(String::as_str), Some("task.deleted"));
}

/// Somebody else's part may come while the tree of a plugin goes: it stays, with its messages.
async fn what_is_emptied_of_a_plugins_tree_is_the_plugins(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let acme = plugin("acme");
    let root = world.made(&By::plugin(&acme), &titled("root")).await;
    let part = NewTask { parent_id: root.id.clone(), ..titled("part") };
    let own = world.made(&By::plugin(&acme), &part).await;
    let other = world.made(&By::operator(), &part).await;
    for task in [&root, &own, &other] {
        filled(&db, &world, task, 3).await;
    }
    let root = &root.id;
    let clear = |work: Work| async move {
        let holder = Holder::Owned(root, "plugin:acme");
        let before = work.is_large(holder, 7).await?;
        let more = work.clear_some(holder, 100).await?.more;
        Ok((before, more, work.is_large(holder, 0).await?))
    };
    assert_eq!(world.store.write(&Scope::All, None, clear).await, Ok((true, false, false)));
    assert_eq!(sizes(&world, &workspace).await, [3, 3, 4]);
    let left = world.store.messages(&Scope::All, &MessageFilter::default(), true, &PageRequest::default()).await;
    assert!(left.unwrap().items.iter().all(|message| message.task_id == other.id));
}

/// A round of housekeeping, so much later.
async fn keep_house(world: &World, later: Duration) {
    let (timing, limits) = (Timing::default(), Limits::default());
    let housekeeping = Housekeeping::new(world.store.clone(), &timing, &limits, CancellationToken::new());
    housekeeping.round(OffsetDateTime::now_utc() + later).await.unwrap();
}

/// What is noted as being deleted.
async fn noted(world: &World) -> Vec<String> {
    let noted = world.store.unfinished_deletions(OffsetDateTime::now_utc() + Duration::HOUR).await.unwrap();
    noted.iter().map(|unfinished| format!("{:?}", unfinished.holder().unwrap())).collect()
}

/// Otherwise a task with a part of its messages would be left, and nothing would say so.
async fn a_deletion_of_a_task_that_was_cut_off_is_finished_by_itself(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let whole = world.task("whole").await;
    let part = world.made(&by, &NewTask { parent_id: whole.id.clone(), ..titled("part") }).await;
    filled(&db, &world, &whole, 1500).await;
    filled(&db, &world, &part, 1500).await;
    let shrunk = async {
        while sizes(&world, &workspace).await[2] == 3002 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = tasks.delete_by(&by, &whole.id, true, None, ROWS) => panic!("too fast to be cut off: {done:?}"),
        () = shrunk => {}
    }
    // The transaction that was under way may still be committed.
    let mut left = sizes(&world, &workspace).await;
    loop {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let now = sizes(&world, &workspace).await;
        if mem::replace(&mut left, now) == now {
            break;
        }
    }
    assert!(left[..2] == [2, 2] && (1..3002).contains(&left[2]), "{left:?}");
    assert_eq!(noted(&world).await, [format!("{:?}", Holder::Task(&whole.id, true))]);
    keep_house(&world, Duration::ZERO).await;
    assert_eq!(sizes(&world, &workspace).await, left, "somebody may still be at it");

    let seen = world.log().await.len();
    keep_house(&world, Duration::minutes(2)).await;
    assert_eq!(sizes(&world, &workspace).await, [0, 0, 0]);
    assert_eq!(world.told(seen).await, ["task.deleted", "task.deleted"]);
    assert!(noted(&world).await.is_empty());
}

async fn deletions_of_a_session_and_of_a_plugins_tree_that_were_cut_off_are_finished_by_themselves(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let root = world.made(&By::plugin(&plugin("acme")), &titled("root")).await;
    let kept = world.task("kept").await;
    filled(&db, &world, &root, 100).await;
    let session = filled(&db, &world, &kept, 100).await;
    let holders = [Holder::Owned(&root.id, "plugin:acme"), Holder::Session(&session.id)];
    for holder in holders {
        assert_eq!(clearing::round(&world.store, &Scope::All, holder, ROWS).await, Ok(true));
        assert!(noted(&world).await.contains(&format!("{holder:?}")));
    }
    assert_eq!(sizes(&world, &workspace).await, [2, 2, 202 - 2 * ROWS]);
    let seen = world.log().await.len();
    keep_house(&world, Duration::minutes(2)).await;
    assert_eq!(sizes(&world, &workspace).await, [1, 0, 0]);
    let mut told = world.told(seen).await;
    told.sort();
    assert_eq!(told, ["task.deleted", "task.updated"]);
    assert!(noted(&world).await.is_empty());
}

async fn the_note_of_a_deletion_goes_with_it(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let (large, small) = (world.task("large").await, world.task("small").await);
    for task in [&large, &small] {
        filled(&db, &world, task, 100).await;
    }
    tasks.delete_by(&by, &large.id, false, None, ROWS).await.unwrap();
    assert!(noted(&world).await.is_empty(), "it is done");

    // Cut off, and asked for again when the rest fits into one transaction: what has changed meanwhile refuses nothing.
    clearing::round(&world.store, &Scope::All, Holder::Task(&small.id, false), ROWS).await.unwrap();
    tasks.delete(&by, &small.id, false, Some(99)).await.unwrap();
    assert!(noted(&world).await.is_empty());
}

async fn who_deletes_a_task_alone_deletes_the_parts_that_have_lost_messages_by_then(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let (tasks, by) = (&world.platform.tasks, By::operator());
    let whole = world.task("whole").await;
    let part = world.made(&by, &NewTask { parent_id: whole.id.clone(), ..titled("part") }).await;
    filled(&db, &world, &part, 100).await;
    clearing::round(&world.store, &Scope::All, Holder::Task(&whole.id, true), ROWS).await.unwrap();
    tasks.delete(&by, &whole.id, false, None).await.unwrap();
    assert_eq!(sizes(&world, &workspace).await, [0, 0, 0]);
    assert!(noted(&world).await.is_empty());
}

/// A row that a newer host wrote, say.
async fn a_note_that_cannot_be_read_keeps_no_other_deletion_waiting(db: Db) {
    let world = World::new(db.clone());
    let workspace = world.workspace("one").await;
    let task = world.task("small").await;
    filled(&db, &world, &task, 100).await;
    let strange =
        r#"INSERT INTO "instance_setting" ("key", "value") VALUES ('deleting:0', '{"at":1,"holder":{"x":"y"}}')"#;
    let writer = db.begin_write().await.unwrap();
    writer.execute_unprepared(strange).await.unwrap();
    writer.commit().await.unwrap();
    clearing::round(&world.store, &Scope::All, Holder::Task(&task.id, false), ROWS).await.unwrap();
    keep_house(&world, Duration::minutes(2)).await;
    assert_eq!(sizes(&world, &workspace).await, [0, 0, 0]);
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
    a_deletion_that_was_cut_off_is_finished_by_itself,
    a_host_that_stops_ends_a_large_deletion_between_two_transactions,
    a_task_with_very_many_messages_goes_with_its_parts_and_others_write_meanwhile,
    a_deletion_that_has_begun_is_not_refused_because_the_task_changes,
    what_is_emptied_of_a_plugins_tree_is_the_plugins,
    a_deletion_of_a_task_that_was_cut_off_is_finished_by_itself,
    deletions_of_a_session_and_of_a_plugins_tree_that_were_cut_off_are_finished_by_themselves,
    the_note_of_a_deletion_goes_with_it,
    who_deletes_a_task_alone_deletes_the_parts_that_have_lost_messages_by_then,
    a_note_that_cannot_be_read_keeps_no_other_deletion_waiting,
    a_large_workspace_loses_nothing_to_a_deletion_that_is_refused,
);
