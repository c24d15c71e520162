//! Deleting tasks, and the trees that a plugin owns (host-data.md §6.4).

use sea_orm::ConnectionTrait as _;

use super::*;
use crate::store::db::tests::on_both_databases;

async fn parts_go_with_their_whole_or_become_tasks_of_their_own(db: Db) {
    let world = World::new(db);
    let (tasks, by) = (&world.platform.tasks, By::operator());
    world.workspace("one").await;
    let whole = world.task("whole").await;
    let part = world.made(&by, &NewTask { parent_id: whole.id.clone(), ..titled("part") }).await;
    let seen = world.log().await.len();
    tasks.delete(&by, &whole.id, false, None).await.unwrap();
    assert_eq!(world.told(seen).await, ["task.updated", "task.deleted"]);
    let freed = tasks.get(&Scope::All, &part.id).await.unwrap();
    assert_eq!((freed.parent_id, freed.version), (None, 2));

    let child = world.made(&by, &NewTask { parent_id: part.id.clone(), ..titled("child") }).await;
    let seen = world.log().await.len();
    tasks.delete(&by, &part.id, true, None).await.unwrap();
    let told = world.log().await.split_off(seen);
    let ids: Vec<_> =
        told.iter().map(|event| (event.subject.as_str(), event.payload["task_id"].as_str().unwrap())).collect();
    assert_eq!(ids, [("task.deleted", child.id.as_str()), ("task.deleted", part.id.as_str())]);
    assert_eq!(told[0].payload["reason"], "parent deleted");
    assert_eq!(text(tasks.get(&Scope::All, &child.id).await), format!("task \"{}\" not found", child.id));
    assert_eq!(text(tasks.delete(&by, &part.id, true, None).await), format!("task \"{}\" not found", part.id));
}

async fn a_plugin_sees_and_deletes_its_own_tree_only(db: Db) {
    let world = World::new(db);
    let tasks = &world.platform.tasks;
    world.workspace("one").await;
    let (acme, other) = (plugin("acme"), plugin("other"));
    let by = By::plugin(&acme);
    let root = world.made(&by, &titled("root")).await;
    let under_root = NewTask { parent_id: root.id.clone(), ..titled("part") };
    let part = world.made(&by, &under_root).await;
    let preview = |tree: Vec<Task>| tree.into_iter().map(|task| task.id).collect::<Vec<_>>();
    assert_eq!(
        preview(tasks.owned_tree(&Scope::All, &acme, &root.id).await.unwrap()),
        [root.id.clone(), part.id.clone()]
    );
    for refusal in [
        refused(tasks.owned_tree(&Scope::All, &other, &root.id).await),
        refused(tasks.delete_owned_tree(&Scope::All, &other, &root.id).await),
    ] {
        assert_eq!(refusal.to_string(), "capability 'plugin_owned_tasks' not declared");
    }
    let foreign = world.made(&By::operator(), &under_root).await;
    assert_eq!(
        preview(tasks.owned_tree(&Scope::All, &acme, &root.id).await.unwrap()).len(),
        2,
        "the foreign one is left out"
    );
    let seen = world.log().await.len();
    assert_eq!(
        text(tasks.delete_owned_tree(&Scope::All, &acme, &root.id).await),
        "plugin-owned task tree contains adopted or user-owned children; detach them before deleting"
    );
    assert_eq!(world.told(seen).await, [""; 0], "before anything is deleted");
    tasks.delete(&By::operator(), &foreign.id, false, None).await.unwrap();
    let seen = world.log().await.len();
    let deleted = tasks.delete_owned_tree(&Scope::All, &acme, &root.id).await.unwrap();
    assert_eq!(deleted, [part.id, root.id.clone()]);
    assert_eq!(world.told(seen).await, ["task.deleted", "task.deleted"]);
    assert_eq!(tasks.delete_owned_tree(&Scope::All, &acme, &root.id).await.unwrap(), [""; 0]);
    assert_eq!(text(tasks.owned_tree(&Scope::All, &acme, &root.id).await), format!("task \"{}\" not found", root.id));
}

async fn a_preview_of_a_tree_waits_for_no_writer(db: Db) {
    let world = World::new(db.clone());
    world.workspace("one").await;
    let acme = plugin("acme");
    let root = world.made(&By::plugin(&acme), &titled("root")).await;
    let part = world.made(&By::plugin(&acme), &NewTask { parent_id: root.id.clone(), ..titled("part") }).await;
    let writer = db.begin_write().await.unwrap();
    writer.execute_unprepared("UPDATE task SET title = 'changed'").await.unwrap();
    let preview = world.platform.tasks.owned_tree(&Scope::All, &acme, &root.id);
    let tree = tokio::time::timeout(std::time::Duration::from_secs(10), preview).await.expect("at once").unwrap();
    let shown: Vec<_> = tree.iter().map(|task| (task.id.as_str(), task.title.as_str())).collect();
    assert_eq!(shown, [(root.id.as_str(), "root"), (part.id.as_str(), "part")]);
    writer.rollback().await.unwrap();
}

on_both_databases!(
    parts_go_with_their_whole_or_become_tasks_of_their_own,
    a_plugin_sees_and_deletes_its_own_tree_only,
    a_preview_of_a_tree_waits_for_no_writer,
);
